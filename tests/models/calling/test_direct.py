"""A booster that is called directly gives its estimator's answers, also after a change of the estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import limes
from internals import direct_question, prediction_method

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 4))
TARGETS = {"LGBMRegressor": ROWS[:, 0] * ROWS[:, 1], "LGBMClassifier": np.digitize(ROWS[:, 0], [-0.5, 0.5])}


def fitted(kind, **options):
    library = pytest.importorskip("lightgbm")
    return getattr(library, kind)(n_estimators=5, verbose=-1, n_jobs=1, **options).fit(ROWS, TARGETS[kind])


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("LGBMRegressor", "predict"),
        ("LGBMRegressor", "decision_function"),
        ("LGBMClassifier", "decision_function"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}])
def test_answers_are_the_estimators(kind, method, options):
    model = fitted(kind, **options)
    question, method_of_model = direct_question(model, method), prediction_method(model, method)
    np.testing.assert_array_equal(question(ROWS), method_of_model(ROWS))
    np.testing.assert_array_equal(question(ROWS[:1]), method_of_model(ROWS[:1]))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1, -100])
def test_threads_are_those_of_the_estimator(n_jobs, monkeypatch):
    """LightGBM trains a booster further with the number of threads that it was last asked with."""
    model, numbers = fitted("LGBMRegressor"), []
    model.set_params(n_jobs=n_jobs)
    kind = type(model.booster_)
    monkeypatch.setattr(
        kind, "predict", lambda self, rows, **more: numbers.append(more["num_threads"]) or rows
    )
    direct_question(model, "predict")(ROWS)
    model.predict(ROWS)
    assert len(set(numbers)) == 1
    assert len(numbers) == 2


def test_classes_and_other_models_are_called_directly():
    assert direct_question(fitted("LGBMClassifier"), "predict") is None
    assert direct_question(lambda x: x[:, 0], "") is None


@pytest.mark.parametrize(
    "background", [ROWS, pd.DataFrame(ROWS, columns=list("abcd"))], ids=["array", "frame"]
)
def test_a_leaf_that_was_changed_in_place_is_seen_by_one_row(background):
    """No attribute of the estimator changes, and no number of trees."""
    model = fitted("LGBMRegressor")
    explainer = limes.TabularExplainer(model, background)
    row = background[:1]
    before = explainer(row)
    leaf = int(model.predict(ROWS[:1], pred_leaf=True)[0, 2])
    model.booster_.set_leaf_output(2, leaf, 7.0)
    after = explainer(row)
    np.testing.assert_allclose(after.predictions, model.predict(row), rtol=1e-9)
    np.testing.assert_array_equal(
        after.coefficients.values, limes.TabularExplainer(model, background)(row).coefficients.values
    )
    assert abs(after.predictions[0] - before.predictions[0]) > 1.0


def test_a_method_of_the_instance_is_called_from_then_on():
    model = fitted("LGBMRegressor")
    explainer = limes.TabularExplainer(model, ROWS)
    assert explainer(ROWS[:1]).method == "exact"
    model.predict = lambda table: np.full(len(table), 3.0)
    explanation = explainer(ROWS[:1])
    assert explanation.method == "sampled"
    assert explanation.predictions.tolist() == [3.0]


@pytest.mark.parametrize("library", ["lightgbm.LGBMRegressor", "xgboost.XGBRegressor"])
def test_an_explanation_calls_a_booster_once(library, monkeypatch):
    """The same answer is shown, and compared with the form's."""
    home, name = library.split(".")
    kind = getattr(pytest.importorskip(home), name)
    quiet = {"verbose": -1} if home == "lightgbm" else {}
    model = kind(n_estimators=5, n_jobs=1, **quiet).fit(ROWS, TARGETS["LGBMRegressor"])
    explainer, calls = limes.TabularExplainer(model, ROWS), []
    predict = kind.predict
    monkeypatch.setattr(
        kind, "predict", lambda self, rows, **more: calls.append(1) or predict(self, rows, **more)
    )
    explanation = explainer(ROWS[:1])
    np.testing.assert_allclose(explanation.predictions, predict(model, ROWS[:1]), rtol=1e-6)
    # beside a few rows of the background, which might show a new fit that the explained row hides
    assert len(calls) == (0 if home == "lightgbm" else 1)
