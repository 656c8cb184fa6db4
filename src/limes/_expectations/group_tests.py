"""Splits of a forest on groups of columns: which way rows go there, and the probabilities of groups' boxes.

A split tests one column of a group. So a row is in the box of an edge if it is in that of the last edge above
on the same group, and goes the edge's way at the split: no box is listed. The background's tuples go down
alike, and their rows in each box are counted: ``kernels/tuple_masses.cpp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from limes import _kernels
from limes._arrays import Bools, Floats, Ints
from limes._functions import BoxesOfTuples, Function
from limes._tuples import Tuples
from limes.designs._column import Column, IndicatorColumn
from limes.designs._marginals import Marginal, TupleCells
from limes.models.forms._tuples import ForestOfTuples


class _Group(NamedTuple):
    """A group that is tested."""

    tuples: Tuples
    members: Ints  # its columns
    splits: Ints  # on it
    tests: _kernels.Tests  # of these splits, one each
    different: _kernels.Tests
    size: int  # number of different tests
    boxes: BoxesOfTuples  # that its edges have
    box: Ints  # of each edge
    place: tuple[Ints, Ints]  # of each edge: the place of its split among these, and the side


class GroupTests:
    """Tests of groups at the splits of a forest."""

    intervals: _kernels.Intervals  # of the edges; of groups, positions of different tests are the left sides'
    start: Ints  # first indicator, or test, of each column or group, and the number of all

    def __init__(
        self,
        form: ForestOfTuples,
        splits: _kernels.Splits,
        nodes: Ints,
        edges: tuple[Ints, Ints, Ints, Ints, Bools, Ints, Bools],
        sizes: Ints,
        functions: Sequence[Function | None],
    ) -> None:
        """The form's ``nodes`` (S,) are those of splits, ``sizes`` (G,) numbers of columns' indicators."""
        self._splits, self._count, self._decode = splits, nodes.size, form.grouping.decode
        self._columns, self._groups = form.grouping.columns, dict[int, _Group]()
        column, same, lower, upper, missing, above, is_left = edges
        lower, upper, missing, sizes = lower.copy(), upper.copy(), missing.copy(), sizes.copy()
        trees = form.forest.trees
        for g, tuples in enumerate(form.grouping.tuples):
            its = np.flatnonzero(column == g)
            if tuples is None or not its.size:
                continue
            boxes, box = functions[g], upper[its]
            assert isinstance(boxes, BoxesOfTuples)  # noqa: S101 - the sets of a group
            first, which = form.distinct_tests(nodes[above[its]])
            lower[its], upper[its], missing[its], sizes[g] = 0, which, False, first.size
            of_group = np.unique(above[its])
            place = np.searchsorted(of_group, above[its]), 1 - is_left[its]
            tests = _kernels.Tests(trees, nodes[of_group]), _kernels.Tests(trees, nodes[above[its[first]]])
            self._groups[g] = _Group(
                tuples, form.grouping.members[g], of_group, *tests, first.size, boxes, box, place
            )
        self.start = np.concatenate([[0], np.cumsum(sizes)])
        self.intervals = _kernels.Intervals(
            splits, column, same, lower, upper, missing, above, is_left, self.start
        )

    def flags(self, x: Floats) -> dict[int, Bools]:
        """Whether rows (n, G) go left at the different tests of each group, (tests, n)."""
        columns, flags = np.ascontiguousarray(self._decode(x).T), dict[int, Bools]()
        for g, group in self._groups.items():
            flags[g] = np.empty((group.size, len(x)), dtype=np.bool_)
            _kernels.test_rows(group.different, columns, flags[g])
        return flags

    def counted(self, columns: Sequence[Column]) -> Bools:
        """Groups whose probabilities `add_masses` counts, (G,): none where more than cells decides laws."""
        counted = np.zeros(len(columns), dtype=np.bool_)
        counted[[*self._groups]] = all(_is_by_cell(columns[g]) for g in self._groups)
        return counted

    def add_masses(self, columns: Sequence[Column], masses: Floats) -> None:
        """Write the probabilities of groups' boxes under their laws, rows of masses (S, 2, V)."""
        for g, group in self._groups.items():
            column = columns[g]
            assert isinstance(column, IndicatorColumn)  # noqa: S101 - see `counted`
            cells = column.marginal.cells
            assert isinstance(cells, TupleCells)  # noqa: S101 - the law of a group
            inside = cells.rows[column.cell]
            rows = np.stack([inside, cells.rows.sum() - inside], axis=1)
            tuples = [cells.tuples_in(cell) for cell in column.cell.tolist()]
            self._write(group, tuples, column.mixing[:, 0] / np.maximum(rows, 1.0), self._rows, masses)

    @cached_property
    def _rows(self) -> Floats:
        """Background rows in the groups' boxes below every split, (S, 2)."""
        rows = np.zeros((self._count, 2))
        for group in self._groups.values():
            split, side = group.place
            rows[group.splits[split], side] = group.boxes.of_background[group.box]
        return rows

    def _write(
        self, group: _Group, tuples: Sequence[Ints], scales: Floats, rows: Floats, masses: Floats
    ) -> None:
        """Write rows of masses for laws that have these tuples of the background in their cells."""
        every = np.concatenate(tuples)
        x = np.zeros((self._columns, every.size))
        x[group.members] = group.tuples.background[every].T
        ends, counts = np.cumsum([its.size for its in tuples]), group.tuples.counts[every].astype(np.uint32)
        forest = self._splits, self.intervals, group.tests, group.splits
        _kernels.tuple_masses(*forest, x, counts, ends, scales, rows, masses)


def _is_by_cell(column: Column) -> bool:
    return isinstance(column, IndicatorColumn) and isinstance(column.law, Marginal)
