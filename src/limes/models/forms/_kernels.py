"""Sums of Gaussian kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from limes._arrays import Floats, times
from limes._checks import finite_array, float_array
from limes._functions import Bump
from limes.exceptions import InputError
from limes.models.forms._base import (
    FormBase,
    SumOfProducts,
    check_rows,
    coefficients,
    zero,
)

# 1 / scale² must be a number
_SMALLEST_SCALE = 1e-150
# rows x centers evaluated at once: 16 MB of float64
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class GaussianKernels(FormBase):
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
    output_arrays: ClassVar[tuple[str, ...]] = ("coef",)

    def __post_init__(self) -> None:
        centers = finite_array("centers", self.centers, 2)
        coef, intercept = coefficients(self.coef, self.intercept)
        if len(centers) != len(coef):
            raise InputError(f"{len(centers)} centers need as many coef, got {len(coef)}")
        scale = float_array("scale", self.scale, 0, 1)
        if scale.shape not in ((), centers.shape[1:]):
            raise InputError(f"scale must be a number or one a column, got shape {scale.shape}")
        if not (scale >= _SMALLEST_SCALE).all() or (scale.ndim == 0 and np.isinf(scale)):
            raise InputError(
                f"scale must be > 0, not below {_SMALLEST_SCALE}, and finite if it is one for all columns; "
                f"got {scale}"
            )
        scales = scale if scale.ndim else float(scale)
        self._freeze(centers=centers, coef=coef, scale=scales, intercept=intercept)

    @property
    def size(self) -> int:
        """Number of columns d."""
        return int(self.centers.shape[1])

    @property
    def scales(self) -> Floats:
        """(d,), one a column."""
        return np.broadcast_to(np.asarray(self.scale, dtype=np.float64), (self.size,))

    def reduce(self) -> SumOfProducts:
        """One product of bumps a center."""
        functions = tuple(
            Bump(self.centers[:, j], float(scale) ** -2.0) if np.isfinite(scale) else None
            for j, scale in enumerate(self.scales)
        )
        return SumOfProducts(functions, self.coef, self.intercept)

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        from scipy.spatial.distance import cdist

        read = np.isfinite(self.scales)
        rows = check_rows(x, self.size)[:, read] / self.scales[read]
        centers = self.centers[:, read] / self.scales[read]
        step = max(1, _BLOCK // max(1, len(centers)))
        blocks = [
            times(np.exp(-0.5 * cdist(rows[i : i + step], centers, "sqeuclidean")), self.coef)
            for i in range(0, max(1, len(rows)), step)
        ]
        return np.asarray(self.intercept + np.concatenate(blocks))
