r"""Few points in the place of many atoms: sums over a background's own values at the price of a quadrature.

A column of a large background has as many atoms as distinct values, and models ask for many functions of it.
Three facts make the sums Σ_i w_i g(x_i) over the atoms of each cell short:

- a sum over the atoms up to t is a cumulative one, found by a search;
- functions that are constant between breaks tell no two atoms of a piece apart: one atom with the sum of
  their weights is exact;
- smooth functions are polynomials to the last digits on a short panel. With n Chebyshev points s_k of the
  panel, and M_j = Σ_i w_i T_j(x_i) in its coordinates,

      Σ_i w_i g(x_i) = Σ_k v_k g(s_k),    v_k = (2/n) Σ_j' T_j(s_k) M_j,

  for every polynomial g of degree < n (j = 0 counts half). For other g the error is at most twice what g's
  Chebyshev coefficients of degree >= n add up to. They fall geometrically, so the last of the n coefficients
  show it: a panel where they are not negligible is halved.

Moments are taken of the atoms once: the atoms are cut into *leaves*, each of which gets n points, and T_j of
any larger panel is a polynomial on a leaf. A leaf on which a function is not smooth keeps its atoms.

The points' weights may be negative: they integrate, they are no law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints
from limes._functions import LARGEST, Bump, Composed, Function, Interval, Summed, by_category, parts, texture

# Points of a panel, and how many of its last coefficients must be negligible
_POINTS, _LAST = 16, 3
# Largest such coefficient, relative to the function's size
_NEGLIGIBLE = 1e-13
# Atoms of a leaf: fewer make leaves that save nothing
_LEAF = 128
# Numbers g(x_i) up to which the plain sum costs next to nothing
_PLAIN = 1 << 18
# Widths of a bump, in its scale, that a panel has at first: it cannot hide between two points
_WIDE = 2.0


class CellPoints(NamedTuple):
    """K points x, their weights, and the cell of each, ascending."""

    x: Floats
    weight: Floats
    cell: Ints

    def part(self, start: int, stop: int) -> CellPoints:
        return CellPoints(self.x[start:stop], self.weight[start:stop], self.cell[start:stop])

    def sums(self, function: Function, cells: int) -> Floats:
        """Weighted sums of m functions in each cell, (m, cells); 0 in a cell without points."""
        if isinstance(function, Summed):
            return function.sums(self.x, self.weight, np.searchsorted(self.cell, np.arange(cells + 1)))
        values = function(self.x)
        sums = np.zeros((len(values), cells), dtype=values.dtype)
        if self.x.size:
            first = np.flatnonzero(np.diff(self.cell, prepend=-1))
            sums[:, self.cell[first]] = np.add.reduceat(values * self.weight, first, axis=1)
        return sums


@dataclass(frozen=True, eq=False)
class ManyAtoms:
    """The atoms of all cells of a column, sorted by cell and value; missing values come last."""

    atoms: CellPoints
    cells: int

    def expect(self, function: Function) -> Floats:
        """Σ_i w_i g(x_i) in each cell, for m functions g: (m, cells)."""
        if isinstance(function, Interval):
            return self._in_intervals(function)
        return self.points(function).sums(function, self.cells)

    def points(self, function: Function) -> CellPoints:
        """Points that give the sums of all the functions: as few as suffice."""
        if by_category(function):
            return self.atoms
        breaks, constant, panels = texture(function)
        if constant:
            return self._joined(breaks)
        if len(function(self.atoms.x[:1])) * self.atoms.x.size <= _PLAIN:
            return self.atoms
        bumps = [part for part in parts(function) if isinstance(part, Bump)]
        if bumps:  # smooth everywhere, as the others may not be
            others = [texture(part).breaks for part in parts(function) if not isinstance(part, Bump)]
            breaks = np.unique(np.concatenate([np.zeros(0), *others]))
        widest = min((_WIDE / np.sqrt(bump.precision) for bump in bumps), default=np.inf)
        hardest = function.fastest if isinstance(function, Composed) else function
        panels_and_atoms = [*self._panels(hardest, breaks, widest, panels)]
        points = CellPoints(*map(np.concatenate, zip(*panels_and_atoms, strict=True)))
        order = np.argsort(points.cell, kind="stable")
        return CellPoints(points.x[order], points.weight[order], points.cell[order])

    def _in_intervals(self, function: Interval) -> Floats:
        sums = np.zeros((function.upper.size, self.cells))
        ends = np.searchsorted(self.atoms.cell, np.arange(self.cells + 1))
        for b, (start, stop) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            x, weight = np.maximum(self.atoms.x[start:stop], -LARGEST), self.atoms.weight[start:stop]
            present = x.size - int(np.count_nonzero(np.isnan(x)))
            first, last = (
                np.searchsorted(x[:present], end, side="right") for end in (function.lower, function.upper)
            )
            sums[:, b] = _between_places(weight[:present], first, np.maximum(first, last))
            sums[:, b] += function.missing * weight[present:].sum()
        return sums

    def _joined(self, breaks: Floats) -> CellPoints:
        """One atom for each piece between breaks."""
        atoms = self.atoms
        place = np.searchsorted(breaks, atoms.x, side="left") + np.isnan(atoms.x)
        first = np.flatnonzero((np.diff(atoms.cell, prepend=-1) != 0) | (np.diff(place, prepend=-1) != 0))
        return CellPoints(atoms.x[first], np.add.reduceat(atoms.weight, first), atoms.cell[first])

    @cached_property
    def _leaves(self) -> Ints:
        """First atom of each leaf, and the number of atoms: a leaf has one cell; missing values are one."""
        atoms, count = self.atoms, self.atoms.x.size
        missing = np.isnan(atoms.x)
        ends = np.flatnonzero(np.diff(atoms.cell, prepend=-1) | np.diff(missing, prepend=missing[:1]))
        ends = np.append(ends, count)
        cuts = [
            np.linspace(first, last, max(1, (last - first) // _LEAF) + 1)[:-1].astype(np.int64)
            for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        ]
        return np.append(np.concatenate(cuts), count)

    @cached_property
    def _points_of_leaves(self) -> CellPoints:
        """The points of all leaves, n each."""
        first, atoms = self._leaves, self.atoms
        lower, upper = atoms.x[first[:-1]], atoms.x[first[1:] - 1]
        weights = np.stack(
            [
                np.add.reduceat(each, first[:-1])
                for each in _polynomials(self._scaled(lower, upper), atoms.weight)
            ]
        )
        return CellPoints(
            _between(lower, upper).ravel(),
            (weights.T @ _COEFFICIENTS.T).ravel(),
            np.repeat(atoms.cell[first[:-1]], _POINTS),
        )

    def _scaled(self, lower: Floats, upper: Floats) -> Floats:
        """The atoms in the coordinates of their leaves."""
        size = np.diff(self._leaves)
        half = np.where(upper > lower, 0.5 * upper - 0.5 * lower, 1.0)
        s = (self.atoms.x - np.repeat(0.5 * lower + 0.5 * upper, size)) / np.repeat(half, size)
        return np.asarray(np.clip(s, -1.0, 1.0))

    def _panels(
        self, function: Callable[[Floats], Floats], breaks: Floats, widest: float, panels: int
    ) -> Iterator[CellPoints]:
        """Yield points of panels on which the functions are resolved, and the atoms of leaves that have none.

        A panel is a run of leaves, (first, last + 1).
        """
        atoms, leaves, points = self.atoms, self._leaves, self._points_of_leaves
        low, high = atoms.x[leaves[:-1]], atoms.x[leaves[1:] - 1]
        # a leaf whose functions may bend inside, and one without two numbers
        place = np.searchsorted(breaks, low, side="left")
        kept = (place != np.searchsorted(breaks, high, side="left")) | ~(low < high)
        for leaf in np.flatnonzero(kept).tolist():
            yield atoms.part(leaves[leaf], leaves[leaf + 1])
        apart = (np.diff(place) != 0) | (np.diff(atoms.cell[leaves[:-1]]) != 0) | kept[1:] | kept[:-1]
        starts = (
            np.concatenate([[0], 1 + np.flatnonzero(apart)]) if kept.size else np.zeros(0, dtype=np.int64)
        )
        runs = [
            run
            for first, last in zip(starts.tolist(), [*starts[1:].tolist(), kept.size], strict=True)
            if not kept[first]
            for run in _cut(low, high, first, last, widest, panels)
        ]
        scale = None
        while runs:
            first, last = np.array(runs).T
            lower, upper = low[first], high[last - 1]
            x = _between(lower, upper)
            with np.errstate(all="ignore"):  # a function may have no value between two atoms
                values = function(x.ravel()).reshape(-1, len(runs), _POINTS)
                # of each function the largest value that any first panel shows
                scale = np.abs(values).max(axis=(1, 2)) if scale is None else scale
                rest = np.abs(values @ _COEFFICIENTS[:, -_LAST:]).max(axis=2)
            resolved = (rest <= _NEGLIGIBLE * scale[:, None]).all(axis=0)
            halves = []
            for i, (start, stop) in enumerate(runs):
                if resolved[i]:
                    yield _panel(points.part(start * _POINTS, stop * _POINTS), x[i], lower[i], upper[i])
                elif stop - start == 1:
                    yield atoms.part(leaves[start], leaves[stop])
                else:
                    halves += _halved(low, start, stop, 0.5 * lower[i] + 0.5 * upper[i])
            runs = halves


def _between_places(weight: Floats, first: Ints, last: Ints) -> Floats:
    """Sums of weights from first places to last ones, (m,) each."""
    places = np.unique(np.concatenate([[0], first, last]))
    # added up piece by piece: a running sum of all weights would lose digits
    pieces = np.add.reduceat(np.append(weight, 0.0), np.minimum(places, weight.size))
    below = np.concatenate([[0.0], np.cumsum(pieces[:-1])])
    return np.asarray(below[np.searchsorted(places, last)] - below[np.searchsorted(places, first)])


def _cut(
    low: Floats, high: Floats, first: int, last: int, widest: float, panels: int
) -> list[tuple[int, int]]:
    """Cut a run of leaves into ``panels`` or more, of about the ``widest`` width at most."""
    start, end = low[first], high[last - 1]
    count = max(panels, int(min(np.ceil((end - start) / widest), last - first)))
    edges = start + (end - start) * np.arange(1, count) / count
    cuts = first + np.searchsorted(low[first:last], edges, side="left")
    ends = np.unique([first, *cuts.tolist(), last]).tolist()
    return [*pairwise(ends)]


def _halved(low: Floats, start: int, stop: int, middle: float) -> list[tuple[int, int]]:
    """Two runs of leaves, none of them empty."""
    cut = start + int(np.searchsorted(low[start:stop], middle, side="left"))
    cut = min(max(cut, start + 1), stop - 1)
    return [(start, cut), (cut, stop)]


def _panel(points: CellPoints, x: Floats, lower: float, upper: float) -> CellPoints:
    """The points x of a panel, weighted by the moments of its leaves' points."""
    s = (points.x - 0.5 * lower - 0.5 * upper) / (0.5 * upper - 0.5 * lower)
    moments = np.array([each.sum() for each in _polynomials(s, points.weight)])
    return CellPoints(x, (_COEFFICIENTS * moments).sum(axis=1), points.cell[:_POINTS])


def _polynomials(s: Floats, weight: Floats) -> Iterator[Floats]:
    """Yield w T_j(s) for j = 0 … n - 1."""
    before, now = weight, weight * s
    yield before
    yield now
    for _ in range(2, _POINTS):
        before, now = now, 2.0 * s * now - before
        yield now


def _between(lower: Floats, upper: Floats) -> Floats:
    """The n points of panels, (panels, n)."""
    return np.asarray((0.5 * lower + 0.5 * upper)[:, None] + (0.5 * upper - 0.5 * lower)[:, None] * _NODES)


def _chebyshev() -> tuple[Floats, Floats]:
    """The n points on [-1, 1], and the matrix (n, n) that turns values into coefficients."""
    angles = (2.0 * np.arange(_POINTS) + 1.0) * np.pi / (2.0 * _POINTS)
    matrix = np.cos(np.outer(angles, np.arange(_POINTS))) * (2.0 / _POINTS)
    matrix[:, 0] *= 0.5
    return np.cos(angles), matrix


_NODES, _COEFFICIENTS = _chebyshev()
