r"""Controls of tables: an additive model, a network, boosted trees, kernel regression, and margins of links.

*Additive*: one effect a cell and one slope inside each cell, of every column,

    1[x_j in cell b]    and    (x_j - m_jb) / s_jb · 1[x_j in cell b],

m and s the mean and standard deviation of x_j in the cell. Under bin weights a slope inside a cell has no
coefficient, and only reduces the variance.

*Network*: effects of cells, products of columns and a hidden layer of random units, behind a link,

    g(x) = link(c + Σ_j u_j(x_j) + v · s(x) + Σ_jl m_jl s_j(x) s_l(x) + Σ_u a_u cos(ω_u · s(x) + b_u)),

u_j effects and slopes as above, s(x) the columns in units of their spread, and indicators of categories.
Pairs j, l explain what effects and slopes leave: among many columns random units hardly meet a single pair.
Directions ω and phases b are drawn (Rahimi & Recht 2007), the coefficients follow by ridge regression.
Answers between 0 and 1 are fitted on their log odds, with the logistic link. The fit is linear in its
coefficients, so that fits without each sequence of rows cost no more than a solve. The expectation is
simulated on rows that the model does not predict.

*Trees* are for models that are piecewise constant or full of interactions.

*Kernel*, for smooth models: a linear trend, and a kernel regression of its residuals with

    k(x, c) = ∏_j k_j:  exp(-(x_j - c_j)² / (2 s_j² γ² d)) for numbers, s_j their standard deviation under w;
                        1 or exp(-1 / (2 γ² d)) for the same or another category.

A missing number is near missing ones only. γ and the penalty are those of the least leave-one-out error. The
kernel is a product of functions of one column each, whose expectations are exact.

*Margin*: a probability is a link of a margin (logistic, softmax), and the margin of a linear model or of
boosted trees is read exactly. A linear function of the margins, and another control of its residuals, follow
the probability as far as the link is straight. Models of texts and images have margins, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from limes._arrays import Bools, CellNumbers, Floats, Ints, Reals, are_probabilities, fingerprint, streams
from limes._expectations.exact import ExactExpectation
from limes._expectations.forest import ForestExpectation
from limes._expectations.moments import ExactMoments, Moments
from limes._functions import Bump, Filled, Function, Identity, Lookup
from limes._sampling.controls.control import (
    PENALTIES,
    Control,
    FittedControl,
    SequenceRidge,
    ZeroControl,
    check_numbers,
    evenly_spread,
    fit_on_centers,
    leave_one_out_errors,
    log_odds,
    out_of_sequence,
    ridge_path,
    roots_of_weights,
    share_left,
)
from limes._sampling.least_squares import ControlMoments, error_of_mean
from limes._sampling.pool_fit import CellMoments, ExplainedRows
from limes._threads import LRUCache
from limes.designs._column import ColumnOfLaws, IndicatorColumn, SlopeColumn
from limes.designs._marginals import BinCells, Marginal
from limes.designs._product import Features, ProductDesign, ProductFamily, Rows
from limes.models.forms._base import Reduced, Sum, SumOfProducts
from limes.models.forms._trees import Forest
from limes.models.readers.sklearn_ensembles import histogram

# -- functions of cells --------------------------------------------------------------------------------------

# A cell with at least this many rows has an effect and a slope
_FEWEST_IN_CELL = 8


@dataclass(frozen=True, eq=False)
class ColumnBasis:
    """The functions of one column: cells (p,) with an effect, and those with a slope."""

    law: Marginal
    cells: Bools
    sloped: Bools

    @property
    def size(self) -> int:
        return int(self.cells.sum() + self.sloped.sum())

    def functionals(self, column: ColumnOfLaws) -> tuple[Floats, Floats]:
        """Mean and contrast of every function, (m,) each."""
        effects, slopes = (np.eye(self.cells.size)[live] for live in (self.cells, self.sloped))
        values = np.concatenate([effects, np.zeros_like(slopes)])
        spreads = np.where(self.sloped, self.law.spreads, 0.0)
        moments = np.concatenate([np.zeros_like(effects), slopes * (spreads / self.law.unit)])
        if isinstance(column, SlopeColumn):
            basis = column.basis_of_cells(values, moments)
        else:
            assert isinstance(column, IndicatorColumn)  # noqa: S101 - there is no other kind
            basis = column.basis_of_cells(values)
        mean, contrast = column.mixed(basis)
        return mean[0], contrast[0]


@dataclass(frozen=True, eq=False)
class CellBasis:
    """The m functions of all columns, one column's after the other, of rows x in cells (n, d)."""

    columns: tuple[ColumnBasis, ...]

    @classmethod
    def of(cls, laws: Sequence[Marginal], cells: CellNumbers) -> CellBasis:
        """Choose the functions for a fit to rows in these cells."""
        columns = []
        for law, cell in zip(laws, cells.T, strict=True):
            often = np.bincount(cell, minlength=law.cells.count) >= _FEWEST_IN_CELL
            columns.append(ColumnBasis(law, often, often & (law.spreads > 0)))
        return cls(tuple(columns))

    @cached_property
    def ends(self) -> Ints:
        """End of each column's functions, (d,)."""
        return np.cumsum([column.size for column in self.columns])

    def __call__(self, x: Floats, cells: CellNumbers) -> Floats:
        """Values, (n, m)."""
        values = np.empty((len(x), self.ends[-1]))
        parts = np.split(values, self.ends[:-1], axis=1)
        for column, its, cell, part in zip(self.columns, x.T, cells.T, parts, strict=True):
            if not column.size:
                continue
            effects, slopes = np.flatnonzero(column.cells), np.flatnonzero(column.sloped)
            step = column.law.standardized(its, cell)[:, None]
            np.equal.outer(cell, effects, out=part[:, : effects.size], casting="unsafe")
            np.multiply(np.equal.outer(cell, slopes), step, out=part[:, effects.size :])
        return values

    def tables(self, coef: Floats) -> list[tuple[Floats, Floats]]:
        """Effects and slopes (p, k) of each column's cells by coefficients (m, k)."""
        tables = []
        for column, its in zip(self.columns, np.split(coef, self.ends[:-1]), strict=True):
            effect, slope = np.zeros((2, column.cells.size, coef.shape[1]))
            effect[column.cells], slope[column.sloped] = np.split(its, [column.cells.sum()])
            tables.append((effect, slope))
        return tables

    def sums(self, x: Floats, cells: CellNumbers, coef: Floats) -> Floats:
        """Values times coefficients (m, k), (n, k), by looking up each cell's part, without the values."""
        total = np.zeros((len(x), coef.shape[1]))
        tables = self.tables(coef)
        for column, its, cell, (effect, slope) in zip(self.columns, x.T, cells.T, tables, strict=True):
            total += effect.take(cell, axis=0)
            if column.sloped.any():
                total += slope.take(cell, axis=0) * column.law.standardized(its, cell)[:, None]
        return total

    @cached_property
    def statistics(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every function under the background's law, (m,) each."""
        means, variances = [], []
        for column in self.columns:
            mass = np.exp(column.law.log_mass)
            inside, sloped = mass[column.cells], mass[column.sloped]
            means += [inside, np.zeros(sloped.size)]
            variances += [inside * (1.0 - inside), sloped]
        return np.concatenate(means), np.sqrt(np.concatenate(variances))


# -- additive model ------------------------------------------------------------------------------------------

# Copies of the normal equations that `ridge_path` holds: they, their eigenvectors, and what LAPACK needs
_COPIES = 4


@dataclass(frozen=True, eq=False)
class _Additive(FittedControl):
    design: ProductDesign
    basis: CellBasis
    intercept: Floats
    coef: Floats
    effects: list[CellMoments] = field(default_factory=list)  # once they were needed

    def predict(self, x: Floats) -> Floats:
        return self.intercept + self.basis.sums(x, self.design.locate(x), self.coef)

    def expectation(self, design: ProductDesign) -> ControlMoments:
        mean, contrasts = self.intercept, []
        coefs = np.split(self.coef, self.basis.ends[:-1])
        for column, coordinate, coef in zip(self.basis.columns, design.coordinates, coefs, strict=True):
            average, contrast = column.functionals(coordinate)
            mean = mean + average @ coef
            contrasts.append(contrast @ coef)
        return ControlMoments.exact(mean, np.stack(contrasts) / design.undivided[:, None])

    def around(self, rows: ExplainedRows) -> ControlMoments:
        if not self.effects:
            # under bin weights slopes inside cells have no moments
            self.effects.append(CellMoments.of(rows.family, [its for its, _ in self.basis.tables(self.coef)]))
        mean, coef = self.effects[0].at(rows.cells)
        return ControlMoments.exact(self.intercept + mean, coef)


def additive_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    cells = design.locate(x)
    return fit_effects(design, CellBasis.of(design.laws, cells), x, cells, f)


def fit_effects(
    design: ProductDesign, basis: CellBasis, x: Floats, cells: CellNumbers, f: Floats
) -> FittedControl:
    """Fit answers f (n, k) by functions of the cells (n, d) of rows x."""
    check_numbers(int(basis.ends[-1]), _COPIES)
    return _Additive(design, basis, *ridge_path(basis(x, cells), f))


def additive_out_of_sequence(
    design: ProductDesign, x: Floats, cells: CellNumbers, f: Floats, sequences: int
) -> tuple[Floats, FittedControl]:
    """Values (n, k) of fits without each sequence in turn, each at rows not seen, and the mean of all fits.

    Rows x have cells (n, d). The penalty is the one that predicts the first sequence best.
    """
    basis = CellBasis.of(design.laws, cells)
    check_numbers(1 + int(basis.ends[-1]), sequences)
    values = basis(x, cells)
    center, scale = values.mean(axis=0), values.std(axis=0)
    scale = np.where(scale > 0, scale, np.inf)
    features = np.concatenate([np.ones((len(x), 1)), (values - center) / scale], axis=1)
    ridge, first = SequenceRidge.of(features, f, sequences), slice(len(f) // sequences)

    def share(penalty: float) -> float:
        return share_left((f[first] - features[first] @ ridge.without(0, penalty)).var(axis=0), f)

    fits = ridge.without_each(min(PENALTIES[::2], key=share))
    coef = fits.mean(axis=0)[1:] / scale[:, None]
    intercept = fits.mean(axis=0)[0] - center @ coef
    values = np.asarray(out_of_sequence(features, fits), dtype=np.float64)
    return values, _Additive(design, basis, intercept, coef)


# -- network -----------------------------------------------------------------------------------------------

# Number of units: the first number times the square root of the number of rows, at most the second
_UNITS_PER_ROOT, _MOST_UNITS = 4, 512
# Standard deviation of a function of cells, where units have about 0.7: the ridge prefers what is smooth
_CELLS = 0.2
# That of the indicator of a cell without rows: its probability is the square
_NEVER = 1e-9
# Standard deviations of ω · s(x) that the units are divided among: smooth functions need small ones
_FREQUENCIES = (0.4, 0.7, 1.0)
# Largest number of pairs whose products are functions
_MOST_PAIRS = 128
# Penalty, in units of the number of rows, of the fit whose residuals select these pairs
_FIRST_PENALTY = 1e-3
# Penalties in units of the number of rows
_NETWORK_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Largest number of rows from which columns are scaled
_FOR_SCALES = 4096
# Rows whose units are computed at once
_BLOCK = 8192
# Columns of coefficients from which a product with all values is quicker than to look up each cell's part
_MANY = 32
# For rows of one design: sequences of the fitted rows, sequences of simulated rows, and rows of each of these
_FITTED_SEQUENCES, _SIMULATED_SEQUENCES, _SIMULATED = 3, 8, 2048
# A row by itself fits this many networks, one without each of its sequences, whose time counts for each row
_FITS = 4
_FEWEST_FOR_NETWORK = 96
# Key of their streams
_KEY = 0x756E6974


@dataclass(frozen=True, eq=False)
class Units:
    """Functions of a row: those of its cells, its columns, the random layer, and products of columns."""

    basis: CellBasis
    columns: Ints  # column of the table of each s(x), (m,)
    cells: Ints  # the cell of which it is an indicator; -1 for a number, (m,)
    center: Floats  # (m,)
    scale: Floats  # (m,)
    directions: Reals  # ω, (m, units)
    phases: Reals  # b, (units,)
    pairs: Ints  # pairs of s(x), (p, 2)

    @classmethod
    def of(cls, laws: Sequence[Marginal], x: Floats, cells: CellNumbers, units: int, seed: int) -> Units:
        """Draw the layer for a fit to rows x and their cells (n, d), without products.

        The rows determine centres and scales.
        """
        basis, some = CellBasis.of(laws, cells), evenly_spread(len(x), _FOR_SCALES)
        x, cells = x[some], cells[some]
        rng = np.random.default_rng(seed)
        is_number = np.array([isinstance(law.cells, BinCells) for law in laws])
        numeric = np.flatnonzero(is_number & np.isfinite(x).any(axis=0))
        finite = np.where(np.isfinite(x[:, numeric]), x[:, numeric], np.nan)
        numbers = zip(numeric.tolist(), np.nanmedian(finite, axis=0), np.nanstd(finite, axis=0), strict=True)
        parts = [(j, -1, middle, spread) for j, middle, spread in numbers if spread > 0]
        count = len(parts)  # of columns: a category has several indicators
        for j in np.flatnonzero(~is_number).tolist():
            share = np.bincount(cells[:, j], minlength=laws[j].cells.count) / len(cells)
            spread = np.sqrt((share * (1.0 - share)).sum())
            parts += [(j, b, share[b], spread) for b in np.flatnonzero((share > 0) & (share < 1)).tolist()]
            count += 1
        columns, of_cells, center, scale = np.array(parts, dtype=np.float64).reshape(-1, 4).T
        frequency = np.resize(_FREQUENCIES, units) / np.sqrt(max(count, 1))
        directions = rng.normal(size=(len(parts), units)) * frequency
        return cls(
            basis,
            columns.astype(np.int64),
            of_cells.astype(np.int64),
            center,
            scale,
            directions.astype(np.float32),
            rng.uniform(0.0, 2.0 * np.pi, units).astype(np.float32),
            np.empty((0, 2), dtype=np.int64),
        )

    @property
    def size(self) -> int:
        return 1 + int(self._ends[-1]) + len(self.pairs)

    def __call__(self, x: Floats, cells: CellNumbers) -> Reals:
        """1 and the functions at rows x in these cells (n, d), in their order, in single precision."""
        values = np.empty((len(x), self.size), dtype=np.float32)
        values[:, 0] = 1.0
        of_cells, of_columns, layer, products = np.split(values[:, 1:], self._ends, axis=1)
        of_cells[:] = self.of_cells(x, cells)
        of_columns[:] = self.standard(x, cells)
        np.cos(of_columns @ self.directions + self.phases, out=layer)
        products[:] = self._products(of_columns)
        return values

    def sums(self, x: Floats, cells: CellNumbers, coef: Floats) -> Reals:
        """Values times coefficients (size, k), (n, k), in single precision."""
        if coef.shape[1] >= _MANY:
            return np.asarray(self(x, cells) @ coef.astype(np.float32))
        constant, (of_cells, *others) = coef[0], np.split(coef[1:], self._ends)
        mean, factor = self._scaling
        of_cells = of_cells * factor[:, None]
        columns = self.standard(x, cells)
        layer = columns @ self.directions
        layer += self.phases
        np.cos(layer, out=layer)
        total = self.basis.sums(x, cells, of_cells) + (constant - mean @ of_cells)
        for values, its in zip((columns, layer, self._products(columns)), others, strict=True):
            total += values @ its.astype(np.float32)
        return np.asarray(total, dtype=np.float32)

    def effects(self, coef: Floats) -> list[Floats]:
        """Means in each column's cells of values times coefficients (size, k), without layer and products."""
        of_cells, of_columns, *_ = np.split(coef[1:], self._ends)
        mean, factor = self._scaling
        of_cells = of_cells * factor[:, None]
        tables = [effect for effect, _ in self.basis.tables(of_cells)]
        tables[0] = tables[0] - mean @ of_cells
        for j, b, center, scale, its in zip(
            self.columns.tolist(), self.cells.tolist(), self.center, self.scale, of_columns, strict=True
        ):
            law = self.basis.columns[j].law
            values = law.means if b < 0 else np.arange(law.cells.count) == b
            steps = (values - center) / scale
            tables[j] = tables[j] + np.where(np.isfinite(steps), steps, 0.0)[:, None] * its
        return tables

    def _products(self, columns: Reals) -> Reals:
        return np.asarray(columns[:, self.pairs[:, 0]] * columns[:, self.pairs[:, 1]])

    def with_products(self, x: Floats, cells: CellNumbers, root: Reals, targets: Floats) -> Units:
        """Add products of pairs that improve a fit of effects and slopes to targets (n, k) at rows x.

        The rows, with their cells (n, d), are weighted by root² (n, 1).
        """
        values = replace(self, directions=self.directions[:, :0], phases=self.phases[:0])(x, cells)
        fit = SequenceRidge.of(root * values, root * targets, 1).of_all(_FIRST_PENALTY)
        columns = values[:, values.shape[1] - len(self.columns) :]
        return replace(self, pairs=_strong_pairs(columns, self.columns, root**2 * (targets - values @ fit)))

    @property
    def _ends(self) -> Ints:
        """Ends of the functions of cells, of columns and of the layer, without the constant."""
        return np.cumsum([self.basis.ends[-1], *self.directions.shape])

    @cached_property
    def _scaling(self) -> tuple[Floats, Floats]:
        """Means of the functions of cells, and factors that give them one standard deviation, (m,) each."""
        mean, spread = self.basis.statistics
        # a cell that no row ever hits is left out: divided by its deviation, single precision overflows
        return mean, np.divide(_CELLS, spread, out=np.zeros_like(spread), where=spread > _NEVER)

    def of_cells(self, x: Floats, cells: CellNumbers) -> Floats:
        """The functions of cells alone."""
        mean, factor = self._scaling
        return (self.basis(x, cells) - mean) * factor

    def standard(self, x: Floats, cells: CellNumbers) -> Reals:
        """s(x), (n, m); 0 for a missing number."""
        values = x[:, self.columns]
        at = np.flatnonzero(self.cells >= 0)
        values[:, at] = cells[:, self.columns[at]] == self.cells[at]
        values -= self.center
        values /= self.scale
        values[~np.isfinite(values)] = 0.0
        return values.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Network:
    """Fits without each sequence of rows: coefficients (sequences, size, k) of the units."""

    units: Units
    coef: Floats
    is_logistic: bool
    center: Floats  # what is added to the values, which are in single precision, (k,)

    def out_of_sequence(self, features: Reals) -> Floats:
        """Values (n, k) at the fitted rows, each by the fit without its sequence."""
        return self._link(out_of_sequence(features, self.coef)).astype(np.float64) + self.center

    def mean(self, x: Floats, cells: CellNumbers) -> Floats:
        """Mean over all fits at rows x with these cells (n, d): (n, k)."""
        count, size, k = self.coef.shape
        coef = self.coef.transpose(1, 0, 2).reshape(size, -1)
        means = np.empty((len(x), k))
        for first in range(0, len(x), _BLOCK):
            block = slice(first, first + _BLOCK)
            values = self._link(self.units.sums(x[block], cells[block], coef)).reshape(-1, count, k)
            means[block] = values.mean(axis=1, dtype=np.float64)
        return means + self.center

    def _link(self, values: Reals) -> Reals:
        from scipy.special import expit

        return np.asarray(expit(values) if self.is_logistic else values)


@dataclass(frozen=True, eq=False)
class _NetworkControl(FittedControl):
    network: Network
    design: ProductDesign
    x: Floats  # simulated rows and their features, (n, d) both
    h: Floats

    def predict(self, x: Floats) -> Floats:
        return self.network.mean(x, self.design.locate(x))

    def expectation(self, design: ProductDesign) -> ControlMoments:
        values, used = self.predict(self.x), design.variance > 0
        centred = np.column_stack([np.ones(len(self.h)), self.h[:, used] - design.inclusion[used]])
        parts, f = (a.reshape(_SIMULATED_SEQUENCES, _SIMULATED, -1) for a in (centred, values))
        grams, moments = parts.transpose(0, 2, 1) @ parts, parts.transpose(0, 2, 1) @ f
        place = np.concatenate([[True], used])
        coef, errors = np.zeros((2, place.size, f.shape[2]))
        coef[place] = np.linalg.pinv(grams.sum(axis=0), hermitian=True) @ moments.sum(axis=0)
        errors[place] = error_of_mean(np.linalg.pinv(grams, hermitian=True) @ moments)
        return ControlMoments(coef[0], coef[1:], errors)


def _strong_pairs(columns: Reals, origins: Ints, residuals: Floats) -> Ints:
    """Pairs (p, 2) of columns (n, c) whose products correlate most with residuals (n, k).

    Of m pairs, those with |Σ_i s_ij s_il r_i| > (2 log m Σ_i (s_ij s_il r_i)²)^½. For noise alone fewer than
    one pair exceeds that (Donoho & Johnstone 1994), so that all rows may choose. ``origins`` (c,) are the
    table's columns that the columns are made of.
    """
    others = origins[:, None] < origins
    strength = np.zeros(others.shape)
    for residual in residuals.T.astype(columns.dtype):
        moved = columns * residual[:, None]
        squares = (moved**2).T @ columns**2
        strength = np.maximum(
            strength,
            np.divide((moved.T @ columns) ** 2, squares, out=np.zeros_like(squares), where=squares > 0),
        )
    strength[~others] = 0.0
    order = np.argsort(-strength, axis=None, kind="stable")[:_MOST_PAIRS]
    strong = strength.ravel()[order] > 2.0 * np.log(max(others.sum(), 2))
    return np.stack(np.unravel_index(np.sort(order[strong]), others.shape), axis=1)


def network_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    count = len(x) // _FITTED_SEQUENCES * _FITTED_SEQUENCES
    if count < _FEWEST_FOR_NETWORK:
        return ZeroControl(f.shape[1])
    x, f = x[:count], f[:count]
    cells = design.locate(x)
    units = Units.of(design.laws, x, cells, units_for(count), 0)
    check_numbers(units.size + _MOST_PAIRS, _FITTED_SEQUENCES * _FITS)
    sampler = design.sampler(streams(fingerprint(x), _KEY, _SIMULATED_SEQUENCES))
    simulated, h, _ = sampler.draw(_SIMULATED)
    _, network = fit_network(units, x, cells, f, _FITTED_SEQUENCES)
    return _NetworkControl(network, design, simulated, h)


def units_for(rows: int) -> int:
    return min(_MOST_UNITS, _UNITS_PER_ROOT * int(np.sqrt(rows)))


def fit_network(
    units: Units, x: Floats, cells: CellNumbers, f: Floats, sequences: int
) -> tuple[Floats, Network]:
    """Values (n, k) of fits without each sequence in turn, each at the rows not seen, and all fits.

    Rows x have cells (n, d), equal sequences follow one another. The penalty is the one that predicts the
    first sequence best.
    """
    check_numbers(units.size + _MOST_PAIRS, sequences)
    is_logistic, first = are_probabilities(f, add_up=False), slice(len(f) // sequences)
    center = np.zeros(f.shape[1]) if is_logistic else f.mean(axis=0)
    targets = log_odds(f) if is_logistic else f - center
    root = (roots_of_weights(f) if is_logistic else np.ones((len(f), 1))).astype(np.float32)
    units = units.with_products(x, cells, root, targets)
    features = units(x, cells)
    ridge = SequenceRidge.of(root * features, root * targets, sequences)

    def share(penalty: float) -> float:
        fit = Network(units, ridge.without(0, penalty)[None], is_logistic, center)
        return share_left((f[first] - fit.out_of_sequence(features[first])).var(axis=0), f)

    network = Network(units, ridge.without_each(_valley(_NETWORK_PENALTIES, share)), is_logistic, center)
    return network.out_of_sequence(features), network


def _valley(values: Sequence[float], height: Callable[[float], float]) -> float:
    """Return the value at a local minimum of height, descending from the middle."""
    at = len(values) // 2
    heights = {at: height(values[at])}
    for step in (-1, 1):
        while 0 <= at + step < len(values):
            heights[at + step] = height(values[at + step])
            if heights[at + step] >= heights[at]:
                break
            at += step
    return values[at]


# -- boosted trees -------------------------------------------------------------------------------------------

# Principal directions of the answers that are boosted, each by itself
_MOST_DIRECTIONS = 8
_NEGLIGIBLE = 1e-8
_FEWEST_ROWS = 32
# Trees, leaves of each and learning rate: few rows do not fill many leaves
_ROWS_OF_MANY_LEAVES, _OF_FEW_ROWS, _OF_MANY_ROWS = 8192, (60, 6, 0.15), (120, 15, 0.1)


@dataclass(frozen=True, eq=False)
class _Trees(FittedControl):
    forests: tuple[Forest, ...]  # of single outputs
    directions: Floats  # of the answers, (r, k)
    intercept: Floats

    @cached_property
    def _expectations(self) -> tuple[ForestExpectation, ...]:
        return tuple(ForestExpectation(forest) for forest in self.forests)

    def predict(self, x: Floats) -> Floats:
        return self.intercept + np.stack([f.predict(x) for f in self.forests], axis=1) @ self.directions

    def contributions(self, family: ProductFamily, x: Floats, cells: Ints) -> Floats:
        each = [expectation.contributions(family, x, cells)[1][:, 0] for expectation in self._expectations]
        return reduce(np.add, [its * direction for its, direction in zip(each, self.directions, strict=True)])

    def expectation(self, design: ProductDesign) -> ControlMoments:
        # without its family a design gets a table for this row alone
        single = replace(design, family=None, cells=None)
        return self._along(design, [expectation.moments(single) for expectation in self._expectations])

    def around(self, rows: ExplainedRows) -> ControlMoments:
        # tables that all rows share, where these are not too large
        each = [expectation.reproducible() for expectation in self._expectations]
        if not all(expectation.shares_tables(rows.family) for expectation in each):
            return super().around(rows)
        its = Rows.in_cells(rows.family, rows.cells)
        return self._along(rows.features, [expectation.at(its) for expectation in each])

    def _along(self, design: Features, moments: Sequence[Moments]) -> ControlMoments:
        pairs = list(zip(moments, self.directions, strict=True))
        mean = reduce(np.add, [m.mean[..., None] * direction for m, direction in pairs])
        coef = reduce(np.add, [design.solve(m.gamma)[..., None] * direction for m, direction in pairs])
        return ControlMoments.exact(self.intercept + mean, coef)


def tree_control(
    design: ProductDesign,  # noqa: ARG001 - trees cut by x
    x: Floats,
    f: Floats,
    columns: Ints | None = None,
    boosting: tuple[int, int, float] | None = None,
) -> FittedControl:
    # boosts the answers' principal directions: probabilities of two classes have one. Trees see all columns,
    # or some
    mean = f.mean(axis=0)
    _, sizes, directions = np.linalg.svd(f - mean, full_matrices=False)
    varying = sizes[:_MOST_DIRECTIONS] > _NEGLIGIBLE * max(sizes[0], 1e-300)
    if sizes[0] == 0 or len(x) < _FEWEST_ROWS:
        return ZeroControl(f.shape[1])
    directions = directions[:_MOST_DIRECTIONS][varying]
    its = np.arange(x.shape[1]) if columns is None else columns
    boosting = boosting or (_OF_FEW_ROWS if len(x) < _ROWS_OF_MANY_LEAVES else _OF_MANY_ROWS)
    forests = tuple(_boosted(x, values, its, *boosting) for values in ((f - mean) @ directions.T).T)
    return _Trees(forests, directions, mean)


def share_beyond_trees(f: Floats) -> float:
    """Share of the variance of answers f (n, k) outside the directions that trees boost: they leave it."""
    centred = f - f.mean(axis=0)
    sizes, directions = np.linalg.eigh(centred.T @ centred / len(f))
    outside = np.maximum(sizes, 0.0) * directions**2
    return share_left(outside[:, :-_MOST_DIRECTIONS].sum(axis=1), f)


def _boosted(x: Floats, values: Floats, columns: Ints, trees: int, leaves: int, rate: float) -> Forest:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=trees,
        learning_rate=rate,
        max_leaf_nodes=leaves,
        min_samples_leaf=5,
        early_stopping=False,
        random_state=0,
    )
    # scikit-learn refuses a column without values; a constant one is never split
    filled = np.where(np.isnan(x[:, columns]).all(axis=0), 0.0, x[:, columns])
    # a small table is quicker on one thread, and rows that are explained in parallel would share the cores
    with threadpool_limits(1, user_api="openmp"):
        form = histogram(model.fit(filled, values), "predict", None)
    assert isinstance(form, Forest)  # noqa: S101 - predictions of a regressor
    feature = np.where(form.feature >= 0, columns[form.feature], -1)
    return replace(form, feature=feature, size=x.shape[1])


# -- kernel regression ---------------------------------------------------------------------------------------

# Candidates for γ, centres (fits take centres³, moments centres x columns), and rows on which γ and the
# penalty are chosen
_WIDTHS = (0.7, 1.0, 1.5, 2.5)
_MOST_CENTERS = 768
_MOST_CHOOSING = 400


@dataclass(frozen=True, eq=False)
class _Space:
    """Distances between rows, over the columns that vary."""

    numeric: Bools
    category: Bools
    scale: Floats

    @classmethod
    def from_rows(cls, design: ProductDesign, x: Floats) -> _Space:
        bins = np.array([isinstance(c.marginal.cells, BinCells) for c in design.coordinates])
        scale = np.nanstd(np.where(np.isfinite(x).any(axis=0), x, 0.0), axis=0)
        varies = np.array([np.unique(column).size > 1 for column in x.T])
        return cls(bins & (scale > 0), ~bins & varies, np.where(scale > 0, scale, 1.0))

    @property
    def dimensions(self) -> int:
        return int(self.numeric.sum() + self.category.sum())

    def squares(self, x: Floats, centers: Floats) -> Floats:
        """Squared distances (n, m), infinite between a missing number and another one."""
        from scipy.spatial.distance import cdist

        a, b = (rows[:, self.numeric] / self.scale[self.numeric] for rows in (x, centers))
        finite, finite_center = np.isfinite(a), np.isfinite(b)
        squares = cdist(np.where(finite, a, 0.0), np.where(finite_center, b, 0.0), "sqeuclidean")
        if not (finite.all() and finite_center.all()):
            differ = cdist(finite.astype(np.float64), finite_center.astype(np.float64), "sqeuclidean") > 0
            squares[differ] = np.inf
        for j in np.flatnonzero(self.category):
            one, other = x[:, j, None], centers[None, :, j]
            squares += (one != other) & ~(np.isnan(one) & np.isnan(other))
        return np.asarray(squares)

    def gram(self, squares: Floats, width: float) -> Floats:
        return np.asarray(np.exp(squares * (-0.5 / (width**2 * self.dimensions))))

    def functions(self, centers: Floats, width: float) -> tuple[Function | None, ...]:
        """The kernel's factors, one a column; see `squares`."""
        precision = 1.0 / (width**2 * self.dimensions)
        far = np.exp(-0.5 * precision)
        functions: list[Function | None] = []
        for j, column in enumerate(centers.T):
            missing = np.isnan(column)
            if self.numeric[j]:
                bump = Bump(np.where(missing, 0.0, column), precision / self.scale[j] ** 2)
                functions.append(Filled(bump, (~missing).astype(np.float64), missing.astype(np.float64)))
            elif self.category[j]:
                keys = np.unique(column[~missing])
                values = np.where(column[:, None] == keys, 1.0, far)
                functions.append(Lookup(keys, values, np.where(missing, 1.0, far), np.full(column.size, far)))
            else:
                functions.append(None)
        return tuple(functions)


@dataclass(frozen=True, eq=False)
class _KernelControl(FittedControl):
    trend: Reduced
    bumps: Reduced

    def predict(self, x: Floats) -> Floats:
        return self.trend.predict(x) + self.bumps.predict(x)

    def expectation(self, design: ProductDesign) -> ControlMoments:
        trend, bumps = (ExactExpectation(part).moments(design) for part in (self.trend, self.bumps))
        return ControlMoments.exact(trend.mean + bumps.mean, design.solve(trend.gamma + bumps.gamma))


def kernel_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    space = _Space.from_rows(design, x)
    if len(x) < _FEWEST_ROWS or space.dimensions == 0:
        return ZeroControl(f.shape[1])
    # a linear function of the numbers that are never missing
    read = space.numeric & np.isfinite(x).all(axis=0)
    intercept, slopes = ridge_path(np.where(read, x, 0.0), f)
    functions = tuple(Identity() if one else None for one in read)
    trend = Reduced(Sum(functions, tuple(slopes[:, None]), intercept))
    residuals = f - trend.predict(x)
    centers = x[evenly_spread(len(x), _MOST_CENTERS)]
    some = evenly_spread(len(x), _MOST_CHOOSING)
    width, penalty = _choose_width(space, x[some], residuals[some])
    gram = space.gram(space.squares(x, centers), width)
    center_gram = space.gram(space.squares(centers, centers), width)
    coef = fit_on_centers([(gram, residuals)], center_gram, penalty)
    bumps = SumOfProducts(space.functions(centers, width), coef, np.zeros(f.shape[1]))
    return _KernelControl(trend, Reduced(bumps))


def _choose_width(space: _Space, x: Floats, f: Floats) -> tuple[float, float]:
    """Width and penalty with the least leave-one-out error, each output in units of its variance."""
    squares = space.squares(x, x)
    standard = f / np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
    scores = np.stack([leave_one_out_errors(space.gram(squares, w), standard) for w in _WIDTHS])
    width, penalty = np.unravel_index(np.argmin(scores), scores.shape)
    return _WIDTHS[width], float(PENALTIES[penalty])


# -- margin --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Margin(FittedControl):
    margins: Callable[[Floats], Floats]
    margin_moments: Callable[[Any], Moments]
    intercept: Floats
    coef: Floats
    rest: FittedControl

    def predict(self, x: Floats) -> Floats:
        return self.intercept + _columns(self.margins(x)) @ self.coef + self.rest.predict(x)

    def expectation(self, design: Any) -> ControlMoments:
        its = self.margin_moments(design)
        return self._along(
            design, np.atleast_1d(its.mean), _columns(its.gamma), self.rest.expectation(design)
        )

    def around(self, rows: ExplainedRows) -> ControlMoments:
        each = [self.margin_moments(design) for design in rows.designs()]
        mean, gamma = (
            np.stack(parts)
            for parts in zip(*((np.atleast_1d(its.mean), _columns(its.gamma)) for its in each), strict=True)
        )
        return self._along(rows.features, mean, gamma, self.rest.around(rows))

    def _along(self, features: Features, mean: Floats, gamma: Floats, rest: ControlMoments) -> ControlMoments:
        mean = self.intercept + mean @ self.coef + rest.mean
        return ControlMoments(mean, features.solve(gamma) @ self.coef + rest.coef, rest.errors)


class MarginControl:
    """A control of margins (n,) or (n, m) and their exact expectation; ``rest`` fits the residuals."""

    def __init__(
        self, predict: Callable[[Floats], Floats], expectation: ExactMoments, rest: Control = additive_control
    ) -> None:
        self._predict, self._expectation, self._rest = predict, expectation, rest
        # the fits to all folds share one design
        self._computed: LRUCache[Any, Moments] = LRUCache(1)

    def __call__(self, design: Any, x: Floats, f: Floats) -> FittedControl:
        columns = _columns(self._predict(x))
        intercept, coef = ridge_path(columns, f)
        residuals = f - intercept - columns @ coef
        return _Margin(self._predict, self._moments, intercept, coef, self._rest(design, x, residuals))

    def _moments(self, design: Any) -> Moments:
        return self._computed.get(design, lambda: self._expectation.moments(design))


def _columns(values: Floats) -> Floats:
    return values.reshape(len(values), -1)
