"""What stands in the cells of a column inside a pipeline: numbers, or the user's own values."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Objects
from limes.models.read import CannotRead

Values = Floats | Objects


def numbers(values: Values) -> Floats:
    """Numbers as float64, None as NaN; text cannot be."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        text = next(v for v in values if not is_number(v) and v is not None)
        raise CannotRead(f"it takes numbers, and the column holds {text!r}") from None


def is_missing(values: Values) -> Bools:
    """None, NaN and pandas.NA."""
    if values.dtype.kind == "O":
        return np.array([is_blank(v) for v in values], dtype=np.bool_)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


def is_blank(value: Any) -> bool:
    """Whether one value is missing."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def is_number(value: Any) -> bool:
    """Whether one value is a number."""
    return isinstance(value, int | float | np.number | np.bool_)
