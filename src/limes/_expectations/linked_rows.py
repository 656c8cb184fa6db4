r"""Exponentials e^{z f_j} of a margin's columns at many rows under smooth weights.

Every row has its own laws, so that a column's table has one line, and one range of f_j, for each row. The
points that represent the laws of a column (``designs/_tilted_laws.py``) are chosen once, fine enough for the
fastest exponentials of the link, and are used for its ranges, all contours and all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from limes._arrays import Floats, Ints, times
from limes._expectations.tabulated import ColumnTables, NodeGroup
from limes._functions import Function
from limes._kernels import add_exponentials
from limes.designs._tilted_columns import TiltedColumn
from limes.exceptions import ModelError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes

# Exponents of the waves that decide how fine the points are are clipped to this: no float64 overflows
_STEEPEST = 600.0

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ColumnAtRows:
    """The part of one margin that one column adds, at n rows.

    Attributes
    ----------
    place
        Position of the column.
    value
        f at the points, (K,); those of a row are side by side.
    weight
        (2, K), weights of the points in both functionals.
    start
        The first point of each row, and K, (n + 1,).
    mixing
        (n, 2, 2), matrices that turn functionals into mean and contrast.
    """

    place: int
    value: Floats
    weight: Floats
    start: Ints
    mixing: Floats

    @classmethod
    def of(
        cls, place: int, column: TiltedColumn, function: Function, loading: Floats, fastest: Complexes
    ) -> ColumnAtRows:
        """Choose the points of f = loading · functions.

        Raises
        ------
        ModelError
            If f is not finite somewhere.
        """

        def margin(x: Floats) -> Floats:
            return times(function(x).T, loading)

        def waves(x: Floats) -> Floats:
            exponents = np.multiply.outer(fastest, margin(x))
            waves = np.exp(np.clip(exponents.real, -_STEEPEST, _STEEPEST) + 1j * exponents.imag)
            return np.concatenate([waves.real, waves.imag])

        points = column.points(function, waves)
        value = margin(points.x)
        if not np.isfinite(value).all():
            raise ModelError(f"the margin has no finite value somewhere in column {place}")
        start = np.searchsorted(points.row, np.arange(len(column.mixing) + 1))
        return cls(place, value, np.ascontiguousarray(points.weight), start, column.mixing)

    @property
    def places(self) -> Ints:
        """Position of the column, (1,)."""
        return np.array([self.place])

    @cached_property
    def lower(self) -> Floats:
        """The least f, and a little less, (n,)."""
        return self._ends[0]

    @cached_property
    def upper(self) -> Floats:
        """The largest f, and a little more, (n,)."""
        return self._ends[1]

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        lower, upper = (pick.reduceat(self.value, self.start[:-1]) for pick in (np.minimum, np.maximum))
        # a curve may rise higher between two points
        slack = 0.01 * (upper - lower)
        return lower - slack, upper + slack

    def select(self, rows: Ints) -> ColumnAtRows:
        """Return the column at some of the rows."""
        count = np.diff(self.start)[rows]
        start = np.concatenate([[0], np.cumsum(count)])
        points = np.repeat(self.start[rows] - start[:-1], count) + np.arange(start[-1])
        return ColumnAtRows(
            self.place, self.value[points], np.take(self.weight, points, axis=1), start, self.mixing[rows]
        )

    def tables(
        self, groups: Sequence[NodeGroup], derive: Callable[[Complexes, Complexes, Floats], T]
    ) -> ColumnTables[T]:
        """Return lookups of means (n, N), contrasts (n, 1, N) and offsets (n, N), converted to a T."""
        [group] = groups
        growth = group.nodes.real
        offsets = np.maximum(np.multiply.outer(self.lower, growth), np.multiply.outer(self.upper, growth))
        sums = self._sums(group, offsets)
        mean, contrast = np.einsum("nab,nbk->ank", self.mixing, sums)
        return ColumnTables(self.place, offsets, derive(mean, contrast[:, None], offsets))

    def _sums(self, group: NodeGroup, offsets: Floats) -> Complexes:
        """Both functionals of e^{zf - offset}, (n, 2, N)."""
        sums = np.zeros((len(offsets), 2, 2, group.nodes.size))
        nodes = group.nodes.view(np.float64).reshape(-1, 2)
        add_exponentials(self.value, self.weight, self.start, nodes, group.equidistant, offsets, sums)
        return np.asarray(sums[:, :, 0] + 1j * sums[:, :, 1])


def columns_at_rows(
    form: Linked, margin: int, fastest: Complexes, columns: Sequence[TiltedColumn]
) -> list[ColumnAtRows]:
    """Return the columns that add to one margin, at all rows."""
    pairs = enumerate(zip(form.margins.terms.functions, form.margins.terms.loadings, strict=True))
    return [
        ColumnAtRows.of(place, columns[place], function, loading[:, margin], fastest)
        for place, (function, loading) in pairs
        if function is not None and loading[:, margin].any()
    ]
