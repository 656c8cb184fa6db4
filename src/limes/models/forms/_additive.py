"""Linear, additive and multiplicative forms, and sums of boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from limes._arrays import Bools, Floats, times
from limes._checks import float_array
from limes._functions import Function, Identity, Interval, as_function
from limes.exceptions import InputError
from limes.models.forms._base import (
    FormBase,
    ReducibleForm,
    Sum,
    SumOfProducts,
    check_rows,
    coefficients,
    output_intercept,
    zero,
)


@dataclass(frozen=True, eq=False)
class Linear(FormBase):
    """f(x) = intercept + Σ_j coef[j] x_j.

    Parameters
    ----------
    coef
        (d,), or (d, k) for k outputs.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If a number is not finite, or shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.Linear([1.0, 2.0], 3.0).predict([[1.0, 1.0]])
    array([6.])
    """

    coef: Floats
    intercept: Floats = field(default_factory=zero)
    output_arrays: ClassVar[tuple[str, ...]] = ("coef",)

    def __post_init__(self) -> None:
        coef, intercept = coefficients(self.coef, self.intercept)
        self._freeze(coef=coef, intercept=intercept)

    @property
    def size(self) -> int:
        """Number of columns d."""
        return len(self.coef)

    def reduce(self) -> Sum:
        """One identity a column."""
        return Sum((Identity(),) * self.size, tuple(self.coef[:, None]), self.intercept)

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        return np.asarray(times(check_rows(x, self.size), self.coef) + self.intercept)


@dataclass(frozen=True, eq=False)
class Additive(ReducibleForm):
    """f(x) = intercept + Σ_j functions[j](x_j).

    Parameters
    ----------
    functions
        One callable a column, (n,) -> (n,); None for a column without effect. A callable with a method
        ``integrate(density)`` has its own integral (see ``limes._functions``); others are integrated
        numerically.
    breaks
        One list of points a column, where its function is not smooth; none by default.
    intercept
        A number.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models import forms
    >>> forms.Additive([np.square, None], intercept=1.0).predict(np.array([[3.0, 5.0]]))
    array([10.])
    """

    functions: Sequence[Callable[[Floats], Floats] | None]
    breaks: Sequence[Sequence[float]] | None = None
    intercept: Floats = field(default_factory=zero)

    def __post_init__(self) -> None:
        functions = _as_functions(self.functions, self.breaks)
        self._freeze(functions=functions, intercept=output_intercept(self.intercept, ()))

    @property
    def size(self) -> int:
        """Number of columns d."""
        return len(self.functions)

    def reduce(self) -> Sum:
        """The form itself."""
        return Sum(tuple(self.functions), (np.ones(1),) * self.size, self.intercept)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Multiplicative(ReducibleForm):
    """f(x) = ∏_j functions[j](x_j).

    Parameters
    ----------
    functions, breaks
        See :class:`Additive`; None is the constant 1.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models import forms
    >>> forms.Multiplicative([np.square, None]).predict(np.array([[3.0, 5.0]]))
    array([9.])
    """

    functions: Sequence[Callable[[Floats], Floats] | None]
    breaks: Sequence[Sequence[float]] | None = None
    intercept: Floats = field(default_factory=zero, init=False)

    def __post_init__(self) -> None:
        self._freeze(functions=_as_functions(self.functions, self.breaks))

    @property
    def size(self) -> int:
        """Number of columns d."""
        return len(self.functions)

    def reduce(self) -> SumOfProducts:
        """One product."""
        return SumOfProducts(tuple(self.functions), np.ones(1), self.intercept)  # type: ignore[arg-type]


def _as_functions(
    functions: Sequence[Callable[[Floats], Floats] | None],
    breaks: Sequence[Sequence[float]] | None,
) -> tuple[Function | None, ...]:
    for lists in (functions, breaks):
        if not isinstance(lists, list | tuple | None):
            raise InputError("functions and breaks must be lists, with one entry a column")
    breaks = [()] * len(functions) if breaks is None else breaks
    if len(breaks) != len(functions):
        raise InputError(f"breaks has {len(breaks)} lists, functions has {len(functions)}: one a column")
    return tuple(None if f is None else as_function(f, b) for f, b in zip(functions, breaks, strict=True))


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

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models import forms
    >>> step = forms.Boxes([[-np.inf], [1.0]], [[1.0], [np.inf]], [10.0, 20.0])
    >>> step.predict(np.array([[1.0], [1.5]]))
    array([10., 20.])
    """

    lower: Floats
    upper: Floats
    value: Floats
    missing: Bools | None = None
    intercept: Floats = field(default_factory=zero)
    output_arrays: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        lower, upper = float_array("lower", self.lower, 2), float_array("upper", self.upper, 2)
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
