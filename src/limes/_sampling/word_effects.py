r"""Logistic links of normalised TF-IDF over many words: effects of single words around random sets of words.

The form is read, so that a set costs no text and no call, and all sets that differ from it by one word cost
little more than itself (``kernels/subsets.h``). With D_j(r) = E[f(S with j) - f(S without j)], S of r other
words, coefficients are sums of these:

    β_j = Σ_r w_r D_j(r) - Σ_r E_r mean_i D_i(r),     E_r = Σ_{t <= r} (between_t + w_t - w_{t-1}),
    w_{r-1} (1 - r/d) + w_r r/d = within_r (r/d) (1 - r/d)     for 0 < r < d,

with the number r of kept words as index: D_j(r) consists of F_{r+1} - F_r = mean_i D_i(r) and of the
contrasts E[f | z_j = 1] - E[f | z_j = 0] in the strata r and r + 1, and w gives the contrast of each stratum
the weight that it has in β_j. The recursion is stable from the middle outwards.

What a word changes varies much less than f does, and in proportion to its coefficient. At 2^17 sets of
600 words errors were 0.05 % of the largest coefficient, where 4,096 answers leave some per cent. They are
those of the mean of independent batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from limes import _kernels
from limes._arrays import Floats, fingerprint, r_squared, streams
from limes._expectations.moments import Moments
from limes._sampling.least_squares import LeastSquares, rarity_factors, student_factors
from limes._sampling.sampled import SampledExpectation, Sampling, least_calls
from limes._threads import in_threads
from limes.designs._exchangeable import ExchangeableDesign
from limes.models.forms._base import Form
from limes.models.forms._linked import Linked
from limes.models.forms._presence import NormalizedLinear

# Independent batches, whose spread shows the errors; fewest sets in each, and words that they have together
_BATCHES, _SETS, _WORDS = 128, 1 << 10, 1 << 19
# Share of the sets whose sizes follow the law itself: the others follow the weights of coefficients
_BY_LAW = 0.1
# Weights w that change their sign lose digits: the largest Σ|w| as a multiple of |Σw|
_MOST_CANCELLED = 2.0


def has_word_effects(form: Form | None) -> TypeGuard[Linked]:
    """Whether outputs are logistic links of one normalised margin each."""
    if not (isinstance(form, Linked) and isinstance(form.margin, NormalizedLinear)):
        return False
    single = np.count_nonzero(form.coef.reshape(len(form.coef), -1), axis=0) <= 1
    return form.link == "logistic" and form.margin.norm == "l2" and bool(single.all())


class WordEffects(SampledExpectation):
    """Moments of a form with `has_word_effects`; designs whose weights cancel are sampled as any function."""

    def __init__(self, form: Linked, sampling: Sampling) -> None:
        # answers of the form, which give effects beside coefficients, cost next to nothing
        enough = max(sampling.max_calls, least_calls(form.size))
        super().__init__(form.predict, replace(sampling, max_calls=enough))
        self._form = form

    def moments(
        self,
        design: Any,
        row: Floats,
        *,
        on_progress: Callable[[int], object] = lambda _: None,
        prediction: Floats | None = None,
    ) -> Moments:
        weights = _Weights.of(design)
        if weights is None:
            return super().moments(design, row, on_progress=on_progress, prediction=prediction)
        form, sampling = self._form, self._sampling
        seeds = streams(sampling.seed, fingerprint(row), 1)[0].generate_state(2 * _BATCHES, np.uint64)
        sums = _Sums.of(form, weights, seeds)
        z = self.redraw(design, row, sampling.max_calls)[0]
        answers = form.predict(z)
        on_progress(sampling.max_calls)
        return sums.least_squares(design).to_moments(
            answers.shape[1:], sampling.accuracy, control="words", answers=answers
        )


class _Weights(NamedTuple):
    """By the number r of kept words: the weights w and E of D_j(r), (d,), and the law (d + 1,)."""

    single: Floats
    common: Floats
    law: Floats

    @classmethod
    def of(cls, design: ExchangeableDesign) -> _Weights | None:
        """None where the weights of coefficients cancel, or all words are kept or removed together."""
        counts, d = design.counts, design.size
        if d < 2:
            return None
        within, between, law = (each[::-1] for each in (counts.within, counts.between, counts.law))
        share = np.arange(d + 1.0) / d
        target, single, middle = within * share * (1.0 - share), np.zeros(d), d // 2
        single[middle] = target[middle]
        for r in range(middle, 0, -1):
            single[r - 1] = (target[r] - single[r] * share[r]) / (1.0 - share[r])
        for r in range(middle + 1, d):
            single[r] = (target[r] - single[r - 1] * (1.0 - share[r])) / share[r]
        size = float(np.abs(single).sum())
        if not 0.0 < size <= _MOST_CANCELLED * abs(float(single.sum())):
            return None
        common = np.cumsum(between + np.diff(single, prepend=0.0, append=0.0))[:-1]
        weights = cls(single, common, law)
        used = np.append(common, 0.0) != 0
        drawn = weights.sizes > 0
        return weights if (drawn[used] & np.append(drawn[1:], True)[used]).all() else None

    @property
    def sizes(self) -> Floats:
        """Probabilities with which sets of r words are drawn, (d + 1,)."""
        single = np.abs(np.concatenate([[0.0], self.single, [0.0]]))
        by_word = single[1:] + single[:-1]
        return np.asarray((1.0 - _BY_LAW) * by_word / by_word.sum() + _BY_LAW * self.law)

    @property
    def of_sets(self) -> Floats:
        """Weights of a set's words outside and inside, for each sum, and of its value, (5, d + 1).

        A set of r words shows D_j(r) of the words outside, and D_j(r - 1) of those inside: with weights in
        proportion to those of D_j the shares of both add up to 1 + 1/d.
        """
        d, drawn = self.single.size, self.sizes
        safe = np.where(drawn > 0, drawn, np.inf)
        outside, inside = (
            [np.concatenate(parts) / (1.0 + 1.0 / d) for parts in both]
            for both in (
                [(weights, [0.0]) for weights in (self.single, self.common)],
                [([0.0], weights) for weights in (self.single, self.common)],
            )
        )
        return np.stack([outside[0], inside[0], outside[1], inside[1], self.law]) / safe


class _Sums(NamedTuple):
    """Batches' estimates of k outputs: E_w f - f(all), Var_w f (B, k), and coefficients (B, d, k)."""

    sets: int  # in all
    mean: Floats
    variance: Floats
    coef: Floats
    whole: Floats  # f(all), (k,)

    @classmethod
    def of(cls, form: Linked, weights: _Weights, seeds: NDArray[Any]) -> _Sums:
        margin, d = form.margin, form.size
        assert isinstance(margin, NormalizedLinear)  # noqa: S101 - see `has_word_effects`
        c = np.ascontiguousarray(margin.c.reshape(d, -1).T)
        constant = np.atleast_1d(margin.intercept).astype(np.float64)
        links = form.curve.function(margin.predict(np.ones((1, d))).reshape(1, -1))[0]
        lengths = np.array([0, *(group.words.size for group in margin.shared)], dtype=np.int64)
        none = np.zeros(0)
        words = np.concatenate([none.astype(np.int64), *(group.words for group in margin.shared)])
        excess = np.concatenate([none, *(group.excess for group in margin.shared)])
        groups = (
            words,
            np.cumsum(lengths),
            excess,
            np.cumsum(np.where(np.arange(lengths.size) > 0, 1 << lengths, 0)),
        )
        cumulated, of_sets = np.cumsum(weights.sizes), np.ascontiguousarray(weights.of_sets)
        sets = max(_SETS, 1 << (_WORDS // d).bit_length() - 1)
        pairs = np.arange(sets) // 2
        effects, totals = np.zeros((_BATCHES, len(c), d)), np.zeros((_BATCHES, len(c), 3))

        def batch(i: int) -> None:
            shift = float(seeds[_BATCHES + i]) / 2.0**64
            levels = (pairs + shift) / (sets // 2) * cumulated[-1]
            kept = np.minimum(np.searchsorted(cumulated, levels, side="right"), d).astype(np.int64)
            _kernels.add_subsets(
                c, margin.a, constant, links, *groups, kept, of_sets, int(seeds[i]), effects[i], totals[i]
            )

        in_threads(batch, range(_BATCHES))
        effects, totals = effects / sets, totals / sets
        coef = effects - totals[..., 0, None] / d
        scale = form.coef.reshape(len(form.coef), -1)
        away = totals[..., 1].mean(axis=0)
        # the variance, by its first order in each batch
        square = totals[..., 2] - 2.0 * totals[..., 1] * away + away**2
        return cls(
            _BATCHES * sets,
            totals[..., 1] @ scale,
            square @ scale**2,
            np.swapaxes(coef, 1, 2) @ scale,
            (form.intercept + links @ form.coef).reshape(-1),
        )

    def least_squares(self, design: ExchangeableDesign) -> LeastSquares:
        """Return what a fit to all sets gives, with the errors that the batches show."""
        coef, shift = self.coef.mean(axis=0), self.mean.mean(axis=0)
        gamma = design.gamma(coef)
        gammas = np.stack([design.gamma(each) for each in self.coef])
        explained = (coef * gamma).sum(axis=0)
        variance = np.maximum(self.variance.mean(axis=0), explained)
        total = np.where(variance > 0, variance, 1.0)
        fidelity, _ = r_squared(explained, variance, np.abs(self.whole))
        moved = 2.0 * (self.coef * gamma).sum(axis=1) - fidelity * self.variance
        products = self.coef * gamma + coef * gammas - coef * gamma / total * self.variance[:, None]
        surrogate = self.mean + np.einsum("j,bjk->bk", design.departure, self.coef)
        away = self.coef - coef
        fourth = (away**4).sum(axis=0)
        effective_clusters = np.divide(
            (away**2).sum(axis=0) ** 2, fourth, out=np.full_like(fourth, np.inf), where=fourth > 0
        )
        differ = variance > 0
        return LeastSquares(
            mean=self.whole + shift,
            coef=coef,
            gamma=gamma,
            coef_errors=_errors(self.coef),
            variance=variance,
            surrogate_errors=_errors(surrogate),
            fidelity_errors=_errors(moved) / total,
            share_errors=_errors(products) / total,
            noise=np.maximum((away * (gammas - gamma)).mean(axis=0), 0.0) / _BATCHES,
            n_unlike=np.where(differ, self.sets, 0),
            effective_clusters=np.median(effective_clusters, axis=0),
            effective=np.array(float(self.sets)),
            answers_differ=np.array(bool(differ.any())),
        )


def _errors(estimates: Floats) -> Floats:
    """Errors of the mean of batches (B, ...), widened where few of them carry it."""
    errors = estimates.std(axis=0, ddof=1) / np.sqrt(_BATCHES) * rarity_factors(estimates)
    return np.asarray(errors * student_factors(np.array(_BATCHES - 1)))
