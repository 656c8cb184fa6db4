"""lime's surrogate against lime's own code on the same rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from lime.lime_base import LimeBase as Original
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from effort import repeats
from limes.compat.lime.lime_base import LimeBase
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import InputError

# two ways to solve the same least squares
SAME = 1e-8


def kernel(d):
    return np.exp(-(d**2) / 8)


def sample(seed, n=200, d=9):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n, d)) < 0.4, 1.0, 0.0) + 0.1 * rng.standard_normal((n, d))
    x[0] = 1.0
    y = x @ np.linspace(-1, 2, d) + x[:, 0] * x[:, 1] + 0.3 * rng.standard_normal(n)
    return x, np.stack([1 - y, y], axis=1), np.linalg.norm(x - x[0], axis=1)


@pytest.mark.parametrize("seed", range(repeats(5, 3)))
@pytest.mark.parametrize("method", ["auto", "forward_selection", "highest_weights", "lasso_path", "none"])
@pytest.mark.parametrize("count", [1, 4, 8])
def test_the_fit_is_lime_s(seed, method, count):
    x, y, distances = sample(seed)
    ours = LimeBase(kernel).explain_instance_with_data(x, y, distances, 1, count, method)
    theirs = Original(kernel).explain_instance_with_data(x, y, distances, 1, count, method)
    assert [j for j, _ in ours[1]] == [j for j, _ in theirs[1]]
    np.testing.assert_allclose([b for _, b in ours[1]], [b for _, b in theirs[1]], rtol=SAME, atol=SAME)
    np.testing.assert_allclose([ours[0], ours[2], *ours[3]], [theirs[0], theirs[2], *theirs[3]], rtol=SAME)


def test_another_regressor():
    x, y, distances = sample(0)
    ours = LimeBase(kernel).explain_instance_with_data(
        x, y, distances, 1, 4, model_regressor=LinearRegression()
    )
    theirs = Original(kernel).explain_instance_with_data(
        x, y, distances, 1, 4, model_regressor=LinearRegression()
    )
    np.testing.assert_allclose([b for _, b in ours[1]], [b for _, b in theirs[1]], rtol=SAME)


def test_collinear_and_constant_columns_are_chosen_last():
    x, y, distances = sample(0)
    x = np.column_stack([x, x[:, 0], np.ones(len(x))])
    chosen = LimeBase(kernel).forward_selection(x, y[:, 1], kernel(distances), 11)
    assert sorted(chosen) == list(range(11))
    assert 10 in chosen[-2:]


def test_standard_errors_are_the_spread_of_fresh_rows():
    fits = [LimeBase(kernel).fits(x, y, d, [1], 9, "none")[1] for x, y, d in map(sample, range(300))]
    in_order = np.array([fit.coef[np.argsort(fit.features)] for fit in fits])
    errors = np.array([fit.errors[np.argsort(fit.features)] for fit in fits]).mean(axis=0)
    # 300 runs know a spread to 4 %: four of these, and the sandwich is some 5 % low at n = 200
    np.testing.assert_allclose(errors, in_order.std(axis=0, ddof=1), rtol=0.2)


def test_an_unknown_selection_is_refused():
    x, y, distances = sample(0)
    with pytest.raises(InputError, match="did you mean 'lasso_path'"):
        LimeBase(kernel).explain_instance_with_data(x, y, distances, 1, 4, "lasso_paths")


class Chosen(LimeBase):
    """A subclass whose selection is not lime's."""

    def feature_selection(self, data, labels, weights, num_features, method):
        return np.array([0, 3])


class ChosenForward(LimeBase):
    def forward_selection(self, data, labels, weights, num_features):
        return [1]


def test_a_subclass_selects_its_own_features():
    """lime calls them; in explainers too, whose answers are then lime's sample's."""
    x = np.random.default_rng(0).integers(0, 2, (200, 5)).astype(float)
    y = np.stack([x @ [1.0, 5.0, 4.0, 0.5, 3.0], np.zeros(200)], axis=1)

    def features(kind, method="auto", count=2):
        base = kind(lambda d: np.exp(-(d**2)))
        return {j for j, _ in base.explain_instance_with_data(x, y, np.zeros(200), 0, count, method)[1]}

    assert features(LimeBase) == {1, 2}
    assert features(Chosen) == {0, 3}
    assert features(ChosenForward) == features(ChosenForward, "forward_selection") == {1}
    assert features(ChosenForward, "highest_weights") == {1, 2}
    X, target = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, target)
    explainer = LimeTabularExplainer(X, random_state=0)
    explainer.base = Chosen(explainer.base.kernel_fn, random_state=explainer.random_state)
    explanation = explainer.explain_instance(X[60], forest.predict_proba)
    assert {j for j, _ in explanation.as_map()[1]} == {0, 3}


def test_a_sparse_neighbourhood():
    x = np.random.default_rng(3).integers(0, 2, (200, 5)).astype(float)
    arguments = x[:, :2], np.zeros(200), 0, 3
    base = LimeBase(lambda d: np.exp(-(d**2)))
    dense, sparse = (base.explain_instance_with_data(data, *arguments) for data in (x, sp.csr_matrix(x)))
    assert dense[1] == sparse[1]
