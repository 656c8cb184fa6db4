r"""Expectations of a black box from one pool of answers (``pool.py``), row by row.

The worth of a pool of n rows for an explained row follows from the row's cells, before any prediction: the
variance of β_j is that of n · share_j rows of the row's own w, with p the background's frequencies of the
row's cells,

    share_j = (E π)² / E π² · v_j / E_π²[(z_j - α_j)²],     E π^m = ∏_j (p_j + (1 - p_j) t^m).

Rows with a share of 1/32 or more use the smallest pool that is predicted, and then confirmed, to make their
coefficients accurate enough: sizes that can hardly be enough, judged by the errors at the last size, are
skipped. Other rows, far out or under a narrow bandwidth, draw separate rows of w (``sampled.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._bars import Progress, progress_of
from limes._expectations.controlled import ControlledPool, ControlledPools, Stage
from limes._expectations.crossfit import moments_around
from limes._expectations.explained import ExplainedRows, changed_weight
from limes._expectations.moments import (
    Moments,
    RowMoments,
    SampleStatistics,
    boxed,
    with_complement,
)
from limes._expectations.pool import Pool, pool_sizes
from limes._expectations.sampled import CUT_SHORT, SampledExpectation
from limes._expectations.sampling import CALLS, Sampling, Tolerance
from limes._expectations.weighted import WeightedFits
from limes._threads import Locked, in_threads
from limes.designs._product import ProductDesign, ProductFamily, Rows

# Least share of a pool's rows that must count for an explained row
_LEAST_SHARE = 1 / 32
# Errors of even points fall about as n^(-2/3): if n rows leave c times the tolerated error, about n c^(3/2)
# rows are enough; pools smaller than this share of that are skipped
_RATE, _POWER = 0.75, 1.5
# Largest number of rows that are fitted at once, and of numbers of their normal equations
_BLOCK, _BLOCK_NUMBERS = 32, 1 << 20


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
        self.pool = Pool(family, predict, sampling)
        self._family = family
        self._sampling = sampling
        self.single = SampledExpectation(predict, sampling)
        self._sizes = pool_sizes(len(family.marginals), sampling.max_shared)
        self._pools = ControlledPools(self.pool, family, sampling, self._sizes)
        super().__init__()

    @property
    def ratio(self) -> float:
        """t, the weight of a changed cell."""
        return changed_weight(self._family)

    @property
    def pool_calls(self) -> int:
        """Number of rows that have been predicted for all explained rows."""
        return self.pool.calls

    def fill(self, progress: Progress, *, workers: int = 1) -> None:
        """Predict the rows of the largest pool."""
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
        cells = design.cells[None]
        if not self._serves(cells)[0]:
            return self.single.moments(design, row)
        results: list[Moments | None] = [None]
        error = self._from_pool(cells, None, np.array([0]), results, progress_of(shown=False), 1)
        if error is not None:
            raise error
        (moments,) = results
        assert moments is not None  # noqa: S101 - without an error there are moments
        return moments

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> RowMoments:
        """Features and moments at n rows, from the pool or by separate draws; see :meth:`many`."""
        computed = self.many(rows.cells, rows.x, predictions, progress=progress, workers=workers)
        return RowMoments.of_each(rows.features, *computed)

    def many(
        self,
        cells: Ints,
        rows: Floats,
        predictions: Floats,
        *,
        progress: Progress,
        workers: int = 1,
    ) -> tuple[list[Moments | None], BaseException | None]:
        """Moments at rows (n, d), given their cells, and the error that ended the call early, if any.

        See :meth:`SampledExpectation.many`; ``predictions`` (n, ...) are the model's at the rows.
        ``progress`` makes bars of the calls for the pool, of the rows explained from it, and of the calls for
        the other rows.
        """
        results: list[Moments | None] = [None] * len(cells)
        served = self._serves(cells)
        error = self._from_pool(cells, predictions, np.flatnonzero(served), results, progress, workers)
        others = np.flatnonzero(~served)
        if error is None and others.size:
            moments, error = self.single.many(
                ExplainedRows(self._family, cells[others]).designs(),
                rows[others],
                predictions[others],
                progress=progress,
                workers=workers,
            )
            for i, its in zip(others, moments, strict=True):
                results[i] = its
        return results, error

    def _serves(self, cells: Ints) -> Bools:
        """Return for which rows with these cells (n, d) the pool is used, (n,)."""
        return self.shares(ExplainedRows(self._family, cells)) >= (_LEAST_SHARE if self._sizes else np.inf)

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
        looks: dict[int, _Look] = {}
        error: BaseException | None = None
        try:
            for stage in self._pools.stages:
                wanted = np.inf if stage.size == self._sizes[-1] else stage.size
                pending = [i for i in positions.tolist() if i not in looks or looks[i].wants(wanted)]
                if pending:
                    self._grow(stage.size, progress, workers)
                if pending and self._pools.is_worthwhile(stage):
                    self._look(stage, pending, cells, predictions, looks, progress)
                elif stage.before is not None:
                    looks |= {i: replace(looks[i], is_last=True) for i in pending}
        except CUT_SHORT as cause:
            error = cause
        for i, look in looks.items():
            moments = look.moments.take(look.place)
            if not look.is_last:
                moments = replace(moments, converged=np.array(False), cut_short=np.array(True))
            results[i] = moments
        return error

    def _grow(self, size: int, progress: Progress, workers: int) -> None:
        """Predict the rows that the pool of one size still lacks."""
        if missing := self.pool.missing(size):
            with progress(missing, CALLS) as on_progress:
                self.pool.grow(size, on_progress=on_progress, workers=workers)

    def _look(
        self,
        stage: Stage,
        pending: list[int],
        cells: Ints,
        predictions: Floats | None,
        looks: dict[int, _Look],
        progress: Progress,
    ) -> None:
        """Explain the rows at these positions from the pool of one size, in blocks on all cores.

        Rows with the same result are fitted once.
        """
        pool = self._pools.at(stage)
        same = [i for i in pending if i in looks and looks[i].is_of(stage.size, pool.control)]
        # nothing better than what it has at this size
        looks |= {i: replace(looks[i], stage=stage, is_last=stage == self._pools.stages[-1]) for i in same}
        rest = np.setdiff1d(np.array(pending, dtype=np.int64), same)
        outputs = None if predictions is None else pool.outputs(predictions.reshape(len(cells), -1))
        distinct, alike = _distinct(pool, cells[rest], None if outputs is None else outputs[rest])
        rows_of = np.split(rest[np.argsort(alike, kind="stable")], np.cumsum(np.bincount(alike))[:-1])
        each = min(_BLOCK, max(1, _BLOCK_NUMBERS // (1 + cells.shape[1]) ** 2))
        with progress(len(pending)) as on_progress:
            on_progress(len(same))

            def explain(start: int) -> None:
                block = rest[distinct[start : start + each]]
                its = None if outputs is None else outputs[block]
                fits = self._fit(pool, ExplainedRows(self._family, cells[block]), its)
                moments, is_final = fits.moments(), stage == self._pools.stages[-1]
                with self._lock:
                    for place, rows in enumerate(rows_of[start : start + each]):
                        excess = float(fits.excess[place])
                        is_last = excess <= 1.0 or is_final
                        look = _Look(stage, excess, pool.control, moments, place, is_last)
                        looks.update(dict.fromkeys(rows.tolist(), look))
                        on_progress(len(rows))

            in_threads(explain, range(0, distinct.size, each))

    def _fit(self, pool: ControlledPool, rows: ExplainedRows, outputs: Floats | None) -> _Fits:
        """Fit rows to the pool of one size, given the model's outputs (n, k) there, if there are any."""
        controls = [moments_around(its, rows) for its in pool.expectations]
        fits = WeightedFits.fit(pool.rows, rows, controls, outputs)
        coef = np.mean([its.coef for its in controls], axis=0)
        coef = np.where(fits.normal.used[..., None], fits.coef[:, 1:], coef)
        coef[rows.features.variance == 0] = 0.0
        errors = np.where(fits.normal.unidentified[..., None], np.inf, fits.coef_errors)
        return _Fits(pool, fits, coef, errors, self._sampling.accuracy)


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
class _Fits:
    """Fits of n rows with coefficients and errors of all columns, (n, d, k)."""

    pool: ControlledPool
    fits: WeightedFits
    coef: Floats
    errors: Floats
    wanted: Tolerance

    @cached_property
    def excess(self) -> Floats:
        """The largest error of each row in units of the tolerance, (n,)."""
        excess = self.wanted.excess(self.coef, self.errors)
        # answers that are all alike show no errors: a larger pool may contain others
        return np.where(self.fits.answers_differ, excess, np.maximum(excess, 2.0))

    def moments(self) -> Moments:
        """Moments of the rows."""
        fits, shape, features = self.fits, self.pool.shape, self.fits.normal.rows.features
        quality = fits.quality(self.coef)
        n, d = self.coef.shape[:2]
        each, columns = (n, *shape), (n, d, *shape)
        moments = Moments(
            mean=fits.coef[:, 0].reshape(each),
            gamma=features.gamma(self.coef).reshape(columns),
            coef_errors=self.errors.reshape(columns),
            variance=quality.variance.reshape(each),
            calls=np.zeros(n, dtype=np.int64),
            converged=fits.answers_differ & (self.excess <= 1.0),
            cut_short=np.zeros(n, dtype=np.bool_),
            sampled=SampleStatistics(
                surrogate_errors=quality.surrogate_errors.reshape(each),
                fidelity_errors=quality.fidelity_errors.reshape(each),
                share_errors=quality.share_errors.reshape(columns),
                excess=self.wanted.excess(self.coef, self.errors),
                control=np.full(n, self.pool.control, dtype="U16"),
                noise=quality.noise.reshape(columns),
                unlike=np.broadcast_to(fits.unlike, (n, fits.unlike.size)).reshape(each),
                carriers=fits.carriers.reshape(each),
                effective=fits.normal.effective,
                collinear=np.zeros((n, d), dtype=np.bool_),
                answers=np.array([boxed(np.empty(0))] * n, dtype=object),  # the pool holds them
            ),
            shared=np.full(n, len(self.pool.rows)),
        )
        return with_complement(moments) if self.pool.complement else moments


@dataclass(frozen=True, eq=False)
class _Look:
    """The fit of one row at one stage.

    Attributes
    ----------
    excess
        The largest error in units of the tolerance.
    control
        Name of the control.
    moments, place
        Moments of several rows, and the position of this row among them.
    is_last
        Whether no other stage follows.
    """

    stage: Stage
    excess: float
    control: str
    moments: Moments
    place: int
    is_last: bool

    def wants(self, size: float) -> bool:
        """Return whether to fit again with this larger pool: sizes that can hardly be enough are skipped."""
        return not self.is_last and size >= _RATE * self.stage.size * self.excess**_POWER

    def is_of(self, size: int, control: str) -> bool:
        """Return whether the row was already fitted at this size with this control."""
        return (self.stage.size, self.control) == (size, control)


def sampler(
    family: ProductFamily, predict: Callable[[Floats], Floats], sampling: Sampling
) -> PooledExpectation | SampledExpectation:
    """Return what samples a function: from a pool, where rows can share one."""
    if family.by_cell and sampling.max_shared:
        return PooledExpectation(family, predict, sampling)
    return SampledExpectation(predict, sampling)
