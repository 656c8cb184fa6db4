r"""Gaussian process control of switches, for models whose answers take longer than a fit.

Answers, probabilities by their log odds, are followed by the mean of a Gaussian process:

    h(z) = σ(mean + Σ_i a_i k(z, c_i)),    σ the logistic function for probabilities, else the identity,
    k(z, c) = ½ + a Σ_j ρ_j (2z_j - 1)(2c_j - 1) + b exp(-Σ_j ρ_j 1[z_j ≠ c_j]),

a level, slopes and interactions of all orders, with noise of variance s. The standardised outputs are
independent with this covariance; ρ, a, b and s maximise their likelihood under log ρ_j ~ N(m, 1), m ~ N(-2.5,
1.5²): few rows show which switches matter, but not how much each of them does.

Its expectation is simulated on rows of the design, many times as many as the model predicted: they cost only
a product of matrices. Its standard errors are computed from the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Reals, fingerprint
from limes._expectations.controls.control import (
    ControlMoments,
    FittedControl,
    ZeroControl,
    evenly_spread,
    fit_on_centers,
    ridge_path,
)
from limes._expectations.controls.odds import are_probabilities, log_odds
from limes.designs._exchangeable import ExchangeableDesign

_MOST_CENTERS = 1024
# Largest number of rows from which the covariance is learnt
_MOST_LEARNING = 256
_FEWEST_ROWS = 32
# Rows of one control's simulation, and of a block of it
_SIMULATED, _BLOCK = 16_384, 2_048
_LEVEL = 0.5
# Prior of m, the mean of log ρ: its mean and standard deviation
_PRIOR_MEAN, _PRIOR_STD = -2.5, 1.5
# Where the search begins: ρ of a switch of mean slope, and log b, log s, log a
_START_RELEVANCE, _START = 0.1, (0.0, -3.0, -1.2)
# Bounds of log ρ_j, and of log b, log s, log a and m: s keeps covariances far from singular
_RELEVANCE_BOUNDS, _OTHER_BOUNDS = (-8.0, 2.0), ((-6.0, 4.0), (-8.0, 1.0), (-8.0, 4.0), (-6.0, 1.0))
# More steps change hyperparameters, but hardly the predictions
_STEPS = 15


@dataclass(frozen=True, eq=False)
class _Scale:
    """The scale that a process is fitted on: log odds of probabilities, other answers as they are."""

    transform: Callable[[Floats], Floats]
    inverse: Callable[[Reals], Reals]

    @classmethod
    def from_answers(cls, f: Floats) -> _Scale:
        from scipy.special import expit

        if are_probabilities(f):
            return cls(log_odds, expit)
        return cls(np.asarray, np.asarray)


@dataclass(frozen=True, eq=False)
class _Process:
    covariance: Covariance
    centers: Floats
    coef: Floats
    mean: Floats
    scale: _Scale
    stream: int

    def predict(self, x: Floats) -> Floats:
        return np.asarray(self._values(x), dtype=np.float64)

    def _values(self, z: Reals) -> Reals:
        """(n, k), computed in the precision of z."""
        centers, coef, mean = (part.astype(z.dtype) for part in (self.centers, self.coef, self.mean))
        return self.scale.inverse(mean + self.covariance.between(z, centers) @ coef)

    def moments(self, design: ExchangeableDesign) -> ControlMoments:
        streams = np.random.SeedSequence(self.stream).spawn(_SIMULATED // _BLOCK)
        blocks = [design.sample(_BLOCK, stream)[0].astype(np.float32) for stream in streams]
        return _simulated_moments(blocks, [self._values(z) for z in blocks], design.inclusion)


def gaussian_process(design: ExchangeableDesign, z: Floats, f: Floats) -> FittedControl:  # noqa: ARG001 - fits rows
    """Fit a Gaussian process to answers f (n, k) at rows z (n, d) of 0 and 1."""
    scale = _Scale.from_answers(f)
    values = scale.transform(f)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    varies = deviation > 0
    if len(z) < _FEWEST_ROWS or not varies.any():
        return ZeroControl(f.shape[1])
    standard = (values - mean) / np.where(varies, deviation, 1.0)
    some = evenly_spread(len(z), _MOST_LEARNING)
    covariance = Covariance.fit(z[some], standard[some][:, varies])
    centers = z[evenly_spread(len(z), _MOST_CENTERS)]
    gram, center_gram = (
        np.asarray(covariance.between(rows, centers), dtype=np.float64) for rows in (z, centers)
    )
    coef = fit_on_centers([(gram, standard)], center_gram, covariance.noise) * deviation
    return _Process(covariance, centers, coef, mean, scale, fingerprint(z))


def _simulated_moments(features: Sequence[Reals], values: Sequence[Reals], center: Floats) -> ControlMoments:
    """Least squares of values (n, k) on centred features (n, d), both in blocks, with standard errors."""
    d, outputs = features[0].shape[1], values[0].shape[1]
    gram, gamma = np.zeros((1 + d, 1 + d)), np.zeros((1 + d, outputs))
    for h, f in zip(features, values, strict=True):
        x = _regressors(h, center)
        gram += x.T @ x
        gamma += x.T @ f
    inverse = np.linalg.pinv(gram, hermitian=True)
    coef, squares = inverse @ gamma, np.zeros((1 + d, outputs))
    for h, f in zip(features, values, strict=True):
        x = _regressors(h, center)
        squares += ((x @ inverse) ** 2).T @ (f - x @ coef) ** 2
    return ControlMoments(coef[0], coef[1:], np.sqrt(squares))


def _regressors(h: Reals, center: Floats) -> Floats:
    return np.column_stack([np.ones(len(h)), h - center])


@dataclass(frozen=True, eq=False)
class Covariance:
    """ρ (d,), b, s and a, of which k is made."""

    relevance: Floats
    rough: float
    noise: float
    slope: float

    @classmethod
    def from_parameters(cls, parameters: Floats) -> Covariance:
        """Read log ρ, log b, log s, log a and m, (d + 4,)."""
        rough, noise, slope = np.exp(parameters[-4:-1])
        return cls(np.exp(parameters[:-4]), float(rough), float(noise), float(slope))

    @classmethod
    def fit(cls, z: Floats, standard: Floats) -> Covariance:
        """Maximise the posterior, given standardised answers (n, k) at rows (n, d)."""
        # Not by scikit-learn's GaussianProcessRegressor (DotProduct + RBF with d lengths + WhiteKernel),
        # which takes 6 times as long for as many steps, 12 times by its own stopping rule: 0.50 s and 0.93 s
        # against 0.08 s for 200 rows x 40 features on one core, and an explanation fits four folds. It
        # computes a gradient matrix (n, n) a feature, here one (n, n) x (n, d) product does for all. Nor can
        # its slopes share the relevances, or hyperparameters have a prior.
        from scipy.optimize import minimize

        slopes = np.abs(ridge_path(z, standard)[1]).mean(axis=1)
        relevance = _START_RELEVANCE * np.sqrt(slopes / (slopes.mean() or 1.0) + 0.05)
        result = minimize(
            lambda parameters: _negative_log_posterior(parameters, z, standard),
            np.concatenate([np.log(relevance), _START, [_PRIOR_MEAN]]),
            jac=True,
            method="L-BFGS-B",
            bounds=[*[_RELEVANCE_BOUNDS] * z.shape[1], *_OTHER_BOUNDS],
            options={"maxiter": _STEPS},
        )
        return cls.from_parameters(result.x)

    def between(self, z: Reals, centers: Reals) -> Reals:
        """Covariances without noise, (n, m), in the precision of the rows."""
        line, alike = self.parts(z, centers)
        line += alike
        line += _LEVEL
        return line

    def parts(self, z: Reals, centers: Reals) -> tuple[Reals, Reals]:
        """The parts of k: that of the slopes, and the rest.

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


def _negative_log_posterior(parameters: Floats, z: Floats, standard: Floats) -> tuple[float, Floats]:
    """The negative log posterior up to a constant, averaged over outputs, and its gradient.

    With K the covariance and t an output, the likelihood's part is ½ tᵀK⁻¹t + ½ log det K, whose derivative
    by K is G = ½ (K⁻¹ - K⁻¹ttᵀK⁻¹).
    """
    from scipy.linalg import cholesky, lapack

    covariance = Covariance.from_parameters(parameters)
    line, alike = covariance.parts(z, z)
    gram = _LEVEL + alike + line
    gram[np.diag_indices_from(gram)] += covariance.noise
    root = cholesky(gram, lower=True)
    # dpotri fills the lower half, and leaves 0 in the upper one
    half = lapack.dpotri(root, lower=1)[0]
    inverse = half + half.T
    inverse[np.diag_indices_from(inverse)] /= 2
    solved = inverse @ standard
    outputs = standard.shape[1]
    value = 0.5 * (standard * solved).sum() / outputs + np.log(np.diag(root)).sum()
    by_gram = 0.5 * (inverse - solved @ solved.T / outputs)
    by_alike = by_gram * alike
    signs = 2 * z - 1
    by_relevance = _differing(by_alike, z) + covariance.slope * (signs * (by_gram @ signs)).sum(axis=0)
    slope = np.concatenate(
        [
            covariance.relevance * by_relevance,
            [by_alike.sum(), covariance.noise * np.trace(by_gram), (by_gram * line).sum(), 0.0],
        ]
    )
    return _with_prior(value, slope, parameters)


def _differing(by_alike: Floats, z: Floats) -> Floats:
    """-Σ_ii' B_ii' 1[z_ij ≠ z_i'j] for symmetric B, (d,)."""
    return np.asarray(2 * (z * (by_alike @ z)).sum(axis=0) - 2 * by_alike.sum(axis=1) @ z)


def _with_prior(value: float, slope: Floats, parameters: Floats) -> tuple[float, Floats]:
    """Add -log p(log ρ, m)."""
    mean = parameters[-1]
    apart, away = parameters[:-4] - mean, (mean - _PRIOR_MEAN) / _PRIOR_STD
    slope[:-4] += apart
    slope[-1] += away / _PRIOR_STD - apart.sum()
    return float(value + 0.5 * (apart @ apart + away**2)), slope
