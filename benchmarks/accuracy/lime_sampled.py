"""lime.LimeTabularExplainer with all features, else as it comes; and least squares of the same samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from lime.lime_tabular import LimeTabularExplainer
from sklearn.linear_model import LinearRegression, Ridge

from benchmarks.accuracy.cases import Case
from benchmarks.accuracy.sample import Sample, outside

NAME = "lime"


class Codes:
    """``lime`` wants texts as numbers: their places among the levels of their column."""

    def __init__(self, X: pd.DataFrame) -> None:
        self._like = X
        self.levels = {
            j: np.unique(X[name].to_numpy(str))
            for j, name in enumerate(X)
            if not pd.api.types.is_numeric_dtype(X[name])
        }

    def encode(self, X: pd.DataFrame) -> np.ndarray:
        """(n, d)."""
        whole = [
            np.searchsorted(self.levels[j], X[name].to_numpy(str)) if j in self.levels else X[name].to_numpy()
            for j, name in enumerate(X)
        ]
        return np.stack(whole, axis=1).astype(float)

    def decode(self, codes: np.ndarray) -> pd.DataFrame:
        """A table as the model knows it."""
        return pd.DataFrame(
            {
                name: self.levels[j][codes[:, j].astype(int)].astype(object)
                if j in self.levels
                else codes[:, j]
                for j, name in enumerate(self._like)
            }
        )


class _Both(Ridge):
    """``lime``'s own ridge regression; beside it least squares of the same samples."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray) -> _Both:
        self.plain_ = LinearRegression().fit(X, y, sample_weight).coef_
        return super().fit(X, y, sample_weight)


def prepare(case: Case, bandwidth: float) -> Callable[[int, int], tuple[Sample, Sample]]:
    """Give two samples: ``lime``'s coefficients, and those without a penalty."""
    codes = Codes(case.table.X)
    background, row = codes.encode(case.table.X), codes.encode(case.row)[0]

    def explain(calls: int, seed: int) -> tuple[Sample, Sample]:
        explainer = _explainer(background, codes, bandwidth, seed)
        both = _Both(alpha=1, fit_intercept=True)

        def run() -> tuple[np.ndarray, str]:
            explanation = explainer.explain_instance(
                row,
                lambda x: case.answer(codes.decode(x)),
                num_features=case.size,
                num_samples=calls,
                model_regressor=both,
            )
            # of regressions, local_exp[0] has the sign turned
            return np.array([value for _, value in sorted(explanation.local_exp[1])]), ""

        sample = outside(case.clock, run)
        return sample, Sample(both.plain_, sample.seconds)

    return explain


def _explainer(background: np.ndarray, codes: Codes, bandwidth: float, seed: int) -> LimeTabularExplainer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return LimeTabularExplainer(
            background,
            mode="regression",
            categorical_features=list(codes.levels),
            kernel_width=bandwidth,
            feature_selection="none",
            random_state=seed,
        )


def misplaced(case: Case) -> list[int]:
    """Columns with a bin without width at a value other than 0, where ``lime`` sends 0 to the model."""
    codes = Codes(case.table.X)
    discretizer = _explainer(codes.encode(case.table.X), codes, 1.0, 0).discretizer
    return [
        j
        for j in discretizer.lambdas
        if any(low == high != 0 for low, high in zip(discretizer.mins[j], discretizer.maxs[j], strict=True))
    ]
