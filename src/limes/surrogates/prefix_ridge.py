r"""Weighted ridge regression of one point on 0, 1, 2, ... of its features, all from one Cholesky factor.

With features in a fixed order, centred with weights at (x̄, ȳ), Gram matrix S + αI = LLᵀ and moments b, the
fit on the first p features predicts at x

    ȳ + Σ_{i ≤ p} (L⁻¹(x - x̄))_i (L⁻¹b)_i,

because leading blocks of L factor leading blocks of the Gram matrix. So the predictions of all prefixes are
one cumulative sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from limes._arrays import Floats


@dataclass(frozen=True, eq=False)
class WeightedMoments:
    """Centred moments of features and response under weights that add up to 1.

    Attributes
    ----------
    center, level
        x̄ (d,) and ȳ.
    gram, moments
        S + αI (d, d) and b (d,).
    """

    center: Floats
    level: float
    gram: Floats
    moments: Floats

    @classmethod
    def of(cls, X: Floats, y: Floats, weights: Floats, ridge: float) -> WeightedMoments:
        """Of rows (n, d), responses and weights (n,); those without weight do not count.

        ``ridge`` is α for weights that add up to 1.
        """
        used = weights > 0
        share = weights[used] / weights[used].sum()
        center, level = share @ X[used], float(share @ y[used])
        away = X[used] - center
        gram = (away * share[:, None]).T @ away
        return cls(center, level, gram + ridge * np.eye(len(center)), (share * (y[used] - level)) @ away)

    def coefficients(self, kept: int) -> tuple[Floats, float]:
        """Fit of the first ``kept`` features: coefficients (d,), 0 for the others, and intercept."""
        coef = np.zeros(self.center.size)
        coef[:kept] = np.linalg.solve(self.gram[:kept, :kept], self.moments[:kept])
        return coef, self.level - float(coef @ self.center)

    def prefix_predictions(self, x: Floats) -> Floats:
        """Predictions at x (d,) of the fits on the first 0, 1, ..., d features, (d + 1,)."""
        factor = np.linalg.cholesky(self.gram)
        right = np.stack([x - self.center, self.moments], axis=1)
        away, weight = solve_triangular(factor, right, lower=True, check_finite=False).T
        return self.level + np.concatenate([[0.0], np.cumsum(away * weight)])
