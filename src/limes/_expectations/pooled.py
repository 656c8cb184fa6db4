r"""Expectations of a black box from one pool of answers (``pool.py``), row by row.

What a pool of n rows is worth to an explained row is known from its cells before the model is asked: the
variance of β_j is that of n · share_j rows of the row's own w, with p the background's frequencies of the
row's cells,

    share_j = (E π)² / E π² · v_j / E_π²[(z_j - α_j)²],     E π^m = ∏_j (p_j + (1 - p_j) t^m).

Rows with a share of 1/32 or more take the smallest pool at which their coefficients are as accurate as
wanted; the others, far out or under a narrow bandwidth, draw their own rows of w (``sampled.py``).

The control variate h is fitted once a pool (``crossfit.py``), and chosen by what it leaves of rows that it
has not seen. Rows that the largest pool does not serve accurately enough get a more laborious control, fitted
once to it, unless that takes longer than asking for such a small pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from limes._arrays import Bools, Floats
from limes._expectations.crossfit import SHARED, ControlExpectation, CrossFit, best_fit, in_folds
from limes._expectations.estimate import check_squares
from limes._expectations.indicators import CellCodes
from limes._expectations.moments import (
    Moments,
    SampleStatistics,
    are_complements,
    boxed,
    with_complement,
)
from limes._expectations.pool import SEQUENCES, SMALLEST, Pool
from limes._expectations.rule_of_three import AnswerStatistics
from limes._expectations.sampled import CUT_SHORT, SampledExpectation
from limes._expectations.sampling import CALLS, Progress, Sampling, Tolerance
from limes._expectations.weighted import WeightedFit, WeightedPool
from limes._threads import Locked
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._weights import BinWeights

# Accuracy that is wanted where the user names none: a share of the largest coefficient
DEFAULT_TOLERANCE = Tolerance(0.01, relative=True)
# Least share of a pool's rows that must count for an explained row
_LEAST_SHARE = 1 / 32
# Errors of even points fall about as 1 / n: after a pool of n rows, whose error is c times what is wanted,
# the next has this many times n c rows
_RATE = 0.75
# Controls that "auto" tries: at any size those whose cost is worth it for one row; where the largest pool
# leaves a row less accurate than wanted, those that take a second, once, if it has this many rows
_QUICK = ("additive", "margin", "network")
_THOROUGH = ("additive", "margin", "network", "tree")
_FEWEST_THOROUGH = 8192
# Share of the answers' variance that quick controls must leave for these to be worth their second
_WORTH_A_SECOND = 0.25


class PooledExpectation(Locked):
    """Moments of a function under the designs of one background, which differ by their cells alone.

    ``sampling.max_shared`` is the size of the largest pool.
    """

    method: Literal["sampled"] = "sampled"

    def __init__(
        self,
        family: ProductFamily,
        predict: Callable[[Floats], Floats],
        sampling: Sampling,
    ) -> None:
        assert isinstance(family.weights, BinWeights)  # noqa: S101 - of all families that are by_cell
        self.pool = Pool(
            family, predict, seed=sampling.seed, batch_size=sampling.batch_size, retry=sampling.retry
        )
        self._family = family
        self._weights = family.weights
        self._sampling = sampling
        self.single = SampledExpectation(predict, sampling)
        self._sizes = pool_sizes(len(family.marginals), sampling.max_shared)
        self._samples: dict[_Stage, _ControlledPool] = {}
        self._fits: dict[tuple[int, str], CrossFit] = {}
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        # controls are fitted again: to the same answers, with the same result
        return {**super().__getstate__(), "_samples": {}, "_fits": {}}

    @property
    def ratio(self) -> float:
        """t, the weight of a changed cell."""
        return self._weights.ratio

    @property
    def pool_calls(self) -> int:
        """Number of rows that have been answered for all explained rows."""
        return self.pool.calls

    def fill(self, progress: Progress, *, workers: int = 1) -> None:
        """Ask the model for the largest pool."""
        for size in self._sizes[-1:]:
            with progress(self.pool.missing(size), CALLS) as on_progress:
                self.pool.grow(size, on_progress=on_progress, workers=workers)

    def shares(self, designs: Sequence[ProductDesign]) -> Floats:
        """Share of a pool's rows that count for each design, (n,): the least over its columns."""
        ratio, marginals = self._weights.ratio, self._family.marginals
        cells = np.stack([design.cells for design in designs if design.cells is not None], axis=1)
        mass = np.exp([law.log_mass[b] for law, b in zip(marginals, cells, strict=True)]).T
        first, second = (mass + (1.0 - mass) * ratio**m for m in (1, 2))
        inside = mass / second
        alpha = np.stack([design.inclusion for design in designs])
        v = np.stack([design.variance for design in designs])
        spread = inside * (1.0 - alpha) ** 2 + (1.0 - inside) * alpha**2
        columns = np.divide(v, spread, out=np.ones_like(v), where=spread > 0)
        return np.asarray(np.exp((2.0 * np.log(first) - np.log(second)).sum(axis=1)) * columns.min(axis=1))

    def moments(self, design: ProductDesign, row: Floats) -> Moments:
        """Moments under one design, as :meth:`many` has them for many."""
        if not self._serves([design])[0]:
            return self.single.moments(design, row)
        results: list[Moments | None] = [None]
        error = self._from_pool([design], [None], [0], results, _silent, 1)
        if error is not None:
            raise error
        (moments,) = results
        assert moments is not None  # noqa: S101 - without an error there are moments
        return moments

    def many(
        self,
        designs: Sequence[ProductDesign],
        rows: Floats,
        predictions: Floats,
        *,
        progress: Progress,
        workers: int = 1,
    ) -> tuple[list[Moments | None], BaseException | None]:
        """Moments at rows (n, d), each with its design, and the error that ended the call early if one did.

        As :meth:`SampledExpectation.many`; ``progress`` makes a bar of the calls of the model, of the rows
        that the pool serves, and of the calls for the others, one after the other.
        """
        results: list[Moments | None] = [None] * len(designs)
        served = self._serves(designs)
        error = self._from_pool(
            designs, predictions, np.flatnonzero(served).tolist(), results, progress, workers
        )
        others = np.flatnonzero(~served).tolist()
        if error is None and others:
            moments, error = self.single.many(
                [designs[i] for i in others],
                rows[others],
                predictions[others],
                progress=progress,
                workers=workers,
            )
            for i, its in zip(others, moments, strict=True):
                results[i] = its
        return results, error

    def _serves(self, designs: Sequence[ProductDesign]) -> Bools:
        """Tell which designs (n,) the pool serves."""
        return self.shares(designs) >= (_LEAST_SHARE if self._sizes else np.inf)

    def _from_pool(
        self,
        designs: Sequence[ProductDesign],
        predictions: Floats | Sequence[None],
        positions: list[int],
        results: list[Moments | None],
        progress: Progress,
        workers: int,
    ) -> BaseException | None:
        """Put the moments of the rows at these positions among the results; return what ended it early."""
        looks: dict[int, _Look] = {}
        error: BaseException | None = None
        try:
            for stage in self._stages:
                wanted = np.inf if stage.size == self._sizes[-1] else stage.size
                pending = [i for i in positions if i not in looks or looks[i].wants(wanted)]
                if pending and self._is_worthwhile(stage):
                    self._look(stage, pending, designs, predictions, looks, progress, workers)
                elif pending:
                    looks |= {i: replace(looks[i], is_last=True) for i in pending}
        except CUT_SHORT as cause:
            error = cause
        for i, look in looks.items():
            results[i] = look.moments
            if not look.is_last:  # cut short: as far as it got
                fit = self._fit(self._sample(look.stage), designs[i], predictions[i])
                results[i] = replace(fit.moments(self._sampling.tolerance), converged=np.array(False))
        return error

    @cached_property
    def _stages(self) -> list[_Stage]:
        """Stages in their order: growing pools with quick controls, the largest with thorough ones."""
        available = self._sampling.controls
        if len(available) == 1:
            return [_Stage(size, tuple(available)) for size in self._sizes]
        quick, thorough = (tuple(n for n in names if n in available) for names in (_QUICK, _THOROUGH))
        stages = [_Stage(size, quick) for size in self._sizes]
        largest = [size for size in self._sizes[-1:] if size >= _FEWEST_THOROUGH]
        return [*stages, *(_Stage(size, thorough) for size in largest)]

    def _is_worthwhile(self, stage: _Stage) -> bool:
        """Whether thorough controls are worth trying, by what quick ones left of the same pool."""
        quick = next((its for its in self._stages if its.size == stage.size), stage)
        if quick == stage:
            return True
        sample = self._sample(quick)
        return self._fits[quick.size, sample.control].share(sample.answers) > _WORTH_A_SECOND

    def _look(
        self,
        stage: _Stage,
        pending: list[int],
        designs: Sequence[ProductDesign],
        predictions: Floats | Sequence[None],
        looks: dict[int, _Look],
        progress: Progress,
        workers: int,
    ) -> None:
        """Explain the rows at these positions from the pool of one size."""
        if missing := self.pool.missing(stage.size):
            with progress(missing, CALLS) as on_progress:
                self.pool.grow(stage.size, on_progress=on_progress, workers=workers)
        sample, largest = self._sample(stage), stage.size == self._sizes[-1]
        with progress(len(pending)) as on_progress:
            for i in pending:
                if i in looks and looks[i].moments is not None and looks[i].control == sample.control:
                    looks[i] = replace(looks[i], is_last=True)  # nothing better than what it has
                else:
                    fit = self._fit(sample, designs[i], predictions[i])
                    is_last = fit.excess <= 1.0 or stage == self._stages[-1]
                    moments = fit.moments(self._sampling.tolerance) if is_last or largest else None
                    looks[i] = _Look(stage, fit.excess, sample.control, moments, is_last)
                on_progress(1)

    def _sample(self, stage: _Stage) -> _ControlledPool:
        """Return the pool of a stage with its control, fitted once."""
        with self._lock:
            if stage not in self._samples:
                self._samples[stage] = self._controlled(stage)
            return self._samples[stage]

    def _controlled(self, stage: _Stage) -> _ControlledPool:
        """Choose the control of a stage by what its fits leave of rows that they have not seen."""
        rows = self.pool.rows(stage.size)
        f = rows.answers.reshape(len(rows.answers), -1)
        check_squares(f)
        shape, complement = rows.answers.shape[1:], are_complements(f)
        if complement:
            f, shape = np.ascontiguousarray(f[:, 1:]), (1,)
        for name in stage.controls:
            if (key := (stage.size, name)) not in self._fits:
                fitting = SHARED.get(name) or in_folds(self._sampling.controls[name])
                self._fits[key] = fitting(self._family, self._sampling.seed, rows, f)
        fits = {name: self._fits[stage.size, name] for name in stage.controls}
        name = best_fit(fits, f)
        fit = fits[name]
        return _ControlledPool(rows.cells, f, f - fit.values, shape, complement, name, fit.expectations)

    def _fit(self, sample: _ControlledPool, design: ProductDesign, prediction: Floats | None) -> _RowFit:
        """Fit one row to the pool of one size."""
        controls = [its.moments(design) for its in sample.expectations]
        rows = WeightedPool.of(
            design,
            self._weights.ratio,
            sample.cells,
            sample.answers,
            sample.residuals,
            sample.statistics,
            controls,
            SEQUENCES,
        )
        fit = WeightedFit.fit(rows, sample.outputs(prediction))
        coef = np.mean([its.coef for its in controls], axis=0)
        coef[rows.used] = fit.coef[1:]
        coef[design.variance == 0] = 0.0
        errors = np.where(rows.unidentified, np.inf, 0.0)[:, None] * np.ones(coef.shape[1])
        errors[rows.used] = fit.coef_errors
        excess = (self._sampling.tolerance or DEFAULT_TOLERANCE).excess(coef, errors)
        # answers that are all alike have no errors to be measured: a larger pool may tell more
        return _RowFit(sample, fit, coef, errors, excess if fit.answers_differ else max(excess, 2.0))


@dataclass(frozen=True, eq=False)
class _RowFit:
    """A fit of one row with coefficients and errors of all columns, (d, k).

    ``excess`` is the largest error in units of what is wanted.
    """

    sample: _ControlledPool
    fit: WeightedFit
    coef: Floats
    errors: Floats
    excess: float

    def moments(self, tolerance: Tolerance | None) -> Moments:
        """Moments of the row; without a tolerance of the user's they count as converged."""
        fit, shape, design = self.fit, self.sample.shape, self.fit.rows.design
        quality = fit.quality(self.coef)
        columns = (design.size, *shape)
        moments = Moments(
            mean=fit.coef[0].reshape(shape),
            gamma=design.gamma(self.coef).reshape(columns),
            coef_errors=self.errors.reshape(columns),
            variance=quality.variance.reshape(shape),
            converged=np.array((tolerance is None or self.excess <= 1.0) and fit.answers_differ),
            sampled=SampleStatistics(
                surrogate_errors=quality.surrogate_errors.reshape(shape),
                fidelity_errors=quality.fidelity_errors.reshape(shape),
                share_errors=quality.share_errors.reshape(columns),
                excess=np.array(0.0 if tolerance is None else tolerance.excess(self.coef, self.errors)),
                control=np.array(self.sample.control, dtype="U16"),
                unlike=fit.rare.n_unlike.reshape(shape),
                carriers=fit.carriers.reshape(shape),
                effective=np.array(fit.rows.effective),
                collinear=np.zeros(design.size, dtype=np.bool_),
                answers=boxed(np.empty(0)),  # the pool has them
            ),
            shared=np.array(len(self.sample.answers)),
        )
        return with_complement(moments) if self.sample.complement else moments


@dataclass(frozen=True)
class _Stage:
    """A pool of one size, and the names of the controls that are tried on it."""

    size: int
    controls: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Look:
    """What came of one row at one stage.

    Attributes
    ----------
    excess
        The largest error in units of what is wanted.
    control
        The control's name.
    moments
        None at a pool that grows.
    is_last
        Whether no other stage follows.
    """

    stage: _Stage
    excess: float
    control: str
    moments: Moments | None
    is_last: bool

    def wants(self, size: float) -> bool:
        """Whether to look at a larger pool: sizes that can hardly be enough are passed over."""
        return not self.is_last and size >= _RATE * self.stage.size * self.excess


@dataclass(frozen=True, eq=False)
class _ControlledPool:
    """Rows of a pool, sequence by sequence, with a control variate.

    Of two probabilities the second alone is computed: the first is 1 less that.

    Attributes
    ----------
    cells, answers, residuals
        (n, d); f (n, k); f - h, (n, k), where h was fitted to other sequences.
    shape
        Of one answer that is computed, () or (k,).
    complement
        Whether answers are two probabilities.
    control
        Its name.
    expectations
        Of its fits, one for each equal part of the rows.
    """

    cells: CellCodes
    answers: Floats
    residuals: Floats
    shape: tuple[int, ...]
    complement: bool
    control: str
    expectations: Sequence[ControlExpectation]

    @cached_property
    def statistics(self) -> AnswerStatistics:
        """What the answers alone say about rare ones."""
        return AnswerStatistics.from_rows(self.answers)

    def outputs(self, prediction: Floats | None) -> Floats | None:
        """Return the computed outputs (k,) of a prediction."""
        if prediction is None:
            return None
        return prediction.reshape(-1)[1:] if self.complement else prediction.reshape(-1)


def _silent(total: int, unit: str = "rows", /) -> nullcontext[Callable[[int], object]]:  # noqa: ARG001 - one signature
    return nullcontext(lambda count: None)  # noqa: ARG005 - one signature


def pool_sizes(d: int, most: int) -> list[int]:
    """Sizes of the pools that d coefficients can be fitted to, with at most ``most`` rows: powers of two."""
    first = max(SMALLEST, 1 << (4 * (d + 1) - 1).bit_length())
    return [first << i for i in range(most.bit_length()) if first << i <= most]
