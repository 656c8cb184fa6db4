"""Contributions of a slow function: a bar within a second, what all calls take, batches of a second."""

from __future__ import annotations

import io
import sys
import time

import numpy as np
import pytest

import limes

X = np.random.default_rng(0).normal(size=(100, 6))


class Terminal(io.StringIO):
    def __init__(self, is_live=True):
        super().__init__()
        self.is_live = is_live

    def isatty(self):
        return self.is_live


def explained(monkeypatch, seconds, terminal, **options):
    """Contributions; rows of each call of the model, and whether anything was written before its end."""
    calls = []

    def model(x):
        time.sleep(seconds * len(x))
        calls.append((len(x), bool(terminal.getvalue())))
        return x[:, 0] * x[:, 1]

    explainer = limes.TabularExplainer(model, X, max_calls=300, bandwidth=np.inf, rng=0)
    calls.clear()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        explanation = explainer.contributions(X[:1], **options)
    return explanation.contributions.values, calls


def test_one_row_has_a_bar_within_seconds_and_a_price(monkeypatch):
    terminal = Terminal()
    values, calls = explained(monkeypatch, 0.02, terminal)
    assert "up to about" in terminal.getvalue()
    assert "calls [" in terminal.getvalue()
    rows, is_written = map(np.array, zip(*calls, strict=True))
    # asleep for two seconds, at least
    assert is_written[0.02 * rows.cumsum() >= 2.0].all()
    # a small batch, and then of about a second
    assert rows.max() <= 51
    quick, calls = explained(monkeypatch, 0.0, Terminal())
    assert max(calls)[0] > 51
    np.testing.assert_array_equal(values, quick)


@pytest.mark.parametrize(
    ("seconds", "is_live", "options"),
    [(0.0, True, {}), (0.004, True, {"progress": False}), (0.004, False, {})],
)
def test_quick_and_silent_work_writes_nothing(monkeypatch, seconds, is_live, options):
    terminal = Terminal(is_live)
    explained(monkeypatch, seconds, terminal, **options)
    assert terminal.getvalue() == ""


def test_the_price_offers_fewer_calls():
    text = limes._threads.price(80.0, 4000)
    assert text == "up to about 80 s; 20 s with max_calls=1000, where errors are about twice as large"
    assert limes._threads.price(80.0, 900).startswith("up to about 80 s; 18 s with max_calls=200, ")
    assert limes._threads.price(80.0, 400) == "up to about 80 s"
    assert limes._threads.price(1.0, 4000) == ""
