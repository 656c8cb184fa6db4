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
    """Base class of every error that limes raises on purpose.

    Examples
    --------
    >>> import limes
    >>> try:
    ...     limes.TabularExplainer(lambda X: X[:, 0], [[1.0], [2.0]], bandwidth=-1)
    ... except limes.exceptions.LimesError as error:
    ...     print(type(error).__name__)
    InputError
    """


class InputError(LimesError, ValueError):
    """The background, a row or an option is not usable.

    Examples
    --------
    >>> import limes
    >>> explainer = limes.TabularExplainer(lambda X: X[:, 0], [[1.0], [2.0]])
    >>> explainer([[1.0, 2.0]])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    limes.exceptions.InputError: two columns where the background has one
    """


class CellError(InputError):
    """Cells of one column are not usable.

    Parameters
    ----------
    message
        What is wrong, and where.
    rows
        Positions of all rows with such a cell, and the message for each.

    Examples
    --------
    >>> import limes
    >>> explainer = limes.TabularExplainer(lambda X: X[:, 0], [[1.0], [2.0]])
    >>> try:
    ...     explainer([[1.0], [float("inf")]])
    ... except limes.exceptions.CellError as error:
    ...     print(list(error.rows))
    [1]
    """

    def __init__(self, message: str, rows: Mapping[int, str] | None = None) -> None:
        super().__init__(message)
        self.rows = {} if rows is None else rows


class UnknownOptionError(LimesError, TypeError):
    """A keyword argument that does not exist.

    Examples
    --------
    >>> import limes
    >>> limes.TabularExplainer(lambda X: X[:, 0], [[1.0]], kernel=3)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    limes.exceptions.UnknownOptionError: kernel
    """


class ModelError(LimesError, RuntimeError):
    """The model raised, or returned a wrong shape or values that are not finite.

    Parameters
    ----------
    message
        What the model did.
    batch
        The table that the model was called with; None if the error is not about a table.

    Attributes
    ----------
    partial
        The explanation of the rows finished so far, None if there is no such row; of several texts, images or
        series a list of the finished explanations.
    row
        Position of the explained row of a table that the model refuses, while it takes others; else None.

    Examples
    --------
    >>> import limes
    >>> def fails(X):
    ...     raise RuntimeError("no connection")
    >>> try:
    ...     limes.TabularExplainer(fails, [[1.0], [2.0]])
    ... except limes.exceptions.ModelError as error:
    ...     print("no connection" in str(error))
    True
    """

    def __init__(self, message: str, *, batch: object = None) -> None:
        super().__init__(message)
        self.batch = batch
        self.partial: object = None
        self.row: int | None = None


class Interrupted(KeyboardInterrupt):
    """The user stopped a long explanation (Ctrl-C).

    Parameters
    ----------
    message
        How far the explanation was.
    partial
        As in :class:`ModelError`; None where a single text, image or series was stopped.

    Examples
    --------
    >>> import limes
    >>> limes.exceptions.Interrupted("stopped after 3 of 10 rows", None).partial is None
    True
    """

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class NotReadableError(LimesError, TypeError):
    """``method="exact"``, but limes cannot read the model's structure.

    Examples
    --------
    >>> import limes
    >>> explain = lambda X: X[:, 0]
    >>> limes.TabularExplainer(explain, [[1.0], [2.0]], method="exact")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    limes.exceptions.NotReadableError: ...
    """


class ReadMismatchError(LimesError, RuntimeError):
    """The form that limes read off a model does not predict what the model predicts.

    Examples
    --------
    >>> import limes
    >>> issubclass(limes.exceptions.ReadMismatchError, limes.exceptions.LimesError)
    True
    """


class SlowModelWarning(UserWarning):
    """The calls of a model that an explanation may need take minutes."""
