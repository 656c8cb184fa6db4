r"""Expectations of a black box, from few rows of the tilted law.

Rows are drawn from w itself, so that every one counts the same, by four scrambled sequences. On each a
control variate h, fitted to the other three, is subtracted, but for its linear part L:

    β = least squares of f - (h - L) on the features,    L = E_w h + β(h) · (features - E_w features).

h - L has no coefficients, so that it takes nothing away but variance.

Errors come from the residuals, and from how the sequences differ (``residual.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from limes._arrays import Floats, Ints
from limes._streams import fingerprint, streams
from limes.exceptions import InputError, ModelError
from limes.expectations.contributions import Together
from limes.expectations.controls import Fitted
from limes.expectations.moments import Moments, Sampled
from limes.expectations.residual import Fit, Variety
from limes.expectations.sampling import Rows, SampledDesign, Sampling
from limes.expectations.unfinished import SampledRow, Unfinished
from limes.models.calling.caller import Calls

_SEQUENCES = 4
# Rows of all sequences together: at the first look, and at the very least
_FIRST_LOOK = 256
_SMALLEST = 64
# A later, more laborious control must lower the residual variance by so much to be preferred.
_WORTH = 0.95
# Answers larger than this have sums of squares that are no finite numbers.
_LARGEST = 1e150


def least_calls(d: int) -> int:
    """Rows that d coefficients are fitted to at least."""
    return max(_SMALLEST, _SEQUENCES * -(-2 * (d + 1) // _SEQUENCES))


class SampledExpectation:
    """Moments of a function under a design, by at most ``max_calls`` of its rows.

    ``predict`` maps rows (n, d) to (n,) or (n, k).

    Raises
    ------
    InputError
        If the budget is too small for the number of columns.
    """

    method: Literal["sampled"] = "sampled"

    def __init__(self, predict: Callable[[Floats], Floats], sampling: Sampling) -> None:
        self._predict = predict
        self._sampling = sampling
        self._unfinished = Unfinished()

    @property
    def max_calls(self) -> int:
        """Rows that the model may be asked for, per explained row."""
        return self._sampling.max_calls

    def moments(
        self,
        design: SampledDesign,
        row: Floats,
        *,
        heard: Callable[[int], object] | None = None,
        prediction: Floats | None = None,
    ) -> Moments:
        """E_w f and Cov_w(h, f), estimated, with standard errors.

        ``heard`` is called with the number of rows of every batch, ``prediction`` is the model's answer at
        the row itself, () or (k,), if it is known. If this is cut short, the answers so far are kept, and the
        same row goes on from them.
        """
        key = fingerprint(row)
        with self.rows([key]) as rows:
            return self.finished(design, key, rows[key], heard=heard, prediction=prediction)

    def rows(self, keys: Sequence[int]) -> AbstractContextManager[dict[int, SampledRow]]:
        """Rows of one call, by fingerprint, with what earlier calls that were cut short left of them."""
        return self._unfinished.rows(keys, self._calls)

    def finished(
        self,
        design: SampledDesign,
        key: int,
        row: SampledRow,
        *,
        heard: Callable[[int], object] | None = None,
        prediction: Floats | None = None,
    ) -> Moments:
        """Moments of one row of a call; see ``moments``."""
        if row.moments is None:
            if heard is not None:
                row.calls.on_progress = heard
            row.moments = self._until_converged(design, key, row.calls, prediction)
        return row.moments

    def so_far(
        self, design: SampledDesign, key: int, row: SampledRow, *, prediction: Floats | None = None
    ) -> Moments | None:
        """What the calls made for a row allow to say; None where they are too few."""
        if row.moments is not None:
            return row.moments
        samples = list(self._samples(design, key, row.calls.recall))
        if not samples:
            return None
        estimate = self._estimate(design, samples[-1], row.calls, prediction)
        return replace(estimate, converged=np.array(False))

    def _until_converged(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments:
        every = design.states(self._sampling.max_calls)
        if every is not None:
            return _enumerated(design, *every, calls)
        for sample in self._samples(design, key, calls):
            if sample.is_last or self._sampling.tolerance is not None:
                found = self._estimate(design, sample, calls, prediction)
                if found.converged:
                    break
        return found

    def _calls(self) -> Calls:
        return Calls(self._predict, batch_size=self._sampling.batch_size, retry=self._sampling.retry)

    def _samples(
        self, design: SampledDesign, key: int, ask: Callable[[Floats], Floats | None]
    ) -> Iterator[_Sample]:
        """Growing samples, each twice the one before; they end where an answer is missing."""
        sizes = self._sizes(design.size)
        rows = design.sampler(streams(self._sampling.seed, key, _SEQUENCES))
        steps = np.diff(sizes, prepend=0).tolist()
        parts: list[_Sample] = []
        asked = self._asked(rows, steps, ask)
        for (drawn, answers), size, step in zip(asked, sizes, steps, strict=True):
            if answers is None:
                return
            x, h, group = drawn
            fold = np.repeat(np.arange(_SEQUENCES), step)
            # groups of another step have other numbers: there are no more of them than rows
            first = sum(len(part.x) for part in parts)
            parts.append(_Sample(x, h, answers, first + group, fold, is_last=size == sizes[-1]))
            if _SEQUENCES * size >= min(_fewest(design.size), _SEQUENCES * sizes[-1]):
                yield _Sample.joined(parts)

    def _asked(
        self, rows: Rows, steps: list[int], ask: Callable[[Floats], Floats | None]
    ) -> Iterator[tuple[tuple[Floats, Floats, Ints], Floats | None]]:
        """What was drawn, and the answers, step by step."""
        if self._sampling.tolerance is not None:
            for drawn in map(rows.draw, steps):
                yield drawn, ask(drawn[0])
            return
        # all rows will be wanted, and every call of a model has a price of its own
        every = [rows.draw(step) for step in steps]
        whole, first = ask(np.concatenate([x for x, _, _ in every])), 0
        for drawn in every:
            x = drawn[0]
            yield drawn, ask(x) if whole is None else whole[first : first + len(x)]
            first += len(x)

    def _sizes(self, d: int) -> list[int]:
        """Rows of one sequence at each look: doubled from a power of two, and the budget in the end."""
        most = self._sampling.max_calls // _SEQUENCES
        if self._sampling.max_calls < least_calls(d):
            raise InputError(
                f"max_calls={self._sampling.max_calls} is too few to fit {d} coefficients; "
                f"use at least {least_calls(d)}"
            )
        first = 2 ** int(np.log2(min(most, _FIRST_LOOK // _SEQUENCES)))
        doubled = first * 2 ** np.arange(int(np.log2(most / first)) + 1)
        return sorted({*doubled.tolist(), most})

    def _estimate(
        self, design: SampledDesign, sample: _Sample, calls: Calls, prediction: Floats | None
    ) -> Moments:
        f = sample.f.reshape(len(sample.f), -1)
        check_squares(f)
        name, fitted = self._chosen(design, sample, f)
        known = [control.known(design) for control in fitted]
        variety = Variety.of(sample.h, design.variance == 0)
        rest = f.copy()
        for k, (control, its) in enumerate(zip(fitted, known, strict=True)):
            mine = sample.fold == k
            rest[mine] -= control.predict(sample.x[mine]) - its.linear(design, sample.h[mine], variety.used)
        # the controls' simulations are independent, and each counts for its own sequence
        simulated = np.sqrt(np.sum([its.errors**2 for its in known], axis=0)) / len(known)
        fit = Fit.of(
            sample.h,
            design.inclusion,
            rest,
            Together(sample.group, sample.fold),
            answers=f,
            prediction=None if prediction is None else prediction.reshape(-1),
            variety=variety,
            simulated=simulated,
        )
        coef = fit.coef[1:].copy()
        coef[variety.unknown] = np.mean([its.coef[variety.unknown] for its in known], axis=0)
        return self._moments(design, sample, fit, name, fit.coef[0], coef, len(calls))

    def _chosen(self, design: SampledDesign, sample: _Sample, f: Floats) -> tuple[str, list[Fitted]]:
        """The control to be used, fitted without each sequence in turn."""
        controls = self._sampling.controls
        known = sample.fold != 0
        first = {name: fit(design, sample.x[known], f[known]) for name, fit in controls.items()}
        name = next(iter(controls))
        if len(controls) > 1:
            left = {n: _share_left(c, sample.x[~known], f[~known]) for n, c in first.items()}
            for candidate, share in left.items():
                if share < _WORTH * left[name]:
                    name = candidate
        others = range(1, _SEQUENCES)
        rest = [controls[name](design, sample.x[sample.fold != k], f[sample.fold != k]) for k in others]
        return name, [first[name], *rest]

    def _moments(
        self,
        design: SampledDesign,
        sample: _Sample,
        fit: Fit,
        name: str,
        mean: Floats,
        coef: Floats,
        calls: int,
    ) -> Moments:
        shape = sample.f.shape[1:]
        f = sample.f.reshape(len(sample.f), -1)
        wanted = self._sampling.tolerance
        units = design.units[:, None]  # a tolerance is one of coefficients per x itself
        excess = 0.0 if wanted is None else wanted.excess(coef / units, fit.coef_errors / units)
        quality = fit.quality(design, sample.h, coef, f)
        return Moments(
            mean=mean.reshape(shape),
            gamma=design.gamma(coef).reshape(design.size, *shape),
            coef_errors=fit.coef_errors.reshape(design.size, *shape),
            variance=quality.variance.reshape(shape),
            calls=np.array(calls),
            converged=np.array(excess <= 1.0 and fit.answers_differ),
            sampled=Sampled(
                surrogate_errors=quality.surrogate_errors.reshape(shape),
                fidelity_errors=quality.fidelity_errors.reshape(shape),
                share_errors=quality.share_errors.reshape(design.size, *shape),
                excess=np.array(excess),
                control=np.array(name, dtype="U16"),
                unlike=fit.rarity.answers.reshape(shape),
                carriers=fit.carriers.reshape(shape),
            ),
        )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows x and features h (n, d), answers f (n, ...), and the group and the sequence of each row."""

    x: Floats
    h: Floats
    f: Floats
    group: Ints
    fold: Ints
    is_last: bool

    @classmethod
    def joined(cls, parts: list[_Sample]) -> _Sample:
        names = ("x", "h", "f", "group", "fold")
        x, h, f, group, fold = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        return cls(x, h, f, group, fold, parts[-1].is_last)


def _enumerated(
    design: SampledDesign, x: Floats, probability: Floats, weights: Floats, calls: Calls
) -> Moments:
    """Moments from all rows there are: exact for any model."""
    answers = calls(x)
    f = answers.reshape(len(x), -1)
    mean = probability @ f
    spread = f - mean
    gamma = design.gamma(weights @ spread)
    shape = answers.shape[1:]
    exact = Moments.exact(mean.reshape(shape), gamma.reshape(design.size, *shape))
    with np.errstate(over="ignore", invalid="ignore"):
        variance = (probability @ spread**2).reshape(shape)
    known = np.where(np.isfinite(variance), variance, np.nan)
    return replace(exact, variance=known, calls=np.array(len(calls)))


def check_squares(f: Floats) -> None:
    """Refuse answers whose squares, which standard errors are made of, no float64 can hold.

    Raises
    ------
    ModelError
        Naming the largest answer.
    """
    largest = np.abs(f).max(initial=0.0)
    if largest > _LARGEST:
        raise ModelError(
            f"the model's answers reach {largest:.3g}: their squares are beyond a float64, so that "
            "no standard errors can be given; explain the answers divided by a constant, or their logarithm"
        )


def _share_left(control: Fitted, x: Floats, f: Floats) -> float:
    """What part of the variance a control leaves, averaged over outputs that vary."""
    total = f.var(axis=0)
    if not (total > 0).any():
        return 1.0
    left = (f - control.predict(x)).var(axis=0)
    return float((left[total > 0] / total[total > 0]).mean())


def _fewest(d: int) -> int:
    """Rows below which errors of d coefficients are not to be trusted."""
    return max(_FIRST_LOOK, 4 * (d + 1))
