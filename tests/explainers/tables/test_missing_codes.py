"""Codes of missing values: one cell for each column, which bins and laws of the values ignore."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import limes
from limes.exceptions import InputError

CODES = [-7, -8, -9]


def table(n=200):
    rng = np.random.default_rng(0)
    months = rng.integers(0, 24, n).astype(float)
    months[:30] = rng.choice(CODES, 30)
    score = rng.normal(60, 10, n).round(1)
    score[30:40] = 999.0
    return pd.DataFrame({"months": months, "score": score})


X = table()
Y = np.where(X["months"] < 0, 5.0, X["months"]) + np.where(X["score"] > 900, -3.0, X["score"] / 10)
MODEL = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X.to_numpy(), Y)
EXPLAINER = limes.TabularExplainer(MODEL, X.to_numpy(), missing=[*CODES, 999], law="empirical")


def test_a_code_is_a_category_and_no_edge():
    explainer = limes.TabularExplainer(MODEL, X.to_numpy(), missing=[*CODES, 999])
    explanation = explainer([[-7.0, 60.0], [3.0, 999.0], [23.0, 40.0]])
    first, second, third = explanation.conditions
    assert first[0] == "x0 is missing (-9, -8, -7)"
    assert second[1] == "x1 is missing (999)"
    values = X["months"][X["months"] >= 0]
    low, high = np.percentile(values, [25, 75])
    assert second[0] == f"x0 <= {low:g}"
    assert float(third[0].removeprefix("x0 > ")) == pytest.approx(high, abs=0.1)
    cells = {effect.feature: effect.cells for effect in explanation[0].effects}
    assert len(cells["x0"]) == len(cells["x1"]) == 5
    assert not any("<" in cell and "-" in cell for cell in cells["x0"])
    assert explanation.method == "exact"
    assert explanation.provenance["missing"] == [*CODES, 999]
    account = explanation.contributions
    np.testing.assert_allclose(account.base_values + account.values.sum(axis=1), explanation.predictions)


@pytest.mark.parametrize("row", [[-8.0, 61.0], [5.0, 999.0], [-7.0, 999.0], [12.0, 55.0]])
def test_coefficients_are_those_of_enumeration(row):
    """All pairs of background values, weighted by the cells that change."""
    explanation = EXPLAINER([row])
    nu = 0.75 * np.sqrt(2)
    laws = []
    for j, name in enumerate(X):
        values, counts = np.unique(X[name], return_counts=True)
        is_code = (values < 0) | (values > 900)
        edges = np.percentile(X[name][(X[name] >= 0) & (X[name] < 900)], [25, 50, 75])
        cell = np.where(is_code, -1, np.searchsorted(edges, values, side="left"))
        row_cell = -1 if row[j] < 0 or row[j] > 900 else np.searchsorted(edges, row[j], side="left")
        holds = cell == row_cell
        laws.append((values, counts * np.where(holds, 1.0, np.exp(-1 / (2 * nu**2))), holds))
    grid = np.array(np.meshgrid(laws[0][0], laws[1][0], indexing="ij")).reshape(2, -1).T
    weights = np.outer(laws[0][1], laws[1][1]).ravel()
    z = np.array(np.meshgrid(laws[0][2], laws[1][2], indexing="ij")).reshape(2, -1).T
    f = MODEL.predict(grid)
    for j in range(2):
        inside, outside = (
            np.average(f[z[:, j] == side], weights=weights[z[:, j] == side]) for side in (True, False)
        )
        assert explanation.coefficients.values[0, j] == pytest.approx(inside - outside, rel=1e-9)


def test_the_law_of_a_code_is_the_code():
    explainer = limes.TabularExplainer(MODEL, X.to_numpy(), missing=[*CODES, 999])
    x, _ = explainer.design([-7.0, 60.0]).draw(np.random.default_rng(0).random((2000, 2)))
    assert set(np.unique(x[x[:, 0] < 0, 0])) == set(map(float, CODES))
    assert x[x[:, 0] >= 0, 0].max() <= 23.0
    assert set(np.unique(x[x[:, 1] > 100, 1])) == {999.0}


def test_the_smallest_value_is_on_no_edge_to_a_code():
    explanation = EXPLAINER([[0.0, 60.0], [-7.0, 999.0]])
    assert not any(w.code == "on an edge" for record in explanation.row_warnings for w in record)


@pytest.mark.parametrize("value", [-6.0, -0.5, 30.0])
def test_a_value_near_a_code_is_no_code(value):
    """It is outside of what the column holds, as without codes."""
    explanation = EXPLAINER([[value, 60.0]])
    assert "missing" not in explanation.conditions[0][0]
    (warning,) = explanation.warnings
    assert warning.code == "outside"
    assert "outside the background's range [0, 23]" in warning


def test_a_code_that_the_background_lacks_is_one_all_the_same():
    explainer = limes.TabularExplainer(MODEL, X.replace(-9.0, -7.0).to_numpy(), missing=CODES)
    explanation = explainer([[-9.0, 60.0]])
    assert explanation.conditions[0][0] == "x0 is missing (-8, -7)"
    assert not explanation.warnings


def test_designs_are_suggested_among_bins():
    suggestion = limes.suggest_design(EXPLAINER, X.to_numpy()[:10])
    assert "slopes" not in suggestion.names


def test_pages_and_reports_show_them():
    explanation = EXPLAINER(X.to_numpy()[:5])
    assert "is missing (-9, -8, -7)" in explanation.to_html()
    assert "is missing (-9, -8, -7)" in explanation.to_report(progress=False)


def test_a_single_bin_beside_codes_is_named():
    x = np.column_stack([np.tile([1.0, -9.0], 20), np.arange(40.0)])
    explanation = limes.TabularExplainer(lambda rows: rows[:, 0], x, missing=[-9])([[1.0, 3.0]])
    assert explanation.conditions[0][0] == "x0 is recorded"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": [5]}, "has the code 5 of missing= among its values, which are from"),
        ({"missing": -7}, "pass a list of numbers"),
        ({"missing": "-7"}, "pass a list of numbers"),
        ({"missing": [float("nan")]}, "codes are finite numbers"),
        ({"missing": CODES, "bins": None}, "bins=None has none"),
    ],
)
def test_wrong_codes(options, message):
    with pytest.raises(InputError, match=message):
        limes.TabularExplainer(MODEL, X.to_numpy(), **options)
