r"""The law of the number of removed features, which determines an exchangeable design.

Given the number s of removed features, the removed set is a uniform draw. All that a surrogate needs of f is
therefore a sum over s of means within the *stratum* of s. With r = d - s features kept, F_s = E[f | s] and
p_s the law of s under w:

    E_w f     = Σ_s p_s F_s
    mean of β = Σ_s between_s F_s,                        the slope of F on r:  Cov_w(r, F) / Var_w(r)
    β_j       = mean of β + Σ_s within_s E[(z_j - r/d) f | s],             within_s = p_s / (α₁ - α₂)

because Cov_w(z) = (α₁ - α₂)(I - J/d) + (Var_w(s)/d) J/d, with J the matrix of ones. Nothing here subtracts
α's from each other, and the weights of both sums are of moderate size however narrow the law: where s is
all but fixed they are those of the limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats

# Narrower bandwidths are replaced by this one: its exponents stay finite.
_NARROWEST = 1e-100


def log_factorial(n: Floats) -> Floats:
    """Log n! elementwise, of whole numbers n >= 0."""
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1.0))


def log_binomial(n: Floats, k: Floats) -> Floats:
    """Log of the number of k-subsets of n elements, -inf where k < 0 or k > n."""
    possible = (k >= 0) & (k <= n)
    k = np.where(possible, k, 0.0)
    n = np.maximum(n, 0.0)
    return np.where(possible, log_factorial(n) - log_factorial(k) - log_factorial(n - k), -np.inf)


def log_weights(d: int, bandwidth: float) -> Floats:
    """Log ψ(s/d) = -(1 - √(1 - s/d))² / (2ν²) for s = 0..d, (d + 1,)."""
    share = np.arange(d + 1.0) / d
    # 1 - √(1 - t) = t / (1 + √(1 - t)) keeps its digits for small t
    distance = share / (1.0 + np.sqrt(1.0 - share))
    return np.asarray(-0.5 * (distance / max(bandwidth, _NARROWEST)) ** 2)


@dataclass(frozen=True, eq=False)
class Counts:
    """The law of the number s of removed features under w.

    Attributes
    ----------
    log_law
        log p_s for s = 0..d, (d + 1,), normalised; -inf where s has no probability.
    log_weight
        log E[π] before tilting.
    """

    log_law: Floats
    log_weight: float

    @classmethod
    def tilted(cls, log_prior: Floats, bandwidth: float) -> Counts:
        """p_s ∝ ρ_s ψ(s/d), from log ρ (d + 1,)."""
        joint = log_prior + log_weights(log_prior.size - 1, bandwidth)
        total = _log_sum(joint)
        return cls(joint - total, total - _log_sum(log_prior))

    @property
    def size(self) -> int:
        """Number of features d."""
        return self.log_law.size - 1

    @cached_property
    def law(self) -> Floats:
        """p_s, (d + 1,)."""
        return np.exp(self.log_law)

    @cached_property
    def kept(self) -> Floats:
        """The number kept, r = d - s for s = 0..d."""
        return np.asarray(self.size - np.arange(self.size + 1.0))

    @cached_property
    def inclusion(self) -> float:
        """α₁ = P_w(z_j = 1) = E_w r / d."""
        return float(self.law @ self.kept / self.size)

    @cached_property
    def exclusion(self) -> float:
        """1 - α₁ = E_w s / d."""
        return float(self.law @ self.kept[::-1] / self.size)

    @property
    def between(self) -> Floats:
        """Weights (d + 1,) of the slope of F_s on the number kept; 0 if s is fixed."""
        return self._spread[0]

    @property
    def between_variance(self) -> float:
        """Var_w(s) / d, the eigenvalue of Cov_w(z) along (1, ..., 1)."""
        return self._spread[1]

    @property
    def within(self) -> Floats:
        """p_s / (α₁ - α₂), (d + 1,); 0 where all or no features are removed, as nothing varies there."""
        return self._strata[0]

    @property
    def within_variance(self) -> float:
        """α₁ - α₂ = E_w[r s] / (d (d - 1)), the other eigenvalue of Cov_w(z); 0 for d = 1."""
        return self._strata[1]

    @cached_property
    def _spread(self) -> tuple[Floats, float]:
        """Sizes relative to the likeliest s, masses relative to the second likeliest: neither underflows."""
        mode = int(np.argmax(self.log_law))
        others = np.where(np.arange(self.size + 1) == mode, -np.inf, self.log_law)
        second = others.max()
        if np.isneginf(second):
            return np.zeros(self.size + 1), 0.0
        mass, unit = np.exp(others - second), np.exp(second)
        offset = self.kept - self.kept[mode]
        shift = mass @ offset
        deviation = mass * (offset - unit * shift)
        deviation[mode] = -self.law[mode] * shift
        variance = mass @ (offset - unit * shift) ** 2 + self.law[mode] * unit * shift**2
        return deviation / variance, float(unit * variance / self.size)

    @cached_property
    def _strata(self) -> tuple[Floats, float]:
        pairs = self.kept * self.kept[::-1]
        varies = (pairs > 0) & np.isfinite(self.log_law)
        if not varies.any():
            return np.zeros(self.size + 1), 0.0
        among = self.size * (self.size - 1.0)
        unit = self.log_law[varies].max()
        mass = np.exp(np.where(varies, self.log_law, -np.inf) - unit)
        total = mass @ pairs
        return among * mass / total, float(np.exp(unit) * total / among)


# scipy.special.logsumexp differs from it in the last digit for one law in twenty
def _log_sum(values: Floats) -> float:
    peak = values.max()
    return float(peak + np.log(np.exp(values - peak).sum()))
