"""The law of one column, cell by cell, learnt from a background or stated by statistics.

A column's values lie in cells: bins (q_{b-1}, q_b], categories, or "missing". LIME's surrogate depends only
on the cell; the model depends on the value inside it. A marginal therefore contains the probability of each
cell and the law inside it, a mixture of Gaussian pieces and atoms:

- LIME's quartile bins: one truncated normal a bin, an atom where a bin has no width;
- a categorical column: one atom a cell;
- ``law="empirical"``: the training values of a bin, each an atom;
- no bins at all: one normal piece on the whole line, in the only cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._arrays import Bools, CellNumbers, Floats, Ints, float_array, mean_and_std, power_of_two
from limes._functions import BoxesOfTuples, Function, Identity, by_category, texture
from limes._threads import LRUCache
from limes._tuples import Tuples
from limes.designs._condensed import CellPoints, ManyAtoms
from limes.designs._gaussian import CentredPieces, GaussianPieces
from limes.exceptions import InputError

# Number of cells that a byte can distinguish
_BYTE = 256
# Atoms of a law from which on sums over them are taken over fewer points, and functions that are kept
_MANY_ATOMS, _CACHED = 64, 16
# Bytes of numbers of background rows in cells and boxes of tuples that are kept, at most
COUNTED = 1 << 27
# A function (n,) -> (m, n) whose integrals show whether a quadrature is fine enough
Waves = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Atoms:
    """P (possibly signed) point masses: categories, zero-width bins, missing values, training values."""

    value: Floats
    weight: Floats

    @property
    def mass(self) -> Floats:
        return self.weight

    def expect(self, function: Function) -> Floats:
        return np.asarray(function(self.value) * self.weight)

    @classmethod
    def joined(cls, many: Sequence[Atoms]) -> Atoms:
        """The atoms of several columns, one column's after the other's."""
        return cls(np.concatenate([its.value for its in many]), np.concatenate([its.weight for its in many]))

    def take(self, at: Bools) -> Atoms:
        return Atoms(self.value[at], self.weight[at])

    def centred(self, origin: Floats, unit: Floats | float = 1.0) -> Atoms:
        return Atoms(self.value, self.weight * ((self.value - origin) / unit))

    def quantile(self, piece: Ints, level: Floats) -> Floats:  # noqa: ARG002 - an atom has one value
        return np.asarray(self.value[piece])

    def times(self, center: Floats | float, precision: float, unit: float = 1.0) -> tuple[Atoms, Floats]:
        """Multiply by exp(-precision ((x - center) / unit)²/2): the atoms, and the log factor of each."""
        return self, -0.5 * precision * ((self.value - center) / unit) ** 2


@dataclass(frozen=True, eq=False)
class BinCells:
    """(edges[b], edges[b+1]], the outer two open-ended; with ``missing`` a last cell for NaN.

    ``coded`` says whether the first and the last bin hold codes that stand for missing values.
    """

    edges: Floats
    missing: bool = False
    coded: tuple[bool, bool] = (False, False)

    @property
    def of_codes(self) -> list[int]:
        """Bins that hold codes of missing values."""
        return [b for b, is_coded in zip((0, self.edges.size - 2), self.coded, strict=True) if is_coded]

    @property
    def count(self) -> int:
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
        return self.values.size

    @property
    def points(self) -> Floats:
        return self.values[~np.isnan(self.values)]

    @property
    def of_missing(self) -> int:
        return self.count - 1 if np.isnan(self.values[-1:]).any() else -1

    def locate(self, x: Floats) -> Ints:
        cell = np.minimum(np.searchsorted(self.values, x, side="left"), self.count - 1)
        value = self.values[cell]
        return np.where((value == x) | (np.isnan(value) & np.isnan(x)), cell, -1)


@dataclass(frozen=True, eq=False)
class TupleCells:
    """Combinations of the cells of a group's columns; the last cell is for those that do not occur."""

    tuples: Tuples
    columns: tuple[Cells, ...]  # of each column of the group
    combinations: Ints  # (p, m), in ascending order

    @property
    def count(self) -> int:
        return len(self.combinations) + 1

    @property
    def new(self) -> int:
        """The cell of combinations that do not occur."""
        return len(self.combinations)

    @property
    def points(self) -> Floats:
        """None: codes do not decide by their size."""
        return np.zeros(0)

    @property
    def of_missing(self) -> int:
        return -1

    def locate(self, x: Floats) -> Ints:
        """Cell of each code (n,) -> (n,)."""
        if x.size and x.max() < self.tuples.size:
            return np.asarray(self.of_tuples[x.astype(np.int64)])
        return self._located(x)

    def _located(self, x: Floats) -> Ints:
        cells = np.ascontiguousarray(self._cells_of(self.tuples.decode(x)), dtype=np.int64)
        places, new = self._places, self.new
        return np.array([places.get(row.tobytes(), new) for row in cells], dtype=np.int64)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        """The cell of each combination, by its bytes."""
        rows = np.ascontiguousarray(self.combinations, dtype=np.int64)
        return {row.tobytes(): cell for cell, row in enumerate(rows)}

    @cached_property
    def of_tuples(self) -> Ints:
        """The cell of each of the background's tuples, (T,)."""
        return self._located(np.arange(float(self.tuples.size)))

    @cached_property
    def rows(self) -> Floats:
        """Number of background rows in each cell, (p + 1,)."""
        return np.asarray(np.bincount(self.of_tuples, self.tuples.counts, self.count), dtype=np.float64)

    def tuples_in(self, cell: int) -> Ints:
        """The background's tuples in a cell, ascending."""
        order, starts = self._by_cell
        return order[starts[cell] : starts[cell + 1]]

    @cached_property
    def _by_cell(self) -> tuple[Ints, Ints]:
        """The background's tuples by cells, (T,), and where those of each cell begin and end, (p + 2,)."""
        order = np.argsort(self.of_tuples, kind="stable")
        return order, np.searchsorted(self.of_tuples[order], np.arange(self.count + 1))

    @cached_property
    def counts(self) -> LRUCache[int, tuple[BoxesOfTuples, NDArray[np.uint32]]]:
        """Boxes, and the numbers of background rows in them and in each cell, by the boxes' identity."""
        return LRUCache(_CACHED, COUNTED)

    def _cells_of(self, values: Floats) -> Ints:
        """Cells of the columns of tuples (n, m)."""
        pairs = zip(self.columns, values.T, strict=True)
        return np.stack([cells.locate(column) for cells, column in pairs], axis=1)


Cells = BinCells | Levels | TupleCells
Measure = GaussianPieces | Atoms


class Sides(NamedTuple):
    """V laws of cells, each with one of its cells taken apart."""

    inside: Floats  # (V,), log P(the cell) up to a constant
    rest: Floats  # (V,), that of all others
    elsewhere: Floats  # (V, p), the law of these


def sides(log_mass: Floats, cell: Ints) -> Sides:
    """Take cells (V,) apart from laws (p,) or (V, p)."""
    others = np.broadcast_to(log_mass, (cell.size, log_mass.shape[-1])).copy()
    rows = np.arange(cell.size)
    inside = others[rows, cell]
    others[rows, cell] = -np.inf
    rest = np.logaddexp.reduce(others, axis=1)
    varies = rest > -np.inf
    elsewhere = np.exp(others - np.where(varies, rest, 0.0)[:, None])
    elsewhere /= np.where(varies, elsewhere.sum(axis=1), 1.0)[:, None]
    return Sides(inside, rest, elsewhere)


@dataclass(frozen=True, eq=False)
class Marginal:
    """The law of one column."""

    cells: Cells  # the p cells into which the column is cut
    log_mass: Floats  # (p,), log P(cell) up to a constant
    measures: tuple[Measure, ...]  # laws inside the cells; weights add up to 1 in each cell
    owners: Ints  # the cell of each piece of the measures, in their order

    @cached_property
    def laws(self) -> Laws:
        """The law as the only one of a column."""
        return Laws(self, self.log_mass[None], self.measures)

    def expect(self, function: Function) -> Floats:
        return np.asarray(self.laws.expect(function)[:, 0])

    @cached_property
    def all_cells(self) -> Ints:
        return np.arange(self.log_mass.size)

    @cached_property
    def sides(self) -> Sides:
        """Return what is inside and outside of each cell, under any further weight of the others."""
        return sides(self.log_mass, self.all_cells)

    @property
    def unit(self) -> float:
        return float(self.laws.unit[0])

    @property
    def means(self) -> Floats:
        return np.asarray(self.laws.means[0])

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviation of x inside each cell, (p,); NaN without values."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(self.unit * self.laws.expect_centred(Identity())[0, 0]))

    def standardized(self, x: Floats, cell: CellNumbers) -> Floats:
        """Standard deviations by which x (n,) exceeds the mean of its ``cell`` (n,); 0 in points."""
        spread = self.spreads[cell]
        return np.divide(x - self.means[cell], spread, out=np.zeros_like(spread), where=spread > 0)

    @property
    def is_point(self) -> bool:
        """Whether the column has a single value."""
        return self.owners.size == 1 and isinstance(self.measures[0], Atoms)

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
        if self.has_one_piece_a_cell:
            return self._of_pieces(self.order[0][cell], level)
        # cell + distribution function ascends over all pieces, so one search finds the piece of every level
        rank = np.searchsorted(owner + cumulative, cell + level, side="right")
        last = np.searchsorted(owner, cell, side="right") - 1
        rank = np.minimum(rank, last)
        inside = np.clip((level - (cumulative[rank] - share[rank])) / share[rank], 0.0, 1.0)
        return self._of_pieces(self.order[0][rank], inside)

    def _of_pieces(self, piece: Ints, inside: Floats) -> Floats:
        """Values at levels inside pieces, both (n,)."""
        if len(self.measures) == 1:
            return self.measures[0].quantile(piece, inside)
        x, first = np.empty(inside.shape), 0
        for measure in self.measures:
            its = (piece >= first) & (piece < first + measure.weight.size)
            x[its] = measure.quantile(piece[its] - first, inside[its])
            first += measure.weight.size
        return x

    @cached_property
    def has_one_piece_a_cell(self) -> bool:
        """Whether the level inside a cell is that inside a piece."""
        return self.owners.size == self.cells.count and all((m.weight == 1.0).all() for m in self.measures)

    @cached_property
    def _shares(self) -> tuple[Ints, Floats, Floats]:
        """Cell, share of the cell and cumulative share of the pieces, in the order of their cells."""
        order, _ = self.order
        owner = self.owners[order]
        share = np.concatenate([m.weight for m in self.measures])[order]
        total = np.cumsum(share)
        first = np.searchsorted(owner, owner)
        return owner, share, total - total[first] + share[first]

    @cached_property
    def order(self) -> tuple[Ints, Ints]:
        """Pieces in the order of their cells, and the position of each cell's first."""
        order = np.argsort(self.owners, kind="stable")
        return order, np.searchsorted(self.owners[order], np.arange(self.cells.count))

    def split(self, per_piece: Any) -> list[Any]:
        """Cut (..., P) into the parts of the measures."""
        if len(self.measures) == 1:
            return [per_piece]
        sizes = [m.weight.size for m in self.measures]
        return np.split(per_piece, np.cumsum(sizes)[:-1], axis=-1)


class LawPoints(NamedTuple):
    """K points that represent laws in integrals; the ends of a law are among them, with weights of 0."""

    law: Ints  # (K,), ascending
    cell: Ints
    x: Floats
    weight: Floats  # in the law of the cell


@dataclass(frozen=True, eq=False)
class Laws:
    """V laws of one column that have the pieces of one marginal: those at V rows, each weighted around it.

    Numbers of a law are computed from it alone, and added up in one order: they are the same to the last bit
    whatever the other laws.
    """

    marginal: Marginal
    log_mass: Floats  # (V, p), log P(cell) up to a constant
    measures: tuple[Measure, ...]  # P pieces a law, one law after the other; weights add up to 1 in each cell

    @property
    def size(self) -> int:
        return len(self.log_mass)

    def expect(self, function: Function) -> Floats:
        """E[function | cell], (m, V, p)."""
        atoms = self.many_atoms
        if atoms is None:
            return self._by_cell([measure.expect(function) for measure in self.measures])
        # the same function is the same object, which the cache keeps alive
        return self._expected.get(id(function), lambda: (function, self._over_points(atoms, function)))[1]

    def _over_points(self, atoms: ManyAtoms, function: Function) -> Floats:
        sums = atoms.expect(function)
        for measure, owner in zip(self.measures, self.marginal.split(self.marginal.owners), strict=True):
            if not isinstance(measure, Atoms):
                sums[:, owner] += measure.expect(function)
        return sums[:, None]

    @cached_property
    def many_atoms(self) -> ManyAtoms | None:
        """The atoms of a law that rows share, where they are many; laws of one row are as in a batch."""
        if self.measures is not self.marginal.measures or self.marginal.owners.size <= _MANY_ATOMS:
            return None
        parts = zip(self.measures, self.marginal.split(self.marginal.owners), strict=True)
        each = [(m.value, m.weight, owner) for m, owner in parts if isinstance(m, Atoms)]
        if not each:
            return None
        x, weight, cell = map(np.concatenate, zip(*each, strict=True))
        order = np.lexsort((x, cell))
        return ManyAtoms(CellPoints(x[order], weight[order], cell[order]), self.marginal.cells.count)

    @cached_property
    def _expected(self) -> LRUCache[int, tuple[Function, Floats]]:
        return LRUCache(_CACHED)

    def expect_centred(self, function: Function) -> Floats:
        """E[(x - mean of the cell) / unit · function | cell], (m, V, p)."""
        return self._by_cell([measure.expect(function) for measure in self._centred])

    def _by_cell(self, pieces: Sequence[Floats]) -> Floats:
        order, starts = self.marginal.order
        if order.size == 1:
            return pieces[0][:, :, None]
        parts = [part.reshape(len(part), self.size, part.shape[1] // self.size) for part in pieces]
        each = np.concatenate(parts, axis=2)[:, :, order]
        return each if order.size == starts.size else np.add.reduceat(each, starts, axis=2)

    @cached_property
    def _centred(self) -> list[CentredPieces | Atoms]:
        origins = self.marginal.split(self.means[:, self.marginal.owners])
        return [
            measure.centred(origin.ravel(), np.repeat(self.unit, origin.shape[1]))
            for measure, origin in zip(self.measures, origins, strict=True)
        ]

    @cached_property
    def means(self) -> Floats:
        """E[x | cell], (V, p)."""
        return np.asarray(self.expect(Identity())[0])

    @cached_property
    def drifts(self) -> Floats:
        """E[(x - rounded mean of the cell) / unit | cell], (V, p)."""
        return np.asarray(self._by_cell([measure.mass[None] for measure in self._centred])[0])

    @cached_property
    def unit(self) -> Floats:
        """Approximate spread of x, powers of two in which squares are finite, (V,)."""
        ends = [end.reshape(self.size, -1) for measure in self.measures for end in ends_of_pieces(measure)]
        stacked = np.concatenate(ends, axis=1)
        finite = np.isfinite(stacked)
        most, least = (pick(stacked, axis=1, where=finite, initial=end) for pick, end in _EXTREMES)
        return power_of_two(np.where(finite.any(axis=1), 0.5 * most - 0.5 * least, 1.0))

    def points(self, function: Function, waves: Waves) -> LawPoints:
        """Points that integrate g(function(x)) as smooth as ``waves``."""
        parts = []
        for measure, owner in zip(self.measures, self.marginal.split(self.marginal.owners), strict=True):
            piece, x, weight = _points_of(measure, function, waves)
            law, place = np.divmod(piece, owner.size)
            parts.append((law, owner[place], x, weight))
        law, *others = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(law, kind="stable")
        return LawPoints(law[order], *(each[order] for each in others))


_EXTREMES = ((np.max, -np.inf), (np.min, np.inf))


def ends_of_pieces(measure: Measure) -> list[Floats]:
    """Ends of the region where each piece has its mass."""
    if isinstance(measure, Atoms):
        return [measure.value]
    return [measure.anchor + measure.scale * side for side in measure.reach]


def _points_of(measure: Measure, function: Function, waves: Waves) -> tuple[Ints, Floats, Floats]:
    """Piece, value and weight of points, (K,) each."""
    breaks, _, panels = texture(function)
    pieces = np.arange(measure.weight.size)
    if isinstance(measure, Atoms):
        return pieces, measure.value, measure.weight
    if by_category(function):
        measure.expect(function)  # raises if the function is a lookup and the law has a density
    inner, inside, weight = measure.points(waves, breaks, panels)
    piece, x = np.concatenate([inner, pieces, pieces]), np.concatenate([inside, *ends_of_pieces(measure)])
    order = np.argsort(piece, kind="stable")
    return piece[order], x[order], np.concatenate([weight, np.zeros(2 * pieces.size)])[order]


def marginal(cells: Cells, mass: ArrayLike, parts: Sequence[tuple[Measure, Ints]]) -> Marginal:
    """Assemble a marginal of laws and the cells of their pieces; raise InputError if they are no law."""
    mass = np.asarray(mass, dtype=np.float64)
    if not (np.isfinite(mass).all() and (mass >= 0).all() and mass.sum() > 0):
        raise InputError(f"cell frequencies must be >= 0, finite and not all zero; got {mass.tolist()}")
    owners = np.concatenate([owner for _, owner in parts])
    if not np.array_equal(np.unique(owners), np.arange(cells.count)):
        raise InputError("every cell needs a law inside it")
    with np.errstate(divide="ignore"):
        return Marginal(cells, np.log(mass / mass.sum()), tuple(m for m, _ in parts), owners)


def split_level(level: Floats, probability: Floats) -> tuple[Ints, Floats]:
    """Split a number in (0, 1) into the cell and, from the remainder, the level inside the cell."""
    upper, share = level_shares(probability)
    cell = np.searchsorted(upper, level, side="right")
    inside = (level - (upper[cell] - share[cell])) / share[cell]
    return cell, np.clip(inside, 0.0, 1.0)


def level_shares(probability: Floats) -> tuple[Floats, Floats]:
    """Upper ends of the levels of cells, and shares of these, (..., p) each."""
    share = probability / probability.sum(axis=-1, keepdims=True)
    upper = np.cumsum(share, axis=-1)
    upper[..., -1] = np.maximum(upper[..., -1], 1.0)
    return upper, share


# -- learnt, or stated ---------------------------------------------------------------------------------------

_Part = tuple[GaussianPieces | Atoms, Ints]


@dataclass(frozen=True, eq=False)
class BinStatistics:
    """Statistics of a column without its values: the law inside bin b is a truncated normal.

    Parameters
    ----------
    edges
        (p + 1,) with both ends; the outer two may be infinite.
    means, stds
        (p,) of the values inside the bins. A bin with std 0 or without width is a point mass.
    frequencies
        (p,) non-negative; equal by default.
    values, shares
        (m,) distinct values of the column and their shares, equal by default, which contributions rest on: in
        a bin they are weighted by their shares, and bins by ``frequencies``. Without them contributions rest
        on the truncated normals, as coefficients do.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> age = limes.designs.BinStatistics([0, 40, 99], [30, 60], [5, 9], [0.7, 0.3])
    >>> explainer = limes.TabularExplainer(lambda X: X[:, 0], np.array([[30.0], [60.0]]), bins=[age])
    >>> explainer([20.0]).conditions
    (('x0 <= 40',),)
    """

    edges: Sequence[float] | Floats
    means: Sequence[float] | Floats
    stds: Sequence[float] | Floats
    frequencies: Sequence[float] | Floats = ()
    values: Sequence[float] | Floats = ()
    shares: Sequence[float] | Floats = ()

    def law_of_values(self, law: Marginal) -> Marginal:
        """Return the ``law`` of the column with the distinct values in its cells, if there are any.

        Raises
        ------
        InputError
            If values and shares are no law of distinct values.
        """
        values, shares = (float_array(name, getattr(self, name), 1) for name in ("values", "shares"))
        if not values.size:
            return law
        shares = shares if shares.size else np.ones(values.size)
        if shares.shape != values.shape or not np.isfinite(values).all() or not (shares > 0).all():
            raise InputError(
                f"{values.size} values need as many finite shares > 0, or none, and must be finite themselves"
            )
        order = np.argsort(values)
        return _of_shares(law, values[order], shares[order])

    def marginal(self) -> Marginal:
        """Return the law of the column.

        Raises
        ------
        InputError
            If lengths disagree, edges descend, or a number is not finite.
        """
        return _from_statistics("", self)


def binned(
    x: Floats,
    edges: Floats,
    *,
    law: str = "truncnorm",
    coded: tuple[bool, bool] = (False, False),
    ends: tuple[float, float] | None = None,
) -> Marginal:
    """The law of a numeric column cut at edges (p + 1,), the in-bin laws learnt from values (n,).

    Bins that are ``coded`` hold codes, which have no values between them; beside these, laws of values reach
    to their ``ends``, and not to the codes.
    """
    if law not in LAWS:
        raise InputError(f"law must be one of {sorted(LAWS)}, got {law!r}")
    missing = bool(np.isnan(x).any())
    cells = BinCells(edges, missing, coded)  # missing values are an atom in an extra cell
    owner = cells.locate(x)
    mass = np.bincount(owner, minlength=cells.count)
    # numbers of few digits are sorted many times faster
    digits = owner.astype(np.uint8) if cells.count <= _BYTE else owner
    groups = np.split(x[np.argsort(digits, kind="stable")], np.cumsum(mass)[:-1])
    parts = []
    spread, empty = [], []
    for b, inside in enumerate(groups[: edges.size - 1]):
        if inside.size == 0:
            empty.append(b)
        elif inside.min() == inside.max():
            parts.append(_atoms(inside[:1], b))  # all its values are equal
        elif b in cells.of_codes:
            parts.append(_empirical([inside], np.array([b]), edges))
        else:
            spread.append(b)
    if spread:
        parts.append(LAWS[law]([groups[b] for b in spread], np.array(spread), _reach(edges, coded, ends)))
    if empty:  # of probability 0, and uniform for rows that fall into it all the same
        if not np.isfinite([edges[empty], edges[1:][empty]]).all():
            raise InputError(f"edges {edges.tolist()}: a bin without values needs two finite ends")
        parts.append(_flat(np.array(empty), edges[empty], edges[1:][empty]))
    if missing:
        parts.append(_atoms(np.array([np.nan]), cells.count - 1))
    return marginal(cells, mass, parts)


def _reach(edges: Floats, coded: tuple[bool, bool], ends: tuple[float, float] | None) -> Floats:
    """Edges of the laws: values beside codes end where values do."""
    if ends is None:
        return edges
    reach = edges.copy()
    for place, end, is_coded in zip((1, -2), ends, coded, strict=True):
        reach[place] = end if is_coded else reach[place]
    return reach


def of_values(law: Marginal, x: Floats) -> Marginal:
    """The law with the values (n,) that it was learnt from inside its cells: atoms, with their shares."""
    values, counts = np.unique(x, return_counts=True)  # missing values are one, the last
    return _of_shares(law, values, counts.astype(np.float64))


def _of_shares(law: Marginal, values: Floats, shares: Floats) -> Marginal:
    """The law with distinct values, ascending (m,), in the place of what is inside its cells.

    Cells without a value keep what they have: of probability 0, unless bins were given frequencies.
    """
    cell = law.cells.locate(values)
    mass = np.bincount(cell, shares, law.cells.count)
    weight, parts, owners = shares / mass[cell], list[Measure](), list[Ints]()
    for some in (~np.isnan(values), np.isnan(values)):  # slopes tell missing values from numbers
        if some.any():
            parts.append(Atoms(values[some], weight[some]))
            owners.append(cell[some])
    for measure, owner in zip(law.measures, law.split(law.owners), strict=True):
        kept = mass[owner] == 0
        if kept.any():
            parts.append(measure.take(kept))
            owners.append(owner[kept])
    return Marginal(law.cells, law.log_mass, tuple(parts), np.concatenate(owners))


def categorical(x: Floats, points: Floats | None = None) -> Marginal:
    """The law of a column of codes (n,), an atom and a cell a level; ``points`` are all levels, NaN last."""
    values = np.unique(x) if points is None else points
    levels, atoms = Levels(values), Atoms(values, np.ones(values.size))
    mass = np.bincount(levels.locate(x), minlength=values.size)
    with np.errstate(divide="ignore"):  # levels that no row has
        return Marginal(levels, np.log(mass / x.size), (atoms,), np.arange(values.size))


def unbinned(x: Floats, *, law: str = "truncnorm") -> Marginal:
    """The law of a numeric column in one cell: normal, uniform on its range, or the values themselves."""
    numbers = x[~np.isnan(x)]
    if law != "truncnorm" and numbers.min() < numbers.max():
        return binned(x, np.array([numbers.min(), numbers.max()]), law=law)
    ends = np.array([-np.inf, np.inf])
    if numbers.min() == numbers.max():
        parts = [_atoms(numbers[:1], 0)]
    else:
        mean, std = np.array(mean_and_std(numbers))[:, None]
        pieces = GaussianPieces.truncated_normal(mean, std, ends[:1], ends[1:], weight=np.ones(1))
        parts = [(pieces, np.zeros(1, dtype=np.int64))]
    missing = x.size - numbers.size
    if not missing:
        return marginal(BinCells(ends), np.ones(1), parts)
    masses = np.array([numbers.size, missing])
    return marginal(BinCells(ends, True), masses, [*parts, _atoms(np.array([np.nan]), 1)])


def marginals_from_bins(
    edges: Sequence[Sequence[float] | Floats],
    means: Sequence[Sequence[float] | Floats],
    stds: Sequence[Sequence[float] | Floats],
    *,
    frequencies: Sequence[Sequence[float] | Floats] | None = None,
) -> tuple[Marginal, ...]:
    """Return marginals from bin statistics, one array a column; see ``ProductDesign.from_bins``."""
    d = len(edges)
    if d == 0:
        raise InputError("a design needs one column at least; edges is empty")
    statistics = {
        "means": means,
        "stds": stds,
        "frequencies": [()] * d if frequencies is None else frequencies,
    }
    for name, lists in statistics.items():
        if len(lists) != d:
            raise InputError(f"{name} has {len(lists)} arrays, edges has {d}: one a column is needed")
    return tuple(
        _from_statistics(f"column {j}: ", BinStatistics(*column))
        for j, column in enumerate(zip(edges, *statistics.values(), strict=True))
    )


def _from_statistics(where: str, statistics: BinStatistics) -> Marginal:
    edges, mean, std, mass = (
        float_array(where + name, getattr(statistics, name), 1)
        for name in ("edges", "means", "stds", "frequencies")
    )
    count = edges.size - 1
    mass = mass if mass.size else np.ones(max(count, 0))
    if count < 1 or not {mean.shape, std.shape, mass.shape} == {(count,)}:
        raise InputError(
            f"{where}{edges.size} edges make {max(count, 0)} bins, but means, stds and frequencies have "
            f"shapes {mean.shape}, {std.shape}, {mass.shape}"
        )
    lower, upper = edges[:-1], edges[1:]
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0).all()):
        raise InputError(f"{where}means must be finite and stds finite and >= 0")
    if not (lower <= upper).all() or not np.isfinite(edges[1:-1]).all() or (lower == np.inf).any():
        raise InputError(
            f"{where}edges must ascend, and only the outer two may be infinite; got {edges.tolist()}"
        )
    point = (std == 0) | (lower == upper)
    parts: list[_Part] = []
    spread = np.flatnonzero(~point)
    if spread.size:
        pieces = GaussianPieces.truncated_normal(
            mean[spread], std[spread], lower[spread], upper[spread], weight=np.ones(spread.size)
        )
        parts.append((pieces, spread))
    if point.any():
        # a bin does not contain its lower edge, unless its edges coincide
        place = np.clip(mean[point], np.minimum(np.nextafter(lower, np.inf), upper)[point], upper[point])
        parts.append((Atoms(place, np.ones(place.size)), np.flatnonzero(point)))
    return marginal(BinCells(edges), mass, parts)


def _atoms(values: Floats, cell: int) -> _Part:
    weight = np.full(values.size, 1.0 / values.size)
    return Atoms(values, weight), np.full(values.size, cell)


def _truncated_normal(groups: Sequence[Floats], bins: Ints, edges: Floats) -> _Part:
    mean, std = np.array([mean_and_std(inside) for inside in groups]).T
    pieces = GaussianPieces.truncated_normal(
        mean, std, edges[bins], edges[bins + 1], weight=np.ones(bins.size)
    )
    return pieces, bins


def _uniform(groups: Sequence[Floats], bins: Ints, edges: Floats) -> _Part:
    # an open outer bin is uniform as far as the background reaches
    lower, upper = edges[bins], edges[bins + 1]
    lower = np.where(np.isfinite(lower), lower, [inside.min() for inside in groups])
    upper = np.where(np.isfinite(upper), upper, [inside.max() for inside in groups])
    return _flat(bins, lower, upper)


def _flat(bins: Ints, lower: Floats, upper: Floats) -> _Part:
    middle, flat = 0.5 * lower + 0.5 * upper, np.full(bins.size, np.inf)
    return GaussianPieces.truncated_normal(middle, flat, lower, upper, weight=np.ones(bins.size)), bins


def _empirical(groups: Sequence[Floats], bins: Ints, edges: Floats) -> _Part:  # noqa: ARG001
    values, weights, cells = [], [], []
    for b, inside in zip(bins, groups, strict=True):
        places, counts = np.unique(inside, return_counts=True)
        values.append(places)
        weights.append(counts / counts.sum())
        cells.append(np.full(places.size, b))
    return Atoms(np.concatenate(values), np.concatenate(weights)), np.concatenate(cells)


# Law by name: a function of the values of some bins (one array a bin), the positions of these bins, and the
# edges of all bins
LAWS: Mapping[str, Callable[[Sequence[Floats], Ints, Floats], _Part]] = {
    "truncnorm": _truncated_normal,
    "uniform": _uniform,
    "empirical": _empirical,
}


# -- edges of cells ------------------------------------------------------------------------------------------

# A column is recorded on a grid if more than this share of its values occurs at least twice
_TIED = 0.5


@dataclass(frozen=True, eq=False)
class EdgeDistances:
    """Distances of rows to the next cells: learnt from the background once, for any rows."""

    # (d, p) the value that a cell of a column must reach to be in the next cell: the edge itself, or, on a
    # grid, the nearest background value on the other side. NaN where there is no next cell
    below: Floats
    above: Floats
    unit: Floats  # (d,) standard deviation of each column

    @classmethod
    def learn(
        cls, marginals: Sequence[Marginal], background: Floats, binned: Bools, unit: Floats
    ) -> EdgeDistances:
        widest = max(law.cells.count for law in marginals)
        below, above = (np.full((len(marginals), widest), np.nan) for _ in range(2))
        by_column = np.asfortranarray(background)
        for j, law in enumerate(marginals):
            if binned[j] and isinstance(law.cells, BinCells):
                down, up = _crossed(law.cells.edges[1:-1], by_column[:, j])
                below[j, 1 : down.size + 1], above[j, : up.size] = down, up
                for b in law.cells.of_codes:  # no value is near a code
                    inner = 0 if b == 0 else b - 1
                    below[j, inner + 1] = above[j, inner] = np.nan
        return cls(below, above, unit)

    def distances(self, rows: Floats, cells: Ints) -> tuple[Floats, Floats]:
        """Distances to the edges below and above each value, in units, (n, d); NaN without an edge."""
        columns = np.arange(rows.shape[1])
        below, above = self.below[columns, cells], self.above[columns, cells]
        return (rows - below) / self.unit, (above - rows) / self.unit


def _crossed(inner: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return what values above and below each inner edge must reach to cross it."""
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    if counts[counts > 1].sum() <= _TIED * counts.sum():
        return inner, inner
    above = np.searchsorted(values, inner, side="right")
    return values[np.maximum(above - 1, 0)], values[np.minimum(above, values.size - 1)]
