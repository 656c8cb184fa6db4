r"""Moments under the joint law: weighted least squares on the background's rows, predicted once for all.

With w_i ∝ t^#changed around an explained row (``designs/_joint.py``) and e = f - E_w f - β · (z - α),

    β = Σ⁺ Σ_i w_i (z_i - α) (f_i - E_w f),      C_i = w_i Σ⁺ (z_i - α) e_i / √(1 - leverage_i).

The coefficients are exact for these rows. Their standard errors refer to the population that the rows are a
sample of: Σ_i C_i² is the sandwich estimator of a regression with random regressors (White 1980), with the
bias reduction HC2. The cells are treated as fixed, however they were cut. ``least_squares.py`` widens a sum
that rests on few rows, and bounds what answers that are all alike may hide.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats, Ints, are_complements, distinct_rows
from limes._expectations.moments import CutShort, Moments, RowBlocks
from limes._sampling.least_squares import (
    AnswerStatistics,
    Clusters,
    FeatureSupport,
    WeightedSample,
    check_squares,
    least_squares,
)
from limes._sampling.pool import CachedPredictions
from limes._sampling.sampled import CALLS, CUT_SHORT, Sampling
from limes._threads import Progress, SharedState, progress_of
from limes.designs._joint import JointDesign, JointFamily, OccurringRows
from limes.designs._product import Rows
from limes.exceptions import NotReadableError

# A standard error needs this effective number of rows with a feature, and as many without
_FEWEST = 2.0


class JointExpectation(SharedState):
    """Moments of one function under the joint laws of one background; threads may share it.

    ``predict`` maps rows (n, d) to (n,) or (n, k). Where it calls no model, ``exact_contributions`` makes of
    it and the family what computes exact contributions, or raises a NotReadableError.
    """

    method: Literal["sampled"] = "sampled"

    def __init__(
        self,
        family: JointFamily,
        predict: Callable[[Floats], Floats],
        sampling: Sampling,
        *,
        exact_contributions: Callable[[Callable[[Floats], Floats], JointFamily], Any] | None = None,
    ) -> None:
        self.family = family
        self._exact_contributions = exact_contributions
        self._predict = predict
        self._sampling = sampling
        self._predictions = CachedPredictions(family.rows, sampling.batch_size)
        super().__init__()

    @property
    def pool_calls(self) -> int:
        return len(self.family.rows) - self._predictions.missing

    def fill(self, progress: Progress, *, workers: int = 1) -> None:
        """Predict the background's rows, unless they have been predicted."""
        with self._lock:
            if missing := self._predictions.missing:
                with progress(missing, CALLS) as on_progress:
                    self._predictions.predict(self._predict, self._sampling.retry, on_progress, workers)
        check_squares(self._answers)

    @cached_property
    def _answers(self) -> Floats:
        if self._predictions.missing:  # so far exact contributions alone were asked for
            self.fill(progress_of(shown=False))
        return np.concatenate(self._predictions.answers())

    @property
    def answers(self) -> Floats:
        return self._answers.reshape(len(self._answers), -1)

    @cached_property
    def _complement(self) -> bool:
        """Whether answers are two probabilities, of which only the second is computed."""
        return are_complements(self.answers)

    @cached_property
    def _computed(self) -> Floats:
        return np.ascontiguousarray(self.answers[:, 1:]) if self._complement else self.answers

    @cached_property
    def _statistics(self) -> AnswerStatistics:
        return AnswerStatistics.from_rows(self._computed)

    @cached_property
    def _clusters(self) -> Clusters:
        return Clusters(np.arange(len(self.family.rows)))  # every row by itself

    @cached_property
    def _exact(self) -> tuple[Any, str]:
        """Exact contributions, or None and the reason; the reason is "" of a model that is called."""
        if self._exact_contributions is None:
            return None, ""
        try:
            return self._exact_contributions(self._predict, self.family), ""
        except NotReadableError as error:
            return None, str(error)

    @property
    def interventional(self) -> Any:
        """Exact contributions, without a call of the model; None without them."""
        return self._exact[0]

    @property
    def how_contributions(self) -> str:
        """Whether contributions of a read model are exact, or why they are not; "" of one that is called."""
        if self._exact_contributions is None:
            return ""
        exact, reason = self._exact
        return (
            f"contributions are estimated, as {reason}"
            if exact is None
            else "contributions are exact for them"
        )

    def moments(self, design: Any, row: Floats) -> Moments:  # noqa: ARG002 - the row's cells decide it
        return self.at(self.family.cells(row[None])[0])[1]

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> RowBlocks:
        """One design after the other, each with its Σ; rows with the same cells share it."""
        del predictions
        try:
            self.fill(progress, workers=workers)
        except CUT_SHORT as cause:
            raise CutShort from cause
        patterns, place = distinct_rows(rows.cells)
        alike = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
        with progress(len(patterns)) as on_progress:
            for pattern, positions in zip(patterns, alike, strict=True):
                yield positions, *self.at(pattern)
                on_progress(1)

    def at(self, cells: Ints) -> tuple[JointDesign, Moments]:
        """Return the design at a row with these cells (d,), and its moments."""
        rows = self.family.around(cells)
        design = rows.design()
        support = _support(rows, design)
        used = np.flatnonzero(support.used)
        inverse = np.eye(1 + used.size)
        inverse[1:, 1:] = design.inverse[np.ix_(used, used)]
        sample = WeightedSample(
            rows.departures, self._computed, self._clusters, self._statistics, rows.weights, are_draws=False
        )
        moments = least_squares(design, sample, support, inverse=inverse).to_moments(
            (1,) if self._complement else self._answers.shape[1:],
            self._sampling.accuracy,
            control="none",
            shared=len(self._answers),
            collinear=design.collinear,
            complement=self._complement,
        )
        return design, moments


def _support(rows: OccurringRows, design: JointDesign) -> FeatureSupport:
    """Effective rows inside or outside the cell of each column, whichever are fewer, (d,)."""
    w, z = rows.weights, rows.z
    total, squares = w @ z, w**2 @ z
    sides = [(total, squares), (1.0 - total, w @ w - squares)]
    numbers = np.minimum(*(np.divide(a**2, b, out=np.zeros_like(a), where=b > 0) for a, b in sides))
    varies = ~rows.alike.all(axis=0)
    return FeatureSupport(numbers, design.variance > 0, varies & (numbers < _FEWEST))
