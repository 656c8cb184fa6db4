"""Accuracy of a pool: where it stops growing, and the control of rows that it cannot serve."""

import signal

import numpy as np
import pytest

import limes
from effort import repeats
from internals import CHECK_CALLS, WITNESSES
from limes.exceptions import Interrupted

X = np.random.default_rng(0).normal(size=(600, 8))


def corners(x):
    """Interactions of four columns, which no additive control follows."""
    return 1.0 * ((x[:, 0] > 0) & (x[:, 1] > 0)) - 2.0 * ((x[:, 2] > 0.5) & (x[:, 3] < 0)) * (x[:, 4] > 0)


def test_without_a_tolerance_errors_are_small_or_the_pool_is_the_largest():
    rows = X[:20]
    explanation = limes.TabularExplainer(lambda x: x[:, 0] + 0.1 * np.sin(3 * x[:, 1]), X)(rows)
    largest = np.abs(explanation.coefficients.values).max(axis=1)
    worst = explanation.coefficients.standard_errors.max(axis=1) / largest
    assert ((worst <= 0.015) | (explanation.shared_calls == 16_384)).all()
    assert (explanation.shared_calls < 16_384).any()


def test_rows_that_the_largest_pool_does_not_serve_get_a_thorough_control_once():
    sizes = []

    def model(x):
        sizes.append(len(x))
        return corners(x)

    explainer = limes.TabularExplainer(model, X, max_calls=8459, tolerance="1%", contributions=False)
    explanation = explainer(X[:6])
    checks = 2 + CHECK_CALLS + WITNESSES
    assert explainer.pool_calls == checks + 8192
    assert sum(sizes) <= 8192 + checks + 6  # and the rows themselves
    assert set(explanation.coefficients.controls) == {"tree"}
    additive = limes.TabularExplainer(corners, X, max_calls=8192, control="additive")(X[:6])
    assert (
        explanation.coefficients.standard_errors.mean(axis=1)
        < 0.7 * additive.coefficients.standard_errors.mean(axis=1)
    ).all()


def test_numbers_depend_on_the_row_alone_whatever_control_it_takes():
    whole = limes.TabularExplainer(corners, X, max_calls=8192)(X[:6])
    other = limes.TabularExplainer(corners, X, max_calls=8192)
    for i in (5, 0):
        np.testing.assert_array_equal(other(X[[i]]).coefficients.values[0], whole.coefficients.values[i])


def test_errors_with_the_thorough_control_cover():
    """Against a plain fit to 2¹⁸ rows of the same law, over seeds."""
    rows = X[:4]
    design = limes.TabularExplainer(corners, X).design
    levels = np.random.default_rng(1).random((1 << 18, 8))
    truth = []
    for row in rows:
        drawn, z = design(row).draw(levels)
        a = np.column_stack([np.ones(len(z)), z])
        truth.append(np.linalg.solve(a.T @ a, a.T @ corners(drawn))[1:])
    inside = [
        np.abs(explanation.coefficients.values - np.array(truth))
        <= 1.96 * np.hypot(explanation.coefficients.standard_errors, 0.003)
        for explanation in (
            limes.TabularExplainer(corners, X, max_calls=8192, rng=seed)(rows)
            for seed in range(repeats(12, 3))
        )
    ]
    assert np.mean(inside) >= 0.93


def test_ctrl_c_keeps_the_answers_of_a_slow_model():
    """A signal in the middle of a batch: that batch alone is asked again, and the explained rows."""
    rows_seen, pressed = [], []

    def slow(x):
        rows_seen.extend(map(bytes, np.ascontiguousarray(x)))
        if len(rows_seen) > 700 and not pressed:
            pressed.append(len(rows_seen))
            signal.raise_signal(signal.SIGINT)
        return x[:, 0] * x[:, 1] + x[:, 2]

    X = np.random.default_rng(0).normal(size=(300, 6))
    options = {"max_calls": 2196, "tolerance": 1e-9, "contributions": False}
    explainer = limes.TabularExplainer(slow, X, batch_size=64, **options)
    with pytest.raises(Interrupted) as stop:
        explainer(X[:3], progress=False)
    assert isinstance(stop.value, KeyboardInterrupt)
    assert 600 < explainer.pool_calls < 1024
    # a first look, the rows, and the batch that was cut short
    assert len(rows_seen) == pressed[0] == explainer.pool_calls + 3 + 64
    again = explainer(X[:3], progress=False)
    assert len(rows_seen) == 2 + CHECK_CALLS + 2 * (WITNESSES + 3) + 2048 + 64
    assert len(set(rows_seen)) <= 3 + 2 + WITNESSES + 2048
    clean = limes.TabularExplainer(lambda x: x[:, 0] * x[:, 1] + x[:, 2], X, **options)
    assert np.array_equal(clean(X[:3], progress=False).coefficients.values, again.coefficients.values)


def test_the_bar_says_calls_and_the_time_left(monkeypatch, capsys):
    import time

    import tqdm.auto

    monkeypatch.setattr(
        tqdm.auto, "tqdm", lambda **options: tqdm.std.tqdm(**{**options, "delay": 0, "mininterval": 0})
    )

    def slow(x):
        time.sleep(0.02)
        return x[:, 0] * x[:, 1]

    limes.TabularExplainer(slow, X, batch_size=128, max_calls=1104, contributions=False)(X[:2])
    shown = capsys.readouterr().err
    assert "512/1024 calls [" in shown
    assert " left]" in shown
