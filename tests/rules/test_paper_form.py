"""The form of the 2025 paper by public calls: b = 0, both laws of flips, literals of ±1 or of 0 and 1."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR

import limes
import oracle
from effort import repeats
from internals import SOLVERS
from limes.exceptions import InputError

LAWS = ("literal", "count")


def bent(d, seed=0):
    weights = np.random.default_rng(seed).normal(size=(d, 3)) / np.sqrt(d)
    return lambda rows: np.tanh(rows @ weights).mean(axis=1)


def signs(n, d, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], (n, d))


def loss(rule, rows, weight, values):
    return weight @ (rule.coefficients.intercepts[0] + rows @ rule.coefficients.values[0] - values) ** 2


def best(rows, weight, values, x, k, target):
    """Least error of all supports over w·x = target, by the plain equations of the constrained optimum."""
    least = np.inf
    for support in combinations(range(x.size), k):
        z = rows[:, support]
        system = np.block([[z.T @ (weight[:, None] * z), x[list(support), None]], [x[list(support)], 0.0]])
        w, *_ = np.linalg.lstsq(system, np.append(z.T @ (weight * values), target), rcond=None)
        least = min(least, weight @ (z @ w[:-1] - values) ** 2)
    return least


# -- b = 0 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("base", "size"), [(0.0, 1.0), (0.7, 1.0), (-40.0, 3.0), (5e6, 1e6)])
def test_without_a_constant_w_x_is_the_prediction_whatever_the_range(solver, law, base, size):
    """D1: b was the middle of the range where answers leave [-1, 1]."""
    if solver == "convex":
        pytest.importorskip("cvxpy")
    bend, rows = bent(12), signs(3, 12)
    model = lambda z: base + size * bend(z)  # noqa: E731
    options = {"k": 4, "solver": solver, "law": law, "intercept": False, "samples": 400}
    explanation = limes.SparseExplainer(model, **options)(rows, progress=False)
    assert (explanation.coefficients.intercepts == 0.0).all()
    expected = model(rows)
    facts = (explanation.coefficients.values * rows).sum(axis=1)
    assert np.abs(facts - expected).max() <= 1e-12 * max(1.0, np.abs(expected).max())
    if solver != "convex":
        assert (np.count_nonzero(explanation.coefficients.values, axis=1) <= 4).all()


@pytest.mark.parametrize("solver", ["projection", "hard_thresholding", "branch_and_bound"])
def test_without_a_constant_a_rule_scales_with_the_answers(solver):
    rows, bend = signs(2, 10), bent(10)
    options = {"k": 3, "solver": solver, "intercept": False, "rng": 4}
    one = limes.SparseExplainer(bend, **options)(rows, progress=False)
    many = limes.SparseExplainer(lambda z: 1024.0 * bend(z), **options)(rows, progress=False)
    assert many.coefficients.values == pytest.approx(1024.0 * one.coefficients.values, rel=1e-9, abs=1e-9)


def test_weights_have_no_box_unless_it_is_passed():
    model, x = lambda z: 3.0 * z[:, 0] - 2.5 * z[:, 1], np.ones((1, 6))
    options = {"k": 2, "intercept": False, "solver": "branch_and_bound"}
    free = limes.SparseExplainer(model, **options)(x)
    assert free.coefficients.values[0] == pytest.approx([3.0, -2.5, 0, 0, 0, 0], abs=1e-9)
    assert free.certificate.proved
    boxed = limes.SparseExplainer(model, box=2.6, **options)(x)
    assert np.abs(boxed.coefficients.values).max() <= 2.6
    assert boxed.coefficients.values.sum() == pytest.approx(0.5)
    assert boxed.coefficients.values[0] == pytest.approx([2.6, -2.1, 0, 0, 0, 0], abs=0.05)
    assert boxed.certificate.proved


@pytest.mark.parametrize(("base", "box"), [(0.0, 1.0), (3.0, 4.0)])
def test_the_relaxation_has_the_papers_box_or_that_of_the_answers(base, box):
    """Its objective is that of cvxpy's other solver for the problem as the paper writes it."""
    cvxpy = pytest.importorskip("cvxpy")
    batches = []

    def model(z):
        batches.append(z)
        return base + 0.9 * np.prod(z[:, :2], axis=1)

    x, k, scale = np.ones((1, 8)), 2, (base - 1.0, base + 1.0)
    options = {"solver": "convex", "intercept": False, "samples": 311, "scale": scale}
    explanation = limes.SparseExplainer(model, k=k, **options)(x)
    (rows,) = [batch for batch in batches if len(batch) == 311][-1:]
    (drawn,) = {len(batch): batch for batch in batches if len(batch) == 311}.values()
    w = cvxpy.Variable(8)
    values = base + 0.9 * np.prod(drawn[:, :2], axis=1)
    loss = cvxpy.sum_squares(drawn @ w - values) / len(rows)
    held = [cvxpy.sum(w) == base + 0.9, cvxpy.norm1(w) <= k * box, cvxpy.norm_inf(w) <= box]
    least = cvxpy.Problem(cvxpy.Minimize(loss), held).solve(solver=cvxpy.OSQP, eps_abs=1e-9, eps_rel=1e-9)
    assert explanation.certificate.objective == pytest.approx(least, rel=1e-4)


# -- the laws -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_rules_of_the_count_law_are_the_best_of_all_rows(intercept, spread):
    """The solver on a large sample against every support on all rows, weighted by the count law."""
    d, k = 7, 3
    model, x = bent(d, 3), signs(1, d, 5)
    rows = oracle.all_rows(d)
    weight, values = oracle.row_law(rows, x[0], spread, "count"), model(rows)
    target = float(model(x)[0])
    if intercept:
        columns, answers, least = rows - x, values - target, np.inf
        for support in combinations(range(d), k):
            root = np.sqrt(weight)[:, None]
            u, *_ = np.linalg.lstsq(root * columns[:, support], root[:, 0] * answers, rcond=None)
            least = min(least, weight @ (columns[:, support] @ u - answers) ** 2)
    else:
        least = best(rows, weight, values, x[0], k, target)
    for solver in ("projection", "branch_and_bound"):
        options = {"k": k, "spread": spread, "law": "count", "intercept": intercept, "samples": 40_000}
        rule = limes.SparseExplainer(model, solver=solver, **options)(x)
        assert least * (1 - 1e-9) <= loss(rule, rows, weight, values) <= least * 1.02
        assert rule.method == "sampled"


@pytest.mark.parametrize("law", LAWS)
def test_certificates_are_about_the_law_that_was_drawn(law):
    """Errors on fresh rows and P(w) against all rows; bounds fail no more often than they may."""
    d, failures, seeds = 8, 0, repeats(60, 15)
    model, x = bent(d, 1), np.ones((1, d))
    rows = oracle.all_rows(d)
    weight, values = oracle.row_law(rows, x[0], 1.0, law), model(rows)
    for seed in range(seeds):
        options = {"k": 2, "law": law, "rng": seed, "samples": 300, "intercept": False, "scale": (-1, 1)}
        rule = limes.SparseExplainer(model, solver="hard_thresholding", **options)(x)
        aligned = np.isclose(rows @ rule.coefficients.values[0], values[0])
        precision = np.average(np.abs(values - values[0])[aligned], weights=weight[aligned])
        certificate, truth = rule.certificate, loss(rule, rows, weight, values)
        assert certificate.coincidence == pytest.approx(weight[aligned].sum(), rel=1e-9)
        assert certificate.precision == pytest.approx(precision, rel=1e-9)
        failures += truth > certificate.bounds["fidelity"]
        assert precision <= certificate.bounds["precision"] * (1 + 1e-9)  # enumerated: it is the bound
    assert failures <= 0.05 * seeds + 3 * np.sqrt(0.05 * seeds)
    assert certificate.fresh_fidelity == pytest.approx(truth, rel=0.5)


@pytest.mark.parametrize("intercept", [True, False])
def test_errors_of_weights_cover_under_the_count_law(intercept):
    """For a linear model and a product, its weights for the chosen literals under the law itself."""
    d, inside, total = 6, 0, 0
    model = lambda z: 0.5 * z[:, 0] - 0.3 * z[:, 1] + 0.2 * z[:, 2] * z[:, 3] * z[:, 4]  # noqa: E731
    x, rows = np.ones((1, d)), oracle.all_rows(d)
    weight, values = oracle.row_law(rows, x[0], 0.5, "count"), model(rows)
    for seed in range(repeats(200, 60)):
        options = {"k": 2, "law": "count", "spread": 0.5, "intercept": intercept, "rng": seed}
        rule = limes.SparseExplainer(model, **options)(x)
        support = np.flatnonzero(rule.coefficients.values[0])
        z, root = rows[:, support], np.sqrt(weight)
        if intercept:
            u, *_ = np.linalg.lstsq(root[:, None] * (z - 1), root * (values - values[0]), rcond=None)
        else:
            step, rest = z[:, 0] - z[:, 1], values - values[0] * z[:, 1]
            first = (weight * step) @ rest / ((weight * step) @ step)
            u = np.array([first, values[0] - first])
        covered = (
            np.abs(rule.coefficients.values[0, support] - u)
            <= 1.96 * rule.coefficients.standard_errors[0, support]
        )
        inside, total = inside + covered.sum(), total + covered.size
    assert inside / total >= 0.9


@pytest.mark.parametrize("law", LAWS)
def test_columns_of_a_table_leave_their_bins_by_either_law(law):
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 4)), columns=list("abcd"))
    seen = []

    def model(frame):
        seen.append(frame.to_numpy())
        return frame["a"].to_numpy()

    literals = limes.Literals.fit(x)
    limes.SparseExplainer(model, literals=literals, k=2, law=law, samples=20_000)(x.iloc[[0]])
    drawn = max(seen, key=len)
    flips = (drawn != x.iloc[0].to_numpy()).sum(axis=1)
    expected = np.exp(-np.arange(5.0)) * (np.array([1, 4, 6, 4, 1]) if law == "literal" else 1.0)
    expected /= expected.sum()
    shares = np.bincount(flips, minlength=5) / len(drawn)
    assert (np.abs(shares - expected) <= oracle.Z_LIMIT * np.sqrt(expected / len(drawn))).all()


def test_rules_of_the_count_law_are_the_same_whatever_the_batch():
    model, rows = bent(9), signs(6, 9)
    one = limes.SparseExplainer(model, k=3, law="count", rng=1)
    whole = one(rows, progress=False)
    parts = [one(rows[i : i + 1]) for i in range(6)]
    other = limes.SparseExplainer(model, k=3, law="count", rng=1)(rows[::-1], progress=False, workers=2)
    assert all(
        np.array_equal(whole.coefficients.values[i], part.coefficients.values[0])
        for i, part in enumerate(parts)
    )
    assert np.array_equal(whole.coefficients.values, other.coefficients.values[::-1])


def test_a_read_model_is_sampled_under_the_count_law_and_says_why():
    x = signs(100, 5)
    explanation = limes.SparseExplainer(LinearRegression().fit(x, x[:, 0]), k=1, law="count")(x[:1])
    assert explanation.method == "sampled"
    assert "law='count'" in explanation.reason
    assert explanation.coefficients.values[0, 0] == pytest.approx(1.0)


# -- literals of 0 and 1 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["projection", "branch_and_bound"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_model_of_0_and_1_is_asked_0_and_1(solver, intercept):
    """Its rule is that of the same model behind a map of -1 and +1."""
    bend, x = bent(9), np.ones((1, 9))  # rows of the same bits draw the same flips
    batches = []

    def model(z):
        batches.append(z)
        return bend(2.0 * z - 1.0)

    options = {"k": 3, "solver": solver, "intercept": intercept, "rng": 2}
    expected = limes.SparseExplainer(bend, **options)(x)
    explanation = limes.SparseExplainer(model, values=(0, 1), **options)(x)
    assert all(np.isin(batch, (0.0, 1.0)).all() for batch in batches)
    assert np.array_equal(explanation.coefficients.values, expected.coefficients.values)
    assert explanation.rule() == expected.rule()
    mixed = limes.SparseExplainer(model, values=(0, 1), **options)([[0, 1, 1, 0, 1, 0, 0, 1, 1]])
    z = np.array([-1, 1, 1, -1, 1, -1, -1, 1, 1.0])
    assert mixed.coefficients.intercepts[0] + mixed.coefficients.values[0] @ z == pytest.approx(
        bend(z[None])[0]
    )
    assert "= 0]" in mixed.rule()


def test_a_read_model_of_0_and_1_is_explained_exactly():
    x = signs(200, 7)
    zero_one = (x + 1) / 2
    model = RandomForestRegressor(5, random_state=0).fit(zero_one, bent(7)(x))
    explanation = limes.SparseExplainer(model, k=3, values=(0, 1), intercept=False)(zero_one[:1])
    assert explanation.method == "exact"
    rows = oracle.all_rows(7)
    weight, values = oracle.row_law(rows, x[0], 1.0), model.predict((rows + 1) / 2)
    target = float(model.predict(zero_one[:1])[0])
    least = best(rows, weight, values, x[0], 3, target)
    assert loss(explanation, rows, weight, values) == pytest.approx(least, rel=oracle.EXACT)
    low, high = explanation.certificate.worst_case
    assert low <= target <= high


@pytest.mark.parametrize("fit", [KernelRidge(kernel="rbf"), SVR(), KNeighborsRegressor()])
def test_a_model_that_keeps_rows_of_the_other_numbers_is_refused_by_name(fit):
    x, y = load_diabetes(return_X_y=True, as_frame=True)
    literals = limes.Literals.fit(x)
    z = literals.transform(x)
    options = {"literals": literals, "neighbourhood": "flips", "k": 3, "samples": 50}
    model = fit.fit((z + 1) / 2, y)
    with pytest.raises(InputError, match=r"fitted on literals \(0\.0, 1\.0\).*pass values=\(0, 1\)"):
        limes.SparseExplainer(model, **options)
    right = limes.SparseExplainer(model, values=(0, 1), **options)(x.iloc[[0]])
    assert right.predictions[0] == pytest.approx(model.predict((z[:1] + 1) / 2)[0])
    model.fit(z, y)
    with pytest.raises(InputError, match=r"pass values=\(-1, 1\)"):
        limes.SparseExplainer(model, values=(0, 1), **options)
    limes.SparseExplainer(model, **options)


def test_values_are_those_of_literals_that_flip():
    x = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(InputError, match="neighbourhood='flips'"):
        limes.SparseExplainer(lambda z: z[:, 0], literals=limes.Literals.fit(x), k=1, values=(0, 1))
