r"""Controls of switches, for models of texts and images that cannot be read.

*Logistic*, for probabilities whose log odds are linear: g_k(z) = σ(b_k + a_k · z), σ the logistic function.
b and a follow by ridge regression of the answers' log odds. Linear classifiers of words are of this form, and
other models are near it. Its expectation is exact, by quadrature (``linked_words.py``).

*Kernels*: k(z, c) = exp(-Σ_j w_j 1[z_j ≠ c_j]), so that rows are alike where they differ in few features that
matter. How much a feature matters is learnt by a linear fit, w_j ∝ |β_j|^p. The mean of w, then p, and the
penalty are those of the least leave-one-out error. The kernel is a product of functions of one switch each,
whose expectations are exact.

*Gaussian process*, for models whose answers take longer than a fit. Answers, probabilities by their log odds,
are followed by the mean of a Gaussian process:

    g(z) = σ(mean + Σ_i a_i k(z, c_i)),    σ the logistic function for probabilities, else the identity,
    k(z, c) = ½ + a Σ_j ρ_j (2z_j - 1)(2c_j - 1) + b exp(-Σ_j ρ_j 1[z_j ≠ c_j]),

a level, slopes and interactions of all orders, with noise of variance s. The standardised outputs are
independent with this covariance; ρ, a, b and s maximise their likelihood under log ρ_j ~ N(m, 1), m ~ N(-2.5,
1.5²): few rows show which switches matter, but not how much each of them does. The expectation is simulated
on rows of the design, many times as many as the model predicted: they cost only a product of matrices. Its
standard errors are computed from the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Reals, are_complements, are_probabilities, fingerprint
from limes._expectations.linked_words import LinkedWordsExpectation
from limes._expectations.words import switch_surrogates
from limes._sampling.controls.control import (
    PENALTIES,
    FittedControl,
    SequenceRidge,
    ZeroControl,
    evenly_spread,
    fit_on_centers,
    leave_one_out_errors,
    log_odds,
    ridge_path,
    roots_of_weights,
)
from limes._sampling.least_squares import ControlMoments
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Linear
from limes.models.forms._linked import Linked

_FEWEST_ROWS = 32

# -- logistic ------------------------------------------------------------------------------------------------

# Penalties in units of the rows' weights: the one that predicts one part of the rows best is chosen
_PENALTIES = (1e-7, 1e-5, 1e-4, 1e-3, 1e-2)
_PARTS = 3


@dataclass(frozen=True, eq=False)
class _LogisticControl(FittedControl):
    form: Linked
    exact: ControlMoments

    def predict(self, z: Floats) -> Floats:
        return self.form.predict(z)

    def expectation(self, design: ExchangeableDesign) -> ControlMoments:  # noqa: ARG002 - the design of the fit
        return self.exact


def logistic_control(design: ExchangeableDesign, z: Floats, f: Floats) -> FittedControl:
    """Fit log odds of probabilities f (n, k) at rows z (n, d) of 0 and 1; other answers have no control."""
    count = len(z) // _PARTS * _PARTS
    if count < _FEWEST_ROWS or not are_probabilities(f, add_up=False):
        return ZeroControl(f.shape[1])
    complement = are_complements(f)
    p = f[:count, 1:] if complement else f[:count]
    root = roots_of_weights(p)
    features = root * np.column_stack([np.ones(count), z[:count] - design.inclusion])
    targets = root * log_odds(p)
    ridge, first = SequenceRidge.of(features, targets, _PARTS), slice(count // _PARTS)

    def misses(penalty: float) -> float:
        return float(((targets[first] - features[first] @ ridge.without(0, penalty)) ** 2).sum())

    intercept, *slopes = ridge.of_all(min(_PENALTIES, key=misses))
    coef = np.array(slopes)
    margin = Linear(coef, intercept - design.inclusion @ coef)
    both = (np.array([[-1.0, 1.0]]), np.array([1.0, 0.0])) if complement else ()
    form = Linked(margin, "logistic", *both)
    try:
        moments = LinkedWordsExpectation(form).moments(design)
    except (InputError, ModelError):
        return ZeroControl(f.shape[1])
    return _LogisticControl(form, ControlMoments.exact(moments.mean, design.solve(moments.gamma)))


# -- kernels -------------------------------------------------------------------------------------------------

# Candidates for p and for the mean of w, centres, and rows on which they are chosen
_POWERS = (0.5, 0.0, 1.0)
_MEANS = (0.03, 0.1, 0.3)
_MOST_CENTERS = 256
_MOST_FITTED = 2048
_MOST_CHOOSING = 72


@dataclass(frozen=True, eq=False)
class _KernelControl(FittedControl):
    centers: Floats
    rates: Floats
    intercept: Floats
    coef: Floats

    def predict(self, z: Floats) -> Floats:
        grams = _grams(z, self.centers, self.rates)
        return np.concatenate([self.intercept + gram @ self.coef for _, gram in grams])

    def expectation(self, design: ExchangeableDesign) -> ControlMoments:
        far = np.exp(-self.rates)
        on, off = np.where(self.centers > 0, 1.0, far), np.where(self.centers > 0, far, 1.0)
        mean, beta = switch_surrogates(on, off, design)
        return ControlMoments.exact(self.intercept + mean @ self.coef, beta.T @ self.coef)


def switch_kernels(design: ExchangeableDesign, z: Floats, f: Floats) -> FittedControl:  # noqa: ARG001 - fits rows
    if len(z) < _FEWEST_ROWS:
        return ZeroControl(f.shape[1])
    intercept, scale = f.mean(axis=0), np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
    standard = (f - intercept) / scale
    rates, penalty = _choose_rates(z, standard)
    centers = z[evenly_spread(len(z), _MOST_CENTERS)]
    (_, center_gram), *_ = _grams(centers, centers, rates)
    fitted = evenly_spread(len(z), _MOST_FITTED)
    answers = standard[fitted]
    blocks = ((gram, answers[rows]) for rows, gram in _grams(z[fitted], centers, rates))
    coef = fit_on_centers(blocks, center_gram, penalty) * scale
    return _KernelControl(centers, rates, intercept, coef)


def _choose_rates(z: Floats, standard: Floats) -> tuple[Floats, float]:
    """Rates w (d,) and penalty, by leave-one-out errors of some of the rows: first their mean, then p."""
    importance = np.abs(ridge_path(z, standard)[1]).mean(axis=1)
    some = evenly_spread(len(z), _MOST_CHOOSING)
    rows, answers = z[some], standard[some]

    def score(rates: Floats) -> tuple[float, float]:
        (_, gram), *_ = _grams(rows, rows, rates)
        errors = leave_one_out_errors(gram, answers)
        return float(errors.min()), float(PENALTIES[np.argmin(errors)])

    candidates = [(score(rates), rates) for rates in (_rates(importance, _POWERS[0], m) for m in _MEANS)]
    mean = _MEANS[int(np.argmin([error for (error, _), _ in candidates]))]
    others = [_rates(importance, power, mean) for power in _POWERS[1:]]
    candidates += [(score(rates), rates) for rates in others]
    (_, penalty), rates = min(candidates, key=lambda candidate: candidate[0][0])
    return rates, penalty


def _rates(importance: Floats, power: float, mean: float) -> Floats:
    rates = importance**power
    return np.asarray(mean * rates / (rates.mean() or 1.0))


def _grams(z: Floats, centers: Floats, rates: Floats) -> Iterator[tuple[slice, Floats]]:
    """exp(-Σ_j w_j 1[z_j ≠ c_j]), (n, m), in blocks of rows that stay in the processor's cache."""
    slopes, start = (rates * (2.0 * centers - 1.0)).T, centers @ rates
    for first in range(0, len(z), _MOST_CENTERS):
        rows = slice(first, first + _MOST_CENTERS)
        exponent = z[rows] @ slopes
        exponent -= start
        np.minimum(exponent, 0.0, out=exponent)
        yield rows, np.exp(exponent, out=exponent)


# -- Gaussian process ----------------------------------------------------------------------------------------

_MOST_PROCESS_CENTERS = 1024
# Largest number of rows from which the covariance is learnt
_MOST_LEARNING = 256
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
class _Process(FittedControl):
    covariance: Covariance
    centers: Floats
    coef: Floats
    mean: Floats
    inverse: Callable[[Reals], Reals]  # of log odds, or the identity
    stream: int

    def predict(self, x: Floats) -> Floats:
        return np.asarray(self._values(x), dtype=np.float64)

    def _values(self, z: Reals) -> Reals:
        """(n, k), computed in the precision of z."""
        centers, coef, mean = (part.astype(z.dtype) for part in (self.centers, self.coef, self.mean))
        return self.inverse(mean + self.covariance.between(z, centers) @ coef)

    def expectation(self, design: ExchangeableDesign) -> ControlMoments:
        # least squares of the values at simulated rows on centred features, block by block
        streams, size = np.random.SeedSequence(self.stream).spawn(_SIMULATED // _BLOCK), 1 + design.size
        blocks = [design.sample(_BLOCK, stream)[0].astype(np.float32) for stream in streams]
        gram, gamma = np.zeros((size, size)), np.zeros((size, self.mean.size))
        pairs = [(z, self._values(z)) for z in blocks]

        def regressors(z: Reals) -> Floats:
            return np.column_stack([np.ones(len(z)), z - design.inclusion])

        for z, f in pairs:
            x = regressors(z)
            gram += x.T @ x
            gamma += x.T @ f
        inverse = np.linalg.pinv(gram, hermitian=True)
        coef, squares = inverse @ gamma, np.zeros(gamma.shape)
        for z, f in pairs:
            x = regressors(z)
            squares += ((x @ inverse) ** 2).T @ (f - x @ coef) ** 2
        return ControlMoments(coef[0], coef[1:], np.sqrt(squares))


def gaussian_process(design: ExchangeableDesign, z: Floats, f: Floats) -> FittedControl:  # noqa: ARG001 - fits rows
    from scipy.special import expit

    is_logistic = are_probabilities(f, add_up=False)
    values = log_odds(f) if is_logistic else f
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    varies = deviation > 0
    if len(z) < _FEWEST_ROWS or not varies.any():
        return ZeroControl(f.shape[1])
    standard = (values - mean) / np.where(varies, deviation, 1.0)
    some = evenly_spread(len(z), _MOST_LEARNING)
    covariance = Covariance.fit(z[some], standard[some][:, varies])
    centers = z[evenly_spread(len(z), _MOST_PROCESS_CENTERS)]
    gram, center_gram = (
        np.asarray(covariance.between(rows, centers), dtype=np.float64) for rows in (z, centers)
    )
    coef = fit_on_centers([(gram, standard)], center_gram, covariance.noise) * deviation
    return _Process(covariance, centers, coef, mean, expit if is_logistic else np.asarray, fingerprint(z))


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
        """The parts of k: that of the slopes, and the rest."""
        # both come from D = Σ_j ρ_j 1[z_j ≠ c_j]: Σ_j ρ_j (2z_j - 1)(2c_j - 1) is Σ_j ρ_j - 2D
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
    # -Σ_ii' B_ii' 1[z_ij ≠ z_i'j] of B, the derivative by the part that decays
    differing = 2 * (z * (by_alike @ z)).sum(axis=0) - 2 * by_alike.sum(axis=1) @ z
    by_relevance = differing + covariance.slope * (signs * (by_gram @ signs)).sum(axis=0)
    others = [by_alike.sum(), covariance.noise * np.trace(by_gram), (by_gram * line).sum(), 0.0]
    slope = np.concatenate([covariance.relevance * by_relevance, others])
    # -log p(log ρ, m)
    apart, away = parameters[:-4] - parameters[-1], (parameters[-1] - _PRIOR_MEAN) / _PRIOR_STD
    slope[:-4] += apart
    slope[-1] += away / _PRIOR_STD - apart.sum()
    return float(value + 0.5 * (apart @ apart + away**2)), slope
