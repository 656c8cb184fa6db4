"""Literals: a table as named yes-or-no facts, +1 where a fact holds and -1 where it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints
from limes.designs.bins import bin_edges
from limes.designs.columns import binned, categorical
from limes.designs.literals import ColumnChanges
from limes.designs.marginals import BinCells, Marginal
from limes.exceptions import InputError
from limes.explainers.conditions import cell_texts, number_texts
from limes.explainers.options import check_choice
from limes.explainers.table import Table


@dataclass(frozen=True, eq=False)
class Literals:
    """A table's columns as named literals, learnt from a background.

    Made by :meth:`fit`. A column is cut into cells: quantile bins of a number, the levels of a category, and
    "missing" where the background has missing values.

    Attributes
    ----------
    names
        Texts of the d literals: "income > 70", "proof_of_address = yes".
    owners
        (d,) the column that each literal is about.

    Examples
    --------
    >>> import limes
    >>> literals = limes.Literals.fit([[1.0], [2.0], [3.0], [4.0]], bins=2)
    >>> literals.names
    ('x0 <= 2.5', 'x0 > 2.5')
    >>> literals.transform([[1.5], [4.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    table: Table
    columns: tuple[LiteralColumn, ...]

    @classmethod
    def fit(
        cls, background: Any, bins: Any = 4, *, encoding: str = "bins", categorical: Any = None
    ) -> Literals:
        """Learn literals.

        Parameters
        ----------
        background
            Table or array (n, columns), as for :class:`limes.TabularExplainer`.
        bins
            Bins of numeric columns: a number of quantile bins, "quartile", "decile", or a list of edges.
        encoding
            "bins": one literal a bin, of which exactly one holds (K-bins one-hot). "thresholds": one a cut
            between bins ("income > 70"), which holds for all values above it. Categories have one a level.
        categorical
            Names or positions of columns of numbers to be taken as categories.

        Raises
        ------
        InputError
            If the background or an option is not usable.

        References
        ----------
        Koriche et al. 2025, section 7.1 (4 bins an attribute).
        """
        check_choice("encoding", encoding, tuple(_ENCODINGS))
        table = Table.fit(background, categorical=categorical)
        edges = bin_edges(table.matrix, table.numeric, bins=bins, target=None, names=table.names)
        columns = []
        for j, column in enumerate(table.columns):
            law = _law(table.matrix[:, j], edges[j])
            cells = cell_texts(column, law)
            of = _ENCODINGS[encoding if isinstance(law.cells, BinCells) else "bins"]
            columns.append(LiteralColumn(law, table.matrix[:, j], cells, *of(column.name, law, cells)))
        return cls(table, tuple(columns))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Texts of the literals."""
        return tuple(text for column in self.columns for text in column.names)

    @cached_property
    def owners(self) -> Ints:
        """Column of each literal, (d,)."""
        return np.repeat(np.arange(len(self.columns)), [len(column.names) for column in self.columns])

    def transform(self, X: Any) -> Floats:
        """Rows of a table as literals, (n, d), of -1 and +1.

        Raises
        ------
        InputError
            If columns do not match, or a cell cannot be read: says which.
        """
        cells = self.cells(self.table.encode(X))
        signs = [column.holds[cells[:, j]] for j, column in enumerate(self.columns)]
        return np.where(np.concatenate(signs, axis=1), 1.0, -1.0)

    def inverse_transform(self, Z: ArrayLike) -> Any:
        """Literals (n, d) as a table of the background's kind, with a typical value of each bin.

        Raises
        ------
        InputError
            If the shape is wrong, or no row can have these literals (a column in two bins, or in none).
        """
        holds = self._checked(np.asarray(Z, dtype=np.float64)) > 0
        starts = np.searchsorted(self.owners, np.arange(1, len(self.columns)))
        parts = np.split(holds, starts, axis=1)
        places = [
            column.cell_of(part, name)
            for column, part, name in zip(self.columns, parts, self.table.names, strict=True)
        ]
        typical = [column.typical[cell] for column, cell in zip(self.columns, places, strict=True)]
        return self.table.decode(np.column_stack(typical))

    def cells(self, matrix: Floats) -> Ints:
        """Cell of each value of an encoded table, (n, columns)."""
        return np.stack([c.law.cells.locate(matrix[:, j]) for j, c in enumerate(self.columns)], axis=1)

    def changes(self, row: Floats, spread: float) -> ColumnChanges:
        """The neighbourhood of an encoded row: a column keeps its value, or leaves its bin."""
        others = [
            column.elsewhere(cell) for column, cell in zip(self.columns, self._cells_of(row), strict=True)
        ]
        return ColumnChanges(row, others, spread)

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """What holds of each column of an encoded row: the text of its cell."""
        return tuple(c.cells[cell] for c, cell in zip(self.columns, self._cells_of(row), strict=True))

    def _cells_of(self, row: Floats) -> list[int]:
        return [int(cell) for cell in self.cells(row[None, :])[0]]

    def _checked(self, Z: Floats) -> Floats:
        if Z.ndim != 2 or Z.shape[1] != len(self.names):
            raise InputError(f"literals have shape {Z.shape}, expected (rows, {len(self.names)})")
        if not (np.abs(Z) == 1.0).all():
            row, literal = np.argwhere(np.abs(Z) != 1.0)[0]
            raise InputError(
                f"row {row}, {self.names[literal]!r} is {Z[row, literal]}: literals are -1 or +1"
            )
        return Z


@dataclass(frozen=True, eq=False)
class LiteralColumn:
    """One column: its cells, its literals, and which of them hold in which cell.

    Attributes
    ----------
    law
        Of the background.
    values
        (n,) of the background.
    cells
        Text of each cell.
    names
        Texts of the literals.
    holds
        (cells, literals).
    """

    law: Marginal
    values: Floats
    cells: tuple[str, ...]
    names: tuple[str, ...]
    holds: Bools

    @cached_property
    def _owner(self) -> Ints:
        return self.law.cells.locate(self.values)

    @cached_property
    def typical(self) -> Floats:
        """A background value of each cell, (cells,): the middle one; an edge where a bin is empty."""
        found = np.empty(self.law.cells.count)
        for cell in range(found.size):
            inside = np.sort(self.values[self._owner == cell])
            found[cell] = inside[inside.size // 2] if inside.size else self.law.means[cell]
        return found

    def elsewhere(self, cell: int) -> Floats:
        """The background's values outside a cell."""
        return np.asarray(self.values[self._owner != cell])

    def cell_of(self, holds: Bools, name: str) -> Ints:
        """The cell that has exactly these literals, (n,)."""
        same = (holds[:, None, :] == self.holds[None, :, :]).all(axis=2)
        lost = np.flatnonzero(~same.any(axis=1))
        if lost.size:
            told = [text for text, yes in zip(self.names, holds[lost[0]], strict=True) if yes]
            raise InputError(
                f"row {lost[0]}: no value of column {name!r} has exactly the literals {told}; "
                "rows in which literals flip on their own cannot always be turned back"
            )
        return np.asarray(same.argmax(axis=1))


def _law(x: Floats, edges: Floats | None) -> Marginal:
    return categorical(x) if edges is None else binned(x, edges, law="empirical")


Texts = tuple[tuple[str, ...], Bools]


def _one_each(name: str, law: Marginal, cells: tuple[str, ...]) -> Texts:  # noqa: ARG001 - one signature
    """A literal a cell."""
    return cells, np.eye(len(cells), dtype=np.bool_)


def _cumulative(name: str, law: Marginal, cells: tuple[str, ...]) -> Texts:
    """A literal a cut, and one for missing values, in which no other literal holds."""
    assert isinstance(law.cells, BinCells)  # noqa: S101 - categories have one literal a level
    cuts = number_texts(law.cells.edges[1:-1])
    holds = np.arange(law.cells.count)[:, None] > np.arange(len(cuts))[None, :]
    names = [f"{name} > {cut}" for cut in cuts]
    if law.cells.missing:
        names.append(cells[-1])
        holds = np.pad(holds, ((0, 0), (0, 1)))
        holds[-1] = [False] * len(cuts) + [True]
    return tuple(names), holds


def opposite(text: str) -> str:
    """Say what holds where a text does not: ``a <= 1`` for ``a > 1``, ``a != b`` for ``a = b``."""
    for sign, other in ((" <= ", " > "), (" > ", " <= "), (" = ", " != ")):
        if text.count(sign) == 1 and " < " not in text:
            return text.replace(sign, other)
    return f"not ({text})"


_ENCODINGS: Mapping[str, Callable[[str, Marginal, tuple[str, ...]], Texts]] = {
    "bins": _one_each,
    "thresholds": _cumulative,
}
