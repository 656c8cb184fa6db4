"""Histogram gradient boosting, read and compared with its own answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline

import boosters
import limes
from internals import CannotRead
from limes.exceptions import ModelError
from limes.models.readers.sklearn_ensembles import histogram

X, Y = boosters.numbers()
OPTIONS = [
    {},
    {"max_leaf_nodes": 2, "max_iter": 3},
    {"max_depth": None, "max_leaf_nodes": None, "min_samples_leaf": 1, "max_iter": 4},
    {"loss": "absolute_error"},
    {"loss": "quantile", "quantile": 0.2},
    {"monotonic_cst": [1, 0, 0], "l2_regularization": 3.0},
    {"early_stopping": True, "n_iter_no_change": 2},
    {"max_iter": 1, "min_samples_leaf": 1000},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("x", [X, np.nan_to_num(X)], ids=["missing", "complete"])
def test_regressors(options, x):
    model = HistGradientBoostingRegressor(**({"max_iter": 15, "min_samples_leaf": 5} | options)).fit(x, Y)
    boosters.assert_reads(model, x)


@pytest.mark.parametrize("classes", [2, 4])
def test_margins_of_classifiers(classes):
    y = np.digitize(Y, np.quantile(Y, np.arange(1, classes) / classes))
    model = HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5).fit(X, y)
    form = boosters.assert_reads(model, X, output="margin")
    assert form.value.shape[1:] == (() if classes == 2 else (classes,))


def test_sample_weights_and_a_warm_start():
    weights = np.random.default_rng(0).exponential(size=len(X))
    model = HistGradientBoostingRegressor(max_iter=3, warm_start=True).fit(X, Y, weights)
    boosters.assert_reads(model.set_params(max_iter=6).fit(X, Y, weights), X)


def test_a_split_that_parts_only_what_is_missing():
    x = np.where(np.arange(200) % 2, np.nan, 1.0)[:, None]
    model = HistGradientBoostingRegressor(max_iter=2).fit(x, np.isnan(x[:, 0]).astype(float))
    form = boosters.assert_reads(model, x)
    assert np.ptp(form.predict(np.array([[1.0], [np.nan]]))) > 0.1


def test_a_constant_target():
    model = HistGradientBoostingRegressor(max_iter=3).fit(X, np.full(len(X), 4.0))
    form = boosters.assert_reads(model, X)
    assert form.predict(X[:1])[0] == 4.0
    assert not limes.TabularExplainer(model, X, method="exact")(X[:2]).coefficients.values.any()


def test_coefficients():
    model = HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=5).fit(X, Y)
    boosters.assert_limit(limes.models.read(model), model.predict)
    x, y = X[:40], Y[:40]
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(x, y)
    boosters.assert_coefficients(model, x)
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3).fit(x, np.digitize(y, [-1, 1]))
    assert boosters.assert_coefficients(model, x, output="margin").coefficients.values.shape == (2, 3, 3)


# -- categories -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("categorical", ["from_dtype", ["color", "code"], None], ids=str)
def test_categories(categorical):
    frame, y = boosters.mixed()
    codes = boosters.as_codes(frame)
    if categorical != "from_dtype":
        frame["size"] = codes[:, 2]
        frame["color"] = frame["color"].astype(object)  # texts
    if categorical is None:
        frame = frame.assign(color=codes[:, 1], code=codes[:, 3])
    model = HistGradientBoostingRegressor(
        max_iter=15, min_samples_leaf=5, categorical_features=categorical
    ).fit(frame, y)
    form, table = boosters.read_frame(model, frame)
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.choice(column, 1500) for column in table.matrix.T])
    boosters.assert_same(form, model.predict(table.decode(x)), x, 1e-12)
    if categorical == "from_dtype":
        boosters.assert_coefficients_of_frame(model, frame[:40])


def test_unseen_categories_are_missing_and_seen_ones_may_be_absent_in_the_background():
    frame, y = boosters.mixed()
    model = HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=5)
    some = (frame["color"] != "red") & (frame["code"] != 10)
    boosters.assert_coefficients_of_frame(model.fit(frame[some], y[some]), frame[:40])
    boosters.assert_coefficients_of_frame(model.fit(frame, y), frame[some][:40])


def test_numbers_as_categories_of_an_array():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.choice([0.0, 2.0, 7.0, 200.0, np.nan], 300), rng.normal(size=300)])
    y = (x[:, 0] == 7) * x[:, 1] + np.isnan(x[:, 0])
    for training in (x, x[x[:, 0] != 2.0]):
        model = HistGradientBoostingRegressor(max_iter=9, categorical_features=[0], min_samples_leaf=5)
        model.fit(training, y[: len(training)] if training is x else y[x[:, 0] != 2.0])
        form = limes.models.read(model)
        # 1, 3 and 1000 are categories that training never saw: they go where missing values go
        rows = np.column_stack(
            [rng.choice([0.0, 1, 2, 3, 7, 200, 1000, np.nan], 1500), rng.normal(size=1500)]
        )
        boosters.assert_same(form, model.predict(rows), rows, 1e-12)
        explained = limes.TabularExplainer(model, x, categorical=[0], method="exact")(x[:2])
        assert explained.method == "exact"


def test_categories_that_are_no_codes_are_refused():
    rng = np.random.default_rng(0)
    for level, words in ((-1.0, "-1"), (0.5, "0.5")):
        x = np.column_stack([rng.choice([level, 2.0], 100), rng.normal(size=100)])
        model = HistGradientBoostingRegressor(max_iter=2, categorical_features=[0]).fit(x, x[:, 0] + x[:, 1])
        assert words in boosters.reason(model)
        assert "store them as texts" in boosters.reason(model)


# -- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_links(loss):
    model = HistGradientBoostingRegressor(loss=loss, max_iter=2).fit(X, np.exp(Y / 4))
    assert "LogLink" in boosters.reason(model)
    assert "output='margin'" in boosters.reason(model)
    explained = limes.TabularExplainer(model, X, max_calls=64, control="none")(X[:1])
    assert explained.method == "sampled"


def test_probabilities_and_labels():
    model = HistGradientBoostingClassifier(max_iter=100, min_samples_leaf=2).fit(X, Y > 0)
    assert "output='margin'" in boosters.reason(model)
    assert limes.TabularExplainer(model, X, output="margin")(X[:1]).method == "exact"
    with pytest.raises(CannotRead, match="predict of HistGradientBoostingClassifier"):
        histogram(model, "predict", None)


def test_a_subclass_and_a_model_of_another_version():
    class Subclass(HistGradientBoostingRegressor):
        pass

    assert "subclass" in boosters.reason(Subclass(max_iter=1).fit(X, Y))
    model = HistGradientBoostingRegressor(max_iter=1).fit(X, Y)
    model._predictors = [[SimpleNamespace(nodes=np.zeros(3))]]
    with pytest.raises(CannotRead, match="damaged, or of an unknown version"):
        histogram(model, "predict", None)


def test_another_table_than_the_model_was_fitted_on():
    model = HistGradientBoostingRegressor(max_iter=1).fit(X, Y)
    with pytest.raises(ModelError, match="2 features"):
        limes.TabularExplainer(model, X[:, :2])
    frame, y = boosters.mixed()
    with pytest.raises(ModelError, match="columns are missing"):
        limes.TabularExplainer(
            HistGradientBoostingRegressor(max_iter=1).fit(frame, y), frame.rename(columns={"number": "other"})
        )


def test_in_a_pipeline_it_has_its_margin():
    model = make_pipeline("passthrough", HistGradientBoostingClassifier(max_iter=2)).fit(X, Y > 0)
    assert limes.TabularExplainer(model, X, output="margin", max_calls=64, control="none")(
        X[:1]
    ).output_names == ("True",)
