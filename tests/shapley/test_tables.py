"""Contributions of columns: against the Shapley values of all coalitions, on the values of the law."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor

import limes
from coalitions import answers, game, shapley
from computed_once import ComputedOnce
from effort import crossed
from internals import contributions
from limes.exceptions import ModelError
from oracle import EXACT

X, Y = load_diabetes(return_X_y=True)
X = X[:, [2, 8, 3, 6]] / X[:, [2, 8, 3, 6]].std(axis=0)
BACKGROUND = X[:12]
MODELS = ComputedOnce(
    {
        "ridge": lambda: Ridge().fit(X, Y),
        "forest": lambda: RandomForestRegressor(8, max_depth=5, random_state=0).fit(X, Y),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(
            X, Y > 140
        ),
        "logistic": lambda: LogisticRegression(C=10.0).fit(X, Y > 140),
        "three classes": lambda: LogisticRegression().fit(X, np.digitize(Y, [100, 180])),
        "kernel": lambda: KernelRidge(kernel="rbf", gamma=0.2).fit(X, Y),
        "network": lambda: MLPRegressor(
            hidden_layer_sizes=(6,),
            activation="tanh",
            solver="lbfgs",
            alpha=1.0,
            max_iter=5000,
            random_state=0,
        ).fit(X, Y / 100),
    }
)


@pytest.mark.parametrize(
    ("name", "options"),
    crossed(
        MODELS,
        [
            {},
            {"bandwidth": 0.3},
            {"bandwidth": np.inf},
            {"weights": "euclidean"},
            {"bins": None},
            {"hold": [1]},
        ],
    ),
    ids=str,
)
def test_contributions_are_shapley_values_of_all_coalitions(name, options):
    model = MODELS[name]
    explainer = limes.TabularExplainer(model, BACKGROUND, law="empirical", method="exact", **options)
    explanation = explainer(X[[3, 40]], progress=False)
    account = explanation.contributions
    size = np.abs(answers(model, X)).max()
    for i, row in enumerate(X[[3, 40]]):
        v = game(model, explainer, row)
        expected = (*shapley(v), v[(0,) * row.size])
        actual = account.values[i], account.alone[i], account.last[i], account.base_values[i]
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one.reshape(other.shape), other, atol=EXACT * size, rtol=0)
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=EXACT * size, rtol=0)
    assert (account.standard_errors == 0).all()


@pytest.mark.parametrize("name", ["logistic", "three classes", "network", "kernel", "boosting"])
def test_contributions_have_the_same_bits_in_every_batch(name):
    explainer = limes.TabularExplainer(MODELS[name], X, method="exact")
    rows = X[:9].copy()
    # beyond all that the law of the columns holds
    rows[4] += [3.0, 0.0, -5.0, 0.0]
    together = explainer(rows, progress=False).contributions
    for i in range(len(rows)):
        alone = explainer(rows[[i]], progress=False).contributions
        for field in ("values", "alone", "last", "base_values"):
            np.testing.assert_array_equal(getattr(alone, field)[0], getattr(together, field)[i])
    total = together.base_values + together.values.sum(axis=1)
    predictions = answers(MODELS[name], rows).reshape(total.shape)
    np.testing.assert_allclose(total, predictions, atol=EXACT * np.abs(predictions).max(), rtol=0)


def test_three_constant_classes_have_contributions_0():
    model = LogisticRegression().fit(X, np.arange(len(X)) % 3)
    model.coef_[:] = 0.0
    account = limes.TabularExplainer(model, X, method="exact")(X[:2], progress=False).contributions
    assert not account.values.any()
    np.testing.assert_allclose(account.base_values, model.predict_proba(X[:2]), rtol=EXACT)


def test_small_probabilities_keep_their_digits():
    model = LogisticRegression(C=10.0).fit(X, Y > 140)
    model.intercept_ -= 40.0
    explainer = limes.TabularExplainer(model, BACKGROUND, law="empirical", method="exact")
    account = explainer(X[[3]], progress=False).contributions
    v = game(model, explainer, X[3])
    phi, alone, last = shapley(v)
    for actual, expected in ((account.values, phi), (account.alone, alone), (account.last, last)):
        expected = expected[..., -1].reshape(-1)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual.reshape(4, -1)[:, -1], expected, atol=EXACT * scale, rtol=0)


def test_a_selection_has_its_contributions():
    explanation = limes.TabularExplainer(MODELS["three classes"], BACKGROUND)(X[:3], progress=False)
    account, part = explanation.contributions, explanation[1:, ["x2", "x0"], 2]
    np.testing.assert_array_equal(part.contributions.values, account.values[1:, [2, 0], 2])
    np.testing.assert_array_equal(part.contributions.base_values, account.base_values[1:, 2])


def test_columns_that_the_model_ignores_have_none_and_equal_ones_equal_shares():
    same = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])
    values = limes.TabularExplainer(Ridge().fit(same, Y), same)(same[:4], progress=False).contributions.values
    np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=1e-9)
    model = LogisticRegression().fit(X, Y > 140)
    model.coef_[0, 2] = 0.0
    values = limes.TabularExplainer(model, X)(X[:4], progress=False).contributions.values
    assert (values[:, 2] == 0).all()


def test_no_rows_have_no_contributions():
    explanation = limes.TabularExplainer(MODELS["three classes"], BACKGROUND)(X[:1], progress=False)
    account = explanation[:0].contributions
    assert account.values.shape == account.last.shape == (0, 4, 3)
    assert account.base_values.shape == (0, 3)
    assert explanation[:0, :, 1].contributions.values.shape == (0, 4)


def test_nodes_that_are_too_few_are_refused(monkeypatch):
    """A logistic model of steep columns, with one node where four columns need two."""
    monkeypatch.setattr(contributions, "_MOST_NODES", 1)
    rule = contributions._Rule(*contributions.quadrature(4), np.zeros((2, 0)))
    monkeypatch.setattr(contributions, "_rules", lambda columns: (rule,))
    model = LogisticRegression(C=1e4).fit(X, Y > 140)
    explanation = limes.TabularExplainer(model, BACKGROUND, method="exact")(X[[3]], progress=False)
    with pytest.raises(ModelError, match=r"contributions miss the prediction by .* than 1 nodes"):
        explanation.contributions  # noqa: B018 - computed when read
    assert "average around the row" not in str(explanation)


def test_contributions_are_printed_first_however_long_they_take():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 40))
    for classes in (2, 3):
        model = LogisticRegression(C=0.1).fit(wide, np.arange(60) % classes)
        explanation = limes.TabularExplainer(model, wide, method="exact")(wide[:1], progress=False)
        first, *_ = str(explanation).splitlines()
        assert "chance of target = " in first
        assert first.endswith("is usual")
        assert "contribution" in str(explanation)
