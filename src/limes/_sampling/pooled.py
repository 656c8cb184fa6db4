r"""Expectations of a black box from one pool of answers (``pool.py``), row by row.

The worth of a pool of n rows for an explained row follows from the row's cells, before any prediction: the
variance of β_j is that of n · share_j rows of the row's own w, with p the background's frequencies of the
row's cells,

    share_j = (E π)² / E π² · v_j / E_π²[(z_j - α_j)²],     E π^m = ∏_j (p_j + (1 - p_j) t^m).

Rows with a share of 1/32 or more use the smallest pool that is predicted, and then confirmed, to make their
coefficients accurate enough: sizes that can hardly be enough, judged by the errors at the last size, are
skipped. Other rows, far out or under a narrow bandwidth, draw separate rows of w (``sampled.py``).

Control variates are fitted once a stage of the pool's growth (``crossfit.py``); the one that leaves the least
variance on rows that it has not seen is chosen. Where quick controls leave much variance in the largest pool,
a slower control is fitted to that pool, once, unless the pool is so small that more model calls would take
less time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from limes._arrays import Bools, Floats, Ints, are_complements
from limes._expectations.moments import (
    Moments,
    RowBlocks,
    finished_rows,
)
from limes._sampling.controls import CONTROLS, TooLargeError, too_large
from limes._sampling.controls.control import least_left
from limes._sampling.controls.tables import share_beyond_trees
from limes._sampling.controls.wide import is_wide
from limes._sampling.crossfit import SHARED, CrossFit, PoolControl, SimulatedLaw, in_folds
from limes._sampling.least_squares import check_squares
from limes._sampling.pool import SEQUENCES, SMALLEST, Pool, PoolRows, pool_sizes
from limes._sampling.pool_fit import (
    ExplainedRows,
    PoolSample,
    changed_weight,
    least_squares_of_pool,
)
from limes._sampling.sampled import CALLS, CUT_SHORT, Forecast, SampledExpectation, Sampling
from limes._threads import Progress, SharedState, in_threads, progress_of
from limes.designs._product import ProductDesign, ProductFamily, Rows

# Least share of a pool's rows that must count for an explained row
_LEAST_SHARE = 1 / 32
# Errors of even points fall about as n^(-2/3): if n rows leave c times the tolerated error, about n c^(3/2)
# rows are enough; pools smaller than this share of that are skipped
_RATE, _POWER = 0.75, 1.5
# Largest number of rows that are fitted at once, and of numbers of their normal equations
_BLOCK, _BLOCK_NUMBERS = 32, 1 << 20
# Controls that "auto" tries: quick ones at every size of the pool; the thorough ones, which take about a
# second, only on the largest pool, if that has this many rows and some row still misses its tolerance
_QUICK = ("additive", "margin", "network")
_TREES = "tree"
_THOROUGH = (*_QUICK, _TREES)
# Of wide tables: networks and trees of all their columns take longer than what they leave is worth
_WIDE = ("additive", "margin")
_FEWEST_THOROUGH = 8192
# Columns beyond which rows with their own calls have no control: each of them would fit it, for seconds
_MOST_ALONE = 128
# A control that leaves this multiple of the best one's variance in the smallest pool is not fitted to others
_CLOSE = 1.5
# Thorough controls, which take a second, are fitted if quick ones leave more than this share of the variance
_WORTH_A_SECOND = 0.25


class PooledExpectation(SharedState):
    """Moments of a function under the designs of one background, which differ by their cells alone.

    ``sampling.max_shared`` is the size of the largest pool.
    """

    method: Literal["sampled"] = "sampled"

    def __init__(
        self, family: ProductFamily, predict: Callable[[Floats], Floats], sampling: Sampling
    ) -> None:
        self.pool = Pool(family, predict, sampling)
        self._family, self._sampling = family, sampling
        self.single = SampledExpectation(predict, _alone(family, sampling))
        self._sizes = pool_sizes(len(family.marginals), sampling.max_shared)
        self._pools = ControlledPools(self.pool, family, sampling, self._sizes)
        super().__init__()

    @property
    def ratio(self) -> float:
        return changed_weight(self._family)

    @property
    def pool_calls(self) -> int:
        return self.pool.calls

    def fill(self, progress: Progress, *, workers: int = 1) -> None:
        for size in self._sizes[-1:]:
            self._grow(size, progress, workers)

    def shares(self, rows: ExplainedRows) -> Floats:
        """Share of a pool's rows that count for each explained row, (n,): the least over its columns."""
        columns = zip(self._family.marginals, rows.cells.T, strict=True)
        mass = np.exp([law.log_mass[b] for law, b in columns]).T
        first, second = (mass + (1.0 - mass) * self.ratio**m for m in (1, 2))
        inside, alpha, v = mass / second, rows.features.inclusion, rows.features.variance
        spread = inside * (1.0 - alpha) ** 2 + (1.0 - inside) * alpha**2
        least = np.divide(v, spread, out=np.ones_like(v), where=spread > 0).min(axis=1)
        return np.asarray(np.exp((2.0 * np.log(first) - np.log(second)).sum(axis=1)) * least)

    def moments(self, design: ProductDesign, row: Floats) -> Moments:
        """Moments under one design, equal to those of :meth:`many`."""
        assert design.cells is not None  # noqa: S101 - designs of families by cells have them
        (moments,), error = self.many(design.cells[None], row[None], None, progress=progress_of(shown=False))
        if error is not None:
            raise error
        assert moments is not None  # noqa: S101 - without an error there are moments
        return moments

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> RowBlocks:
        computed = self.many(rows.cells, rows.x, predictions, progress=progress, workers=workers)
        return finished_rows(rows.features, *computed)

    def many(
        self,
        cells: Ints,
        rows: Floats,
        predictions: Floats | None,
        *,
        progress: Progress,
        workers: int = 1,
    ) -> tuple[list[Moments | None], BaseException | None]:
        """Moments at rows (n, d), given their cells, and the error that ended the call early, if any.

        See :meth:`SampledExpectation.many`. ``progress`` makes bars of the calls for the pool, of the rows
        explained from it, and of the calls for the other rows.
        """
        results: list[Moments | None] = [None] * len(cells)
        served = self._serves(cells)
        error = self._from_pool(cells, predictions, np.flatnonzero(served), results, progress, workers)
        others = np.flatnonzero(~served)
        if error is None and others.size:
            moments, error = self.single.many(
                ExplainedRows(self._family, cells[others]).designs(),
                rows[others],
                None if predictions is None else predictions[others],
                progress=progress,
                workers=workers,
            )
            for i, its in zip(others, moments, strict=True):
                results[i] = its
        return results, error

    def _serves(self, cells: Ints) -> Bools:
        if not self._sizes:
            return np.zeros(len(cells), dtype=np.bool_)
        # as many rows of the smallest pool, or of all that a small budget allows
        least = _LEAST_SHARE * max(1.0, SMALLEST / self._sizes[-1])
        return self.shares(ExplainedRows(self._family, cells)) >= least

    def _from_pool(
        self,
        cells: Ints,
        predictions: Floats | None,
        positions: Ints,
        results: list[Moments | None],
        progress: Progress,
        workers: int,
    ) -> BaseException | None:
        """Add the moments of rows at these positions to the results; return the error that ended it early."""
        fits: dict[int, _PoolFit] = {}
        error: BaseException | None = None
        try:
            for stage in self._pools.stages:
                wanted = np.inf if stage.size == self._sizes[-1] else stage.size
                pending = [i for i in positions.tolist() if i not in fits or fits[i].wants(wanted)]
                if pending:
                    self._grow(stage.size, progress, workers)
                if pending and self._pools.is_worthwhile(stage):
                    self._fit_rows(stage, pending, cells, predictions, fits, progress)
                elif stage.before is not None:
                    fits |= {i: replace(fits[i], is_last=True) for i in pending}
        except CUT_SHORT as cause:
            error = cause
        for i, fit in fits.items():
            moments = fit.moments.take(fit.place)
            if not fit.is_last:
                moments = replace(moments, converged=np.array(False), cut_short=np.array(True))
            results[i] = moments
        return error

    def _grow(self, size: int, progress: Progress, workers: int) -> None:
        if missing := self.pool.missing(size):
            with progress(missing, CALLS) as on_progress:
                if not self.pool.calls:
                    on_progress = Forecast(on_progress, self._sizes[-1], rows=workers, workers=workers)
                self.pool.grow(size, on_progress=on_progress, workers=workers)

    def _fit_rows(
        self,
        stage: Stage,
        pending: list[int],
        cells: Ints,
        predictions: Floats | None,
        fits: dict[int, _PoolFit],
        progress: Progress,
    ) -> None:
        """Explain the rows at these positions from the pool of one size, in blocks on all cores.

        Rows with the same result are fitted once.
        """
        pool, is_final = self._pools.at(stage), stage == self._pools.stages[-1]
        # nothing better than what it has at this size
        same = [i for i in pending if i in fits and fits[i].is_of(stage.size, pool.control)]
        fits |= {i: replace(fits[i], stage=stage, is_last=is_final) for i in same}
        rest = np.setdiff1d(np.array(pending, dtype=np.int64), same)
        outputs = None
        if predictions is not None:
            outputs = predictions.reshape(len(cells), -1)[:, 1 if pool.complement else 0 :]
        distinct, alike = _distinct(pool, cells[rest], None if outputs is None else outputs[rest])
        rows_of = np.split(rest[np.argsort(alike, kind="stable")], np.cumsum(np.bincount(alike))[:-1])
        each = min(_BLOCK, max(1, _BLOCK_NUMBERS // (1 + cells.shape[1]) ** 2))
        with progress(len(pending)) as on_progress:
            on_progress(len(same))

            def explain(start: int) -> None:
                block = rest[distinct[start : start + each]]
                explained = ExplainedRows(self._family, cells[block])
                controls = [control.around(explained) for control in pool.fits]
                its = None if outputs is None else outputs[block]
                fit = least_squares_of_pool(pool.rows, explained, controls, its)
                moments = fit.to_moments(
                    pool.shape,
                    self._sampling.accuracy,
                    control=pool.control,
                    shared=len(pool.rows),
                    complement=pool.complement,
                )
                assert moments.sampled is not None  # noqa: S101 - of a sample
                # answers that are all alike show no errors: a larger pool may contain others
                excess = np.where(
                    fit.answers_differ, moments.sampled.excess, np.maximum(moments.sampled.excess, 2.0)
                )
                with self._lock:
                    for place, rows in enumerate(rows_of[start : start + each]):
                        is_last = bool(excess[place] <= 1.0) or is_final
                        one = _PoolFit(stage, pool.control, float(excess[place]), moments, place, is_last)
                        fits.update(dict.fromkeys(rows.tolist(), one))
                        on_progress(len(rows))

            in_threads(explain, range(0, distinct.size, each))


def _distinct(pool: ControlledPool, cells: Ints, outputs: Floats | None) -> tuple[Ints, Ints]:
    """Positions of rows whose fits differ, and for every row the position of its fit among these.

    A fit depends on a row's cells (n, d), and on the range of the answers and the model's outputs there.
    """
    keys = cells.astype(np.float64)
    if outputs is not None:
        keys = np.column_stack([keys, pool.rows.statistics.reach_around(outputs)])
    _, first, alike = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, alike.reshape(-1)


@dataclass(frozen=True, eq=False)
class _PoolFit:
    stage: Stage
    control: str
    excess: float  # the largest error in units of the tolerance
    moments: Moments  # of several rows, of which this one is at `place`
    place: int
    is_last: bool  # whether no other stage follows

    def wants(self, size: float) -> bool:
        """Return whether to fit again with this larger pool: sizes that can hardly be enough are skipped."""
        return not self.is_last and size >= _RATE * self.stage.size * self.excess**_POWER

    def is_of(self, size: int, control: str) -> bool:
        return (self.stage.size, self.control) == (size, control)


def sampler(
    family: ProductFamily, predict: Callable[[Floats], Floats], sampling: Sampling
) -> PooledExpectation | SampledExpectation:
    """Return a pool, where rows can share one."""
    if family.by_cell and sampling.max_shared:
        return PooledExpectation(family, predict, sampling)
    return SampledExpectation(predict, _alone(family, sampling))


def _alone(family: ProductFamily, sampling: Sampling) -> Sampling:
    """Options of rows with their own calls."""
    if len(sampling.controls) == 1 or len(family.marginals) <= _MOST_ALONE:
        return sampling
    return replace(sampling, controls={"none": CONTROLS["none"]})


# -- stages and their controls -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """A pool of one size, and the names of the controls that are tried on it."""

    size: int
    controls: tuple[str, ...]
    # The preceding stage, if this one runs only where that one left more than a quarter of the variance
    before: Stage | None = None


def _stages(sizes: Sequence[int], available: Collection[str], family: ProductFamily) -> list[Stage]:
    """Stages in their order: growing pools with quick controls, at last thorough ones."""
    if len(available) == 1:
        return [Stage(size, tuple(available)) for size in sizes]
    quick, thorough, of_wide = (
        tuple(n for n in names if n in available) for names in (_QUICK, _THOROUGH, _WIDE)
    )
    wide = {size: is_wide(family.marginals, size) for size in sizes}
    growing = [Stage(size, of_wide if wide[size] else quick) for size in sizes]
    largest = [stage for stage in growing[-1:] if stage.size >= _FEWEST_THOROUGH and not wide[stage.size]]
    return [*growing, *(Stage(stage.size, thorough, before=stage) for stage in largest)]


@dataclass(frozen=True, eq=False)
class ControlledPool:
    """Rows of a pool, sequence by sequence, with a control variate."""

    rows: PoolSample
    shape: tuple[int, ...]  # of one computed answer, () or (k,)
    # Whether answers are two probabilities, of which only the second is computed: the first is 1 less it
    complement: bool
    control: str
    shares: Mapping[str, float]  # of the answers' variance that each of the tried controls leaves
    fits: Sequence[PoolControl]  # of the control, one for each equal part of the rows


class ControlledPools(SharedState):
    """A pool with the control of each stage, which is fitted once."""

    def __init__(self, pool: Pool, family: ProductFamily, sampling: Sampling, sizes: Sequence[int]) -> None:
        self.stages = _stages(sizes, sampling.controls, family)
        self._pool = pool
        self._law = SimulatedLaw(family, sampling.seed)
        self._controls = sampling.controls
        self._pools: dict[Stage, ControlledPool] = {}
        self._fits: dict[tuple[int, str], CrossFit] = {}
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        # not pickled: controls fitted again to the same answers give the same result
        return {**super().__getstate__(), "_pools": {}, "_fits": {}}

    def at(self, stage: Stage) -> ControlledPool:
        """Return the pool, grown to the size of a stage, with the stage's control."""
        with self._lock:
            if stage not in self._pools:
                self._pools[stage] = self._controlled(stage)
            return self._pools[stage]

    def is_worthwhile(self, stage: Stage) -> bool:
        """Return whether a stage's controls suit its pool, by the variance that quick ones leave.

        On the largest pool either quick or thorough controls are tried, never both.
        """
        quick = self.stages[-1].before
        if quick is None or stage.size < quick.size:
            return True
        pool = self.at(quick)
        return (pool.shares[pool.control] > _WORTH_A_SECOND) == (stage != quick)

    def _controlled(self, stage: Stage) -> ControlledPool:
        rows = self._pool.rows(stage.size)
        f = rows.answers.reshape(len(rows.answers), -1)
        check_squares(f)
        shape, complement = rows.answers.shape[1:], are_complements(f)
        if complement:
            f, shape = np.ascontiguousarray(f[:, 1:]), (1,)
        fits, names = {}, self._candidates(stage, f)
        for name in names:
            with suppress(TooLargeError):
                fits[name] = self._fit(name, stage.size, rows, f)
        if len(fits) < len(names):
            if "none" not in self._controls:
                raise too_large(self._controls, rows.x.shape[1])
            fits = {"none": self._fit("none", stage.size, rows, f), **fits}
        shares = {name: fit.share(f) for name, fit in fits.items()}
        name = least_left(shares)
        fit = fits[name]
        sample = PoolSample(np.ascontiguousarray(rows.cells.T), f, f - fit.values, SEQUENCES)
        return ControlledPool(sample, shape, complement, name, shares, fit.fits)

    def _fit(self, name: str, size: int, rows: PoolRows, f: Floats) -> CrossFit:
        if (size, name) not in self._fits:
            fitting = SHARED.get(name) or in_folds(self._controls[name])
            self._fits[size, name] = fitting(self._law, rows, f)
        return self._fits[size, name]

    def _candidates(self, stage: Stage, f: Floats) -> list[str]:
        """Controls of a stage, but for those that left much more than the best in the smallest pool.

        Nor trees, where the few directions of many outputs f (n, k) that they fit leave more.
        """
        if stage == self.stages[0]:
            return list(stage.controls)
        shares = self._pools[self.stages[0]].shares  # every row begins at the first stage
        most = _CLOSE * min(shares.values())
        names = [name for name in stage.controls if shares.get(name, most) <= most]
        quick = None if stage.before is None else self._pools.get(stage.before)
        if quick is not None:
            best = min(quick.shares.values())
            names = [name for name in names if name != _TREES or share_beyond_trees(f) < best]
        return names
