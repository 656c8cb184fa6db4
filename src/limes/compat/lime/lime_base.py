r"""lime's surrogate: a weighted ridge regression on some of the features.

With x̃, ỹ centred by their weighted means, G = Σ π x̃x̃ᵀ and c = Σ π x̃ỹ, all is computed from G and c:

    coefficients (G + αI)⁻¹c,     and which features they are of: forward selection, say, is pivoted
    elimination of G by the largest c_j² / G_jj.

The limit's normal equations have Σ and Γ in place of G and c, and go through the same selections.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats, Ints, r_squared
from limes._checks import check_choice
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explanation import Explanation as LimesExplanation

# lime's penalties: of the surrogate, and of the fit that ranks features
_PENALTY, _RANKING_PENALTY = 1.0, 0.01
# Keeps a Gram matrix of collinear features from being singular
_LEAST_PENALTY = 1e-12
# lime selects up to this number of features forward, and ranks above
_FORWARD_UP_TO = 6
# Share of a column's own variance, below which the columns before it explain it
_COLLINEAR = 1e-12

__all__ = [
    "SELECTIONS",
    "CentredEquations",
    "LimeBase",
    "LocalFit",
    "PerturbedRows",
    "Surrogates",
    "default_kernel",
    "report",
    "selected",
]


@dataclass(frozen=True, eq=False)
class PerturbedRows:
    """Rows around an instance, the instance's first, as engine "lime" fits them."""

    features: Floats  # (n, m)
    answers: Floats  # (n, k)
    # (n,) in lime's unit; None where the call's metric is to measure the features
    distances: Floats | None = None


@dataclass(frozen=True, eq=False)
class LocalFit:
    """One label's surrogate: features (m,), coefficients (m,), largest first, and standard errors (m,).

    The score is NaN where it takes some time to compute.
    """

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
class Surrogates:
    """The numbers of an engine for one instance: a fit per label, and the model's answer (k,) at it.

    ``scores`` and ``answers`` compute each fit's weighted R², and the model's answers near the instance, with
    model calls where these are needed; ``explanation`` makes that of limes.
    """

    fits: Mapping[int, LocalFit]
    prediction: Floats
    scores: Callable[[], dict[int, float]]
    answers: Callable[[], Floats]
    explanation: Callable[[], LimesExplanation]


@dataclass(frozen=True, eq=False)
class CentredEquations:
    """G (d, d) and c (d,) of centred features, and the features at the instance (d,).

    ``ranking`` computes the coefficients (d,) of all features, by which they are ranked.
    """

    gram: Floats
    gamma: Floats
    at_instance: Floats
    ranking: Callable[[], Floats]


def _forward(equations: CentredEquations, count: int) -> Ints:
    gram, gamma = equations.gram, equations.gamma
    unused, variance = np.ones(len(gamma), dtype=bool), np.diag(gram).copy()
    chosen: list[int] = []
    for _ in range(count):
        pivots = np.diag(gram)
        able = unused & (pivots > _COLLINEAR * variance)
        gain = np.where(able, gamma**2 / np.where(able, pivots, 1.0), np.where(unused, 0.0, -1.0))
        best = int(np.argmax(gain))
        chosen.append(best)
        unused[best] = False
        if able[best]:
            column = gram[:, best] / pivots[best]
            gamma, gram = gamma - column * gamma[best], gram - np.outer(column, gram[best])
    return np.array(chosen, dtype=int)


def _highest(equations: CentredEquations, count: int) -> Ints:
    size = np.abs(equations.ranking() * equations.at_instance)
    return np.argsort(-size, kind="stable")[:count]


def _lasso(equations: CentredEquations, count: int) -> Ints:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path_gram

    with warnings.catch_warnings():
        # features that the model ignores tie at the path's end, where it stops early
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, _, coefs = lars_path_gram(equations.gamma, equations.gram, n_samples=1, method="lasso")
    few = [np.flatnonzero(c) for c in coefs.T if np.count_nonzero(c) <= count]
    return np.asarray(few[-1], dtype=int)


def _auto(equations: CentredEquations, count: int) -> Ints:
    return (_forward if count <= _FORWARD_UP_TO else _highest)(equations, count)


SELECTIONS: dict[str, Callable[[CentredEquations, int], Ints]] = {
    "auto": _auto,
    "forward_selection": _forward,
    "highest_weights": _highest,
    "lasso_path": _lasso,
    "none": lambda equations, count: np.arange(len(equations.gamma)),  # noqa: ARG005 - all of them
}


def selected(equations: CentredEquations, count: int, method: str) -> Ints:
    """Positions of ``count`` features that a method of `SELECTIONS` selects, or as many as there are.

    Below 0: all but the smallest ones, as a slice has them.
    """
    d = len(equations.gamma)
    return SELECTIONS[method](equations, min(count, d) if count > 0 else max(d + count, 1))


class _Sample:
    """Features x (n, d) and weights (n,) of rows, the instance's first; one Gram matrix for all answers."""

    def __init__(self, data: Any, weights: Any) -> None:
        dense = data.toarray() if hasattr(data, "toarray") else data
        self.x = np.asarray(dense, dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.mean = np.asarray(self.weights @ self.x / self.weights.sum())
        self.root = np.sqrt(self.weights)
        self.rooted = self.x - self.mean
        self.rooted *= self.root[:, None]
        self.gram = self.rooted.T @ self.rooted

    def equations(self, y: Floats) -> CentredEquations:
        gamma = self.rooted.T @ (self.root * (y - self.level(y)))
        ranking = partial(_ridge, self.gram, gamma, _RANKING_PENALTY)
        return CentredEquations(self.gram, gamma, self.x[0], ranking)

    def level(self, y: Floats) -> float:
        return float(self.weights @ y / self.weights.sum())

    def fit(self, y: Floats, gamma: Floats, used: Ints, regressor: Any) -> LocalFit:
        x, gram, level = self.x[:, used], self.gram[np.ix_(used, used)], self.level(y)
        if regressor is None:
            penalty, coef = _PENALTY, _ridge(gram, gamma[used], _PENALTY)
            intercept = level - float(self.mean[used] @ coef)
        else:
            regressor.fit(x, y, sample_weight=self.weights)
            penalty, coef, intercept = _LEAST_PENALTY, np.ravel(regressor.coef_), float(regressor.intercept_)
        residual = y - intercept - x @ coef
        # the rows are a sample: Huber's sandwich
        bread = np.linalg.inv(gram + penalty * np.eye(len(used)))
        scores = self.rooted[:, used] * (self.root * residual)[:, None]
        errors = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
        spread, size = (float(self.weights @ part**2) for part in (y - level, y))
        order = np.argsort(-np.abs(coef), kind="stable")
        return LocalFit(
            intercept=intercept,
            features=used[order],
            coef=coef[order],
            errors=errors[order],
            score=float(r_squared(spread - float(self.weights @ residual**2), spread, np.sqrt(size))[0]),
            local_pred=float(intercept + x[0] @ coef),
        )


def _ridge(gram: Floats, gamma: Floats, penalty: float) -> Floats:
    return np.asarray(np.linalg.solve(gram + penalty * np.eye(len(gram)), gamma))


def default_kernel(d: Floats, kernel_width: float) -> Floats:
    """The kernel of lime, exp(-d² / (2 width²))."""
    return np.exp(-(d**2) / (2 * kernel_width**2))


def report(fit: LocalFit, right: float) -> None:
    """Print what lime prints of a surrogate; ``right`` is the model's own answer."""
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
        equations = _Sample(data, weights).equations(np.asarray(labels, dtype=np.float64))
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
        answers = np.asarray(neighborhood_labels[:, label], dtype=np.float64)[:, None]
        options = (num_features, feature_selection, model_regressor)
        fit = self.fits(neighborhood_data, answers, distances, [0], *options)[0]
        return fit.intercept, fit.pairs, fit.score, np.array([fit.local_pred])

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
        if type(self).feature_selection is LimeBase.feature_selection:
            check_choice("feature_selection", selection, tuple(SELECTIONS))
        sample = _Sample(data, _check_weights(self.kernel_fn(distances), len(answers)))
        fits = {}
        for label in labels:
            y = answers[:, label]
            equations = sample.equations(y)
            used = self._used(sample, equations, y, num_features, selection)
            fits[label] = sample.fit(y, equations.gamma, used, regressor)
            if self.verbose:
                report(fits[label], float(y[0]))
        return fits

    def _used(
        self, sample: _Sample, equations: CentredEquations, y: Floats, count: int, selection: str
    ) -> Ints:
        # by a subclass's own selection, where it has one
        kind, arguments = type(self), (sample.x, y, sample.weights, count)
        if kind.feature_selection is not LimeBase.feature_selection:
            return np.asarray(self.feature_selection(*arguments, selection), dtype=np.int64)
        forward = selection == "forward_selection" or (selection == "auto" and count <= _FORWARD_UP_TO)
        if forward and kind.forward_selection is not LimeBase.forward_selection:
            return np.asarray(self.forward_selection(*arguments), dtype=np.int64)
        return selected(equations, count, selection)


def _check_weights(values: Any, rows: int) -> Floats:
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
        raise InputError(
            f"the kernel returned weights of shape {weights.shape} for {rows} distances: it must return a "
            "finite number >= 0 for each, and not 0 for all"
        )
    return weights
