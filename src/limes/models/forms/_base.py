"""The two structures that every form reduces to, the forms that are such, and the model without structure.

A *sum* f(x) = c + Σ_j f_j(x_j) covers linear and additive models. A *sum of products*
f(x) = c + Σ_i a_i ∏_j g_ij(x_j) covers trees (a leaf is a product of intervals), RBF kernels (a centre is a
product of bumps) and anything multiplicative. ``form.reduce()`` returns one of the two, and the exact
expectations know no others. Votes, bags and stacks are weighted sums of forms.

Outputs come last everywhere: a form with one output has coefficients (m,), one with k outputs (m, k), and
predicts (n,) or (n, k) alike. x is a float64 matrix (n, d); a missing value is NaN.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints, check_rows, finite_array, float_array, times
from limes._functions import (
    Bump,
    Function,
    Identity,
    Interval,
    Lookup,
    Polynomial,
    Power,
    Step,
    as_function,
    is_line,
)
from limes.exceptions import InputError

# rows x terms evaluated at once: 16 MB of float64
_BLOCK = 2_000_000
# Lines from which on a sum has them at once
_MANY_LINES = 64


def in_blocks(predict: Callable[[Floats], Floats], x: Floats, terms: int) -> Floats:
    """Predict a few rows at a time: rows x terms must fit into memory."""
    step = max(1, _BLOCK // max(1, terms))
    return np.concatenate([predict(x[start : start + step]) for start in range(0, max(1, len(x)), step)])


class HasOutputs:
    """Base of what has arrays, or tuples of arrays, whose last axis are the outputs if there are several."""

    output_arrays: ClassVar[tuple[str, ...]] = ()
    intercept: Floats  # () or (k,)

    def map_outputs(self, change: Callable[[Floats], Any]) -> Self:
        """``change`` every array that has outputs, the intercept included."""
        owner: Any = self
        new: dict[str, Any] = {}
        for name in (*self.output_arrays, "intercept"):
            value = getattr(owner, name)
            many = isinstance(value, tuple)
            new[name] = tuple(map(change, value)) if many else np.asarray(change(value))
        changed: Self = replace(owner, **new)
        return changed


@dataclass(frozen=True, eq=False)
class Sum(HasOutputs):
    """c + Σ_j Σ_i loadings[j][i] · functions[j]_i(x_j); loadings (m_j, ...), None for no effect."""

    functions: tuple[Function | None, ...]
    loadings: tuple[Floats, ...]
    intercept: Floats
    output_arrays: ClassVar[tuple[str, ...]] = ("loadings",)

    @classmethod
    def of_columns(
        cls, size: int, effects: Mapping[int, tuple[Function | None, Floats]], intercept: Floats
    ) -> Sum:
        nothing = None, np.zeros((1, *intercept.shape))
        functions, loadings = zip(*(effects.get(j, nothing) for j in range(size)), strict=True)
        return cls(functions, loadings, intercept)

    def predict(self, x: Floats) -> Floats:
        total = np.broadcast_to(self.intercept, (len(x), *self.intercept.shape)).copy()
        lines = self._lines(x)
        for j, (function, loading) in enumerate(zip(self.functions, self.loadings, strict=True)):
            if j in lines:
                total += lines[j]
            elif isinstance(function, Lookup):
                total += self._looked_up[j][function.places(x[:, j])]
            elif function is not None:
                total += times(function(x[:, j]).T, loading)
        return total

    def addends(self, x: Floats) -> Floats:
        """Return what each column adds at rows (n, d), (n, d, k)."""
        values = np.zeros((*x.shape, self.intercept.size))
        for j, (function, loading) in enumerate(zip(self.functions, self.loadings, strict=True)):
            if function is not None:
                values[:, j] = times(function(x[:, j]).T, loading).reshape(len(x), -1)
        return values

    def _lines(self, x: Floats) -> dict[int, Floats]:
        """The sum of columns whose functions are lines, if these are many: the same to the last bit."""
        places, coefficients = self._straight
        if len(places) < _MANY_LINES or self.intercept.ndim:
            return {}
        its = x[:, places]
        constant, slope, center, loading = coefficients
        values = (constant + (its - center) * slope) * loading
        present = np.flatnonzero(~np.isnan(its).any(axis=0)).tolist()
        return {places[i]: values[:, i] for i in present}

    @cached_property
    def _looked_up(self) -> dict[int, Floats]:
        """Columns whose values are looked up: the effect of each place of the table, (L + 2, ...)."""
        pairs = enumerate(zip(self.functions, self.loadings, strict=True))
        return {j: times(f.table.T, loading) for j, (f, loading) in pairs if isinstance(f, Lookup)}

    @cached_property
    def _straight(self) -> tuple[list[int], Floats]:
        """Columns with one function, a line, and (4, L): constant, slope, center, and loading."""
        lines = {
            j: (*f.coefficients[0, :2], f.center, loading[0])
            for j, (f, loading) in enumerate(zip(self.functions, self.loadings, strict=True))
            if isinstance(f, Polynomial) and is_line(f) and loading.shape == (1,)
        }
        return [*lines], np.array([*lines.values()], dtype=np.float64).reshape(-1, 4).T


@dataclass(frozen=True, eq=False)
class SumOfProducts(HasOutputs):
    """c + Σ_i coef[i] ∏_j functions[j]_i(x_j); coef (m, ...), a column that no product reads is None."""

    functions: tuple[Function | None, ...]
    coef: Floats
    intercept: Floats
    output_arrays: ClassVar[tuple[str, ...]] = ("coef",)

    def predict(self, x: Floats) -> Floats:
        return in_blocks(self._predict, x, len(self.coef))

    def _predict(self, x: Floats) -> Floats:
        product = np.ones((len(self.coef), len(x)))
        for j, function, its in self._factors:
            product[its] *= function(x[:, j])
        return np.asarray(self.intercept + times(product.T, self.coef))

    @cached_property
    def _factors(self) -> list[tuple[int, Function, Ints | slice]]:
        """Columns that are read, their functions without those that are 1, and the products of these."""
        factors: list[tuple[int, Function, Ints | slice]] = []
        for j, function in enumerate(self.functions):
            if isinstance(function, Step | Lookup):  # in many products most columns are 1
                its = np.flatnonzero((function.table != 1.0).any(axis=1))
                factors.append((j, function.select(its), its))
            elif function is not None:
                factors.append((j, function, slice(None)))
        return factors


@runtime_checkable
class Form(Protocol):
    """A model whose exact expectations are known.

    Examples
    --------
    >>> from limes.models import forms
    >>> isinstance(forms.Linear([1.0]), forms.Form)
    True
    """

    @property
    def size(self) -> int:
        """Number of columns d."""

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d).

        Parameters
        ----------
        x
            Rows (n, d).
        """

    def select(self, outputs: int | list[int]) -> Form:
        """Return the form of one output (without the last axis) or of several, from a form with k outputs.

        Parameters
        ----------
        outputs
            The position of one output, or a list of positions.
        """


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A model that can only be called.

    Attributes
    ----------
    predict
        (n, d) -> (n,) or (n, k).
    reason
        Why it could not be read, for the user.

    Examples
    --------
    >>> import limes
    >>> limes.models.read(lambda X: X[:, 0]).reason.split(";")[0]
    'a callable has no structure to read'
    """

    predict: Callable[[Floats], Floats]
    reason: str


class FormBase(HasOutputs):
    """A form of frozen arrays, which it declares by their axes; here they are checked.

    An axis has one length in all arrays: d is that of the columns. The outputs, ..., come last.
    """

    axes: ClassVar[Mapping[str, str]] = {}
    # arrays in which not all numbers need be finite
    unbounded: ClassVar[tuple[str, ...]] = ()
    size: int

    def __init_subclass__(cls) -> None:
        if cls.axes:
            cls.output_arrays = tuple(name for name, axes in cls.axes.items() if axes.endswith("..."))

    def __post_init__(self) -> None:
        lengths: dict[str, Any] = {}
        for name, text in self.axes.items():
            axes = text.split()
            single = len(axes) - (axes[-1] == "...")  # dimensions with one output
            check = float_array if name in self.unbounded else finite_array
            array = check(name, getattr(self, name), *range(single, len(axes) + 1))
            self._freeze(**{name: array})
            pairs = [*zip(axes[:single], array.shape, strict=False), ("...", array.shape[single:])]
            if any(lengths.setdefault(*pair) != pair[1] for pair in pairs[: len(axes)]):
                self._refuse_shapes()
        self._freeze(intercept=output_intercept(self.intercept, lengths["..."]), size=lengths.get("d"))

    def _refuse_shapes(self) -> None:
        declared = [f"{name} ({', '.join(axes.split())})" for name, axes in self.axes.items()]
        shapes = ", ".join(str(np.shape(getattr(self, name))) for name in self.axes)
        raise InputError(f"{' and '.join(declared)} disagree: got shapes {shapes}")

    def _freeze(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def select(self, outputs: int | list[int]) -> Self:
        """Return the form of one or several outputs.

        Raises
        ------
        InputError
            If there is no such output.
        """
        if self.intercept.ndim == 0:
            raise InputError(f"the form has one output, {outputs} cannot be selected")
        count, positions = self.intercept.size, np.atleast_1d(outputs)
        if (positions >= count).any() or (positions < 0).any():
            raise InputError(
                f"there is no output {outputs}; there are {count} to choose from, counted from 0"
            )
        return self.map_outputs(lambda values: values[..., outputs])


class Reducible(FormBase):
    """A form that is a sum, or a sum of products, and predicts as it."""

    @abstractmethod
    def reduce(self) -> Sum | SumOfProducts:
        """The sum, or the sum of products."""

    def predict(self, x: Floats) -> Floats:
        return self.reduce().predict(check_rows(x, self.size))


def zero() -> Floats:
    return np.zeros(())


def output_intercept(values: ArrayLike, outputs: tuple[int, ...]) -> Floats:
    """Check an intercept: a number, or one for each output."""
    intercept = finite_array("intercept", values, 0, 1)
    if intercept.shape not in ((), outputs):
        raise InputError(f"intercept must be a number or one an output, {outputs}; got {intercept.shape}")
    return np.broadcast_to(intercept, outputs).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Combination:
    """f(x) = intercept + Σ_i weights[i] · parts[i](x).

    Parameters
    ----------
    parts
        Forms over the same columns with the same outputs.
    weights
        (T,), a number each.
    intercept
        A number, or one an output.

    Raises
    ------
    InputError
        If there are no parts, or not as many weights as parts, or if columns or outputs differ.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models import forms
    >>> half = forms.Combination([forms.Linear([2.0]), forms.Linear([4.0])], np.array([0.5, 0.5]))
    >>> half.predict(np.array([[1.0]]))
    array([3.])
    """

    parts: Sequence[Form]
    weights: Floats
    intercept: Floats = field(default_factory=zero)

    def __post_init__(self) -> None:
        weights = finite_array("weights", self.weights, 1)
        if not self.parts or weights.shape != (len(self.parts),):
            raise InputError(f"{len(self.parts)} parts need as many weights, got shape {weights.shape}")
        for part in self.parts:
            if not hasattr(part, "size"):
                raise InputError(f"a {type(part).__name__} is no form, and cannot be part of a combination")
        if len({part.size for part in self.parts}) != 1:
            raise InputError("parts of a combination must read the same columns")
        shapes = {outputs_of(part) for part in self.parts}
        if len(shapes) != 1:
            raise InputError(f"parts of a combination must have the same outputs, got {sorted(shapes)}")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "intercept", output_intercept(self.intercept, shapes.pop()))

    @property
    def size(self) -> int:
        return self.parts[0].size

    def predict(self, x: Floats) -> Floats:
        values = [w * part.predict(x) for w, part in zip(self.weights, self.parts, strict=True)]
        return np.asarray(self.intercept + sum(values))

    def select(self, outputs: int | list[int]) -> Combination:
        parts = tuple(part.select(outputs) for part in self.parts)
        return replace(self, parts=parts, intercept=self.intercept[outputs])


@dataclass(frozen=True, eq=False)
class Reduced(Reducible):
    """A form that is a sum, or a sum of products, without further structure.

    Parameters
    ----------
    terms
        One-dimensional functions of the columns, and their coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models import forms
    >>> forms.Reduced(forms.Linear([1.0, 2.0]).reduce()).predict(np.array([[1.0, 1.0]]))
    array([3.])
    """

    terms: Sum | SumOfProducts

    def __post_init__(self) -> None:
        self._freeze(intercept=self.terms.intercept, size=len(self.terms.functions))

    def reduce(self) -> Sum | SumOfProducts:
        return self.terms

    def map_outputs(self, change: Callable[[Floats], Any]) -> Reduced:
        return Reduced(self.terms.map_outputs(change))


def outputs_of(form: Form) -> tuple[int, ...]:
    """() for one output, (k,) for k."""
    if hasattr(form, "intercept"):
        return np.shape(form.intercept)
    return form.predict(np.zeros((1, form.size))).shape[1:]


@dataclass(frozen=True, eq=False)
class Linear(Reducible):
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
    axes: ClassVar[Mapping[str, str]] = {"coef": "d ..."}

    def reduce(self) -> Sum:
        return Sum((Identity(),) * self.size, tuple(self.coef[:, None]), self.intercept)

    def predict(self, x: Floats) -> Floats:
        return np.asarray(times(check_rows(x, self.size), self.coef) + self.intercept)


@dataclass(frozen=True, eq=False)
class Additive(Reducible):
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
        intercept = output_intercept(self.intercept, ())
        self._freeze(functions=functions, intercept=intercept, size=len(functions))

    def reduce(self) -> Sum:
        return Sum(tuple(self.functions), (np.ones(1),) * self.size, self.intercept)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Multiplicative(Reducible):
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
        functions = _as_functions(self.functions, self.breaks)
        self._freeze(functions=functions, size=len(functions))

    def reduce(self) -> SumOfProducts:
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
class Boxes(Reducible):
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
    axes: ClassVar[Mapping[str, str]] = {"lower": "m d", "upper": "m d", "value": "m ..."}
    unbounded: ClassVar[tuple[str, ...]] = ("lower", "upper")

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.isnan(self.lower).any() or np.isnan(self.upper).any():
            raise InputError("lower and upper must not be NaN; use -inf and inf for open boxes")
        missing = self._is_open if self.missing is None else np.asarray(self.missing)
        if missing.shape != self.lower.shape:
            raise InputError(f"missing must be (m, d), as lower {self.lower.shape} is; got {missing.shape}")
        self._freeze(missing=missing)

    @property
    def _is_open(self) -> Bools:
        return np.isneginf(self.lower) & np.isposinf(self.upper)

    def reduce(self) -> SumOfProducts:
        assert self.missing is not None  # noqa: S101 - set by __post_init__
        tested = ~(self._is_open & self.missing)
        functions = tuple(
            Interval(self.lower[:, j], self.upper[:, j], self.missing[:, j]) if tested[:, j].any() else None
            for j in range(self.size)
        )
        return SumOfProducts(functions, self.value, self.intercept)


# -- polynomials of degree two ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Quadratic(Reducible):
    """f(x) = intercept + Σ_j coef[j] x_j + Σ_jk matrix[j, k] x_j x_k.

    An upper triangular matrix has each product once; other matrices are equally valid.

    Parameters
    ----------
    matrix
        (d, d), or (d, d, k) for k outputs.
    coef
        (d,), or (d, k).
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If a number is not finite, or shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.Quadratic([[1.0, 2.0], [0.0, 0.0]], [0.0, 3.0], 4.0).predict([[1.0, 1.0]])
    array([10.])
    """

    matrix: Floats
    coef: Floats
    intercept: Floats = field(default_factory=zero)
    axes: ClassVar[Mapping[str, str]] = {"matrix": "d d ...", "coef": "d ..."}

    def reduce(self) -> SumOfProducts:
        d = self.size
        first, second = np.triu_indices(d)
        below = np.where((first < second).reshape(-1, *(1,) * (self.coef.ndim - 1)), 1.0, 0.0)
        squares = self.matrix[first, second] + below * self.matrix[second, first]
        unit = np.eye(d, dtype=np.int64)
        powers = np.concatenate([unit, unit[first] + unit[second]])
        coef = np.concatenate([self.coef, squares])
        used = (coef != 0).reshape(len(coef), -1).any(axis=1)
        powers, coef = powers[used], coef[used]
        functions = tuple(Power(powers[:, j]) if powers[:, j].any() else None for j in range(d))
        return SumOfProducts(functions, coef, self.intercept)

    def predict(self, x: Floats) -> Floats:
        x = check_rows(x, self.size)
        slope = self.coef + times(x, self.matrix)  # (n, d, ...)
        sums = [(x * output).sum(axis=1) for output in np.moveaxis(slope.reshape(*x.shape, -1), -1, 0)]
        return np.asarray(self.intercept + np.column_stack(sums).reshape(len(x), *self.intercept.shape))

    def affine(self, scale: ArrayLike, shift: ArrayLike) -> Quadratic:
        """f(``scale`` · x + ``shift``), as behind a scaler; a number for each column, or one for all."""
        outputs = (1,) * (self.coef.ndim - 1)
        s = np.broadcast_to(finite_array("scale", scale, 0, 1), (self.size,))
        t = np.broadcast_to(finite_array("shift", shift, 0, 1), (self.size,))
        gradient = self.coef + np.tensordot(t, self.matrix + self.matrix.swapaxes(0, 1), axes=1)
        return Quadratic(
            self.matrix * np.outer(s, s).reshape(self.size, self.size, *outputs),
            gradient * s.reshape(-1, *outputs),
            self.predict(t[None, :])[0],
        )


def from_polynomial_features(powers: ArrayLike, coef: ArrayLike, intercept: ArrayLike = 0.0) -> Quadratic:
    """Σ_t coef[t] ∏_j x_j ** powers[t, j] + intercept; powers (T, d) as ``PolynomialFeatures.powers_``."""
    exponents = finite_array("powers", powers, 2)
    weights = finite_array("coef", coef, 1, 2)
    degree = exponents.sum(axis=1)
    if (exponents < 0).any() or (exponents != np.floor(exponents)).any() or (degree > 2).any():
        raise InputError("powers must be whole numbers >= 0 that add up to at most 2 in each term")
    if len(exponents) != len(weights):
        raise InputError(f"{len(exponents)} terms need as many coef, got {len(weights)}")
    d, outputs = exponents.shape[1], weights.shape[1:]
    matrix, linear = np.zeros((d, d, *outputs)), np.zeros((d, *outputs))
    constant = output_intercept(intercept, outputs)
    for power, weight in zip(exponents.astype(np.int64), weights, strict=True):
        columns = np.repeat(np.arange(d), power)
        if columns.size == 2:
            matrix[columns[0], columns[1]] += weight
        elif columns.size == 1:
            linear[columns[0]] += weight
        else:
            constant += weight
    return Quadratic(matrix, linear, constant)


# -- Gaussian kernels ------------------------------------------------------------------------------------


# 1 / scale² must be a number
_SMALLEST_SCALE = 1e-150


@dataclass(frozen=True, eq=False)
class GaussianKernels(Reducible):
    """f(x) = intercept + Σ_i coef[i] exp(-Σ_j (x_j - centers[i, j])² / (2 scale_j²)).

    Parameters
    ----------
    centers
        (m, d).
    coef
        (m,), or (m, k) for k outputs.
    scale
        γ > 0: one for all columns, or (d,) one a column, infinite where the kernel does not read the column.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If shapes disagree, or a number is not finite where it must be.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.GaussianKernels([[0.0, 0.0]], [2.0], [1.0, 0.5]).predict([[0.0, 0.0]])
    array([2.])
    """

    centers: Floats
    coef: Floats
    scale: Floats | float
    intercept: Floats = field(default_factory=zero)
    axes: ClassVar[Mapping[str, str]] = {"centers": "m d", "coef": "m ..."}

    def __post_init__(self) -> None:
        super().__post_init__()
        scale = float_array("scale", self.scale, 0, 1)
        if scale.shape not in ((), (self.size,)):
            raise InputError(f"scale must be a number or one a column, got shape {scale.shape}")
        if not (scale >= _SMALLEST_SCALE).all() or (scale.ndim == 0 and np.isinf(scale)):
            raise InputError(
                f"scale must be > 0, not below {_SMALLEST_SCALE}, and finite if it is one for all columns; "
                f"got {scale}"
            )
        self._freeze(scale=scale if scale.ndim else float(scale))

    @property
    def scales(self) -> Floats:
        return np.broadcast_to(np.asarray(self.scale, dtype=np.float64), (self.size,))

    def reduce(self) -> SumOfProducts:
        functions = tuple(
            Bump(self.centers[:, j], float(scale) ** -2.0) if np.isfinite(scale) else None
            for j, scale in enumerate(self.scales)
        )
        return SumOfProducts(functions, self.coef, self.intercept)

    def predict(self, x: Floats) -> Floats:
        from scipy.spatial.distance import cdist

        read = np.isfinite(self.scales)
        rows = check_rows(x, self.size)[:, read] / self.scales[read]
        centers = self.centers[:, read] / self.scales[read]

        def values(some: Floats) -> Floats:
            return times(np.exp(-0.5 * cdist(some, centers, "sqeuclidean")), self.coef)

        return np.asarray(self.intercept + in_blocks(values, rows, len(centers)))
