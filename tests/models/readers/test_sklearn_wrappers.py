"""Wrappers that delegate, one-vs-rest, classifiers of several targets, constants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import boosters
import limes
import oracle
from internals import ModelCaller, resolve, tolerance_of
from limes.exceptions import InputError, ModelError
from limes.models import forms

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(120, 3)), 1)
Y = X[:, 0] * (1 + X[:, 1]) + X[:, 2]
TWO, THREE = np.where(Y > 0, "yes", "no"), np.digitize(Y, [-1.0, 1.0]) * 5
PAIR = np.column_stack([TWO, np.array(["a", "b", "c"])[THREE // 5]])
LABELS = np.column_stack([Y > 0, X[:, 0] > 0.3, X[:, 1] > 1]).astype(int)
FAR = np.concatenate([X[RNG.integers(120, size=1000)] + 2 * RNG.normal(size=(1000, 3)), X])
SAME = 1e-11


def assert_read(model, expected, *, output=None):
    """The form says what is expected far off the background, and coefficients are those of all cells."""
    form = limes.models.read(model, output)
    assert not isinstance(form, forms.BlackBox), form.reason
    assert oracle.error(form.predict(FAR), expected) < SAME
    assert oracle.error(ModelCaller(model, resolve(model, output), np.asarray)(FAR), expected) < SAME
    return boosters.assert_coefficients(model, X, output=output)


# -- handed on --------------------------------------------------------------------------------------------


def test_frozen_models_are_read_as_their_estimator():
    line, tree = LinearRegression().fit(X, Y), DecisionTreeClassifier(max_depth=4).fit(X, TWO)
    assert_read(FrozenEstimator(line), line.predict(FAR))
    assert_read(FrozenEstimator(FrozenEstimator(line)), line.predict(FAR))
    assert_read(FrozenEstimator(tree), tree.predict_proba(FAR))
    assert_read(FrozenEstimator(tree), tree.predict_proba(FAR)[:, 1], output="yes")
    logistic = LogisticRegression().fit(X, TWO)
    assert_read(FrozenEstimator(logistic), logistic.decision_function(FAR), output="margin")
    assert_read(make_pipeline(StandardScaler(), FrozenEstimator(line)).fit(X, Y), line.predict(scaled(FAR)))


def scaled(table):
    return StandardScaler().fit(X).transform(table)


def test_frozen_models_are_compared_as_closely_as_what_they_freeze():
    model = SVR().fit(X, Y)
    assert tolerance_of(FrozenEstimator(model)) == tolerance_of(model) > tolerance_of(LinearRegression())
    assert limes.TabularExplainer(FrozenEstimator(model), X)(X[:1]).method == "exact"


def test_frozen_models_that_cannot_be_read_say_what_they_freeze():
    reason = boosters.reason(FrozenEstimator(KNeighborsClassifier().fit(X, TWO)))
    assert "KNeighborsClassifier" in reason


@pytest.mark.parametrize(
    "estimator",
    [None, DecisionTreeRegressor(max_depth=4), make_pipeline(StandardScaler(), LinearRegression())],
    ids=str,
)
def test_ransac_is_the_model_of_the_inliers(estimator):
    model = RANSACRegressor(estimator, random_state=0, min_samples=20).fit(X, Y)
    assert_read(model, model.predict(FAR))


def test_ransac_of_several_targets():
    model = RANSACRegressor(random_state=0).fit(X, np.column_stack([Y, X[:, 0] ** 2]))
    assert_read(model, model.predict(FAR))


# -- one against the rest ---------------------------------------------------------------------------------

PARTS = [LogisticRegression(), LinearSVC(random_state=0), GradientBoostingClassifier(n_estimators=5)]


@pytest.mark.parametrize(
    "labels", [TWO, THREE, LABELS, LABELS[:, :2]], ids=["two", "three", "marks", "two marks"]
)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_margins_of_one_against_the_rest(part, labels):
    model = OneVsRestClassifier(part).fit(X, labels)
    explanation = assert_read(model, model.decision_function(FAR), output="margin")
    outputs = model.decision_function(X).shape[1:]
    assert len(explanation.output_names) == (outputs[0] if outputs else 1)


def test_probabilities_of_two_classes_and_of_labels_are_those_of_the_parts():
    tree = DecisionTreeClassifier(max_depth=3)
    for labels in (TWO, LABELS):
        model = OneVsRestClassifier(tree).fit(X, labels)
        assert_read(model, model.predict_proba(FAR))
    reason = boosters.reason(OneVsRestClassifier(tree).fit(X, THREE))
    assert "divides the predictions of its parts by their sum" in reason
    model = OneVsRestClassifier(LogisticRegression()).fit(X, LABELS)
    assert_read(model, model.predict_proba(FAR))


@pytest.mark.filterwarnings("ignore:Label")
def test_labels_that_all_rows_have_and_none_has():
    labels = np.column_stack([LABELS, np.ones(120, dtype=int), np.zeros(120, dtype=int)])
    for part in (LogisticRegression(), DecisionTreeClassifier(max_depth=3)):
        model = OneVsRestClassifier(part).fit(X, labels)
        output = "margin" if hasattr(model, "decision_function") else None
        form = limes.models.read(model, output)
        assert (
            oracle.error(form.predict(FAR), ModelCaller(model, resolve(model, output), np.asarray)(FAR))
            < SAME
        )
        result = limes.TabularExplainer(model, X, output=output)(X[:2])
        assert result.method == "exact"
        assert not result.coefficients.values[:, :, 3:].any()


def test_two_labels_of_a_ridge_classifier_have_two_margins():
    model = RidgeClassifier().fit(X, LABELS[:, :2])
    explanation = assert_read(model, model.decision_function(FAR))
    assert explanation.output_names == ("0", "1")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            OneVsOneClassifier(LinearSVC(random_state=0)),
            ["votes of pairs", "OneVsRestClassifier", "estimators_"],
        ),
        (OneVsRestClassifier(SVC()), []),
        (OutputCodeClassifier(LogisticRegression(), random_state=0), None),
    ],
    ids=str,
)
def test_vote_counts_are_refused_by_name(model, words):
    model.fit(X, THREE)
    if words is None:
        with pytest.raises(InputError, match="labels only"):
            resolve(model)
    elif words:
        assert all(word in boosters.reason(model) for word in words)
    else:
        assert limes.TabularExplainer(model, X)(X[:1]).method == "exact"


# -- classifiers of several targets -----------------------------------------------------------------------

SEVERAL = [
    DecisionTreeClassifier(max_depth=4),
    ExtraTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(5, max_depth=4, random_state=0),
    RandomForestClassifier(5, class_weight="balanced", random_state=0),
    ExtraTreesClassifier(4, max_depth=4, random_state=0),
    MultiOutputClassifier(DecisionTreeClassifier(max_depth=4)),
    make_pipeline(StandardScaler(), RandomForestClassifier(4, max_depth=3, random_state=0)),
    DummyClassifier(),
]


@pytest.mark.parametrize("model", SEVERAL, ids=str)
def test_probabilities_of_several_targets(model):
    model.fit(X, PAIR)
    answers = model.predict_proba(FAR)
    explanation = assert_read(model, np.concatenate(answers, axis=1))
    assert explanation.output_names == ("0: no", "0: yes", "1: a", "1: b", "1: c")
    one = assert_read(model, answers[1][:, 2], output=(1, "c"))
    assert one.output_names == ("1: c",)
    two = assert_read(
        model, np.column_stack([answers[1][:, 0], answers[0][:, 1]]), output=[(1, "a"), (0, "yes")]
    )
    assert two.output_names == ("1: a", "0: yes")


def test_several_targets_that_are_sampled():
    model = KNeighborsClassifier().fit(X, PAIR)
    result = limes.TabularExplainer(model, X, output=(0, "yes"), max_calls=256, control="none")(X[:1])
    assert result.method == "sampled"
    assert np.allclose(result.predictions[0], model.predict_proba(X[:1])[0][0, 1])


def test_labels_of_targets_are_found_by_value_or_text():
    model = DecisionTreeClassifier(max_depth=2).fit(X, np.column_stack([THREE, THREE > 0]))
    assert resolve(model, (0, 5)) == resolve(model, (0, "5"))
    assert resolve(model, (0, 5)).columns == 1
    assert resolve(model, (1, 1)).labels == ("1: 1",)
    assert resolve(model, "0: 5") == resolve(model, (0, 5))
    assert resolve(model, ["0: 5", (1, 0)]).columns == [1, 3]


@pytest.mark.parametrize(
    "output", ["yes", "margin", 0, (2, "a"), (0, "a"), (0,), [], [(0, "no"), "yes"], (True, "a")]
)
def test_outputs_of_several_targets_that_do_not_exist(output):
    model = DecisionTreeClassifier(max_depth=2).fit(X, PAIR)
    with pytest.raises(InputError) as caught:
        resolve(model, output)
    if output != []:
        assert "pair (target, label), such as (1, 'c')" in str(caught.value)
        assert "'0: yes'" in str(caught.value)


def test_several_targets_without_probabilities():
    with pytest.raises(InputError, match="no probabilities"):
        resolve(MultiOutputClassifier(LinearSVC()).fit(X, PAIR))


def test_an_answer_that_is_not_one_array_a_target():
    model = MultiOutputClassifier(LogisticRegression()).fit(X, LABELS)
    model.predict_proba = lambda table: np.zeros((len(table), 3, 2))
    with pytest.raises(ModelError, match="one array a target"):
        limes.TabularExplainer(model, X)


# -- constants --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": "median"},
        {"strategy": "quantile", "quantile": 0.9},
        {"strategy": "constant", "constant": 7},
    ],
    ids=str,
)
def test_constant_predictions(options):
    model = DummyRegressor(**options).fit(X, Y)
    explanation = assert_read(model, model.predict(FAR))
    assert not explanation.coefficients.values.any()
    assert np.allclose(explanation.coefficients.intercepts, model.predict(X[:2]))


def test_constant_predictions_of_several_targets():
    for columns in (1, 2):
        model = DummyRegressor().fit(X, np.column_stack([Y, Y**2])[:, :columns])
        assert_read(model, model.predict(FAR))


@pytest.mark.parametrize("strategy", ["prior", "most_frequent", "uniform", "constant"])
def test_constant_probabilities(strategy):
    model = DummyClassifier(strategy=strategy, constant="yes").fit(X, TWO)
    result = assert_read(model, model.predict_proba(FAR))
    assert not result.coefficients.values.any()


def test_a_dummy_that_draws_lots_is_sampled():
    assert "is random" in boosters.reason(DummyClassifier(strategy="stratified").fit(X, TWO))


def test_constants_of_any_table():
    """Dummies look at nothing: texts and missing values are columns like others."""
    frame = pd.DataFrame({"a": X[:, 0], "b": TWO})
    frame.loc[::7, "a"] = np.nan
    result = limes.TabularExplainer(DummyRegressor().fit(frame, Y), frame)(frame[:3])
    assert result.method == "exact"
    assert not result.coefficients.values.any()


# -- answers that are labels only -------------------------------------------------------------------------


def test_a_vote_that_is_counted_comes_with_advice():
    from sklearn.ensemble import VotingClassifier

    parts = [("tree", DecisionTreeClassifier(max_depth=3)), ("normal", GaussianNB())]
    for output in (None, "margin", "probability"):
        with pytest.raises(
            InputError, match=r"VotingClassifier returns labels only.*voting='soft'.*estimators_"
        ):
            limes.TabularExplainer(VotingClassifier(parts).fit(X, TWO), X, output=output)


def test_labels_can_be_explained_as_a_callable_only():
    model = OutputCodeClassifier(LogisticRegression(), random_state=0).fit(X, THREE)
    with pytest.raises(InputError, match=r"labels only.*lambda X: model.predict\(X\) == label"):
        resolve(model, "margin")
    result = limes.TabularExplainer(
        lambda table: model.predict(table) == 5, X, max_calls=128, control="none"
    )(X[:1])
    assert result.method == "sampled"
