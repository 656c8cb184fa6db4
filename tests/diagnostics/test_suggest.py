"""The suggested bandwidth: its curves equal diagnoses at each bandwidth, and the choice follows from them."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes
from flaws import linear
from internals import DRIFT, FIDELITY, MISS, NOISE
from limes.exceptions import InputError
from oracle import EXACT


@pytest.fixture(scope="module")
def forest():
    X = np.random.default_rng(0).normal(size=(400, 5))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    return X, RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, y)


def test_the_choice_is_the_narrowest_that_meets_the_aims(forest):
    X, model = forest
    explainer = limes.TabularExplainer(model, X)
    explanation = limes.suggest_bandwidth(explainer, X[:6])
    at = int(np.argmin(np.abs(explanation.bandwidths - explanation.bandwidth)))
    quiet = max(NOISE, 1.25 * np.nanmin(explanation.noise))
    reproducible = (explanation.noise <= quiet) & (explanation.drift <= DRIFT)
    good = reproducible & (explanation.fidelity >= FIDELITY * explanation.fidelity[reproducible].max())
    now = int(np.argmin(np.abs(explanation.bandwidths - explanation.current)))
    good &= explanation.miss <= explanation.miss[now] + MISS
    assert at == np.flatnonzero(good)[0]
    assert explanation.current == pytest.approx(0.75 * np.sqrt(5))
    assert f"{explanation.bandwidths[at - 1]:.3g}" in explanation.reason
    assert repr(limes.suggest_bandwidth(explainer, X[:6])) == repr(explanation)


def test_curves_equal_the_diagnosis_at_each_bandwidth(forest):
    X, model = forest
    explanation = limes.suggest_bandwidth(limes.TabularExplainer(model, X), X[:1], calls=8192)
    at = 15
    bandwidth = explanation.bandwidths[at]
    diagnosis = limes.diagnose(limes.TabularExplainer(model, X, bandwidth=bandwidth)(X[:1]), calls=8192).rows[
        0
    ]
    assert explanation.locality[at] == pytest.approx(diagnosis.diagnostics["sample size"].locality, abs=EXACT)
    assert explanation.fidelity[at] == pytest.approx(diagnosis.diagnostics["fit"].fidelity, rel=0.1)
    wide, narrow = (
        limes.TabularExplainer(model, X, bandwidth=bandwidth * step)(X[:1]).coefficients.values[0]
        for step in (np.sqrt(2), 1 / np.sqrt(2))
    )
    drift = np.linalg.norm(wide - narrow) / np.linalg.norm(diagnosis.explanation.values)
    assert explanation.drift[at] == pytest.approx(drift, rel=1e-6)
    missed = abs(diagnosis.explanation.prediction - diagnosis.explanation.surrogate)
    now = limes.TabularExplainer(model, X)(X[:1])
    deviation = limes.diagnose(now, calls=8192).rows[0].diagnostics["fit"].deviation
    assert explanation.miss[at] == pytest.approx(missed / deviation, abs=0.04)


def test_the_noise_is_that_of_weighted_fits(forest):
    """Least squares on 5,000 weighted rows, fifty times."""
    X, model = forest
    explainer = limes.TabularExplainer(model, X, bandwidth=1.0)
    result = limes.suggest_bandwidth(explainer, X[:1], calls=8192)
    context = explainer.diagnostic_context(explainer(X[:1]), output=np.zeros(1, dtype=int), calls=None)
    fits = []
    for seed in range(50):
        x, h = context.draw(context.designs(np.inf)[0], 5000, np.random.default_rng(seed))
        root = np.exp(-context.squared_distances(0, x) / 4)  # √π at ν = 1
        design = np.column_stack([np.ones(5000), h]) * root[:, None]
        fits.append(np.linalg.lstsq(design, context.predictions(0, x) * root, rcond=None)[0][1:])
    noise = np.sqrt(np.var(fits, axis=0, ddof=1).sum()) / np.linalg.norm(np.mean(fits, axis=0))
    at = int(np.argmin(np.abs(result.bandwidths - 1.0)))
    assert result.noise[at] == pytest.approx(noise, rel=0.25)


def test_texts_and_pictures():
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit(["good food", "bad food", "good place", "bad service"], [1, 0, 1, 0])
    explainer = limes.TextExplainer(model, output="margin")
    result = limes.suggest_bandwidth(explainer, ["good food here", "a bad place"])
    assert 0.025 <= result.bandwidth <= 2.5
    figure, ax = plt.subplots()
    assert result.plot(ax) is ax
    plt.close(figure)
    assert "suggested" in str(result)


def test_rows_that_cannot_be_judged_are_refused(forest):
    X, _ = forest
    with pytest.raises(InputError, match="TabularExplainer"):
        limes.suggest_bandwidth(object(), X[:2])
    with pytest.raises(InputError, match="does the model vary"):
        limes.suggest_bandwidth(limes.TabularExplainer(linear(np.zeros(5)), X), X[:2])
