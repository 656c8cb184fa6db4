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

Groups of words that meet in a column, whose norm is no sum over words, come first (``tfidf_shared.py``).
Words with a = 0 take no part in this. How many words with a > 0 are kept is hypergeometric given r.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Literal

import numpy as np

from limes._arrays import Floats, Ints
from limes._threads import in_threads
from limes.designs.counts import Counts, log_binomial
from limes.designs.exchangeable import ExchangeableDesign
from limes.expectations.moments import Moments
from limes.expectations.tfidf_shared import Group, Opening
from limes.expectations.words import check_words
from limes.models.forms.normalized_linear import NormalizedLinear, SharedWords

# The trapezoidal rule, its step and where it starts to be fine: errors of y^{-1/2} and 1/y are below 1e-13.
_STEP, _OFFSET = 0.28, 2.0
# e^{-36} of a tail and e^{-80} of a product are not seen in float64, whatever they are multiplied by.
_TAIL, _VANISHED = 36.0, 80.0
# So few words are quicker done by one thread. Parts are as many for any number of threads: same sums, same
# roundings.
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
        check_words(form.size, design)
        known = form.a > 0
        strata = _Strata.of(design.counts, int(known.sum()))
        profile, loss = self._sums(strata.within)
        without = np.empty((d, profile.shape[1]))
        without[known] = loss
        without[~known] = strata.unknown @ profile
        coef = strata.between @ profile + (without.mean(axis=0) - without)
        mean = (strata.law @ profile).reshape(form.intercept.shape) + form.intercept
        return Moments.exact(mean, design.gamma(coef.reshape(d, *form.intercept.shape)))

    def _sums(self, within: Floats) -> tuple[Floats, Floats]:
        """E[f | r] of the known words, (D + 1, q), and Σ_r within[r] E[(1 - z_j) f | r], (D, q)."""
        loads, a = self._loads
        d, outputs = loads.shape
        if d == 0:
            return np.zeros((1, outputs)), np.zeros((0, outputs))
        nodes, weights = self._quadrature
        lightest = np.concatenate([[0.0], np.cumsum(np.sort(a))])
        parts = 1 if d <= _FEW else _PARTS
        order, groups = self._groups
        opening = Opening.of(groups, nodes, outputs)
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
                _kernels().add_node(
                    y, loads, within, width, weights[n], profile[i], loss[i], opening.last[n], rest[n]
                )

        in_threads(part, range(parts))
        found = np.empty((d, outputs))
        found[order] = np.concatenate([opening.losses(rest, weights), loss.sum(axis=0)])
        return profile.sum(axis=0).T, found

    @cached_property
    def _loads(self) -> tuple[Floats, Floats]:
        """Loads c (D, q) and a (D,) of the known words, a as shares of the whole text."""
        form = self.form
        known = form.a > 0
        whole, total = self._scale
        scale = (whole**-form.power) * total**-form.power
        return np.ascontiguousarray(form.c.reshape(form.size, -1)[known] * scale), form.a[
            known
        ] / whole / total

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """The heaviest word, and the whole text in its unit."""
        form = self.form
        whole = float(form.a.max(initial=0.0)) or 1.0
        more = sum(float(group.excess[-1]) for group in form.shared)
        return whole, float((form.a / whole).sum() + more / whole) or 1.0

    @cached_property
    def _groups(self) -> tuple[Ints, list[Group]]:
        """Known words in the recursion's order, those that share columns first, and the groups they make."""
        form, (loads, a) = self.form, self._loads
        place = np.cumsum(form.a > 0) - 1
        members = [place[group.words] for group in form.shared]
        first = np.concatenate([np.zeros(0, dtype=np.int64), *members])
        order = np.concatenate([first, np.setdiff1d(np.arange(len(a)), first)])
        whole, total = self._scale
        groups = [
            Group(SharedWords.subsets(len(words)) @ a[words] + group.excess / whole / total, loads[words])
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
    """Weights of a design's strata, (D + 1,), by how many of D known words are kept; others are unknown.

    ``unknown`` is ``within`` times the share of unknown words that is removed.
    """

    law: Floats
    between: Floats
    within: Floats
    unknown: Floats

    @classmethod
    def of(cls, counts: Counts, known: int) -> _Strata:
        """Mix over the hypergeometric number of known words among the kept ones."""
        d, strata = counts.size, np.arange(known + 1.0)
        weights = np.stack([counts.law, counts.between, counts.within], axis=1)
        mixed = np.zeros((known + 1, 4))
        step = max(1, _CELLS // (d + 1))
        for start in range(0, known + 1, step):
            kept = strata[start : start + step, None]
            share = (d - known - (counts.kept - kept)) / max(1, d - known)
            chance = np.exp(
                log_binomial(np.full_like(kept, known), kept)
                + log_binomial(np.full_like(counts.kept, d - known), counts.kept - kept)
                - log_binomial(np.full_like(counts.kept, d), counts.kept)
            )
            mixed[start : start + step, :3] = chance @ weights
            mixed[start : start + step, 3] = (chance * share) @ counts.within
        return cls(*np.ascontiguousarray(mixed.T))


def _kernels() -> ModuleType:
    from limes.expectations import tfidf_kernels

    return tfidf_kernels
