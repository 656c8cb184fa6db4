r"""The first words of the recursion of ``tfidf.py``: groups whose part of the norm is no sum over words.

A group of g words takes the place of g steps. With Y_s and C_s the sums of y and of (c·z) y over its subsets
of s words, and w_s(r) = C(k, r - s) / C(k + g, r),

    A'[r] = Σ_s w_s(r) Y_s A[r - s],     D'[r] = Σ_s w_s(r) (Y_s D[r - s] + C_s A[r - s]).

All nodes of the quadrature go together; arrays are (T nodes, 1 + q outputs, r).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes.designs.counts import log_binomial
from limes.models.forms.normalized_linear import SharedWords

__all__ = ["Group", "Opening"]


@dataclass(frozen=True, eq=False)
class Group:
    """A group's weights in the norm by subset (2^g,), and its words' loads (g, q)."""

    weights: Floats
    loads: Floats

    @property
    def size(self) -> int:
        return len(self.loads)

    def sums(self, nodes: Floats, without: int | None = None) -> tuple[Floats, Floats]:
        """Y (T, g + 1) and C (T, q, g + 1) over subsets, of those without one word if it is given."""
        z = SharedWords.subsets(self.size)
        y = np.exp(-nodes[:, None] * self.weights)
        if without is not None:
            y = y * (1.0 - z[:, without])
        by_size = (z.sum(axis=1)[:, None] == np.arange(self.size + 1)).astype(np.float64)
        loaded = y[:, None, :] * (z @ self.loads).T
        return y @ by_size, loaded @ by_size


@dataclass(frozen=True, eq=False)
class Opening:
    """States before, between and behind groups, all from the start: (T, 1 + q, k + 1) after k words."""

    groups: Sequence[Group]
    nodes: Floats
    states: list[Floats]

    @classmethod
    def of(cls, groups: Sequence[Group], nodes: Floats, outputs: int) -> Opening:
        """Go through the groups; of none the only state is the empty text's."""
        states = [np.zeros((len(nodes), 1 + outputs, 1))]
        states[0][:, 0] = 1.0
        for group in groups:
            states.append(_after(states[-1], *group.sums(nodes)))
        return cls(groups, nodes, states)

    @property
    def last(self) -> Floats:
        """The state behind all groups."""
        return self.states[-1]

    def losses(self, adjoint: Floats, weights: Floats) -> Floats:
        """Part of the result from texts without each word, (words, q), for the adjoint behind all groups."""
        found = []
        for group, before in zip(self.groups[::-1], self.states[-2::-1], strict=True):
            own = [
                np.einsum(
                    "t,tqr,tqr->q", weights, *_parted(adjoint, _after(before, *group.sums(self.nodes, j)))
                )
                for j in range(group.size)
            ]
            found.append(np.array(own))
            adjoint = _back(adjoint, *group.sums(self.nodes), before.shape[2])
        return np.concatenate(found[::-1]) if found else np.zeros((0, adjoint.shape[1] - 1))


def _parted(adjoint: Floats, state: Floats) -> tuple[Floats, Floats]:
    """Both as (T, q, 2 r): what an output owes to its own D, and to A."""
    d, a = adjoint[:, :1], adjoint[:, 1:]
    derivatives = np.concatenate([np.broadcast_to(d, a.shape), a], axis=2)
    values = np.concatenate([state[:, 1:], np.broadcast_to(state[:, :1], state[:, 1:].shape)], axis=2)
    return derivatives, values


def _shares(before: int, size: int) -> Floats:
    """w_s(s + ρ) for s = 0..g and ρ = 0..k kept before, (g + 1, k + 1)."""
    s, rho = np.arange(size + 1.0)[:, None], np.arange(before + 1.0)
    ways = log_binomial(np.full_like(rho, float(before)), rho)
    return np.exp(ways - log_binomial(np.full_like(s + rho, float(before + size)), s + rho))


def _after(state: Floats, y: Floats, c: Floats) -> Floats:
    k, g = state.shape[2] - 1, y.shape[1] - 1
    found = np.zeros((*state.shape[:2], k + g + 1))
    for s, share in enumerate(_shares(k, g)):
        found[:, :, s : s + k + 1] += share * y[:, None, s, None] * state
        found[:, 1:, s : s + k + 1] += share * c[:, :, s, None] * state[:, :1]
    return found


def _back(adjoint: Floats, y: Floats, c: Floats, width: int) -> Floats:
    found = np.zeros((*adjoint.shape[:2], width))
    for s, share in enumerate(_shares(width - 1, y.shape[1] - 1)):
        behind = adjoint[:, :, s : s + width]
        found += share * y[:, None, s, None] * behind
        found[:, 1:] += share * c[:, :, s, None] * behind[:, :1]
    return found
