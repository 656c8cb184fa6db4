"""Models that know the names of their columns, asked about backgrounds in other orders and of other columns.

The oracle is the model's own answer to the frame as it was fitted on it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVR

import limes
from internals import are_numbered, fitted_names, model_order, other_columns
from limes.evaluate import Task
from limes.exceptions import InputError, ModelError
from limes.scale import explain_frame

rng = np.random.default_rng(0)
X = pd.DataFrame(
    {"a": rng.normal(size=200), "b b": rng.exponential(size=200), "c": rng.integers(0, 5, 200) * 1.0}
)
Y = X["a"] + X["b b"] * X["c"] / 3
OTHER = X[["c", "a", "b b"]]  # the same columns; the permutation is no swap
ROW = 7


class Plain(TransformerMixin, BaseEstimator):
    """A step that knows no names, and passes them on."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X


def lightgbm(**options):
    library = pytest.importorskip("lightgbm")
    return library.LGBMRegressor(n_estimators=8, min_child_samples=5, n_jobs=1, verbose=-1, **options)


def catboost():
    library = pytest.importorskip("catboost")
    return library.CatBoostRegressor(iterations=8, thread_count=1, verbose=0, allow_writing_files=False)


def xgboost():
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1)


def boosting():
    return pytest.importorskip("interpret.glassbox").ExplainableBoostingRegressor(
        interactions=0, max_rounds=20, outer_bags=1, n_jobs=1
    )


def statsmodels(kind="OLS"):
    return getattr(pytest.importorskip("statsmodels.api"), kind)(Y, X).fit()


def formula():
    table = X.rename(columns={"b b": "b"}).assign(y=Y)
    return pytest.importorskip("statsmodels.formula.api").ols("y ~ a + b + c", table).fit()


MODELS = {
    "lightgbm": lambda: lightgbm().fit(X, Y),
    "lightgbm's booster": lambda: lightgbm().fit(X, Y).booster_,
    "lightgbm in a pipeline": lambda: make_pipeline("passthrough", lightgbm()).fit(X, Y),
    "lightgbm behind a function": lambda: make_pipeline(FunctionTransformer(), lightgbm()).fit(X, Y),
    "lightgbm behind a plain step": lambda: make_pipeline(Plain(), lightgbm()).fit(X, Y),
    "lightgbm voting": lambda: VotingRegressor([("l", lightgbm()), ("m", lightgbm())]).fit(X, Y),
    "lightgbm stacked": lambda: StackingRegressor([("l", lightgbm())], Ridge()).fit(X, Y),
    "lightgbm searched": lambda: GridSearchCV(lightgbm(), {"num_leaves": [5]}, cv=2).fit(X, Y),
    "lightgbm in bags": lambda: BaggingRegressor(lightgbm(), 2, random_state=0).fit(X, Y),
    "lightgbm of another target": lambda: TransformedTargetRegressor(lightgbm()).fit(X, Y),
    "xgboost": lambda: xgboost().fit(X, Y),
    "xgboost's booster": lambda: xgboost().fit(X, Y).get_booster(),
    "catboost": lambda: catboost().fit(X, Y),
    "explainable boosting": lambda: boosting().fit(X, Y),
    "statsmodels": statsmodels,
    "quantiles of statsmodels": lambda: statsmodels("QuantReg"),
    "ridge": lambda: Ridge().fit(X, Y),
    "forest": lambda: RandomForestRegressor(5, random_state=0).fit(X, Y),
    "kernels": lambda: SVR().fit(X, Y),
    "scaled": lambda: make_pipeline(StandardScaler(), Ridge()).fit(X, Y),
    "columns by name": lambda: make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "c"]), remainder="passthrough"), Ridge()
    ).fit(X, Y),
    "a bound method": lambda: lightgbm().fit(X, Y).predict,
}


def answers(model, frame):
    """The model's own answers to its own columns."""
    if type(model).__module__ == "xgboost.core":
        return model.predict(pytest.importorskip("xgboost").DMatrix(frame))
    return np.asarray((model if callable(model) else model.predict)(frame), dtype=float)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
def test_a_background_in_another_order_is_given_to_the_model_in_its_own(name):
    model = MODELS[name]()
    expected = answers(model, X)
    straight, other = limes.TabularExplainer(model, X, rng=0), limes.TabularExplainer(model, OTHER, rng=0)
    e = other(OTHER.iloc[[ROW, 3]], progress=False)
    np.testing.assert_allclose(e.predictions, expected[[ROW, 3]], rtol=1e-6)
    assert e.feature_names == ("c", "a", "b b")  # explanations keep the background's order
    assert not [w for w in e.warnings if "fitted on the column" in w]
    assert other.method == straight.method
    if straight.method == "exact":
        reference = straight(X.iloc[[ROW, 3]], progress=False)
        for j, column in enumerate(X.columns):
            np.testing.assert_allclose(
                e[:, column].coefficients.values[:, 0],
                reference.coefficients.values[:, j],
                rtol=1e-6,
                atol=1e-9,
            )
            contributions = reference.contributions.values[:, j]
            np.testing.assert_allclose(
                e[:, column].contributions.values[:, 0], contributions, rtol=1e-6, atol=1e-9
            )
    # rows: by name in any order, and without names as the background was
    for row in (X.iloc[[ROW]], OTHER.iloc[[ROW]].to_numpy(), dict(X.iloc[ROW])):
        np.testing.assert_allclose(other(row, progress=False).predictions, expected[ROW], rtol=1e-6)


@pytest.mark.parametrize("name", ["lightgbm", "lightgbm's booster", "statsmodels", "ridge"])
def test_every_explainer_of_tables_asks_in_the_model_s_order(name):
    model = MODELS[name]()
    expected = answers(model, X)
    rules = limes.SparseExplainer(model, literals=limes.Literals.fit(OTHER), k=2, samples=50)
    assert rules(OTHER.iloc[[ROW]], progress=False).predictions[0] == pytest.approx(expected[ROW])
    maple = limes.MapleExplainer(model, OTHER, trees=20)
    assert maple(OTHER.iloc[[ROW]]).predictions[0] == pytest.approx(expected[ROW])
    task = Task.of(model, OTHER, OTHER.iloc[[ROW]])
    assert task.predictions[0] == pytest.approx(expected[ROW])
    held = limes.TabularExplainer(model, OTHER, hold=[0])(OTHER.iloc[[ROW]], progress=False)
    assert held.coefficients.values[0, 0] == 0.0
    assert held.predictions[0] == pytest.approx(expected[ROW])
    table = explain_frame(limes.TabularExplainer(model, OTHER), X.assign(more=1.0))
    np.testing.assert_allclose(table["prediction"], expected, rtol=1e-6)


def test_other_libraries_of_frames_and_categories_are_put_in_order():
    model = lightgbm().fit(X.rename(columns={"b b": "b"}), Y)
    frame = pl.from_pandas(OTHER.rename(columns={"b b": "b"}))
    e = limes.TabularExplainer(model, frame)(frame[ROW], progress=False)
    assert e.predictions[0] == pytest.approx(model.predict(X)[ROW])
    table = X.assign(g=pd.Categorical(np.array(["u", "v", "w"])[rng.integers(0, 3, 200)]))
    model = lightgbm(min_data_per_group=2).fit(table, Y + table["g"].cat.codes)
    other = table[["g", "c", "a", "b b"]]
    explainer = limes.TabularExplainer(model, other)
    assert explainer.method == "exact"
    e = explainer(other.iloc[:5], progress=False)
    np.testing.assert_allclose(e.predictions, model.predict(table)[:5])


def test_a_model_that_is_fitted_again_in_another_order_is_asked_in_the_new_one():
    model = lightgbm().fit(X, Y)
    explainer = limes.TabularExplainer(model, OTHER)
    for columns, target in ((["c", "b b", "a"], Y), (["b b", "a", "c"], 2 - Y), (["c", "a", "b b"], Y**2)):
        expected = model.fit(X[columns], target).predict(X[columns])
        e = explainer(OTHER.iloc[[ROW]], progress=False)
        assert e.predictions[0] == pytest.approx(expected[ROW])
        assert e.feature_names == ("c", "a", "b b")


def test_classes_keep_their_margins_in_another_order():
    model = LogisticRegression().fit(X, Y > 1)
    e = limes.TabularExplainer(model, OTHER, output="margin")(OTHER.iloc[[ROW]], progress=False)
    assert e.predictions[0] == pytest.approx(model.decision_function(X)[ROW])
    model = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, Y > 1)
    e = limes.TabularExplainer(model, OTHER)(OTHER.iloc[[ROW]], progress=False)
    np.testing.assert_allclose(e.predictions[0], model.predict_proba(X)[ROW])


@pytest.mark.parametrize(
    "name",
    [
        "lightgbm",
        "lightgbm's booster",
        "lightgbm in a pipeline",
        "lightgbm behind a function",
        "lightgbm voting",
        "lightgbm stacked",
        "lightgbm of another target",
        "explainable boosting",
        "statsmodels",
        "quantiles of statsmodels",
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:Pandas dataframe X does not contain all feature names")
def test_columns_that_the_model_does_not_know_are_named(name):
    model, table = MODELS[name](), X.rename(columns={"c": "z"})
    explainer = limes.TabularExplainer(model, table)
    e = explainer(table.iloc[[ROW]], progress=False)
    (warning,) = [w for w in e.row_warnings[0] if w.code == "columns"]
    assert "'c'" in warning
    assert "'z'" in warning
    assert any("'z'" in text for text in explainer.model_warnings)


@pytest.mark.parametrize("name", ["xgboost", "xgboost's booster", "catboost", "ridge", "forest", "scaled"])
def test_models_that_check_names_refuse_other_columns(name):
    with pytest.raises(ModelError):
        limes.TabularExplainer(MODELS[name](), X.rename(columns={"c": "z"}))


@pytest.mark.parametrize("name", ["lightgbm", "xgboost's booster", "statsmodels", "ridge", "forest"])
def test_a_table_with_more_columns_has_advice(name):
    with pytest.raises((ModelError, InputError), match=r"fewer columns: pass background\[|was fitted on 3"):
        limes.TabularExplainer(MODELS[name](), X.assign(more=1.0))


def test_names_that_a_library_changes_or_makes_up_are_no_other_columns():
    assert not other_columns(lightgbm().fit(X, Y), X.columns)  # it stores "b_b"
    by_formula = formula()
    assert fitted_names(by_formula) == ()
    table = X.rename(columns={"b b": "b"})[["c", "b", "a"]]
    e = limes.TabularExplainer(by_formula, table)(table.iloc[[ROW]], progress=False)
    assert e.predictions[0] == pytest.approx(by_formula.predict(table)[ROW])
    for model in (lightgbm(), xgboost(), Ridge(), catboost()):
        array = model.fit(X.to_numpy(), Y)
        assert not other_columns(array, [*X.columns])
        assert model_order(array, [*X.columns]) is None
    # names that stand for positions of an array are those of no frame
    result = pytest.importorskip("statsmodels.api").OLS(Y, X.to_numpy()).fit()
    assert model_order(result, ["x3", "x1", "x2"]) is None


def test_names_behind_a_step_that_may_change_them_are_trusted_as_a_set_only():
    renamed = make_pipeline(FunctionTransformer(lambda t: t.rename(columns={"a": "alpha"})), lightgbm()).fit(
        X, Y
    )
    assert other_columns(renamed, [*X.columns]) == ""
    plain = make_pipeline(Plain(), lightgbm()).fit(X, Y)
    assert model_order(plain, [*OTHER.columns]) == (1, 2, 0)
    assert other_columns(plain, ["a", "b b", "z"]) == ""


def test_integer_names_in_another_order_are_names():
    table = pd.DataFrame(X.to_numpy())
    for model in (lightgbm(), catboost()):
        model.fit(table[[2, 0, 1]], Y)
        e = limes.TabularExplainer(model, table)(table.iloc[[ROW]], progress=False)
        assert e.predictions[0] == pytest.approx(model.predict(table[[2, 0, 1]])[ROW])
        assert e.feature_names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("names", "numbered"),
    [
        (["0", "1", "2"], True),
        (["f0", "f1"], True),
        (["Column_0"], True),
        (["x1", "x2", "x3"], True),
        (["2020", "2019"], False),
        (["2020", "2021"], False),
        (["0", "2"], False),
        (["f0", "x1"], False),
        (["f00", "f01"], False),
        (["a"], False),
        ([], False),
    ],
)
def test_numbers_in_order_are_no_names(names, numbered):
    assert are_numbered(names) is numbered
