r"""How well the surrogates of a table's rows fit, and their effects, computed row by row when somebody looks.

R² = (2 b·Γ - b·Σb) / Var_w f. Coefficients b and Γ are the explanation's. Of a model that was read Var_w f is
exact where its form has a closed form (``_expectations/spread.py``), else estimated on rows of w through the
form (``_expectations/weighted_rows.py``); effects of cells are exact (``_expectations/cells.py``). Of a
sampled model both come from the answers that the explanation was made of. The model is not called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, Objects, power_of_two
from limes._expectations.cells import CellEffects, exact_cells
from limes._expectations.one_hot import OneHotFit, PairEstimate, pair_estimate
from limes._expectations.pooled import PooledExpectation
from limes._expectations.sampled import SampledExpectation
from limes._expectations.spread import ExactVariance, exact_variance
from limes._expectations.weighted_rows import (
    FormPool,
    WeightedRows,
    r_squared,
    rows_of_law,
)
from limes._explanation.fit import RowEffects, RowPair
from limes._threads import LRUCache
from limes.designs._product import ProductDesign, ProductFamily
from limes.exceptions import InputError
from limes.models.forms._base import Form

if TYPE_CHECKING:
    from limes._pipeline import Expectation, Fitted

# Background rows whose answers tell the size of the model's
_SIZED = 256
# Rows of a call whose R² is cached, and whose effects are
_MOST_FIDELITIES, _MOST_EFFECTS = 100_000, 1000
# Number of pairs of columns up to which all are computed exactly; of more, those that rows of w rank highest
_ALL_PAIRS, _CANDIDATES = 15, 4


@dataclass(frozen=True, eq=False)
class _Row:
    """One row (d,), its position and its cells (d,), coefficients and Γ (d, k), E_w f (k,), and α (d,).

    Features are in units, and numbers of the model are divided by its unit. ``explained`` is what of Var_w f
    the surrogate explains, (k,).
    """

    position: int
    row: Floats
    cells: Ints
    family: ProductFamily
    coef: Floats
    mean: Floats
    inclusion: Floats
    explained: Floats

    @cached_property
    def design(self) -> ProductDesign:
        """The design at the row."""
        return self.family.at(self.row).in_units()

    @property
    def masses(self) -> list[Floats]:
        """P_w(cell) of every column, (p,) each."""
        return [coordinate.probability for coordinate in self.design.coordinates]


class _Additive(NamedTuple):
    """Effects (p, k) of d columns and their errors, and of them all R² = between / total and its error, (k,).

    ``residuals`` returns rows of w and what the effects leave of f there, (m, k).
    """

    values: list[Floats]
    errors: list[Floats]
    total: Floats
    additive: Floats
    additive_errors: Floats
    residuals: Callable[[], tuple[WeightedRows, Floats]]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableFits(ABC):
    """Fits of the rows (n, d) of one call, with cells (n, d); ``texts`` are the columns' cells in words."""

    family: ProductFamily
    texts: Sequence[Objects]
    rows: Floats
    cells: Ints
    fitted: Fitted
    _fidelities: LRUCache[Hashable, tuple[Floats, Floats]] = field(
        init=False, default_factory=partial(LRUCache, _MOST_FIDELITIES)
    )
    _additive: LRUCache[Hashable, _Additive] = field(
        init=False, default_factory=partial(LRUCache, _MOST_EFFECTS)
    )

    @property
    @abstractmethod
    def _unit(self) -> Floats:
        """Size of the model's answers, (k,)."""

    @abstractmethod
    def _fidelity_of(self, row: _Row) -> tuple[Floats, Floats]:
        """Return R² and its standard errors, (k,) each."""

    @abstractmethod
    def _additive_of(self, row: _Row) -> _Additive:
        """Return the effects of one row."""

    @abstractmethod
    def _pairs_of(
        self, row: _Row, additive: _Additive, output: int, top: int
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        """Return columns that may add most, at least ``top`` pairs of them where there are as many."""

    def fidelity(self, row: int) -> tuple[Floats, Floats]:
        """R² of one row and its standard errors, 0 where exact, (k,) each."""
        return self._fidelities.get(self._key(row), lambda: self._fidelity_of(self._row(row)))

    def _key(self, row: int) -> Hashable:
        """Return what decides a row's numbers."""
        return row

    def effects(self, row: int) -> RowEffects:
        """Effects of one row's columns.

        Raises
        ------
        InputError
            If columns have slopes in place of cells.
        """
        additive, masses = self._additive_at(row), self._row(row).masses
        curves = [np.nan_to_num(values) / self._unit for values in additive.values]
        between = [q @ curve**2 for q, curve in zip(masses, curves, strict=True)]
        total = np.where(additive.total > 0, additive.total, 1.0)
        return RowEffects(
            additive.values,
            additive.errors,
            masses,
            self.cells[row].tolist(),
            np.stack(between) / total,
            additive.additive,
            additive.additive_errors,
        )

    def pairs(self, row: int, output: int, top: int) -> list[RowPair]:
        """The pairs of columns that explain most beyond the effects, at most ``top``, largest first."""
        additive = self._additive_at(row)
        pairs = self._pairs_of(self._row(row), additive, output, top)
        pairs = sorted(pairs, key=lambda pair: -pair[1].variance[output])[:top]
        total, unit = float(additive.total[output]) or 1.0, self._unit[output]
        return [
            RowPair(
                columns,
                estimate.values[:, :, output] * unit,
                estimate.errors[:, :, output] * unit,
                float(estimate.variance[output]) / total,
                float(estimate.variance_error[output]) / total,
            )
            for columns, estimate in pairs
        ]

    @property
    def has_curves(self) -> bool:
        """Whether the columns have cells: slopes have none."""
        return self.family.slopes is None

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:  # noqa: ARG002 - the same for all rows
        """The cells of a column in words."""
        return tuple(self.texts[column].tolist())

    def _additive_at(self, row: int) -> _Additive:
        if self.family.slopes is not None:
            raise InputError(
                "columns without bins have slopes, and no cells that a model could have effects in: explain "
                "with bins='quartile', or any other, for effects and interactions"
            )
        return self._additive.get(self._key(row), lambda: self._additive_of(self._row(row)))

    def _row(self, i: int) -> _Row:
        fitted, (_, d), unit = self.fitted, self.rows.shape, self._unit
        coef, gamma = (a[i].reshape(d, -1) / unit for a in (fitted.surrogate.coef, fitted.moments.gamma))
        features = fitted.features
        inclusion, variance = features.inclusion[i], features.variance[i]
        if not self.family.by_cell:
            design = self.family.at(self.rows[i]).in_units()
            inclusion, variance, coef = design.inclusion, design.variance, coef * design.units[:, None]
        explained = (coef * (2.0 * gamma - variance[:, None] * coef)).sum(axis=0)
        mean = fitted.moments.mean[i].reshape(-1) / unit
        return _Row(i, self.rows[i], self.cells[i], self.family, coef, mean, inclusion, explained)


@dataclass(frozen=True, eq=False)
class FormSpread:
    """What fits of all rows of one background share: closed forms of the read model, or a pool of rows.

    Attributes
    ----------
    form, expectation
        The read model.
    family, seed
        The designs, and the seed of rows of their laws.
    background
        (N, d), encoded.
    """

    form: Form
    expectation: Expectation
    family: ProductFamily
    background: Floats
    seed: int

    @cached_property
    def unit(self) -> Floats:
        """Size of the model's answers, (k,): powers of two, by which everything is divided."""
        rows = self.background[:: -(-len(self.background) // _SIZED)]
        answers = self.form.predict(rows)
        return power_of_two(np.abs(answers.reshape(len(rows), -1)).max(axis=0))

    @cached_property
    def exact(self) -> ExactVariance | None:
        """The closed form of Var_w (f / unit), if there is one."""
        return exact_variance(self.form, self.unit)

    @cached_property
    def cells(self) -> CellEffects | None:
        """The exact effects of cells, where they are feasible."""
        return exact_cells(self.form, self.expectation, self.family)

    @cached_property
    def _pool(self) -> FormPool:
        return FormPool(self.family, self.predict, self.seed)

    def predict(self, x: Floats) -> Floats:
        """Return the form's answers in units, (m, k)."""
        return np.asarray(self.form.predict(x).reshape(len(x), -1) / self.unit)

    def rows(self, row: _Row) -> WeightedRows:
        """Return rows of w: of the pool where enough of it counts, else drawn for this row."""
        pooled = self._pool.at(row.cells) if self.family.by_cell else None
        return pooled or rows_of_law(row.design, row.row, self.predict, self.seed, self.family)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadFits(TableFits):
    """Fits of rows whose model was read."""

    spread: FormSpread

    @property
    def _unit(self) -> Floats:
        return self.spread.unit

    def _fidelity_of(self, row: _Row) -> tuple[Floats, Floats]:
        explained = row.explained

        def squares() -> tuple[Floats, Floats]:
            rows = self.spread.rows(row)
            return rows.mean(rows.residuals(row.mean, row.inclusion, row.coef) ** 2)

        rest, error = self._rest(row, explained, squares)
        return r_squared(explained, rest, error, _size(row.mean))

    def _rest(
        self, row: _Row, explained: Floats, squares: Callable[[], tuple[Floats, Floats]]
    ) -> tuple[Floats, Floats]:
        """Return what of Var_w f is not explained, and its error: by a closed form, or squares on rows."""
        if self.spread.exact is None:
            return squares()
        variance = self.spread.exact.variance(row.design)
        if np.isnan(variance).any():
            return squares()
        return np.maximum(variance - explained, 0.0), np.zeros(explained.size)

    def _additive_of(self, row: _Row) -> _Additive:
        cells = self.spread.cells
        if cells is None:
            return _estimated(OneHotFit(self.spread.rows(row), row.masses), self._unit, row.mean)
        effects = [values / self._unit for values in cells.effects(row.design)]
        between = np.sum([q @ v**2 for q, v in zip(row.masses, effects, strict=True)], axis=0)

        def residuals() -> tuple[WeightedRows, Floats]:
            rows = self.spread.rows(row)
            assert rows.cells is not None  # noqa: S101 - rows of tables have cells
            curves = sum(values[column] for values, column in zip(effects, rows.cells, strict=True))
            return rows, rows.f - row.mean - curves

        def squares() -> tuple[Floats, Floats]:
            rows, rest = residuals()
            return rows.mean(rest**2)

        rest, error = self._rest(row, between, squares)
        values = [values * self._unit for values in effects]
        additive = r_squared(between, rest, error, _size(row.mean))
        return _Additive(values, [0.0 * v for v in values], between + rest, *additive, residuals)

    def _pairs_of(
        self, row: _Row, additive: _Additive, output: int, top: int
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        cells, columns = self.spread.cells, _columns(row.masses)
        if cells is not None and not cells.interacts:
            return []
        if cells is None or len(columns) > max(_ALL_PAIRS, _CANDIDATES * top):
            ranked = _ranked(row.masses, columns, additive, output)[: max(_ALL_PAIRS, _CANDIDATES * top)]
            columns = [pair for pair, _ in ranked]
        values = None if cells is None else cells.pairs(row.design, columns)
        if values is None:
            return ranked if cells is None else _ranked(row.masses, columns, additive, output)
        return [
            (pair, _exact_pair(v / self._unit, [row.masses[j] for j in pair]))
            for pair, v in zip(columns, values, strict=True)
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledFits(TableFits):
    """Fits of rows whose model was sampled: from the answers that their explanations were made of."""

    expectation: SampledExpectation

    @cached_property
    def _unit(self) -> Floats:
        means = np.abs(self.fitted.moments.mean.reshape(len(self.rows), -1)).max(axis=0)
        return power_of_two(means)

    def _fidelity_of(self, row: _Row) -> tuple[Floats, Floats]:
        rows = self._rows_of(row)
        rest, error = rows.mean(rows.residuals(row.mean, row.inclusion, row.coef) ** 2)
        return r_squared(row.explained, rest, error, _size(row.mean))

    def _additive_of(self, row: _Row) -> _Additive:
        return _estimated(OneHotFit(self._rows_of(row), row.masses), self._unit, row.mean)

    def _pairs_of(
        self,
        row: _Row,
        additive: _Additive,
        output: int,
        top: int,  # noqa: ARG002 - all are as cheap
    ) -> list[tuple[tuple[int, int], PairEstimate]]:
        return _ranked(row.masses, _columns(row.masses), additive, output)

    def _rows_of(self, row: _Row) -> WeightedRows:
        sampled = self.fitted.moments.sampled
        assert sampled is not None  # noqa: S101 - the model was sampled
        answers = sampled.answers[row.position].reshape(-1, self._unit.size) / self._unit
        x, h, _ = self.expectation.redraw(row.design, row.row, len(answers))
        return WeightedRows.drawn(h, answers, self.family.cells(x))


@dataclass(frozen=True, eq=False, kw_only=True)
class PooledFits(SampledFits):
    """Fits of rows that share a pool of answers, or have separate draws where the pool does not serve."""

    pooled: PooledExpectation

    def _rows_of(self, row: _Row) -> WeightedRows:
        size = int(self.fitted.moments.shared[row.position])
        if size == 0:
            return super()._rows_of(row)
        pool = self.pooled.pool.rows(size)
        same = pool.cells == row.cells
        weights = self.pooled.ratio ** np.count_nonzero(~same, axis=1)
        answers = pool.answers.reshape(size, -1) / self._unit
        h = np.ascontiguousarray(same.T, dtype=np.float64)
        return WeightedRows(h, answers, weights / weights.sum(), cells=pool.cells.T.astype(np.int64))


def _estimated(fit: OneHotFit, unit: Floats, mean: Floats) -> _Additive:
    effects, errors = fit.effects()
    between, rest, error = fit.additive()
    value, _ = r_squared(between, rest, error, _size(mean))
    return _Additive(
        [values * unit for values in effects],
        [values * unit for values in errors],
        between + rest,
        value,
        error,
        lambda: (fit.rows, fit.residuals),
    )


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


def _size(mean: Floats) -> Floats:
    """Size of answers whose rounding is no variance, in units."""
    return np.maximum(np.abs(mean), 1.0)
