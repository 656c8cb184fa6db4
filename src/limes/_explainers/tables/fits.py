r"""How well the surrogates of a table's rows fit, and their effects, computed row by row when somebody looks.

R² = (2 b·Γ - b·Σb) / Var_w f. Coefficients b and Γ are the explanation's. Of a model that was read Var_w f is
exact where its form has a closed form (``_expectations/spread.py``), else estimated on rows of w through the
form (``_expectations/weighted_rows.py``); effects of cells are exact (``_expectations/cells.py``). Of a
sampled model both come from the answers that the explanation was made of. The model is not called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from limes._arrays import Floats, Ints, Objects, power_of_two
from limes._expectations.cells import cell_masses
from limes._expectations.one_hot import OneHotFit, PairEstimate, pair_estimate
from limes._expectations.pooled import PooledExpectation
from limes._expectations.sampled import SampledExpectation
from limes._expectations.weighted_rows import WeightedRows, r_squared
from limes._explainers.tables.fitted_row import FittedRow
from limes._explainers.tables.form_spread import FormSpread
from limes._explainers.tables.laws import bin_texts
from limes._explanation.fit import RowEffects, RowPair
from limes._threads import LRUCache
from limes.designs._marginals import BinCells
from limes.designs._product import ProductDesign, ProductFamily

if TYPE_CHECKING:
    from limes._pipeline import Fitted

T = TypeVar("T")
# Rows that are computed together: few enough for their tables of cells
_TOGETHER = 1024
# Rows of a call whose effects are cached
_MOST_EFFECTS = 1000
# Number of pairs of columns up to which all are computed exactly; of more, those that rows of w rank highest
_ALL_PAIRS, _CANDIDATES = 15, 4


class _Additive(NamedTuple):
    """Effects of one row, the design whose cells they are of, Var_w f (k,), and what they leave of it.

    ``residuals`` returns rows of w and what the effects leave of f there, (m, k).
    """

    effects: RowEffects
    cut: ProductDesign
    total: Floats
    residuals: Callable[[], tuple[WeightedRows, Floats]]


class TableFits(ABC):
    """Fits of the rows (n, d) of one call, with cells (n, d); ``texts`` are the columns' cells in words."""

    def __init__(
        self, family: ProductFamily, texts: Sequence[Objects], rows: Floats, cells: Ints, fitted: Fitted
    ) -> None:
        self._family, self._texts, self._rows, self._cells = family, texts, rows, cells
        self._fitted = fitted
        self._fidelities: dict[int, tuple[Floats, Floats]] = {}
        self._additive: LRUCache[int, _Additive] = LRUCache(_MOST_EFFECTS)

    @property
    @abstractmethod
    def _unit(self) -> Floats:
        """Size of the model's answers, (k,)."""

    @abstractmethod
    def _fidelities_of(self, rows: Sequence[FittedRow]) -> Iterable[tuple[Floats, Floats]]:
        """Return R² and its standard errors, (k,) each, of each row."""

    @abstractmethod
    def _additive_of(self, rows: Sequence[FittedRow]) -> Iterable[_Additive]:
        """Return the effects of each row."""

    @abstractmethod
    def _pairs_of(
        self, row: FittedRow, additive: _Additive, output: int, top: int
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        """Return columns that may add most, at least ``top`` pairs of them where there are as many."""

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of rows and their standard errors, 0 where exact, (k,) each."""
        missing = [row for row in dict.fromkeys(rows) if row not in self._fidelities]
        self._fidelities.update(zip(missing, self._in_blocks(self._fidelities_of, missing), strict=True))
        return [self._fidelities[row] for row in rows]

    def effects(self, rows: Sequence[int]) -> list[RowEffects]:
        """Effects of rows' columns."""
        return [additive.effects for additive in self._additive_at(rows)]

    def pairs(self, row: int, output: int, top: int) -> list[RowPair]:
        """The pairs of columns that explain most beyond the effects, at most ``top``, largest first."""
        (additive,) = self._additive_at([row])
        pairs = self._pairs_of(self._row(row), additive, output, top)
        pairs = sorted(pairs, key=lambda pair: -pair[1].variance[output])[:top]
        total, unit = float(additive.total[output]) or 1.0, self._unit[output]
        return [
            RowPair(
                columns,
                estimate.values[:, :, output] * unit,
                estimate.errors[:, :, output] * unit,
                np.multiply.outer(*(additive.effects.masses[column] for column in columns)),
                float(estimate.variance[output]) / total,
                float(estimate.variance_error[output]) / total,
            )
            for columns, estimate in pairs
        ]

    has_curves = True

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:
        """The cells of a column in words: a slope's are slices of its law around the row."""
        texts = self._cell_texts[column]
        if self._family.slopes is None or not self._family.slopes[column]:
            return texts
        (additive,) = self._additive_at([row])
        cells = additive.cut.coordinates[column].marginal.cells
        assert isinstance(cells, BinCells)  # noqa: S101 - slopes are of numbers
        return tuple(bin_texts(texts[0], cells.edges)) if cells.count > 1 else texts

    @cached_property
    def _cell_texts(self) -> list[tuple[str, ...]]:
        return [tuple(texts.tolist()) for texts in self._texts]

    def _additive_at(self, rows: Sequence[int]) -> list[_Additive]:
        missing = [row for row in dict.fromkeys(rows) if row not in self._additive]
        fresh = dict(zip(missing, self._in_blocks(self._additive_of, missing), strict=True))

        def one(row: int) -> _Additive:
            # another thread may have pushed the row out of the cache meanwhile
            return fresh[row] if row in fresh else next(iter(self._additive_of([self._row(row)])))

        return [self._additive.get(row, partial(one, row)) for row in rows]

    def _in_blocks(
        self, compute: Callable[[Sequence[FittedRow]], Iterable[T]], rows: list[int]
    ) -> Iterator[T]:
        """Compute rows by their positions, few enough at once to bound memory."""
        for start in range(0, len(rows), _TOGETHER):
            yield from compute([self._row(row) for row in rows[start : start + _TOGETHER]])

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
        coef, gamma, mean = (numbers[i] for numbers in self._numbers)
        features = self._fitted.features
        inclusion, variance = features.inclusion[i], features.variance[i]
        if not self._family.by_cell:
            design = self._family.at(self._rows[i]).in_units()
            # as Γ is already
            inclusion, variance, coef = design.inclusion, design.variance, coef * design.units[:, None]
        return FittedRow(i, self._rows[i], self._family, coef, gamma, mean, inclusion, variance)


class ReadFits(TableFits):
    """Fits of rows whose model was read."""

    def __init__(
        self, spread: FormSpread, texts: Sequence[Objects], rows: Floats, cells: Ints, fitted: Fitted
    ) -> None:
        super().__init__(spread.family, texts, rows, cells, fitted)
        self._spread = spread

    @property
    def _unit(self) -> Floats:
        return self._spread.unit

    def _fidelities_of(self, rows: Sequence[FittedRow]) -> Iterable[tuple[Floats, Floats]]:
        explained = np.stack([row.explained for row in rows])
        rest, errors = self._rests(rows, explained, self._by_surrogate, self._own_curves)
        return zip(*r_squared(explained, rest, errors, _size(_means(rows))), strict=True)

    def _rests(
        self,
        rows: Sequence[FittedRow],
        explained: Floats,
        residuals: Callable[[int, FittedRow], tuple[WeightedRows, Floats]],
        curves: Callable[[Sequence[FittedRow]], tuple[Floats, Floats]],
    ) -> tuple[Floats, Floats]:
        """Return what of Var_w f is not explained, and its errors, (n, k) each.

        By a closed form, or by squares on the pool, for functions base + Σ_j curve_j(cell of x_j), or on rows
        drawn for each row.
        """
        rest, errors = np.full(explained.shape, np.nan), np.zeros(explained.shape)
        if self._spread.exact is not None:
            variances = np.stack([self._spread.exact.variance(row.design) for row in rows])
            rest = np.maximum(variances - explained, 0.0)
        # without a closed form, or where its digits cancel
        pending = np.flatnonzero(np.isnan(rest).any(axis=1))
        in_pool = np.zeros(pending.size, dtype=np.bool_)
        if pending.size and self._family.by_cell:
            cells = np.stack([rows[i].cells for i in pending.tolist()])
            curve, base = curves(rows)
            rest[pending], errors[pending], in_pool = self._spread.pool.squares(
                cells, curve[pending], base[pending]
            )
        for i in pending[~in_pool].tolist():
            weighted, unexplained = residuals(i, rows[i])
            rest[i], errors[i] = weighted.mean(unexplained**2)
        return rest, errors

    def _by_surrogate(self, _: int, row: FittedRow) -> tuple[WeightedRows, Floats]:
        weighted = self._spread.rows(row.design, row.row, row.cells_of)
        return weighted, weighted.residuals(row.mean, row.inclusion, row.coef)

    def _own_curves(self, rows: Sequence[FittedRow]) -> tuple[Floats, Floats]:
        """The surrogates as curves (n, d, B, k), 0 but in the rows' cells, and their bases (n, k)."""
        coef = np.stack([row.coef for row in rows])
        cells = np.stack([row.cells for row in rows])[:, :, None, None]
        widest = max(law.cells.count for law in self._family.marginals)
        curves = np.zeros((*coef.shape[:2], widest, coef.shape[2]))
        np.put_along_axis(curves, cells, coef[:, :, None], axis=2)
        inclusion = np.stack([row.inclusion for row in rows])
        return curves, _means(rows) - np.einsum("nd,ndk->nk", inclusion, coef)

    def _additive_of(self, rows: Sequence[FittedRow]) -> Iterable[_Additive]:
        cells = self._spread.cells
        if cells is None:
            for row in rows:
                weighted = self._spread.rows(row.design, row.row, row.cells_of)
                yield _estimated(weighted, row, self._unit)
            return
        designs = [row.cut for row in rows]
        masses = cell_masses(self._family, designs)
        values = cells.effects(designs, masses) / self._unit
        # beside slopes: what the cells add to the line
        steps = values - np.stack([row.line_in_cells(masses.shape[2]) for row in rows])
        between = np.einsum("ndb,ndbk->ndk", masses, steps**2)
        between += np.stack([row.explained_by_line for row in rows])
        explained, means = between.sum(axis=1), _means(rows)

        def residuals(i: int, row: FittedRow) -> tuple[WeightedRows, Floats]:
            weighted = self._spread.rows(row.design, row.row, row.cells_of)
            assert weighted.cells is not None  # noqa: S101 - rows of tables have cells
            curves = sum(curve[cell] for curve, cell in zip(steps[i], weighted.cells, strict=True))
            return weighted, weighted.residuals(row.mean, row.inclusion, row.line) - curves

        rest, errors = self._rests(rows, explained, residuals, lambda _: (steps, means))
        total = explained + rest
        shares = between / np.where(total > 0, total, 1.0)[:, None]
        additive = zip(*r_squared(explained, rest, errors, _size(means)), strict=True)
        scaled = values * self._unit
        for i, (row, (value, error)) in enumerate(zip(rows, additive, strict=True)):
            curves = [curve[: q.size] for curve, q in zip(scaled[i], row.masses, strict=True)]
            effects = RowEffects(
                curves,
                [np.zeros_like(curve) for curve in curves],
                row.masses,
                row.cells.tolist(),
                shares[i],
                value,
                error,
            )
            yield _Additive(effects, row.cut, total[i], partial(residuals, i, row))

    def _pairs_of(
        self, row: FittedRow, additive: _Additive, output: int, top: int
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        cells, columns = self._spread.cells, _columns(row.masses)
        if cells is not None and not cells.interacts:
            return []
        if cells is None or len(columns) > max(_ALL_PAIRS, _CANDIDATES * top):
            ranked = _ranked(row.masses, columns, additive, output)[: max(_ALL_PAIRS, _CANDIDATES * top)]
            columns = [pair for pair, _ in ranked]
        values = None if cells is None else cells.pairs(row.cut, columns)
        if values is None:
            return ranked if cells is None else _ranked(row.masses, columns, additive, output)
        return [
            (pair, _exact_pair(v / self._unit, [row.masses[j] for j in pair]))
            for pair, v in zip(columns, values, strict=True)
        ]


class SampledFits(TableFits):
    """Fits of rows whose model was sampled: from the answers that their explanations were made of."""

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

    def _fidelities_of(self, rows: Sequence[FittedRow]) -> Iterable[tuple[Floats, Floats]]:
        for row in rows:
            weighted = self._rows_of(row)
            rest, error = weighted.mean(weighted.residuals(row.mean, row.inclusion, row.coef) ** 2)
            yield r_squared(row.explained, rest, error, _size(row.mean))

    def _additive_of(self, rows: Sequence[FittedRow]) -> Iterable[_Additive]:
        for row in rows:
            yield _estimated(self._rows_of(row), row, self._unit)

    def _pairs_of(
        self,
        row: FittedRow,
        additive: _Additive,
        output: int,
        top: int,  # noqa: ARG002 - all are as cheap
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        return _ranked(row.masses, _columns(row.masses), additive, output)

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


def _estimated(rows: WeightedRows, row: FittedRow, unit: Floats) -> _Additive:
    """Estimate effects of cells: of what slopes leave of f, where there are slopes."""
    zero, masses = np.zeros(unit.size), row.masses
    beside_line = replace(rows, f=rows.residuals(zero, row.inclusion, row.line))
    fit, line = OneHotFit(beside_line, masses), row.line_in_cells(max(q.size for q in masses))
    steps, errors = fit.effects()
    between, rest, error = fit.additive()
    by_line = row.explained_by_line
    explained = between + by_line.sum(axis=0)
    total = explained + rest
    value, _ = r_squared(explained, rest, zero, _size(row.mean))
    safe = np.where(total > 0, total, 1.0)
    parts = [q @ np.nan_to_num(curve) ** 2 for q, curve in zip(masses, steps, strict=True)]
    effects = RowEffects(
        [(curve + part[: len(curve)]) * unit for curve, part in zip(steps, line, strict=True)],
        [values * unit for values in errors],
        masses,
        row.cells.tolist(),
        (np.stack(parts) + by_line) / safe,
        value,
        error * (between + rest) / safe,
    )
    return _Additive(effects, row.cut, total, lambda: (fit.rows, fit.residuals))


def _columns(masses: list[Floats]) -> list[tuple[int, int]]:
    """Return all pairs of columns that have several cells."""
    return list(combinations((j for j, mass in enumerate(masses) if mass.size > 1), 2))


def _ranked(
    masses: list[Floats], columns: Sequence[tuple[int, int]], additive: _Additive, output: int
) -> list[tuple[tuple[int, int], PairEstimate]]:
    """Return pairs with what they add on rows of w, largest first."""
    if not columns:
        return []
    rows, residuals = additive.residuals()
    pairs = [((j, k), pair_estimate(rows, residuals, (masses[j], masses[k]), (j, k))) for j, k in columns]
    return sorted(pairs, key=lambda pair: -pair[1].variance[output])


def _exact_pair(values: Floats, masses: Sequence[Floats]) -> PairEstimate:
    variance = np.tensordot(np.multiply.outer(*masses), values**2, axes=2)
    return PairEstimate(values, np.zeros_like(values), variance, np.zeros_like(variance))


def _means(rows: Sequence[FittedRow]) -> Floats:
    return np.stack([row.mean for row in rows])


def _size(mean: Floats) -> Floats:
    """Size of answers whose rounding is no variance, in units."""
    return np.maximum(np.abs(mean), 1.0)
