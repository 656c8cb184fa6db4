"""Warnings of every explanation of a table: where they fire, and where they do not."""

from __future__ import annotations

import numpy as np

import limes
from flaws import bump, linear

X = np.random.default_rng(0).normal(size=(999, 3))


def test_only_the_row_on_an_edge_is_warned_about():
    edge = np.percentile(X[:, 1], 75)
    explanation = limes.TabularExplainer(linear([1.0, 1.0, 1.0]), X)(
        [[1.5, edge - 1e-6, 1.5], [1.5, edge + 1e-6, 1.5], [1.5, edge + 0.3, 1.5]]
    )
    first, second, third = explanation.row_warnings
    assert "x1" in first[0]
    assert "edge" in first[0]
    assert "edge" in second[0]
    assert third == ()


def test_an_edge_of_an_irrelevant_column_has_no_warning():
    edge = np.percentile(X[:, 1], 75)
    explanation = limes.TabularExplainer(linear([1.0, 0.0, 1.0]), X)([[1.5, edge, 1.5]])
    assert explanation.warnings == ()


def test_a_prediction_beyond_all_coefficients_has_a_warning():
    model, table = bump()
    row = table[model.predict(table) == 0][0]
    # a spike at the row itself, which no average over its bins knows of
    spike = lambda x: model.predict(x) + 10.0 * (np.abs(x - row) < 1e-9).all(axis=1)  # noqa: E731
    explanation = limes.TabularExplainer(spike, table, max_calls=512)([row])
    assert any("misses the prediction" in text for text in explanation.warnings)


def test_a_low_r_squared_is_stated_without_a_warning():
    explainer = limes.TabularExplainer(lambda x: np.sin(40 * x).sum(axis=1), X, max_calls=2048)
    explanation = explainer(X[:1])
    assert explanation.fidelity[0] < 0.1
    alone = limes.TabularExplainer(
        lambda x: np.sin(40 * x).sum(axis=1), X, max_calls=2048, contributions=False
    )
    explanation = alone(X[:1])
    text = str(explanation)
    assert f"R² {explanation.fidelity[0]:.2f}" in text
    assert "The surrogate captures" in text
    assert "! The surrogate" not in text


def test_warnings_are_the_same_whatever_the_batch():
    explainer = limes.TabularExplainer(linear([1.0, 1.0, 1.0]), X)
    quartiles = np.percentile(X, [25, 50, 75], axis=0)
    rows = np.concatenate([np.repeat(quartiles, 4000, axis=0), X[:20]])
    together = explainer(rows, progress=False).row_warnings
    assert together[0] == explainer(rows[:1]).row_warnings[0]
    assert together[-1] == explainer(rows[-1:]).row_warnings[0]
    assert together[8000] == explainer(rows[8000:8001]).row_warnings[0]


def test_columns_in_one_cell_have_a_warning_whether_they_vary_or_not():
    table = np.column_stack([X[:, :2], np.full(len(X), 2.0)])
    low, high = table.min(axis=0)[:2], table.max(axis=0)[:2]
    bins = [np.array([low[0], 0.0, high[0]]), np.array([low[1], high[1]]), np.array([1.0, 3.0])]
    explanation = limes.TabularExplainer(linear([1.0, 1.0, 1.0]), table, bins=bins)(table[:1])
    assert (explanation.coefficients.values[0] == 0).tolist() == [False, True, True]
    fixed = [text.split()[0] for text in explanation.warnings if "it has one cell" in text]
    assert fixed == ["x1", "x2"]
