"""What a reader may want to know of the user's columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Schema:
    """The columns of x as the user has them.

    Attributes
    ----------
    names
        (d,) names.
    levels
        (d,) the user's own values of a column that x holds as codes 0, 1, ..., in the order of the codes;
        () for a column that x holds as it is.
    """

    names: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
