"""Indices of stability by hand, for explainers with known noise."""

from __future__ import annotations

import numpy as np
import pytest

import limes
from effort import repeats
from internals import compare_runs, noisy_rows
from limes.evaluate import Attribution, EvaluationTask, Score, compare, sensitivity, stability
from limes.exceptions import InputError

BACKGROUND = np.random.default_rng(0).normal(size=(200, 4))
ROWS = BACKGROUND[:5]
SLOPES = np.array([3.0, -2.0, 1.0, 0.1])


def line(x):
    return x @ SLOPES


TASK = EvaluationTask.of(line, BACKGROUND, ROWS)


def exact(X, seed):
    return np.asarray(X) * SLOPES


def noisy(X, seed):
    return exact(X, seed) + np.random.default_rng(seed).normal(size=(len(X), 4))


def lost(X, seed):
    return 10 * noisy(X, seed)


def test_indices_by_hand():
    a = Attribution(np.array([[3.0, 2.0, 1.0, 0.0]]), np.full((1, 4), 0.1))
    b = Attribution(np.array([[3.0, 0.0, 1.0, 2.0]]), np.full((1, 4), 0.1))
    result = compare_runs([a, b], k=2)
    # {0, 1} and {0, 3}
    assert result.vsi.rows[0] == pytest.approx(1 / 2)
    assert result.jaccard.rows[0] == pytest.approx(1 / 3)
    # features 1 and 3 are 2 apart, more than 1.96 (0.1 + 0.1)
    assert result.csi.rows[0] == pytest.approx(1 / 2)
    assert result.spread.rows[0] == pytest.approx(np.sqrt(8 / 28))
    three = compare_runs([a, b, a], k=2)
    assert three.vsi.rows[0] == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_stability_of_all_features_is_undefined():
    result = stability(noisy, TASK, k=4)
    assert np.isnan(result.vsi.mean)
    assert np.isnan(result.jaccard.mean)


def test_an_explainer_without_noise_is_stable():
    result = stability(exact, TASK, k=2)
    assert result.vsi.mean == result.jaccard.mean == 1.0
    assert result.spread.mean == 0.0
    assert np.isnan(result.csi.mean)


def test_noise_is_seen_and_more_of_it_is_worse():
    still, loud = stability(noisy, TASK, k=2, runs=6), stability(exact, TASK, k=2, noise=3.0, runs=6)
    assert still.jaccard.mean < 1.0
    assert loud.jaccard.mean < 1.0
    assert stability(exact, TASK, k=2, noise=0.01, runs=6).spread.mean < 0.1


def test_runs_of_limes_overlap_as_intervals_must():
    """95 % intervals of two honest runs overlap in 99.4 %: |a - b| < 1.96 · 2 s has |z| < 2.77."""
    runs = repeats(6, 3)
    explainers = {
        seed: limes.TabularExplainer(wavy, BACKGROUND, max_calls=256, control="none", rng=seed)
        for seed in range(runs)
    }
    task = EvaluationTask.of(wavy, BACKGROUND, ROWS)
    result = stability(lambda X, seed: explainers[seed](X, progress=False), task, runs=runs)
    assert result.csi.mean > 0.95
    assert result.spread.mean > 0.0


def wavy(x):
    return np.sin(3 * x[:, 0]) * x[:, 1] + x[:, 2] * x[:, 3]


def test_max_sensitivity_of_a_line():
    """φ = λ ξ: a move of up to r deviations changes it by no more than ‖λ r σ‖."""
    result = sensitivity(exact, TASK, radius=0.1, draws=400)
    bound = np.linalg.norm(0.1 * BACKGROUND.std(axis=0) * SLOPES) / np.linalg.norm(ROWS * SLOPES, axis=1)
    assert (result.rows <= bound).all()
    assert (result.rows > 0.5 * bound).all()
    assert sensitivity(exact, TASK, radius=0.0).mean == 0.0


def test_an_explanation_of_zeros_has_no_sensitivity():
    assert np.isnan(sensitivity(lambda X, seed: np.zeros(np.shape(X)), TASK).rows).all()


def test_noise_leaves_categories_alone():
    import pandas as pd

    frame = pd.DataFrame({"a": np.arange(20.0), "b": ["x", "y"] * 10})
    task = EvaluationTask.of(lambda t: t["a"].to_numpy(), frame, frame.iloc[:4])
    for x in noisy_rows(task, 0.5, 3, rng=0):
        assert np.array_equal(x[:, 1], task.rows[:, 1])
        assert (x[:, 0] != task.rows[:, 0]).all()
        assert (np.abs(x[:, 0] - task.rows[:, 0]) <= 0.5 * frame["a"].std(ddof=0)).all()


def test_refused():
    with pytest.raises(InputError, match="runs"):
        stability(exact, TASK, runs=1)
    with pytest.raises(InputError, match="noise"):
        stability(exact, TASK, noise=-1.0)
    with pytest.raises(InputError, match="k must be"):
        stability(exact, TASK, k=0)
    with pytest.raises(InputError, match="no explainers"):
        compare({}, TASK)


# -- side by side -------------------------------------------------------------------------------------------


def test_a_comparison_marks_the_better_method():
    explanation = compare({"true": exact, "noisy <i>": lost}, TASK, k=2, runs=3, draws=200, progress=False)
    assert explanation.best("infidelity") == {"true"}
    assert explanation.best("Jaccard, seeds") == {"true"}
    assert explanation.best("CSI") == frozenset()
    text = str(explanation)
    assert "infidelity" in text
    assert "true" in text
    page = explanation.to_html()
    assert "<i>" not in page
    assert "noisy &lt;i&gt;" in page
    assert "http" not in page
    frame = explanation.to_frame()
    assert len(frame) == 2 * len(explanation.measures)
    assert set(frame["explainer"]) == {"true", "noisy <i>"}


def test_the_order_of_explainers_changes_nothing():
    first = compare({"a": exact, "b": noisy}, TASK, runs=2, draws=100, progress=False)
    second = compare({"b": noisy, "a": exact}, TASK, runs=2, draws=100, progress=False)
    for name in ("a", "b"):
        for measure in first.measures:
            one, other = first.scores[name][measure].rows, second.scores[name][measure].rows
            assert np.array_equal(one, other, equal_nan=True)


def test_score_leaves_out_what_is_not_defined():
    score = Score("x", np.array([1.0, np.nan, 3.0]), "higher")
    assert score.mean == 2.0
    assert score.error == pytest.approx(1.0)
    assert "2" in repr(score)
    assert np.isnan(Score("x", np.array([1.0]), "lower").error)


def test_explanations_of_other_rows_or_columns_are_refused():
    task = EvaluationTask.of(
        lambda X: X[:, 0], np.random.default_rng(0).normal(size=(50, 3)), np.zeros((2, 3))
    )
    shape = task.rows.shape
    for wrong in ((1, shape[1] + 1), (shape[0] + 1, shape[1])):
        with pytest.raises(InputError, match=r"explain task\.X"):
            limes.evaluate.sensitivity(lambda X, seed, wrong=wrong: np.ones(wrong), task)
        with pytest.raises(InputError, match=r"explain task\.X"):
            limes.evaluate.stability(lambda X, seed, wrong=wrong: np.ones(wrong), task, k=1)
    explain = lambda X, seed: np.ones(shape)  # noqa: E731
    with pytest.raises(InputError, match="draws"):
        limes.evaluate.sensitivity(explain, task, draws=0)
    with pytest.raises(InputError, match="noise"):
        limes.evaluate.stability(explain, task, k=1, noise=np.inf)


def test_attributions_are_numbers_and_outputs_are_positions():
    assert limes.evaluate.Attribution([[1, 2]]).values.dtype == np.float64
    with pytest.raises(InputError, match="must be numbers"):
        limes.evaluate.Attribution([["a", "b"]])
    for output in (2, "1", -1):
        with pytest.raises(InputError, match="no position"):
            limes.evaluate.attribution(np.ones((2, 3, 2)), output=output)
