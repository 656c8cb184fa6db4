r"""How alike two rows of switches are, and how much each switch matters to that.

    k(z, c) = ½ + a Σ_j ρ_j (2z_j - 1)(2c_j - 1) + b exp(-Σ_j ρ_j 1[z_j ≠ c_j]),

a level, slopes and a rest of all orders, whose noise has variance s. Standardised answers of all outputs have
this covariance independently; ρ, a, b and s maximise their likelihood under log ρ_j ~ N(m, 1), m ~ N(-2.5,
1.5²): few rows tell which switches matter, but not all about every one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Reals
from limes.expectations.controls.shrinkage import ridge_path

_LEVEL = 0.5
# The mean of log ρ, and its standard deviation
_USUAL, _DOUBT = -2.5, 1.5
# Where the search begins: ρ of a switch of mean slope, log b, log s, log a
_START, _STARTS = 0.1, (0.0, -3.0, -1.2)
# Bounds of log ρ_j, log b, log s, log a and m: s keeps covariances far from singular
_RELEVANCE, _OTHERS = (-8.0, 2.0), ((-6.0, 4.0), (-8.0, 1.0), (-8.0, 4.0), (-6.0, 1.0))
# More steps change hyperparameters, but hardly what is predicted with them
_STEPS = 15


@dataclass(frozen=True, eq=False)
class Covariance:
    """ρ (d,), b, s and a, of which k is made."""

    relevance: Floats
    rough: float
    noise: float
    slope: float

    @classmethod
    def of(cls, parameters: Floats) -> Covariance:
        """From log ρ, log b, log s, log a and m, (d + 4,)."""
        rough, noise, slope = np.exp(parameters[-4:-1])
        return cls(np.exp(parameters[:-4]), float(rough), float(noise), float(slope))

    def between(self, z: Reals, centers: Reals) -> Reals:
        """Covariances without noise, (n, m), in the precision of the rows."""
        line, alike = self.parts(z, centers)
        line += alike
        line += _LEVEL
        return line

    def parts(self, z: Reals, centers: Reals) -> tuple[Reals, Reals]:
        """What slopes have of k, and what the rest has.

        Both come from D = Σ_j ρ_j 1[z_j ≠ c_j]: Σ_j ρ_j (2z_j - 1)(2c_j - 1) is Σ_j ρ_j - 2D.
        """
        relevance = self.relevance.astype(z.dtype)
        differs = z @ (relevance * (1 - 2 * centers)).T
        differs += centers @ relevance
        line = self.slope * (relevance.sum() - 2 * differs)
        np.negative(differs, out=differs)
        np.exp(differs, out=differs)
        differs *= self.rough
        return line, differs


def learnt(z: Floats, standard: Floats) -> Covariance:
    """The covariance of most likelihood for standardised answers (n, k) at rows (n, d)."""
    from scipy.optimize import minimize

    slopes = np.abs(ridge_path(z, standard)[1]).mean(axis=1)
    usual = _START * np.sqrt(slopes / (slopes.mean() or 1.0) + 0.05)
    start = np.concatenate([np.log(usual), _STARTS, [_USUAL]])
    found = minimize(
        lambda parameters: _unlikely(parameters, z, standard),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[*[_RELEVANCE] * z.shape[1], *_OTHERS],
        options={"maxiter": _STEPS},
    )
    return Covariance.of(found.x)


def _unlikely(parameters: Floats, z: Floats, standard: Floats) -> tuple[float, Floats]:
    """The negative log posterior, a mean over outputs, but for a constant; and its gradient.

    With K the covariance and t an output, the likelihood's part is ½ tᵀK⁻¹t + ½ log det K, whose derivative
    by K is G = ½ (K⁻¹ - K⁻¹ttᵀK⁻¹).
    """
    from scipy.linalg import cholesky, lapack

    found = Covariance.of(parameters)
    line, alike = found.parts(z, z)
    gram = _LEVEL + alike + line
    gram[np.diag_indices_from(gram)] += found.noise
    root = cholesky(gram, lower=True)
    # the half that dpotri leaves alone is 0
    half = lapack.dpotri(root, lower=1)[0]
    inverse = half + half.T
    inverse[np.diag_indices_from(inverse)] /= 2
    solved = inverse @ standard
    outputs = standard.shape[1]
    value = 0.5 * (standard * solved).sum() / outputs + np.log(np.diag(root)).sum()
    by_gram = 0.5 * (inverse - solved @ solved.T / outputs)
    by_alike = by_gram * alike
    signs = 2 * z - 1
    by_relevance = _differing(by_alike, z) + found.slope * (signs * (by_gram @ signs)).sum(axis=0)
    slope = np.concatenate(
        [
            found.relevance * by_relevance,
            [by_alike.sum(), found.noise * np.trace(by_gram), (by_gram * line).sum(), 0.0],
        ]
    )
    return _with_prior(value, slope, parameters)


def _differing(by_alike: Floats, z: Floats) -> Floats:
    """-Σ_ii' B_ii' 1[z_ij ≠ z_i'j] for symmetric B, (d,)."""
    return np.asarray(2 * (z * (by_alike @ z)).sum(axis=0) - 2 * by_alike.sum(axis=1) @ z)


def _with_prior(value: float, slope: Floats, parameters: Floats) -> tuple[float, Floats]:
    """Add -log p(log ρ, m)."""
    mean = parameters[-1]
    apart, away = parameters[:-4] - mean, (mean - _USUAL) / _DOUBT
    slope[:-4] += apart
    slope[-1] += away / _DOUBT - apart.sum()
    return float(value + 0.5 * (apart @ apart + away**2)), slope
