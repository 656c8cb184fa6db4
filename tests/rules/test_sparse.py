"""Sparse explanations end to end: consistency, certificates that hold, types of input, bad input."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import limes
import oracle
from effort import repeats
from internals import SOLVERS, _sparse_pipeline, bernstein_bound
from limes.exceptions import InputError, Interrupted, ModelError, NotReadableError, UnknownOptionError


def bent(d, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(d, 3)) / np.sqrt(d)
    return lambda rows: np.tanh(rows @ weights).mean(axis=1)


def signs(n, d, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], (n, d))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_base_and_weights_add_up_to_the_prediction(solver, intercept):
    if solver == "convex":
        pytest.importorskip("cvxpy")
    model, rows = bent(15), signs(3, 15)
    explainer = limes.SparseExplainer(model, k=4, solver=solver, intercept=intercept)
    explanation = explainer(rows, progress=False)
    facts = (explanation.coefficients.values * rows).sum(axis=1)
    assert explanation.coefficients.intercepts + facts == pytest.approx(model(rows), abs=1e-9)
    assert (explanation.coefficients.intercepts != 0).all() == intercept
    assert explanation.coefficients.surrogate_predictions == pytest.approx(explanation.predictions, abs=1e-9)
    if solver != "convex":
        assert (np.count_nonzero(explanation.coefficients.values, axis=1) <= 4).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_a_readable_model_over_literals_is_explained_exactly(intercept):
    x = signs(200, 8)
    model = RandomForestRegressor(5, random_state=0).fit(x, bent(8)(x))
    explanation = limes.SparseExplainer(model, k=3, intercept=intercept)(x[:1])
    assert explanation.method == "exact"
    assert (explanation.coefficients.standard_errors == 0).all()
    # against all rows, by the definition
    rows = 1.0 - 2.0 * ((np.arange(2**8)[:, None] >> np.arange(8)) & 1)
    weight = np.exp(-1.0 * (rows != x[0]).sum(axis=1))
    values = model.predict(rows)

    def loss(rule):
        return (
            weight
            @ (rule.coefficients.intercepts[0] + rows @ rule.coefficients.values[0] - values) ** 2
            / weight.sum()
        )

    for seed in range(5):
        sampled = limes.SparseExplainer(model, k=3, solver="branch_and_bound", intercept=intercept, rng=seed)
        assert loss(explanation) <= loss(sampled(x[:1])) * (1 + oracle.EXACT)
    if not intercept:
        return
    target, least = float(explanation.predictions[0]), np.inf
    for support in combinations(range(8), 3):
        away = rows[:, support] - x[0, support]
        root = np.sqrt(weight)[:, None]
        u, *_ = np.linalg.lstsq(root * away, root[:, 0] * (values - target), rcond=None)
        least = min(least, weight @ (away @ u - (values - target)) ** 2 / weight.sum())
    assert loss(explanation) == pytest.approx(least, rel=oracle.EXACT)


def test_bounds_hold_with_their_confidence():
    """Against all rows: every bound of the certificate at once."""
    d, model, x = 10, bent(10, 3), np.ones((1, 10))
    rows = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    weight = np.exp(-1.0 * (rows < 0).sum(axis=1))
    weight /= weight.sum()
    values, target, held, sharp = model(rows), float(model(x)[0]), 0, 0
    seeds = repeats(300, 80)
    for seed in range(seeds):
        explainer = limes.SparseExplainer(model, k=3, samples=200, confidence=0.8, rng=seed)
        explanation = explainer(x)
        w, certificate = explanation.coefficients.values[0], explanation.certificate
        fidelity = weight @ (explanation.coefficients.intercepts[0] + rows @ w - values) ** 2
        aligned = np.abs(rows @ w - x[0] @ w) < 1e-9
        error = weight[aligned] @ np.abs(values - target)[aligned] / weight[aligned].sum()
        held += fidelity <= certificate.bounds["fidelity"] and error <= certificate.bounds["precision"] * (
            1 + 1e-9
        )
        sharp += certificate.precision == pytest.approx(error)
        assert (
            error <= certificate.bounds["precision_from_fidelity"]
            or fidelity > certificate.bounds["fidelity"]
        )
    assert held >= 0.8 * seeds
    assert sharp == seeds  # few literals are free: precision is exact


def test_the_fidelitys_bound_has_the_largest_error_of_any_row_and_half_of_the_risk(monkeypatch):
    """Enumerated: rows are all signs, answers either end of the range."""
    calls = []

    def recorded(values, *, largest, risk):
        calls.append((values, largest, risk))
        return bernstein_bound(values, largest=largest, risk=risk)

    monkeypatch.setattr(_sparse_pipeline, "bernstein_bound", recorded)
    model, scale, x = bent(6, 3), (-4.0, 7.0), np.ones((1, 6))
    rule = limes.SparseExplainer(model, k=3, samples=200, confidence=0.9, scale=scale, rng=0)(x)
    rows = np.array(list(product([-1.0, 1.0], repeat=6)))
    answers = rule.coefficients.intercepts[0] + rows @ rule.coefficients.values[0]
    values, largest, risk = calls[0]
    assert largest == pytest.approx(max(((answers - end) ** 2).max() for end in scale), rel=oracle.EXACT)
    assert risk == pytest.approx(0.05)
    assert values.max() <= largest
    assert rule.certificate.bounds["fidelity"] == bernstein_bound(values, largest=largest, risk=risk)


def test_a_rows_result_depends_on_seed_and_row_alone():
    model, rows = bent(12), signs(4, 12)
    explainer = limes.SparseExplainer(model, k=3, rng=7)
    whole, alone = explainer(rows, progress=False), explainer(rows[2:3])
    assert np.array_equal(whole.coefficients.values[2], alone.coefficients.values[0])
    assert whole.certificates[2] == alone.certificates[0]
    other = limes.SparseExplainer(model, k=3, rng=8)(rows[2:3])
    assert not np.array_equal(other.coefficients.values, alone.coefficients.values)


def test_error_bars_of_sampled_weights_cover():
    """A model whose support is plain: its weights are those of the exact explanation, within the bars."""
    x, beta = np.ones((1, 6)), np.array([0.4, -0.3, 0.2, 0.0, 0.0, 0.0])

    def model(rows):
        return rows @ beta + 0.1 * rows[:, 3] * rows[:, 4]

    exact = limes.SparseExplainer(model, k=3, samples=repeats(200_000, 50_000), rng=1)(x).coefficients.values[
        0
    ]
    scores = []
    for seed in range(repeats(100, 25)):
        explanation = limes.SparseExplainer(model, k=3, samples=500, rng=seed)(x)
        on = explanation.coefficients.values[0] != 0
        assert np.array_equal(on, exact != 0)
        scores.append(
            (explanation.coefficients.values[0, on] - exact[on])
            / explanation.coefficients.standard_errors[0, on]
        )
    covered = (np.abs(scores) < 1.96).mean()
    assert covered >= 0.9
    assert 0.7 < np.std(scores) < 1.3


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(60, 20, 300), "debt": rng.random(300)})
    frame["proof"] = rng.choice(["yes", "no"], 300)
    return frame


def score(frame):
    return 30.0 * (frame.income > 62) - 20.0 * (frame.debt > 0.5) + 5.0 * (frame.proof == "yes")


def test_flips_of_columns_give_possible_rows(table):
    literals = limes.Literals.fit(table)
    seen = []

    def model(frame):
        seen.append(frame)
        return score(frame).to_numpy()

    explanation = limes.SparseExplainer(model, literals=literals, k=2)(table.iloc[[0]])
    assert all(set(frame.proof.unique()) <= {"yes", "no"} for frame in seen)
    assert explanation.feature_names == ("income", "debt", "proof")
    assert explanation.coefficients.intercepts[0] + explanation.coefficients.values[0].sum() == pytest.approx(
        score(table.iloc[[0]]).iloc[0]
    )
    low, high = explanation.certificate.scale
    assert low == pytest.approx(-20.0)
    assert high == pytest.approx(35.0)
    assert "proof" not in explanation.rule()
    assert "output = " in explanation.rule()


def test_a_readable_model_of_a_table_is_explained_exactly(table):
    x = table[["income", "debt"]]
    model = LinearRegression().fit(x, score(table))
    literals = limes.Literals.fit(x)
    explanation = limes.SparseExplainer(model, literals=literals, k=2)(x.iloc[[3]])
    assert explanation.method == "exact"
    # a linear model: half of what a column's mean elsewhere differs by; less a common shift without a base
    row = literals.table.encode(x.iloc[[3]])[0]
    near = literals.changes(row, 1.0)
    slopes = 0.5 * model.coef_ * (row - [other.values.mean() for other in near.others])
    assert explanation.coefficients.values[0] == pytest.approx(slopes, rel=1e-9)
    assert explanation.coefficients.intercepts[0] == pytest.approx(
        explanation.predictions[0] - slopes.sum(), rel=1e-9
    )
    paper = limes.SparseExplainer(model, literals=literals, k=2, intercept=False)(x.iloc[[3]])
    assert paper.coefficients.intercepts[0] == 0.0
    expected = slopes - (slopes.sum() - paper.predictions[0]) / 2
    assert paper.coefficients.values[0] == pytest.approx(expected, rel=1e-9)


def test_literals_of_a_table_may_flip_independently(table):
    literals = limes.Literals.fit(table)
    x = literals.transform(table)
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=2000, random_state=0).fit(x, score(table) / 40)
    explainer = limes.SparseExplainer(model, literals=literals, neighbourhood="flips", k=3, scale=(-5, 5))
    explanation = explainer(table.iloc[[0]])
    assert explanation.feature_names == literals.names
    facts = (explanation.coefficients.values[0] * x[0]).sum()
    assert explanation.coefficients.intercepts[0] + facts == pytest.approx(model.predict(x[:1])[0])
    assert explanation.certificate.scale == (-5.0, 5.0)


def test_a_network_whose_expectation_is_not_exact_is_sampled_or_refused(table):
    """Kinks need densities, and literals take two values: read, and no exact expectation."""
    literals = limes.Literals.fit(table, bins=16)
    x = literals.transform(table)
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=2000, random_state=0).fit(x, score(table) / 40)
    options = {"literals": literals, "neighbourhood": "flips", "k": 3}
    explanation = limes.SparseExplainer(model, **options)(table.iloc[[0]])
    assert explanation.method == "sampled"
    assert "its expectation is not exact: the error of a kink" in explanation.reason
    with pytest.raises(NotReadableError, match="its expectation is not exact: the error of a kink"):
        limes.SparseExplainer(model, method="exact", **options)


def test_the_second_of_two_classes_is_explained(table):
    x = table[["income", "debt"]]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, score(table) > 10)
    explanation = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)(x.iloc[[0]])
    assert explanation.output_names == ("True",)
    assert explanation.predictions[0] == pytest.approx(model.predict_proba(x.iloc[[0]])[0, 1])
    chosen = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1, output="False")(x.iloc[[0]])
    assert chosen.predictions[0] == pytest.approx(1 - explanation.predictions[0])


def test_one_of_several_outputs_must_be_chosen():
    explainer = limes.SparseExplainer(lambda x: np.stack([x[:, 0]] * 3, axis=1), k=1)
    with pytest.raises(InputError, match="output="):
        explainer(signs(1, 3))


def test_the_smallest_explanation_meets_the_error():
    model, x = lambda rows: 0.5 * rows[:, 0] + 0.3 * rows[:, 1] + 0.01 * rows[:, 2], signs(1, 6)
    explanation = limes.SparseExplainer(model, k="smallest", error=0.05)(x)
    assert np.count_nonzero(explanation.coefficients.values) == 2
    assert explanation.certificate.bounds["precision"] <= 0.05
    assert explanation.converged
    hopeless = limes.SparseExplainer(bent(4), k="smallest", error=1e-9, certify="fidelity", samples=50)(
        signs(1, 4)
    )
    assert not hopeless.converged
    assert "longest that was tried" in hopeless.warnings[-1]


def test_too_few_rows_for_a_certificate_are_reported():
    explanation = limes.SparseExplainer(bent(30), k=3, fresh=5)(signs(1, 30))
    assert "too few for a certificate" in explanation.warnings[0]


def test_a_rule_survives_json_pictures_and_pages():
    explanation = limes.SparseExplainer(bent(10), k=3)(signs(2, 10), progress=False)
    again = limes.Explanation.from_json(explanation.to_json())
    assert again[1].certificate == again.certificates[1] == explanation[1].certificate
    assert again.certificates[0].objective == explanation[0].certificate.objective
    assert again.rule(0) == explanation[0].rule()
    page = explanation.to_html()
    assert "Certificate" in page
    assert "simulated neighbours" in page
    assert "with 95% confidence" in " ".join(str(explanation[0]).split())
    with pytest.raises(InputError, match="choose one"):
        explanation.rule()


def test_results_with_unknown_numbers_equal_those_of_the_same_numbers():
    certificate = limes.SparseExplainer(bent(10), k=3)(signs(1, 10), progress=False).certificate
    again = replace(certificate, seconds=float("nan"), theory={**certificate.theory, "unknown": float("nan")})
    assert math.isnan(certificate.seconds)
    assert again == replace(again, seconds=float("nan"), theory={**again.theory, "unknown": float("nan")})
    assert again != certificate != replace(certificate, seconds=1.0)
    assert certificate != "certificate"
    literals = limes.Literals.fit([[0.0], [1.0], [2.0], [3.0]])
    explainer = limes.SparseExplainer(lambda X: X[:, 0], literals=literals, k=1)
    change = replace(explainer.contrast([[3.0]], below=1.5).changes[0], value=float("nan"))
    assert change == replace(change, value=float("nan"))
    assert hash(change) == hash(replace(change, value=float("nan")))
    assert change != replace(change, value=1.0)


@pytest.mark.parametrize("method", ["projection", "hard_thresholding", "branch_and_bound"])
@pytest.mark.parametrize("base", [-40.0, 0.0, 0.3, 0.6])
def test_a_base_changes_no_weight_and_names_no_other_literal(method, base):
    """D3: .3 x0 - .1 x1 + b has two literals, whatever b is, and whatever k is."""
    model = lambda rows: 0.3 * rows[:, 0] - 0.1 * rows[:, 1] + base  # noqa: E731
    explanation = limes.SparseExplainer(model, k=3, solver=method)(np.ones((1, 8)))
    assert explanation.coefficients.values[0] == pytest.approx([0.3, -0.1, 0, 0, 0, 0, 0, 0], abs=1e-9)
    assert explanation.coefficients.intercepts[0] == pytest.approx(base, abs=1e-9)
    assert explanation.certificate.r2 == pytest.approx(1.0)
    assert explanation.fidelity[0] == explanation.certificate.r2


def test_columns_that_the_model_ignores_get_no_weight_by_its_base():
    """D3: .5 + .4 tanh(v0), read from answers in [0, 1] which were never centred."""
    rng = np.random.default_rng(0)
    background = rng.normal(size=(500, 5))
    literals = limes.Literals.fit(background)
    saturating = lambda v: 0.5 + 0.4 * np.tanh(v[:, 0])  # noqa: E731
    explainer = limes.SparseExplainer(saturating, literals=literals, k=3)
    explanation = explainer(background[:20], progress=False)
    largest = np.abs(explanation.coefficients.values).max(axis=1)
    assert (np.abs(explanation.coefficients.values[:, 0]) == largest).all()
    # what the sample adds to them is noise: five standard errors
    assert (np.abs(explanation.coefficients.values) <= 5 * explanation.coefficients.standard_errors)[
        :, 1:
    ].all()
    paper = limes.SparseExplainer(saturating, literals=literals, k=3, intercept=False)
    assert (explanation.fidelity > paper(background[:20], progress=False).fidelity).all()


def test_other_explanations_have_no_certificate():
    x = signs(50, 3)
    explanation = limes.TabularExplainer(LinearRegression().fit(x, x[:, 0]), x)(x[:1])
    with pytest.raises(InputError, match="SparseExplainer"):
        explanation.certificate  # noqa: B018


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"k": 0}, [[1, -1]], "k must be"),
        ({"k": 3}, [[1, -1]], "k=3 exceeds the number of literals, 2"),
        ({"k": "few"}, [[1, -1]], "'smallest'"),
        ({"k": "smallest"}, [[1, -1]], "needs error"),
        ({"k": 1, "error": 0.1}, [[1, -1]], "goes with"),
        ({"k": 1}, [[1, 0]], "literal 1 of the instance"),
        ({"k": 1}, [["a", "b"]], "rows must be numbers"),
        ({"k": 1, "spread": -1.0}, [[1, -1]], "spread"),
        ({"k": 1, "scale": None}, [[1, -1]], "outside scale"),
        ({"k": 1, "scale": (1, 0)}, [[1, -1]], "low < high"),
        ({"k": 1, "intercept": 0}, [[1, -1]], "intercept must be True or False"),
        ({"k": 1, "box": 1.0}, [[1, -1]], "pass intercept=False"),
        ({"k": 1, "box": 0.0, "intercept": False}, [[1, -1]], "box"),
        ({"k": 1, "box": 0.5, "intercept": False}, [[1, -1]], "larger box"),
        ({"k": 1, "law": "binomial"}, [[1, -1]], "law"),
        ({"k": 1, "law": "count", "method": "exact"}, [[1, -1]], "goes with law='literal'"),
        ({"k": 1, "values": (0, 2)}, [[1, 0]], r"values must be \(-1, 1\) or \(0, 1\)"),
        ({"k": 1, "values": (0, 1)}, [[1, -1]], "literal 1 is -1: values=.0, 1. are 0 or 1"),
        ({"k": 1, "confidence": 1.0}, [[1, -1]], "confidence"),
        ({"k": 1, "solver": "projektion"}, [[1, -1]], "did you mean 'projection'"),
        ({"k": 1, "neighbourhood": "columns"}, [[1, -1]], "needs literals"),
        ({"k": 1, "samples": 0}, [[1, -1]], "samples"),
        ({"k": 1, "literals": "bins"}, [[1, -1]], "limes.Literals.fit"),
        ({"k": 1, "method": "exact", "solver": "branch_and_bound"}, [[1, -1]], "goes with solver"),
    ],
)
def test_bad_input_is_refused(options, rows, message):
    with pytest.raises(InputError, match=message):
        limes.SparseExplainer(lambda x: 5.0 * x[:, 0], **options)(rows)


def test_unknown_options_and_unreadable_models_are_refused():
    with pytest.raises(UnknownOptionError, match="did you mean 'spread'"):
        limes.SparseExplainer(bent(3), spred=1.0)
    with pytest.raises(NotReadableError, match="can be read"):
        limes.SparseExplainer(bent(3), method="exact")


def test_a_model_that_fails_midway_says_so():
    calls = []

    def model(rows):
        calls.append(len(rows))
        if len(calls) > 1:
            raise RuntimeError("out of memory")
        return rows[:, 0]

    with pytest.raises(ModelError, match="out of memory"):
        limes.SparseExplainer(model, k=1)(signs(1, 3))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_failure_keeps_the_rows_so_far_and_all_answers(workers):
    rows, failing, sizes = signs(3, 6), [True], []

    def model(x):
        sizes.append(len(x))
        # the last row itself, asked about after its 1,000 + 1,000 neighbours
        if failing[0] and len(x) == 1 and np.array_equal(x[0], rows[2]):
            raise ConnectionError("gone")
        return bent(6)(x)

    explainer = limes.SparseExplainer(model, k=2)
    with pytest.raises(ModelError, match=r"gone.*2 of 3 rows.*continue") as failure:
        explainer(rows, progress=False, workers=workers)
    partial = failure.value.partial
    clean = limes.SparseExplainer(bent(6), k=2)(rows, progress=False)
    assert np.array_equal(partial.coefficients.values, clean.coefficients.values[:2])
    assert partial.certificates == clean.certificates[:2]
    failing[0] = False
    sizes.clear()
    again = explainer(rows[2:], progress=False)
    assert np.array_equal(again.coefficients.values, clean.coefficients.values[2:])
    assert np.array_equal(again.calls, clean.calls[2:])
    assert sum(sizes) == clean.calls[2] - 2000, "rows with answers are not asked again"
    sizes.clear()
    explainer(rows[2:], progress=False)
    assert sum(sizes) == clean.calls[2], "answers of finished rows are not kept"


def test_an_interruption_has_the_rows_so_far():
    rows = signs(3, 6)

    def model(x):
        if len(x) == 1 and np.array_equal(x[0], rows[1]):
            raise KeyboardInterrupt
        return bent(6)(x)

    with pytest.raises(Interrupted, match="1 of 3 rows") as stop:
        limes.SparseExplainer(model, k=2)(rows, progress=False)
    assert np.array_equal(
        stop.value.partial.coefficients.values,
        limes.SparseExplainer(bent(6), k=2)(rows[:1]).coefficients.values,
    )


def test_batches_retries_and_workers_change_no_number():
    rows, sizes, failures = signs(4, 6), [], iter([True, False] * 1000)

    def model(x):
        sizes.append(len(x))
        if next(failures):
            raise ConnectionError("busy")
        return np.tanh(x[:, 0] + x[:, 1] * x[:, 2])

    whole = limes.SparseExplainer(lambda x: np.tanh(x[:, 0] + x[:, 1] * x[:, 2]), k=2)(rows, progress=False)
    waited = []
    explainer = limes.SparseExplainer(
        model, k=2, batch_size=300, retry=lambda error, attempt: waited.append(attempt) or 0.0
    )
    result = explainer(rows, progress=False, workers=1)
    assert max(sizes) == 300
    assert set(waited) == {1}
    assert np.array_equal(result.coefficients.values, whole.coefficients.values)
    threads = limes.SparseExplainer(lambda x: np.tanh(x[:, 0] + x[:, 1] * x[:, 2]), k=2)
    together = threads(rows, progress=False, workers=3)
    assert np.array_equal(together.coefficients.values, whole.coefficients.values)
    assert together.certificates == whole.certificates


def test_the_former_name_of_the_gap_warns():
    rows, explainer = signs(1, 12), partial(limes.SparseExplainer, bent(12), k=3, solver="branch_and_bound")
    with pytest.warns(FutureWarning, match="gap="):
        former = explainer(tolerance=0.5)
    gaps = [each(rows).certificate.gap for each in (explainer(gap=0.5), former, explainer())]
    assert gaps[0] == gaps[1] == pytest.approx(0.5, abs=oracle.EXACT)
    assert gaps[2] < 0.5
    with pytest.raises(InputError, match="two names"):
        limes.SparseExplainer(bent(12), gap=0.1, tolerance=0.1)


def test_diagnose_refuses_sparse_explanations():
    with pytest.raises(InputError, match="diagnose has no diagnostics of rules"):
        limes.diagnose(limes.SparseExplainer(bent(6), k=2)(signs(1, 6)))


def test_a_constant_model_has_constant_explanations():
    explanation = limes.SparseExplainer(lambda x: np.full(len(x), 0.5), k=2)(signs(1, 4))
    assert (explanation.coefficients.values == 0).all()
    assert explanation.coefficients.intercepts == pytest.approx([0.5])
    assert explanation.rule() == "0.5  ->  output = 0.5"
    assert explanation.certificate.r2 == 1.0
    assert explanation.certificate.fresh_fidelity == pytest.approx(0.0, abs=1e-20)
    paper = limes.SparseExplainer(lambda x: np.full(len(x), 0.5), k=2, intercept=False)(signs(1, 4))
    assert (paper.coefficients.values * paper.data).sum() == pytest.approx(0.5)
    assert paper.certificate.r2 == -np.inf
    beyond = limes.SparseExplainer(lambda x: np.full(len(x), 70.0), k=2)(signs(1, 4))
    assert beyond.coefficients.surrogate_predictions == pytest.approx([70.0])


def test_the_explainer_classes_need_no_heavy_library():
    heavy = ("matplotlib", "pandas", "sklearn", "jinja2", "rich", "cvxpy", "lime", "shap")
    names = "limes.SparseExplainer; limes.Literals; limes.MapleExplainer"
    code = f"import limes, sys; {names}; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_answers_beyond_the_range_seen_have_a_warning():
    model = lambda rows: 10.0 * rows.sum(axis=1)  # noqa: E731
    explainer = limes.SparseExplainer(model, k=2, samples=20, spread=2.0)
    explanation = explainer(np.ones((1, 12)))
    assert "pass scale=(low, high)" in explanation.warnings[0]
    assert explanation.coefficients.surrogate_predictions == pytest.approx([120.0])
    bounded = limes.SparseExplainer(model, k=2, samples=20, spread=2.0, scale=(-120, 120))(np.ones((1, 12)))
    assert not any("scale" in text for text in bounded.warnings)
