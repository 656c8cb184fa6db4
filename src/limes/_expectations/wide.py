r"""Wide sums: exponentials of many columns at once, by moments of what each adds inside its cells.

A column of a wide margin adds little: inside a cell f_j = c + h s with |s| <= 1 and |z h| <= 2, so that

    E[e^{z f_j}; cell] = e^{zc} Σ_k (zh)^k / k! E[s^k; cell]

ends after a few terms. The moments of all cells are made once; then one product of matrices, cells × terms
by terms × nodes, tabulates all columns at the nodes of a contour. A cell in which a column adds more is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._expectations.tabulated import ColumnTables, ColumnTerm, NodeGroup, waves_at
from limes._functions import Identity, Interval, by_category, texture
from limes.designs._column import IndicatorColumn
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Atoms, Marginal
from limes.models.forms._links import Complexes

T = TypeVar("T")

# Columns from which on a sum is wide
MANY = 64
# |z h|, and terms of e^{zhs} so many that the next one is below 1e-16
_REACH, _TERMS = 2.0, 24
# Parts that cells may have on average, and points whose moments are taken at once
_PARTS, _POINTS = 16, 1 << 20
# Least |z| that moments are taken for
_SLOWEST = 1e-6
# Exponents are clipped to this: no float64 overflows
_STEEPEST = 600.0
# The texture of a line
_LINE = texture(Identity())
# Relative rounding of a cell's number is below this many units: e^{2 · 2} of cancelling terms, and their sum
ROUNDINGS = 64


class _CellPoints(NamedTuple):
    """Weighted values of a column's function, and the cell of each."""

    value: Floats
    weight: Floats
    cell: Ints


class _Parts(NamedTuple):
    """Parts of the cells of all columns, side by side."""

    center: Floats  # (S,)
    moments: Floats  # (S, K) of (f - center) / h
    first: Ints  # (C,), the first part of each cell


class WideColumns(Sequence[ColumnTerm]):
    """Many columns of one margin, each with the laws of its cells, which are tabulated together."""

    def __init__(self, terms: Sequence[ColumnTerm], parts: _Parts, reach: float) -> None:
        self._terms, self._parts, self._reach = terms, parts, reach
        counts = [_law(term).cells.count for term in terms]
        self._start = np.cumsum([0, *counts])  # of cells
        self._column = np.repeat(np.arange(len(terms)), counts)
        laws = [term.column.size for term in terms]
        # those of rows with the cells of all, or fewer
        self._first_law, self._column_of_law = np.cumsum([0, *laws]), np.repeat(np.arange(len(terms)), laws)
        self._ends = np.array([[term.lower[0], term.upper[0]] for term in terms])
        self._lines = _Lines.of(terms)
        self._points = _single_points(terms)

    @classmethod
    def of(cls, factors: Sequence[Any], fastest: Complexes, *, most: int = MANY) -> WideColumns | None:
        """Take moments for all z up to the ``fastest``; None for ``most`` columns, or far ranges."""
        if len(factors) <= most or not all(isinstance(f, ColumnTerm) for f in factors):
            return None
        if not all(isinstance(f.column, IndicatorColumn) for f in factors):
            return None
        if not all(isinstance(f.column.law, Marginal) for f in factors):
            return None
        reach, parts = _REACH / max(float(np.abs(fastest).max()), _SLOWEST), list[_Parts]()
        for block in _blocks(factors, fastest):
            counted = _parts_of(block, reach)
            if counted is None:
                return None
            parts.append(counted)
        sizes = np.cumsum([0, *(part.center.size for part in parts)])
        first = [part.first + size for part, size in zip(parts, sizes, strict=False)]
        joined = _Parts(
            np.concatenate([part.center for part in parts]),
            np.concatenate([part.moments for part in parts]),
            np.concatenate(first),
        )
        return cls(factors, joined, reach)

    def __len__(self) -> int:
        return len(self._terms)

    @overload
    def __getitem__(self, at: int) -> ColumnTerm: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ColumnTerm]: ...
    def __getitem__(self, at: int | slice) -> ColumnTerm | Sequence[ColumnTerm]:
        return self._terms[at]

    def tables(
        self,
        groups: Sequence[NodeGroup],
        derive: Callable[[Complexes, Complexes, Floats], T],
        lines: Callable[[Floats], Complexes] | None = None,
    ) -> list[ColumnTables[T]]:
        """Return the tables of every column, as `ColumnTerm.tables` does of one.

        ``lines`` gives e^{zv} of values v, (S,) -> (S, N), where that is quicker than an exponential each.
        """
        [group] = groups
        offsets = self._offsets(group)
        means, contrasts = self._functionals(self._cells(group, offsets, lines))
        derived = derive(means, contrasts[:, None], offsets[self._column_of_law])
        lines_of = [_lines_of(derived, slice(*ends)) for ends in pairwise(self._first_law.tolist())]
        places = [term.place for term in self._terms]
        return [ColumnTables(*each) for each in zip(places, offsets, lines_of, strict=True)]

    def means(self, group: NodeGroup) -> tuple[Complexes, Ints, Floats]:
        """Means of e^{zf - offset} under all laws (L, N), each column's first law, and offsets (F, N)."""
        offsets = self._offsets(group)
        cells = self._cells(group, offsets, None)
        means = np.empty((self._first_law[-1], cells.shape[1]), cells.dtype)
        for mixture in self._mixtures:
            means[mixture.laws] = mixture.means(cells[mixture.cells])
        return means, self._first_law[:-1], offsets

    def _offsets(self, group: NodeGroup) -> Floats:
        """The largest Re z f of each column, (F, N)."""
        growth = group.nodes.real
        return np.maximum(np.outer(self._ends[:, 0], growth), np.outer(self._ends[:, 1], growth))

    def _cells(
        self, group: NodeGroup, offsets: Floats, lines: Callable[[Floats], Complexes] | None
    ) -> Complexes:
        """E[e^{zf - offset}; cell] of all cells, (C, N)."""
        center, moments, first = self._parts
        powers = np.ones((_TERMS, group.nodes.size), dtype=np.complex128)
        for k in range(1, _TERMS):
            powers[k] = powers[k - 1] * (group.nodes * (self._reach / k))
        of_part = np.repeat(self._column, np.diff(np.append(first, center.size)))
        if lines is None:
            waves = waves_at(group.nodes, center, offsets.T[:, of_part], group.equidistant).T
        else:
            waves = lines(center) * np.exp(-offsets)[of_part]
        sums = np.empty(waves.shape, dtype=np.complex128)
        sums.real, sums.imag = moments @ powers.real, moments @ powers.imag
        sums *= waves
        return np.asarray(sums if first.size == center.size else np.add.reduceat(sums, first, axis=0))

    @cached_property
    def _mixtures(self) -> list[_Mixture]:
        """Columns that share all cells of one law and have equally many, together; others alone."""
        alike: dict[Any, list[int]] = {}
        columns: list[Any] = [term.column for term in self._terms]
        for j, size in enumerate(np.diff(self._start).tolist()):
            shared = columns[j].law_of_all_cells is not None
            alike.setdefault(size if shared else (j,), []).append(j)
        each = alike.values()
        ends = self._start, self._first_law
        return [
            _Mixture.of(
                [columns[j] for j in members],
                *(np.stack([np.arange(its[j], its[j + 1]) for j in members]) for its in ends),
            )
            for members in each
        ]

    def _functionals(self, cells: Complexes) -> tuple[Complexes, Complexes]:
        """Means and contrasts under all laws, (L, N), from the numbers of the cells (C, N)."""
        means, contrasts = np.empty((2, self._first_law[-1], cells.shape[1]), cells.dtype)
        for mixture in self._mixtures:
            laws = mixture.laws
            means[laws], contrasts[laws] = mixture.functionals(cells[mixture.cells])
        return means, contrasts

    def values(self, laws: Ints, x: Floats) -> Floats:
        """f_j at the rows' values (F, U), given their laws."""
        values, is_line = self._lines.at(x)
        place = self._start[:-1, None] + laws
        same = (self._points.value[place] == x) & ~is_line
        values[same] = self._points.weight[place][same]
        for j in np.flatnonzero(~(same | is_line).all(axis=1)).tolist():
            values[j] = self._terms[j].loading[:, 0] @ self._terms[j].function(x[j])
        return values


class _Mixture(NamedTuple):
    """Columns of equally many cells, each with its law; or one column that mixes its cells itself."""

    cells: Ints  # positions among those of all columns, (columns, cells)
    laws: Ints  # (columns, V)
    alone: IndicatorColumn | None
    elsewhere: Floats  # (columns, V, V), the law of the cell given that it is another
    inclusion: Floats  # (columns, V, 1)
    exclusion: Floats

    @classmethod
    def of(cls, columns: Sequence[IndicatorColumn], cells: Ints, laws: Ints) -> _Mixture:
        """Return what these columns share, whose cells and laws have these positions."""
        if columns[0].law_of_all_cells is None:
            none = np.zeros((1, 0, 0))
            return cls(cells, laws, columns[0], none, none, none)
        elsewhere = np.stack([column.elsewhere for column in columns])
        inclusion, exclusion = (
            np.reshape([getattr(column, side) for column in columns], (*laws.shape, 1))
            for side in ("inclusion", "exclusion")
        )
        return cls(cells, laws, None, elsewhere, inclusion, exclusion)

    def functionals(self, inside: Complexes) -> tuple[Complexes, Complexes]:
        """Mean and contrast under each law, (columns, V, N), from the numbers of the cells."""
        if self.alone is not None:
            mean, contrast = self.alone.mixed(self.alone.basis_of_cells(inside[0].T))
            return mean[None], contrast[None]
        outside = _times(self.elsewhere, inside)
        mean = self.inclusion * inside + self.exclusion * outside
        return mean, np.where(self.exclusion > 0.0, inside - outside, 0.0)

    def means(self, inside: Complexes) -> Complexes:
        """The means alone."""
        if self.alone is not None:
            return self.functionals(inside)[0]
        return np.asarray(self.inclusion * inside + self.exclusion * _times(self.elsewhere, inside))


def _times(matrices: Floats, numbers: Complexes) -> Complexes:
    """Products of real matrices with complex numbers."""
    product = np.empty((*matrices.shape[:-1], numbers.shape[-1]), dtype=np.complex128)
    product.real, product.imag = matrices @ numbers.real, matrices @ numbers.imag
    return product


def _lines_of(derived: Any, lines: slice) -> Any:
    """Some lines of an array, or of all arrays of a tuple."""
    if isinstance(derived, np.ndarray):
        return derived[lines]
    parts = [_lines_of(part, lines) for part in derived]
    return tuple(parts) if type(derived) is tuple else type(derived)(*parts)


class _Lines(NamedTuple):
    """Functions c + s (x - center) of some columns, (L,) each."""

    at_columns: Ints
    constant: Floats
    slope: Floats
    center: Floats

    @classmethod
    def of(cls, terms: Sequence[ColumnTerm]) -> _Lines:
        lines = [(j, *term.line) for j, term in enumerate(terms) if term.line is not None]
        columns: list[Any] = [*zip(*lines, strict=True)] or [[], [], [], []]
        return cls(*(np.array(each).reshape(len(lines)) for each in columns))

    def at(self, x: Floats) -> tuple[Floats, Bools]:
        """Values of x (F, U), and where they are those of lines: not of missing values."""
        values, is_line = np.zeros(x.shape), np.zeros(x.shape, dtype=np.bool_)
        its = x[self.at_columns]
        values[self.at_columns] = self.constant[:, None] + self.slope[:, None] * (its - self.center[:, None])
        is_line[self.at_columns] = ~np.isnan(its)
        return values, is_line


def _single_points(terms: Sequence[ColumnTerm]) -> _CellPoints:
    """The value x of each cell that has but one, else NaN, and what the column adds there."""
    parts = []
    for term in terms:
        law = _law(term)
        x = added = np.full(law.cells.count, np.nan)
        if law.has_one_piece_a_cell and len(law.measures) == 1 and isinstance(law.measures[0], Atoms):
            x = np.empty(law.cells.count)
            x[law.owners] = law.measures[0].value
            added = _added(term, x)
        parts.append((x, added, np.arange(x.size)))
    return _CellPoints(*map(np.concatenate, zip(*parts, strict=True)))


def _law(term: ColumnTerm) -> Marginal:
    law = term.column.marginal
    assert isinstance(law, Marginal)  # noqa: S101 - `WideColumns.of`
    return law


def _blocks(
    terms: Sequence[ColumnTerm], fastest: Complexes
) -> Iterator[list[tuple[ColumnTerm, _CellPoints]]]:
    """Yield columns with their points, as many as fit."""
    block, size = list[tuple[ColumnTerm, _CellPoints]](), 0
    for term, points in zip(terms, _points_of_columns(terms, fastest), strict=True):
        block.append((term, points))
        size += points.value.size
        if size > _POINTS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _points_of_columns(terms: Sequence[ColumnTerm], fastest: Complexes) -> Iterator[_CellPoints]:
    """Yield points that integrate e^{zf} of each column, z up to the ``fastest``."""
    straight = _points_of_lines(terms, fastest)
    for j, term in enumerate(terms):
        law, parts = _law(term), [straight[j]] if j in straight else []
        breaks, constant, panels = _LINE if term.line is not None else texture(term.function)
        if constant and not by_category(term.function):
            yield _points_of_steps(term, breaks)
            continue
        for measure, owner in zip(law.measures, law.split(law.owners), strict=True):
            if isinstance(measure, Atoms):
                parts.append(_CellPoints(_added(term, measure.value), measure.weight, owner))
            elif j not in straight:
                term.function.integrate(measure)  # raises where a lookup meets a density

                def waves(x: Floats, term: ColumnTerm = term) -> Floats:
                    return _waves(_added(term, x), fastest)

                piece, x, weight = measure.points(waves, breaks, panels)
                parts.append(_CellPoints(_added(term, x), weight, owner[piece]))
        yield parts[0] if len(parts) == 1 else _CellPoints(*map(np.concatenate, zip(*parts, strict=True)))


def _points_of_steps(term: ColumnTerm, breaks: Floats) -> _CellPoints:
    """One point between two breaks of a function that is constant there."""
    lower, upper = np.append(-np.inf, breaks), np.append(breaks, np.inf)
    lower, upper = np.append(lower, np.inf), np.append(upper, -np.inf)
    missing = np.arange(lower.size) == lower.size - 1  # no interval: it has the missing values alone
    masses = _law(term).expect(Interval(lower, upper, missing))
    place, cell = np.nonzero(masses)
    return _CellPoints(
        _added(term, np.where(missing, np.nan, upper))[place], masses[place, cell], cell.astype(np.int64)
    )


def _points_of_lines(terms: Sequence[ColumnTerm], fastest: Complexes) -> dict[int, _CellPoints]:
    """Points of the densities of all columns whose functions are lines: what these add has densities, too."""
    pieces, owners, places = list[GaussianPieces](), list[Ints](), list[int]()
    for j, term in enumerate(terms):
        law = _law(term)
        if term.line is None or not term.line.slope.any():
            continue
        for measure, owner in zip(law.measures, law.split(law.owners), strict=True):
            if isinstance(measure, GaussianPieces):
                pieces.append(measure)
                owners.append(owner)
                places += [j] * owner.size
    if not pieces:
        return {}
    its, first, times = np.unique(places, return_index=True, return_counts=True)
    lines: list[Any] = [terms[j].line for j in its]
    moves = (np.repeat(np.ravel(each), times) for each in zip(*lines, strict=True))
    joined = _moved(GaussianPieces.joined(pieces), *moves)
    piece, value, weight = joined.points(lambda f: _waves(f, fastest), np.zeros(0), 1)
    ends = np.searchsorted(piece, first[1:])
    parts = zip(
        *(np.split(each, ends) for each in (value, weight, np.concatenate(owners)[piece])), strict=True
    )
    return {j: _CellPoints(*part) for j, part in zip(its.tolist(), parts, strict=True)}


def _moved(pieces: GaussianPieces, constant: Floats, slope: Floats, center: Floats) -> GaussianPieces:
    """The densities of constant + slope (x - center)."""
    ends = [constant + slope * (end - center) for end in (pieces.lower, pieces.upper)]
    return GaussianPieces(
        anchor=constant + slope * (pieces.anchor - center),
        slope=np.sign(slope) * pieces.slope,
        precision=pieces.precision,
        lower=np.minimum(*ends),
        upper=np.maximum(*ends),
        weight=pieces.weight,
        scale=np.abs(slope) * pieces.scale,
    )


def _added(term: ColumnTerm, x: Floats) -> Floats:
    if term.line is not None:
        values = term.line.at(x)[0]
        if not np.isnan(values).any():
            return np.asarray(values)
    return np.asarray(term.loading[:, 0] @ term.function(x))


def _waves(value: Floats, fastest: Complexes) -> Floats:
    """The fastest exponentials of what a column adds, as real functions."""
    exponents = np.multiply.outer(fastest, value)
    waves = np.exp(np.clip(exponents.real, -_STEEPEST, _STEEPEST) + 1j * exponents.imag)
    return np.concatenate([waves.real, waves.imag])


def _parts_of(block: Sequence[tuple[ColumnTerm, _CellPoints]], reach: float) -> _Parts | None:
    """Cut the cells of some columns into parts of half a width ``reach``; None where there are too many."""
    counts = [_law(term).cells.count for term, _ in block]
    start, cells = np.cumsum([0, *counts[:-1]]), sum(counts)
    points = [points for _, points in block]
    value, weight = (np.concatenate([each[i] for each in points]) for i in (0, 1))
    cell = np.concatenate([each.cell + first for each, first in zip(points, start, strict=True)])
    used = weight != 0
    value, weight, cell = value[used], weight[used], cell[used]
    lower, upper = np.full(cells, np.inf), np.full(cells, -np.inf)
    np.minimum.at(lower, cell, value)
    np.maximum.at(upper, cell, value)
    empty = lower > upper
    lower[empty] = upper[empty] = 0.0
    width = upper - lower
    if not np.isfinite(width).all() or width.sum() > 2.0 * reach * (_PARTS - 1) * cells:
        return None
    number = np.maximum(np.ceil(width / (2.0 * reach)), 1.0).astype(np.int64)
    first = np.cumsum(np.append(0, number[:-1]))
    length = width / number
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.nan_to_num((value - lower[cell]) / length[cell])
    part = first[cell] + np.clip(inside.astype(np.int64), 0, number[cell] - 1)
    owner = np.repeat(np.arange(cells), number)
    center = lower[owner] + (np.arange(owner.size) - first[owner] + 0.5) * length[owner]
    step, term = (value - center[part]) / reach, weight
    moments = np.empty((owner.size, _TERMS))
    for k in range(_TERMS):
        moments[:, k] = np.bincount(part, term, owner.size)
        term = term * step
    return _Parts(center, moments, first)
