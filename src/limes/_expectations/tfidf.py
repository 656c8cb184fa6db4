r"""Exact expectations of a linear model on normalised TF-IDF under an exchangeable design.

f(z) = (c·z) (a·z)^{-p} with p = ½ (ℓ2) or 1 (ℓ1). Two steps take the norm apart.

*Quadrature.* y^{-p} = ∫ t^{p-1} e^{-ty} dt / Γ(p), and e^{-t a·z} is a product over words. With t = e^{x -
e^{-x}} the trapezoidal rule in x converges exponentially, evenly in y from the lightest word to the whole
text: some 50 nodes, ten more for each further factor of 20 between them.

*Recursion.* At one node, with y_k = e^{-t a_k}, let A_k[r] be the mean of ∏ y over the r-subsets of the first
k words, and D_k[r] that of (c·z) ∏ y. Then A_k[r] = (1 - r/k) A_{k-1}[r] + (r/k) y_k A_{k-1}[r-1], the same
for D with D_{k-1}[r-1] + c_k A_{k-1}[r-1] in the last bracket, nothing is subtracted and nothing overflows.
The last row is E[f | r] after summing over nodes. One pass back through the recursion gives, for all words at
once, the part of it that comes from texts without word j, E[(1 - z_j) f | r]: O(d²) a node. As few words are
removed, that keeps more digits than E[z_j f | r], which is all but the same for all words.

*Groups* of words that meet in a column, whose norm is no sum over words, come first. A group of g words takes
the place of g steps. With Y_s and C_s the sums of y and of (c·z) y over its subsets of s words, and
w_s(r) = C(k, r - s) / C(k + g, r),

    A'[r] = Σ_s w_s(r) Y_s A[r - s],     D'[r] = Σ_s w_s(r) (Y_s D[r - s] + C_s A[r - s]).

Words with a = 0 take no part in this. How many words with a > 0 are kept is hypergeometric given r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments
from limes._threads import in_threads
from limes.designs._exchangeable import Counts, ExchangeableDesign, log_binomial
from limes.models.forms._presence import NormalizedLinear, SharedWords

# The trapezoidal rule, its step and where it starts to be fine: errors of y^{-1/2} and 1/y are below 1e-13.
_STEP, _OFFSET = 0.28, 2.0
# A tail below e^{-36} and a product below e^{-80} vanish in float64, whatever they are multiplied by.
_TAIL, _VANISHED = 36.0, 80.0
# Up to this many words one thread is quicker. The number of parts does not depend on that of threads, so that
# sums and roundings do not either.
_FEW, _PARTS = 128, 8
# strata x strata at once: 32 MB of float64
_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class NormalizedExpectation:
    """Moments of a normalised linear form."""

    form: NormalizedLinear
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(z, f), exactly.

        Raises
        ------
        InputError
            If the design and the form have different numbers of words.
        """
        form, d = self.form, design.size
        design.check_size(form.size)
        weighted = form.a > 0
        strata = _Strata.mixed(design.counts, int(weighted.sum()))
        profile, loss = self._sums(strata.within)
        without = np.empty((d, profile.shape[1]))
        without[weighted] = loss
        without[~weighted] = strata.weightless @ profile
        coef = strata.between @ profile + (without.mean(axis=0) - without)
        mean = (strata.law @ profile).reshape(form.intercept.shape) + form.intercept
        return Moments.exact(mean, design.gamma(coef.reshape(d, *form.intercept.shape)))

    def _sums(self, within: Floats) -> tuple[Floats, Floats]:
        """E[f | r] of the D words with a > 0, (D + 1, q), and Σ_r within[r] E[(1 - z_j) f | r], (D, q)."""
        loads, a = self._loads
        d, outputs = loads.shape
        if d == 0:
            return np.zeros((1, outputs)), np.zeros((0, outputs))
        nodes, weights = self._quadrature
        lightest = np.concatenate([[0.0], np.cumsum(np.sort(a))])
        parts = 1 if d <= _FEW else _PARTS
        order, groups = self._groups
        opening = _GroupStates.run(groups, nodes, outputs)
        single = order[opening.last.shape[2] - 1 :]
        loads, a = np.ascontiguousarray(loads[single]), a[single]
        profile, loss = np.zeros((parts, outputs, d + 1)), np.zeros((parts, len(single), outputs))
        rest = np.zeros_like(opening.last)

        def part(i: int) -> None:
            for n in range(i, len(nodes), parts):
                # no r words weigh less than the r lightest
                width = int(np.searchsorted(nodes[n] * lightest, _VANISHED))
                exponent = nodes[n] * a
                y = np.where(exponent < _VANISHED, np.exp(-exponent), 0.0)
                _kernels.add_node(
                    y, loads, within, width, weights[n], profile[i], loss[i], opening.last[n], rest[n]
                )

        in_threads(part, range(parts))
        losses = np.empty((d, outputs))
        losses[order] = np.concatenate([opening.losses(rest, weights), loss.sum(axis=0)])
        return profile.sum(axis=0).T, losses

    @cached_property
    def _loads(self) -> tuple[Floats, Floats]:
        """Loads c (D, q) and a (D,) of the words with a > 0, a as shares of the whole text."""
        form = self.form
        weighted = form.a > 0
        whole, total = self._scale
        scale = (whole**-form.power) * total**-form.power
        loads = np.ascontiguousarray(form.c.reshape(form.size, -1)[weighted] * scale)
        return loads, form.a[weighted] / whole / total

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """The heaviest word, and the whole text in its unit."""
        form = self.form
        whole = float(form.a.max(initial=0.0)) or 1.0
        more = sum(float(group.excess[-1]) for group in form.shared)
        return whole, float((form.a / whole).sum() + more / whole) or 1.0

    @cached_property
    def _groups(self) -> tuple[Ints, list[_Group]]:
        """Words with a > 0 in the recursion's order, those that share columns first, and their groups."""
        form, (loads, a) = self.form, self._loads
        place = np.cumsum(form.a > 0) - 1
        members = [place[group.words] for group in form.shared]
        first = np.concatenate([np.zeros(0, dtype=np.int64), *members])
        order = np.concatenate([first, np.setdiff1d(np.arange(len(a)), first)])
        whole, total = self._scale
        groups = [
            _Group(SharedWords.subsets(len(words)) @ a[words] + group.excess / whole / total, loads[words])
            for words, group in zip(members, form.shared, strict=True)
        ]
        return order, groups

    @cached_property
    def _quadrature(self) -> tuple[Floats, Floats]:
        return nodes(self.form.power, float(self._loads[1].min()))


def nodes(power: float, smallest: float) -> tuple[Floats, Floats]:
    """Nodes t and weights with Σ weights · e^{-ty} = y^{-power} for y in [smallest, 1], to 1e-13."""
    from scipy.special import gamma

    start, end = -np.log(_TAIL / power), np.log(_TAIL / (_OFFSET * smallest))
    x = np.arange(start, end + _STEP, _STEP)
    t = _OFFSET * np.exp(x - np.exp(-x))
    return t, _STEP * t**power * (1.0 + np.exp(-x)) / gamma(power)


@dataclass(frozen=True, eq=False)
class _Strata:
    """Weights of a design's strata, (D + 1,), by how many of the D words with a > 0 are kept.

    ``weightless`` is ``within`` times the share of the words with a = 0 that is removed.
    """

    law: Floats
    between: Floats
    within: Floats
    weightless: Floats

    @classmethod
    def mixed(cls, counts: Counts, weighted: int) -> _Strata:
        """Mix over the hypergeometric number of weighted words among the kept ones."""
        d, strata = counts.size, np.arange(weighted + 1.0)
        weights = np.stack([counts.law, counts.between, counts.within], axis=1)
        mixed = np.zeros((weighted + 1, 4))
        step = max(1, _CELLS // (d + 1))
        for start in range(0, weighted + 1, step):
            kept = strata[start : start + step, None]
            share = (d - weighted - (counts.kept - kept)) / max(1, d - weighted)
            chance = np.exp(
                log_binomial(np.full_like(kept, weighted), kept)
                + log_binomial(np.full_like(counts.kept, d - weighted), counts.kept - kept)
                - log_binomial(np.full_like(counts.kept, d), counts.kept)
            )
            mixed[start : start + step, :3] = chance @ weights
            mixed[start : start + step, 3] = (chance * share) @ counts.within
        return cls(*np.ascontiguousarray(mixed.T))


@dataclass(frozen=True, eq=False)
class _Group:
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
class _GroupStates:
    """States before, between and behind groups: (T nodes, 1 + q outputs, k + 1) after k words."""

    groups: Sequence[_Group]
    nodes: Floats
    states: list[Floats]

    @classmethod
    def run(cls, groups: Sequence[_Group], nodes: Floats, outputs: int) -> _GroupStates:
        """Run the recursion over the groups; without groups the only state is the empty text's."""
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
        losses = []
        for group, before in zip(self.groups[::-1], self.states[-2::-1], strict=True):
            of_words = [
                np.einsum(
                    "t,tqr,tqr->q", weights, *_parted(adjoint, _after(before, *group.sums(self.nodes, j)))
                )
                for j in range(group.size)
            ]
            losses.append(np.array(of_words))
            adjoint = _back(adjoint, *group.sums(self.nodes), before.shape[2])
        return np.concatenate(losses[::-1]) if losses else np.zeros((0, adjoint.shape[1] - 1))


def _parted(adjoint: Floats, state: Floats) -> tuple[Floats, Floats]:
    """Derivatives of each output by its D and by A, and these D and A, both (T, q, 2 r)."""
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
    after = np.zeros((*state.shape[:2], k + g + 1))
    for s, share in enumerate(_shares(k, g)):
        after[:, :, s : s + k + 1] += share * y[:, None, s, None] * state
        after[:, 1:, s : s + k + 1] += share * c[:, :, s, None] * state[:, :1]
    return after


def _back(adjoint: Floats, y: Floats, c: Floats, width: int) -> Floats:
    before = np.zeros((*adjoint.shape[:2], width))
    for s, share in enumerate(_shares(width - 1, y.shape[1] - 1)):
        behind = adjoint[:, :, s : s + width]
        before += share * y[:, None, s, None] * behind
        before[:, 1:] += share * c[:, :, s, None] * behind[:, :1]
    return before
