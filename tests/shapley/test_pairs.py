"""Pairs of contributions: against the Shapley interaction indices of all coalitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import limes
from coalitions import answers, game, interactions
from computed_once import ComputedOnce
from effort import crossed
from limes.exceptions import InputError
from oracle import EXACT

X, Y = load_diabetes(return_X_y=True)
X = X[:, [2, 8, 3, 6, 5]] / X[:, [2, 8, 3, 6, 5]].std(axis=0)
# scikit-learn compares in float32: numbers are such
X = X.astype(np.float32).astype(float)
BACKGROUND, ROWS = X[:6], X[[3, 40]]
MODELS = ComputedOnce(
    {
        "ridge": lambda: Ridge().fit(X, Y),
        "squares": lambda: make_pipeline(PolynomialFeatures(2), Ridge()).fit(X, Y),
        "forest": lambda: RandomForestRegressor(8, max_depth=6, random_state=0).fit(X, Y),
        "classes of a forest": lambda: RandomForestClassifier(6, max_depth=4, random_state=0).fit(
            X, np.digitize(Y, [90, 180])
        ),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(
            X, Y > 140
        ),
        "logistic": lambda: LogisticRegression(C=10.0).fit(X, Y > 140),
        "three classes": lambda: LogisticRegression().fit(X, np.digitize(Y, [100, 180])),
        "kernel": lambda: KernelRidge(kernel="rbf", gamma=0.2).fit(X, Y),
        "network": lambda: MLPRegressor(
            hidden_layer_sizes=(6,),
            activation="tanh",
            solver="lbfgs",
            alpha=1.0,
            max_iter=5000,
            random_state=0,
        ).fit(X, Y / 100),
    }
)
LAWS = [
    {},
    {"bandwidth": 0.3},
    {"bandwidth": np.inf},
    {"weights": "euclidean"},
    {"bins": None},
    {"hold": [1]},
]


def check(account, v, i, size):
    """Compare the pairs of row i with those of its game."""
    indices, d = interactions(v), v.ndim
    pairs = account.pairs[i].reshape(indices.shape)
    beside = ~np.eye(d, dtype=bool)
    np.testing.assert_allclose(2.0 * pairs[beside], indices[beside], rtol=0, atol=EXACT * size)
    np.testing.assert_array_equal(pairs, pairs.swapaxes(0, 1))
    values = account.values[i].reshape(d, -1)
    np.testing.assert_allclose(pairs.sum(axis=1), values, rtol=0, atol=EXACT * size)
    # what a column adds last, less what it does alone, is what its pairs add
    apart = (account.last[i] - account.alone[i]).reshape(d, -1)
    np.testing.assert_allclose(indices.sum(axis=1), apart, rtol=0, atol=EXACT * size)


@pytest.mark.parametrize(("name", "options"), crossed(MODELS, LAWS), ids=str)
def test_pairs_are_indices_of_all_coalitions(name, options):
    model = MODELS[name]
    explainer = limes.TabularExplainer(model, BACKGROUND, law="empirical", method="exact", **options)
    account = explainer(ROWS, progress=False).contributions
    size = np.abs(answers(model, X)).max()
    for i, row in enumerate(ROWS):
        check(account, game(model, explainer, row), i, size)
    assert not account.pair_errors.any()
    assert account.pair_errors.shape == account.pairs.shape


@pytest.mark.parametrize("law", [None, "joint"])
def test_pairs_of_a_function_of_few_rows_are_exact(law):
    """All answers of its game had been asked for, its contributions were exact, and its pairs estimated."""

    def function(rows):
        rows = np.asarray(rows, dtype=np.float64)
        return np.stack([rows.prod(axis=1), np.sin(rows[:, 0] * rows[:, 1]) + rows[:, 2]], axis=1)

    background = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 3.0], [1.0, 2.0, 2.0], [0.0, 2.0, 5.0]])
    row = np.array([1.0, 2.0, 3.0])
    its = {"law": law, "categorical": [0, 1, 2], "bandwidth": np.inf}
    explainer = limes.TabularExplainer(function, background, **its)
    account = explainer.contributions(row, progress=False).contributions
    assert not account.standard_errors.any()
    assert not account.pair_errors.any()
    drawn = background
    if law is None:
        drawn = background[np.array([*np.ndindex(4, 4, 4)]), np.arange(3)]
    v = np.empty((2, 2, 2), dtype=object)
    for kept in np.ndindex(2, 2, 2):
        v[kept] = function(np.where(np.array(kept, bool), row, drawn)).mean(axis=0)
    check(account, v, 0, np.abs(function(background)).max())


@pytest.mark.parametrize("bandwidth", [None, np.inf, 0.4])
@pytest.mark.parametrize("name", MODELS)
def test_pairs_under_the_joint_law(name, bandwidth):
    model = MODELS[name]
    explainer = limes.TabularExplainer(model, BACKGROUND, law="joint", bandwidth=bandwidth)
    account = explainer(ROWS, progress=False).contributions
    law, family = explainer._model.law, explainer._model.family
    for i, row in enumerate(ROWS):
        changed = (law.cells(BACKGROUND) != law.cells(row[None])).sum(axis=1)
        weights = np.exp(-0.5 * (changed - changed.min()) / family.weights.bandwidth**2)
        weights /= weights.sum()
        v = np.empty((2,) * row.size, dtype=object)
        for kept in np.ndindex(*v.shape):
            v[kept] = weights @ answers(model, np.where(np.array(kept, bool), row, BACKGROUND))
        check(account, v, i, np.abs(answers(model, X)).max())
    total = account.pairs.sum(axis=(1, 2)) + account.base_values
    np.testing.assert_allclose(total, answers(model, ROWS).reshape(total.shape), rtol=EXACT)


@pytest.mark.parametrize("name", ["forest", "logistic", "three classes", "kernel", "network"])
def test_pairs_have_the_same_bits_in_every_batch(name):
    explainer = limes.TabularExplainer(MODELS[name], X, method="exact")
    together = explainer(X[:70], progress=False).contributions.pairs
    for i in (0, 3, 69):
        np.testing.assert_array_equal(explainer(X[[i]], progress=False).contributions.pairs[0], together[i])


def test_a_selection_keeps_its_pairs():
    explanation = limes.TabularExplainer(MODELS["three classes"], BACKGROUND)(X[:3], progress=False)
    pairs = explanation.contributions.pairs
    assert pairs.shape == (3, 5, 5, 3)
    part = explanation[1:, ["x2", "x0"], 2].contributions.pairs
    np.testing.assert_array_equal(part, pairs[1:][:, [2, 0]][:, :, [2, 0]][..., 2])
    assert explanation[:0].contributions.pairs.shape == (0, 5, 5, 3)
    assert explanation[:0, :2, 1].contributions.pairs.shape == (0, 2, 2)
    with pytest.raises(ValueError, match="read-only"):
        pairs[0, 0, 0, 0] = 1.0


def test_reading_pairs_changes_nothing_else():
    explanation = limes.TabularExplainer(MODELS["forest"], BACKGROUND)(X[:2], progress=False)
    before = explanation.to_json()
    assert explanation.contributions.pairs is explanation.contributions.pairs
    assert explanation.to_json() == before


def test_pairs_are_stored_where_they_were_asked_for():
    explanation = limes.TabularExplainer(MODELS["forest"], BACKGROUND)(X[:2], progress=False)
    stored = limes.Explanation.from_json(explanation.to_json(pairs=True))
    np.testing.assert_array_equal(stored.contributions.pairs, explanation.contributions.pairs)
    np.testing.assert_array_equal(
        stored[1, ["x3", "x1"]].contributions.pairs[0, 0, 1], explanation.contributions.pairs[1, 3, 1]
    )
    assert stored.to_json() == explanation.to_json(pairs=True)
    without = limes.Explanation.from_json(explanation.to_json())
    with pytest.raises(InputError, match=r"to_json\(pairs=True\)"):
        without.contributions.pairs  # noqa: B018 - computed when read


FOREST = MODELS["forest"]


def of_function(seed=0, law=None, calls=2048, rows=X[:3]):
    explainer = limes.TabularExplainer(lambda x: FOREST.predict(x), X, rng=seed, max_calls=calls, law=law)
    return explainer.contributions(rows, progress=False)


@pytest.mark.parametrize("law", [None, "joint"])
def test_pairs_of_a_function_have_errors_that_cover(law):
    exact = limes.TabularExplainer(FOREST, X, law=law).contributions(X[:3], progress=False).contributions
    inside = []
    for seed in range(8):
        account = of_function(seed, law).contributions
        beside = ~np.eye(5, dtype=bool)
        assert (account.pair_errors > 0).all()
        inside.append(np.abs(account.pairs - exact.pairs) <= 1.96 * account.pair_errors)
        np.testing.assert_allclose(account.pairs.sum(axis=2), account.values, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(account.pairs, account.pairs.swapaxes(1, 2))
    inside = np.array(inside)
    # of 240 pairs, each of which stands twice
    assert inside[..., beside].mean() > 0.9
    assert inside[..., ~beside].mean() > 0.9


def test_pairs_of_a_function_depend_on_seed_and_row_and_keep_the_bound():
    counts = []

    def model(x):
        counts.append(len(x))
        return FOREST.predict(x)

    explainer = limes.TabularExplainer(model, X, rng=0, max_calls=600)
    explanation = explainer.contributions(X[:3], progress=False)
    before = sum(counts)
    _ = explanation.contributions.values
    after = sum(counts)
    pairs = explanation.contributions.pairs
    # four witnesses and the answers of three rows
    assert 0 < sum(counts) - after <= 3 * (600 + 16)
    counts.clear()
    np.testing.assert_array_equal(explanation.contributions.pairs, pairs)
    np.testing.assert_array_equal(explanation[1:2].contributions.pairs, pairs[1:2])
    assert not counts
    alone = explainer.contributions(X[[1]], progress=False).contributions
    np.testing.assert_array_equal(alone.pairs[0], pairs[1])
    assert before <= after


def test_columns_that_do_not_interact_have_errors_all_the_same():
    explanation = limes.TabularExplainer(lambda x: 3.0 * x[:, 0] - x[:, 1], X, rng=0)(X[:1], progress=False)
    pairs, errors = explanation.contributions.pairs[0], explanation.contributions.pair_errors[0]
    beside = ~np.eye(5, dtype=bool)
    assert np.abs(pairs[beside]).max() < 1e-12
    assert (errors[beside] > 0).all()


@pytest.mark.parametrize("least", [9.5, 9.0])
def test_pairs_of_an_event_that_few_draws_show_or_none_have_errors_all_the_same(least):
    """The function is 1 where three columns of the digits 0 to 9 are large: by draws in 0 or 1 of 1,000."""
    digits = np.random.default_rng(1).integers(0, 10, size=(500, 6)).astype(float)
    law = {"bins": None, "bandwidth": np.inf, "law": "empirical", "max_calls": 2048}
    beside, row = ~np.eye(6, dtype=bool), np.zeros((1, 6))
    for seed in range(6):
        explainer = limes.TabularExplainer(
            lambda x: (x[:, :3] >= least).all(axis=1) * 1.0, digits, rng=seed, **law
        )
        account = explainer.contributions(row, progress=False).contributions
        assert (account.pair_errors[0][beside] > 0).all()
        share = ((digits[:, :3] >= least).mean(axis=0)).prod()
        # half of the index of two of three columns that are needed together
        truth = np.where(np.arange(6) < 3, share / 4.0, 0.0)[:, None] * (np.arange(6) < 3) * beside
        assert (np.abs(account.pairs[0] - truth) <= 1.96 * account.pair_errors[0])[beside].mean() > 0.9


# the joint law needs the answers to its whole background
@pytest.mark.parametrize(("calls", "law"), [(24, None), (60, None), (160, None), (160, "joint")])
def test_few_calls_have_errors_that_cover(calls, law):
    """Against the enumeration of all coalitions, under a background of all rows of two values a column."""
    background = np.array([*itertools.product((0.0, 1.0), repeat=6)])

    def function(x):
        return 2.0 * x[:, 0] * x[:, 1] + x[:, 2] - x[:, 3] * (x[:, 4] + x[:, 5]) + x[:, 0] * x[:, 4] * x[:, 5]

    game, d = np.zeros((2,) * 6), 6
    for kept in itertools.product((0, 1), repeat=d):
        game[kept] = function(np.where(kept, 1.0, background)).mean()
    expected = np.zeros((d, d))
    for i, j in itertools.combinations(range(d), 2):
        changes = np.diff(np.diff(game, axis=j), axis=i).take(0, axis=j).take(0, axis=i)
        for others in itertools.product((0, 1), repeat=d - 2):
            share = 1.0 / ((d - 1) * math.comb(d - 2, sum(others)))
            expected[i, j] += share * changes[others] / 2.0
        expected[j, i] = expected[i, j]
    beside, covered, most_rows = ~np.eye(d, dtype=bool), [], 0
    for seed in range(12):
        rows = [0]

        def counted(x, rows=rows):
            rows[0] += len(x)
            return function(x)

        explainer = limes.TabularExplainer(
            counted, background, max_calls=calls, rng=seed, law=law, bandwidth=np.inf
        )
        account = explainer.contributions(np.ones((1, d)), progress=False).contributions
        rows[0] = 0
        pairs, errors = account.pairs[0], account.pair_errors[0]
        most_rows = max(most_rows, rows[0])
        np.testing.assert_allclose(pairs.sum(axis=1), account.values[0], atol=1e-9)
        covered.append(np.abs(pairs - expected)[beside] <= 1.96 * errors[beside] + 1e-12)
    # fifteen pairs, twelve times: 95 % less one standard deviation of independent intervals
    assert np.mean(covered) >= 0.93
    assert 0 < most_rows <= calls


def test_two_calls_are_refused_with_the_number_that_is_needed():
    explainer = limes.TabularExplainer(
        lambda x: x[:, 0] * x[:, 1], X, groups={"g": ["x0", "x1", "x2"]}, max_calls=16
    )
    account = explainer.contributions(X[:1], progress=False).contributions
    with pytest.raises(InputError, match="shares of 3 columns of a group need 16 calls a row"):
        account.within("g")


def test_pairs_behind_a_margin_ask_no_model():
    wide = load_diabetes(return_X_y=True)[0]
    model = GradientBoostingClassifier(max_depth=3, n_estimators=20, random_state=0).fit(wide, Y > 140)
    explanation = limes.TabularExplainer(model, wide).contributions(wide[:2], progress=False)
    account = explanation.contributions
    assert account.pair_errors.any()
    assert not account.calls.any()
    np.testing.assert_allclose(account.pairs.sum(axis=2), account.values, rtol=0, atol=1e-12)
    # of two classes one is the other's mirror
    np.testing.assert_allclose(account.pairs[..., 0], -account.pairs[..., 1], rtol=0, atol=1e-12)
