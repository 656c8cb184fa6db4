"""MAPLE: weights by definition, prefixes against refitting, the whole against its authors' algorithm."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.svm import SVR

import limes
import oracle
from internals import WeightedMoments
from limes.exceptions import InputError, UnknownOptionError


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(240, 4))


def curved(x):
    return np.sin(x[:, 1]) + 0.3 * x[:, 3] ** 2


@pytest.fixture(scope="module")
def explainer(rows):
    return limes.MapleExplainer(curved, rows, trees=30, rng=1)


@pytest.mark.parametrize("seed", range(5))
def test_every_prefix_is_the_ridge_fit_of_its_features(seed):
    rng = np.random.default_rng(seed)
    x, y, at = rng.normal(size=(60, 5)), rng.normal(size=60), rng.normal(size=5)
    weights = np.where(rng.random(60) < 0.3, 0.0, rng.random(60))
    moments = WeightedMoments.from_rows(x, y, weights, 0.01)
    result = moments.prefix_predictions(at)
    assert result[0] == pytest.approx(np.average(y, weights=weights))
    for kept in range(1, 6):
        fit = Ridge(alpha=0.01).fit(x[:, :kept], y, sample_weight=weights)
        assert result[kept] == pytest.approx(fit.predict(at[None, :kept])[0], rel=oracle.EXACT)
        coef, intercept = moments.coefficients(kept)
        assert coef[:kept] == pytest.approx(fit.coef_, rel=oracle.EXACT)
        assert intercept == pytest.approx(fit.intercept_, rel=oracle.EXACT)


def test_weights_are_shares_of_common_leaves(explainer, rows):
    weights = explainer.example_weights(rows[:3])
    assert weights.shape == (3, len(rows))
    assert weights.sum(axis=1) == pytest.approx(np.full(3, 30.0))
    training = np.flatnonzero((rows[:, None, :] == explainer._rows).all(axis=2).any(axis=1))
    assert training.size == 180
    expected = np.zeros_like(weights)
    for tree in explainer._forest.estimators_:
        leaves = tree.apply(rows.astype(np.float32))
        for i, leaf in enumerate(leaves[:3]):
            same = training[leaves[training] == leaf]
            expected[i, same] += 1 / same.size
    assert weights == pytest.approx(expected, rel=oracle.ROUNDING)


def test_the_weights_make_the_explanation(explainer, rows):
    """A ridge fit with these weights, of the features that it keeps, has its coefficients."""
    explanation, weights = explainer(rows[:3]), explainer.example_weights(rows[:3])
    for i in range(3):
        kept = np.flatnonzero(explanation.coefficients.values[i])
        fit = Ridge(alpha=0.001).fit(rows[:, kept], curved(rows), sample_weight=weights[i])
        assert explanation.coefficients.values[i, kept] == pytest.approx(fit.coef_, rel=oracle.EXACT)
        assert explanation.coefficients.intercepts[i] == pytest.approx(fit.intercept_, rel=oracle.EXACT)


def as_published(forest, train, answers, held_out, at, penalty=0.001):
    """Plumb et al. 2018, Algorithm 1, line by line; penalty and weights as in the authors' code.

    Returns coefficients and intercept at a row, for a forest that was fitted to the training rows.
    """

    leaves = forest.apply(train)

    def neighbours(x):
        weights = np.zeros(len(train))
        for leaf, others in zip(forest.apply(x[None])[0], leaves.T, strict=True):
            weights[others == leaf] += 1.0 / np.count_nonzero(others == leaf)
        return weights

    def local(weights, columns):
        return Ridge(alpha=penalty).fit(train[:, columns], answers, weights)

    scores = dict.fromkeys(range(train.shape[1]), 0.0)
    for tree in (member.tree_ for member in forest.estimators_):
        if tree.children_left[0] != tree.children_right[0]:
            scores[tree.feature[0]] += tree.impurity[0]
    ranked = sorted(scores, key=scores.get, reverse=True)
    errors = np.zeros(len(ranked))
    for x, y in zip(*held_out, strict=True):
        weights = neighbours(x)
        for kept in range(1, len(ranked) + 1):
            columns = ranked[:kept]
            errors[kept - 1] += (local(weights, columns).predict(x[None, columns])[0] - y) ** 2
    columns = ranked[: 1 + int(np.argmin(errors))]
    fit, coef = local(neighbours(at), columns), np.zeros(train.shape[1])
    coef[columns] = fit.coef_
    return coef, fit.intercept_


def _answered(name):
    """A table and a model's answers; diabetes has columns so small that the penalty halves its slopes."""
    if name == "diabetes":
        x, y = load_diabetes(return_X_y=True)
        return x, SVR(C=100.0).fit(x, y)
    if name == "wine":
        x, y = load_wine(return_X_y=True)
        return x, SVR(C=10.0, gamma=1e-3).fit(x, y)
    x, y = make_friedman1(300, random_state=0)
    return x, KernelRidge(kernel="rbf", gamma=0.3, alpha=0.1).fit(x, y)


@pytest.mark.parametrize("name", ["diabetes", "wine", "friedman"])
@pytest.mark.parametrize("code", ["paper", "authors"])
def test_it_is_the_authors_algorithm(name, code, monkeypatch):
    """Equal to 1e-6 to the published algorithm, and to the authors' own code as shap ships it."""
    x, model = _answered(name)
    trees, rows = 20, x[:3]
    explainer = limes.MapleExplainer(model, x, trees=trees, rng=5)
    explanation = explainer(rows)
    training = np.flatnonzero((explainer.example_weights(x) > 0).any(axis=0))
    held_out = np.setdiff1d(np.arange(len(x)), training)
    answers = model.predict(x)
    forest = RandomForestRegressor(
        trees, max_features=0.5, min_samples_leaf=10, random_state=np.random.RandomState(5)
    ).fit(x[training], answers[training])
    if code == "authors":
        module = pytest.importorskip("shap.explainers.other._maple")
        # columns that no root splits are tied, and numpy's default sort orders ties as the processor likes
        stable = {**vars(np), "argsort": partial(np.argsort, kind="stable")}
        monkeypatch.setattr(module, "np", SimpleNamespace(**stable))
        maple = module.MAPLE(x[training], answers[training], x[held_out], answers[held_out], fe=forest)
    for i, row in enumerate(rows):
        if code == "authors":
            intercept, *coef = maple.explain(row)["coefs"]
        else:
            coef, intercept = as_published(
                forest, x[training], answers[training], (x[held_out], answers[held_out]), row
            )
        size = np.abs(coef).max()
        assert size > 0
        assert explanation.coefficients.values[i] == pytest.approx(np.array(coef), rel=1e-6, abs=1e-6 * size)
        assert explanation.coefficients.intercepts[i] == pytest.approx(intercept, rel=1e-6)


def test_a_linear_model_explains_itself(rows):
    model = lambda x: 2.0 * x[:, 0] - x[:, 2] + 0.5  # noqa: E731
    explanation = limes.MapleExplainer(model, rows, trees=20, ridge=0.0)(rows[:2])
    assert explanation.coefficients.values == pytest.approx(np.tile([2.0, 0.0, -1.0, 0.0], (2, 1)), abs=1e-6)
    assert explanation.coefficients.surrogate_predictions == pytest.approx(explanation.predictions)
    assert explanation.fidelity == pytest.approx([1.0, 1.0])


def test_it_follows_the_curve(explainer, rows):
    explanation = explainer(rows[:40])
    error = np.abs(explanation.coefficients.local_errors)
    assert np.median(error) < 0.15
    assert explainer.kept >= 2
    assert explanation.coefficients.values[:, 1] @ np.cos(rows[:40, 1]) > 0
    assert "ridge" in str(explanation)


def test_it_is_deterministic_and_takes_tables(rows):
    frame = pd.DataFrame(rows, columns=list("abcd"))
    model = lambda t: curved(t.to_numpy())  # noqa: E731
    one, two = (limes.MapleExplainer(model, frame, trees=10, rng=3)(frame.iloc[:2]) for _ in range(2))
    assert np.array_equal(one.coefficients.values, two.coefficients.values)
    assert one.feature_names == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("background", "message"),
    [
        (pd.DataFrame({"a": ["u", "v"] * 10}), "'a' is not numeric"),
        (np.array([[1.0], [np.nan]] * 10), "missing values"),
        (np.ones((3, 2)), "8 background rows"),
    ],
)
def test_bad_backgrounds_are_refused(background, message):
    with pytest.raises(InputError, match=message):
        limes.MapleExplainer(lambda x: x[:, 0], background)


def test_unknown_options_are_refused(rows):
    with pytest.raises(UnknownOptionError, match="trees"):
        limes.MapleExplainer(curved, rows, tree=3)


def test_fidelity_is_the_weighted_r_squared_on_training_rows(explainer, rows):
    explanation = explainer(rows[:3])
    weights = explainer.example_weights(rows[:3])
    for i in range(3):
        fitted = rows @ explanation.coefficients.values[i] + explanation.coefficients.intercepts[i]
        expected = r2_score(curved(rows), fitted, sample_weight=weights[i])
        assert expected < 0.99
        assert explanation.fidelity[i] == pytest.approx(expected, rel=oracle.EXACT)


def test_a_constant_model_has_coefficients_0(rows):
    explainer = limes.MapleExplainer(lambda X: np.full(len(X), 0.1), rows, trees=5)
    assert explainer(rows[:2]).fidelity == pytest.approx(1.0)


def test_numbers_beyond_float32_are_refused(explainer, rows):
    with pytest.raises(InputError, match=r"up to 3\.4e38"):
        explainer(rows[:1] * 1e39)
    with pytest.raises(InputError, match=r"up to 3\.4e38"):
        limes.MapleExplainer(curved, rows * 1e39)


def test_text_and_page_show_no_errors_which_maple_does_not_have(explainer, rows, tmp_path):
    explanation = explainer(rows[:1])
    explanation.to_html(tmp_path / "page.html")
    for shown in (str(explanation), (tmp_path / "page.html").read_text("utf-8")):
        assert "has no standard errors" in " ".join(shown.split())
        assert "±" not in shown
        assert "error bars" not in shown
