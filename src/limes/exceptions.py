"""Errors that limes raises: each names what was wrong, where, and what to do.

They derive from the built-in error a caller would expect, so that ``except ValueError`` keeps working.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "CellError",
    "InputError",
    "Interrupted",
    "LimesError",
    "ModelError",
    "NotReadableError",
    "ReadMismatchError",
    "UnknownOptionError",
]


class LimesError(Exception):
    """Base class of every error that limes raises on purpose."""


class InputError(LimesError, ValueError):
    """The background, a row or an option is not usable."""


class CellError(InputError):
    """Cells of one column are not usable.

    Attributes
    ----------
    rows
        Positions of all rows with such a cell, and the message for each.
    """

    def __init__(self, message: str, rows: Mapping[int, str] | None = None) -> None:
        super().__init__(message)
        self.rows = {} if rows is None else rows


class UnknownOptionError(LimesError, TypeError):
    """A keyword argument that does not exist."""


class ModelError(LimesError, RuntimeError):
    """The model raised, or returned a wrong shape or values that are not finite.

    Attributes
    ----------
    batch
        The table that the model was called with; None if the error is not about a table.
    partial
        The explanation of the rows finished so far; None if there is no such row.
    """

    def __init__(self, message: str, *, batch: object = None) -> None:
        super().__init__(message)
        self.batch = batch
        self.partial: object = None


class Interrupted(KeyboardInterrupt):
    """The user stopped a long explanation (Ctrl-C).

    Attributes
    ----------
    partial
        The explanation of the rows finished so far; None if there is no such row.
    """

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class NotReadableError(LimesError, TypeError):
    """``method="exact"``, but limes cannot read the model's structure."""


class ReadMismatchError(LimesError, RuntimeError):
    """The form that limes read off a model does not predict what the model predicts."""
