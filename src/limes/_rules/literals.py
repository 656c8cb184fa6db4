"""Literals: a table as named yes-or-no facts, +1 where a fact holds and -1 where it does not.

The rows that a rule is about consist of -1 and +1, the user's own (:class:`SignRows`) or those of a table's
literals (:class:`LiteralRows`), or are rows of a table whose columns keep their value or leave their bin
(:class:`TableRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints, Objects
from limes._checks import check_choice, did_you_mean
from limes._explainers.tables.laws import Writer, between_cells, cell_texts, number_texts, writer_of
from limes._explainers.tables.table import Table
from limes._explainers.verified_form import even_positions, shuffled
from limes._explanation.wording import count
from limes._names import Names, text_of
from limes._rules.bounds import Box
from limes._rules.neighbourhood import (
    FLIP_LAWS,
    SIGNS,
    TABLE_DRAWS,
    ColumnChanges,
    ColumnDraws,
    LiteralFlips,
    LiteralNeighbourhood,
    OtherValues,
    TableDraws,
    checked_signs,
    with_values,
)
from limes._threads import LRUCache
from limes.designs._bins import bin_edges
from limes.designs._marginals import BinCells, Marginal, binned, categorical
from limes.exceptions import InputError
from limes.models._reading import Schema, fitted_columns
from limes.models.forms._base import Form

# Rows whose cells are cached: each is looked up several times
_ROWS = 4096
# Cells of a column whose values are cached
_CELLS = 64


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
        return cls.of_table(Table.fit(background, categorical=categorical), bins, encoding)

    @classmethod
    def of_table(cls, table: Table, bins: Any = 4, encoding: str = "bins") -> Literals:
        """Learn the literals of an encoded table; see ``fit``.

        Parameters
        ----------
        table
            The background, encoded.
        bins, encoding
            As for ``fit``.
        """
        edges = bin_edges(table.matrix, table.numeric, bins=bins, target=None, names=table.names)
        columns = []
        for j, column in enumerate(table.columns):
            law, write = _law(table.matrix[:, j], between_cells(column, edges[j])), writer_of(column)
            cells = cell_texts(column, law, table.matrix[:, j])
            literals_of = _ENCODINGS[encoding if isinstance(law.cells, BinCells) else "bins"]
            texts = literals_of(column.name, law, table.matrix[:, j], cells, write)
            columns.append(LiteralColumn(column.name, law, table.matrix[:, j], cells, *texts, write))
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
        return np.where(self._holds(self.cells(self.table.encode(X))), 1.0, -1.0)

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
        return np.where(self._background_holds[:, positions], 1.0, -1.0)

    @cached_property
    def _background_holds(self) -> Bools:
        return self._holds(self.background_cells)

    def _holds(self, cells: Ints) -> Bools:
        """Return which literals hold in rows of cells, (n, d)."""
        return np.concatenate([c.holds[cells[:, j]] for j, c in enumerate(self.columns)], axis=1)

    def cells(self, matrix: Floats) -> Ints:
        """Return the cell of each value of an encoded table ``matrix``, (n, columns)."""
        return np.stack([c.law.cells.locate(matrix[:, j]) for j, c in enumerate(self.columns)], axis=1)

    def changes(self, row: Floats, spread: float, law: str = "literal") -> ColumnChanges:
        """Return the neighbourhood of an encoded ``row``: a column keeps its value, or leaves its bin.

        Which columns do is drawn by ``law``: "literal", each with probability e^{-σ}/(1 + e^{-σ}), σ =
        ``spread``, or "count", j of them with probability proportional to e^{-σj}.
        """
        others = [
            column.elsewhere[cell] for column, cell in zip(self.columns, self.cells_of(row), strict=True)
        ]
        return ColumnChanges(row, others, spread, FLIP_LAWS[law])

    def draws(self, row: Floats, law: str) -> ColumnDraws | TableDraws:
        """Return the neighbourhood of an encoded ``row`` that keeps nothing but facts.

        The other columns are drawn from the table, by ``law``: "background", as whole rows, or "marginals",
        each on its own. With "thresholds" facts of "background" are sides of a cut, too.
        """
        pairs = list(zip(self.columns, self.cells_of(row), strict=True))
        if law == "marginals":
            inside = [column.within(cell) for column, cell in pairs]
            return ColumnDraws(row, inside, [column.elsewhere[cell] for column, cell in pairs])
        varying, holds, values, texts, every = [], [], [], [], []
        for j, (column, cell) in enumerate(pairs):
            for cells, text in column.facts(cell, sides=self.encoding == "thresholds"):
                has = cells[self.background_cells[:, j]]
                if has.all():
                    continue
                varying.append(j)
                holds.append(has)
                values.append(self.table.matrix[has, j])
                texts.append(text)
                every.append(cells)
        size = len(self.table.matrix)
        in_rows = np.stack(holds, axis=1) if holds else np.zeros((size, 0), dtype=np.bool_)
        owners = np.array(varying, dtype=np.int64)
        return TableDraws(row, self.table.matrix, owners, in_rows, values, tuple(texts), every)

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
    """One column: its cells, its literals, and which of them hold in which cell."""

    name: str
    law: Marginal  # of the background
    values: Floats  # (n,) of the background
    cells: tuple[str, ...]  # texts
    names: tuple[str, ...]  # texts of the literals
    holds: Bools  # (cells, literals)
    write: Writer = number_texts  # of edges
    _within: LRUCache[int, OtherValues] = field(default_factory=lambda: LRUCache(_CELLS), repr=False)

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
        return tuple(OtherValues(self.values[self._owner != cell]) for cell in range(self.law.cells.count))

    def within(self, cell: int) -> OtherValues:
        return self._within.get(cell, lambda: OtherValues(self.values[self._owner == cell]))

    def facts(self, cell: int, *, sides: bool) -> list[tuple[Bools, str]]:
        """Return facts that hold in a cell: the cells (count,) of which each does, and its text.

        With ``sides`` those of a bin are also "above its lower edge" and "up to its upper edge".
        """
        places = np.arange(self.law.cells.count)
        alone = [(places == cell, self.cells[cell])]
        if not sides or not isinstance(self.law.cells, BinCells):
            return alone
        edges, bins = self.law.cells.edges, self.law.cells.count - self.law.cells.missing
        if not 0 < cell < bins - 1:
            return alone  # which is a side, or "missing"
        inner = self.write(edges[1:-1], self.values)
        above, below = (places >= cell) & (places < bins), places <= cell
        return [
            *alone,
            (above, f"{self.name} > {inner[cell - 1]}"),
            (below, f"{self.name} <= {inner[cell]}"),
        ]

    @cached_property
    def distinct(self) -> Floats:
        return np.unique(self.values)

    @cached_property
    def inside(self) -> tuple[Floats, ...]:
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
        inner = self.write(edges[1:-1], self.values)
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
                "literals that flip independently need not form a row; use neighbourhood='columns'"
            )
        return np.asarray(same.argmax(axis=1))


def _law(x: Floats, edges: Floats | None) -> Marginal:
    return categorical(x) if edges is None else binned(x, edges, law="empirical")


# Literals of a column, and which of them hold in each cell (cells, literals)
Texts = tuple[tuple[str, ...], Bools]


def _per_cell(
    name: str,  # noqa: ARG001 - one signature
    law: Marginal,  # noqa: ARG001
    values: Floats,  # noqa: ARG001
    cells: tuple[str, ...],
    write: Writer,  # noqa: ARG001
) -> Texts:
    return cells, np.eye(len(cells), dtype=np.bool_)


def _per_cut(name: str, law: Marginal, values: Floats, cells: tuple[str, ...], write: Writer) -> Texts:
    """Return one literal per cut, and one for missing values, where no other literal holds."""
    assert isinstance(law.cells, BinCells)  # noqa: S101 - categories have one literal a level
    cuts = write(law.cells.edges[1:-1], values)
    holds = np.arange(law.cells.count)[:, None] > np.arange(len(cuts))[None, :]
    names = [f"{name} > {cut}" for cut in cuts]
    if law.cells.missing:
        names.append(cells[-1])
        holds = np.pad(holds, ((0, 0), (0, 1)))
        holds[-1] = [False] * len(cuts) + [True]
    return tuple(names), holds


_ENCODINGS: Mapping[str, Callable[[str, Marginal, Floats, tuple[str, ...], Writer], Texts]] = {
    "bins": _per_cell,
    "thresholds": _per_cut,
}


# Numbers that a model may take for a literal that does not hold, and for one that does
_VALUES = (SIGNS, (0.0, 1.0))
# Rows that a fitted model keeps, by which a model of the other numbers is noticed
_KEPT_ROWS = ("X_fit_", "X_train_", "_fit_X", "support_vectors_")
# Background rows whose answers make the scale
_SCALE_ROWS = 1000
# Rows of the law on which form and model are compared
_CHECKED_ROWS = 256


class SignRows:
    """Rows of -1 and +1 (or of 0 and 1) as users pass them, and the base of those that literals make."""

    label = "literals flip on their own"
    kind = "literal"
    counts_facts = False  # the paper's literals count +1 and -1
    schema: Schema | None = None
    width: int | None = None
    remark = ""  # where the model was fitted on other columns

    def __init__(self, law: str = "literal", values: tuple[float, float] = SIGNS) -> None:
        self._law, self.values = law, values

    def decode(self, x: Floats) -> Any:
        return x

    def for_model(self, model: Any) -> SignRows:  # noqa: ARG002 - literals have no order of the model's
        """Return the rows as a model takes them."""
        return self

    def form_of(self, form: Form) -> Form:
        """Return a form over rows as the model takes them as one over these rows."""
        return form

    def encode(self, X: Any) -> Floats:
        rows = np.atleast_2d(np.asarray(X))
        if rows.dtype.kind not in "biuf" or rows.ndim != 2 or 0 in rows.shape:
            raise InputError(
                f"rows must be numbers -1 and +1, (rows, literals); got {type(X).__name__} of shape "
                f"{rows.shape}: use literals=limes.Literals.fit(...) for a table"
            )
        rows = rows.astype(np.float64)
        wrong = np.argwhere((rows != self.values[0]) & (rows != self.values[1]))
        if wrong.size and self.values != SIGNS:
            row, literal = wrong[0]
            raise InputError(
                f"row {row}, literal {literal} is {rows[row, literal]:g}: values=(0, 1) are 0 or 1"
            )
        return rows

    def near(self, row: Floats, spread: float) -> LiteralNeighbourhood:
        return LiteralFlips(checked_signs(self.signs(row)), spread, FLIP_LAWS[self._law], self.values)

    def check_varies(self, near: LiteralNeighbourhood, name: Any) -> None:
        """Raise if no literal of a row, by its name, can change; one that flips always can."""

    def signs(self, row: Floats) -> Floats:
        """Return x of a row, -1 and +1, which the weights are multiplied with."""
        return row if self.values == SIGNS else 2.0 * row - 1.0

    def names(self, size: int) -> tuple[str, ...]:
        return tuple(f"x{j}" for j in range(size))

    def conditions(self, row: Floats) -> tuple[str, ...]:
        return self.names(row.size)

    def condition(self, row: Floats, j: int) -> str:
        return f"x{j} = {row[j]:g}"

    def facts(self, row: Floats, u: Floats) -> list[tuple[str, float]]:
        """Return the facts of a rule, which hold at the row, with their parts of the prediction."""
        return [(self.condition(row, j), float(u[j])) for j in np.flatnonzero(u).tolist()]

    def positions(self, option: str, names: Iterable[Any], size: int) -> Ints:
        """Return the features that an option names, of ``size`` in all."""
        every = [self._positions(option, name, size) for name in names]
        return np.array(sorted({j for its in every for j in its}), dtype=np.int64)

    def _positions(self, option: str, name: Any, size: int) -> Sequence[int]:
        """Return the features that a name, or a position, stands for."""
        return self._called(option, Names(self.names(size)), name)

    def _called(self, option: str, names: Names, name: Any) -> Sequence[int]:
        positions = names.positions(name)
        if not positions:
            advice = did_you_mean(name, map(text_of, names.names))
            raise InputError(f"{option}= names {name!r}, which is no {self.kind}{advice}")
        return positions

    @property
    def background_size(self) -> int | None:
        """Number of rows of the background; None without one."""
        return None

    def coverage(self, row: Floats, features: Ints) -> float | None:  # noqa: ARG002 - there is no background
        """Return the share of background rows with the row's facts in these features; None without any."""
        return None

    def rows_with(self, row: Floats, features: Ints) -> Floats | None:  # noqa: ARG002
        """Return the background's rows, as the model takes them, with the row's facts in these features."""
        return None

    def box(self, row: Floats, features: Ints) -> Box:
        """Return all rows with the row's facts in these features."""
        free = np.ones(row.size, dtype=np.bool_)
        free[features] = False
        both = np.array(self.values)
        return tuple(both if free[j] else row[j : j + 1] for j in range(row.size))

    def background(self) -> Floats:
        """Return the rows of the background, (n, columns)."""
        raise InputError(
            "among='rows' needs a table: pass literals=limes.Literals.fit(background), or domain="
        )

    def some_background(self) -> Floats:
        """Return some rows of the background, (n, columns); none without one."""
        return np.zeros((0, 1 if self.width is None else self.width))

    def is_unordered(self, j: int) -> bool:  # noqa: ARG002 - as that of tables
        """Whether values of column j neither rise nor fall."""
        return False

    def distances(self, rows: Floats, row: Floats) -> Floats:
        """Return how far rows (n, columns) are from a row, column by column."""
        return np.asarray(rows != row, dtype=np.float64)

    def originals(self, rows: Floats) -> Objects:
        return rows

    def checked_rows(self, size: int) -> Floats:
        return np.random.default_rng(0).choice(self.values, (_CHECKED_ROWS, size))

    def scale_answers(self, ask: Callable[[Floats], Floats]) -> Floats:  # noqa: ARG002 - there is no background
        """Return answers that an assumed range has to cover, besides those around the row."""
        return np.zeros(0)


class LiteralRows(SignRows):
    """A table seen as rows of -1 and +1, or 0 and 1 (``neighbourhood="flips"``)."""

    kind = "literal or column"

    def __init__(self, literals: Literals, law: str, values: tuple[float, float]) -> None:
        super().__init__(law, values)
        self.literals = literals
        self.width = len(literals.names)

    def encode(self, X: Any) -> Floats:
        return with_values(self.literals.transform(X), self.values)

    def names(self, size: int) -> tuple[str, ...]:  # noqa: ARG002 - the literals' own
        return self.literals.names

    def condition(self, row: Floats, j: int) -> str:
        name = self.literals.names[j]
        return name if row[j] > 0 else _negation(name)

    def facts(self, row: Floats, u: Floats) -> list[tuple[str, float]]:
        """Literals of one column are one fact, where together they have a text."""
        support, owners, facts = np.flatnonzero(u), self.literals.owners, []
        for owner in dict.fromkeys(owners[support].tolist()):
            column, chosen = self.literals.columns[owner], support[owners[support] == owner]
            places = chosen - np.searchsorted(owners, owner)
            text = column.together(places, self.signs(row)[chosen]) if chosen.size > 1 else None
            if text is not None:
                facts.append((text, float(u[chosen].sum())))
                continue
            facts.extend((self.condition(row, j), float(u[j])) for j in chosen.tolist())
        return facts

    def _positions(self, option: str, name: Any, size: int) -> Sequence[int]:
        literals = Names(self.names(size)).called(name)
        if literals:
            return literals
        (column,) = self._called(option, self.literals.table.keys, name)
        return np.flatnonzero(self.literals.owners == column).tolist()

    @property
    def background_size(self) -> int | None:
        return len(self.literals.table.matrix)

    def coverage(self, row: Floats, features: Ints) -> float | None:
        return float(self._have(row, features).mean())

    def rows_with(self, row: Floats, features: Ints) -> Floats | None:
        every = np.arange(len(self.literals.names))
        return with_values(self.literals.background_signs(every)[self._have(row, features)], self.values)

    def _have(self, row: Floats, features: Ints) -> Bools:
        same = self.literals.background_signs(features) == self.signs(row)[features]
        return np.asarray(same.all(axis=1))


_CHANGES = "a column keeps its value, or takes a background value of another bin"
_TABLE_LABELS = {
    "background": "rows of the table, with values of the facts' bins where they lack them",
    "marginals": "columns take values of the table independently; those of facts in their bins",
}


class TableRows(SignRows):
    """Rows of a table: a column keeps its value or leaves its bin, or all but the facts are drawn anew."""

    kind = "column"
    counts_facts = True

    def __init__(self, literals: Literals, law: str) -> None:
        super().__init__(law)
        self.label = _TABLE_LABELS.get(law, _CHANGES)
        self.literals = literals
        self.width = len(literals.columns)
        self.schema = literals.table.schema

    def for_model(self, model: Any) -> TableRows:
        table = self.literals.table.for_model(model)
        rows = TableRows(replace(self.literals, table=table), self._law)
        rows.remark = table.remark
        return rows

    def form_of(self, form: Form) -> Form:
        return self.literals.table.form_of(form)

    def decode(self, x: Floats) -> Any:
        return self.literals.table.decode(x)

    def encode(self, X: Any) -> Floats:
        return self.literals.table.encode(X)

    def near(self, row: Floats, spread: float) -> LiteralNeighbourhood:
        if self._law in TABLE_DRAWS:
            return self.literals.draws(row, self._law)
        return self.literals.changes(row, spread, self._law)

    def check_varies(self, near: LiteralNeighbourhood, name: Any) -> None:
        if near.varying.size:
            return
        rows = count(len(self.literals.table.matrix), "row")
        raise InputError(
            f"row {name!r} has no neighbours: the table of the literals has {rows}, and in no column a value "
            "of another bin than this row's; fit limes.Literals on a table whose rows differ, such as the "
            "training data"
        )

    def signs(self, row: Floats) -> Floats:
        return np.ones(row.size)

    def names(self, size: int) -> tuple[str, ...]:  # noqa: ARG002 - the table's own
        return self.literals.table.names

    def _positions(self, option: str, name: Any, size: int) -> Sequence[int]:  # noqa: ARG002 - the table's own
        return self._called(option, self.literals.table.keys, name)

    def conditions(self, row: Floats) -> tuple[str, ...]:
        return self.literals.conditions(row)

    def condition(self, row: Floats, j: int) -> str:
        return self.conditions(row)[j]

    @property
    def background_size(self) -> int | None:
        return len(self.literals.table.matrix)

    def coverage(self, row: Floats, features: Ints) -> float | None:
        return float(self._have(row, features).mean())

    def rows_with(self, row: Floats, features: Ints) -> Floats | None:
        return self.literals.table.matrix[self._have(row, features)]

    def _have(self, row: Floats, features: Ints) -> Bools:
        cells = np.array(self.literals.cells_of(row))[features]
        return np.asarray((self.literals.background_cells[:, features] == cells).all(axis=1))

    def box(self, row: Floats, features: Ints) -> Box:
        """Return all combinations of background values with the row's cells in these columns."""
        cells = self.literals.cells_of(row)
        values = [column.distinct for column in self.literals.columns]
        for j in features:
            values[j] = self.literals.columns[j].inside[cells[j]]
        return tuple(
            column if row[j] in column else np.union1d(column, row[j]) for j, column in enumerate(values)
        )

    def background(self) -> Floats:
        return self.literals.table.matrix

    def is_unordered(self, j: int) -> bool:
        return not self.literals.table.columns[j].has_order

    def distances(self, rows: Floats, row: Floats) -> Floats:
        """For numbers in standard deviations of the background; of categories, and missing values, 1."""
        table = self.literals.table
        spread = np.nanstd(table.matrix, axis=0)
        apart = np.abs(rows - row) / np.where(spread > 0.0, spread, 1.0)
        counted = table.numeric & ~np.isnan(apart)
        same = (rows == row) | (np.isnan(rows) & np.isnan(row))
        return np.where(counted, apart, np.where(same, 0.0, 1.0))

    def originals(self, rows: Floats) -> Objects:
        return self.literals.table.originals(rows)

    def checked_rows(self, size: int) -> Floats:  # noqa: ARG002 - the table's own
        return np.concatenate([self.some_background(), shuffled(self.literals.table.matrix, _CHECKED_ROWS)])

    def scale_answers(self, ask: Callable[[Floats], Floats]) -> Floats:
        return ask(self.some_background())

    def some_background(self) -> Floats:
        matrix = self.literals.table.matrix
        return np.asarray(matrix[even_positions(len(matrix), _SCALE_ROWS)])


# Directions in which columns may move alone
MOVES = {"up": "rises", "down": "falls"}


def directed_positions(rows: SignRows, name: Any, size: int) -> list[int]:
    """Return the columns of a name that only rises or only falls; they need an order."""
    positions: list[int] = rows.positions("directions", (name,), size).tolist()
    if any(map(rows.is_unordered, positions)):
        raise InputError(
            f"directions names {name!r}, whose categories have no order: pass an ordered categorical column, "
            "or fixed="
        )
    return positions


def rows_of(literals: Literals | None, neighbourhood: str | None, law: str, values: Any) -> SignRows:
    check_choice("law", law, (*FLIP_LAWS, *TABLE_DRAWS))
    if law in TABLE_DRAWS and (literals is None or neighbourhood == "flips"):
        raise InputError(
            f"law={law!r} draws columns from a table: pass literals=limes.Literals.fit(background), and "
            "leave out neighbourhood='flips'"
        )
    numbers = next((pair for pair in _VALUES if isinstance(values, Sequence) and tuple(values) == pair), None)
    if numbers is None:
        raise InputError(f"values must be (-1, 1) or (0, 1), got {values!r}")
    if literals is None:
        if neighbourhood not in (None, "flips"):
            raise InputError(f"neighbourhood={neighbourhood!r} needs literals=limes.Literals.fit(background)")
        return SignRows(law, numbers)
    if not isinstance(literals, Literals):
        raise InputError(f"literals must be made by limes.Literals.fit, got {type(literals).__name__}")
    check_choice("neighbourhood", neighbourhood or "columns", ("columns", "flips"))
    if neighbourhood != "flips" and literals.encoding != "bins" and law != "background":
        raise InputError(
            f"encoding={literals.encoding!r} has no effect where a literal is a column that keeps its bin: "
            "use encoding='bins', or law='background', or neighbourhood='flips' and a model of the literals' "
            "-1 and +1"
        )
    if not literals.names:
        rows = count(len(literals.table.matrix), "row")
        raise InputError(
            f"the table has no literals: it has {rows}, and no column with a cut between its values; "
            "fit limes.Literals on a table whose rows differ, such as the training data"
        )
    if neighbourhood == "flips":
        return LiteralRows(literals, law, numbers)
    if numbers != SIGNS:
        raise InputError("values= has an effect where literals flip: pass neighbourhood='flips', too")
    return TableRows(literals, law)


def check_columns(model: Any, rows: SignRows) -> None:
    """Raise if a model was fitted on more or fewer columns than its rows will have, or on other values."""
    fitted = fitted_columns(model)
    if fitted is not None and rows.width is not None and fitted != rows.width:
        raise InputError(
            f"the model was fitted on {fitted} columns, and rows of this neighbourhood have {rows.width}: "
            "neighbourhood='columns' is for models of the literals' table, 'flips' for those of -1 and +1"
        )
    if isinstance(rows, TableRows):
        return
    for name in _KEPT_ROWS:
        kept = getattr(model, name, None)
        if not isinstance(kept, np.ndarray) or kept.dtype.kind not in "biuf" or not kept.size:
            continue
        numbers = np.unique(kept)
        fits = [pair for pair in _VALUES if np.isin(numbers, pair).all()]
        if fits and rows.values not in fits:
            raise InputError(
                f"the model was fitted on literals {fits[0]}, and these rows have {rows.values}: pass "
                f"values={tuple(int(number) for number in fits[0])}"
            )


def _negation(text: str) -> str:
    """Return the negation of a text: ``a <= 1`` for ``a > 1``, ``a != b`` for ``a = b``."""
    for sign, other in ((" <= ", " > "), (" > ", " <= "), (" = ", " != ")):
        if text.count(sign) == 1 and " < " not in text:
            return text.replace(sign, other)
    return f"not ({text})"
