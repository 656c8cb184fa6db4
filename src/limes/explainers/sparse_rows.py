"""Rows that sparse explanations are about: of literals, or of a table; and in which words they go out."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats, Objects
from limes.designs.literals import LiteralFlips, LiteralNeighbourhood, checked_signs
from limes.exceptions import InputError
from limes.explainers.literals import Literals, opposite
from limes.explainers.options import check_choice
from limes.explainers.verification import shuffled
from limes.sparse_pipeline import Ask

# Background rows whose answers make the scale
_SCALE_ROWS = 1000
# Rows of the law on which a reading is compared with the model
_CHECKED_ROWS = 256


class SignRows:
    """Rows of -1 and +1 (``literals=None``), or a table seen as such rows (``neighbourhood="flips"``)."""

    label = "literals flip on their own"
    schema = None

    def __init__(self, literals: Literals | None) -> None:
        self._literals = literals

    def decode(self, x: Floats) -> Floats:
        """Rows as the model takes them."""
        return x

    def encode(self, X: Any) -> Floats:
        """The user's rows as a matrix."""
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
        """Neighbourhood of a row."""
        return LiteralFlips(checked_signs(row), spread)

    def signs(self, row: Floats) -> Floats:
        """X of a row: what the weights are multiplied with."""
        return row

    def names(self, size: int) -> tuple[str, ...]:
        """Of the features."""
        return tuple(f"x{j}" for j in range(size)) if self._literals is None else self._literals.names

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """Label of each feature at a row."""
        return self.names(row.size)

    def holding(self, row: Floats) -> tuple[str, ...]:
        """What holds at a row, of each feature."""
        if self._literals is None:
            return tuple(f"x{j} = {sign:g}" for j, sign in enumerate(row))
        pairs = zip(self._literals.names, row, strict=True)
        return tuple(name if sign > 0 else opposite(name) for name, sign in pairs)

    def originals(self, rows: Floats) -> Objects:
        """The user's own values."""
        return rows

    def checked_rows(self, size: int) -> Floats:
        """Rows on which a reading of a model of so many literals is checked."""
        return np.random.default_rng(0).choice([-1.0, 1.0], (_CHECKED_ROWS, size))

    def known_answers(self, ask: Ask) -> Floats | None:  # noqa: ARG002 - nothing is known before
        """Answers that the scale has to hold, besides those around the instance."""
        return None


class TableRows:
    """Rows of a table, of which a column stays as it is or leaves its bin."""

    label = "a column keeps its value, or takes a background value of another bin"

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self.decode = literals.table.decode
        self.schema = literals.table.schema

    def encode(self, X: Any) -> Floats:
        """The user's rows as a matrix."""
        return self._literals.table.encode(X)

    def near(self, row: Floats, spread: float) -> LiteralNeighbourhood:
        """Neighbourhood of a row."""
        return self._literals.changes(row, spread)

    def signs(self, row: Floats) -> Floats:
        """X of a row: what the weights are multiplied with."""
        return np.ones(row.size)

    def names(self, size: int) -> tuple[str, ...]:  # noqa: ARG002 - the table's own
        """Of the features."""
        return self._literals.table.names

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """Label of each feature at a row."""
        return self._literals.conditions(row)

    holding = conditions

    def originals(self, rows: Floats) -> Objects:
        """The user's own values."""
        return self._literals.table.originals(rows)

    def checked_rows(self, size: int) -> Floats:  # noqa: ARG002 - the table's own
        """Rows on which a reading of a model is checked: of the background, and mixed from several of it."""
        return np.concatenate([self._some_rows(), shuffled(self._literals.table.matrix, _CHECKED_ROWS)])

    def known_answers(self, ask: Ask) -> Floats:
        """Answers that the scale has to hold, besides those around the instance."""
        return ask(self._some_rows())

    def _some_rows(self) -> Floats:
        matrix = self._literals.table.matrix
        spread = np.linspace(0, len(matrix) - 1, min(_SCALE_ROWS, len(matrix)))
        return np.asarray(matrix[spread.astype(np.int64)])


def rows_of(literals: Literals | None, neighbourhood: str | None) -> SignRows | TableRows:
    """Choose by the public options."""
    if literals is None:
        if neighbourhood not in (None, "flips"):
            raise InputError(f"neighbourhood={neighbourhood!r} needs literals=limes.Literals.fit(background)")
        return SignRows(None)
    if not isinstance(literals, Literals):
        raise InputError(f"literals must be made by limes.Literals.fit, got {type(literals).__name__}")
    check_choice("neighbourhood", neighbourhood or "columns", ("columns", "flips"))
    return SignRows(literals) if neighbourhood == "flips" else TableRows(literals)
