"""The law of one column, cell by cell.

A column's values lie in cells: bins (q_{b-1}, q_b], categories, or "missing". LIME's surrogate depends only
on the cell; the model depends on the value inside it. A marginal therefore contains the probability of each
cell and the law inside it, a mixture of Gaussian pieces and atoms:

- LIME's quartile bins: one truncated normal a bin, an atom where a bin has no width;
- a categorical column: one atom a cell;
- ``law="empirical"``: the training values of a bin, each an atom;
- no bins at all: one normal piece on the whole line, in the only cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import CellNumbers, Floats, Ints, power_of_two
from limes._functions import Function, Identity, Interval
from limes.designs._gaussian import CentredPieces, GaussianPieces
from limes.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Atoms:
    """P (possibly signed) point masses: categories, zero-width bins, missing values, training values."""

    value: Floats
    weight: Floats

    def expect(self, function: Function) -> Floats:
        """∫ function d(atom), (m, P)."""
        return np.asarray(function(self.value) * self.weight)

    def centred(self, origin: Floats, unit: float = 1.0) -> Atoms:
        """The signed measures (x - origin) / unit · d(atom)."""
        return Atoms(self.value, self.weight * ((self.value - origin) / unit))

    def quantile(self, piece: Ints, level: Floats) -> Floats:  # noqa: ARG002 - an atom has one value
        """Value of each piece."""
        return np.asarray(self.value[piece])

    def times(self, center: Floats | float, precision: float, unit: float = 1.0) -> tuple[Atoms, Floats]:
        """Multiply by exp(-precision ((x - center) / unit)²/2): the atoms, and the log factor of each."""
        return self, -0.5 * precision * ((self.value - center) / unit) ** 2


@dataclass(frozen=True, eq=False)
class BinCells:
    """(edges[b], edges[b+1]], the outer two open-ended; with ``missing`` a last cell for NaN."""

    edges: Floats
    missing: bool = False

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.edges.size - 1 + self.missing

    @property
    def points(self) -> Floats:
        """The ascending numbers that decide a value's cell: the inner edges."""
        return self.edges[1:-1]

    @property
    def of_missing(self) -> int:
        """Cell of a missing value; -1 without one."""
        return self.count - 1 if self.missing else -1

    def locate(self, x: Floats) -> Ints:
        """Cell of each value (n,) -> (n,); -1 for a missing value without a cell."""
        cell = np.searchsorted(self.points, x, side="left")
        return np.where(np.isnan(x), self.of_missing, cell)


@dataclass(frozen=True, eq=False)
class Levels:
    """One cell a value; NaN is a value like any other. Values ascend, NaN comes last."""

    values: Floats

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.values.size

    @property
    def points(self) -> Floats:
        """The ascending numbers that decide a value's cell: the levels."""
        return self.values[~np.isnan(self.values)]

    @property
    def of_missing(self) -> int:
        """Cell of a missing value; -1 without one."""
        return self.count - 1 if np.isnan(self.values[-1:]).any() else -1

    def locate(self, x: Floats) -> Ints:
        """Cell of each value (n,) -> (n,); -1 for a value that is no level."""
        cell = np.minimum(np.searchsorted(self.values, x, side="left"), self.count - 1)
        value = self.values[cell]
        return np.where((value == x) | (np.isnan(value) & np.isnan(x)), cell, -1)


Cells = BinCells | Levels


@dataclass(frozen=True, eq=False)
class Marginal:
    """The law of one column.

    Attributes
    ----------
    cells
        The p cells into which the column is cut.
    log_mass
        log P(cell), (p,), up to a constant.
    measures
        Laws inside the cells; weights add up to 1 in each cell.
    owners
        The cell of each piece of the measures, in their order.
    """

    cells: Cells
    log_mass: Floats
    measures: tuple[GaussianPieces | Atoms, ...]
    owners: Ints

    def expect(self, function: Function) -> Floats:
        """E[function | cell], (m, p)."""
        return self._by_cell(self.measures, function)

    def expect_centred(self, function: Function) -> Floats:
        """E[(x - mean of the cell) / unit · function | cell], (m, p)."""
        origins = self._split(self.means[self.owners])
        centred = [m.centred(o, self.unit) for m, o in zip(self.measures, origins, strict=True)]
        return self._by_cell(centred, function)

    @cached_property
    def unit(self) -> float:
        """Approximate spread of the column's values: a power of two, in which squares are finite."""
        ends = np.concatenate([_ends(measure) for measure in self.measures])
        ends = ends[np.isfinite(ends)]
        return float(power_of_two(0.5 * ends.max() - 0.5 * ends.min())) if ends.size else 1.0

    @cached_property
    def means(self) -> Floats:
        """E[x | cell], (p,)."""
        return np.asarray(self.expect(Identity())[0])

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviation of x inside each cell, (p,); NaN without values."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(self.unit * self.expect_centred(Identity())[0]))

    def standardized(self, x: Floats, cell: CellNumbers) -> Floats:
        """Standard deviations by which x (n,) exceeds the mean of its ``cell`` (n,); 0 in points."""
        spread = self.spreads[cell]
        return np.divide(x - self.means[cell], spread, out=np.zeros_like(spread), where=spread > 0)

    @cached_property
    def drifts(self) -> Floats:
        """E[(x - rounded mean of the cell) / unit | cell], (p,)."""
        return np.asarray(self.expect_centred(_EVERYWHERE)[0])

    @property
    def is_point(self) -> bool:
        """Whether the column has a single value."""
        return self.owners.size == 1 and isinstance(self.measures[0], Atoms)

    def reweighted(self, factors: Sequence[tuple[GaussianPieces | Atoms, Floats]]) -> Marginal:
        """Return the marginal of multiplied pieces, given the products and the log mass lost by each."""
        log_piece = np.concatenate([log_factor + _log(measure.weight) for measure, log_factor in factors])
        (weight,), (log_cell,) = self.normalized(log_piece[None])
        weights = self._split(weight)
        measures = tuple(
            replace(measure, weight=weight) for (measure, _), weight in zip(factors, weights, strict=True)
        )
        return Marginal(self.cells, self.log_mass + log_cell, measures, self.owners)

    def normalized(self, log_piece: Floats) -> tuple[Floats, Floats]:
        """Return weights of pieces (n, P), which add up to 1 in each cell, and log sums of cells (n, p)."""
        order, starts = self.order
        owner, ordered = self.owners[order], log_piece[:, order]
        largest = np.maximum.reduceat(ordered, starts, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # cells without mass
            ratios = np.nan_to_num(np.exp(ordered - largest[:, owner]))
            log_cell = largest + np.log(np.add.reduceat(ratios, starts, axis=1))
        share = np.exp(ordered - log_cell[:, owner])
        # the logarithms may be so large that they lose digits: weights must still add up to 1
        share /= np.add.reduceat(share, starts, axis=1)[:, owner]
        weight = np.empty_like(share)
        weight[:, order] = share
        return weight, log_cell

    def draw(self, level: Floats) -> tuple[Floats, Ints]:
        """Values x and their cells at levels in (0, 1), by the inverse distribution function."""
        cell, inside = split_level(level, np.exp(self.log_mass))
        return self.quantile(cell, inside), cell

    def quantile(self, cell: Ints, level: Floats) -> Floats:
        """Inverse distribution function inside cells, at levels, both (n,)."""
        owner, share, cumulative = self._shares
        # cell + distribution function ascends over all pieces, so one search finds the piece of every level
        rank = np.searchsorted(owner + cumulative, cell + level, side="right")
        last = np.searchsorted(owner, cell, side="right") - 1
        rank = np.minimum(rank, last)
        inside = (level - (cumulative[rank] - share[rank])) / share[rank]
        return self._quantile_of(self.order[0][rank], np.clip(inside, 0.0, 1.0))

    @cached_property
    def _shares(self) -> tuple[Ints, Floats, Floats]:
        """Cell, share of the cell and cumulative share of the pieces, in the order of their cells."""
        order, _ = self.order
        owner = self.owners[order]
        share = np.concatenate([m.weight for m in self.measures])[order]
        total = np.cumsum(share)
        first = np.searchsorted(owner, owner)
        return owner, share, total - total[first] + share[first]

    def _quantile_of(self, piece: Ints, level: Floats) -> Floats:
        x = np.empty(level.shape)
        first = 0
        for measure in self.measures:
            size = measure.weight.size
            inside = (piece >= first) & (piece < first + size)
            x[inside] = measure.quantile(piece[inside] - first, level[inside])
            first += size
        return x

    def _by_cell(
        self, measures: Sequence[GaussianPieces | CentredPieces | Atoms], function: Function
    ) -> Floats:
        pieces = np.concatenate([m.expect(function) for m in measures], axis=1)
        order, starts = self.order
        pieces = pieces[:, order]
        return pieces if order.size == starts.size else np.add.reduceat(pieces, starts, axis=1)

    @cached_property
    def order(self) -> tuple[Ints, Ints]:
        """Pieces in the order of their cells, and the position of each cell's first."""
        order = np.argsort(self.owners, kind="stable")
        return order, np.searchsorted(self.owners[order], np.arange(self.cells.count))

    def _split(self, per_piece: Floats) -> list[Floats]:
        sizes = [m.weight.size for m in self.measures]
        return np.split(per_piece, np.cumsum(sizes)[:-1])


def marginal(
    cells: Cells,
    mass: ArrayLike,
    parts: Sequence[tuple[GaussianPieces | Atoms, Ints]],
) -> Marginal:
    """Assemble a marginal from laws and the cells that own their pieces.

    Raises
    ------
    InputError
        If a cell has no law, or if masses are negative, not finite or all zero.
    """
    mass = np.asarray(mass, dtype=np.float64)
    if not (np.isfinite(mass).all() and (mass >= 0).all() and mass.sum() > 0):
        raise InputError(f"cell frequencies must be >= 0, finite and not all zero; got {mass.tolist()}")
    owners = np.concatenate([owner for _, owner in parts])
    if not np.array_equal(np.unique(owners), np.arange(cells.count)):
        raise InputError("every cell needs a law inside it")
    return Marginal(cells, _log(mass / mass.sum()), tuple(m for m, _ in parts), owners)


_EVERYWHERE = Interval(np.array([-np.inf]), np.array([np.inf]), np.array([True]))


def split_level(level: Floats, probability: Floats) -> tuple[Ints, Floats]:
    """Split a number in (0, 1) into the cell and, from the remainder, the level inside the cell."""
    share = probability / probability.sum()
    upper = np.cumsum(share)
    upper[-1] = max(upper[-1], 1.0)
    cell = np.searchsorted(upper, level, side="right")
    inside = (level - (upper[cell] - share[cell])) / share[cell]
    return cell, np.clip(inside, 0.0, 1.0)


def _ends(measure: GaussianPieces | Atoms) -> Floats:
    """Ends of the region where a measure has its mass."""
    if isinstance(measure, Atoms):
        return measure.value
    return np.concatenate([measure.anchor + measure.scale * side for side in measure.reach])


def _log(x: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(x)
