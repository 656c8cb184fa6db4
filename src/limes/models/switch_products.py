"""Products over switches: every feature gives one factor where it is on, and another where it is off."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models.reductions import SumOfProducts, finite, outputs_intercept, picked


@dataclass(frozen=True, eq=False)
class SwitchProducts:
    """f(z) = intercept + Σ_i coef[i] ∏_j (on[i, j] if z_j = 1 else off[i, j]).

    Whatever is a product over columns, as a Gaussian kernel is, is one over superpixels where every column
    takes one of two values.

    Parameters
    ----------
    on, off
        (m, d).
    coef
        (m,), or (m, k) for k outputs.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If a number is not finite, or shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.SwitchProducts([[2.0, 3.0]], [[1.0, 0.5]], [10.0]).predict([[1, 1], [1, 0], [0, 0]])
    array([60., 10.,  5.])
    """

    on: Floats
    off: Floats
    coef: Floats
    intercept: Floats = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        on, off, coef = finite(self.on, "on", 2), finite(self.off, "off", 2), finite(self.coef, "coef", 1, 2)
        if on.shape != off.shape or len(on) != len(coef):
            raise InputError(
                f"on, off and coef need a row a product: shapes {on.shape}, {off.shape}, {coef.shape}"
            )
        intercept = outputs_intercept(self.intercept, coef.shape[1:])
        for name, value in (("on", on), ("off", off), ("coef", coef), ("intercept", intercept)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, form: SumOfProducts) -> SwitchProducts:
        """A sum of products over columns that are 0 or 1."""
        both = np.array([0.0, 1.0])
        factors = np.ones((2, len(form.coef), len(form.functions)))
        for j, function in enumerate(form.functions):
            if function is not None:
                factors[:, :, j] = function(both).T
        return cls(factors[1], factors[0], form.coef, form.intercept)

    @property
    def size(self) -> int:
        """Number of switches d."""
        return int(self.on.shape[1])

    def predict(self, z: ArrayLike) -> Floats:
        """Values (n, ...) at rows z (n, d)."""
        rows = np.asarray(z, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.size:
            raise InputError(f"z must be (n, {self.size}), got shape {rows.shape}")
        product = np.ones((len(rows), len(self.coef)))
        for j, column in enumerate(rows.T > 0):
            product *= np.where(column[:, None], self.on[:, j], self.off[:, j])
        return np.asarray(product @ self.coef + self.intercept)

    def select(self, outputs: int | list[int]) -> SwitchProducts:
        """One or several outputs."""
        return SwitchProducts(self.on, self.off, self.coef[:, outputs], picked(self.intercept, outputs))
