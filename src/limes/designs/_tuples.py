"""The law of a group of columns: the background's own tuples, each drawn whole.

The group is in a row's cell if all its columns are in theirs. So its cells are the combinations of its
columns' cells that occur in the background, and one more for all that do not occur, which has no mass. A row
with such a combination is, in its group, as one with a new category: no tuple of the background is in its
cell, and its own tuple is all that its cell holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from limes._arrays import Bools, Floats, Ints
from limes._functions import BoxesOfTuples
from limes._tuples import Tuples
from limes.designs._marginals import COUNTED, Atoms, Cells, Marginal, TupleCells


def law_of_tuples(tuples: Tuples, columns: Sequence[Cells]) -> Marginal:
    """The law of a group of columns with these cells."""
    values = tuples.background
    located = np.stack([cells.locate(x) for cells, x in zip(columns, values.T, strict=True)], axis=1)
    combinations, owner = np.unique(located, axis=0, return_inverse=True)
    cells, owner = TupleCells(tuples, tuple(columns), combinations), owner.reshape(-1)
    mass = np.bincount(owner, tuples.counts, cells.count)
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass / mass.sum())
    # any tuple stands for those that do not occur, see `at_new_tuples`
    codes, owners = np.append(np.arange(float(tuples.size)), 0.0), np.append(owner, cells.new)
    weight = np.append(tuples.counts / mass[owner], 1.0)
    return Marginal(cells, log_mass, (Atoms(codes, weight),), owners)


def has_new_tuples(law: Marginal, cell: Ints) -> Bools:
    """Whether cells (n,) are of combinations that do not occur."""
    if not isinstance(law.cells, TupleCells):
        return np.zeros(cell.shape, dtype=np.bool_)
    return np.asarray(cell == law.cells.new)


def shares_of_rows(cells: TupleCells, boxes: BoxesOfTuples, cell: Ints) -> Floats:
    """Shares of the background rows inside of cells (V,), and of those outside, in m boxes: (m, V, 2).

    Numbers of rows are whole: their differences lose no digit.
    """
    its, place = np.unique(cell, return_inverse=True)
    rows, inside = cells.rows[its], _rows_in(cells, boxes, its)
    rest, outside = cells.rows.sum() - rows, boxes.of_background - inside
    # any tuple stands for those that do not occur, see `law_of_tuples`
    inside[rows == 0] = boxes.flags(np.zeros(1))
    sides = inside.T / np.maximum(rows, 1.0), outside.T / np.maximum(rest, 1.0)
    return np.asarray(np.stack(sides, axis=2)[:, place.reshape(-1)])


def _rows_in(cells: TupleCells, boxes: BoxesOfTuples, cell: Ints) -> Floats:
    """Number of background rows in some cells (V,) and in each of m boxes, (V, m)."""
    of_tuples = cells.of_tuples
    if 4 * cells.count * boxes.count > COUNTED:
        at = np.flatnonzero(np.isin(of_tuples, cell))
        return boxes.totals(at, np.searchsorted(cell, of_tuples[at]), cell.size)

    def everywhere() -> NDArray[np.uint32]:
        return boxes.totals(np.arange(of_tuples.size), of_tuples, cells.count).astype(np.uint32)

    # the same boxes are the same object, which the cache keeps alive
    _, counts = cells.counts.get(id(boxes), lambda: (boxes, everywhere()), lambda each: each[1].nbytes)
    return counts[cell].astype(np.float64)
