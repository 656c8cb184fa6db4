"""Measures of faithfulness where the right answer is known: additive models, useless explanations, ties."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from limes.evaluate import Bins, EvaluationTask, Removal, curves, fidelity, infidelity, plot_curves, precision
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
BACKGROUND = RNG.normal(size=(400, 4))
SLOPES = np.array([3.0, -1.0, 0.5, 0.0])
ROWS = BACKGROUND[:6]


def line(x):
    return x @ SLOPES + 2.0


TASK = EvaluationTask.of(line, BACKGROUND, ROWS)
# f(ξ) less the mean of f when a feature is removed, alone: what SHAP says of a line
EXACT = SLOPES * (ROWS - BACKGROUND.mean(axis=0))


def test_fidelity_of_a_model_that_is_a_sum_of_switches():
    """f = Σ φ_j 1[x_j is the row's own]: nothing is left to tell."""
    row = np.array([[10.0, 20.0, 30.0, 40.0]])
    phi = np.array([[1.0, -2.0, 0.5, 3.0]])
    task = EvaluationTask.of(lambda x: (x == row[0]) @ phi[0] + 5.0, BACKGROUND, row)
    assert fidelity(phi, task).rows[0] == pytest.approx(1.0, abs=1e-12)
    assert infidelity(phi, task).rows[0] == pytest.approx(0.0, abs=1e-12)
    # twice the truth errs as much as it tells
    assert infidelity(2 * phi, task).rows[0] == pytest.approx(1.0, abs=1e-12)
    assert fidelity(2 * phi, task).rows[0] == pytest.approx(0.0, abs=1e-12)


def test_an_explanation_of_zeros():
    zeros = np.zeros_like(EXACT)
    assert np.allclose(fidelity(zeros, TASK).rows, 0.0, atol=1e-12)
    assert np.allclose(infidelity(zeros, TASK).rows, 1.0, atol=1e-12)


def test_fidelity_by_hand():
    """1 - Var(f - g)/Var f with exact expectations: z Bernoulli(½), removed values from the background."""
    result = fidelity(EXACT, TASK, draws=200_000).rows
    mean, variance = BACKGROUND.mean(axis=0), np.cov(BACKGROUND.T, bias=True)
    for i, row in enumerate(ROWS):
        total = unexplained = 0.0
        for j in range(4):
            for k in range(4):
                cov = SLOPES[j] * SLOPES[k] * variance[j, k]
                # both removed: ¼, or ½ for one and the same
                unexplained += cov * (0.5 if j == k else 0.25)
        total = unexplained + 0.25 * ((SLOPES * (row - mean)) ** 2).sum()
        assert result[i] == pytest.approx(1 - unexplained / total, abs=0.02)


def test_bins_draw_from_limes_law():
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(10, random_state=0).fit(X, y)
    task = EvaluationTask.of(model, X, X[:3])
    explainer = limes.TabularExplainer(model, X, method="sampled", control="additive")
    explanation = explainer(X[:3], progress=False)
    result = fidelity(explanation, task, neighbourhood=Bins(task), draws=20_000).rows
    assert np.allclose(result, explanation.fidelity, atol=0.03)
    narrow = fidelity(explanation, task, neighbourhood=Bins(task, 0.5), draws=2000).rows
    assert not np.allclose(narrow, result, atol=0.03)


def test_deletion_and_insertion_of_a_line():
    """Each step removes (or puts back) φ_j on average, the largest first."""
    result = curves(EXACT, TASK, draws=4000)
    f = line(ROWS)
    order = np.sort(EXACT, axis=1)[:, ::-1]
    down = np.concatenate([f[:, None], f[:, None] - np.cumsum(order, axis=1)], axis=1)
    unit, typical = line(BACKGROUND).std(), line(BACKGROUND).mean()
    assert np.allclose(result.deletion, (down - typical) / unit, atol=0.1)
    assert np.allclose(result.deletion[:, 0], (f - typical) / unit, atol=1e-12)
    assert np.allclose(result.insertion[:, -1], result.deletion[:, 0], atol=1e-12)
    assert np.allclose(result.insertion[:, 0], result.deletion[:, -1], atol=1e-12)


def test_no_order_beats_the_true_one():
    best = curves(EXACT, TASK, draws=1000)
    # what 1000 draws say of four means
    noise = 0.1
    for seed in range(5):
        other = np.random.default_rng(seed).normal(size=EXACT.shape)
        worse = curves(other, TASK, draws=1000)
        assert (best.deletion_area.rows <= worse.deletion_area.rows + noise).all()
        assert (best.insertion_area.rows >= worse.insertion_area.rows - noise).all()
        assert best.deletion_area.mean < worse.deletion_area.mean
    backwards = curves(-EXACT, TASK, draws=1000)
    assert best.deletion_area.mean < backwards.deletion_area.mean


def test_curves_are_drawn_where_they_are():
    from matplotlib.figure import Figure

    result, ax = curves(EXACT, TASK), Figure().subplots()
    assert plot_curves({"a": result, "b": curves(-EXACT, TASK)}, ax=ax) is ax
    heights = [line.get_ydata() for line in ax.get_lines()]
    assert len(heights) == 4
    assert np.array_equal(heights[0], result.deletion.mean(axis=0))
    assert np.array_equal(heights[1], result.insertion.mean(axis=0))


def test_areas_by_trapezoids():
    from limes.evaluate import Curves

    curve = np.array([[0.0, 1.0, 3.0]])
    assert Curves(curve, curve).deletion_area.rows[0] == pytest.approx((0.5 + 2.0) / 2)


def test_draws_do_not_depend_on_the_explanation_or_other_rows():
    alone = EvaluationTask.of(line, BACKGROUND, ROWS[:1])
    assert fidelity(EXACT[:1], alone).rows[0] == fidelity(EXACT, TASK).rows[0]
    assert fidelity(EXACT, TASK, rng=1).rows[0] != fidelity(EXACT, TASK).rows[0]


def test_a_flat_model_has_no_fidelity():
    flat = EvaluationTask.of(lambda x: np.ones(len(x)), BACKGROUND, ROWS)
    assert np.isnan(fidelity(EXACT, flat).rows).all()
    assert np.isnan(infidelity(EXACT, flat).rows).all()
    assert np.isnan(fidelity(EXACT, flat).mean)
    assert np.isfinite(curves(EXACT, flat).deletion).all()


def test_frames_with_texts():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0] * 5, "b": ["x", "y", "z", "y"] * 5})
    task = EvaluationTask.of(lambda t: t["a"].to_numpy() + (t["b"] == "x"), frame, frame.iloc[:2])
    phi = np.array([[1.0, 0.5], [0.5, 0.0]])
    assert np.isfinite(fidelity(phi, task).rows).all()
    assert np.isfinite(curves(phi, task).deletion).all()
    assert np.isfinite(fidelity(phi, task, neighbourhood=Bins(task)).rows).all()
    assert isinstance(task.X, pd.DataFrame)


def test_two_classes_are_the_second_and_three_must_be_chosen():
    two = EvaluationTask.of(lambda x: np.stack([-line(x), line(x)], axis=1), BACKGROUND, ROWS)
    assert np.array_equal(two.predictions, line(ROWS))
    three = EvaluationTask.of(lambda x: np.stack([line(x)] * 3, axis=1), BACKGROUND, ROWS)
    with pytest.raises(InputError, match="3 outputs"):
        _ = three.predictions
    chosen = EvaluationTask.of(lambda x: np.stack([line(x)] * 3, axis=1), BACKGROUND, ROWS, output=1)
    assert np.array_equal(chosen.predictions, line(ROWS))


def test_explanations_of_another_shape_are_refused():
    with pytest.raises(InputError, match="all of its columns"):
        fidelity(EXACT[:, :3], TASK)
    with pytest.raises(InputError, match="kept"):
        Removal(kept=1.0)


def test_precision_of_sparse_explanations():
    signs = np.sign(BACKGROUND)
    explainer = limes.SparseExplainer(lambda x: np.tanh(line(x)), k=2, samples=200)
    explanation = explainer(signs[:2], progress=False)
    result = precision(explanation)
    assert result.rows.tolist() == [explanation[i].certificate.precision for i in range(2)]
    with pytest.raises(InputError, match="SparseExplainer"):
        precision(limes.TabularExplainer(line, BACKGROUND, max_calls=64)(ROWS[:1], progress=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"draws": 0}, "draws"), ({"draws": 1.5}, "draws"), ({"rng": -1}, "rng"), ({"rng": 1.5}, "rng")],
)
def test_counts_and_seeds_are_checked(options, message):
    background = np.random.default_rng(0).normal(size=(50, 2))
    task = limes.evaluate.Task.of(lambda X: X[:, 0], background, background[:2])
    for measure in (limes.evaluate.fidelity, limes.evaluate.curves):
        with pytest.raises(InputError, match=message):
            measure(np.ones((2, 2)), task, **options)


@pytest.mark.parametrize("bandwidth", [-1.0, np.nan, "a"])
def test_the_bandwidth_of_bins_is_checked(bandwidth):
    background = np.random.default_rng(0).normal(size=(50, 2))
    task = limes.evaluate.Task.of(lambda X: X[:, 0], background, background[:2])
    with pytest.raises(InputError, match="bandwidth"):
        limes.evaluate.Bins(task, bandwidth)
