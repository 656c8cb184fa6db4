"""Rows that a sparse explanation is about.

They consist of -1 and +1 (:class:`SignRows`), or are rows of a table whose columns keep their value or leave
their bin (:class:`TableRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes._checks import check_choice, did_you_mean
from limes._expectations.boxes import Box
from limes._explainers.tables.literals import Literals
from limes._explainers.verification import even_positions, shuffled
from limes.designs._literals import LiteralFlips, LiteralNeighbourhood, checked_signs
from limes.exceptions import InputError

# What a literal may be
_BOTH = np.array([-1.0, 1.0])
# Background rows whose answers make the scale
_SCALE_ROWS = 1000
# Rows of the law on which form and model are compared
_CHECKED_ROWS = 256


class SignRows:
    """Rows of -1 and +1 (``literals=None``), or a table seen as such rows (``neighbourhood="flips"``)."""

    label = "literals flip on their own"
    schema = None

    def __init__(self, literals: Literals | None) -> None:
        self._literals = literals
        self.width = None if literals is None else len(literals.names)

    def decode(self, x: Floats) -> Floats:
        """Return rows as the model takes them."""
        return x

    def encode(self, X: Any) -> Floats:
        """Return the user's rows as a matrix."""
        if self._literals is not None:
            return self._literals.transform(X)
        rows = np.atleast_2d(np.asarray(X))
        if rows.dtype.kind not in "biuf" or rows.ndim != 2 or 0 in rows.shape:
            raise InputError(
                f"rows must be numbers -1 and +1, (rows, literals); got {type(X).__name__} of shape "
                f"{rows.shape}: use literals=limes.Literals.fit(...) for a table"
            )
        return rows.astype(np.float64)

    def near(self, row: Floats, spread: float) -> LiteralFlips:
        """Return the neighbourhood of a row."""
        return LiteralFlips(checked_signs(row), spread)

    def signs(self, row: Floats) -> Floats:
        """Return x of a row, which the weights are multiplied with."""
        return row

    def names(self, size: int) -> tuple[str, ...]:
        """Return the names of the features."""
        return tuple(f"x{j}" for j in range(size)) if self._literals is None else self._literals.names

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """Return the label of each feature at a row."""
        return self.names(row.size)

    def facts(self, row: Floats, u: Floats) -> list[tuple[str, float]]:
        """Return the facts of a rule, which hold at the row, with their parts of the prediction.

        Literals of one column are one fact, where together they have a text.
        """
        support = np.flatnonzero(u)
        if self._literals is None:
            return [(self.condition(row, j), float(u[j])) for j in support.tolist()]
        facts = []
        owners = self._literals.owners
        for owner in dict.fromkeys(owners[support].tolist()):
            column, chosen = self._literals.columns[owner], support[owners[support] == owner]
            places = chosen - np.searchsorted(owners, owner)
            text = column.together(places, row[chosen]) if chosen.size > 1 else None
            if text is not None:
                facts.append((text, float(u[chosen].sum())))
                continue
            facts.extend((self.condition(row, j), float(u[j])) for j in chosen.tolist())
        return facts

    def condition(self, row: Floats, j: int) -> str:
        """Return the literal of a feature that holds at a row."""
        if self._literals is None:
            return f"x{j} = {row[j]:g}"
        name = self._literals.names[j]
        return name if row[j] > 0 else _negation(name)

    def positions(self, names: Sequence[Any], size: int) -> Ints:
        """Return the features of these names, or those of the columns of these names, of ``size`` in all."""
        features = self.names(size)
        columns = () if self._literals is None else self._literals.table.names
        kind = "literal" if self._literals is None else "literal or column"
        chosen: list[int] = []
        for name in names:
            if name in features:
                chosen.append(features.index(name))
            elif self._literals is not None and name in columns:
                chosen.extend(np.flatnonzero(self._literals.owners == columns.index(name)).tolist())
            else:
                raise _no_such(name, kind, (*columns, *features))
        return np.unique(np.array(chosen, dtype=np.int64))

    def coverage(self, row: Floats, features: Ints) -> float | None:
        """Return the share of background rows with the row's literals there; None without any."""
        if self._literals is None:
            return None
        return float((self._literals.background_signs(features) == row[features]).all(axis=1).mean())

    def box(self, row: Floats, features: Ints) -> Box:
        """Return all rows of literals with the row's literals there."""
        free = np.ones(row.size, dtype=np.bool_)
        free[features] = False
        return tuple(_BOTH if free[j] else row[j : j + 1] for j in range(row.size))

    def originals(self, rows: Floats) -> Objects:
        """Return the user's own values."""
        return rows

    def checked_rows(self, size: int) -> Floats:
        """Return rows of literals on which form and model are compared."""
        return np.random.default_rng(0).choice([-1.0, 1.0], (_CHECKED_ROWS, size))

    def scale_answers(self, ask: Callable[[Floats], Floats]) -> Floats:  # noqa: ARG002 - there is no background
        """Return answers that an assumed range has to cover, besides those around the row."""
        return np.zeros(0)


class TableRows:
    """Rows of a table: a column keeps its value or leaves its bin."""

    label = "a column keeps its value, or takes a background value of another bin"

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self.width: int | None = len(literals.columns)
        self.decode = literals.table.decode
        self.schema = literals.table.schema

    def encode(self, X: Any) -> Floats:
        """Return the user's rows as a matrix."""
        return self._literals.table.encode(X)

    def near(self, row: Floats, spread: float) -> LiteralNeighbourhood:
        """Return the neighbourhood of a row."""
        return self._literals.changes(row, spread)

    def signs(self, row: Floats) -> Floats:
        """Return x of a row, which the weights are multiplied with."""
        return np.ones(row.size)

    def names(self, size: int) -> tuple[str, ...]:  # noqa: ARG002 - the table's own
        """Return the names of the features."""
        return self._literals.table.names

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """Return the label of each feature at a row."""
        return self._literals.conditions(row)

    def facts(self, row: Floats, u: Floats) -> list[tuple[str, float]]:
        """Return the facts of a rule, which hold at the row, with their parts of the prediction."""
        return [(self.condition(row, j), float(u[j])) for j in np.flatnonzero(u).tolist()]

    def condition(self, row: Floats, j: int) -> str:
        """Return the text of a column's cell at a row."""
        return self.conditions(row)[j]

    def positions(self, names: Sequence[Any], size: int) -> Ints:
        """Return the columns of these names, of ``size`` in all."""
        columns = self.names(size)
        for name in names:
            if name not in columns:
                raise _no_such(name, "column", columns)
        return np.unique(np.array([columns.index(name) for name in names], dtype=np.int64))

    def coverage(self, row: Floats, features: Ints) -> float | None:
        """Return the share of background rows with the row's cells in these columns."""
        cells = np.array(self._literals.cells_of(row))[features]
        return float((self._literals.background_cells[:, features] == cells).all(axis=1).mean())

    def box(self, row: Floats, features: Ints) -> Box:
        """Return all combinations of background values with the row's cells in these columns."""
        cells = self._literals.cells_of(row)
        values = [column.distinct for column in self._literals.columns]
        for j in features:
            values[j] = self._literals.columns[j].inside[cells[j]]
        return tuple(
            column if row[j] in column else np.union1d(column, row[j]) for j, column in enumerate(values)
        )

    def originals(self, rows: Floats) -> Objects:
        """Return the user's own values."""
        return self._literals.table.originals(rows)

    def checked_rows(self, size: int) -> Floats:  # noqa: ARG002 - the table's own
        """Return rows on which form and model are compared: of the background, and mixed from several."""
        return np.concatenate([self._some_rows(), shuffled(self._literals.table.matrix, _CHECKED_ROWS)])

    def scale_answers(self, ask: Callable[[Floats], Floats]) -> Floats:
        """Return answers that an assumed range has to cover, besides those around the row."""
        return ask(self._some_rows())

    def _some_rows(self) -> Floats:
        matrix = self._literals.table.matrix
        return np.asarray(matrix[even_positions(len(matrix), _SCALE_ROWS)])


def rows_of(literals: Literals | None, neighbourhood: str | None) -> SignRows | TableRows:
    """Return the kind of rows that the public options name."""
    if literals is None:
        if neighbourhood not in (None, "flips"):
            raise InputError(f"neighbourhood={neighbourhood!r} needs literals=limes.Literals.fit(background)")
        return SignRows(None)
    if not isinstance(literals, Literals):
        raise InputError(f"literals must be made by limes.Literals.fit, got {type(literals).__name__}")
    check_choice("neighbourhood", neighbourhood or "columns", ("columns", "flips"))
    if neighbourhood != "flips" and literals.encoding != "bins":
        raise InputError(
            f"encoding={literals.encoding!r} has no effect where a literal is a column that keeps its bin: "
            "use encoding='bins', or neighbourhood='flips' and a model of the literals' -1 and +1"
        )
    return SignRows(literals) if neighbourhood == "flips" else TableRows(literals)


def check_columns(model: Any, rows: SignRows | TableRows) -> None:
    """Raise if a model was fitted on a table with another number of columns than its rows will have."""
    fitted = getattr(model, "n_features_in_", None)
    if fitted is not None and rows.width is not None and fitted != rows.width:
        raise InputError(
            f"the model was fitted on {fitted} columns, and rows of this neighbourhood have {rows.width}: "
            "neighbourhood='columns' is for models of the literals' table, 'flips' for those of -1 and +1"
        )


def _no_such(name: Any, kind: str, names: Sequence[str]) -> InputError:
    return InputError(f"exclude= names {name!r}, which is no {kind}{did_you_mean(name, names)}")


def _negation(text: str) -> str:
    """Return the negation of a text: ``a <= 1`` for ``a > 1``, ``a != b`` for ``a = b``."""
    for sign, other in ((" <= ", " > "), (" > ", " <= "), (" = ", " != ")):
        if text.count(sign) == 1 and " < " not in text:
            return text.replace(sign, other)
    return f"not ({text})"
