"""The output that is explained, and models whose answers have a wrong form."""

from __future__ import annotations

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import limes
from internals import ModelCaller, resolve
from limes.exceptions import InputError, ModelError

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
TREE = DecisionTreeClassifier(max_depth=2).fit(X, NAMES[Y])
REGRESSOR = LinearRegression().fit(*load_diabetes(return_X_y=True))


@pytest.mark.parametrize(
    ("model", "output", "method", "columns", "labels"),
    [
        (REGRESSOR, None, "predict", None, None),
        (REGRESSOR, 0, "predict", 0, ("0",)),
        (REGRESSOR, [2, 0], "predict", [2, 0], ("2", "0")),
        (np.sum, None, "", None, None),
        (np.sum, 1, "", 1, ("1",)),
        (TREE, None, "predict_proba", None, tuple(NAMES)),
        (TREE, "probability", "predict_proba", None, tuple(NAMES)),
        (TREE, "versicolor", "predict_proba", 1, ("versicolor",)),
        (TREE, ["virginica", "setosa"], "predict_proba", [2, 0], ("virginica", "setosa")),
        (TREE, ("virginica",), "predict_proba", [2], ("virginica",)),
        (TREE, NAMES[:2], "predict_proba", [0, 1], tuple(NAMES[:2])),
    ],
)
def test_options(model, output, method, columns, labels):
    result = resolve(model, output)
    assert (result.method, result.columns, result.labels) == (method, columns, labels)


def test_margins_are_named_by_class_and_a_margin_of_two_by_the_second():
    three = LogisticRegression(max_iter=500).fit(X, NAMES[Y])
    two = LogisticRegression().fit(X[:100], NAMES[Y[:100]])
    assert resolve(three, "margin").labels == tuple(NAMES)
    assert resolve(two, "margin").labels == ("versicolor",)
    assert resolve(two, None).labels == ("setosa", "versicolor")
    assert resolve(two, "margin").method == "decision_function"
    assert resolve(SVC().fit(X, Y), None).method == "decision_function"


@pytest.mark.parametrize(
    ("labels", "output"), [([0, 1], 1), ([0, 1], "1"), ([0, 1], 1.0), ([False, True], True)]
)
def test_labels_are_found_by_value_or_by_text(labels, output):
    model = DecisionTreeClassifier().fit(X[:100], np.array(labels)[Y[:100]])
    assert resolve(model, output).columns == 1


def test_a_pipeline_is_resolved_like_its_last_step():
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X, NAMES[Y])
    assert resolve(model, "virginica").columns == 2
    assert resolve(model, "margin").method == "decision_function"


@pytest.mark.parametrize(
    ("model", "output", "words"),
    [
        (3, None, ["predict", "callable", "int"]),
        (TREE, "versicolour", ["'versicolour'", "did you mean 'versicolor'?", "'probability'"]),
        (TREE, 7, ["7", "pass one of", "'setosa'"]),
        (TREE, ["setosa", "rose"], ["'rose'", "not a class"]),
        (TREE, [], ["pass one class or more"]),
        (TREE, "margin", ["'margin'", "DecisionTreeClassifier.decision_function"]),
        (SVC().fit(X, Y), "probability", ["'probability'", "SVC.predict_proba"]),
        (SVC().fit(X, Y), 1, ["predict_proba", "output='margin'"]),
        (REGRESSOR, "first", ["'first'", "position"]),
        (REGRESSOR, -1, ["-1", "position"]),
        (REGRESSOR, True, ["True", "position"]),
        (REGRESSOR, 1.0, ["1.0", "position"]),
        (REGRESSOR, [], ["[]", "position"]),
        (np.sum, [0, -1], ["[0, -1]", "position"]),
    ],
)
def test_outputs_that_do_not_exist(model, output, words):
    with pytest.raises(InputError) as caught:
        resolve(model, output)
    for word in words:
        assert word in str(caught.value)


# -- asking ------------------------------------------------------------------------------------------------


def ask(model, output=None, rows=3, decode=np.asarray):
    return ModelCaller(model, resolve(model, output), decode)(np.ones((rows, 2)))


@pytest.mark.parametrize(
    ("answer", "shape"),
    [
        (lambda x: x[:, 0], (3,)),
        (lambda x: x[:, :1], (3, 1)),
        (lambda x: x.astype(int), (3, 2)),
        (lambda x: x[:, 0] > 0, (3,)),
        (lambda x: x[:, 0].tolist(), (3,)),
        (lambda x: x.tolist(), (3, 2)),
        (lambda x: list(x[:, 0]), (3,)),
        (lambda x: pd.Series(x[:, 0], index=[7, 8, 9]), (3,)),
        (lambda x: pd.DataFrame(x), (3, 2)),
        (lambda x: x[:, 0].astype(object), (3,)),
        (lambda x: x.astype(np.float32), (3, 2)),
    ],
)
def test_any_table_of_numbers_is_an_answer(answer, shape):
    result = ask(answer)
    assert result.shape == shape
    assert result.dtype == np.float64


def test_the_wanted_columns_are_picked():
    def model(x):
        return x * [[1.0, 2.0]]

    assert ask(model, 1).tolist() == [2.0] * 3
    assert ask(model, [1, 0]).tolist() == [[2.0, 1.0]] * 3


def test_the_model_sees_what_the_decoder_makes():
    seen = []
    ask(lambda table: seen.append(type(table)) or np.zeros(len(table)), decode=pd.DataFrame)
    assert seen == [pd.DataFrame]


def failing(x):
    raise KeyError("colour")


@pytest.mark.parametrize(
    ("model", "output", "words"),
    [
        (failing, None, ["failing()", "KeyError", "3 rows", "colour"]),
        (lambda x: x[:2, 0], None, ["3 rows", "(2,)", "expected (3,)"]),
        (lambda x: x[0, 0], None, ["3 rows", "()"]),
        (lambda x: None, None, ["returned None", "return missing"]),
        (lambda x: x[:, :, None, None].repeat(2, axis=3), None, ["(3, 2, 1, 2)"]),
        (lambda x: x.T, None, ["(2, 3)", "3 rows"]),
        (lambda x: np.where(np.arange(3) == 1, np.nan, 1.0), None, ["nan", "row 1", "finite"]),
        (lambda x: np.where(np.arange(3) == 2, np.inf, 1.0), None, ["inf", "row 2"]),
        (lambda x: np.array([[1, 2], [1, np.nan], [3, 4]]), None, ["nan", "row 1"]),
        (lambda x: [1.0, None, 2.0], None, ["row 1"]),
        (lambda x: ["low"] * 3, None, ["did not return numbers", "low"]),
        (lambda x: [[1, 2], [3], [4]], None, ["did not return numbers"]),
        (lambda x: [{"a": "low"}] * 3, None, ["did not return numbers", "low"]),
        (lambda x: [np.ones((3, 2)), np.ones((3, 2))], None, ["list of 2 arrays"]),
        (lambda x: x, 2, ["(3, 2)", "no column 2"]),
        (lambda x: x[:, 0], 0, ["(3,)", "no column 0"]),
        (lambda x: x, [0, 5], ["no column 5"]),
    ],
)
def test_answers_that_cannot_be_used(model, output, words):
    with pytest.raises(ModelError) as caught:
        ask(model, output)
    for word in words:
        assert word in str(caught.value)


def test_errors_name_the_model_and_keep_the_cause():
    class Broken:
        def predict(self, x):
            raise ZeroDivisionError("by zero")

    with pytest.raises(ModelError, match=r"Broken\.predict raised ZeroDivisionError") as caught:
        ask(Broken())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupt_is_no_error_of_the_model():
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(stop)


@pytest.mark.parametrize("answer", [["1", "2", "3"], np.array(["1", "2", "3"])])
def test_texts_are_no_numbers_even_if_they_look_like_some(answer):
    """A classifier with the labels '0' and '1' whose predict is passed by mistake."""
    with pytest.raises(ModelError, match="did not return numbers"):
        ask(lambda x: answer)


def test_complex_numbers_are_refused():
    with pytest.raises(ModelError):
        ask(lambda x: np.full(3, 1j))


def test_no_outputs_at_all_are_refused():
    with pytest.raises(ModelError):
        ask(lambda x: np.ones((3, 0)))


def test_no_rows_no_answers():
    assert ask(lambda x: x[:, 0], rows=0).shape == (0,)


# -- reading -----------------------------------------------------------------------------------------------


def test_a_callable_is_a_black_box():
    form = limes.models.read(lambda x: x[:, 0])
    assert isinstance(form, limes.models.forms.BlackBox)
    assert "callable has no structure" in form.reason
    assert form.predict(np.ones((2, 2))).tolist() == [1.0, 1.0]


def test_a_subclass_is_a_black_box():
    class Subclass(LinearRegression):
        def predict(self, X):
            return np.zeros(len(X))

    form = limes.models.read(Subclass().fit(*load_diabetes(return_X_y=True)))
    assert isinstance(form, limes.models.forms.BlackBox)
    assert "subclass of LinearRegression" in form.reason
    assert not form.predict(load_diabetes().data).any()


def test_a_class_of_the_same_name_from_elsewhere_is_a_black_box():
    other = type(
        "LinearRegression", (), {"predict": lambda self, x: x[:, 0], "coef_": np.ones(2), "intercept_": 0}
    )
    assert isinstance(limes.models.read(other()), limes.models.forms.BlackBox)


@pytest.mark.parametrize(("targets", "output"), [(1, 0), (2, 5), (2, [0, 5])])
def test_reading_a_missing_output_is_refused(targets, output):
    x, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(x, y if targets == 1 else np.column_stack([y, -y]))
    with pytest.raises(limes.exceptions.LimesError):
        limes.models.read(model, output)


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression(), DecisionTreeClassifier()])
def test_a_model_that_is_not_fitted(model):
    with pytest.raises(limes.exceptions.LimesError, match="fit"):
        limes.models.read(model, "margin" if isinstance(model, LogisticRegression) else None)


def test_a_reading_that_does_not_predict_what_the_model_predicts():
    """Return what predict calls is replaced after the fit: row 30 is the first that differs."""
    x, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(x, y)
    right = model._decision_function
    model._decision_function = lambda rows: (
        right(rows) + 1e-3 * (np.arange(len(rows)) >= 30) * (len(rows) > 30)
    )
    with pytest.raises(limes.exceptions.ReadMismatchError, match="row 30"):
        limes.TabularExplainer(model, x, method="exact")


def test_a_reading_with_another_shape():
    x, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(x, y)
    right = model._decision_function
    model._decision_function = lambda rows: right(rows)[:, None]
    with pytest.raises(limes.exceptions.ReadMismatchError, match=r"shape"):
        limes.TabularExplainer(model, x, method="exact")


def test_small_predictions_are_compared_as_closely_as_large_ones():
    x, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(x, 1e-12 * y)
    right = model._decision_function
    model._decision_function = lambda rows: 2 * right(rows)
    with pytest.raises(limes.exceptions.ReadMismatchError):
        limes.TabularExplainer(model, x, method="exact")


@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, lightgbm.LGBMClassifier])
def test_a_classifier_of_one_class_that_answers_two_columns(kind):
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(ModelError, match="returned 2 columns, and the model has 1 classes"):
        limes.TabularExplainer(kind().fit(X, np.zeros(200)), X)(X[:1])


@pytest.mark.parametrize(("output", "columns"), [(np.array(1), 1), (np.array([0, 1]), [0, 1])])
def test_an_array_names_classes_as_a_list_does(output, columns):
    X, y = load_iris(return_X_y=True)
    assert resolve(LogisticRegression(max_iter=200).fit(X, y), output).columns == columns


@pytest.mark.parametrize("output", [[[0, 1]], np.array([[0, 1]])])
def test_a_list_in_a_list_is_no_class(output):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="is not a class of the model"):
        resolve(LogisticRegression(max_iter=200).fit(X, y), output)
