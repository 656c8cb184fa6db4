"""Surrogates of some of the features: against least squares on the law's own moments."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

from internals import Limit
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.designs import ExchangeableDesign
from oracle import EXACT

DESIGNS = pytest.mark.parametrize(
    "make", [ExchangeableDesign.word_deletions, ExchangeableDesign.superpixel_switches]
)
SHARES = pytest.mark.parametrize("bandwidth", [0.1, 0.25, np.inf])


def limit_of(make, bandwidth, d=7):
    """A function's surrogate by enumeration, and the function at every z with its probability."""
    design = make(d, bandwidth)
    z, log_weight = design.enumerate()
    weight = np.exp(log_weight)
    f = z[:, 0] * z[:, 1] * 2 + np.sin(3 * z @ np.linspace(-1, 1, d)) - 0.4 * z[:, 5]
    coef, intercept = fitted(z, f, weight, range(d))
    mean = weight @ f
    residual = f - intercept - z @ coef
    fidelity = 1 - weight @ residual**2 / (weight @ (f - mean) ** 2)
    return Limit(coef, np.zeros(d), intercept, fidelity, design), z, f, weight


def fitted(z, f, weight, kept):
    x = np.column_stack([np.ones(len(z)), z[:, list(kept)]])
    root = np.sqrt(weight)[:, None]
    coef = np.linalg.lstsq(x * root, f * root[:, 0], rcond=None)[0]
    return coef[1:], coef[0]


@DESIGNS
@SHARES
@pytest.mark.parametrize("count", [1, 3, 6, 7])
def test_features_left_out_leave_least_squares_of_the_others(make, bandwidth, count):
    limit, z, f, weight = limit_of(make, bandwidth)
    fit = limit.fit(count, "highest_weights")
    coef, intercept = fitted(z, f, weight, fit.features)
    np.testing.assert_allclose(fit.coef, coef, rtol=EXACT, atol=EXACT * np.abs(coef).max())
    assert fit.intercept == pytest.approx(intercept, rel=EXACT)
    residual = f - intercept - z[:, fit.features] @ coef
    score = 1 - weight @ residual**2 / (weight @ (f - weight @ f) ** 2)
    assert fit.score == pytest.approx(score, rel=EXACT)
    assert fit.local_pred == pytest.approx(intercept + coef.sum(), rel=EXACT)


@DESIGNS
@SHARES
@pytest.mark.parametrize("count", [1, 2, 3])
def test_forward_selection_adds_what_raises_r2_most(make, bandwidth, count):
    limit, z, f, weight = limit_of(make, bandwidth)
    chosen = []
    for _ in range(count):
        candidates = [j for j in range(7) if j not in chosen]
        loss = [weight @ (f - limit_at(z, f, weight, [*chosen, j])) ** 2 for j in candidates]
        chosen.append(candidates[int(np.argmin(loss))])
    assert set(limit.fit(count, "forward_selection").features) == set(chosen)


def limit_at(z, f, weight, kept):
    coef, intercept = fitted(z, f, weight, kept)
    return intercept + z[:, kept] @ coef


def test_standard_errors_are_hardly_more_than_the_spread_of_refits():
    rng = np.random.default_rng(0)
    design = ExchangeableDesign.word_deletions(9)
    root = np.linalg.inv(np.linalg.cholesky(design.gamma(np.eye(9)))).T
    # least squares with residuals that are alike everywhere: Cov β = Σ⁻¹
    fits = []
    for noise in rng.standard_normal((4000, 9)):
        coef = np.linspace(5, 1, 9) * 1e3 + root @ noise
        errors = np.sqrt(np.diag(root @ root.T))
        fits.append(Limit(coef, errors, 0.0, 1.0, design).fit(4, "highest_weights"))
    spread = np.std([fit.coef for fit in fits], axis=0)
    # 4000 runs know a spread to 1.2 %
    assert (fits[0].errors > 0.95 * spread).all()
    assert (fits[0].errors < 1.2 * spread).all()


def test_auto_and_lasso():
    limit, *_ = limit_of(ExchangeableDesign.superpixel_switches, 0.25)
    for count, rule in ((6, "forward_selection"), (7, "highest_weights")):
        np.testing.assert_array_equal(limit.fit(count, "auto").features, limit.fit(count, rule).features)
    assert len(limit.fit(3, "lasso_path").features) == 3


@pytest.mark.parametrize("make", [ExchangeableDesign.word_deletions, ExchangeableDesign.superpixel_switches])
def test_one_feature(make):
    design = make(1)
    fit = Limit(np.array([0.5]), np.array([0.0]), 0.1, 1.0, design).fit(10, "auto")
    assert fit.pairs == [(0, 0.5)]
    assert fit.local_pred == pytest.approx(0.6)


@pytest.mark.parametrize("rare", [3, 50])
def test_scores_of_read_models_are_exact(rare):
    """The score is R² of the kept features: of a tree on a rare column, by enumeration of its two cells."""
    X = np.c_[(np.arange(5000) % (5000 // rare) == 0).astype(float), np.random.RandomState(0).randn(5000, 2)]
    tree = DecisionTreeRegressor(max_leaf_nodes=2).fit(X, X[:, 0])
    explainer = LimeTabularExplainer(X, mode="regression", categorical_features=[0], random_state=0)
    explanation = explainer.explain_instance(X[0], tree.predict)
    assert float(explanation.score) == pytest.approx(1.0, rel=1e-9)
    assert float(explainer.explain_instance(X[0], tree.predict, num_features=1).score) == pytest.approx(1.0)


def test_scores_are_the_explanations_fidelity_where_all_features_are_kept():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    explanation = LimeTabularExplainer(X).explain_instance(X[60], forest.predict_proba, labels=(0, 2))
    assert [explanation.score[0], explanation.score[2]] == pytest.approx(
        explanation.limes.fidelity[0].tolist()
    )
