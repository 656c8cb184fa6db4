r"""One sample of the model around a row, for every bandwidth at once.

Rows are drawn from a mixture of tilted laws w_m ∝ π_m · law, π_m = exp(-D / (2 ν_m²)), D the squared distance
of a row from the instance. Relative to the law itself w_m has the density π_m / C_m, C_m = E[π_m], so that
the weight of a row for any other bandwidth ν is

    exp(-D / (2ν²)) / C_ν  divided by  Σ_m share_m exp(-D / (2ν_m²)) / C_m.

(Veach & Guibas 1995 call this the balance heuristic.) The model is called once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, power_of_two
from limes._variance import is_constant

# A coefficient needs an effective number of rows with and without its feature of at least this
_FEWEST = 24.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """Numbers and their standard errors, arrays of the same shape."""

    value: Floats
    error: Floats


@dataclass(frozen=True, eq=False)
class MixtureSample:
    """Rows x (m, d), features h (m, d) and predictions f (m,), with the numbers that determine their weights.

    Attributes
    ----------
    squared
        D, (m,).
    log_mixture
        Log density of the mixture from which the rows were drawn, (m,).
    noise
        1; 0 if these are all possible rows, ``log_mixture`` then being minus the log of their probability.
    """

    x: Floats
    h: Floats
    f: Floats
    squared: Floats
    log_mixture: Floats
    noise: float = 1.0

    def weights(self, bandwidth: float, squared: Floats | None = None) -> Floats:
        """Return weights (m,) of the rows at a bandwidth, with sum 1; ``squared`` replaces the distances.

        C_ν is the same for all rows and cancels.
        """
        distance = self.squared if squared is None else squared
        log_ratio = kernel(distance, bandwidth) - self.log_mixture
        weights = np.exp(log_ratio - log_ratio.max())
        return np.asarray(weights / weights.sum())

    def mean(self, weights: Floats, condition: Bools | None = None) -> Estimate:
        """Return E_w[f | condition], with condition (m,)."""
        conditional = weights if condition is None else weights * condition
        total = conditional.sum()
        if total == 0 or 1 / ((conditional / total) ** 2).sum() < _FEWEST * self.noise:
            return Estimate(np.array(np.nan), np.array(np.inf))
        share = conditional / total
        mean = share @ self.f
        return Estimate(mean, self.noise * np.sqrt((share**2) @ (self.f - mean) ** 2))

    def variance(self, weights: Floats) -> Estimate:
        """Return Var_w f, 0 if it is rounding, NaN if too few rows count."""
        if 1 / (weights**2).sum() < _FEWEST * self.noise:
            return Estimate(np.array(np.nan), np.array(np.inf))
        spread = (self.f - weights @ self.f) ** 2
        variance = weights @ spread
        if is_constant(variance, np.abs(self.f).max()):
            return Estimate(np.array(0.0), np.array(0.0))
        return Estimate(variance, self.noise * np.sqrt((weights**2) @ (spread - variance) ** 2))

    def fit(self, weights: Floats, h: Floats | None = None) -> Estimate:
        """Return weighted least squares coefficients of f on h, (d,), with robust standard errors.

        NaN, with an infinite error, where too few rows count with or without the feature.
        """
        features = self.h if h is None else h
        center = weights @ features
        blind = self._blind(weights, features)
        used = ~blind
        # a pseudoinverse drops columns far smaller than others, rare or in other units: they are rescaled
        away = features[:, used] - center[used]
        unit = power_of_two(np.abs(away).max(axis=0, initial=0.0))
        unit = unit * power_of_two(np.sqrt(weights @ (away / unit) ** 2))
        regressors = np.column_stack([np.ones(len(self.f)), away / unit])
        weighted = regressors * weights[:, None]
        inverse = np.linalg.pinv(weighted.T @ regressors, hermitian=True)
        influence = inverse @ weighted.T
        f = self.f - weights @ self.f
        solution = influence @ f
        leverage = np.clip((regressors * influence.T).sum(axis=1), 0.0, 0.9)
        rest = (f - regressors @ solution) / np.sqrt(1.0 - leverage)
        value, error = np.full(features.shape[1], np.nan), np.full(features.shape[1], np.inf)
        value[used] = solution[1:] / unit
        error[used] = self.noise * np.sqrt(influence[1:] ** 2 @ rest**2) / unit
        return Estimate(value, error)

    def _blind(self, weights: Floats, features: Floats) -> Bools:
        """Return which features (d,) vary in too few of the rows that count."""
        slopes = ((features != 0) & (features != 1)).any(axis=0)
        sizes = [_size(weights[:, None] * (slopes | (features == z))) for z in (0.0, 1.0)]
        varies = np.ptp(features, axis=0) > 0
        return np.asarray(~varies | (np.minimum(*sizes) < _FEWEST * self.noise))


def kernel(squared: Floats, bandwidth: float) -> Floats:
    """Return log π = -D / (2ν²), (m,); 0 for an infinite bandwidth."""
    with np.errstate(over="ignore"):
        return np.asarray(-0.5 * squared / np.float64(bandwidth) ** 2)


def _size(weights: Floats) -> Floats:
    """Return the effective number of rows of each column of weights, (d,)."""
    total, squares = weights.sum(axis=0), (weights**2).sum(axis=0)
    size: Floats = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
    return size
