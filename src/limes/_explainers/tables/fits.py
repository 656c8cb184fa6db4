r"""How well the surrogates of a table's rows fit, and their effects, computed row by row at first access.

R² = (2 b·Γ - b·Σb) / Var_w f. Coefficients b and Γ are the explanation's. Of a model that was read Var_w f is
exact where its form has a closed form (``_expectations/spread.py``), else estimated on rows of w through the
form (``_expectations/weighted_rows.py``); effects of cells are exact (``_expectations/cells.py``). Of a
sampled model both come from the answers that the explanation was made of. The model is not called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes._expectations.cells import CellEffects, cell_masses
from limes._expectations.one_hot import PairEstimate
from limes._expectations.weighted_rows import WeightedRows
from limes._explainers.tables.additive import (
    AdditiveFit,
    ExactAdditive,
    ExactBlock,
    estimated,
    pairs_of_columns,
    ranked_pairs,
    size_of_answers,
)
from limes._explainers.tables.fitted_row import Designs, FittedRow, FittedRows
from limes._explainers.tables.form_spread import FormSpread
from limes._explainers.tables.laws import bin_texts
from limes._explanation.fit import RowEffects, RowPair
from limes._threads import LRUCache
from limes._variance import r_squared
from limes.designs._marginals import BinCells
from limes.designs._product import ProductFamily, Rows

if TYPE_CHECKING:
    from limes._fitted import Fitted

T = TypeVar("T")
# Rows that are computed together: few enough for their tables of cells
_TOGETHER = 1024
# Rows of a call whose effects are cached
MOST_EFFECTS = 1000
# Number of pairs of columns up to which all are computed exactly; of more, those that rows of w rank highest
_ALL_PAIRS, _CANDIDATES = 15, 4


class TableFits(ABC):
    """Fits of the rows (n, d) of one call, with cells (n, d); ``texts`` are the columns' cells in words."""

    def __init__(
        self, family: ProductFamily, texts: Sequence[Objects], rows: Floats, cells: Ints, fitted: Fitted
    ) -> None:
        self._family, self._texts, self._rows, self._cells = family, texts, rows, cells
        self._fitted = fitted
        self._fidelities: dict[int, tuple[Floats, Floats]] = {}
        self._additive: LRUCache[int, AdditiveFit] = LRUCache(MOST_EFFECTS)

    @property
    @abstractmethod
    def _unit(self) -> Floats:
        """Size of the model's answers, (k,)."""

    @property
    @abstractmethod
    def is_quick(self) -> bool:
        """Whether effects have a closed form."""

    @abstractmethod
    def _fidelities_of(self, rows: FittedRows) -> Iterable[tuple[Floats, Floats]]:
        """Return R² and its standard errors, (k,) each, of each row."""

    @abstractmethod
    def _additive_of(self, rows: FittedRows) -> Iterable[AdditiveFit]:
        """Return the additive fit of each row."""

    @abstractmethod
    def _pairs_of(
        self, row: FittedRow, additive: AdditiveFit, output: int, top: int, pairs: list[tuple[int, int]]
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        """Return those of the pairs that may add most, at least ``top`` of them where there are as many."""

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of rows and their standard errors, 0 where exact, (k,) each."""
        missing = [row for row in dict.fromkeys(rows) if row not in self._fidelities]
        self._fidelities.update(zip(missing, self._in_blocks(self._fidelities_of, missing), strict=True))
        return [self._fidelities[row] for row in rows]

    def additive(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of all effects of rows together and their standard errors, (k,) each."""
        return [additive.r_squared for additive in self._additive_at(rows)]

    def effects(self, rows: Sequence[int]) -> Callable[[int], RowEffects]:
        """Compute effects of rows' columns together; the effects at a place among them are made there."""
        additive = self._additive_at(rows)
        return lambda place: additive[place].effects

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> list[RowPair]:
        """The pairs of these columns that explain most beyond the effects, at most ``top``, largest first."""
        (additive,), at = self._additive_at([row]), self._row(row)
        pairs = self._pairs_of(at, additive, output, top, pairs_of_columns(at.masses, columns))
        pairs = sorted(pairs, key=lambda pair: -pair[1].variance[output])[:top]
        total, unit = float(additive.total[output]) or 1.0, self._unit[output]
        masses = [coordinate.probability for coordinate in additive.cut.coordinates]
        return [
            RowPair(
                pair,
                estimate.values[:, :, output] * unit,
                estimate.errors[:, :, output] * unit,
                np.multiply.outer(*(masses[column] for column in pair)),
                float(estimate.variance[output]) / total,
                float(estimate.variance_error[output]) / total,
            )
            for pair, estimate in pairs
        ]

    has_curves = True

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:
        """The cells of a column in words: a slope's are slices of its law around the row."""
        texts = self._cell_texts[column]
        if self._family.held is not None and self._family.held[column]:
            return (texts[self._cells[row, column]],)
        if self._family.slopes is None or not self._family.slopes[column]:
            return texts
        (additive,) = self._additive_at([row])
        cells = additive.cut.coordinates[column].marginal.cells
        assert isinstance(cells, BinCells)  # noqa: S101 - slopes are of numbers
        if cells.count == 1:
            return texts
        missing = texts[len(texts) - cells.missing :]
        if cells.edges.size == 2:
            return (f"{texts[0]} is not missing", *missing)
        return (*bin_texts(texts[0], cells.edges), *missing)

    @cached_property
    def _cell_texts(self) -> list[tuple[str, ...]]:
        return [tuple(texts.tolist()) for texts in self._texts]

    def _additive_at(self, rows: Sequence[int]) -> list[AdditiveFit]:
        missing = [row for row in dict.fromkeys(rows) if row not in self._additive]
        fresh = dict(zip(missing, self._in_blocks(self._additive_of, missing), strict=True))

        for row, additive in fresh.items():
            self._additive.put(row, additive)

        def one(row: int) -> AdditiveFit:
            # another thread may have pushed the row out of the cache meanwhile
            return next(iter(self._additive_of(self._rows_at([row]))))

        return [fresh[row] if row in fresh else self._additive.get(row, partial(one, row)) for row in rows]

    def _in_blocks(self, compute: Callable[[FittedRows], Iterable[T]], rows: list[int]) -> Iterator[T]:
        """Compute rows by their positions, few enough at once to bound memory."""
        for start in range(0, len(rows), _TOGETHER):
            yield from compute(self._rows_at(rows[start : start + _TOGETHER]))

    @cached_property
    def _numbers(self) -> tuple[Floats, Floats, Floats]:
        """Coefficients and Γ (n, d, k), and E_w f (n, k), in units of the model."""
        (n, d), fitted = self._rows.shape, self._fitted
        coef, gamma = (
            numbers.reshape(n, d, -1) / self._unit
            for numbers in (fitted.surrogate.coef, fitted.moments.gamma)
        )
        return coef, gamma, fitted.moments.mean.reshape(n, -1) / self._unit

    def _row(self, i: int) -> FittedRow:
        return self._rows_at([i])[0]

    def _rows_at(self, positions: Sequence[int]) -> FittedRows:
        at = np.asarray(positions, dtype=np.int64)
        coef, gamma, mean = (numbers[at] for numbers in self._numbers)
        features, rows, cells = self._fitted.features, self._rows[at], self._cells[at]
        inclusion, variance = features.inclusion[at], features.variance[at]
        if not self._family.by_cell:
            numbers = Rows(self._family, rows, cells).features
            assert numbers.units is not None  # noqa: S101 - cells do not decide the designs
            # as Γ is already
            coef = coef * numbers.units[:, :, None]
            inclusion, variance = numbers.inner.inclusion, numbers.inner.variance
        return FittedRows(at, rows, cells, self._family, coef, gamma, mean, inclusion, variance)


class ReadFits(TableFits):
    """Fits of rows whose model was read."""

    def __init__(
        self, spread: FormSpread, texts: Sequence[Objects], rows: Floats, cells: Ints, fitted: Fitted
    ) -> None:
        super().__init__(spread.family, texts, rows, cells, fitted)
        self._spread = spread

    @property
    def is_quick(self) -> bool:
        return self._spread.cells is not None

    @property
    def _unit(self) -> Floats:
        return self._spread.unit

    def _fidelities_of(self, rows: FittedRows) -> Iterable[tuple[Floats, Floats]]:
        explained = rows.explained
        rest, errors = self._rests(rows, explained, partial(self._by_surrogate, rows), self._own_curves)
        return zip(*r_squared(explained, explained + rest, size_of_answers(rows.mean), errors), strict=True)

    def _rests(
        self,
        rows: FittedRows,
        explained: Floats,
        residuals: Callable[[int], tuple[WeightedRows, Floats]],
        curves: Callable[[FittedRows], tuple[Floats, Floats]],
    ) -> tuple[Floats, Floats]:
        """Return what of Var_w f is not explained, and its errors, (n, k) each.

        By a closed form, or by squares on the pool, for functions base + Σ_j curve_j(cell of x_j), or on rows
        drawn for each row.
        """
        rest, errors = np.maximum(self._spread.variances(rows) - explained, 0.0), np.zeros(explained.shape)
        # without a closed form, or where its digits cancel
        pending = np.flatnonzero(np.isnan(rest).any(axis=1))
        in_pool = np.zeros(pending.size, dtype=np.bool_)
        if pending.size and self._family.by_cell:
            curve, base = curves(rows)
            rest[pending], errors[pending], in_pool = self._spread.pool.squares(
                rows.cells[pending], curve[pending], base[pending]
            )
        for i in pending[~in_pool].tolist():
            weighted, unexplained = residuals(i)
            rest[i], errors[i] = weighted.mean(unexplained**2)
            errors[i, weighted.miss(rows.gamma[i], rows.inclusion[i])] = np.inf
        return rest, errors

    def _by_surrogate(self, rows: FittedRows, i: int) -> tuple[WeightedRows, Floats]:
        row = rows[i]
        weighted = self._weighted(row)
        return weighted, weighted.residuals(row.mean, row.inclusion, row.coef)

    def _own_curves(self, rows: FittedRows) -> tuple[Floats, Floats]:
        """The surrogates as curves (n, d, B, k), 0 but in the rows' cells, and their bases (n, k)."""
        widest = max(law.cells.count for law in self._family.marginals)
        curves = np.zeros((*rows.coef.shape[:2], widest, rows.coef.shape[2]))
        np.put_along_axis(curves, rows.cells[:, :, None, None], rows.coef[:, :, None], axis=2)
        return curves, rows.mean - np.einsum("nd,ndk->nk", rows.inclusion, rows.coef)

    def _additive_of(self, rows: FittedRows) -> Iterable[AdditiveFit]:
        cells = self._spread.cells
        if cells is not None:
            return self._exactly(cells, rows)
        variances = self._spread.variances(rows)
        return (
            estimated(self._weighted(row), row, self._unit, v) for row, v in zip(rows, variances, strict=True)
        )

    def _exactly(self, cells: CellEffects, rows: FittedRows) -> list[ExactAdditive]:
        designs = Designs(rows)
        masses, counts = cell_masses(self._family, rows.cells, designs)
        values = cells.effects(rows.cells, designs, masses, counts)
        steps, by_line = values / self._unit, np.zeros(())
        if self._family.slopes is not None:
            # what the cells add to the line
            steps -= np.stack([row.line_in_cells(masses.shape[2]) for row in rows])
            by_line = np.stack([row.explained_by_line for row in rows])
        between = np.einsum("ndb,ndbk->ndk", masses, steps**2) + by_line
        explained = between.sum(axis=1)

        def residuals(i: int) -> tuple[WeightedRows, Floats]:
            row = rows[i]
            weighted = self._weighted(row)
            assert weighted.cells is not None  # noqa: S101 - rows of tables have cells
            curves = sum(curve[cell] for curve, cell in zip(steps[i], weighted.cells, strict=True))
            return weighted, weighted.residuals(row.mean, row.inclusion, row.line) - curves

        rest, errors = self._rests(rows, explained, residuals, lambda _: (steps, rows.mean))
        total = explained + rest
        additive, additive_errors = r_squared(explained, explained + rest, size_of_answers(rows.mean), errors)
        shares = between / np.where(total > 0, total, 1.0)[:, None]
        block = ExactBlock(
            rows,
            designs,
            values,
            masses,
            counts,
            shares,
            total,
            additive,
            additive_errors,
            residuals,
        )
        return [ExactAdditive(block, i) for i in range(len(rows))]

    def _weighted(self, row: FittedRow) -> WeightedRows:
        return self._spread.rows(row.design, row.row, row.cells_of)

    def _pairs_of(
        self, row: FittedRow, additive: AdditiveFit, output: int, top: int, pairs: list[tuple[int, int]]
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        cells = self._spread.cells
        if cells is not None and not cells.interacts:
            return []
        if cells is None or len(pairs) > max(_ALL_PAIRS, _CANDIDATES * top):
            ranked = ranked_pairs(row.masses, pairs, additive, output)[: max(_ALL_PAIRS, _CANDIDATES * top)]
            pairs = [pair for pair, _ in ranked]
        values = None if cells is None else cells.pairs(additive.cut, pairs)
        if values is None:
            return ranked if cells is None else ranked_pairs(row.masses, pairs, additive, output)
        return [
            (pair, _exact_pair(v / self._unit, [row.masses[j] for j in pair]))
            for pair, v in zip(pairs, values, strict=True)
        ]


def _exact_pair(values: Floats, masses: Sequence[Floats]) -> PairEstimate:
    variance = np.tensordot(np.multiply.outer(*masses), values**2, axes=2)
    return PairEstimate(values, np.zeros_like(values), variance, np.zeros_like(variance))
