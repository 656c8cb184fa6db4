r"""Contributions of features that are kept or removed: Shapley values of the game v(S) = f(S kept).

φ_j is the mean over all orders of what feature j adds to the features before it, whose number is uniform:

    φ_j = (1/d) Σ_r (E[f | z_j = 1, r + 1 kept] - E[f | z_j = 0, r kept]),    f(none) + Σ_j φ_j = f(all).

These are the β of other weights of the strata (``designs/_exchangeable.py``),

    between_s = 1/d where all are kept, -1/d where none is, else 0,        within_s = d / (r s), r = d - s,

so that contributions are exact wherever coefficients are, by the same expectations.

Other models are sampled. These weights are also those of the law p_s ∝ 1 / (r s), 0 < s < d, if its slope
along (1, ..., 1) is replaced by (f(all) - f(none)) / d: least squares with KernelSHAP's weights (Lundberg &
Lee 2017). They are computed as LIME's coefficients are, with control variates, errors and tolerance
(``sampled.py``). At equal calls the error was a tenth to nine tenths of that of random orders with their
reverses. Sets of one feature, and of all but one, have the most weight, and are asked one by one: they are
also what each feature adds alone and last. With A_j and L_j for these, and β of the law on 1 < s < d - 1,

    φ_j = (f(all) - f(none)) / d + (A_j + L_j - mean) / (d - 1) + (d - 3) / (d - 1) · (β_j - mean).

A model that is no function has no exact answers: its sets of one feature are drawn as any others. So are
those of a model that may be asked less often than there are such sets.

*One sample for coefficients and contributions.* Both are weighted fits of answers to sets that are uniform
given their size. Where a model is asked for both, sizes are drawn from the mean q of both laws, and each fit
weighs a set of s by p_s / q_s, which is at most 2: neither has a larger variance than from half as many sets
by itself, and mostly a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats
from limes._expectations.moments import ExactMoments
from limes._sampling.least_squares import student_factors
from limes._sampling.sampled import FEWEST, SampledExpectation, errors_of_means, least_calls
from limes._shapley.exact import RowContributions
from limes.designs._exchangeable import Coalitions, Counts, ExchangeableDesign
from limes.exceptions import ModelError
from limes.models._calling.caller import Calls
from limes.models._calling.counts import AnswerCount
from limes.models._identity import Predict
from limes.models.forms._base import Form
from limes.models.forms._linked import Linked
from limes.models.forms._presence import NormalizedLinear

# Distance from the prediction of what must add up to it, as a share of the numbers that are added
_TOTAL = 1e-9
# How often a model that is no function is asked about all features, and about none: a share of few calls
_REPETITIONS, _LEAST_REPETITIONS, _REPEATED = 16, 2, 1 / 6
# Most of the calls that single features have, where coefficients rest on the others
_SINGLE_SHARE = 1 / 4
# Of one core for pairs of words, with the 29,000 products of a link of normalised ones
_SECONDS = 2e-5
# Numbers of the sets that are asked about together
_BLOCK = 1 << 22


def exact_account(expectation: ExactMoments, predict: Predict, d: int) -> RowContributions:
    """Contributions by the exact expectation of a form; a ModelError where they miss its prediction."""
    design = ExchangeableDesign(Coalitions.of(d))
    values = design.solve(expectation.moments(design).gamma).reshape(d, -1)
    base, prediction = predict(np.stack([np.zeros(d), np.ones(d)])).reshape(2, -1)
    missed = np.abs(base + values.sum(axis=0) - prediction)
    if not (missed <= _TOTAL * (np.abs(base) + np.abs(values).sum(axis=0))).all():
        raise ModelError(f"contributions miss the prediction by {missed.max():.1g}")
    alone, last = _of_one(predict, d, 1.0) - base, prediction - _of_one(predict, d, 0.0)
    return RowContributions.exact(base[None], values[None], alone[None], last[None])


def account_of_states(answers: Floats, prediction: Floats, d: int) -> RowContributions:
    """Contributions by R answers (R, 2^d, k) to every set of features."""
    count, means = len(answers), answers.mean(axis=0)
    states = ExchangeableDesign(Coalitions.of(d)).states(len(means))
    assert states is not None  # noqa: S101 - there are as many answers
    weights, errors = states[2], np.zeros((d, prediction.size))
    if count > 1:
        errors = errors_of_means(weights, answers, answers.var(axis=0, ddof=1) / count)
    # less one of them, so that features of a constant add 0 and no rounding
    values, single = weights @ (means - means[0]), 1 << np.arange(d)
    alone, last = means[single] - means[0], means[-1] - means[-1 - single]
    of_base = _base_errors(answers[:, 0], answers[:, -1]) if count > 1 else np.zeros(prediction.size)
    return account_from(prediction, values, errors, alone, last, of_base, calls=0)


class SubsetCalls(NamedTuple):
    """How calls are spent on contributions of ``size`` features, and on coefficients from the same sets."""

    size: int
    sets: int  # that are drawn
    none: int  # how often the empty set is asked about
    whole: int  # and all features, beside the prediction
    alone: bool  # whether features are asked about by themselves, and all others without them

    @classmethod
    def split(
        cls, calls: int, d: int, *, is_function: bool, share: float = 0.0, shared: bool = False
    ) -> SubsetCalls | None:
        """Leave to drawn sets what single ones do not need; None if the calls are too few.

        Of random answers a ``share`` of the calls, and a few at least, is for the empty set. Where sets are
        ``shared`` with coefficients, single features have a quarter of the calls at most.
        """
        whole = 0 if is_function else repetitions_of(calls)
        none = 1 if is_function else max(whole, int(share * calls))
        ends = none + whole
        alone = 2 * d <= _SINGLE_SHARE * calls if shared else calls >= 2 * d + ends + least_calls(d)
        sets = calls - ends - (2 * d if alone else 0)
        return cls(d, sets, none, whole, alone) if sets >= FEWEST else None

    @staticmethod
    def least(*, is_function: bool) -> int:
        """The fewest calls that can be split."""
        return FEWEST + (1 if is_function else 2 * _LEAST_REPETITIONS)


@dataclass(frozen=True, eq=False)
class SampledAccount:
    """Contributions of d features by a sample; what was answered is kept if it is cut short.

    ``calls`` asks about all features and about none, and about those that are ``alone`` or left out by
    themselves; ``expectation`` about sets that it draws: of ``design``.
    """

    expectation: SampledExpectation
    design: ExchangeableDesign
    calls: Calls
    prediction: Floats  # (k,)
    alone: bool
    is_function: bool
    asks: bool  # the model, and no form, whose calls are not counted
    times: tuple[int, int]  # how often the empty set is asked about, and all features
    tally: AnswerCount = field(default_factory=AnswerCount)

    @classmethod
    def of(
        cls,
        sampler: Callable[[ExchangeableDesign, int], SampledExpectation],
        calls: Calls,
        prediction: Floats,
        spent: SubsetCalls,
        *,
        is_function: bool,
        asks: bool,
    ) -> SampledAccount:
        """The account by calls that are ``spent`` so; ``sampler`` draws sets that are not of one feature."""
        design = coalitions(spent.size, alone=spent.alone and is_function)
        sampled = sampler(design, spent.sets)
        return cls(
            sampled, design, calls, prediction, spent.alone, is_function, asks, (spent.none, spent.whole)
        )

    def compute(self) -> RowContributions:
        # what was asked before it was cut short counts as well
        with self.tally.counting():
            return self._computed()

    def _computed(self) -> RowContributions:
        design, ask = self.design, self.calls.one_pass(self.calls)
        d = design.size
        moments = self.expectation.moments(design, design.at_instance, prediction=self.prediction)
        none, whole = ends_of(ask, self.prediction, d, self.times)
        base, top = none.mean(axis=0), whole.mean(axis=0)
        drawn, errors = (
            numbers.reshape(d, -1) for numbers in (design.solve(moments.gamma), moments.coef_errors)
        )
        alone = last = np.full(drawn.shape, np.nan)
        if self.alone:
            alone, last = _of_one(ask, d, 1.0) - base, top - _of_one(ask, d, 0.0)
        if self.alone and self.is_function:
            drawn, errors = (alone + last + (d - 3.0) * drawn) / (d - 1.0), (d - 3.0) / (d - 1.0) * errors
        of_base = np.zeros(base.size)
        if not self.is_function:
            errors, of_base = with_noise(errors, none, whole)
        values = (top - base) / d + drawn - drawn.mean(axis=0)
        spent = self.tally.rows if self.asks else 0
        return account_from(self.prediction, values, errors, alone, last, of_base, calls=spent)


def repetitions_of(calls: int) -> int:
    """How often a model that is no function is asked about all features."""
    return min(_REPETITIONS, max(_LEAST_REPETITIONS, int(_REPEATED * calls)))


def ends_of(ask: Predict, prediction: Floats, d: int, times: tuple[int, int]) -> tuple[Floats, Floats]:
    """Answers to no feature and to all, (n, k) each, by ``times`` they are asked for: 0 is the prediction."""
    none, whole = (
        ask(np.full((n, d), shown)).reshape(n, -1) if n else None
        for n, shown in zip(times, (0.0, 1.0), strict=True)
    )
    assert none is not None  # noqa: S101 - at least once
    return none, prediction[None] if whole is None else whole


def with_noise(errors: Floats, none: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Errors (d, k) of contributions to the mean of random answers, and those of the base."""
    noise = sum(answers.var(axis=0, ddof=1) / len(answers) for answers in (none, whole))
    # few answers say little of their variance
    factor = student_factors(np.array(min(len(none), len(whole)) - 1))
    return np.sqrt(errors**2 + factor**2 * noise / len(errors) ** 2), _base_errors(none, whole)


def _base_errors(none: Floats, whole: Floats) -> Floats:
    """Errors (k,) of the prediction, one random answer, less the means' difference of all and none shown."""
    of_none, of_whole = (answers.var(axis=0, ddof=1) for answers in (none, whole))
    factor = student_factors(np.array(min(len(none), len(whole)) - 1))
    return np.asarray(factor * np.sqrt(of_none / len(none) + of_whole / len(whole) + of_whole))


def account_from(
    prediction: Floats,
    values: Floats,
    errors: Floats,
    alone: Floats,
    last: Floats,
    base_errors: Floats,
    *,
    calls: int,
) -> RowContributions:
    """Contributions of one input, from arrays (d, k), with what they are added to."""
    base = prediction - values.sum(axis=0)
    numbers = (base, values, errors, alone, last, calls, base_errors)
    return RowContributions(*(np.asarray(number)[None] for number in numbers))


def seconds(form: Form | None, d: int) -> float:
    """About the seconds that exact contributions take: next to none but for links of normalised words."""
    slow = isinstance(form, Linked) and isinstance(form.margin, NormalizedLinear)
    return _SECONDS * d**2 if slow else 0.0


def coalitions(d: int, *, alone: bool) -> ExchangeableDesign:
    """The law p_s ∝ 1 / (r s) of sets; without those of one feature, or all but one, if asked ``alone``."""
    least = 2 if alone else 1
    removed = np.arange(d + 1.0)
    pairs = np.where(np.minimum(removed, d - removed) >= least, removed * (d - removed), np.inf)
    return ExchangeableDesign(Counts.tilted(-np.log(pairs), np.inf))


def _of_one(predict: Predict, d: int, value: float) -> Floats:
    """Answers (d, k) to the sets that differ in one feature: it alone has this value."""
    step = max(1, _BLOCK // d)
    answers = []
    for first in range(0, d, step):
        places = np.arange(first, min(d, first + step))
        z = np.full((places.size, d), 1.0 - value)
        z[places - first, places] = value
        answers.append(predict(z).reshape(places.size, -1))
    return np.concatenate(answers)
