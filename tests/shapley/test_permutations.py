"""Contributions by walks against the Shapley values of all coalitions; their intervals cover."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor

import limes
from coalitions import answers, game, shapley
from computed_once import ComputedOnce
from effort import crossed, repeats
from internals import (
    ControlVariates,
    Lookup,
    OccurringStarts,
    PermutationSampler,
    ProductStarts,
    Reduced,
    Sampling,
    Step,
    SumOfProducts,
    Tolerance,
    curved_margins,
)
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import ROUNDING

X, Y = load_diabetes(return_X_y=True)
X = X[:, [2, 8, 3, 6]] / X[:, [2, 8, 3, 6]].std(axis=0)
BACKGROUND, ROWS = X[:12], X[[3, 40]]
MODELS = ComputedOnce(
    {
        "forest": lambda: RandomForestRegressor(8, max_depth=5, random_state=0).fit(X, Y),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(
            X, Y > 140
        ),
        "three classes": lambda: LogisticRegression().fit(X, np.digitize(Y, [100, 180])),
    }
)
# Functions of four columns that interact: by products, by steps, and by a kink
FUNCTIONS = {
    "product": lambda x: np.prod(1.0 + 0.5 * np.tanh(x), axis=1),
    "steps": lambda x: (x[:, 0] > 0) * 1.0 + 2.0 * ((x[:, 1] > 0.2) & (x[:, 2] < 0.5)) + (x > 0).all(axis=1),
    "kink": lambda x: np.maximum(x @ [1.0, -2.0, 0.5, 1.0], 0.3),
}


def explained(model, rows=ROWS, **options):
    options = {"law": "empirical", "method": "sampled", **options}
    explainer = limes.TabularExplainer(model, BACKGROUND, **{"max_calls": 4096, **options})
    return explainer, explainer(rows, progress=False)


def adds_up(explanation):
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    size = np.abs(explanation.predictions).max()
    np.testing.assert_allclose(total, explanation.predictions, atol=ROUNDING * size, rtol=0)


def check(values, errors, expected, size):
    """Values (d, k) lie within 4 standard errors."""
    expected = expected.reshape(values.shape)
    assert (np.abs(values - expected) <= 4.0 * errors + ROUNDING * size).all()


@pytest.mark.parametrize(
    ("name", "options"),
    crossed(
        MODELS,
        [{}, {"bandwidth": 0.3}, {"weights": "euclidean"}, {"bins": None}, {"hold": [1]}],
    ),
    ids=str,
)
def test_walks_find_the_shapley_values_of_all_coalitions(name, options):
    model = MODELS[name]
    explainer, explanation = explained(model, **options)
    account, size = explanation.contributions, np.abs(answers(model, X)).max()
    for i, row in enumerate(ROWS):
        v = game(model, explainer, row)
        phi, alone, last = shapley(v)
        errors = account.standard_errors[i]
        check(account.values[i], errors, phi, size)
        if options.get("bandwidth") == 0.3:  # draws change few cells, and few walks tell what follows
            continue
        largest = np.abs(phi).max()
        for ends, expected in ((account.alone[i], alone), (account.last[i], last)):
            assert np.abs(ends.reshape(expected.shape) - expected).max() < 0.5 * largest
        assert np.abs(account.base_values[i] - v[(0,) * row.size]).max() < 0.1 * largest
    adds_up(explanation)
    if "hold" in options:
        assert (account.values[:, 1] == 0).all()
        assert (account.standard_errors[:, 1] == 0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("budget", [200, 800])
def test_intervals_cover(name, budget):
    f, row = FUNCTIONS[name], ROWS[0]
    explainer = limes.TabularExplainer(SimpleNamespace(predict=f), BACKGROUND, law="empirical")
    v = game(SimpleNamespace(predict=f), explainer, row)
    phi, mean = shapley(v)[0], v[(0,) * row.size]
    starts = ProductStarts(explainer.design(row))
    covered, base = [], []
    for seed in range(repeats(200, 100)):
        walks = PermutationSampler(f, Sampling(budget, seed=seed))
        result = walks.at(row, f(row[None]), starts)
        covered.append(np.abs(result.values[0] - phi) <= 1.96 * result.errors[0] + ROUNDING)
        base.append(np.abs(result.base[0] - mean) <= 1.96 * result.base_errors[0] + ROUNDING)
        assert (result.base_errors > 0).all()
    # the standard error of the share of 800 intervals, if those of one walk agreed entirely
    assert np.mean(covered) >= 0.93 - 0.01
    assert np.mean(base) >= 0.93 - 2 * 0.018


def test_walks_are_unbiased():
    f, row = FUNCTIONS["steps"], ROWS[1]
    explainer = limes.TabularExplainer(SimpleNamespace(predict=f), BACKGROUND, law="empirical")
    phi = shapley(game(SimpleNamespace(predict=f), explainer, row))[0]
    starts = ProductStarts(explainer.design(row))
    values = np.stack(
        [
            PermutationSampler(f, Sampling(60, seed=seed)).at(row, f(row[None]), starts).values[0]
            for seed in range(400)
        ]
    )
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - phi) <= 4.0 * error + ROUNDING).all()


def background_game(model, explainer, row, background=BACKGROUND):
    """v(S) = Σ_b w_b f(ξ_S, b_-S) of all sets S, (2,) * d + (k,)."""
    law = explainer._model.law
    weights = law.around(law.cells(row[None])[0]).weights
    values = np.empty((2,) * row.size, dtype=object)
    for kept in np.ndindex(*values.shape):
        values[kept] = weights @ answers(model, np.where(kept, row, background))
    return values


@pytest.mark.parametrize("bandwidth", [np.inf, 1.0])
@pytest.mark.parametrize("name", ["forest", "three classes"])
def test_the_joint_law_gives_interventional_values_of_the_background(name, bandwidth):
    model = MODELS[name]
    explainer, explanation = explained(model, law="joint", bandwidth=bandwidth, method="auto")
    account, size = explanation.contributions, np.abs(answers(model, X)).max()
    for i, row in enumerate(ROWS):
        v = background_game(model, explainer, row)
        if np.isinf(bandwidth):
            np.testing.assert_allclose(v[(0,) * row.size], answers(model, BACKGROUND).mean(axis=0))
        check(account.values[i], account.standard_errors[i], shapley(v)[0], size)
        # the base is known
        assert (account.base_errors[i] <= ROUNDING * size).all()
        np.testing.assert_allclose(
            account.base_values[i].reshape(-1), v[(0,) * row.size], rtol=0, atol=ROUNDING * size
        )
    adds_up(explanation)


@pytest.mark.parametrize("name", [*FUNCTIONS, "forest"])
@pytest.mark.parametrize("budget", [150, 300, 900])
def test_intervals_of_the_joint_law_cover(name, budget):
    f, row, background = FUNCTIONS.get(name, MODELS["forest"].predict), ROWS[0], X[:60]
    model = SimpleNamespace(predict=f)
    explainer = limes.TabularExplainer(model, background, law="joint")
    phi = shapley(background_game(model, explainer, row, background))[0]
    law = explainer._model.law
    starts = OccurringStarts(background, f(background)[:, None], law.around(law.cells(row[None])[0]))
    covered = []
    for seed in range(repeats(200, 100)):
        result = PermutationSampler(f, Sampling(budget, seed=seed)).at(row, f(row[None]), starts)
        covered.append(np.abs(result.values[0] - phi) <= 1.96 * result.errors[0] + ROUNDING)
    # the standard error of the share of 400 intervals
    assert np.mean(covered) >= 0.93 - 0.013


def test_walks_of_the_joint_law_are_unbiased():
    f, row, background = FUNCTIONS["steps"], ROWS[1], X[:21]
    model = SimpleNamespace(predict=f)
    for bandwidth in (np.inf, 1.0):
        explainer = limes.TabularExplainer(model, background, law="joint", bandwidth=bandwidth)
        phi = shapley(background_game(model, explainer, row, background))[0]
        law = explainer._model.law
        starts = OccurringStarts(background, f(background)[:, None], law.around(law.cells(row[None])[0]))
        values = np.stack(
            [
                PermutationSampler(f, Sampling(200, seed=seed)).at(row, f(row[None]), starts).values[0]
                for seed in range(300)
            ]
        )
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - phi) <= 4.0 * error + 1e-3 * np.abs(phi).max()).all()


def test_a_background_that_is_met_as_a_whole_leaves_the_orders_error():
    """For rows that differ, and columns that do not interact, nothing is left to chance."""
    background = X[:24]
    f = lambda x: x[:, 0] ** 2 + np.abs(x[:, 1])  # noqa: E731
    explainer = limes.TabularExplainer(f, background, law="joint", bandwidth=np.inf, tolerance=1e-12)
    account = explainer(ROWS, progress=False).contributions
    expected = np.column_stack([ROWS[:, 0] ** 2, np.abs(ROWS[:, 1])]) - [
        (background[:, 0] ** 2).mean(),
        np.abs(background[:, 1]).mean(),
    ]
    np.testing.assert_allclose(account.values[:, :2], expected, atol=1e-9)
    # what columns do differs between rows, and not between the walks of one
    assert (account.standard_errors[:, :2] < 1e-6).all()


def test_a_read_kink_is_walked_without_a_call():
    model = MLPRegressor(hidden_layer_sizes=(8,), solver="lbfgs", max_iter=3000, random_state=0)
    model.fit(X, Y / 100)
    explainer = limes.TabularExplainer(model, X, law="truncnorm")
    explanation = explainer(ROWS, progress=False)
    account = explanation.contributions
    assert explanation.method == "exact"
    assert explanation.provenance["contributions"].startswith("sampled from the network")
    assert (account.calls == 0).all()
    assert (account.standard_errors > 0).all()
    # E_w f is known, and the base lies within its errors
    features = explainer.features(ROWS)
    mean = explanation.coefficients.intercepts + (features.inclusion * explanation.coefficients.values).sum(
        axis=1
    )
    assert (account.base_errors > 0).all()
    assert (np.abs(account.base_values - mean) < 5 * account.base_errors).all()
    adds_up(explanation)
    strict = limes.TabularExplainer(model, X, method="exact")(ROWS, progress=False)
    with pytest.raises(InputError, match="kink"):
        _ = strict.contributions


def test_probabilities_of_many_trees_are_walked_without_a_call():
    model = GradientBoostingClassifier(n_estimators=100, random_state=0).fit(X, Y > 140)
    explanation = limes.TabularExplainer(model, X)(ROWS, progress=False)
    assert explanation.method == "sampled"
    assert (explanation.contributions.calls == 0).all()
    adds_up(explanation)


BOOSTED = ComputedOnce(
    {
        "two classes": lambda: GradientBoostingClassifier(n_estimators=60, random_state=0).fit(X, Y > 140),
        "three classes": lambda: GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, Y // 120),
        "histograms": lambda: HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(X, Y > 140),
        "a softmax of five lines": lambda: LogisticRegression(max_iter=2000).fit(X, Y // 70),
    }
)


@pytest.mark.parametrize("name", BOOSTED)
@pytest.mark.parametrize("options", [{}, {"bandwidth": 0.5}, {"hold": [1]}, {"bins": None}], ids=str)
def test_curves_of_read_margins_are_walked_to_one_percent(name, options):
    model, background = BOOSTED[name], X[:5]
    explainer = limes.TabularExplainer(model, background, law="empirical", method="auto", **options)
    explanation = explainer(ROWS, progress=False)
    assert explanation.method == "sampled"
    account = explanation.contributions
    assert (account.calls == 0).all()
    for i, row in enumerate(ROWS):
        phi = shapley(game(model, explainer, row))[0]
        check(account.values[i], account.standard_errors[i], phi, 1.0)
        largest = np.abs(account.values[i]).max(axis=0)
        assert (account.standard_errors[i] <= 0.01 * largest + ROUNDING).all()
        base = explanation.predictions[i] - phi.reshape(account.values[i].shape).sum(axis=0)
        check(account.base_values[i], account.base_errors[i], base, 1.0)
        # the base is known to 1.5 %, too, unless walks are as many as they may be before
        assert account.row_converged[i] == (account.base_errors[i] <= 0.015 * largest + ROUNDING).all()
        assert account.row_converged[i] or name == "a softmax of five lines"
    adds_up(explanation)
    if account.values.shape[-1] == 2:
        np.testing.assert_array_equal(account.values[..., 0], -account.values[..., 1])


@pytest.mark.parametrize("name", ["two classes", "three classes", "a softmax of five lines"])
def test_intervals_behind_a_curve_cover(name):
    model, row = BOOSTED[name], ROWS[0]
    explainer = limes.TabularExplainer(model, X[:5], law="empirical", method="auto")
    phi = shapley(game(model, explainer, row))[0]
    form, family = explainer._model.bound.read_predict, explainer._model.family
    cells = family.cells(row[None])
    margins = ControlVariates(form.contributions(family, row[None], cells)[0])
    starts, prediction = ProductStarts(explainer.design(row)), answers(model, row[None])[0]
    covered, plain = [], []
    for seed in range(repeats(100, 40)):
        for its, within in ((margins, covered), (None, plain)):
            # a tolerance that is met at the first look, so that when to stop is no choice
            sampling = Sampling(4096, seed=seed, tolerance=Tolerance(1.0))
            result = PermutationSampler(form, sampling).at(row, prediction, starts, its)
            within.append((np.abs(result.values[0] - phi) <= 1.96 * result.errors[0] + ROUNDING)[:, -1])
    for within in (covered, plain):
        assert np.mean(within) >= 0.93 - 0.015


def test_the_margin_is_a_control():
    model, row = BOOSTED["two classes"], ROWS[0]
    explainer = limes.TabularExplainer(model, X, method="auto")
    explainer(row[None], progress=False)
    form, family = explainer._model.bound.read_predict, explainer._model.family
    margins = ControlVariates(form.contributions(family, row[None], family.cells(row[None]))[0])
    starts, prediction = ProductStarts(explainer.design(row)), answers(model, row[None])[0]
    walks = PermutationSampler(form, Sampling(4096, tolerance=Tolerance(1.0)))
    with_margins, without = (walks.at(row, prediction, starts, its).errors for its in (margins, None))
    assert (with_margins.max(axis=1) < 0.8 * without.max(axis=1)).all()


def rows_on_the_way(row, starts, orders):
    rows = np.repeat(starts[:, None], row.size + 1, axis=1)
    for walk, order in zip(rows, orders, strict=True):
        for step, j in enumerate(order):
            walk[step + 1 :, j] = row[j]
    return rows


def of_pairs_and_triples(columns, rng):
    """Functions of one column each, and products of two and of three, with missing values and categories."""
    reads = np.array([[0, 1, -1], [1, 2, -1], [0, 1, 2], [0, 1, -1], [columns - 1, 0, 1]])
    functions = []
    for j in range(columns):
        if j not in reads:
            functions.append(None)
            continue
        values, missing, other = rng.normal(size=(5, 4)), rng.normal(size=5), rng.normal(size=5)
        left_out = ~(reads == j).any(axis=1)
        values[left_out] = missing[left_out] = other[left_out] = 1.0
        of_codes = Lookup(np.arange(4.0) / 10.0, values, missing, other)
        functions.append(of_codes if j == 1 else Step(np.array([-0.5, 0.0, 0.4]), values, missing))
    products = Reduced(SumOfProducts(tuple(functions), rng.normal(size=5), np.array(0.3)))
    return forms.Combination([forms.Linear(rng.normal(size=columns)), products], np.array([0.1, 2.0]))


@pytest.mark.parametrize("kind", ["by rows", "in proportion", "of pairs", "down trees"])
@pytest.mark.parametrize("columns", [3, 300])
@pytest.mark.parametrize("walks", [1, 7])
def test_answers_along_walks_are_those_of_the_rows_on_their_way(kind, columns, walks, monkeypatch):
    """Few walks at a time where rows are written out, in two bytes a step where columns are many."""
    rng = np.random.default_rng(columns)
    linear = forms.Linear(rng.normal(size=columns))
    x = rng.normal(size=(200, columns)).round(1)
    margin = {
        "by rows": lambda: forms.Combination([linear, linear], np.array([0.5, 0.25])),
        "in proportion": lambda: linear,
        "of pairs": lambda: of_pairs_and_triples(columns, rng),
        "down trees": lambda: limes.models.read(
            GradientBoostingClassifier(n_estimators=9, random_state=0).fit(x, x[:, -1] > x[:, 0]), "margin"
        ),
    }[kind]()
    form = curved_margins.CurvedMargin(margin, np.tanh)
    assert (form._interacting is not None) == (kind == "of pairs")
    row, starts = x[0], x[1 : 1 + walks]
    orders = rng.permuted(np.tile(np.arange(columns), (walks, 1)), axis=1)
    rows = rows_on_the_way(row, starts, orders).reshape(-1, columns)
    whole = form.along(row, starts, orders)
    monkeypatch.setattr(curved_margins, "_NUMBERS", 2 * columns * (columns + 1))
    few = form.along(row, starts, orders)
    assert whole[0].shape == (walks, columns + 1, 1)
    np.testing.assert_allclose(whole[0].ravel(), np.tanh(margin.predict(rows)), rtol=0, atol=ROUNDING)
    assert np.array_equal(few[0], whole[0])
    assert np.array_equal(few[1], whole[1])


def counted(f):
    sizes = []

    def model(x):
        sizes.append(len(x))
        return f(x)

    return model, sizes


@pytest.mark.parametrize("law", ["empirical", "truncnorm", "joint"])
def test_calls_are_counted_and_within_the_budget(law):
    model, sizes = counted(FUNCTIONS["product"])
    # an absolute tolerance that is never met
    options = {"law": law, "max_calls": 333, "tolerance": 1e-12, "batch_size": 50}
    _, explanation = explained(model, **options)
    account, before = explanation.contributions, sum(sizes)
    assert before == explanation.model_calls + explanation.shared_calls.max()
    assert explanation.model_calls == account.calls.sum() + len(explanation)
    assert (account.calls + explanation.calls + explanation.shared_calls <= 333).all()
    assert max(sizes) <= 50
    # a second look, and a selection, ask nothing
    assert explanation[1].contributions.calls == account.calls[1:]
    assert sum(sizes) == before
    adds_up(explanation)


def test_walks_stop_at_the_tolerance():
    explanations = [explained(FUNCTIONS["kink"], law="truncnorm", tolerance=t)[1] for t in ("20%", "0.5%")]
    rough, fine = (one.contributions for one in explanations)
    assert (rough.calls < fine.calls).all()
    for account, its, share in zip((rough, fine), explanations, (0.2, 0.005), strict=True):
        largest = np.abs(account.values).max(axis=1)
        spent = account.calls + its.calls + its.shared_calls
        assert ((account.standard_errors.max(axis=1) <= share * largest) | (spent > 3700)).all()


def test_too_few_calls_are_refused_with_a_number():
    model, _ = counted(lambda x: x[:, 0] * x[:, 1] * x[:, 17])
    wide = np.random.default_rng(0).normal(size=(60, 60))
    with pytest.raises(InputError, match="max_calls=12 is too few"):
        limes.TabularExplainer(model, wide, max_calls=12)(wide[:1], progress=False)
    for calls in (16, 300):
        explanation = limes.TabularExplainer(model, wide, max_calls=calls)(wide[:1], progress=False)
        assert (explanation.contributions.standard_errors > 0.0).all()
        adds_up(explanation)


@pytest.mark.parametrize("law", ["truncnorm", "joint"])
def test_a_row_has_the_same_contributions_alone_and_in_a_batch(law):
    f = FUNCTIONS["product"]
    both = explained(f, law=law, rng=7)[1].contributions
    again = explained(f, law=law, rng=7)[1].contributions
    alone = explained(f, ROWS[1:], law=law, rng=7)[1].contributions
    other = explained(f, law=law, rng=8)[1].contributions
    for name in ("values", "base_values", "standard_errors", "alone", "last", "calls"):
        np.testing.assert_array_equal(getattr(both, name), getattr(again, name))
        np.testing.assert_array_equal(getattr(both, name)[1:], getattr(alone, name))
    # all rows of a background are few, and asked about
    assert (both.values == other.values).all() == (both.standard_errors == 0).all() == (law == "joint")


def test_columns_that_change_nothing_have_no_contribution_within_the_error():
    account = explained(lambda x: x[:, 0] * x[:, 2], law="truncnorm")[1].contributions
    assert (account.values[:, [1, 3]] == 0).all()
    errors, largest = account.standard_errors[:, [1, 3]], np.abs(account.values).max(axis=1)
    assert (errors > 0).all()
    assert (errors < 0.1 * largest[:, None]).all()


def test_errors_are_infinite_where_no_walk_changes_the_prediction():
    rare = explained(lambda x: 5.0 + (x[:, 0] > 1e6), law="truncnorm")[1].contributions
    assert (rare.values == 0).all()
    assert np.isinf(rare.standard_errors).all()
    share = explained(lambda x: 0.5 * (x[:, 0] > -1e6), law="truncnorm")[1].contributions
    # the rule of three, of a share
    assert (share.standard_errors < 3.0 / 200).all()


def test_a_row_like_all_others_costs_nothing():
    table = np.repeat(ROWS[:1], 5, axis=0)
    model, sizes = counted(FUNCTIONS["kink"])
    explainer = limes.TabularExplainer(model, table, contributions=False)
    explanation = explainer(ROWS[:1], progress=False)
    before = sum(sizes)
    account = explanation.contributions
    assert (account.values == 0).all()
    np.testing.assert_array_equal(account.base_values, explanation.predictions)
    assert sum(sizes) == before + account.calls.sum()
    assert account.calls == 8  # a few rows are asked again


def test_missing_values_are_equal_to_each_other():
    table = np.array([[0.0, np.nan], [1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])
    explanation = limes.TabularExplainer(lambda x: x[:, 0] ** 2 + np.isnan(x[:, 1]), table)(
        table[:1], progress=False
    )
    assert (explanation.contributions.values[:, 1] == 0).all()


def test_a_model_that_fails_says_so_and_finished_rows_are_kept():
    fails = [False]
    sizes = []

    def model(x):
        if fails[0] and len(sizes) > 2:
            raise RuntimeError("down")
        sizes.append(len(x))
        return FUNCTIONS["product"](x)

    _, explanation = explained(model, law="truncnorm", contributions=False)
    sizes.clear()
    fails[0] = True
    with pytest.raises(ModelError, match="down"):
        _ = explanation.contributions
    fails[0] = False
    expected = explained(FUNCTIONS["product"], law="truncnorm")[1].contributions
    np.testing.assert_array_equal(explanation.contributions.values, expected.values)


def test_noise_at_the_row_is_in_the_errors():
    rng = np.random.default_rng(0)

    def model(x):
        return FUNCTIONS["product"](x) + rng.normal(size=len(x))

    account = explained(model, law="truncnorm")[1].contributions
    # four columns share a noise of 1
    assert (account.standard_errors > 0.25).all()


def test_trees_fitted_to_the_pool_are_a_control():
    f, row = FUNCTIONS["product"], ROWS[:1]

    def account(seed):
        explainer = limes.TabularExplainer(f, X, law="truncnorm", tolerance=1e-12, max_calls=3000, rng=seed)
        explanation = explainer(row, progress=False)
        assert explanation.shared_calls[0] > 0
        return explainer, explanation.contributions

    explainer, first = account(0)
    single = PermutationSampler(f, Sampling(int(first.calls[0]), seed=0)).at(
        row[0], f(row), ProductStarts(explainer.design(row[0]))
    )
    assert (first.standard_errors[0] < 0.9 * single.errors[0, :, 0]).mean() >= 0.5
    # the game of a product of functions of independent columns
    middles = np.tile((np.arange(20_000)[:, None] + 0.5) / 20_000, (1, 4))
    means = (1.0 + 0.5 * np.tanh(explainer.design(row[0]).draw(middles)[0])).mean(axis=0)
    v = np.empty((2,) * 4, dtype=object)
    for kept in np.ndindex(*v.shape):
        v[kept] = np.array([np.where(kept, 1.0 + 0.5 * np.tanh(row[0]), means).prod()])
    phi = shapley(v)[0][:, 0]
    covered = []
    for seed in range(repeats(40, 20)):
        its = account(seed)[1]
        covered.append(np.abs(its.values[0] - phi) <= 1.96 * its.standard_errors[0])
    assert np.mean(covered) >= 0.9


def test_random_answers_still_add_up():
    rng = np.random.default_rng(0)

    def model(x):
        return FUNCTIONS["product"](x) + 0.1 * rng.normal(size=len(x))

    _, explanation = explained(model, law="truncnorm", hold=[1])
    account = explanation.contributions
    assert (account.values[:, 1] == 0).all()
    assert (account.calls <= 4096).all()
    adds_up(explanation)


WIDE = np.hstack(
    [load_diabetes(return_X_y=True)[0] * 20.0, np.random.default_rng(0).normal(size=(len(Y), 8))]
)
READ = np.arange(WIDE.shape[1]) < 10


def network_without_the_last():
    network = MLPRegressor(hidden_layer_sizes=(6,), solver="lbfgs", max_iter=9000, random_state=0).fit(
        WIDE, Y / 100.0
    )
    network.coefs_[0][~READ] = 0.0
    return network


WITHOUT_THE_LAST = ComputedOnce(
    {
        "boosted probability": lambda: GradientBoostingClassifier(
            n_estimators=30, max_depth=4, random_state=0
        ).fit(np.where(READ, WIDE, 0.0), Y > 140),
        "ReLU network": network_without_the_last,
    }
)


@pytest.mark.parametrize("law", ["empirical", "joint"])
@pytest.mark.parametrize("name", WITHOUT_THE_LAST)
def test_columns_that_a_read_model_does_not_use_have_no_error(name, law):
    model = WITHOUT_THE_LAST[name]
    moved = np.where(READ, WIDE, WIDE[::-1])
    ask = getattr(model, "predict_proba", model.predict)
    np.testing.assert_array_equal(ask(moved), ask(WIDE))
    explainer = limes.TabularExplainer(model, WIDE[:60], law=law, groups={"noise": [10, 12]})
    explanation = explainer(WIDE[[3, 70]], progress=False)
    account = explanation.contributions
    assert account.method == "sampled"
    for one in ("noise", "x11", "x17"):
        its = account[:, one]
        assert not its.values.any()
        assert not its.standard_errors.any()
        assert not np.nan_to_num(its.alone).any()
        assert not np.nan_to_num(its.last).any()
    adds_up(explanation)
    # the columns that are used keep theirs
    assert account[:, "x8"].standard_errors.all()
