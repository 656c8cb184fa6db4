"""Literals: a table as named yes-or-no facts, +1 where a fact holds and -1 where it does not.

``rule_rows.py`` makes rows of them that a sparse explanation is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints
from limes._checks import check_choice
from limes._explainers.tables.laws import cell_texts, number_texts
from limes._explainers.tables.table import Table
from limes._explanation.wording import count
from limes._threads import LRUCache
from limes.designs._bins import bin_edges
from limes.designs._columns import binned, categorical
from limes.designs._literals import (
    ColumnChanges,
    OtherValues,
)
from limes.designs._marginals import BinCells, Marginal
from limes.exceptions import InputError

# Rows whose cells are cached: each is looked up several times
_ROWS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class Literals:
    """A table's columns as named literals, learnt from a background.

    Made by :meth:`fit`. A column is cut into cells: quantile bins of a number, the levels of a category, and
    "missing" where the background has missing values.

    Attributes
    ----------
    table
        The background, as :meth:`fit` encoded it.
    columns
        The cells of each column.
    encoding
        "bins", as :meth:`fit` makes them.
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
    encoding: str = "bins"
    _located: LRUCache[bytes, tuple[int, ...]] = field(default_factory=lambda: LRUCache(_ROWS), repr=False)

    def __repr__(self) -> str:
        facts = count(len(self.names), "literal")
        return f"<Literals: {facts} of {count(len(self.columns), 'column')}, {self.encoding!r}>"

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
            cells = cell_texts(column, law, table.matrix[:, j])
            literals_of = _ENCODINGS[encoding if isinstance(law.cells, BinCells) else "bins"]
            texts = literals_of(column.name, law, table.matrix[:, j], cells)
            columns.append(LiteralColumn(column.name, law, table.matrix[:, j], cells, *texts))
        return cls(table, tuple(columns), encoding)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Texts of the literals."""
        return tuple(text for column in self.columns for text in column.names)

    @cached_property
    def owners(self) -> Ints:
        """Column of each literal, (d,)."""
        return np.repeat(np.arange(len(self.columns)), [len(column.names) for column in self.columns])

    def transform(self, X: Any) -> Floats:
        """Return rows ``X`` of a table as literals, (n, d), of -1 and +1.

        Raises
        ------
        InputError
            If columns do not match, or a cell cannot be read: says which.
        """
        cells = self.cells(self.table.encode(X))
        signs = [column.holds[cells[:, j]] for j, column in enumerate(self.columns)]
        return np.where(np.concatenate(signs, axis=1), 1.0, -1.0)

    def inverse_transform(self, Z: ArrayLike) -> Any:
        """Return literals ``Z`` (n, d) as a table of the background's kind, with a typical value of each bin.

        Raises
        ------
        InputError
            If the shape is wrong, or no row can have these literals (a column in two bins, or in none).
        """
        holds = self._checked(np.asarray(Z, dtype=np.float64)) > 0
        starts = np.searchsorted(self.owners, np.arange(1, len(self.columns)))
        parts = np.split(holds, starts, axis=1)
        places = [column.cell_of(part) for column, part in zip(self.columns, parts, strict=True)]
        typical = [column.typical[cell] for column, cell in zip(self.columns, places, strict=True)]
        return self.table.decode(np.column_stack(typical))

    @cached_property
    def background_cells(self) -> Ints:
        """The cell of each value of the background, (n, columns)."""
        return self.cells(self.table.matrix)

    def background_signs(self, positions: Ints) -> Floats:
        """Return the literals at ``positions`` of the background, -1 or +1, (n, positions)."""
        cells, signs = self.background_cells, np.empty((len(self.background_cells), positions.size))
        for place, (position, j) in enumerate(zip(positions, self.owners[positions], strict=True)):
            literal = position - np.searchsorted(self.owners, j)
            signs[:, place] = np.where(self.columns[j].holds[cells[:, j], literal], 1.0, -1.0)
        return signs

    def cells(self, matrix: Floats) -> Ints:
        """Return the cell of each value of an encoded table ``matrix``, (n, columns)."""
        return np.stack([c.law.cells.locate(matrix[:, j]) for j, c in enumerate(self.columns)], axis=1)

    def changes(self, row: Floats, spread: float) -> ColumnChanges:
        """Return the neighbourhood of an encoded ``row``: a column keeps its value, or leaves its bin.

        A column leaves it with probability e^{-σ}/(1 + e^{-σ}), σ = ``spread``.
        """
        others = [
            column.elsewhere[cell] for column, cell in zip(self.columns, self.cells_of(row), strict=True)
        ]
        return ColumnChanges(row, others, spread)

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """Return the text of each column's cell at an encoded ``row``."""
        return tuple(c.cells[cell] for c, cell in zip(self.columns, self.cells_of(row), strict=True))

    def cells_of(self, row: Floats) -> tuple[int, ...]:
        """Return the cell of each value of one encoded ``row``."""
        return self._located.get(row.tobytes(), lambda: tuple(self.cells(row[None, :])[0].tolist()))

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
    name
        Of the column.
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

    name: str
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
        typical = np.empty(self.law.cells.count)
        for cell in range(typical.size):
            inside = np.sort(self.values[self._owner == cell])
            typical[cell] = inside[inside.size // 2] if inside.size else self.law.means[cell]
        return typical

    @cached_property
    def elsewhere(self) -> tuple[OtherValues, ...]:
        """The background's values outside each cell."""
        return tuple(OtherValues(self.values[self._owner != cell]) for cell in range(self.law.cells.count))

    @cached_property
    def distinct(self) -> Floats:
        """The background's values, ascending, missing last."""
        return np.unique(self.values)

    @cached_property
    def inside(self) -> tuple[Floats, ...]:
        """The background's values in each cell, ascending."""
        owner = self.law.cells.locate(self.distinct)
        return tuple(self.distinct[owner == cell] for cell in range(self.law.cells.count))

    def together(self, literals: Ints, signs: Floats) -> str | None:
        """Return the text of several of the column's literals at once, (n,) positions and signs.

        "23 < bmi <= 31" stands for "bmi > 23" and not "bmi > 31"; None where they leave no run of bins and
        no single cell.
        """
        cells = np.flatnonzero((self.holds[:, literals] == (signs > 0)).all(axis=1))
        if cells.size == 1:
            return str(self.cells[cells[0]])
        if not isinstance(self.law.cells, BinCells) or cells.size == 0:
            return None
        edges, bins = self.law.cells.edges, self.law.cells.count - self.law.cells.missing
        if cells[-1] >= bins or cells[-1] - cells[0] >= cells.size:
            return None
        inner = number_texts(edges[1:-1], self.values)
        low = f"{inner[cells[0] - 1]} < " if cells[0] > 0 else ""
        high = f" <= {inner[cells[-1]]}" if cells[-1] < bins - 1 else ""
        if not high:
            return f"{self.name} > {inner[cells[0] - 1]}" if low else None
        return f"{low}{self.name}{high}"

    def cell_of(self, holds: Bools) -> Ints:
        """Return the cell that has exactly these literals, (n,)."""
        same = (holds[:, None, :] == self.holds[None, :, :]).all(axis=2)
        impossible = np.flatnonzero(~same.any(axis=1))
        if impossible.size:
            row = impossible[0]
            literals = [text for text, yes in zip(self.names, holds[row], strict=True) if yes]
            raise InputError(
                f"row {row}: no value of column {self.name!r} has exactly the literals {literals}; "
                "rows in which literals flip on their own cannot always be turned back"
            )
        return np.asarray(same.argmax(axis=1))


def _law(x: Floats, edges: Floats | None) -> Marginal:
    return categorical(x) if edges is None else binned(x, edges, law="empirical")


# Literals of a column, and which of them hold in each cell (cells, literals)
Texts = tuple[tuple[str, ...], Bools]


def _per_cell(name: str, law: Marginal, values: Floats, cells: tuple[str, ...]) -> Texts:  # noqa: ARG001 - one signature
    """Return one literal per cell."""
    return cells, np.eye(len(cells), dtype=np.bool_)


def _per_cut(name: str, law: Marginal, values: Floats, cells: tuple[str, ...]) -> Texts:
    """Return one literal per cut, and one for missing values, where no other literal holds."""
    assert isinstance(law.cells, BinCells)  # noqa: S101 - categories have one literal a level
    cuts = number_texts(law.cells.edges[1:-1], values)
    holds = np.arange(law.cells.count)[:, None] > np.arange(len(cuts))[None, :]
    names = [f"{name} > {cut}" for cut in cuts]
    if law.cells.missing:
        names.append(cells[-1])
        holds = np.pad(holds, ((0, 0), (0, 1)))
        holds[-1] = [False] * len(cuts) + [True]
    return tuple(names), holds


_ENCODINGS: Mapping[str, Callable[[str, Marginal, Floats, tuple[str, ...]], Texts]] = {
    "bins": _per_cell,
    "thresholds": _per_cut,
}
