"""Forms over pixels as forms over superpixels: they predict the model's answers to perturbed images."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeRegressor

import words
from internals import Switches, over_switches
from limes.exceptions import InputError
from limes.models import forms, read

RNG = np.random.default_rng(3)
PIXELS = 24
D = 5
X = RNG.integers(0, 256, (60, PIXELS)).astype(float)
Y = X[:, :6].mean(axis=1) - X[:, 6] * X[:, 7] / 255
CLASSES = (np.median(Y) < Y).astype(int) + (X[:, 9] > 200)
SWITCHES = Switches(X[0], X[1:20].mean(axis=0), np.arange(PIXELS) * D // PIXELS)

MODELS = [
    (LinearRegression().fit(X, Y), None),
    (LinearRegression().fit(X, np.stack([Y, X[:, 3]], axis=1)), None),
    (make_pipeline(StandardScaler(), LogisticRegression()).fit(X, CLASSES), "margin"),
    (DecisionTreeRegressor(random_state=0).fit(X, Y), None),
    (RandomForestClassifier(20, random_state=0).fit(X, CLASSES), None),
    (GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, Y), None),
    (make_pipeline(StandardScaler(), SVR()).fit(X, Y), None),
    (make_pipeline(StandardScaler(), SVC()).fit(X, CLASSES > 0), "margin"),
    (
        VotingRegressor([("a", LinearRegression()), ("b", DecisionTreeRegressor(random_state=0))]).fit(X, Y),
        None,
    ),
]


def perturbed(z):
    return np.where(z[:, SWITCHES.labels] > 0, SWITCHES.shown, SWITCHES.fill)


@pytest.mark.parametrize(
    ("model", "output"), MODELS, ids=lambda value: getattr(value, "__class__", value).__name__
)
def test_switched_forms_predict_the_models_answers(model, output):
    form = read(model, output)
    z = words.subsets(D)
    expected = form.predict(perturbed(z))
    assert np.ptp(expected, axis=0).max() > 0
    np.testing.assert_allclose(
        over_switches(form, SWITCHES).predict(z), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
    )


def test_additive_forms_and_boxes():
    z = words.subsets(D)
    functions = [None if j % 3 == 0 else lambda x, j=j: np.cos(x / 50 + j) for j in range(PIXELS)]
    additive = forms.Additive(functions)
    np.testing.assert_allclose(
        over_switches(additive, SWITCHES).predict(z), additive.predict(perturbed(z)), rtol=1e-9, atol=1e-9
    )
    lower = np.where(RNG.random((6, PIXELS)) < 0.8, -np.inf, 100.0)
    boxes = forms.Boxes(lower, np.full((6, PIXELS), np.inf), np.arange(6.0))
    np.testing.assert_allclose(
        over_switches(boxes, SWITCHES).predict(z), boxes.predict(perturbed(z)), atol=1e-12
    )


def test_forms_of_other_sizes_and_kinds_are_refused():
    with pytest.raises(InputError, match="reads 3 columns, the image has 24"):
        over_switches(forms.Linear(np.ones(3)), SWITCHES)
    with pytest.raises(InputError, match="PresenceProducts over pixels"):
        over_switches(forms.PresenceProducts([([0], [], 1.0)], size=PIXELS), SWITCHES)
