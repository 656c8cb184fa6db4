"""The papers' own failure: a used column whose coefficient vanishes is reported, and no other column is.

The oracle enumerates: under ``law="empirical"`` the mean of a sum over a cell is that over the background's
values in it, w keeps the row's cell with weight 1 and every other with e^{-1/(2ν²)}, and columns add up.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import limes
from effort import repeats
from flaws import about, linear, uniform_table

# Shares of the model's variance, and of the column's effect, beyond which a coefficient hides an effect
MATTERS, CAPTURED = 0.2, 0.05


def cells_of(column, edges):
    """Numbers of the cells (low, high] of values."""
    return np.searchsorted(edges, column, side="left")


def shares_of(functions, X, row, bins, bandwidth):
    """Get what each column's effect makes up of Var_w f, (d,), and what the coefficient tells of it, (d,)."""
    between, variance, captured = [], [], []
    for g, column, value in zip(functions, X.T, row, strict=True):
        edges = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
        cells, current = cells_of(column, edges), cells_of(np.array([value]), edges)[0]
        mass = np.array([(cells == b).mean() for b in range(edges.size + 1)])
        q = mass * np.where(np.arange(mass.size) == current, 1.0, np.exp(-1 / (2 * bandwidth**2)))
        q /= q.sum()
        used = np.flatnonzero(mass)
        means, squares = np.zeros(mass.size), np.zeros(mass.size)
        for b in used:
            values = g(column[cells == b])
            means[b], squares[b] = values.mean(), (values**2).mean()
        mean = q @ means
        between.append(q @ (means - mean) ** 2)
        variance.append(q @ squares - mean**2)
        coef = means[current] - (mean - q[current] * means[current]) / (1 - q[current])
        captured.append(coef**2 * q[current] * (1 - q[current]) / max(between[-1], 1e-300))
    return np.array(between) / sum(variance), np.array(captured)


def hidden_columns(shares, captured):
    """Positions of the columns whose effects are hidden; None where one is too near to a threshold."""
    near = (np.abs(shares - MATTERS) < 1e-3) | (np.abs(captured - CAPTURED) < 1e-3)
    return None if near.any() else np.flatnonzero((shares >= MATTERS) & (captured <= CAPTURED)).tolist()


def warned_columns(explanation, i):
    """Names of columns in a row's warning of hidden effects."""
    texts = [w for w in explanation.row_warnings[i] if w.code == "hidden effect"]
    return {name for name in explanation.feature_names for text in texts if f" {name} (" in text}


# Curves of columns, which rise, bend and turn
CURVES = {
    "rises": lambda x: 3.0 * x,
    "falls": lambda x: -2.0 * x,
    "bends": lambda x: 0.02 * x**3,
    "turns": lambda x: 0.3 * x**2,
    "waves": lambda x: 4.0 * np.sin(x / 3.0),
    "steps": lambda x: 8.0 * (x > -4.0) + 8.0 * (x > 4.0),
}


def forest_of(functions, X, seed=0):
    """A forest of one tree a column that follows its curve; their sum is the model."""
    trees = []
    for j, g in enumerate(functions):
        alone = np.zeros_like(X)
        alone[:, j] = X[:, j]
        trees.append(DecisionTreeRegressor(max_leaf_nodes=40, random_state=seed).fit(alone, g(X[:, j])))
    forest = RandomForestRegressor(len(trees)).fit(X[:50], X[:50, 0])
    forest.estimators_ = trees
    return forest, [
        lambda x, tree=tree, j=j: tree.predict(np.eye(X.shape[1])[j] * x[:, None]) / len(trees)
        for j, tree in enumerate(trees)
    ]


@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("bins", [3, 5, 7])
def test_in_a_middle_bin_of_a_line(d, bins):
    """2022, section 3, figures 9 and 10: the bins below and above cancel, whatever the other columns do."""
    X = uniform_table(d, 1001)
    slopes = np.r_[3.0, -2.0, 1.0, np.full(max(d - 3, 0), 0.3)][:d]
    functions = [lambda x, s=s: s * x for s in slopes]
    explainer = limes.TabularExplainer(linear(slopes), X, bins=bins, law="empirical")
    row = np.r_[0.0, np.full(d - 1, 9.0)]
    bandwidth = 0.75 * np.sqrt(d)
    shares, captured = shares_of(functions, X, row, bins, bandwidth)
    assert hidden_columns(shares, captured) == [0]
    explanation = explainer(row[None])
    assert abs(explanation.coefficients.values[0, 0]) < 0.05 * np.abs(slopes).max()
    assert warned_columns(explanation, 0) == {"x0"}
    (finding,) = [f for f in about(limes.diagnose(explanation), "cancellation") if f.severity == "warning"]
    assert finding.features == ("x0",)
    assert finding.number == pytest.approx(shares[0] * (1 - captured[0]), rel=1e-3)


def test_a_central_column_among_others_is_no_excuse():
    """All columns in their middle bins: each with a fifth of the variance is reported."""
    X = uniform_table(4, 1001)
    explanation = limes.TabularExplainer(linear([3.0, -3.0, 2.8, 0.5]), X, bins=5)(np.zeros((1, 4)))
    assert warned_columns(explanation, 0) == {"x0", "x1", "x2"}


@pytest.mark.parametrize("bandwidth", [0.4, 0.5, 0.53, 0.56, 0.6, 0.7, 0.8, 0.9, 1.0])
def test_around_the_bandwidth_that_switches_a_coefficient_off(bandwidth):
    """2020, equation 4.1: f = 10 u - 10 v at (1, 0.432), where one of two equal slopes vanishes."""
    X = np.random.default_rng(1).normal(size=(2000, 2))
    explainer = limes.TabularExplainer(linear([10.0, -10.0]), X, weights="euclidean", bandwidth=bandwidth)
    explanation = explainer([[1.0, 0.432]])
    assert np.abs(explanation.coefficients.values[0, 1]) < 0.13 * np.abs(
        explanation.coefficients.values[0, 0]
    )
    assert warned_columns(explanation, 0) == {"x1"}
    findings = limes.diagnose(explanation).findings
    assert ("cancellation", "warning", ("x1",)) in [(f.kind, f.severity, f.features) for f in findings]
    # one threshold: where the coefficient does not count, its path is reported, or else its sign change
    assert "bandwidth" in {f.kind for f in findings}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bins", [3, 4, 5])
def test_sums_of_curves_have_a_warning_where_an_enumeration_says_so_and_nowhere_else(bins, seed):
    rng = np.random.default_rng(seed)
    X = uniform_table(4, 600, seed)
    X[:, 1] = np.round(X[:, 1] / 5.0)  # ties: quartiles of a few values
    X[:, 2] = np.exp(X[:, 2] / 5.0)  # skewed
    names = rng.choice([*CURVES], 4, replace=False)
    forest, functions = forest_of([CURVES[name] for name in names], X, seed)
    explainer = limes.TabularExplainer(forest, X, bins=bins, law="empirical")
    rows = X[rng.choice(len(X), 40, replace=False)]
    explanation = explainer(rows, progress=False)
    count = 0
    for i, row in enumerate(rows):
        expected = hidden_columns(*shares_of(functions, X, row, bins, 1.5))
        if expected is not None:
            assert warned_columns(explanation, i) == {f"x{j}" for j in expected}
            count += len(expected)
    assert count >= 5 or bins == 4  # quartiles have no middle bin
    some = list(range(0, 40, 8))
    for i, diagnosis in zip(some, limes.diagnose(explanation[some], progress=False), strict=True):
        expected = hidden_columns(*shares_of(functions, X, rows[i], bins, 1.5))
        named = {
            f.features[0] for f in diagnosis.findings if (f.kind, f.severity) == ("cancellation", "warning")
        }
        assert expected is None or named == {f"x{j}" for j in expected}


def test_several_outputs_are_told_apart():
    X = uniform_table(2, 800)
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(
        X, np.column_stack([3 * X[:, 0], X[:, 1]])
    )
    explanation = limes.TabularExplainer(model, X, bins=5)([[0.1, 9.0]])
    (warning,) = [w for w in explanation.row_warnings[0] if w.code == "hidden effect"]
    assert warning.outputs == ("0",)
    assert " x0 (" in warning


def test_a_selection_keeps_the_warning_of_its_columns():
    X = uniform_table(3, 800)
    explanation = limes.TabularExplainer(linear([3.0, -2.0, 1.0]), X, bins=5)([[0.0, 9.0, 9.0]])
    assert warned_columns(explanation[:, ["x0", "x1"]], 0) == {"x0"}
    stored = limes.Explanation.from_json(explanation.to_json())
    assert warned_columns(stored, 0) == {"x0"}


def test_slopes_and_penalties_hide_effects_too():
    """A parabola has no slope in its middle, and a heavy penalty leaves none anywhere."""
    X = uniform_table(2, 1500)
    parabola = DecisionTreeRegressor(max_leaf_nodes=60, random_state=0).fit(X, X[:, 0] ** 2 + X[:, 1])
    explanation = limes.TabularExplainer(parabola, X, bins=None)([[0.0, 0.0]])
    assert "x0" in warned_columns(explanation, 0)
    penalised = limes.TabularExplainer(linear([3.0, 1.0]), X, ridge=1e5)([[9.0, 9.0]])
    assert "x0" in warned_columns(penalised, 0)


def test_a_sampled_model_has_the_finding():
    X = uniform_table(3, 800)
    explainer = limes.TabularExplainer(linear([3.0, -2.0, 1.0]), X, bins=5, method="sampled", rng=0)
    findings = about(limes.diagnose(explainer([[0.0, 9.0, 9.0]], progress=False)), "cancellation")
    assert ("warning", ("x0",)) in [(f.severity, f.features) for f in findings]


def test_a_column_that_its_coefficient_tells_of_has_no_warning():
    X = uniform_table(3, 800)
    explanation = limes.TabularExplainer(linear([3.0, -2.0, 1.0]), X, bins=5)([[9.0, -9.0, 9.0]])
    assert warned_columns(explanation, 0) == set()


# -- dependence on one scale ---------------------------------------------------------------------------------


def test_coefficients_that_rest_on_rows_which_do_not_occur_are_reported():
    """Answers off the manifold b = a hide a rule: 100 c there, a on all rows that occur."""
    rng = np.random.default_rng(0)
    a = rng.uniform(-10, 10, 1000)
    X = pd.DataFrame({"a": a, "b": a + 0.01 * rng.normal(size=1000), "c": rng.uniform(-10, 10, 1000)})

    def model(table):
        z = np.asarray(table)
        return np.where(np.abs(z[:, 0] - z[:, 1]) > 0.5, 100.0 * z[:, 2], z[:, 0])

    np.testing.assert_array_equal(model(X), X["a"])
    explanation = limes.TabularExplainer(model, X, max_calls=1024)(X[: repeats(12, 4)], progress=False)
    assert (np.abs(explanation.coefficients.values).max(axis=1) > 20).all()  # on rows that occur at most 2
    for diagnosis in limes.diagnose(explanation, progress=False):
        (finding,) = [f for f in diagnosis.findings if f.kind == "dependence"]
        assert finding.severity == "warning"
        assert finding.features == ("c",)
