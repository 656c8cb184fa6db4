"""95 % intervals hold the truth in at least 93 % of samples, or the explanation says that they may not.

A slice of ``benchmarks/coverage``, whose functions and oracles these are.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.coverage.functions import CASES
from benchmarks.coverage.samples import runs, summary

import limes
from effort import repeats
from internals import NOT_TRUSTED

GOAL = 0.93
SEEDS = repeats(60, 30)
# of a coverage that is estimated from few seeds
NOISES = 3.0


@pytest.mark.parametrize(
    "name",
    [
        "images: parity of 3",
        "images: majority of 5",
        "texts: parity of 3",
        "parity of 3 at medians, 20 columns",
    ],
)
def test_structure_that_raises_the_variance_is_seen(name):
    """The parity of three superpixels was covered by 0.832: a set and its complement tell the same twice."""
    result = summary(runs(CASES[name], control="none", calls=256, seeds=SEEDS))
    assert result["warned"] == result["infinite"] == 0
    assert result["coverage"] >= GOAL - NOISES * result["noise"], result
    assert result["error / standard error"] > 0.5, "errors that are twice too large are no use"


@pytest.mark.parametrize(
    ("name", "was"), [("event of 1e-2", 0.894), ("event of 1e-3", 0.76), ("plateau of 6 columns", 0.73)]
)
def test_rare_answers_are_covered_and_spoken_of(name, was):
    errors, standard, distrusted = runs(CASES[name], control="none", calls=256, seeds=SEEDS)
    assert distrusted.all()
    inside = np.abs(errors) <= 1.96 * standard
    assert inside.mean() >= GOAL > was


def test_heavy_tails_are_spoken_of():
    """Coverage of exp(1.2 sum of 5 normals) was 0.924: a few rows of the sample are all that counts."""
    _, _, distrusted = runs(CASES["exp(1.2 sum of 5)"], control="none", calls=256, seeds=20)
    assert distrusted.mean() >= 0.95


def test_a_model_that_gave_one_answer_is_not_converged():
    """0 ± 0 after 256 of 4,096 calls, converged and without a warning; the truth is -0.0015."""
    X = np.random.default_rng(0).normal(size=(500, 5))

    def rare(rows):
        return ((rows[:, 0] > 1.9) & (rows[:, 1] > 1.6)).astype(float)

    explainer = limes.TabularExplainer(rare, X, tolerance="5%", max_calls=285, contributions=False, rng=1)
    explanation = explainer(np.zeros((1, 5)), progress=False)
    assert not explanation.coefficients.values.any()
    assert (explanation.coefficients.standard_errors > 0.003).all()
    assert not explanation.converged
    assert any(
        "answered the same in all 256 perturbed rows" in w and NOT_TRUSTED in w for w in explanation.warnings
    )


@pytest.mark.parametrize("answer", [0.3, 152.1])
def test_a_constant_callable_has_coefficients_0_and_has_not_converged(answer):
    X = np.random.default_rng(0).normal(size=(100, 3))
    explainer = limes.TabularExplainer(lambda rows: np.full(len(rows), answer), X, max_calls=256)
    explanation = explainer(X[:1], progress=False)
    assert np.abs(explanation.coefficients.values).max() < 1e-9 * answer
    assert np.isinf(explanation.coefficients.standard_errors).all() == (answer > 1)
    assert not explanation.converged
    texts = [w for w in explanation.warnings if "hardly changed" in w or "stopped after" in w]
    assert texts == []


def test_answers_beyond_floats_are_spoken_of():
    X = np.random.default_rng(0).normal(size=(100, 3))
    explainer = limes.TabularExplainer(lambda rows: 1e300 * rows[:, 0], X, max_calls=256, control="none")
    with np.errstate(all="ignore"), pytest.raises(limes.exceptions.ModelError, match="divided by a constant"):
        explainer(X[:1], progress=False)


@pytest.mark.parametrize("kind", ["logistic", "network", "forest", "boosted"])
def test_ordinary_models_raise_no_alarm(kind):
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=600) > 0.3
    model = {
        "logistic": LogisticRegression(),
        "network": MLPClassifier((16,), max_iter=60, random_state=0, tol=1.0),
        "forest": RandomForestClassifier(30, random_state=0),
        "boosted": GradientBoostingClassifier(n_estimators=30, random_state=0),
    }[kind].fit(X, y)
    explainer = limes.TabularExplainer(
        lambda rows: model.predict_proba(rows)[:, 1], X, control="none", max_calls=285, contributions=False
    )
    explanation = explainer(X[:40], progress=False)
    assert sum(any(NOT_TRUSTED in w for w in row) for row in explanation.row_warnings) == 0
