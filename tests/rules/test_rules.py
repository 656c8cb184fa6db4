"""Requests of users of sparse rules: names that are left out, texts of intervals."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import limes
from effort import repeats
from limes.exceptions import InputError


def test_a_rule_of_columns_counts_the_facts_that_hold():
    """1 + 4 x0 - 2 x1 of columns that are 0 or 1: without a fact the other value stands in its place."""
    X = np.random.default_rng(0).integers(0, 2, size=(200, 3)).astype(float)
    explainer = limes.SparseExplainer(
        lambda rows: 1.0 + rows @ [4.0, -2.0, 0.0], literals=limes.Literals.fit(X), k=2
    )
    explanation = explainer([[1.0, 1.0, 1.0]])
    assert re.sub(r"\[.*?\]", "[]", explanation.rule()) == "1 + 4 [] - 2 []  ->  output = 3"
    assert [reason.value for reason in explanation.reasons(2)] == pytest.approx([4.0, -2.0])
    assert explanation.coefficients.values[0, :2] == pytest.approx([2.0, -1.0])
    assert explanation.plot.explanation.coefficients.values[0, :2] == pytest.approx([4.0, -2.0])
    already = explainer.contrast([[1.0, 1.0, 1.0]], below=100.0)
    assert "Proved" not in str(already)
    assert "already" in str(already)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


@pytest.fixture(scope="module")
def forest(diabetes):
    x, y = diabetes
    return RandomForestRegressor(5, max_depth=4, random_state=0).fit(x, y)


def law_of(d, spread=1.0):
    """All rows of {±1}^d and their probabilities around (1, ..., 1)."""
    rows = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    weight = np.exp(-spread * (rows < 0).sum(axis=1))
    return rows, weight / weight.sum()


# -- exclude ------------------------------------------------------------------------------------------------


def best_error(rows, weight, values, target, support):
    """Least squares of all rows, with a constant, that agree with the model at (1, ..., 1)."""
    root = np.sqrt(weight)[:, None]
    away = rows[:, support] - 1.0
    u, *_ = np.linalg.lstsq(root * away, root[:, 0] * (values - target), rcond=None)
    return weight @ (values - target - away @ u) ** 2


@pytest.mark.parametrize("number", range(repeats(40, 10)))
def test_the_best_rule_without_some_literals(number):
    """Every support among the others is fitted by least squares over all rows of the law."""
    rng = np.random.default_rng(number)
    d, k = 7, int(rng.integers(1, 4))
    coefficients, pairs = rng.normal(size=d), rng.normal(size=(d, d)) / 3
    model = lambda z: z @ coefficients + ((z @ pairs) * z).sum(axis=1)  # noqa: E731
    excluded = rng.choice(d, int(rng.integers(1, 4)), replace=False)
    others = np.setdiff1d(np.arange(d), excluded)
    rows, weight = law_of(d)
    values, target = model(rows), float(model(np.ones((1, d)))[0])
    least = min(best_error(rows, weight, values, target, list(s)) for s in combinations(others, k))
    names = [f"x{j}" for j in excluded]
    for options in ({"solver": "branch_and_bound", "samples": 400}, {"samples": 400}):
        rule = limes.SparseExplainer(model, k=k, exclude=names, **options)(np.ones((1, d)))
        support = np.flatnonzero(rule.coefficients.values[0])
        assert not set(support) & set(excluded)
        assert not set(rule.certificate.near_ties) & set(names)
        assert best_error(rows, weight, values, target, list(support)) >= least - 1e-12
    seen = limes.SparseExplainer(model, k=k, exclude=names, solver="branch_and_bound", samples=400, rng=1)
    assert seen(np.ones((1, d))).certificate.proved


def test_the_exact_rule_without_a_column_is_the_best_of_the_others(diabetes):
    """A linear model: the moments of its columns are sums over the background, by definition."""
    x, y = diabetes
    model, literals = LinearRegression().fit(x, y), limes.Literals.fit(x)
    explainer = limes.SparseExplainer(model, literals=literals, k=3, exclude=["bmi"])
    row = x.iloc[[3]]
    rule = explainer(row)
    assert rule.method == "exact"
    assert rule[0, "bmi"].coefficients.values[0, 0] == 0.0
    assert rule.provenance["exclude"] == ["bmi"]
    cells = literals.cells(literals.table.encode(x))
    at_row = literals.cells(literals.table.encode(row))[0]
    # f - f(x) = Σ_j shift_j 1[j flips] in the mean, and less of the rest: independent columns
    flip = 1.0 / (1.0 + np.e)
    outside = [x.to_numpy()[cells[:, j] != at_row[j], j] for j in range(10)]
    jump = [c * (o - v) for c, o, v in zip(model.coef_, outside, row.to_numpy()[0], strict=True)]
    mean = np.array([j.mean() for j in jump])
    noise = np.array([flip * (j**2).mean() - (flip * j.mean()) ** 2 for j in jump])

    def error(support):
        """E (Σ_S c_j 1[j flips] - Σ_j jump_j)² at its best c, by the normal equations."""
        s = list(support)
        gram = np.full((len(s), len(s)), flip**2)
        np.fill_diagonal(gram, flip)
        total = flip * mean.sum()
        moments = flip * (mean[s] + total - flip * mean[s])
        square = noise.sum() + total**2
        return square - moments @ np.linalg.solve(gram, moments)

    allowed = [j for j in range(10) if x.columns[j] != "bmi"]
    best = min(combinations(allowed, 3), key=error)
    assert set(np.flatnonzero(rule.coefficients.values[0])) == set(best)
    again = limes.SparseExplainer(model, literals=literals, k=3)(row, exclude=["bmi"])
    assert np.array_equal(again.coefficients.values, rule.coefficients.values)


def test_names_that_do_not_exist_are_refused(diabetes, forest):
    x, _ = diabetes
    literals = limes.Literals.fit(x)
    with pytest.raises(InputError, match=r"'bni', which is no column \(did you mean 'bmi'\?\)"):
        limes.SparseExplainer(forest, literals=literals, exclude=["bni"])
    with pytest.raises(InputError, match="list of names"):
        limes.SparseExplainer(forest, literals=literals, exclude="bmi")
    explainer = limes.SparseExplainer(forest, literals=literals, k=3)
    with pytest.raises(InputError, match="did you mean 'sex'"):
        explainer(x.iloc[[0]], exclude=["sexx"])
    with pytest.raises(InputError, match="k=3 exceeds the number of literals, 2"):
        explainer(x.iloc[[0]], exclude=list(x.columns[2:]))
    with pytest.raises(InputError, match="leaves no literal"):
        explainer(x.iloc[[0]], exclude=list(x.columns))
    with pytest.raises(InputError, match="no literal"):
        limes.SparseExplainer(lambda z: z[:, 0], k=1)(np.ones((1, 3)), exclude=["x3"])


def test_a_column_stands_for_all_of_its_literals():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 200), "job": rng.choice(["a", "b", "c"], 200)})
    literals = limes.Literals.fit(frame)
    model = lambda z: z @ np.arange(1.0, 1.0 + z.shape[1])  # noqa: E731
    options = {"literals": literals, "neighbourhood": "flips", "k": 3}
    rule = limes.SparseExplainer(model, exclude=["job", literals.names[0]], **options)(frame.iloc[[0]])
    used = {literals.names[j] for j in np.flatnonzero(rule.coefficients.values[0])}
    assert used <= set(literals.names[1:4])
    assert len(used) == 3


# -- intervals ----------------------------------------------------------------------------------------------


def test_thresholds_of_one_column_are_one_interval():
    frame = pd.DataFrame({"bmi": np.linspace(10.0, 50.0, 401), "age": np.linspace(0.0, 1.0, 401)})
    literals = limes.Literals.fit(
        frame, bins=[[10.0, 18.0, 23.0, 31.0, 50.0], [0.0, 0.5, 1.0]], encoding="thresholds"
    )
    assert literals.names == ("bmi > 18", "bmi > 23", "bmi > 31", "age > 0.5")
    model = lambda z: 0.4 * z[:, 1] - 0.2 * z[:, 2] + 0.1 * z[:, 3]  # noqa: E731
    explainer = limes.SparseExplainer(model, literals=literals, neighbourhood="flips", k=3)
    rows = pd.DataFrame({"bmi": [25.0, 40.0, 20.0, 12.0], "age": [0.7, 0.7, 0.2, 0.2]})
    assert explainer(rows, progress=False).rules() == (
        "0.6 [23 < bmi <= 31] + 0.1 [age > 0.5]  ->  output = 0.7",
        "0.2 [bmi > 31] + 0.1 [age > 0.5]  ->  output = 0.3",
        "-0.2 [bmi <= 23] - 0.1 [age <= 0.5]  ->  output = -0.3",
        "-0.2 [bmi <= 23] - 0.1 [age <= 0.5]  ->  output = -0.3",
    )


def test_adjacent_bins_are_one_interval_and_others_stay_apart():
    frame = pd.DataFrame({"bmi": np.linspace(10.0, 50.0, 401)})
    literals = limes.Literals.fit(frame, bins=[[10.0, 18.0, 23.0, 31.0, 50.0]])
    assert literals.names[1] == "18 < bmi <= 23"
    bmi = literals.columns[0]
    together = lambda at, signs: bmi.together(np.array(at), np.array(signs))  # noqa: E731
    assert together([0, 3], [-1.0, -1.0]) == "18 < bmi <= 31"
    assert together([0, 1], [-1.0, -1.0]) == "bmi > 23"
    assert together([2, 3], [-1.0, -1.0]) == "bmi <= 23"
    assert together([1, 2], [1.0, -1.0]) == "18 < bmi <= 23"
    assert together([1, 3], [-1.0, -1.0]) is None
    assert together([0, 1], [1.0, 1.0]) is None


@pytest.mark.parametrize("encoding", ["bins", "thresholds"])
def test_a_merged_fact_holds_where_its_literals_do(encoding):
    """Every set of literals that holds of some value: the text is read back as a condition."""
    rng = np.random.default_rng(0)
    values = np.append(rng.normal(size=60), np.nan)
    literals = limes.Literals.fit(pd.DataFrame({"v": values}), bins=5, encoding=encoding)
    (column,), signs = literals.columns, literals.transform(pd.DataFrame({"v": values}))
    checked = 0
    for size in (2, 3):
        for at in map(list, combinations(range(len(column.names)), size)):
            for row in np.unique(signs[:, at], axis=0):
                text = column.together(np.array(at), row)
                holds = (signs[:, at] == row).all(axis=1)
                if text is None or text == "v is missing":
                    continue
                parts = text.split(" < v <= ") if " < v" in text else None
                read = (
                    (float(parts[0]) < values) & (values <= float(parts[1])) if parts
                    else values > float(text.removeprefix("v > ")) if ">" in text
                    else values <= float(text.removeprefix("v <= "))
                )  # fmt: skip
                cuts = column.law.cells.edges[1:-1]
                near = (np.abs(values[:, None] - cuts) < 0.005).any(axis=1)  # texts round the cuts
                assert np.array_equal(read[~near], holds[~near])
                checked += 1
    assert checked > 5
