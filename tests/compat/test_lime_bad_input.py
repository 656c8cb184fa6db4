"""Tables on which lime fails obscurely or is silently wrong: the drop-in works, or names the problem."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import lime.discretize
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multioutput import MultiOutputClassifier

from limes.compat.lime.exceptions import LimeError
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.compat.lime.lime_text import LimeTextExplainer
from limes.exceptions import InputError, LimesError, ModelError, UnknownOptionError

X, Y = load_iris(return_X_y=True)
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, Y)
ENGINES = pytest.mark.parametrize("engine", ["limit", "lime"])


def explained(predict=FOREST.predict_proba, row=X[60], data=X, engine=None, options=None, **call):
    explainer = LimeTabularExplainer(data, random_state=0, engine=engine, **(options or {}))
    return explainer.explain_instance(row, predict, **{"num_samples": 200, **call})


def lines(x):
    return np.column_stack([1 - np.clip(x[:, 0], 0, 1), np.clip(x[:, 0], 0, 1)])


# options and calls that lime takes without a word, or fails at somewhere inside
OPTIONS = {
    "a misspelt option": ({"discretize_continous": True}, "did you mean 'discretize_continuous'"),
    "a misspelt mode": ({"mode": "regresion"}, "did you mean 'regression'"),
    "a misspelt discretizer": ({"discretizer": "quartiles"}, "did you mean 'quartile'"),
    "an engine that is not there": ({"engine": "limits"}, "did you mean 'limit'"),
    "another library's discretizer": (
        {"discretizer": lime.discretize.QuartileDiscretizer(X, [], "abcd")},
        "pass one of limes.compat.lime.discretize",
    ),
    "entropy without labels": ({"discretizer": "entropy"}, "training_labels"),
    "too few names": ({"feature_names": ["a", "b"]}, "has 2 names, but training_data has 4 columns"),
    "no width at all": ({"kernel_width": 0}, "kernel_width must be"),
    "statistics with a hole": ({"training_data_stats": {"means": {}}}, "lacks stds, mins"),
}


@pytest.mark.parametrize(("options", "says"), OPTIONS.values(), ids=OPTIONS)
def test_options_that_are_wrong(options, says):
    with pytest.raises(LimesError, match=says):
        LimeTabularExplainer(X, **options)


DATA = {
    "no table": (np.arange(4.0), "table"),
    "no rows": (np.empty((0, 3)), "rows"),
    "an infinite value": (np.array([[1.0, np.inf], [2.0, 3.0]]), "inf is not finite"),
    "a ragged list": ([[1.0], [1.0, 2.0]], "differ in length"),
}


@pytest.mark.parametrize(("data", "says"), DATA.values(), ids=DATA)
def test_data_that_are_wrong(data, says):
    with pytest.raises(InputError, match=says):
        LimeTabularExplainer(data)


CALLS = {
    "a short row": ({"row": X[60, :3]}, "got 3 columns, expected 4"),
    "several rows": ({"row": X[:2]}, "explain_instances many"),
    "an infinite value": ({"row": np.array([1.0, 2.0, np.inf, 1.0])}, "inf is not finite"),
    "a text among numbers": ({"row": ["a", 1.0, 2.0, 3.0]}, "x0"),
    "a label that is not there": ({"labels": (3,)}, "0 to 2"),
    "a class for a label": ({"labels": ("setosa",)}, "0 to 2"),
    "no features": ({"num_features": 0}, "num_features must be"),
    "no samples": ({"num_samples": 0}, "num_samples must be"),
    "part of a label": ({"top_labels": 0.5}, "top_labels must be"),
    "no metric": ({"distance_metric": "euclid"}, "distance_metric='euclid'"),
    "a misspelt way to sample": ({"sampling_method": "lhc"}, "lhs"),
    "the model for its method": ({"predict": FOREST}, "pass its .predict_proba"),
    "labels for probabilities": ({"predict": FOREST.predict}, "no probability"),
    "names for probabilities": ({"predict": lambda x: np.full(len(x), "setosa")}, "which is no number"),
    "a margin for a probability": (
        {"predict": RidgeClassifier().fit(X, Y == 1).decision_function},
        'mode="regression"',
    ),
    "several targets": (
        {"predict": MultiOutputClassifier(FOREST).fit(X, np.column_stack([Y, Y])).predict_proba},
        "one line a row",
    ),
    "one answer for all rows": ({"predict": lambda x: np.ones((1, 3))}, "one line a row"),
    "answers that are missing": ({"predict": lambda x: np.full((len(x), 2), np.nan)}, "not finite"),
    "a function that fails": ({"predict": lambda x: x @ np.ones(7)}, "predict_fn raised ValueError"),
}


@ENGINES
@pytest.mark.parametrize(("call", "says"), CALLS.values(), ids=CALLS)
def test_calls_that_are_wrong(call, says, engine):
    with pytest.raises((InputError, ModelError), match=says):
        explained(**call, engine=engine)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (lambda d, kernel_width: np.full(len(d), np.nan), "finite number >= 0"),
        (lambda d, kernel_width: -d, "finite number >= 0"),
        (lambda d, kernel_width: np.zeros(len(d)), "not 0 for all"),
        (lambda d, kernel_width: 1.0, r"shape \(\)"),
    ],
)
def test_kernels_that_weigh_nothing_or_wrongly(kernel, says):
    with pytest.raises(InputError, match=says):
        explained(options={"kernel": kernel})


@ENGINES
def test_the_first_of_several_outputs_of_a_regression_is_explained(engine):
    both = RandomForestRegressor(3, random_state=0).fit(X, np.column_stack([Y, -Y]))
    with pytest.warns(UserWarning, match="the first is explained, as lime does"):
        first = explained(both.predict, engine=engine, options={"mode": "regression"})
    assert first.predicted_value == pytest.approx(both.predict(X[60:61])[0, 0])
    alone = explained(lambda x: both.predict(x)[:, 0], engine=engine, options={"mode": "regression"})
    np.testing.assert_allclose(
        [dict(first.as_map()[1])[j] for j in range(4)],
        [dict(alone.as_map()[1])[j] for j in range(4)],
        # a function is sampled
        atol=0.0 if engine == "lime" else 4 * max(error for _, error in alone.standard_errors[1]),
    )
    assert first.limes.coefficients.values.shape == (1, 4)
    assert first.min_value <= first.predicted_value <= first.max_value
    second = explained(lambda x: both.predict(x)[:, 1], engine=engine, options={"mode": "regression"})
    assert second.predicted_value == pytest.approx(both.predict(X[60:61])[0, 1])


@ENGINES
def test_a_column_of_answers_is_a_regression(engine):
    result = explained(lambda x: x[:, :1], engine=engine, options={"mode": "regression"})
    assert result.predicted_value == X[60, 0]


@ENGINES
def test_ties_that_make_a_bin_without_width_reach_the_model_as_they_are(engine):
    seen = []

    def predict(x):
        seen.append(x[:, 1].copy())
        return lines(x)

    # more than a quarter is 7.0, and no value lies below: lime's first bin is drawn at 0
    data = np.column_stack([np.linspace(0, 1, 60), np.r_[np.full(30, 7.0), np.linspace(8, 9, 30)]])
    explained(predict, row=data[3], data=data, engine=engine)
    assert np.concatenate(seen).min() == 7.0


@ENGINES
def test_a_seed_holds_at_the_second_call(engine):
    explainer = LimeTabularExplainer(X, random_state=3, engine=engine)
    first, second = (explainer.explain_instance(X[0], lines, num_samples=200).as_list() for _ in range(2))
    assert first == second


@ENGINES
def test_more_features_or_labels_than_there_are(engine):
    explanation = explained(num_features=99, top_labels=99, engine=engine)
    assert len(explanation.as_list(explanation.top_labels[0])) == 4
    assert sorted(explanation.available_labels()) == [0, 1, 2]


def test_few_samples_are_enough():
    assert explained(num_samples=20).limes.method == "exact"
    result = explained(lines, num_samples=20)
    assert (result.engine, result.limes.model_calls) == ("lime", 20)
    assert result.engine_reason == "only lime's sampling supports num_samples < 64"
    assert (
        explained(LogisticRegression(max_iter=1000).fit(X, Y).predict_proba, num_samples=20).engine == "limit"
    )


@ENGINES
def test_one_label_needs_no_tuple(engine):
    assert explained(labels=2, engine=engine).available_labels() == [2]


@ENGINES
@pytest.mark.parametrize("kind", [list, pd.Series, lambda row: row[None], lambda row: pd.DataFrame([row])])
def test_rows_of_any_kind(kind, engine):
    assert explained(row=kind(X[60]), engine=engine).as_map() == explained(engine=engine).as_map()


@ENGINES
def test_names_come_from_a_frame(engine):
    frame = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    model = RandomForestClassifier(5, random_state=0).fit(frame, Y)
    explanation = explained(model.predict_proba, frame.iloc[60], frame, engine)
    assert {name for name, _ in explanation.as_list()} == set(
        explanation.domain_mapper.discretized_feature_names
    )
    assert any("pl" in name for name, _ in explanation.as_list())
    by_name = frame.iloc[60][["pw", "sl", "pl", "sw"]]
    assert explained(model.predict_proba, by_name, frame, engine).as_map() == explanation.as_map()
    with pytest.raises(InputError, match="did you mean"):
        explained(model.predict_proba, frame.iloc[60].rename({"sw": "sww"}), frame, engine)


@ENGINES
def test_categories_by_name_and_a_name_that_is_missing(engine):
    data = pd.DataFrame({"town": [0, 1, 2] * 20, "size": np.linspace(0, 1, 60)})

    def predict(x):
        return lines(np.asarray(x)[:, ::-1])

    options = {"categorical_features": ["town"], "categorical_names": {0: ["Ulm", "Bern"]}}
    names = dict(explained(predict, data.iloc[0], data, engine, options).as_list())
    assert "town=Ulm" in names
    with pytest.raises(InputError, match=r"categorical_names\[0\] has no name for 2"):
        explained(predict, data.iloc[2], data, engine, options)
    with pytest.raises(InputError, match="town"):
        explained(predict, [5, 0.5], data, engine, options)


@ENGINES
def test_a_whole_number_column_is_not_truncated(engine):
    seen = []

    def predict(x):
        seen.append(x[:, 0].copy())
        return lines(x)

    data = np.random.default_rng(0).integers(0, 9, size=(50, 2))
    explained(predict, data[0], data, engine)
    drawn = np.concatenate(seen)
    assert (drawn != np.round(drawn)).any()


@ENGINES
def test_redundant_columns_have_finite_coefficients(engine):
    data = np.column_stack([X, X[:, 0], np.full(len(X), 2.0)])
    explanation = explained(
        lines, data[60], data, engine, {"feature_selection": "forward_selection"}, num_features=6
    )
    assert np.isfinite([value for _, value in explanation.as_list()]).all()


@ENGINES
def test_a_constant_model(engine):
    explanation = explained(lambda x: np.tile([0.25, 0.75], (len(x), 1)), engine=engine)
    np.testing.assert_allclose([value for _, value in explanation.as_list()], 0.0, atol=1e-12)
    assert "the model answered the same in all" in explanation.as_html()
    assert "did not reach" not in explanation.as_html()
    assert explanation.score == pytest.approx(1.0, rel=1e-12)


@ENGINES
def test_probabilities_that_need_not_add_up(engine):
    """Several labels may hold at once."""
    explanation = explained(lambda x: np.hstack([lines(x), lines(x)]), labels=(1, 3), engine=engine)
    assert explanation.as_list(1) == explanation.as_list(3)


@ENGINES
def test_numbers_that_json_takes(engine):
    explanation = explained(
        lambda x: lines(x).astype(np.float32), row=X[60].astype(np.float32), engine=engine
    )
    assert json.loads(json.dumps(explanation.as_map()[1])) == [
        [j, value] for j, value in explanation.as_map()[1]
    ]
    json.dumps(
        [
            explanation.as_list(),
            explanation.intercept,
            float(explanation.score),
            explanation.local_pred.item(),
        ]
    )


def test_labels_that_were_not_explained_are_named():
    with pytest.raises(LimeError, match=r"label 0 was not explained, only \[1\]"):
        explained().as_list(label=0)
    with pytest.raises(LimeError, match="only \\[1\\]"):
        explained().as_pyplot_figure(label=0)
    with pytest.raises(LimeError, match="only \\[1\\]"):
        explained().as_html(labels=[2])


def test_a_notebook_shows_it(monkeypatch):
    shown = []
    display = ModuleType("IPython.display")
    vars(display).update(display=shown.append, HTML=lambda page: SimpleNamespace(page=page))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    result = explained()
    result.show_in_notebook(show_table=True, show_all=False)
    assert shown[0].page == result.as_html()
    assert "<script" not in result._repr_html_()


def test_options_of_pages():
    result = explained(options={"class_names": ["setosa", "versicolor", "virginica"]}, num_features=2)
    assert "not captured at the row" in result.as_html()
    assert "not captured at the row" not in result.as_html(predict_proba=False)
    assert f"<td>{X[60, 0]:g}<td>" in result.as_html()
    assert f"<td>{X[60, 0]:g}<td>" not in result.as_html(show_table=False)
    few, all_of_them = (result.as_html(show_all=shown).count("<tr><td>") for shown in (False, True))
    assert all_of_them == few + 2
    with pytest.raises(UnknownOptionError, match="show_tables"):
        result.as_html(show_tables=True)


def test_misspelt_options_of_a_list_are_refused():
    """``as_list(lable=0)`` had the numbers of label 1 without a word; lime raises a TypeError."""
    texts = LimeTextExplainer().explain_instance(
        "good food", lambda texts: np.array([[0.4, 0.6]] * len(texts)), num_samples=100
    )
    for explanation in (explained(), texts):
        for call in (explanation.as_list, explanation.as_pyplot_figure):
            with pytest.raises(UnknownOptionError, match="'lable'; did you mean 'label'"):
                call(lable=1)
    assert len(texts.as_list(positions=True)) == 2


def test_pages_have_the_numbers_of_the_list():
    explanation = explained(num_features=2, options={"discretize_continuous": False})
    page = explanation._shown(None)
    np.testing.assert_allclose(
        page.coefficients.values[0, :, 0], [value for _, value in explanation.as_list()]
    )
    assert page.coefficients.intercepts[0, 0] == explanation.intercept[1]
    assert page.coefficients.surrogate_predictions[0, 0] == explanation.local_pred.by_label[1]
    assert "per standard deviation" in explanation.as_html()


def test_a_regression_s_page_hides_its_prediction_on_demand():
    result = explained(lambda x: x[:, 0], options={"mode": "regression"})
    assert "not captured at the row" in result.as_html()
    assert "not captured at the row" not in result.as_html(show_predicted_value=False)
    assert result.min_value <= result.predicted_value <= result.max_value
