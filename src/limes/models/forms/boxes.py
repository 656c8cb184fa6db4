"""Sums of boxes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from limes._arrays import Bools, Floats
from limes.exceptions import InputError
from limes.functions import Interval
from limes.models.forms.base import ReducibleForm, SumOfProducts, coefficients, float_array, zero


@dataclass(frozen=True, eq=False)
class Boxes(ReducibleForm):
    """f(x) = intercept + Σ_i value[i] ∏_j 1[lower[i, j] < x_j <= upper[i, j]]: a tree is its leaves.

    Parameters
    ----------
    lower, upper
        (m, d), ±inf allowed.
    value
        (m,), or (m, k) for k outputs.
    missing
        (m, d), whether a missing value passes; by default only where both bounds are infinite.
    intercept
        A number, or (k,).
    """

    lower: Floats
    upper: Floats
    value: Floats
    missing: Bools | None = None
    intercept: Floats = field(default_factory=zero)
    output_arrays: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        lower, upper = float_array(self.lower, "lower", 2), float_array(self.upper, "upper", 2)
        value, intercept = coefficients(self.value, self.intercept, "value")
        missing = (
            np.isneginf(lower) & np.isposinf(upper) if self.missing is None else np.asarray(self.missing)
        )
        if not lower.shape == upper.shape == missing.shape or len(lower) != len(value):
            raise InputError(
                f"m boxes in d columns need lower, upper and missing (m, d) and value (m, ...); got "
                f"{lower.shape}, {upper.shape}, {missing.shape} and {value.shape}"
            )
        if np.isnan(lower).any() or np.isnan(upper).any():
            raise InputError("lower and upper must not be NaN; use -inf and inf for open boxes")
        self._freeze(lower=lower, upper=upper, value=value, missing=missing, intercept=intercept)

    @property
    def size(self) -> int:
        """Number of columns d."""
        return int(self.lower.shape[1])

    def reduce(self) -> SumOfProducts:
        """One product of intervals a box."""
        assert self.missing is not None  # noqa: S101 - set by __post_init__
        tested = ~(np.isneginf(self.lower) & np.isposinf(self.upper) & self.missing)
        functions = tuple(
            Interval(self.lower[:, j], self.upper[:, j], self.missing[:, j]) if tested[:, j].any() else None
            for j in range(self.size)
        )
        return SumOfProducts(functions, self.value, self.intercept)
