"""Fits of rows whose model was sampled: from the answers that their explanations were made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, Ints, Objects, power_of_two, r_squared
from limes._expectations.one_hot import PairEstimate
from limes._expectations.pooled import PooledExpectation
from limes._expectations.sampled import SampledExpectation
from limes._expectations.weighted_rows import WeightedRows
from limes._explainers.tables.additive import (
    AdditiveFit,
    estimated,
    ranked_pairs,
    size_of_answers,
)
from limes._explainers.tables.fits import TableFits
from limes._explainers.tables.fitted_row import FittedRow, FittedRows
from limes.designs._product import ProductFamily

if TYPE_CHECKING:
    from limes._fitted import Fitted


class SampledFits(TableFits):
    """Fits of rows whose model was sampled: from the answers that their explanations were made of."""

    is_quick = False

    def __init__(
        self,
        expectation: SampledExpectation,
        family: ProductFamily,
        texts: Sequence[Objects],
        rows: Floats,
        cells: Ints,
        fitted: Fitted,
    ) -> None:
        super().__init__(family, texts, rows, cells, fitted)
        self._expectation = expectation

    @cached_property
    def _unit(self) -> Floats:
        means = np.abs(self._fitted.moments.mean.reshape(len(self._rows), -1)).max(axis=0)
        return power_of_two(means)

    def _fidelities_of(self, rows: FittedRows) -> Iterable[tuple[Floats, Floats]]:
        for row in rows:
            weighted = self._rows_of(row)
            rest, error = weighted.mean(weighted.residuals(row.mean, row.inclusion, row.coef) ** 2)
            yield r_squared(row.explained, row.explained + rest, size_of_answers(row.mean), error)

    def _additive_of(self, rows: FittedRows) -> Iterable[AdditiveFit]:
        for row in rows:
            yield estimated(self._rows_of(row), row, self._unit)

    def _pairs_of(
        self,
        row: FittedRow,
        additive: AdditiveFit,
        output: int,
        top: int,  # noqa: ARG002 - all are as cheap
        pairs: list[tuple[int, int]],
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        return ranked_pairs(row.masses, pairs, additive, output)

    def _rows_of(self, row: FittedRow) -> WeightedRows:
        sampled = self._fitted.moments.sampled
        assert sampled is not None  # noqa: S101 - the model was sampled
        answers = sampled.answers[row.position].reshape(-1, self._unit.size) / self._unit
        x, h, _ = self._expectation.redraw(row.design, row.row, len(answers))
        return WeightedRows.drawn(h, answers, row.cells_of(x))


class PooledFits(SampledFits):
    """Fits of rows that share a pool of answers, or have separate draws where the pool does not serve."""

    def __init__(
        self,
        expectation: PooledExpectation,
        family: ProductFamily,
        texts: Sequence[Objects],
        rows: Floats,
        cells: Ints,
        fitted: Fitted,
    ) -> None:
        super().__init__(expectation.single, family, texts, rows, cells, fitted)
        self._pooled = expectation

    def _rows_of(self, row: FittedRow) -> WeightedRows:
        size = int(self._fitted.moments.shared[row.position])
        if size == 0:
            return super()._rows_of(row)
        pool = self._pooled.pool.rows(size)
        same = pool.cells == row.cells
        weights = self._pooled.ratio ** np.count_nonzero(~same, axis=1)
        answers = pool.answers.reshape(size, -1) / self._unit
        h = np.ascontiguousarray(same.T, dtype=np.float64)
        return WeightedRows(h, answers, weights / weights.sum(), cells=pool.cells.T.astype(np.int64))
