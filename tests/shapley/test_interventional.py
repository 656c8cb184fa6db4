"""Contributions under the joint law: v(S) = Σ_b w_b f(ξ_S, b_-S) by all coalitions, and shap's values."""

from __future__ import annotations

import json
import warnings
from math import comb

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import limes
from coalitions import shapley
from computed_once import ComputedOnce
from effort import crossed
from internals import against
from limes.models import forms
from oracle import EXACT

X, Y = load_diabetes(return_X_y=True)
X = X[:, [2, 8, 3, 6, 5]] / X[:, [2, 8, 3, 6, 5]].std(axis=0)
# scikit-learn compares in float32: numbers are such, and none is on a threshold, where shap rounds otherwise
X = (X + np.random.default_rng(0).normal(scale=0.01, size=X.shape)).astype(np.float32).astype(float)
BACKGROUND, ROWS = X[:40], X[[3, 100, 250]]


def account_of(model, background=BACKGROUND, rows=ROWS, **options):
    explainer = limes.TabularExplainer(model, background, law="joint", **options)
    return explainer, explainer(rows, progress=False)


def check(explainer, explanation, ask, rows=ROWS, background=BACKGROUND):
    """Compare with all coalitions, by answers (n, k) of the model in float64."""
    account, law = explanation.contributions, explainer._model.law
    assert (account.standard_errors == 0).all()
    assert (account.calls == 0).all()
    size = np.abs(ask(background)).max()
    for i, row in enumerate(rows):
        changed = (law.cells(background) != law.cells(row[None])).sum(axis=1)
        weights = np.exp(-0.5 * (changed - changed.min()) / explainer._model.family.weights.bandwidth**2)
        weights /= weights.sum()
        v = np.empty((2,) * row.size, dtype=object)
        for kept in np.ndindex(*v.shape):
            v[kept] = weights @ ask(np.where(np.array(kept, bool), row, background))
        expected = (*shapley(v), v[(0,) * row.size])
        actual = account.values[i], account.alone[i], account.last[i], account.base_values[i]
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one.reshape(other.shape), other, rtol=0, atol=EXACT * size)


def leaves_of(model):
    """Answers of XGBoost in float64: leaves that it finds, and their values."""
    import xgboost

    booster = model.get_booster()
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]
    values = [np.asarray(tree["split_conditions"], dtype=np.float32).astype(float) for tree in trees]
    start = limes.models.read(model, "margin").intercept

    def ask(x):
        leaves = np.asarray(booster.predict(xgboost.DMatrix(x), pred_leaf=True)).astype(int)
        return start + sum(leaf[at] for leaf, at in zip(values, leaves.T, strict=True)).reshape(-1, 1)

    return ask


def xgb():
    from xgboost import XGBRegressor

    model = XGBRegressor(n_estimators=30, max_depth=4, n_jobs=1).fit(X, Y)
    return model, leaves_of(model)


def lightgbm():
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(n_estimators=30, num_leaves=12, n_jobs=1, verbose=-1).fit(X, Y)
    return model, lambda x: model.predict(x).reshape(len(x), -1)


def catboost():
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(iterations=30, depth=4, verbose=False, thread_count=1, random_seed=0)
    model.fit(X, Y)
    return model, lambda x: model.predict(x).reshape(len(x), -1)


def forest():
    model = RandomForestRegressor(20, max_depth=7, random_state=0).fit(X, Y)
    return model, lambda x: model.predict(x).reshape(len(x), -1)


LIBRARIES = {"sklearn": forest, "xgboost": xgb, "lightgbm": lightgbm, "catboost": catboost}
# shap's shares (x - 1)! y! / (x + y)! are float32; so are XGBoost's answers and starts
AS_CLOSE = {"sklearn": 1e-7, "xgboost": 1e-6, "lightgbm": 1e-7, "catboost": 1e-7}


@pytest.mark.parametrize("bandwidth", [None, np.inf, 0.4])
@pytest.mark.parametrize("library", LIBRARIES)
def test_trees_of_four_libraries_coalition_by_coalition(library, bandwidth):
    model, ask = LIBRARIES[library]()
    check(*account_of(model, bandwidth=bandwidth), ask)


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_weights_they_are_the_interventional_values_of_shap(library):
    shap = pytest.importorskip("shap")
    model, ask = LIBRARIES[library]()
    _, explanation = account_of(model, bandwidth=np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = shap.TreeExplainer(
            model,
            shap.maskers.Independent(BACKGROUND, max_samples=1000),
            feature_perturbation="interventional",
        )
        expected = explainer.shap_values(ROWS, check_additivity=False)
    allowed = AS_CLOSE[library] * np.abs(ask(BACKGROUND)).max()
    account = explanation.contributions
    np.testing.assert_allclose(account.values, expected, rtol=0, atol=allowed)
    # shap leaves out CatBoost's start, which belongs to no column
    base = ask(BACKGROUND).mean() if library == "catboost" else explainer.expected_value
    np.testing.assert_allclose(account.base_values, base, rtol=0, atol=allowed)


READ = ComputedOnce(
    {
        "ridge": lambda: (Ridge().fit(X, Y), lambda m, x: m.predict(x)),
        "votes": lambda: (RandomForestClassifier(8, max_depth=5, random_state=0).fit(X, Y > 140), None),
        "margin": lambda: (GradientBoostingClassifier(n_estimators=9, random_state=0).fit(X, Y > 140), None),
        "logistic": lambda: (LogisticRegression(C=10.0).fit(X, Y > 140), None),
        "three classes": lambda: (LogisticRegression().fit(X, np.digitize(Y, [100, 180])), None),
        "kernel": lambda: (KernelRidge(kernel="rbf", gamma=0.2).fit(X, Y), lambda m, x: m.predict(x)),
        "network": lambda: (
            MLPRegressor(hidden_layer_sizes=(6,), solver="lbfgs", max_iter=5000, random_state=0).fit(
                X, Y / 100
            ),
            lambda m, x: m.predict(x),
        ),
    }
)


@pytest.mark.parametrize(("name", "bandwidth"), crossed(READ, [None, np.inf, 0.3]), ids=str)
def test_other_forms_coalition_by_coalition(name, bandwidth):
    """Kinks too, and probabilities of boosted trees, which have no closed form under independent columns."""
    model, ask = READ[name]
    ask = ask or (lambda m, x: m.predict_proba(x))
    check(*account_of(model, bandwidth=bandwidth), lambda x: ask(model, x).reshape(len(x), -1))


def test_missing_values_and_categories():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 5, 200).astype(float), X[:200, :2]])
    x[rng.random(x.shape) < 0.15] = np.nan
    y = np.nan_to_num(x[:, 1]) * (x[:, 0] == 2) + np.isnan(x[:, 2])
    model = HistGradientBoostingRegressor(max_iter=20, categorical_features=[0], min_samples_leaf=5).fit(x, y)
    rows = np.array([[2.0, np.nan, 0.5], [np.nan, 1.0, np.nan], [4.0, 0.1, -1.0]])
    account = account_of(model, x[:50], rows, bandwidth=0.8, categorical=[0])
    check(*account, lambda x: model.predict(x).reshape(len(x), -1), rows, x[:50])


def test_a_row_has_the_same_bits_alone_and_in_a_batch():
    for name in ("sklearn", "xgboost"):
        model, _ = LIBRARIES[name]()
        for bandwidth in (1.0, np.inf):
            both = account_of(model, bandwidth=bandwidth)[1].contributions
            alone = account_of(model, rows=ROWS[1:2], bandwidth=bandwidth)[1].contributions
            for numbers in ("values", "base_values", "alone", "last"):
                np.testing.assert_array_equal(getattr(both, numbers)[1:2], getattr(alone, numbers))


# Links of sums, and networks, of 14 columns: by all coalitions of three rows, with answers of the form itself
WIDE = np.random.default_rng(3).normal(size=(4, 14))
WIDE[:, 0], WIDE[1, 5] = np.round(WIDE[:, 0]), WIDE[3, 5]
LINKS = ("logistic", "probit", "cloglog", "exp", "tanh", "softplus")


def of_all_coalitions(form, background, row, weights):
    """Contributions (d,) and Shapley interaction indices (d, d) by the definition, from 2^d values."""
    d = row.size
    kept = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(bool)
    value = sum(w * form.predict(np.where(kept, row, b)) for w, b in zip(weights, background, strict=True))
    size, number = kept.sum(axis=1), np.arange(1 << d)
    values, pairs = np.zeros(d), np.zeros((d, d))
    for i in range(d):
        rest = number[~kept[:, i]]
        shares = 1.0 / (d * np.array([comb(d - 1, s) for s in size[rest]]))
        values[i] = shares @ (value[rest | 1 << i] - value[rest])
        for j in range(i):
            both = rest[~kept[rest, j]]
            change = value[both | 1 << i | 1 << j] - value[both | 1 << i] - value[both | 1 << j] + value[both]
            pairs[i, j] = pairs[j, i] = change @ (
                1.0 / ((d - 1) * np.array([comb(d - 2, s) for s in size[both]]))
            )
    return value[0], values, pairs


@pytest.mark.parametrize("link", LINKS)
def test_links_of_many_columns_coalition_by_coalition(link):
    """No coalition is computed: each background row is a law of columns with one value."""
    rng = np.random.default_rng(LINKS.index(link))
    loading = rng.normal(scale=0.4, size=(14, 2) if link in ("tanh", "softplus") else 14)
    form = forms.Linked(forms.Linear(loading, loading[0]), link, loading[1] if loading.ndim > 1 else None)
    weights, background, row = np.array([0.2, 0.5, 0.3]), WIDE[:3], WIDE[3]
    base, values, pairs = of_all_coalitions(form, background, row, weights)
    game = against(form, background)
    for way in (game._single_rows, game._margins):
        actual = way(row[None], weights[None])
        np.testing.assert_allclose(actual.base[0, 0], base, rtol=EXACT)
        np.testing.assert_allclose(actual.values[0, :, 0], values, rtol=0, atol=EXACT * np.abs(values).max())
        of_pairs = way.pairs(row[None], weights[None])[0, :, :, 0]
        np.testing.assert_allclose(of_pairs, pairs, rtol=0, atol=EXACT * np.abs(values).max())


def test_probabilities_of_twenty_columns_are_exact():
    """A logistic pipeline with missing values and categories, of which no sample of coalitions is needed."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 19))).rename(columns=str)
    X.iloc[rng.random(X.shape) < 0.05] = np.nan
    X["city"] = rng.choice(["Bonn", "Kiel", "Ulm"], 60)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder=numbers)
    model = make_pipeline(columns, LogisticRegression()).fit(X, X["3"].fillna(0.0) > 0)
    for bandwidth in (None, np.inf):
        account = account_of(model, X, X.iloc[:3], bandwidth=bandwidth, output=1)[1].contributions
        assert (account.standard_errors == 0).all()
        total = account.base_values + account.values.sum(axis=1)
        np.testing.assert_allclose(total, model.predict_proba(X.iloc[:3])[:, 1], rtol=EXACT)
    # the margin is known: the whole background once, and each row's own value
    usual = model.predict_proba(X)[:, 1].mean()
    np.testing.assert_allclose(account.base_values, usual, rtol=EXACT)


def test_too_many_coalitions_are_sampled_by_walks_and_functions_are_called():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 20))
    model = LogisticRegression().fit(wide, np.digitize(wide[:, 0], [-0.5, 0.5]))
    account = account_of(model, wide, wide[:1])[1].contributions
    assert (account.standard_errors > 0).any()
    assert (account.calls == 0).all()
    contributions = account_of(lambda x: x[:, 0] * x[:, 1], X[:60])[1].contributions
    assert (contributions.calls > 0).all()


def test_a_row_that_differs_where_the_background_does_not_is_walked():
    flat = np.column_stack([X[:60, :2], np.zeros((60, 9))])
    classes = np.digitize(X[:60, 0], np.quantile(X[:60, 0], [0.3, 0.7]))
    model = LogisticRegression().fit(np.random.default_rng(0).normal(size=(60, 11)), classes)
    account = account_of(model, flat, np.concatenate([flat[:1] + 1.0, flat[:1]]))[1].contributions
    assert (account.standard_errors[0] > 0).any()
    assert (account.standard_errors[1] == 0).all()


def test_exact_accounts_are_shown():
    _, explanation = account_of(LIBRARIES["sklearn"]()[0])
    assert "is usual" in str(explanation)
