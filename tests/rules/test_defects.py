"""Promises that sparse rules broke, each with the case that showed it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVR

import limes
from effort import repeats
from internals import (
    Bump,
    Decay,
    Filled,
    Identity,
    Lookup,
    Polynomial,
    Power,
    Reduced,
    Stacked,
    Step,
    Sum,
    SumOfProducts,
    bounds_of,
    sparse_model,
)
from limes.exceptions import InputError
from limes.models.forms import Linked


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def law_of(d, spread=1.0):
    """All rows of {±1}^d and their probabilities around (1, ..., 1)."""
    rows = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    weight = np.exp(-spread * (rows < 0).sum(axis=1))
    return rows, weight / weight.sum()


def bent(d, seed=0):
    weights = np.random.default_rng(seed).normal(size=(d, 3)) / np.sqrt(d)
    return lambda rows: np.tanh(rows @ weights).mean(axis=1)


# -- D1: exact is the same for every seed -------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["linear", "forest", "boosting"])
def test_an_exact_rule_is_the_same_for_every_seed(diabetes, kind, intercept):
    x, y = diabetes
    models = {
        "linear": LinearRegression(),
        "forest": RandomForestRegressor(10, max_depth=5, random_state=0),
        "boosting": GradientBoostingRegressor(n_estimators=20, random_state=0),
    }
    model, literals = models[kind].fit(x, y), limes.Literals.fit(x)
    rules = [
        limes.SparseExplainer(model, literals=literals, k=3, intercept=intercept, rng=seed)(x.iloc[[3]])
        for seed in range(4)
    ]
    first = rules[0]
    assert first.method == "exact"
    assert first.certificate.assumption == ""
    assert first.certificate.optimum == "population"
    for other in rules[1:]:
        assert np.array_equal(other.coefficients.values, first.coefficients.values)
        assert np.array_equal(other.coefficients.intercepts, first.coefficients.intercepts)
        assert other.rule() == first.rule()
        assert other.certificate.scale == first.certificate.scale


def test_an_exact_rule_without_a_known_range_is_the_same_for_every_seed(diabetes):
    """Kernels have no range that is read; the unit of the problem must not be one that was drawn."""
    x, y = diabetes
    model, literals = SVR(C=10.0, gamma=1e-3).fit(x.to_numpy(), y), limes.Literals.fit(x.to_numpy())
    first, second = (
        limes.SparseExplainer(model, literals=literals, k=3, rng=seed)(x.to_numpy()[[3]]) for seed in (0, 1)
    )
    assert first.method == "exact"
    assert first.certificate.assumption
    assert np.array_equal(first.coefficients.values, second.coefficients.values)
    assert np.array_equal(first.coefficients.intercepts, second.coefficients.intercepts)


# -- ranges -------------------------------------------------------------------------------------------------


def test_a_known_range_holds_for_every_row(diabetes):
    """Sums reach both ends of theirs; trees stay between their leaves."""
    x, y = diabetes
    literals = limes.Literals.fit(x)
    linear = LinearRegression().fit(x, y)
    low, high = limes.SparseExplainer(linear, literals=literals, k=2)(x.iloc[[0]]).certificate.scale
    reach = np.sort(
        np.stack([linear.coef_ * x.to_numpy().min(axis=0), linear.coef_ * x.to_numpy().max(axis=0)]), axis=0
    )
    ends = linear.intercept_ + reach.sum(axis=1)
    assert ends[0] - 1e-9 <= low < high <= ends[1] + 1e-9
    forest = RandomForestRegressor(7, max_depth=4, random_state=0).fit(x, y)
    low, high = limes.SparseExplainer(forest, literals=literals, k=2)(x.iloc[[0]]).certificate.scale
    leaves = [tree.tree_.value[tree.tree_.children_left < 0, 0, 0] for tree in forest.estimators_]
    assert low == pytest.approx(np.mean([leaf.min() for leaf in leaves]))
    assert high == pytest.approx(np.mean([leaf.max() for leaf in leaves]))


def test_probabilities_lie_between_0_and_1(diabetes):
    x, y = diabetes
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, y > 150)
    for options in ({}, {"method": "sampled"}, {"solver": "branch_and_bound"}):
        explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=2, **options)
        certificate = explainer(x.iloc[[0]]).certificate
        assert certificate.scale == (0.0, 1.0)
        assert certificate.assumption == ""


# -- D2: intervals cover ------------------------------------------------------------------------------------


def test_intervals_cover_the_best_weights_of_the_chosen_literals():
    """The support is chosen by the sample; its weights in the population are enumerated. Five models."""
    d, covered = 10, []
    rows, weight = law_of(d)
    root = np.sqrt(weight)
    for number in range(5):
        model = bent(d, number)
        values = model(rows) - model(np.ones((1, d)))
        for seed in range(repeats(100, 50)):
            rule = limes.SparseExplainer(model, k=3, samples=500, fresh=50, rng=seed)(np.ones((1, d)))
            support = np.flatnonzero(rule.coefficients.values[0])
            best, *_ = np.linalg.lstsq(root[:, None] * (rows[:, support] - 1.0), root * values, rcond=None)
            misses = np.abs(rule.coefficients.values[0, support] - best)
            covered.extend(misses <= 1.96 * rule.coefficients.standard_errors[0, support])
    assert np.mean(covered) >= 0.93


# -- D4: bounds hold, or say that they cannot ---------------------------------------------------------------


def spike(rows):
    return np.where((rows[:, :8] < 0).all(axis=1), 1000.0, 0.0) + 0.1 * rows[:, 10]


def tail(rows):
    return np.exp(1.5 * (rows[:, :9] < 0).sum(axis=1)) * (rows[:, 9] > 0)


@pytest.mark.parametrize("model", [spike, tail])
def test_bounds_hold_on_rare_and_large_answers_or_say_that_they_cannot(model):
    d = 12
    rows, weight = law_of(d)
    values = model(rows)
    scale, failures, seeds = (values.min() - 1e-9, values.max() + 1e-9), 0, repeats(100, 30)
    for seed in range(seeds):
        options = {"k": 2, "samples": 300, "rng": seed}
        rule = limes.SparseExplainer(model, scale=scale, **options)(np.ones((1, d)))
        truth = weight @ (rule.coefficients.intercepts[0] + rows @ rule.coefficients.values[0] - values) ** 2
        failures += truth > rule.certificate.bounds["fidelity"]
        assert rule.certificate.assumption == ""
    assert failures <= 0.05 * seeds + 3 * np.sqrt(0.05 * seeds)
    assumed = limes.SparseExplainer(model, **options)(np.ones((1, d)))
    assert "pass scale=(low, high)" in assumed.certificate.assumption
    assert "pass scale=(low, high)" in " ".join(str(assumed).split())


def test_a_promise_on_an_assumed_range_is_warned_about():
    model = lambda rows: 0.5 * rows[:, 0] + 0.01 * rows[:, 1]  # noqa: E731
    options = {"k": "smallest", "error": 0.2}
    assumed = limes.SparseExplainer(model, **options)(np.ones((1, 6)))
    assert any("rests on the range" in text for text in assumed.warnings)
    passed = limes.SparseExplainer(model, scale=(-0.51, 0.51), **options)(np.ones((1, 6)))
    assert not passed.warnings
    assert passed.certificate.bounds["precision"] <= 0.2


# -- D5: a poor fit has a warning ----------------------------------------------------------------------------


def parity(rows):
    return np.prod(rows[:, :4], axis=1)


def test_a_rule_worse_than_the_mean_is_the_headline():
    explanation = limes.SparseExplainer(lambda z: 0.3 * z[:, 0] + 0.6, k=3, intercept=False)(np.ones((1, 8)))
    assert explanation.certificate.r2 < 0
    assert any("R² is -" in text for text in explanation.warnings)
    for text in (" ".join(str(explanation).split()), explanation.to_html()):
        assert "worse than the mean answer" in text


def test_a_rule_that_tells_less_than_a_tenth_is_warned_about():
    explanation = limes.SparseExplainer(parity, k=2, spread=0.3)(np.ones((1, 8)))
    assert explanation.certificate.r2 < 0.1
    assert any(text.startswith("R² is") for text in explanation.warnings)
    good = limes.SparseExplainer(lambda z: z[:, 0], k=2)(np.ones((1, 8)))
    assert good.certificate.r2 == pytest.approx(1.0)
    assert not good.warnings


# -- D6: proved is what was proved --------------------------------------------------------------------------


def test_an_estimated_optimum_is_not_proved():
    model, x = bent(10), np.ones((1, 10))
    estimate = limes.SparseExplainer(model, k=3)(x).certificate
    assert not estimate.proved
    assert estimate.optimum == "estimate"
    assert 0.0 <= estimate.stability <= 1.0
    sample = limes.SparseExplainer(model, k=3, solver="branch_and_bound")(x).certificate
    assert sample.proved
    assert sample.optimum == "sample"
    assert np.isnan(sample.stability)


def test_stability_is_how_often_other_samples_choose_the_same_literals():
    """Over five models: the mean of the shares against how often two samples agree."""
    shares, agreement = [], []
    for number in range(5):
        explain = [
            limes.SparseExplainer(bent(10, number), k=3, samples=500, fresh=50, rng=seed)
            for seed in range(repeats(50, 20))
        ]
        rules = [explainer(np.ones((1, 10))) for explainer in explain]
        supports = [tuple(np.flatnonzero(rule.coefficients.values[0])) for rule in rules]
        agreement.append(np.mean([a == b for i, a in enumerate(supports) for b in supports[:i]]))
        shares.append(np.mean([rule.certificate.stability for rule in rules]))
    assert np.mean(shares) == pytest.approx(np.mean(agreement), abs=0.1)


def test_a_near_tie_is_named():
    model = lambda z: 0.4 * z[:, 0] + 0.1 * z[:, 1] + 0.098 * z[:, 2] + 0.2 * z[:, 3] * z[:, 4]  # noqa: E731
    rule = limes.SparseExplainer(model, k=2, samples=300)(np.ones((1, 6)))
    assert rule.certificate.near_ties
    assert (
        not {f"x{j}" for j in np.flatnonzero(rule.coefficients.values[0])} & rule.certificate.near_ties.keys()
    )
    assert "others: x" in " ".join(str(rule).split())
    firm = limes.SparseExplainer(lambda z: 0.4 * z[:, 0] + 0.2 * z[:, 1], k=2)(np.ones((1, 6)))
    assert firm.certificate.stability == 1.0
    assert firm.certificate.near_ties == {}


# -- D7: models that are read are not asked -----------------------------------------------------------------


def test_a_readable_model_is_not_asked_row_by_row(diabetes):
    x, y = diabetes
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(x, y)
    explanation = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=3)(
        x.iloc[:3], progress=False
    )
    assert (explanation.calls == 0).all()
    assert explanation.predictions == pytest.approx(model.predict(x.iloc[:3]), rel=1e-12)


# -- D8: more than 20 literals ------------------------------------------------------------------------------


@pytest.mark.parametrize(("solver", "k"), [("projection", 25), ("convex", 5)])
def test_more_than_20_literals_have_a_precision(solver, k):
    if solver == "convex":
        pytest.importorskip("cvxpy")
    model, x = bent(30), np.ones((1, 30))
    explanation = limes.SparseExplainer(model, k=k, solver=solver)(x)
    certificate = explanation.certificate
    used = np.count_nonzero(explanation.coefficients.values)
    assert used > 20
    flip = 1.0 / (1.0 + np.e)
    assert certificate.coincidence == pytest.approx((1 - flip) ** used)
    free = np.flatnonzero(explanation.coefficients.values[0] == 0)
    rows, weight = law_of(free.size) if free.size else (np.ones((1, 0)), np.ones(1))
    whole = np.ones((len(rows), 30))
    whole[:, free] = rows
    assert certificate.precision == pytest.approx(weight @ np.abs(model(whole) - model(x)), abs=1e-12)


# -- D10: the box -------------------------------------------------------------------------------------------


def test_a_weight_at_the_end_of_the_box_is_named_as_the_reason():
    model = lambda z: np.where(np.sin(100.0 * (z @ np.arange(1.0, 7.0) ** 2)) > 0, 1.0, -1.0)  # noqa: E731
    options, x = {"k": 4, "samples": 12, "intercept": False}, np.ones((1, 6))
    rules = [
        limes.SparseExplainer(model, box=1.0, rng=seed, solver=solver, **options)(x)
        for solver, seed in product(["hard_thresholding", "branch_and_bound"], range(20))
    ]
    boxed = [rule for rule in rules if np.abs(rule.coefficients.values).max() == pytest.approx(1.0)]
    searched = [rule for rule in boxed if rule.certificate.solver == "branch_and_bound"]
    assert 0 < len(searched) < len(boxed)
    for rule in boxed:
        # branch and bound goes on in the box, and needs no excuse
        assert rule.certificate.proved == (rule.certificate.solver == "branch_and_bound")
        named = any("ends at the box of 1" in text for text in rule.warnings)
        assert named != rule.certificate.proved
        assert not any("time_limit" in text for text in rule.warnings)
    assert all(
        limes.SparseExplainer(
            model, rng=seed, **{**options, "solver": "branch_and_bound", "intercept": intercept}
        )(x).certificate.proved
        for intercept, seed in product([True, False], range(10))
    )


# -- D12, D13: what cannot work is refused at once ----------------------------------------------------------


def test_thresholds_without_effect_are_refused(diabetes):
    x, y = diabetes
    literals = limes.Literals.fit(x, encoding="thresholds")
    with pytest.raises(InputError, match="encoding='bins'"):
        limes.SparseExplainer(LinearRegression().fit(x, y), literals=literals)


def test_a_model_of_other_columns_is_refused_before_it_is_read(diabetes):
    x, y = diabetes
    model = LinearRegression().fit(x, y)
    with pytest.raises(InputError, match=r"fitted on 10 columns.*have 38"):
        limes.SparseExplainer(model, literals=limes.Literals.fit(x), neighbourhood="flips")


def test_rows_of_a_table_without_literals_are_refused_before_the_model_is_read(monkeypatch):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["u", "v", "u", "v"]})
    model = LinearRegression().fit(frame[["a"]], [1, 2, 3, 4])
    explainer = limes.SparseExplainer(model, k=1)
    monkeypatch.setattr(sparse_model, "read_output", lambda *_, **__: pytest.fail("read too early"))
    with pytest.raises(InputError, match=r"limes\.Literals\.fit"):
        explainer(frame)


# -- D14: numbers that mean nothing are not shown -----------------------------------------------------------


def test_the_theorem_is_shown_for_the_papers_form_alone():
    model, x = bent(8), np.ones((1, 8))
    assert limes.SparseExplainer(model, k=2)(x).certificate.theory == {}
    explanation = limes.SparseExplainer(model, k=2, intercept=False)(x)
    needed = (32 * np.log(16) + 8 * np.log(40)) * 9 / 0.1**2
    assert explanation.certificate.theory["samples_for_0.1"] == np.ceil(needed)
    assert "theor" not in str(explanation).lower()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "branch_and_bound", "tolerance": "5%"}, "tolerance must be a finite number >= 0"),
        ({"solver": "branch_and_bound", "gap": 1.0}, "gap is a share"),
        ({"solver": "branch_and_bound", "gap": 0.1, "tolerance": 0.1}, "two names"),
        ({"solver": "branch_and_bound", "time_limit": 0}, "time_limit"),
        ({"solver": "branch_and_bound", "threads": 0}, "threads"),
        ({"solver": "projection", "gap": 0.1}, "proves no optimum"),
    ],
)
def test_options_of_the_search_are_checked_before_a_row_is_explained(options, message):
    with pytest.raises(InputError, match=message):
        limes.SparseExplainer(lambda rows: rows[:, 0], **options)


@pytest.mark.parametrize("seed", range(3))
def test_errors_of_exact_rules_are_errors(seed):
    """With an exact Γ the objective was F less the error of an estimate, and could be negative."""
    Z = np.random.default_rng(0).choice([-1.0, 1.0], (200, 3))
    model = LinearRegression().fit(Z, Z[:, 0] + 0.5 * Z[:, 1])
    short, whole = (limes.SparseExplainer(model, k=k, rng=seed)(np.ones((1, 3))).certificate for k in (1, 2))
    assert whole.objective == pytest.approx(0.0, abs=1e-20)
    assert whole.lower_bound == pytest.approx(0.0, abs=1e-20)
    assert 0.0 <= short.lower_bound <= short.objective == short.fresh_fidelity


# -- bounds of functions of columns -------------------------------------------------------------------------


def _kinds(rng):
    """Forms of four columns: numbers, numbers, four categories, numbers that may be missing."""
    line = Polynomial(np.array([[0.5, 1.0, 0.0]]), 0.3, np.array([2.0]))
    curves = Polynomial(rng.normal(size=(3, 3)), 0.2, rng.normal(size=3))
    bumps, decays = Bump(rng.normal(size=3), 2.0), Decay(rng.normal(size=3), 1.5)
    levels = Lookup(np.arange(4.0), rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=3))
    filled = Filled(bumps, rng.normal(size=3), rng.normal(size=3))
    powers = Power(np.array([0, 1, 2]))
    stacked = Stacked((Identity(), Bump(rng.normal(size=2), 1.0)))
    steps = Step(np.sort(rng.normal(size=4)), rng.normal(size=(3, 5)), rng.normal(size=3))
    coef = rng.normal(size=3)
    yield Reduced(SumOfProducts((bumps, decays, levels, filled), coef, np.array(0.5)))
    yield Reduced(SumOfProducts((powers, stacked, levels, curves), coef, np.array(-0.5)))
    yield Reduced(SumOfProducts((None, steps, levels, filled), coef, np.array(0.0)))
    loadings = [rng.normal(size=(m, 5)) for m in (1, 3, 3, 3)]
    sums = (
        ((line, bumps, levels, filled), "tanh"),
        ((line, curves, levels, filled), "relu"),
        ((line, stacked, levels, steps), "logistic"),
        ((line, powers, levels, filled), "softplus"),
    )
    for functions, link in sums:
        yield Linked(
            Reduced(Sum(functions, tuple(loadings), rng.normal(size=5))), link, rng.normal(size=5), 0.1
        )


@pytest.mark.parametrize("seed", range(repeats(30, 8)))
def test_no_row_of_a_box_is_outside_its_bounds(seed):
    rng = np.random.default_rng(seed)
    for form in _kinds(rng):
        bounds = bounds_of(form)
        for _ in range(20):
            ends = [np.sort(rng.normal(size=2)) for _ in range(4)]
            box = [*ends[:2], np.flatnonzero(rng.permutation(4) < rng.integers(1, 5)).astype(float), ends[3]]
            rows = np.column_stack([rng.uniform(*its, 2000) for its in ends])
            for j, its in enumerate(ends):  # ends and what lies beside breaks, too
                rows[:200, j] = rng.choice(its, 200)
            for j in range(4):
                if bounds.texture(j).between == "constant":
                    box[j] = box[j] if j == 2 else np.append(ends[j], rng.uniform(*ends[j], 3))
                    rows[:, j] = rng.choice(box[j], 2000)
            if bounds.texture(3).between is not None and rng.random() < 0.5:
                box[3] = np.append(box[3], np.nan)
                rows[:300, 3] = np.nan
            its, answers = bounds(tuple(box)), form.predict(rows)
            assert its.low <= answers.min()
            assert answers.max() <= its.high
            one = bounds(tuple(value[None] for value in rows[0]))
            assert one.low == pytest.approx(answers[0], rel=1e-12, abs=1e-12)
            assert one.high == pytest.approx(answers[0], rel=1e-12, abs=1e-12)
            assert not one.stakes.any()
            np.testing.assert_allclose(bounds.values(rows), answers)
