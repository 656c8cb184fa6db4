"""MAPLE: weights by their definition, prefixes against refitting."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

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
    weights /= weights.sum()
    moments = WeightedMoments.from_rows(x, y, weights, 0.01)
    result = moments.prefix_predictions(at)
    assert result[0] == pytest.approx(weights @ y)
    for kept in range(1, 6):
        fit = Ridge(alpha=0.01).fit(x[:, :kept], y, sample_weight=weights)
        assert result[kept] == pytest.approx(fit.predict(at[None, :kept])[0], rel=oracle.EXACT)
        coef, intercept = moments.coefficients(kept)
        assert coef[:kept] == pytest.approx(fit.coef_, rel=oracle.EXACT)
        assert intercept == pytest.approx(fit.intercept_, rel=oracle.EXACT)


def test_weights_are_shares_of_common_leaves(explainer, rows):
    weights = explainer.example_weights(rows[:3])
    assert weights.shape == (3, len(rows))
    assert weights.sum(axis=1) == pytest.approx(np.ones(3))
    training = np.flatnonzero((rows[:, None, :] == explainer._rows).all(axis=2).any(axis=1))
    assert training.size == 180
    expected = np.zeros_like(weights)
    for tree in explainer._forest.estimators_:
        leaves = tree.apply(rows.astype(np.float32))
        for i, leaf in enumerate(leaves[:3]):
            same = training[leaves[training] == leaf]
            expected[i, same] += 1 / same.size / 30
    assert weights == pytest.approx(expected, rel=oracle.ROUNDING)


def test_the_weights_make_the_explanation(explainer, rows):
    """A ridge fit with these weights, of the features that it keeps, has its coefficients."""
    explanation, weights = explainer(rows[:3]), explainer.example_weights(rows[:3])
    for i in range(3):
        kept = np.flatnonzero(explanation.values[i])
        fit = Ridge(alpha=0.001).fit(rows[:, kept], curved(rows), sample_weight=weights[i])
        assert explanation.values[i, kept] == pytest.approx(fit.coef_, rel=oracle.EXACT)
        assert explanation.intercepts[i] == pytest.approx(fit.intercept_, rel=oracle.EXACT)


def test_a_linear_model_explains_itself(rows):
    model = lambda x: 2.0 * x[:, 0] - x[:, 2] + 0.5  # noqa: E731
    explanation = limes.MapleExplainer(model, rows, trees=20, ridge=0.0)(rows[:2])
    assert explanation.values == pytest.approx(np.tile([2.0, 0.0, -1.0, 0.0], (2, 1)), abs=1e-6)
    assert explanation.surrogate_predictions == pytest.approx(explanation.predictions)
    assert explanation.fidelity == pytest.approx([1.0, 1.0])


def test_it_follows_the_curve(explainer, rows):
    explanation = explainer(rows[:40])
    error = np.abs(explanation.local_errors) if hasattr(explanation, "local_errors") else np.abs(
        explanation.predictions - explanation.surrogate_predictions
    )  # fmt: skip
    assert np.median(error) < 0.15
    assert explainer.kept >= 2
    assert explanation.values[:, 1] @ np.cos(rows[:40, 1]) > 0
    assert "ridge" in str(explanation)


def test_it_is_deterministic_and_takes_tables(rows):
    frame = pd.DataFrame(rows, columns=list("abcd"))
    model = lambda t: curved(t.to_numpy())  # noqa: E731
    one, two = (limes.MapleExplainer(model, frame, trees=10, rng=3)(frame.iloc[:2]) for _ in range(2))
    assert np.array_equal(one.values, two.values)
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
        fitted = rows @ explanation.values[i] + explanation.intercepts[i]
        expected = r2_score(curved(rows), fitted, sample_weight=weights[i])
        assert expected < 0.99
        assert explanation.fidelity[i] == pytest.approx(expected, rel=oracle.EXACT)


def test_nothing_of_a_constant_model_is_left_to_explain(rows):
    explainer = limes.MapleExplainer(lambda X: np.full(len(X), 0.1), rows, trees=5)
    assert explainer(rows[:2]).fidelity == pytest.approx(1.0)


def test_numbers_beyond_float32_are_refused(explainer, rows):
    with pytest.raises(InputError, match=r"up to 3\.4e38"):
        explainer(rows[:1] * 1e39)
    with pytest.raises(InputError, match=r"up to 3\.4e38"):
        limes.MapleExplainer(curved, rows * 1e39)
