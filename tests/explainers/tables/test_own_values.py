"""Contributions rest on the background's own values: against enumerations with the model's own answers.

The oracle knows the table alone: a column's atoms are its distinct values, weighted by how often they occur,
and by the factor exp(-1 / (2ν²)) outside of the row's quartile. v(S) is the mean of the model's answers over
all combinations of the columns outside S.
"""

from __future__ import annotations

from itertools import combinations, product
from math import factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import limes
import oracle
from effort import crossed, repeats
from limes.designs import BinStatistics

ROWS = 24


def columns(rng, n):
    """Columns whose values repeat, in ways that tables have."""
    return {
        "hours": np.where(rng.random(n) < 0.5, 40.0, rng.integers(10, 80, n)),
        "gain": np.where(rng.random(n) < 0.9, 0.0, np.round(rng.lognormal(8, 1, n), 2)),
        "age": rng.integers(18, 30, n).astype(float),
        "code": rng.choice([-9.0, 1.0, 2.0, 5.0, 70.0], n),
        "day": rng.choice([19000.0, 19031.0, 19032.0, 19400.0], n),
        "price": rng.integers(1, 9, n) + 0.99,
        "normal": rng.normal(size=n),
        "constant": np.full(n, 3.0),
    }


def table(seed, names, n=ROWS):
    every = columns(np.random.default_rng(seed), n)
    return pd.DataFrame({name: every[name] for name in names})


def target(frame):
    scaled = (frame - frame.mean()) / frame.std().replace(0.0, 1.0)
    first, second, *_ = scaled.to_numpy().T
    return first + np.where(second > 0, first, -1.0) + 0.3 * scaled.to_numpy()[:, -1] ** 2


def atoms(x):
    return np.unique(x, return_counts=True)


def quartile_of(x, values):
    return np.searchsorted(np.unique(np.quantile(x, [0.25, 0.5, 0.75])), values, side="left")


def enumerated(answer, frame, row, bandwidth=np.inf):
    """Base and Shapley values of the game v(S) = Σ over atoms outside S, with weights of quartiles."""
    laws = []
    for name, value in zip(frame.columns, row, strict=True):
        x = frame[name].to_numpy()
        values, counts = atoms(x)
        away = quartile_of(x, values) != quartile_of(x, value)
        weights = counts * np.where(away, np.exp(-1.0 / (2.0 * bandwidth**2)), 1.0)
        laws.append((values, weights / weights.sum()))
    grid = np.array(list(product(*(values for values, _ in laws))))
    answers = answer(pd.DataFrame(grid, columns=frame.columns)).reshape([v.size for v, _ in laws] + [-1])
    d = len(row)
    at_row = [int(np.flatnonzero(values == value)[0]) for (values, _), value in zip(laws, row, strict=True)]
    game = {}
    for size in range(d + 1):
        for kept in combinations(range(d), size):
            mean = answers
            for j in reversed(range(d)):
                weights = np.zeros(laws[j][0].size)
                weights[at_row[j]] = 1.0
                mean = np.tensordot(weights if j in kept else laws[j][1], mean, axes=(0, j))
            game[kept] = mean
    values = np.zeros((d, answers.shape[-1]))
    for kept, mean in game.items():
        for j in set(range(d)) - set(kept):
            weight = factorial(len(kept)) * factorial(d - len(kept) - 1) / factorial(d)
            values[j] += weight * (game[tuple(sorted((*kept, j)))] - mean)
    return game[()], values


MODELS = {
    "ridge": Ridge(),
    "forest": RandomForestRegressor(8, random_state=0),
    "boosting": HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=2),
    "kernel": make_pipeline(StandardScaler(), SVR()),
    "network": make_pipeline(
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(6,), activation="tanh", solver="lbfgs", max_iter=50, random_state=0),
    ),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "classes": RandomForestClassifier(5, random_state=0),
}
TABLES = [
    ("hours", "gain", "age"),
    ("code", "normal", "price"),
    ("day", "hours", "normal"),
    ("constant", "gain", "code"),
    ("price", "age", "gain"),
]


def fitted(name, frame):
    y = target(frame)
    return MODELS[name].fit(frame, y > np.median(y) if name in ("logistic", "classes") else y)


def answer_of(model):
    return getattr(model, "predict_proba", model.predict)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize(
    ("model", "names", "bandwidth"), crossed(MODELS, TABLES, (np.inf, 1.0, 0.4), share=3)
)
def test_contributions_are_those_of_an_enumeration(model, names, bandwidth):
    frame = table(len(names[0]), names)
    fit = fitted(model, frame)
    explanation = limes.TabularExplainer(fit, frame, bandwidth=bandwidth)(frame.iloc[:3], progress=False)
    ours = explanation.contributions
    assert not ours.standard_errors.any()
    for i in range(3):
        base, values = enumerated(answer_of(fit), frame, frame.iloc[i].to_numpy(), bandwidth)
        size = np.abs(answer_of(fit)(frame)).max()
        assert oracle.error(ours.base_values[i].reshape(-1), base) < oracle.EXACT
        assert oracle.error(ours.values[i].reshape(values.shape), values, size) < oracle.EXACT


def test_a_name_of_a_law_is_that_of_both_readings():
    frame = table(0, TABLES[0])
    model = fitted("forest", frame)
    ours, normal, empirical = (
        limes.TabularExplainer(model, frame, **law)(frame.iloc[:4], progress=False)
        for law in ({}, {"law": "truncnorm"}, {"law": "empirical"})
    )
    assert (ours.coefficients.values == normal.coefficients.values).all()
    assert (ours.fidelity == normal.fidelity).all()
    assert (ours.coefficients.values != empirical.coefficients.values).any()
    assert np.allclose(ours.contributions.values, empirical.contributions.values, rtol=0, atol=1e-12)
    assert not np.allclose(ours.contributions.values, normal.contributions.values, rtol=0, atol=1e-3)
    assert (ours.provenance["law"], ours.provenance["law of contributions"]) == ("truncnorm", "empirical")
    assert normal.provenance["law of contributions"] == "truncnorm"


@settings(max_examples=repeats(40, 12))
@given(
    seed=st.integers(0, 1000),
    names=st.sampled_from(TABLES),
    bins=st.sampled_from(["decile", 2, 7, "auto", "edges"]),
    law=st.sampled_from([None, "empirical"]),
    model=st.sampled_from(["ridge", "forest", "kernel", "logistic"]),
)
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_bins_play_no_part_without_weights(seed, names, bins, law, model):
    frame = table(seed, names, 60)
    fit = fitted(model, frame)
    if bins == "edges":  # each at a value, so that no bin is empty
        bins = [[x.min() - 1.0, *np.unique(x)[:-1][::3], x.max() + 1.0] for _, x in frame.items()]
    ours, quartiles = (
        limes.TabularExplainer(fit, frame, law=law, bandwidth=np.inf, bins=b)(frame.iloc[:5], progress=False)
        for b in (bins, "quartile")
    )
    for name in ("values", "base_values", "alone", "last"):
        one, other = (getattr(each.contributions, name) for each in (ours, quartiles))
        assert oracle.error(one, other, np.abs(ours.predictions).max()) < oracle.EXACT


@pytest.mark.parametrize("names", TABLES)
def test_sampled_contributions_ask_about_values_that_occur(names):
    frame = table(1, names, 200)
    fit, calls = KNeighborsRegressor(3).fit(frame, target(frame)), []

    def answer(x):
        calls.append(np.asarray(x))
        return fit.predict(x)

    explanation = limes.TabularExplainer(answer, frame, bandwidth=np.inf, contributions=False, rng=3)(
        frame.iloc[:1], progress=False
    )
    calls.clear()
    ours = explanation.contributions
    rows = np.concatenate(calls)
    assert len(rows) > 20
    for j, name in enumerate(frame.columns):
        assert np.isin(rows[:, j], frame[name]).all()
    # every row of the law, of at most 200³ combinations, would take too long: means over shuffled columns
    rng, draws = np.random.default_rng(0), 1 << 15
    shuffled = np.column_stack([rng.choice(frame[name], draws) for name in frame.columns])
    answers = fit.predict(pd.DataFrame(shuffled, columns=frame.columns))
    errors = np.hypot(answers.std() / np.sqrt(draws), ours.base_errors[0])
    assert abs(ours.base_values[0] - answers.mean()) < 5 * errors
    assert np.isclose(ours.base_values[0] + ours.values[0].sum(), explanation.predictions[0])


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_kinks_are_sampled_from_the_network_and_say_so():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(400, 8)), columns=[f"c{i}" for i in range(8)])
    frame["c1"] = np.where(rng.random(400) < 0.5, 0.0, frame["c1"])
    network = MLPRegressor(hidden_layer_sizes=(8,), solver="lbfgs", max_iter=60, random_state=0)
    network.fit(frame, frame["c0"] * frame["c1"] + np.abs(frame["c2"]))
    explanation = limes.TabularExplainer(network, frame, bandwidth=np.inf)(frame.iloc[:8], progress=False)
    ours = explanation.contributions
    assert explanation.provenance["contributions"].startswith("sampled from the network")
    assert (ours.standard_errors > 0).all()
    assert not ours.calls.any()
    assert ours.standard_errors.max() < 0.02 * np.abs(ours.values).max()
    # own walks: pairs of orders from shuffled rows
    draws, d = 4000, 8
    for i in range(4):
        row, changes = frame.iloc[i].to_numpy(), np.zeros((draws, d))
        order = rng.permuted(np.tile(np.arange(d), (draws, 1)), axis=1)
        x = np.column_stack([rng.choice(frame[name], draws) for name in frame.columns])
        before = network.predict(pd.DataFrame(x, columns=frame.columns))
        for step in range(d):
            x[np.arange(draws), order[:, step]] = row[order[:, step]]
            now = network.predict(pd.DataFrame(x, columns=frame.columns))
            changes[np.arange(draws), order[:, step]] = now - before
            before = now
        errors = np.hypot(changes.std(axis=0) / np.sqrt(draws), ours.standard_errors[i])
        assert (np.abs(changes.mean(axis=0) - ours.values[i]) < 5 * errors).all()


def test_missing_values_codes_and_held_columns():
    frame = table(3, ("hours", "gain", "age"), 40)
    frame.loc[::7, "age"] = np.nan
    frame.loc[::5, "gain"] = -9.0
    model = HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=2).fit(frame, frame["hours"])
    ours = limes.TabularExplainer(model, frame, bandwidth=np.inf, missing=[-9])(
        frame.iloc[:2], progress=False
    )
    grid = pd.DataFrame(list(product(*(frame[name] for name in frame.columns))), columns=frame.columns)
    assert oracle.error(ours.contributions.base_values, np.full(2, model.predict(grid).mean())) < oracle.EXACT
    held = limes.TabularExplainer(model, frame, bandwidth=np.inf, hold=["hours"])(
        frame.iloc[:1], progress=False
    )
    grid["hours"] = frame["hours"].iloc[0]
    assert oracle.error(held.contributions.base_values, [model.predict(grid).mean()]) < oracle.EXACT
    assert held.contributions.values[0, 0] == 0.0


def test_statistics_take_distinct_values_and_their_shares():
    frame = table(4, ("hours", "gain"), 40)
    model = RandomForestRegressor(5, random_state=0).fit(frame, target(frame))
    edges = [-np.inf, 39.0, 45.0, np.inf]
    cells = np.searchsorted(edges[1:-1], frame["hours"], side="left")
    groups = [frame["hours"][cells == b] for b in range(3)]
    values, counts = atoms(frame["hours"])
    statistics = {
        "edges": edges,
        "means": [g.mean() for g in groups],
        "stds": [g.std(ddof=0) for g in groups],
        "frequencies": [len(g) for g in groups],
    }
    from_values, without, learnt = (
        limes.TabularExplainer(model, frame, bandwidth=np.inf, bins=[bins, [-np.inf, 1.0, np.inf]])(
            frame.iloc[:5], progress=False
        )
        for bins in (
            BinStatistics(**statistics, values=values[::-1], shares=counts[::-1] / 7.0),
            BinStatistics(**statistics),
            edges,
        )
    )
    same = np.allclose(from_values.contributions.values, learnt.contributions.values, rtol=0, atol=1e-12)
    assert same
    assert not np.allclose(without.contributions.values, learnt.contributions.values, rtol=0, atol=1e-3)
    assert (from_values.coefficients.values == without.coefficients.values).all()
    for wrong in (
        {"values": [1.0, 2.0], "shares": [1.0]},
        {"values": [1.0], "shares": [0.0]},
        {"values": [np.nan]},
    ):
        explainer = limes.TabularExplainer(
            model, frame, bins=[BinStatistics(**statistics, **wrong), [-np.inf, 1.0, np.inf]]
        )
        with pytest.raises(limes.exceptions.InputError, match="values need"):
            explainer(frame.iloc[:1], progress=False).contributions  # noqa: B018
