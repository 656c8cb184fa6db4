"""Sums of Gaussian kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.functions import Bump
from limes.models.reductions import SumOfProducts, finite, outputs_intercept


@dataclass(frozen=True, eq=False)
class GaussianKernels:
    """f(x) = intercept + Σ_i coef[i] exp(-‖x - centers[i]‖² / (2 scale²)).

    Parameters
    ----------
    centers
        (m, d).
    coef
        (m,), or (m, k) for k outputs.
    scale
        γ > 0.
    intercept
        A number, or (k,).
    """

    centers: Floats
    coef: Floats
    scale: float
    intercept: Floats = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        centers, coef = finite(self.centers, "centers", 2), finite(self.coef, "coef", 1, 2)
        if len(centers) != len(coef):
            raise InputError(f"{len(centers)} centers need as many coef, got {len(coef)}")
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"scale must be finite and > 0, got {self.scale!r}")
        object.__setattr__(self, "centers", centers)
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", outputs_intercept(self.intercept, coef.shape[1:]))

    @property
    def size(self) -> int:
        """Number of columns d."""
        return int(self.centers.shape[1])

    def reduce(self) -> SumOfProducts:
        """One product of bumps a center."""
        precision = 1.0 / float(self.scale) ** 2
        functions = tuple(Bump(self.centers[:, j], precision) for j in range(self.size))
        return SumOfProducts(functions, self.coef, self.intercept)

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        return self.reduce().predict(np.asarray(x, dtype=np.float64))

    def select(self, outputs: int | list[int]) -> GaussianKernels:
        """One or several outputs."""
        return GaussianKernels(self.centers, self.coef[:, outputs], self.scale, self.intercept[outputs])
