"""Sums of many columns behind a link, against laws of lattices; and rows outside a network's range."""

from __future__ import annotations

from itertools import combinations, product
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor

import limes
from internals import (
    CURVES,
    LINKS,
    ColumnTerm,
    IndicatorColumn,
    Lookup,
    NodeGroup,
    NodeGroups,
    Polynomial,
    Step,
    Sum,
    WideColumns,
    binned,
    categorical,
    contributions,
    of_values,
    usual_cells,
    waves_at,
)
from limes.exceptions import ModelError
from oracle import EXACT, ROUNDING

WIDE = 70
# Margins are whole numbers of this
UNIT = 0.125


@pytest.fixture(scope="module")
def wide():
    """A logistic regression whose columns add whole numbers of units, and its background."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(60, WIDE)).astype(float)
    model = LogisticRegression().fit(X, X[:, 0] > 1.5)
    model.coef_ = UNIT * (rng.integers(1, 7, size=(1, WIDE)) * rng.choice([-1.0, 1.0], size=WIDE))
    model.intercept_ = np.array([3 * UNIT])
    return model, X


class Lattice:
    """The law of Σ_j x_j for independent x_j that are whole numbers, by convolution."""

    def __init__(self, values, masses):
        self.values, self.masses = values, masses
        self.least = [int(v.min()) for v in values]

    def _dense(self, j):
        dense = np.zeros(int(self.values[j].max()) - self.least[j] + 1)
        np.add.at(dense, (self.values[j] - self.least[j]).astype(int), self.masses[j])
        return dense

    def without_each(self):
        """The laws of the sum without each column: numbers and probabilities."""
        dense = [self._dense(j) for j in range(len(self.values))]
        before = [np.ones(1)]
        for each in dense:
            before.append(np.convolve(before[-1], each))
        after = [np.ones(1)]
        for each in reversed(dense):
            after.append(np.convolve(after[-1], each))
        for j in range(len(dense)):
            law = np.convolve(before[j], after[len(dense) - 1 - j])
            yield sum(self.least) - self.least[j] + np.arange(law.size), law


def contributions_of(model, X, row):
    """Shapley values of the probability, by Gauss-Legendre of the multilinear extension."""
    steps = np.rint(model.coef_[0] / UNIT)
    drawn, kept = X * steps, row * steps
    nodes, weights = np.polynomial.legendre.leggauss(36)
    phi = np.zeros(WIDE)
    for t, weight in zip(0.5 * (1 + nodes), 0.5 * weights, strict=True):
        values = [np.append(drawn[:, j], kept[j]) for j in range(WIDE)]
        masses = [np.append(np.full(len(X), (1 - t) / len(X)), t)] * WIDE
        for j, (rest, law) in enumerate(Lattice(values, masses).without_each()):

            def probability(added, rest=rest, law=law):
                return law @ expit(UNIT * (rest + added) + model.intercept_[0])

            distinct, counts = np.unique(drawn[:, j], return_counts=True)
            mean = counts @ [probability(v) for v in distinct] / len(X)
            phi[j] += weight * (probability(kept[j]) - mean)
    return phi


def test_contributions_of_many_columns_are_those_of_lattices(wide):
    model, X = wide
    explainer = limes.TabularExplainer(model, X, output=1, bandwidth=np.inf, method="exact")
    rows = np.concatenate([X[:1], np.full((1, WIDE), 3.0)])
    result = explainer.contributions(rows).contributions
    for row, values in zip(rows, result.values, strict=True):
        expected = contributions_of(model, X, row)
        assert np.abs(values - expected).max() <= EXACT * np.abs(expected).max()


@pytest.fixture(scope="module")
def steep():
    """A logistic regression of 300 columns, most of whose answers are near 0 or 1, and rows near and far."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 300))
    model = LogisticRegression().fit(X, X[:, :10].sum(axis=1) + rng.normal(size=400) > 0)
    rows = np.concatenate([X[:3], 0.02 * X[3:4], 3.0 * X[4:5]])
    return limes.TabularExplainer(model, X, output=1, method="exact"), rows


def test_few_curved_nodes_are_as_exact_as_many(steep, monkeypatch):
    explainer, rows = steep
    values = explainer.contributions(rows).contributions.values
    monkeypatch.setattr(contributions, "_MOST_NODES", 90)
    monkeypatch.setattr(contributions, "_rules", lambda columns: (contributions._Rule(*many(columns)),))
    expected = explainer.contributions(rows).contributions.values
    assert (np.abs(values - expected).max(axis=1) <= 1e-11 * np.abs(expected).max(axis=1)).all()


def many(columns):
    return *contributions.quadrature(columns), np.zeros((2, 0))


@pytest.mark.parametrize("few", [2, 14, 16])
def test_only_rows_that_few_nodes_miss_take_more(steep, monkeypatch, few):
    explainer, rows = steep
    expected = explainer.contributions(rows).contributions.values
    monkeypatch.setattr(contributions, "_NODES", (few, 30))
    counted, compute = [], contributions._block

    def count(expectation, family, x, cells, rules):
        counted.append((len(x), len(rules)))
        return compute(expectation, family, x, cells, rules)

    monkeypatch.setattr(contributions, "_block", count)
    together = explainer.contributions(rows).contributions.values
    again = sum(n for n, rules in counted if rules == 1)
    assert again == len(rows) if few == 2 else 0 < again < len(rows)
    largest = np.abs(expected).max(axis=1)
    assert (np.abs(together - expected).max(axis=1) <= 1e-11 * largest).all()
    alone = [explainer.contributions(rows[i : i + 1]).contributions.values[0] for i in range(len(rows))]
    assert np.array_equal(together, alone)


def test_nodes_that_miss_the_ends_are_refused(steep, monkeypatch):
    explainer, rows = steep
    monkeypatch.setattr(contributions, "_NODES", (4, 5))
    # the ends alone
    monkeypatch.setattr(contributions, "_TOTAL", np.inf)
    with pytest.raises(ModelError, match="than 5 nodes of the quadrature are exact for"):
        explainer.contributions(rows[4:])


def test_coefficients_of_many_columns_are_those_of_lattices(wide):
    model, X = wide
    explainer = limes.TabularExplainer(
        model, X, output=1, bandwidth=np.inf, method="exact", categorical=[*range(WIDE)]
    )
    result = explainer(X[:1]).coefficients.values[0]
    steps = np.rint(model.coef_[0] / UNIT)
    masses = [np.full(len(X), 1 / len(X))] * WIDE
    laws = Lattice([X[:, j] * steps[j] for j in range(WIDE)], masses).without_each()
    for j, (rest, law) in enumerate(laws):
        mean = {v: law @ expit(UNIT * (rest + v * steps[j]) + 3 * UNIT) for v in np.unique(X[:, j])}
        inside = mean[X[0, j]]
        others = np.mean([mean[v] for v in X[X[:, j] != X[0, j], j]])
        assert result[j] == pytest.approx(inside - others, rel=EXACT, abs=EXACT * 0.1)


def test_a_row_of_many_columns_is_the_same_whatever_the_batch(wide):
    model, X = wide
    explainer = limes.TabularExplainer(model, X, output=1)
    together = explainer.contributions(X[:9]).contributions.values
    alone = [explainer.contributions(X[i : i + 1]).contributions.values[0] for i in range(9)]
    assert np.array_equal(together, alone)


def terms(rng):
    """Columns of each kind: categories, lines, steps and curves, in bins and on values, some missing."""
    for place in range(12):
        x = rng.normal(size=200)
        if place % 3 == 0:
            x[:20] = np.nan
        edges = np.nanquantile(x, [0, 0.25, 0.5, 0.75, 1.0])
        line = Polynomial(np.array([[0.1, rng.normal(), 0.0]]), 0.3, np.array([0.2]))
        curve = Polynomial(np.array([[0.1, rng.normal(), 0.2]]), 0.3, np.array([0.2]))
        step = Step(np.array([-0.5, 0.4]), rng.normal(size=(1, 3)), np.array([0.7]))
        in_bins = binned(x, edges)
        codes = rng.integers(0, 5, size=200).astype(float)
        lookup = Lookup(np.arange(5.0), rng.normal(size=(1, 5)), np.zeros(1), np.zeros(1))
        law, function = [
            (in_bins, line),
            (of_values(in_bins, x), line),
            (in_bins, step),
            (of_values(in_bins, x), step),
            (in_bins, curve),
            (categorical(codes), lookup),
        ][place % 6]
        [column] = IndicatorColumn.of_all_cells([law], 0.4)
        yield ColumnTerm.of(place, function, np.array([[0.8]]), column)


def test_tables_by_moments_are_those_of_each_column():
    each = [*terms(np.random.default_rng(1))]
    nodes = 0.5 + 1j * (0.2 + 0.4 * np.arange(20))
    group = [NodeGroup(np.append(nodes, [-1.0, 2.0]), 20)]
    wide = WideColumns.of(each, LINKS["logistic"].fastest, most=0)

    def functionals(means, contrasts, offsets):
        return means, contrasts

    for term, table in zip(each, wide.tables(group, functionals), strict=True):
        means, contrasts = term.tables(group, functionals).patterns
        assert np.abs(table.patterns[0] - means).max() <= ROUNDING * np.abs(means).max()
        assert np.abs(table.patterns[1] - contrasts).max() <= ROUNDING * np.abs(means).max()


@pytest.mark.parametrize("tilt", [0.0, 0.5, -1.0])
@pytest.mark.parametrize("spread", [0.5, 3.0, 9.0])
def test_nodes_that_moments_decide_have_the_stated_error(tilt, spread):
    rng = np.random.default_rng(2)
    # a range far wider than the law
    s = np.concatenate([spread * rng.normal(size=2000), [200.0, -200.0]])
    mass = np.append(np.full(2000, 1.0), [1e-200, 1e-200])
    mass /= mass.sum()
    link = LINKS["logistic"]
    logs = {q: np.log(mass @ np.exp(q * s)) for q in (tilt, link.order, -link.order)}
    period = link.period_by_moments(
        *(np.array(logs[q] - logs[tilt]) for q in (link.order, -link.order)), tilt
    )
    rule = link.sum_by_moments(float(period), tilt)
    waves = [mass @ np.exp(z * s + log) for z, log in zip(rule.nodes, rule.log_weights, strict=True)]
    summed = rule.base + rule.rest + (rule.weights @ np.array(waves)).real
    rounding = 1e-14 * (np.abs(rule.weights) @ np.abs([mass @ np.exp(z.real * s) for z in rule.nodes]))
    assert abs(summed - mass @ expit(s)) <= rule.error * np.exp(logs[tilt]) + rounding


@pytest.mark.parametrize("name", [name for name, link in CURVES.items() if link.rate is not None])
def test_errors_grow_no_faster_than_stated_beyond_a_range(name):
    link, rng = CURVES[name], np.random.default_rng(3)
    rule = link.sum(-2.0, 3.0, 0.0)
    for beyond in (0.5, 1.0, 2.0):
        s = rng.uniform(-2.0 - beyond, 3.0 + beyond, size=500)
        waves = np.exp(np.multiply.outer(s, rule.nodes) + rule.log_weights) @ rule.weights
        summed = rule.slope * s + rule.base + rule.rest + waves.real
        rounding = 1e-14 * (1.0 + np.abs(rule.weights).sum())
        error = np.abs(summed - link.function(s))
        assert (error <= rule.error * np.exp(link.rate * beyond) + rounding).all()


def test_waves_of_all_groups_are_those_of_each_to_the_last_bit():
    rng = np.random.default_rng(4)
    groups, offsets = [], []
    for count, others, turn in ((1, 0, 0), (7, 40, 0), (0, 40, 0), (64, 0, 0), (33, 40, 1), (0, 40, 1)):
        even = 0.3 + 1j * (0.5 + np.arange(count)) * rng.uniform(0.1, 0.4)
        # some of the others of a group turn, or none
        turning = 1j * turn * (np.arange(others) % 3)
        groups.append(NodeGroup(np.append(even, rng.normal(size=others) + turning), count))
        offsets.append(np.append(np.full(count, 0.7), rng.normal(size=others)))
    values = rng.normal(size=(6, 40))
    joined = NodeGroups(groups, np.concatenate(offsets)).waves(values)
    each = [
        waves_at(group.nodes, value, offset[:, None], group.equidistant)
        for group, value, offset in zip(groups, values, offsets, strict=True)
    ]
    assert np.array_equal(joined, np.concatenate(each))


def enumerated(predict, X, row):
    """Shapley values under the product of the columns' values, subset by subset."""
    d = len(row)
    grid = np.array([*product(*X.T)])

    def worth(subset):
        rows = grid.copy()
        rows[:, subset] = row[subset]
        return predict(rows).mean()

    phi = np.zeros(d)
    for j in range(d):
        others = [k for k in range(d) if k != j]
        for size in range(d):
            for subset in combinations(others, size):
                weight = factorial(size) * factorial(d - size - 1) / factorial(d)
                phi[j] += weight * (worth([*subset, j]) - worth([*subset]))
    return phi


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_a_row_beyond_the_background_is_exact_with_the_same_nodes(activation, monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 3))
    network = MLPRegressor(hidden_layer_sizes=(5,), activation=activation, max_iter=50, random_state=0)
    with pytest.warns(ConvergenceWarning):
        network.fit(X, X[:, 0] * X[:, 1])
    explainer = limes.TabularExplainer(network, X, bandwidth=np.inf, method="exact")
    rows = np.stack([X[0], X.max(axis=0) + np.array([0.3, 0.0, 0.0]), X.min(axis=0) - 0.2])
    explainer.contributions(rows[:1])
    count = []
    tables = ColumnTerm.tables
    monkeypatch.setattr(ColumnTerm, "tables", lambda *a: count.append(0) or tables(*a))
    result = explainer.contributions(rows).contributions.values
    assert not count
    for row, values in zip(rows, result, strict=True):
        expected = enumerated(network.predict, X, row)
        assert np.abs(values - expected).max() <= EXACT * np.abs(expected).max()


def test_many_lines_predict_what_each_of_them_does():
    rng = np.random.default_rng(6)
    lines = [
        Polynomial(rng.normal(size=(1, 3)) * [1, 1, 0], rng.normal(), np.array([0.5])) for _ in range(70)
    ]
    loadings = [rng.normal(size=1) for _ in lines]
    x = rng.normal(size=(5, 70))
    x[2, 7] = np.nan
    total = np.full(5, 0.25)
    for line, loading, values in zip(lines, loadings, x.T, strict=True):
        total += line(values)[0] * loading[0]
    assert np.array_equal(Sum(tuple(lines), tuple(loadings), np.array(0.25)).predict(x), total)


def test_blocks_of_cells_are_those_of_each_column():
    frame = pd.DataFrame(
        {
            "float": [0.5, np.nan, 2.0],
            "whole": [1, 2, 3],
            "small": np.array([1, 2, 3], dtype=np.int8),
            "flag": [True, False, True],
            "text": ["a", "b", "a"],
            "object": np.array(["a", "b", "a"], dtype=object),
            "missing text": ["a", None, "b"],
            "mixed": np.array(["a", 1, 2.5], dtype=object),
            "category": pd.Categorical(["a", "b", "a"]),
            "time": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
        }
    )
    cells = usual_cells(frame)
    assert sorted(cells) == [0, 1, 2, 3, 4, 5]
    for j, values in cells.items():
        assert np.array_equal(values, frame.iloc[:, j].to_numpy(), equal_nan=j == 0)


def test_a_model_gets_frames_with_the_types_it_was_trained_on():
    frame = pd.DataFrame(
        {
            "float": [0.5, np.nan, 2.0, 1.0],
            "whole": [1, 2, 3, 1],
            "small": np.array([1, 2, 3, 1], dtype=np.float32),
            "flag": [True, False, True, True],
            "text": ["a", "b", "a", "c"],
            "object": np.array(["a", "b", "a", "b"], dtype=object),
            "missing text": ["a", None, "b", "a"],
            "category": pd.Categorical(["a", "b", "a", "c"], categories=["c", "b", "a", "d"]),
            "time": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-01"]),
        },
        index=[3, 1, 2, 0],
    )
    seen = []

    def model(X):
        seen.append(X)
        return X["float"].fillna(0.0).to_numpy() + X["whole"].to_numpy()

    explainer = limes.TabularExplainer(model, frame)
    explainer.contributions(frame[:1])
    for rows in seen:
        assert rows.columns.equals(frame.columns)
        same = rows.dtypes == frame.dtypes
        # drawn values of whole numbers lie between them
        assert same[[name for name in frame.columns if name != "whole"]].all()
