"""Public scripts run on shap and on ``limes.compat.shap``: every number agrees, or is the definition's."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import combinations
from math import comb

import catboost
import lightgbm
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn
import xgboost
from sklearn import datasets

import limes.compat.shap
from compat.shap_scripts import SCRIPTS

mpl.use("agg")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # shap's own imports warn
    shap = pytest.importorskip("shap")

# Names of scikit-learn that scripts import
_IMPORTS = {
    "compose": "ColumnTransformer",
    "decomposition": "PCA",
    "ensemble": (
        "ExtraTreesClassifier ExtraTreesRegressor GradientBoostingClassifier GradientBoostingRegressor "
        "HistGradientBoostingClassifier IsolationForest RandomForestClassifier RandomForestRegressor"
    ),
    "feature_extraction.text": "TfidfVectorizer",
    "linear_model": "LinearRegression LogisticRegression Ridge",
    "model_selection": "KFold train_test_split",
    "neighbors": "KNeighborsClassifier KNeighborsRegressor",
    "neural_network": "MLPClassifier",
    "pipeline": "Pipeline",
    "preprocessing": "OneHotEncoder StandardScaler",
    "svm": "SVC",
    "tree": "DecisionTreeClassifier",
}
# Largest difference of two answers, as a share of the largest: libraries of boosted trees add in float32
_ROUNDING = 1e-6


def names_of_scikit_learn():
    return {
        name: getattr(__import__(f"sklearn.{module}", fromlist=[name]), name)
        for module, names in _IMPORTS.items()
        for name in names.split()
    }


def run(code, module):
    """Return what a script puts into ``out``, and its ``truth``."""
    tables = {
        name: lambda load=load: load(return_X_y=True, as_frame=True)
        for name, load in {
            "breast": datasets.load_breast_cancer,
            "diabetes": datasets.load_diabetes,
            "iris": datasets.load_iris,
            "wine": datasets.load_wine,
        }.items()
    }
    libraries = {"catboost": catboost, "lightgbm": lightgbm, "np": np, "pd": pd, "xgboost": xgboost}
    scope = {"shap": module, "out": {}, "sklearn": sklearn, "truth": None}
    scope |= names_of_scikit_learn() | tables | libraries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.random.seed(0)  # noqa: NPY002 - shap's own draws
        exec(code, scope)  # noqa: S102 - of the repository
    plt.close("all")
    return scope["out"], scope["truth"]


def enumerated(f, background, row):
    """Shapley values of v(S) = mean over the background of f with the row's values in S."""
    cells, d = np.asarray(background, dtype=float), len(row)
    columns = getattr(background, "columns", None)

    @cache
    def game(kept):
        mixed = np.where(np.isin(np.arange(d), [*kept]), np.asarray(row, dtype=float), cells)
        return f(mixed if columns is None else pd.DataFrame(mixed, columns=columns)).mean(dtype=np.float64)

    values = np.zeros(d)
    for j in range(d):
        others = [i for i in range(d) if i != j]
        for size in range(d):
            for chosen in map(frozenset, combinations(others, size)):
                values[j] += (game(chosen | {j}) - game(chosen)) / (d * comb(d - 1, size))
    return values


def test_there_are_forty_scripts():
    assert len(SCRIPTS) >= 40


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_and_its_numbers_agree(name):
    theirs, _ = run(SCRIPTS[name], shap)
    ours, truth = run(SCRIPTS[name], limes.compat.shap)
    assert ours.keys() == theirs.keys()
    assert ours or truth
    for key, numbers in ours.items():
        expected = np.asarray(theirs[key], dtype=float)
        if key == "base":  # shap's has another number of axes before and after rows were explained
            numbers, expected = np.ravel(numbers), np.ravel(expected)
        assert np.shape(numbers) == expected.shape, key
        allowed = _ROUNDING * np.abs(expected).max()
        np.testing.assert_allclose(numbers, expected, rtol=0, atol=allowed, err_msg=key)
    if truth is not None:
        f, background, rows, values = truth
        rows = rows.to_numpy() if hasattr(rows, "to_numpy") else rows
        expected = np.array([enumerated(f, background, row) for row in rows])
        np.testing.assert_allclose(values, expected, rtol=0, atol=_ROUNDING * np.abs(expected).max())
