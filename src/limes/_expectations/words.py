r"""Exact expectations under an exchangeable design of sums, products and normalised TF-IDF of words.

With three weights a stratum of s removed features (``designs/_exchangeable.py``), and F_s = E[f | s],

    E_w f = Σ_s p_s F_s,    β_j = Σ_s between_s F_s + Σ_s within_s E[(z_j - r/d) f | s],    r = d - s.

*Sums.* Σ_j f_j(z_j) has coefficients β_j = f_j(1) - f_j(0) at any bandwidth.

*Presence.* A product of k words kept and m removed has F_s = C(d - k - m, s - m) / C(d, s); where it is 1,
z_j is 1 if word j is to be kept, 0 if it is to be removed, and 1 with probability (r - k) / (d - k - m) if it
is any other.

*Switches.* For f = Σ_i a_i ∏_j (on_ij or off_ij), let B_k[s] be the mean product over all ways to remove s of
the first k features. Feature k is one of the removed ones with probability s / k,

    B_k[s] = (1 - s/k) on_k B_{k-1}[s] + (s/k) off_k B_{k-1}[s-1],

and F_s = B_d[s]. Going back through the recursion with weights on s gives Σ_s weight_s E[z_j f | s] for all j
together, as f is linear in on_j: it is on_j times the derivative by on_j. Both take d² steps a product.

*TF-IDF.* f(z) = (c·z) (a·z)^{-p} with p = ½ (ℓ2) or 1 (ℓ1). By quadrature y^{-p} = ∫ t^{p-1} e^{-ty} dt /
Γ(p), and e^{-t a·z} is a product over words. With t = e^{x - e^{-x}} the trapezoidal rule in x converges
exponentially, evenly in y from the lightest word to the whole text: some 50 nodes, ten more for each further
factor of 20 between them. At one node, with y_k = e^{-t a_k}, let A_k[r] be the mean of ∏ y over the
r-subsets of the first k words, and D_k[r] that of (c·z) ∏ y. Then A_k[r] = (1 - r/k) A_{k-1}[r] + (r/k) y_k
A_{k-1}[r-1], the same for D with D_{k-1}[r-1] + c_k A_{k-1}[r-1] in the last bracket, nothing is subtracted
and nothing overflows. The last row is E[f | r] after summing over nodes. One pass back through the recursion
gives, for all words at once, the part of it that comes from texts without word j, E[(1 - z_j) f | r]: O(d²) a
node. As few words are removed, that keeps more digits than E[z_j f | r], which is all but the same for all
words.

Groups of words that meet in a column, whose norm is no sum over words, come first. A group of g words takes
the place of g steps. With Y_s and C_s the sums of y and of (c·z) y over its subsets of s words, and
w_s(r) = C(k, r - s) / C(k + g, r),

    A'[r] = Σ_s w_s(r) Y_s A[r - s],     D'[r] = Σ_s w_s(r) (Y_s D[r - s] + C_s A[r - s]).

Words with a = 0 take no part in this. How many words with a > 0 are kept is hypergeometric given r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments
from limes._threads import in_threads
from limes.designs._exchangeable import Counts, ExchangeableDesign, log_binomial
from limes.exceptions import InputError
from limes.models.forms._base import Sum
from limes.models.forms._presence import NormalizedLinear, PresenceProducts, SharedWords, SwitchProducts

# pairs (k, m) x strata at once: 16 MB of float64
_BLOCK = 2_000_000
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
class SumExpectation:
    """Moments of c + Σ_j f_j(z_j)."""

    terms: Sum
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        design.check_size(len(self.terms.functions))
        empty, coef = switch_effects(self.terms)
        mean = empty + np.tensordot(design.inclusion, coef, axes=1)
        return Moments.exact(np.asarray(mean), design.gamma(coef))


def switch_effects(terms: Sum) -> tuple[Floats, Floats]:
    """A sum (...) of the empty text, and what each word adds to it, (d, ...)."""
    empty = terms.intercept.astype(np.float64)
    effects = np.zeros((len(terms.functions), *empty.shape))
    for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True)):
        if function is not None:
            removed, kept = np.tensordot(function(np.array([0.0, 1.0])), loading, axes=(0, 0))
            empty = empty + removed
            effects[j] = kept - removed
    return empty, effects


@dataclass(frozen=True, eq=False)
class PresenceExpectation:
    """Moments of a sum of presence products; those of the same (k, m) differ only in their words."""

    form: PresenceProducts
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        form, d = self.form, design.size
        if form.size > d:
            raise InputError(f"the design has {d} words, the form (PresenceProducts) reads {form.size}")
        count = len(form.coef)
        kept = np.bincount(form.product[form.present], minlength=count)
        removed = np.bincount(form.product[~form.present], minlength=count)
        pairs, which = np.unique(kept * (d + 1) + removed, return_inverse=True)
        # a product's part of the mean and of all coefficients, and what it adds for the words that it names
        mean, every, on, off = _functionals(design.counts, *np.divmod(pairs, d + 1))[:, which]
        coef = form.coef.reshape(count, form.intercept.size)
        beyond = np.where(form.present, on[form.product], off[form.product])
        values = np.zeros((d, coef.shape[1]))
        np.add.at(values, form.word, beyond[:, None] * coef[form.product])
        values = (values + every @ coef).reshape(d, *form.intercept.shape)
        total = (mean @ coef).reshape(form.intercept.shape)
        return Moments.exact(form.intercept + total, design.gamma(values))


@dataclass(frozen=True, eq=False)
class SwitchExpectation:
    """Moments of a sum of products over switches."""

    form: SwitchProducts
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        form = self.form
        design.check_size(form.size)
        mean, coef = switch_surrogates(form.on, form.off, design)
        total = np.tensordot(mean, form.coef, axes=(0, 0))
        values = np.tensordot(coef, form.coef, axes=(0, 0))
        return Moments.exact(np.asarray(form.intercept + total), design.gamma(np.asarray(values)))


def switch_surrogates(on: Floats, off: Floats, design: ExchangeableDesign) -> tuple[Floats, Floats]:
    """E_w (m,) and coefficients β (m, d) of each of m products (m, d)."""
    counts = design.counts
    mean, coef = np.zeros(len(on)), np.zeros(on.shape)
    every = counts.between - counts.within * counts.kept / design.size
    on, off = np.ascontiguousarray(on), np.ascontiguousarray(off)
    _kernels.add_products(on, off, counts.law, every, counts.within, mean, coef)
    return mean, coef


def _functionals(counts: Counts, kept: Ints, removed: Ints) -> Floats:
    """Four numbers of each product of k words kept and m removed, (4, P)."""
    # E_w f, the coefficient of a word that the product does not name, and what must be added to it for a word
    # to be kept, and for a word to be removed
    step = max(1, _BLOCK // (counts.size + 1))
    blocks = [
        _block(counts, kept[i : i + step, None].astype(float), removed[i : i + step, None].astype(float))
        for i in range(0, len(kept), step)
    ]
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((4, 0))


def _block(counts: Counts, k: Floats, m: Floats) -> Floats:
    d, r = float(counts.size), counts.kept
    s = d - r
    others = d - k - m
    satisfied = np.exp(log_binomial(others, s - m) - log_binomial(np.full_like(s, d), s))
    within = satisfied * counts.within
    on, off = within @ (s / d), -within @ (r / d)
    # unused when the product names every word
    other = (within * (r * m - s * k)).sum(axis=1) / (d * np.maximum(others[:, 0], 1.0))
    return np.stack([satisfied @ counts.law, satisfied @ counts.between + other, on - other, off - other])


@dataclass(frozen=True, eq=False)
class NormalizedExpectation:
    """Moments of a normalised linear form."""

    form: NormalizedLinear
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
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
        states = _group_states(groups, nodes, outputs)
        opening = states[-1]
        single = order[opening.shape[2] - 1 :]
        loads, a = np.ascontiguousarray(loads[single]), a[single]
        profile, loss = np.zeros((parts, outputs, d + 1)), np.zeros((parts, len(single), outputs))
        rest = np.zeros_like(opening)

        def part(i: int) -> None:
            for n in range(i, len(nodes), parts):
                # no r words weigh less than the r lightest
                width = int(np.searchsorted(nodes[n] * lightest, _VANISHED))
                exponent = nodes[n] * a
                y = np.where(exponent < _VANISHED, np.exp(-exponent), 0.0)
                _kernels.add_node(
                    y, loads, within, width, weights[n], profile[i], loss[i], opening[n], rest[n]
                )

        in_threads(part, range(parts))
        losses = np.empty((d, outputs))
        losses[order] = np.concatenate(
            [_group_losses(groups, states, nodes, rest, weights), loss.sum(axis=0)]
        )
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


class _Strata(NamedTuple):
    """Weights of a design's strata, (D + 1,), by how many of the D words with a > 0 are kept."""

    law: Floats
    between: Floats
    within: Floats
    weightless: Floats  # within, times the share of the words with a = 0 that is removed

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


class _Group(NamedTuple):
    """A group's weights in the norm by subset (2^g,), and its words' loads (g, q)."""

    weights: Floats
    loads: Floats

    def sums(self, nodes: Floats, without: int | None = None) -> tuple[Floats, Floats]:
        """Y (T, g + 1) and C (T, q, g + 1) over subsets, of those without one word if it is given."""
        z = SharedWords.subsets(len(self.loads))
        y = np.exp(-nodes[:, None] * self.weights)
        if without is not None:
            y = y * (1.0 - z[:, without])
        by_size = (z.sum(axis=1)[:, None] == np.arange(len(self.loads) + 1)).astype(np.float64)
        loaded = y[:, None, :] * (z @ self.loads).T
        return y @ by_size, loaded @ by_size


def _group_states(groups: Sequence[_Group], nodes: Floats, outputs: int) -> list[Floats]:
    """States before, between and behind groups: (T nodes, 1 + q outputs, k + 1) after k words."""
    states = [np.zeros((len(nodes), 1 + outputs, 1))]
    states[0][:, 0] = 1.0  # the empty text's, the only one without groups
    for group in groups:
        states.append(_after(states[-1], *group.sums(nodes)))
    return states


def _group_losses(
    groups: Sequence[_Group], states: Sequence[Floats], nodes: Floats, adjoint: Floats, weights: Floats
) -> Floats:
    """Part of the result from texts without each word, (words, q), for the adjoint behind all groups."""
    losses = [np.zeros((0, adjoint.shape[1] - 1))]
    for group, before in zip(groups[::-1], states[-2::-1], strict=True):
        after = [_after(before, *group.sums(nodes, j)) for j in range(len(group.loads))]
        of_words = [np.einsum("t,tqr,tqr->q", weights, *_parted(adjoint, state)) for state in after]
        losses.append(np.array(of_words))
        adjoint = _back(adjoint, *group.sums(nodes), before.shape[2])
    return np.concatenate(losses[::-1])


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
