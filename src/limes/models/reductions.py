r"""The two shapes that every form reduces to, and the model that has none.

 A *sum* f(x) = c + Σ_j f_j(x_j) covers linear and additive models. A *sum of products*
f(x) = c + Σ_i a_i ∏_j g_ij(x_j) covers trees (a leaf is a product of intervals), RBF kernels (a centre is a
product of bumps) and anything multiplicative. ``form.reduce()`` says which, and the exact expectations know
only these two.

Outputs come last everywhere: a form with one output has coefficients (m,), one with k outputs (m, k), and
predicts (n,) or (n, k) alike. x is a float64 matrix (n, d); a missing value is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, times
from limes.exceptions import InputError
from limes.functions import Function

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

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
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
    """A model whose exact expectations are known."""

    @property
    def size(self) -> int:
        """Number of columns d."""
        ...

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        ...

    def select(self, outputs: int | list[int]) -> Form:
        """The form of one output (drops the last axis) or of several, of a form with k outputs."""
        ...


@runtime_checkable
class Reducible(Form, Protocol):
    """A form that is a sum or a sum of products."""

    def reduce(self) -> Sum | SumOfProducts:
        """Which of the two it is."""
        ...


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A model that can only be asked.

    Attributes
    ----------
    predict
        (n, d) -> (n,) or (n, k).
    reason
        Why it could not be read, for the user.
    """

    predict: Callable[[Floats], Floats]
    reason: str


def floats(values: ArrayLike, name: str, *ndims: int) -> Floats:
    """An array with one of the given numbers of dimensions."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim not in ndims:
        raise InputError(
            f"{name} must have {' or '.join(map(str, ndims))} dimensions, got shape {found.shape}"
        )
    return found


def finite(values: ArrayLike, name: str, *ndims: int) -> Floats:
    """The same, refusing NaN and infinity."""
    found = floats(values, name, *ndims)
    if not np.isfinite(found).all():
        raise InputError(f"{name} must be finite; got {found[~np.isfinite(found)][0]}")
    return found


def outputs_intercept(values: ArrayLike, outputs: tuple[int, ...]) -> Floats:
    """A number, or one an output."""
    return np.broadcast_to(finite(values, "intercept", 0, 1), outputs).astype(np.float64)


def picked(values: Floats, outputs: int | list[int]) -> Floats:
    """One or several outputs of an array whose last axis they are.

    Raises
    ------
    InputError
        If there is no such output.
    """
    count = values.shape[-1] if values.ndim else 0
    wanted = np.atleast_1d(outputs)
    if values.ndim == 0 or (wanted >= count).any() or (wanted < 0).any():
        raise InputError(f"there is no output {outputs}; there are {count} to choose from, counted from 0")
    return np.asarray(values[..., outputs])
