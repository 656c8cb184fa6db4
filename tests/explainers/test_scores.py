"""Answers of ``predict_proba``: probabilities of both classes, of one, or scores, at every door."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import limes
from internals import output_title
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import InputError, ModelError
from limes.scale import explain_frame

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=300), "b": RNG.exponential(size=300), "c": RNG.integers(0, 5, 300)})
X = X.astype(float)
TEXT = "a good day for all of us here"
IMAGE = RNG.random((8, 8))
HALVES = np.repeat([[0, 1]], 8, axis=0).repeat(4, axis=1)


def score_of(rows):
    """The score (n,) of rows of numbers, texts or images, or of parts, one of which is such rows."""
    rows = rows["row"] if isinstance(rows, dict) else rows
    if isinstance(rows[0] if isinstance(rows, list) else None, str):
        return np.array([len(text.split()) - 3.0 + 2.0 * ("good" in text) for text in rows])
    return 2.0 * np.asarray(rows, dtype=float).reshape(len(rows), -1)[:, 0]


def expit(s):
    return 1.0 / (1.0 + np.exp(-s))


BOTH, ONE, SCORES = "both", "one", "scores"
# What a model of the classes "no" and "yes" answers, and what that is
ANSWERS = {
    "probabilities": (lambda s: np.column_stack([1 - expit(s), expit(s)]), BOTH),
    "p (n,)": (expit, BOTH),
    "p (n, 1)": (lambda s: expit(s)[:, None], BOTH),
    "p in three digits": (lambda s: np.column_stack([1 - expit(s), expit(s)]).round(3), BOTH),
    "p in float16": (lambda s: np.column_stack([1 - expit(s), expit(s)]).astype(np.float16), BOTH),
    "score (n,)": (lambda s: s, ONE),
    "score (n, 1)": (lambda s: s[:, None], ONE),
    "percentage (n,)": (lambda s: 100.0 * expit(s), ONE),
    "scores": (lambda s: np.column_stack([-s, s]), SCORES),
    "percentages": (lambda s: 100.0 * np.column_stack([1 - expit(s), expit(s)]), SCORES),
    "log probabilities": (lambda s: np.log(np.column_stack([1 - expit(s), expit(s)])), SCORES),
    "not normalised": (lambda s: 0.8 * np.column_stack([1 - expit(s), expit(s)]), SCORES),
    "distances": (lambda s: np.abs(np.column_stack([s - 3.0, s + 3.0])), SCORES),
}


class Answering(ClassifierMixin, BaseEstimator):
    def __init__(self, kind="probabilities"):
        self.kind = kind
        self.classes_ = np.array(["no", "yes"])

    def fit(self, rows, labels=None):
        return self

    def predict(self, rows):
        return self.classes_[(score_of(rows) > 0).astype(int)]

    def predict_proba(self, rows):
        return ANSWERS[self.kind][0](score_of(rows))


def scored(explanation):
    """Whether every row has one warning that the answers are scores, and none of a threshold."""
    codes = [[w.code for w in row] for row in explanation.row_warnings]
    counts = {row.count("scores") for row in codes}
    assert len(counts) == 1
    if counts == {1}:
        assert not any({"other side", "no probability", "probabilities"} & {*row} for row in codes)
        warning = next(w for w in explanation.row_warnings[0] if w.code == "scores")
        assert warning.startswith("predict_proba of Answering answers numbers")
    return counts == {1}


def tabular(model, **options):
    return limes.TabularExplainer(model, X, max_calls=256, **options)(X[:3], progress=False)


DOORS = {
    "table": tabular,
    "sampled": lambda model: tabular(model, method="sampled"),
    "joint law": lambda model: tabular(model, law="joint"),
    "bound method": lambda model: tabular(model.predict_proba),
    "text": lambda model: limes.TextExplainer(model, max_calls=64)(TEXT, progress=False),
    "image": lambda model: limes.ImageExplainer(model, segments=HALVES)(IMAGE, progress=False),
    "parts": lambda model: limes.CompositeExplainer(
        model, {"row": limes.TablePart(background=X)}, max_calls=32
    )({"row": X.iloc[0]}, progress=False),
}
# These explain one output: the second of two classes
OF_ONE = {
    "class": lambda model: tabular(model, output="yes"),
    "rule": lambda model: limes.SparseExplainer(model, literals=limes.Literals.fit(X), k=2)(
        X[:2], progress=False
    ),
    "maple": lambda model: limes.MapleExplainer(model, X)(X[:2]),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ANSWERS)
def test_each_door_names_what_is_answered(kind, door):
    meaning = ANSWERS[kind][1]
    explanation = DOORS[door](Answering(kind))
    titles = [output_title(explanation, k) for k in range(len(explanation.output_names))]
    expected = {
        BOTH: ["P(no)", "P(yes)"],
        ONE: ["score of yes"],
        SCORES: ["score of no", "score of yes"],
    }
    assert titles == expected[meaning]
    assert scored(explanation) is (meaning != BOTH)
    assert ("P(" in str(explanation.coefficients)) is (meaning == BOTH)
    assert (" % chance of " in str(explanation)) is (meaning == BOTH)


@pytest.mark.parametrize("door", OF_ONE)
@pytest.mark.parametrize("kind", ANSWERS)
def test_the_second_class_is_named_by_what_it_answers(kind, door):
    meaning = ANSWERS[kind][1]
    explanation = OF_ONE[door](Answering(kind))
    assert output_title(explanation, 0) == ("P(yes)" if meaning == BOTH else "score of yes")
    assert scored(explanation) is (meaning != BOTH)


@pytest.mark.parametrize("kind", ["p (n,)", "p (n, 1)"])
def test_a_probability_of_one_column_gets_the_other_class(kind):
    explanation = tabular(Answering(kind))
    p = expit(2.0 * X["a"].to_numpy()[:3])
    np.testing.assert_allclose(explanation.predictions, np.column_stack([1 - p, p]), rtol=1e-12)
    np.testing.assert_allclose(
        explanation.coefficients.values[..., 0], -explanation.coefficients.values[..., 1], atol=1e-12
    )


@pytest.mark.parametrize("kind", ["score (n,)", "score (n, 1)", "percentage (n,)"])
def test_a_score_of_one_column_is_explained_as_it_is(kind):
    explanation = tabular(Answering(kind))
    expected = ANSWERS[kind][0](2.0 * X["a"].to_numpy()[:3]).ravel()
    np.testing.assert_allclose(explanation.predictions.ravel(), expected, rtol=1e-12)
    with pytest.raises(ModelError, match="one score a row, that of the class 'yes': pass output='yes'"):
        tabular(Answering(kind), output="no")


def test_few_rows_within_0_and_1_do_not_make_a_score_a_probability():
    """The explained row's score is 0.4; that of the background is not within 0 and 1."""
    row = X[:1].assign(a=0.2)
    explanation = limes.TabularExplainer(Answering("score (n,)"), X, max_calls=256)(row, progress=False)
    assert explanation.predictions.tolist() == [0.4]
    assert scored(explanation)


def test_long_tables_and_the_stored_file_have_the_warning():
    frame = explain_frame(limes.TabularExplainer(Answering("score (n,)"), X, max_calls=256), X[:3])
    assert frame["warnings"].str.contains("scores").all()
    explanation = tabular(Answering("percentages"))
    stored = limes.Explanation.from_json(explanation.to_json())
    assert output_title(stored, 1) == "score of yes"
    assert "score of" in explanation.to_html()
    assert "P(yes)" not in explanation.to_html()


def test_a_rule_for_a_class_of_scores_needs_a_threshold():
    literals = limes.Literals.fit(X)
    options = {"literals": literals, "k": 1, "objective": "class"}
    with pytest.raises(InputError, match="needs threshold="):
        limes.SparseExplainer(Answering("score (n,)"), **options)(X[:1], progress=False)
    limes.SparseExplainer(Answering("score (n,)"), threshold=0.0, **options)(X[:1], progress=False)


def test_bounds_of_a_rule_do_not_take_scores_for_shares():
    """The range of the answers behind the bounds holds every answer that was seen."""
    explanation = OF_ONE["rule"](Answering("percentage (n,)"))
    assert all(c.bounds["fidelity"] >= c.fidelity for c in explanation.certificates)
    assert explanation.certificates[0].quantity == "prediction"


def test_the_drop_in_takes_one_column():
    explainer = LimeTabularExplainer(X.to_numpy(), feature_names=[*X.columns])
    explanation = explainer.explain_instance(
        X.to_numpy()[0], Answering("p (n,)").predict_proba, num_samples=500
    )
    assert explanation.predict_proba[1] == pytest.approx(expit(2.0 * X["a"][0]), rel=1e-12)


# -- a custom objective --------------------------------------------------------------------------------------


def focal(labels, margins):
    p = expit(margins)
    return p - labels, p * (1 - p)


def classes_of_three(labels, margins):
    scores = margins.reshape(3, -1).T if margins.ndim == 1 else margins
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p - np.eye(3)[labels.astype(int)], 2 * p * (1 - p)


@pytest.mark.filterwarnings("ignore:Cannot compute class probabilities")
@pytest.mark.parametrize(("objective", "classes"), [(focal, 2), (classes_of_three, 3)])
def test_lightgbm_with_a_custom_objective(objective, classes):
    lightgbm = pytest.importorskip("lightgbm")
    target = np.digitize(X["a"] + X["b"] * X["c"] / 3, [1.0] if classes == 2 else [0.0, 1.0])
    model = lightgbm.LGBMClassifier(objective=objective, n_estimators=10, verbose=-1).fit(X, target)
    raw = model.predict(X, raw_score=True)
    explanation = tabular(model)
    np.testing.assert_allclose(explanation.predictions, raw[:3], rtol=1e-9)
    (warning,) = {w for row in explanation.row_warnings for w in row if w.code == "scores"}
    assert warning.startswith("predict_proba of LGBMClassifier answers numbers from -")
    assert "raw scores, as behind a custom objective" in warning
    margin = tabular(model, output="margin")
    assert margin.method == "exact"
    np.testing.assert_allclose(margin.predictions, raw[:3], rtol=1e-9)
    assert "margin of" in output_title(margin, 0)
