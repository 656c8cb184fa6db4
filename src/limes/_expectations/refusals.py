"""Rows that an exact expectation refuses, apart from the others.

An error bound of a quadrature depends on the row. Computations of many rows at once raise where one of them
is refused, and tell only the first reason.
"""

from __future__ import annotations

from collections.abc import Callable

from limes._arrays import Ints
from limes.exceptions import InputError, ModelError

# Errors by which an expectation refuses rows
REFUSED = (InputError, ModelError)


def refusals(positions: Ints, compute: Callable[[Ints], object]) -> dict[int, str]:
    """Return the positions at which ``compute`` raises, with the reasons; it raises if any of many does."""
    try:
        compute(positions)
    except REFUSED as error:
        if positions.size == 1:
            return {int(positions[0]): str(error)}
    else:
        return {}
    half = positions.size // 2
    return refusals(positions[:half], compute) | refusals(positions[half:], compute)
