r"""Network control: effects of cells, products of columns and a hidden layer of random units, behind a link.

    h(x) = link(c + Σ_j u_j(x_j) + v · s(x) + Σ_jl m_jl s_j(x) s_l(x) + Σ_u a_u cos(ω_u · s(x) + b_u)),

u_j are effects of cells and slopes inside them (``cell_basis.py``), s(x) the columns in units of their
spread, and indicators of categories. Pairs j, l explain what effects and slopes leave:
among many columns random units hardly meet a single pair. Directions ω and phases b are drawn (Rahimi &
Recht 2007), the coefficients follow by ridge regression. Answers between 0 and 1 are fitted on their log odds
(``odds.py``), with the logistic link.

The fit is linear in its coefficients, so that fits without each sequence of rows cost no more than a solve.
The expectation is simulated on rows that the model does not predict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from limes._arrays import CellNumbers, Floats, Ints, Reals, fingerprint, streams
from limes._expectations.controls.cell_basis import CellBasis
from limes._expectations.controls.control import (
    ControlMoments,
    FittedControl,
    SequenceRidge,
    ZeroControl,
    check_numbers,
    evenly_spread,
    out_of_sequence,
    share_left,
)
from limes._expectations.controls.odds import are_probabilities, log_odds, roots_of_weights
from limes._expectations.residual import student_factors
from limes.designs._marginals import BinCells, Marginal
from limes.designs._product import ProductDesign

# Number of units: the first number times the square root of the number of rows, at most the second
_UNITS_PER_ROOT, _MOST_UNITS = 4, 512
# Standard deviation of a function of cells, where units have about 0.7: the ridge prefers what is smooth
_CELLS = 0.2
# Standard deviations of ω · s(x) that the units are divided among: smooth functions need small ones
_FREQUENCIES = (0.4, 0.7, 1.0)
# Largest number of pairs whose products are functions
_MOST_PAIRS = 128
# Penalty, in units of the number of rows, of the fit whose residuals select these pairs
_FIRST_PENALTY = 1e-3
# Penalties in units of the number of rows
_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Largest number of rows from which columns are scaled
_FOR_SCALES = 4096
# Rows whose units are computed at once
_BLOCK = 8192
# For rows of one design: sequences of the fitted rows, sequences of simulated rows, and rows of each of these
_FITTED_SEQUENCES, _SIMULATED_SEQUENCES, _SIMULATED = 3, 8, 2048
# A row by itself fits this many networks, one without each of its sequences, whose time counts for each row
_FITS = 4
_FEWEST_ROWS = 96
# Key of their streams
_KEY = 0x756E6974


@dataclass(frozen=True, eq=False)
class Units:
    """Functions of a row: those of its cells, its columns, the random layer, and products of columns.

    Attributes
    ----------
    basis
        Functions of cells.
    numeric
        Columns of numbers, (m,).
    center, scale
        Centre and scale of these columns, (m,).
    categories
        Column and cell of each indicator, (q, 2), with its mean and the spread of its column.
    directions, phases
        ω (m + q, units) and b (units,).
    pairs
        Pairs of columns of s(x), (p, 2).
    """

    basis: CellBasis
    numeric: Ints
    center: Floats
    scale: Floats
    categories: Ints
    means: Floats
    spreads: Floats
    directions: Reals
    phases: Reals
    pairs: Ints

    @classmethod
    def of(cls, laws: Sequence[Marginal], x: Floats, cells: CellNumbers, units: int, seed: int) -> Units:
        """Draw the layer for a fit to rows x and their cells (n, d), which determine centres and scales.

        Products are added by `with_products`.
        """
        basis, some = CellBasis.of(laws, cells), evenly_spread(len(x), _FOR_SCALES)
        x, cells = x[some], cells[some]
        rng = np.random.default_rng(seed)
        is_number = np.array([isinstance(law.cells, BinCells) for law in laws])
        numeric = np.flatnonzero(is_number)
        numbers = np.where(np.isfinite(x[:, numeric]), x[:, numeric], np.nan)
        has_values = np.isfinite(numbers).any(axis=0)
        numeric, numbers = numeric[has_values], numbers[:, has_values]
        center, scale = np.nanmedian(numbers, axis=0), np.nanstd(numbers, axis=0)
        live = scale > 0
        categories, means, spreads = [], [], []
        for j in np.flatnonzero(~is_number).tolist():
            share = np.bincount(cells[:, j], minlength=laws[j].cells.count) / len(cells)
            present = np.flatnonzero((share > 0) & (share < 1))
            categories += [(j, b) for b in present]
            means.append(share[present])
            spreads.append(np.full(present.size, np.sqrt((share * (1.0 - share)).sum())))
        inputs, columns = live.sum() + len(categories), live.sum() + len(spreads)
        frequency = np.resize(_FREQUENCIES, units) / np.sqrt(max(columns, 1))
        directions = rng.normal(size=(inputs, units)) * frequency
        return cls(
            basis,
            numeric[live],
            center[live],
            scale[live],
            np.array(categories, dtype=np.int64).reshape(-1, 2),
            np.concatenate([np.empty(0), *means]),
            np.concatenate([np.empty(0), *spreads]),
            directions.astype(np.float32),
            rng.uniform(0.0, 2.0 * np.pi, units).astype(np.float32),
            np.empty((0, 2), dtype=np.int64),
        )

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return 1 + int(self._ends[-1]) + len(self.pairs)

    def __call__(self, x: Floats, cells: CellNumbers) -> Reals:
        """1 and the functions at rows x in these cells (n, d), in their order, in single precision."""
        values = np.empty((len(x), self.size), dtype=np.float32)
        values[:, 0] = 1.0
        of_cells, of_columns, layer, products = np.split(values[:, 1:], self._ends, axis=1)
        mean, factor = self._scaling
        of_cells[:] = (self.basis(x, cells) - mean) * factor
        of_columns[:] = self._columns(x, cells)
        np.cos(self._phases_at(of_columns), out=layer)
        products[:] = self.products(of_columns)
        return values

    def sums(self, x: Floats, cells: CellNumbers, coef: Floats) -> Reals:
        """Values times coefficients (size, k), (n, k), in single precision."""
        constant, (of_cells, *others) = coef[0], np.split(coef[1:], self._ends)
        mean, factor = self._scaling
        of_cells = of_cells * factor[:, None]
        columns = self._columns(x, cells)
        layer = self._phases_at(columns)
        np.cos(layer, out=layer)
        total = self.basis.sums(x, cells, of_cells) + (constant - mean @ of_cells)
        for values, its in zip((columns, layer, self.products(columns)), others, strict=True):
            total += values @ its.astype(np.float32)
        return np.asarray(total, dtype=np.float32)

    def products(self, columns: Reals) -> Reals:
        """Products of s(x) (n, m + q), (n, p)."""
        return np.asarray(columns[:, self.pairs[:, 0]] * columns[:, self.pairs[:, 1]])

    def with_products(self, x: Floats, cells: CellNumbers, root: Reals, targets: Floats) -> Units:
        """Add products to units without any.

        Pairs are those that improve a fit of effects and slopes to targets (n, k) at rows x and their
        cells (n, d), weighted by root² (n, 1).
        """
        values = replace(self, directions=self.directions[:, :0], phases=self.phases[:0])(x, cells)
        fit = SequenceRidge.of(root * values, root * targets, 1).of_all(_FIRST_PENALTY)
        origins = np.concatenate([self.numeric, self.categories[:, 0]])
        columns = values[:, values.shape[1] - len(origins) :]
        return replace(self, pairs=_strong_pairs(columns, origins, root**2 * (targets - values @ fit)))

    def _phases_at(self, columns: Reals) -> Reals:
        """ω · s(x) + b of each unit, (n, units)."""
        phases = np.asarray(columns @ self.directions)
        phases += self.phases
        return phases

    @property
    def _ends(self) -> Ints:
        """Ends of the functions of cells, of columns and of the layer, without the constant."""
        return np.cumsum([self.basis.ends[-1], *self.directions.shape])

    @cached_property
    def _scaling(self) -> tuple[Floats, Floats]:
        """Means of the functions of cells, and factors that give them one standard deviation, (m,) each."""
        mean, spread = self.basis.statistics
        return mean, np.divide(_CELLS, spread, out=np.zeros_like(spread), where=spread > 0)

    def _columns(self, x: Floats, cells: CellNumbers) -> Reals:
        """s(x), (n, m + q)."""
        numbers = (x[:, self.numeric] - self.center) / self.scale
        indicator = cells[:, self.categories[:, 0]] == self.categories[:, 1]
        columns = [np.where(np.isfinite(numbers), numbers, 0.0), (indicator - self.means) / self.spreads]
        return np.concatenate(columns, axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Network:
    """Fits without each sequence of rows: coefficients (sequences, size, k) of the units."""

    units: Units
    coef: Floats
    is_logistic: bool

    def out_of_sequence(self, features: Reals) -> Floats:
        """Values (n, k) at the rows that were fitted, each by the fit without its sequence."""
        return self._behind_link(out_of_sequence(features, self.coef))

    def mean(self, x: Floats, cells: CellNumbers) -> Floats:
        """Mean over all fits at rows x with these cells (n, d): (n, k)."""
        count, size, k = self.coef.shape
        coef = self.coef.transpose(1, 0, 2).reshape(size, -1)
        means = np.empty((len(x), k))
        for first in range(0, len(x), _BLOCK):
            block = slice(first, first + _BLOCK)
            values = self._behind_link(self.units.sums(x[block], cells[block], coef))
            means[block] = values.reshape(-1, count, k).mean(axis=1)
        return means

    def _behind_link(self, values: Reals) -> Floats:
        from scipy.special import expit

        return np.asarray(expit(values) if self.is_logistic else values, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _NetworkControl:
    """The mean of a network's fits to rows of one design, whose features h (n, d) at rows x are simulated."""

    network: Network
    design: ProductDesign
    x: Floats
    h: Floats

    def predict(self, x: Floats) -> Floats:
        return self.network.mean(x, self.design.locate(x))

    def moments(self, design: ProductDesign) -> ControlMoments:
        values, used = self.predict(self.x), design.variance > 0
        centred = np.column_stack([np.ones(len(self.h)), self.h[:, used] - design.inclusion[used]])
        parts, f = (a.reshape(_SIMULATED_SEQUENCES, _SIMULATED, -1) for a in (centred, values))
        grams, moments = parts.transpose(0, 2, 1) @ parts, parts.transpose(0, 2, 1) @ f
        place = np.concatenate([[True], used])
        coef, errors = np.zeros((2, place.size, f.shape[2]))
        coef[place] = np.linalg.pinv(grams.sum(axis=0), hermitian=True) @ moments.sum(axis=0)
        spread = (np.linalg.pinv(grams, hermitian=True) @ moments).std(axis=0, ddof=1)
        errors[place] = spread * student_factors(np.array(len(parts) - 1)) / np.sqrt(len(parts))
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
    """Fit a network to answers f (n, k) at rows x (n, d) of one design."""
    count = len(x) // _FITTED_SEQUENCES * _FITTED_SEQUENCES
    if count < _FEWEST_ROWS:
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
    """Number of units for a fit to this many rows."""
    return min(_MOST_UNITS, _UNITS_PER_ROOT * int(np.sqrt(rows)))


def fit_network(
    units: Units, x: Floats, cells: CellNumbers, f: Floats, sequences: int
) -> tuple[Floats, Network]:
    """Fit answers f (n, k) at rows x and their cells (n, d), equal sequences one after the other.

    Returns the values (n, k) of the fits, each at the sequence that it has not seen, and the fits. The
    penalty is the one that predicts the first sequence best.
    """
    check_numbers(units.size + _MOST_PAIRS, sequences)
    is_logistic, first = are_probabilities(f), slice(len(f) // sequences)
    targets = log_odds(f) if is_logistic else f
    root = (roots_of_weights(f) if is_logistic else np.ones((len(f), 1))).astype(np.float32)
    units = units.with_products(x, cells, root, targets)
    features = units(x, cells)
    ridge = SequenceRidge.of(root * features, root * targets, sequences)

    def share(penalty: float) -> float:
        fit = Network(units, ridge.without(0, penalty)[None], is_logistic)
        return share_left((f[first] - fit.out_of_sequence(features[first])).var(axis=0), f)

    network = Network(units, ridge.without_each(_valley(_PENALTIES, share)), is_logistic)
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
