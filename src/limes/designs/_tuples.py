"""The law of a group of columns: the background's own tuples, each drawn whole.

The group is in a row's cell if all its columns are in theirs. So its cells are the combinations of its
columns' cells that occur in the background, and one more for all that do not occur, which has no mass. A row
with such a combination is, in its group, as one with a new category: no tuple of the background is in its
cell, and its own tuple is all that its cell holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from limes._arrays import Bools, Ints
from limes._tuples import Tuples
from limes.designs._marginals import Atoms, Cells, Marginal, TupleCells


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
