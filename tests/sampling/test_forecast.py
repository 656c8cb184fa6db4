"""One warning predicts the time of a slow model after its first answers."""

import warnings

import numpy as np
import pytest

import limes
from internals import sampled
from limes.exceptions import SlowModelWarning

X = np.random.default_rng(0).normal(size=(300, 4))


class Slow:
    """A function that takes some seconds a row, by a clock that it moves."""

    def __init__(self, seconds):
        self.seconds, self.now = seconds, 0.0

    def __call__(self, x):
        self.now += self.seconds * len(x)
        return x[:, 0] * x[:, 1]


def explained(monkeypatch, seconds, rows=1, **options):
    model = Slow(seconds)
    monkeypatch.setattr(sampled, "monotonic", lambda: model.now)
    explainer = limes.TabularExplainer(model, X, contributions=False, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer(X[:rows], progress=False)
        explainer(X[:rows], progress=False)
    return [str(w.message) for w in caught if issubclass(w.category, SlowModelWarning)]


def test_a_pool_is_foretold(monkeypatch):
    (text,) = explained(monkeypatch, 0.05, tolerance="1.5%")
    assert text.startswith("the model takes about 50 ms a row: up to 15,360 more calls take about 13 min")
    assert "max_calls=1000 takes about 50 s" in text


def test_rows_that_are_sampled_by_themselves_are_foretold(monkeypatch):
    (text, again) = explained(monkeypatch, 0.05, rows=3, bins=None)
    assert "8,192 more calls take about 7 min; max_calls=1000 takes about 2 min" in text
    assert again.startswith("the model takes about 50 ms")


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_quick_models_have_no_forecast(monkeypatch, seconds):
    assert explained(monkeypatch, seconds) == []
