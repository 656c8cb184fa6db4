"""Errors that limes raises: each says what was wrong, where, and what to do.

They derive from the built-in error a caller would expect, so that ``except ValueError`` keeps working.
"""

from __future__ import annotations

from collections.abc import Mapping


class LimesError(Exception):
    """Base class of every error that limes raises on purpose."""


class InputError(LimesError, ValueError):
    """The background, a row or an option is not usable."""


class CellError(InputError):
    """Cells of one column are not usable.

    Attributes
    ----------
    rows
        Places of all rows with such a cell, and what is to be said of each.
    """

    def __init__(self, message: str, rows: Mapping[int, str] | None = None) -> None:
        super().__init__(message)
        self.rows = {} if rows is None else rows


class UnknownOptionError(LimesError, TypeError):
    """A keyword argument that does not exist."""


class ModelError(LimesError, RuntimeError):
    """The model raised, or answered with the wrong shape or with values that are not finite.

    Attributes
    ----------
    batch
        The table that the model was given, as it was given; None where the error is about none.
    partial
        The explanation of the rows that were done before; None if there are none.
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
        The explanation of the rows that were done before; None if there are none.
    """

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class NotReadableError(LimesError, TypeError):
    """An exact explanation was asked for a model whose structure limes cannot read."""


class ReadMismatchError(LimesError, RuntimeError):
    """What limes read off a model does not predict what the model itself predicts."""
