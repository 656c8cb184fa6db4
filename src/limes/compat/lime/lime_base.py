r"""lime's surrogate: a weighted ridge regression on some of the features.

With x̃, ỹ centred by their weighted means, G = Σ π x̃x̃ᵀ and c = Σ π x̃ỹ, all is read off G and c:

    coefficients (G + αI)⁻¹c,     and which features they are of (``selection.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice
from limes.compat.lime.selection import SELECTIONS, NormalEquations, selected
from limes.exceptions import InputError

# lime's penalties: of the surrogate, and of the fit that ranks features
_PENALTY, _RANKING_PENALTY = 1.0, 0.01
# What keeps a Gram matrix of collinear features from being singular
_LEAST_PENALTY = 1e-12

# Share of the answers' size, below which they are all the same, and there is nothing to be explained
_ROUNDING = 1e-12

__all__ = ["SELECTIONS", "LimeBase", "LocalFit", "default_kernel", "report"]


@dataclass(frozen=True, eq=False)
class LocalFit:
    """One label's surrogate: features (m,), coefficients (m,), largest first, and standard errors (m,)."""

    intercept: float
    features: Ints
    coef: Floats
    errors: Floats
    score: float
    local_pred: float

    @property
    def pairs(self) -> list[tuple[int, float]]:
        """(feature, coefficient), largest first."""
        return [(int(j), float(b)) for j, b in zip(self.features, self.coef, strict=True)]


@dataclass(frozen=True, eq=False)
class _Sample:
    """Features x (n, d) and weights (n,) of rows, the instance's first; one Gram matrix for all answers."""

    x: Floats
    weights: Floats

    @cached_property
    def mean(self) -> Floats:
        return np.asarray(self.weights @ self.x / self.weights.sum())

    @cached_property
    def root(self) -> Floats:
        return np.sqrt(self.weights)

    @cached_property
    def rooted(self) -> Floats:
        """Rows of x̃ times √π, (n, d)."""
        found = self.x - self.mean
        found *= self.root[:, None]
        return found

    @cached_property
    def gram(self) -> Floats:
        return self.rooted.T @ self.rooted

    def equations(self, y: Floats) -> NormalEquations:
        """Of answers y (n,) on all features."""
        gamma = self.rooted.T @ (self.root * (y - self.level(y)))
        return NormalEquations(
            self.gram, gamma, self.x[0], lambda: _ridge(self.gram, gamma, _RANKING_PENALTY)
        )

    def level(self, y: Floats) -> float:
        """Weighted mean of y (n,)."""
        return float(self.weights @ y / self.weights.sum())

    def errors(self, used: Ints, residual: Floats, penalty: float) -> Floats:
        """Standard errors (m,) of the used features' coefficients, rows being a sample: Huber's sandwich."""
        bread = np.linalg.inv(self.gram[np.ix_(used, used)] + penalty * np.eye(len(used)))
        scores = self.rooted[:, used] * (self.root * residual)[:, None]
        return np.asarray(np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread)))


def _ridge(gram: Floats, gamma: Floats, penalty: float) -> Floats:
    return np.asarray(np.linalg.solve(gram + penalty * np.eye(len(gram)), gamma))


def default_kernel(d: Floats, kernel_width: float) -> Floats:
    """The kernel of lime, exp(-d² / (2 width²))."""
    return np.exp(-(d**2) / (2 * kernel_width**2))


def report(fit: LocalFit, right: float) -> None:
    """Print what lime prints of a surrogate, ``right`` being the model's own answer at the instance."""
    print(f"Intercept {fit.intercept}\nPrediction_local {fit.local_pred}\nRight: {right}")  # noqa: T201


class LimeBase:
    """Fit local linear surrogates.

    Parameters
    ----------
    kernel_fn : callable
        Distances (n,) -> weights (n,).
    verbose : bool
        Print the intercept and the surrogate's and the model's prediction.
    random_state : any
        Kept for lime's signature: nothing here is random.
    """

    def __init__(
        self, kernel_fn: Callable[[Floats], Floats], verbose: bool = False, random_state: Any = None
    ) -> None:
        self.kernel_fn = kernel_fn
        self.verbose = verbose
        self.random_state = random_state

    @staticmethod
    def generate_lars_path(weighted_data: Any, weighted_labels: Any) -> tuple[Floats, Floats]:
        """Penalties and coefficients (d, penalties) along the lasso's path."""
        from sklearn.linear_model import lars_path

        penalties, _, coefs = lars_path(weighted_data, weighted_labels, method="lasso")
        return penalties, coefs

    def feature_selection(self, data: Any, labels: Any, weights: Any, num_features: int, method: str) -> Ints:
        """Positions of the features that ``method`` (see :data:`SELECTIONS`) selects.

        Raises
        ------
        InputError
            An unknown method.
        """
        check_choice("feature_selection", method, tuple(SELECTIONS))
        equations = _sample(data, weights).equations(np.asarray(labels, dtype=np.float64))
        return selected(equations, num_features, method)

    def forward_selection(self, data: Any, labels: Any, weights: Any, num_features: int) -> Ints:
        """Positions of the features that raise R² most, one after the other."""
        return self.feature_selection(data, labels, weights, num_features, "forward_selection")

    def explain_instance_with_data(
        self,
        neighborhood_data: Any,
        neighborhood_labels: Any,
        distances: Any,
        label: int,
        num_features: int,
        feature_selection: str = "auto",
        model_regressor: Any = None,
    ) -> tuple[float, list[tuple[int, float]], float, Floats]:
        """Intercept, (feature, coefficient) by size, weighted R², and the surrogate's prediction (1,)."""
        fit = self.fit(
            neighborhood_data,
            neighborhood_labels[:, label],
            distances,
            num_features,
            feature_selection,
            model_regressor,
        )
        return fit.intercept, fit.pairs, fit.score, np.array([fit.local_pred])

    def fit(
        self,
        data: Any,
        y: Any,
        distances: Any,
        num_features: int,
        selection: str = "auto",
        regressor: Any = None,
    ) -> LocalFit:
        """Fit the surrogate of answers y (n,) on features (n, d), the instance's first."""
        answers = np.asarray(y, dtype=np.float64)[:, None]
        return self.fits(data, answers, distances, [0], num_features, selection, regressor)[0]

    def fits(
        self,
        data: Any,
        answers: Floats,
        distances: Any,
        labels: Iterable[int],
        num_features: int,
        selection: str = "auto",
        regressor: Any = None,
    ) -> dict[int, LocalFit]:
        """Fit surrogates of some columns of answers (n, k) on features (n, d), the instance's first."""
        check_choice("feature_selection", selection, tuple(SELECTIONS))
        sample = _sample(data, _checked(self.kernel_fn(distances), len(answers)))
        found = {}
        for label in labels:
            y = answers[:, label]
            equations = sample.equations(y)
            used = selected(equations, num_features, selection)
            found[label] = _fitted(sample, equations, y, used, regressor)
            if self.verbose:
                report(found[label], float(y[0]))
        return found


def _checked(weights: Any, rows: int) -> Floats:
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (rows,) or not np.isfinite(found).all() or found.min() < 0 or not found.any():
        raise InputError(
            f"the kernel gave weights of shape {found.shape} for {rows} distances: it must give a finite "
            "number >= 0 for each, and not 0 for all"
        )
    return found


def _sample(data: Any, weights: Any) -> _Sample:
    return _Sample(np.asarray(data, dtype=np.float64), np.asarray(weights, dtype=np.float64))


def _fitted(sample: _Sample, equations: NormalEquations, y: Floats, used: Ints, regressor: Any) -> LocalFit:
    """The surrogate of answers y (n,) on the used features: lime's ridge, or another regressor."""
    x, level = sample.x[:, used], sample.level(y)
    if regressor is None:
        penalty = _PENALTY
        coef = _ridge(equations.gram[np.ix_(used, used)], equations.gamma[used], penalty)
        intercept = level - float(sample.mean[used] @ coef)
    else:
        regressor.fit(x, y, sample_weight=sample.weights)
        penalty, coef, intercept = _LEAST_PENALTY, np.ravel(regressor.coef_), float(regressor.intercept_)
    residual = y - intercept - x @ coef
    spread, size = (float(sample.weights @ part**2) for part in (y - level, y))
    order = np.argsort(-np.abs(coef), kind="stable")
    return LocalFit(
        intercept=intercept,
        features=used[order],
        coef=coef[order],
        errors=sample.errors(used, residual, penalty)[order],
        score=1.0 - float(sample.weights @ residual**2) / spread if spread > _ROUNDING**2 * size else 1.0,
        local_pred=float(intercept + x[0] @ coef),
    )
