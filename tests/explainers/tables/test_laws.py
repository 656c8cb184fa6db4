"""Laws passed by the user instead of learnt ones, and the design at a row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import limes
from internals import number_texts
from limes.designs import BinStatistics, ProductDesign
from limes.exceptions import InputError
from oracle import EXACT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2))
TREE = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 0])
STATISTICS = (
    BinStatistics([-3, -1, 0.5, 3], [-1.5, 0.0, 1.0], [0.4, 0.3, 0.5], [0.2, 0.5, 0.3]),
    BinStatistics([-3, 0, 3], [-1, 1], [0.5, 0.0]),
)


def test_statistics_of_bins_give_the_design_of_these_statistics():
    row = [0.2, 1.3]
    design = ProductDesign.from_bins(
        [s.edges for s in STATISTICS],
        [s.means for s in STATISTICS],
        [s.stds for s in STATISTICS],
        row,
        0.7,
        frequencies=[STATISTICS[0].frequencies, [0.5, 0.5]],
    )
    expected = limes.limit(design, limes.models.read(TREE))
    explanation = limes.TabularExplainer(TREE, X, bins=list(STATISTICS), bandwidth=0.7)(row)
    np.testing.assert_allclose(explanation.coefficients.values[0], expected.coef, rtol=EXACT)
    np.testing.assert_allclose(explanation.coefficients.intercepts[0], expected.intercept, rtol=EXACT)
    assert explanation.conditions[0] == ("-1 < x0 <= 0.5", "x1 > 0")


def test_given_and_learnt_columns_side_by_side():
    mixed = limes.TabularExplainer(TREE, X, bins=[STATISTICS[0], [-9, 0, 9]])
    assert mixed([0.2, 1.3]).conditions[0] == ("-1 < x0 <= 0.5", "x1 > 0")


@pytest.mark.parametrize(
    ("statistics", "background", "says"),
    [
        (BinStatistics([0, 1], [0.5, 0.5], [1]), X, "column 'x0' 2 edges make 1 bins"),
        (BinStatistics([1, 0], [0.5], [1]), X, "column 'x0' edges must ascend"),
        (BinStatistics([0, 1], [0.5], [-1]), X, "column 'x0' means must be finite"),
        (STATISTICS[0], np.array([[1.0, 1.0], [np.nan, 2.0]]), "column 'x0' has missing values"),
        (STATISTICS[0], pd.DataFrame({"a": ["u", "v"], "b": [1.0, 2.0]}), "column 'a' is categorical"),
    ],
)
def test_statistics_that_do_not_fit(statistics, background, says):
    with pytest.raises(InputError, match=says):
        limes.TabularExplainer(lambda x: np.zeros(len(x)), background, bins=[statistics, None])


@pytest.mark.parametrize("bins", ["quartile", None])
def test_the_design_at_a_row_explains_it(bins):
    explainer = limes.TabularExplainer(TREE, X, bins=bins)
    explanation, design = explainer(X[3]), explainer.design(X[3])
    expected = limes.limit(design, limes.models.read(TREE))
    np.testing.assert_allclose(explanation.coefficients.values[0], expected.coef, rtol=EXACT)
    mean = explanation.coefficients.intercepts[0] + explanation.coefficients.values[0] @ design.inclusion
    rows, features = design.draw(np.random.default_rng(0).random((20_000, 2)))
    # four standard errors of a mean of 20,000
    np.testing.assert_allclose(TREE.predict(rows).mean(), mean, atol=4 * TREE.predict(rows).std() / 141)
    np.testing.assert_allclose(
        features.mean(axis=0), design.inclusion, atol=4 * features.std(axis=0).max() / 141
    )


@pytest.mark.parametrize("bins", ["quartile", None])
def test_features_of_many_rows_are_those_of_their_designs(bins):
    explainer = limes.TabularExplainer(TREE, X, bins=bins)
    result = explainer.features(X[:5])
    for name in ("inclusion", "variance", "at_instance", "log_weight"):
        expected = [getattr(explainer.design(row), name) for row in X[:5]]
        np.testing.assert_allclose(getattr(result, name), expected, rtol=EXACT)


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([1.0, 2.5], ["1", "2.5"]),
        ([0.123456, 0.5, 0.5], ["0.123", "0.5", "0.5"]),
        ([1.00001, 1.00002], ["1.00001", "1.00002"]),
        ([0.1, np.nextafter(0.1, 1.0)], ["0.1", "0.10000000000000002"]),
    ],
)
def test_numbers_have_as_few_digits_as_tell_them_apart(numbers, texts):
    assert number_texts(numbers) == texts


def holds(condition, name, value):
    """Whether a printed condition, "3 < x <= 4", is true of a value; noise in its last digit is no more."""
    low, _, rest = condition.rpartition(f" < {name}") if " < " in condition else ("", "", condition)
    noise = 1e-15 * abs(value)
    if f"{name} > " in rest:
        return value > float(rest.removeprefix(f"{name} > "))
    high = rest.partition("<= ")[2]
    return (not low or value > float(low)) and (not high or value <= float(high) + noise)


@pytest.mark.parametrize("load", [load_diabetes, load_breast_cancer, load_wine])
@pytest.mark.parametrize("bins", ["quartile", "decile"])
def test_printed_conditions_are_true_of_the_rows_that_they_describe(load, bins):
    X = load(as_frame=True, return_X_y=True)[0]
    X = X.assign(large=1e9 + np.random.default_rng(0).normal(size=len(X)))
    explainer = limes.TabularExplainer(LinearRegression().fit(X, X.iloc[:, 0]), X, bins=bins)
    conditions = explainer(X).conditions
    for row, texts in zip(X.to_numpy(), conditions, strict=True):
        for name, value, text in zip(X.columns, row, texts, strict=True):
            assert holds(text, name, value), (text, value)


def test_noise_in_the_last_digit_is_not_written():
    """0.1 + 0.2 is 0.30000000000000004, and a person writes 0.3; 2230 < 2230.25 needs its digits."""
    values = np.array([0.1 + 0.2, 0.5, 16.400000000000002, 17.22])
    assert number_texts(values[[0, 2]], values) == ["0.3", "16.4"]
    assert number_texts([2230.25], np.array([2230.25, 2230.0])) == ["2230.25"]
    assert number_texts([29.275], np.array([29.25, 29.3])) == ["29.27"]  # 29.3 is above the edge


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2011, "2011"),
        (19.99, "19.99"),
        (1234567, "1234567"),
        (0.123456, "0.123456"),
        (0.1 + 0.2, "0.3"),
        (-5, "-5"),
    ],
)
def test_the_condition_of_a_constant_states_its_value(value, text):
    B = pd.DataFrame({"a": np.arange(20.0), "year": value})
    explainer = limes.TabularExplainer(lambda table: table["a"].to_numpy(), B)
    assert explainer(B[:1]).conditions[0][1] == f"year = {text}"
    assert f"year = {text}" in limes.Literals.fit(B).names


def test_edges_that_differ_are_written_as_numbers_that_differ():
    low, high = number_texts([999999999.996, 1000000000.77])
    assert float(low) < float(high)
    values = np.array([2224.0, 2228.0, 2300.0])
    assert number_texts(np.array([2225.25]), values) in (["2225"], ["2226"])
