r"""lime's surrogate: a weighted ridge regression on some of the features.

With x̃, ỹ centred by their weighted means, G = Σ π x̃x̃ᵀ and c = Σ π x̃ỹ, all is read off G and c:

    coefficients (G + αI)⁻¹c,     forward selection: pivoted elimination of G by the largest c_j² / G_jj.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.explainers.options import check_choice

# lime's penalties: of the surrogate, and of the fit that ranks features
_PENALTY, _RANKING_PENALTY = 1.0, 0.01
# lime selects forward up to so many features, and ranks above
_FORWARD_UP_TO = 6
# share of a column's own variance, below which the columns before it explain it
_COLLINEAR = 1e-12

__all__ = ["SELECTIONS", "LimeBase", "LocalFit"]


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
    """Weighted rows x (n, d), answers y (n,) and weights (n,); the first row is the instance."""

    x: Floats
    y: Floats
    weights: Floats

    def centred(self) -> tuple[Floats, Floats, Floats, float]:
        """x̃, ỹ and the means that were taken away."""
        mean, level = (
            np.average(self.x, axis=0, weights=self.weights),
            np.average(self.y, weights=self.weights),
        )
        return self.x - mean, self.y - level, mean, float(level)

    def gram(self) -> tuple[Floats, Floats]:
        """G and c."""
        x, y, _, _ = self.centred()
        weighted = x * self.weights[:, None]
        return weighted.T @ x, weighted.T @ y


def _ridge(gram: Floats, gamma: Floats, penalty: float) -> Floats:
    return np.asarray(np.linalg.solve(gram + penalty * np.eye(len(gram)), gamma))


def _forward(sample: _Sample, count: int) -> Ints:
    """Add the feature that raises R² most, again and again."""
    gram, gamma = sample.gram()
    left, own = np.ones(len(gamma), dtype=bool), np.diag(gram).copy()
    chosen: list[int] = []
    for _ in range(count):
        pivots = np.diag(gram)
        able = left & (pivots > _COLLINEAR * own)
        gain = np.where(able, gamma**2 / np.where(able, pivots, 1.0), np.where(left, 0.0, -1.0))
        best = int(np.argmax(gain))
        chosen.append(best)
        left[best] = False
        if able[best]:
            column = gram[:, best] / pivots[best]
            gamma, gram = gamma - column * gamma[best], gram - np.outer(column, gram[best])
    return np.array(chosen, dtype=int)


def _highest(sample: _Sample, count: int) -> Ints:
    """Features whose coefficient times the instance's value is largest."""
    size = np.abs(_ridge(*sample.gram(), _RANKING_PENALTY) * sample.x[0])
    return np.argsort(-size, kind="stable")[:count]


def _lasso(sample: _Sample, count: int) -> Ints:
    """The last features of the lasso's path that are not too many."""
    from sklearn.linear_model import lars_path

    x, y, _, _ = sample.centred()
    root = np.sqrt(sample.weights)
    _, _, coefs = lars_path(x * root[:, None], y * root, method="lasso")
    few = [np.flatnonzero(c) for c in coefs.T if np.count_nonzero(c) <= count]
    return np.asarray(few[-1], dtype=int)


def _all(sample: _Sample, count: int) -> Ints:  # noqa: ARG001 - all of them
    return np.arange(sample.x.shape[1])


def _auto(sample: _Sample, count: int) -> Ints:
    return (_forward if count <= _FORWARD_UP_TO else _highest)(sample, count)


SELECTIONS: dict[str, Callable[[_Sample, int], Ints]] = {
    "auto": _auto,
    "forward_selection": _forward,
    "highest_weights": _highest,
    "lasso_path": _lasso,
    "none": _all,
}


def _errors(x: Floats, weights: Floats, residual: Floats, penalty: float) -> Floats:
    """Standard errors (m,) of coefficients, rows being a sample: Huber's sandwich."""
    weighted = x * weights[:, None]
    bread = np.linalg.inv(weighted.T @ x + penalty * np.eye(x.shape[1]))
    scores = weighted * residual[:, None]
    return np.asarray(np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread)))


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

    def feature_selection(self, data: Any, labels: Any, weights: Any, num_features: int, method: str) -> Ints:
        """Positions of the features that ``method`` (see :data:`SELECTIONS`) selects.

        Raises
        ------
        InputError
            An unknown method.
        """
        check_choice("feature_selection", method, tuple(SELECTIONS))
        x = np.asarray(data, dtype=np.float64)
        sample = _Sample(x, np.asarray(labels, dtype=np.float64), np.asarray(weights, dtype=np.float64))
        return SELECTIONS[method](sample, min(num_features, x.shape[1]))

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
        weights = np.asarray(self.kernel_fn(distances), dtype=np.float64)
        used = self.feature_selection(data, y, weights, num_features, selection)
        sample = _Sample(
            np.asarray(data, dtype=np.float64)[:, used], np.asarray(y, dtype=np.float64), weights
        )
        x, answers, mean, level = sample.centred()
        if regressor is None:
            penalty, coef = _PENALTY, _ridge(*sample.gram(), _PENALTY)
            intercept = level - float(mean @ coef)
        else:
            regressor.fit(sample.x, sample.y, sample_weight=weights)
            penalty, coef, intercept = 0.0, np.ravel(regressor.coef_), float(regressor.intercept_)
        residual = sample.y - intercept - sample.x @ coef
        spread = float(weights @ answers**2)
        order = np.argsort(-np.abs(coef), kind="stable")
        found = LocalFit(
            intercept=intercept,
            features=used[order],
            coef=coef[order],
            errors=_errors(x, weights, residual, penalty or _COLLINEAR)[order],
            score=1.0 - float(weights @ residual**2) / spread if spread > 0 else 1.0,
            local_pred=float(intercept + sample.x[0] @ coef),
        )
        if self.verbose:
            print(f"Intercept {found.intercept}\nPrediction_local {found.local_pred}\nRight: {sample.y[0]}")  # noqa: T201
        return found
