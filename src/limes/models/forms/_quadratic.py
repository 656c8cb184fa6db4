"""Polynomials of degree two."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, times
from limes._checks import finite_array
from limes._functions import Power
from limes.exceptions import InputError
from limes.models.forms._base import FormBase, SumOfProducts, check_rows, coefficients, zero


@dataclass(frozen=True, eq=False)
class Quadratic(FormBase):
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
    output_arrays: ClassVar[tuple[str, ...]] = ("matrix", "coef")

    def __post_init__(self) -> None:
        matrix = finite_array("matrix", self.matrix, 2, 3)
        coef, intercept = coefficients(self.coef, self.intercept)
        if matrix.shape != (len(coef), *coef.shape):
            raise InputError(
                f"matrix (d, d, ...) and coef (d, ...) disagree: got {matrix.shape} and {coef.shape}"
            )
        self._freeze(matrix=matrix, coef=coef, intercept=intercept)

    @property
    def size(self) -> int:
        """Number of columns d."""
        return len(self.coef)

    def reduce(self) -> SumOfProducts:
        """One product of powers a term."""
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
        """Values (n, ...) at rows (n, d)."""
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
    """Σ_t coef[t] ∏_j x_j ** powers[t, j] + intercept, as a quadratic.

    Parameters
    ----------
    powers
        (T, d) exponents, as scikit-learn's ``PolynomialFeatures.powers_``; each row adds up to at most 2.
    coef
        (T,), or (T, k) for k outputs.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If a term is no product of at most two columns, or shapes disagree.
    """
    exponents = finite_array("powers", powers, 2)
    weights, start = coefficients(coef, intercept)
    degree = exponents.sum(axis=1)
    if (exponents < 0).any() or (exponents != np.floor(exponents)).any() or (degree > 2).any():
        raise InputError("powers must be whole numbers >= 0 that add up to at most 2 in each term")
    if len(exponents) != len(weights):
        raise InputError(f"{len(exponents)} terms need as many coef, got {len(weights)}")
    d, outputs = exponents.shape[1], weights.shape[1:]
    matrix, linear = np.zeros((d, d, *outputs)), np.zeros((d, *outputs))
    constant = start.copy()
    for power, weight in zip(exponents.astype(np.int64), weights, strict=True):
        columns = np.repeat(np.arange(d), power)
        if columns.size == 2:
            matrix[columns[0], columns[1]] += weight
        elif columns.size == 1:
            linear[columns[0]] += weight
        else:
            constant += weight
    return Quadratic(matrix, linear, constant)
