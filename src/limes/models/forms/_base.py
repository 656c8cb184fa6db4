"""The two structures that every form reduces to, the model without structure, and common parts of forms.

A *sum* f(x) = c + Σ_j f_j(x_j) covers linear and additive models. A *sum of products*
f(x) = c + Σ_i a_i ∏_j g_ij(x_j) covers trees (a leaf is a product of intervals), RBF kernels (a centre is a
product of bumps) and anything multiplicative. ``form.reduce()`` returns one of the two, and the exact
expectations know no others. Votes, bags and stacks are weighted sums of forms.

Outputs come last everywhere: a form with one output has coefficients (m,), one with k outputs (m, k), and
predicts (n,) or (n, k) alike. x is a float64 matrix (n, d); a missing value is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, times
from limes._checks import finite_array, float_array
from limes._functions import Function
from limes.exceptions import InputError

# rows x terms evaluated at once: 16 MB of float64
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class Sum:
    """c + Σ_j Σ_i loadings[j][i] · functions[j]_i(x_j); loadings (m_j, ...), None for no effect."""

    functions: tuple[Function | None, ...]
    loadings: tuple[Floats, ...]
    intercept: Floats

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        total = np.broadcast_to(self.intercept, (len(x), *self.intercept.shape)).copy()
        for j, (function, loading) in enumerate(zip(self.functions, self.loadings, strict=True)):
            if function is not None:
                total += times(function(x[:, j]).T, loading)
        return total


@dataclass(frozen=True, eq=False)
class SumOfProducts:
    """c + Σ_i coef[i] ∏_j functions[j]_i(x_j); coef (m, ...), a column that no product reads is None."""

    functions: tuple[Function | None, ...]
    coef: Floats
    intercept: Floats
    output_arrays: ClassVar[tuple[str, ...]] = ("coef",)

    def predict(self, x: Floats) -> Floats:
        step = max(1, _BLOCK // max(1, len(self.coef)))
        blocks = [self._predict(x[start : start + step]) for start in range(0, len(x), step)]
        return np.concatenate(blocks) if blocks else self._predict(x)

    def _predict(self, x: Floats) -> Floats:
        product = np.ones((len(self.coef), len(x)))
        for j, function in enumerate(self.functions):
            if function is not None:
                product *= function(x[:, j])
        return np.asarray(self.intercept + times(product.T, self.coef))


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
        ...

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d).

        Parameters
        ----------
        x
            Rows (n, d).
        """
        ...

    def select(self, outputs: int | list[int]) -> Form:
        """Return the form of one output (without the last axis) or of several, from a form with k outputs.

        Parameters
        ----------
        outputs
            The position of one output, or a list of positions.
        """
        ...


@runtime_checkable
class Reducible(Form, Protocol):
    """A form that is a sum or a sum of products."""

    def reduce(self) -> Sum | SumOfProducts:
        """The sum, or the sum of products."""
        ...


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


class FormBase:
    """Common parts of forms that are made of frozen arrays.

    Attributes
    ----------
    output_arrays
        The fields whose last axis are the outputs, where there are several; the intercept is one more.
    """

    output_arrays: ClassVar[tuple[str, ...]] = ()

    def _freeze(self, **fields: object) -> None:
        """Set fields of a frozen dataclass, in ``__post_init__``."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def select(self, outputs: int | list[int]) -> Self:
        """Return the form of one or several outputs.

        Raises
        ------
        InputError
            If there is no such output.
        """
        form: Any = self
        intercept = select_outputs(form.intercept, outputs)
        arrays = {name: getattr(form, name)[..., outputs] for name in self.output_arrays}
        selected: Self = replace(form, **arrays, intercept=intercept)
        return selected


class ReducibleForm(FormBase):
    """A form that predicts as the sum, or the sum of products, that it reduces to."""

    @property
    def size(self) -> int:
        raise NotImplementedError

    def reduce(self) -> Sum | SumOfProducts:
        raise NotImplementedError

    def predict(self, x: Floats) -> Floats:
        return self.reduce().predict(check_rows(x, self.size))


def zero() -> Floats:
    """The default intercept of a form."""
    return np.zeros(())


def coefficients(coef: ArrayLike, intercept: ArrayLike, name: str = "coef") -> tuple[Floats, Floats]:
    """Check coefficients (m,) or (m, k), and an intercept: a number, or one for each output.

    Returns
    -------
    coef, intercept
        (m, ...) and (...), finite.
    """
    array = finite_array(name, coef, 1, 2)
    return array, output_intercept(intercept, array.shape[1:])


def output_intercept(values: ArrayLike, outputs: tuple[int, ...]) -> Floats:
    """Check an intercept: a number, or one for each output."""
    intercept = finite_array("intercept", values, 0, 1)
    if intercept.shape not in ((), outputs):
        raise InputError(f"intercept must be a number or one an output, {outputs}; got {intercept.shape}")
    return np.broadcast_to(intercept, outputs).astype(np.float64)


def select_outputs(values: Floats, outputs: int | list[int]) -> Floats:
    """Return one or several outputs of an array, whose last axis are the outputs.

    Raises
    ------
    InputError
        If there is no such output.
    """
    count = values.shape[-1] if values.ndim else 0
    positions = np.atleast_1d(outputs)
    if values.ndim == 0:
        raise InputError(f"the form has one output, {outputs} cannot be selected")
    if (positions >= count).any() or (positions < 0).any():
        raise InputError(f"there is no output {outputs}; there are {count} to choose from, counted from 0")
    return np.asarray(values[..., outputs])


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
        return Combination(
            tuple(part.select(outputs) for part in self.parts), self.weights, self.intercept[outputs]
        )


@dataclass(frozen=True, eq=False)
class Reduced(ReducibleForm):
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

    @property
    def size(self) -> int:
        return len(self.terms.functions)

    @property
    def intercept(self) -> Floats:
        """() or (k,)."""
        return self.terms.intercept

    def reduce(self) -> Sum | SumOfProducts:
        """The form itself."""
        return self.terms

    def select(self, outputs: int | list[int]) -> Reduced:
        terms = self.terms
        intercept = terms.intercept[outputs]
        if isinstance(terms, SumOfProducts):
            return Reduced(replace(terms, coef=terms.coef[:, outputs], intercept=intercept))
        loadings = tuple(loading[:, outputs] for loading in terms.loadings)
        return Reduced(replace(terms, loadings=loadings, intercept=intercept))


def outputs_of(form: Form) -> tuple[int, ...]:
    """() for one output, (k,) for k."""
    if hasattr(form, "intercept"):
        return np.shape(form.intercept)
    return form.predict(np.zeros((1, form.size))).shape[1:]


def check_rows(x: ArrayLike, columns: int, *, more: bool = False) -> Floats:
    """Return rows (n, d) as float64; they must have d ``columns``, or ``more``."""
    rows = float_array("x", x, 2)
    if rows.shape[1] < columns or (rows.shape[1] > columns and not more):
        least = " or more" if more else ""
        raise InputError(f"rows must be (n, {columns}{least}), a column a feature; got shape {rows.shape}")
    return rows
