"""Checks of values that every room shares."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np


def is_count(value: object) -> TypeGuard[int]:
    """Tell whether a value is a whole number above 0."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)
