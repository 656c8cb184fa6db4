"""`TabularExplainer(model, law="covers")`: tables with and without a background, and what there is not."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import boosters
import limes
from internals import Covers
from limes.exceptions import (
    InputError,
    ModelError,
    NotReadableError,
    ReadMismatchError,
    UnknownOptionError,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] * X[:, 1] + (X[:, 2] > 0.3)
FRAME = pd.DataFrame(X, columns=["age", "bmi", "dose", "size"])
FOREST = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, Y)
NAMED = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(FRAME, Y > 0.4)


def covers(model, *arguments, **options):
    return limes.TabularExplainer(model, *arguments, law="covers", **options)


def test_contributions_without_a_background():
    explanation = covers(FOREST)(X[:7])
    account = explanation.contributions
    assert explanation.method == account.method == "exact"
    np.testing.assert_allclose(account.base_values + account.values.sum(axis=1), FOREST.predict(X[:7]))
    np.testing.assert_allclose(
        account.base_values, np.mean([t.tree_.value[0, 0, 0] for t in FOREST.estimators_])
    )
    assert not account.standard_errors.any()
    assert not account.calls.any()
    assert account.converged
    assert explanation.row_warnings == ((),) * 7
    again = covers(FOREST).contributions(X[:7])
    assert np.array_equal(again.contributions.values, account.values)


def test_a_background_gives_names_and_types_and_no_number():
    alone, beside = covers(NAMED, output="margin"), covers(NAMED, FRAME[:20], output="margin")
    assert alone.feature_names == beside.feature_names == tuple(FRAME)
    first, second = alone(FRAME[30:40]), beside(FRAME[30:40])
    assert np.array_equal(first.contributions.values, second.contributions.values)
    assert first.ids == second.ids == tuple(range(30, 40))
    assert first.feature_names == tuple(FRAME)
    assert first.conditions[0][0].startswith("age = ")


@pytest.mark.parametrize(
    "one",
    [X[3], X[3:4], X[3].tolist(), X[3:4].tolist(), pd.Series(X[3]), pd.DataFrame(X[3:4])],
    ids=["row", "array", "list", "lists", "series", "frame"],
)
def test_one_row_of_any_kind(one):
    expected = covers(FOREST)(X[:7]).contributions.values[3]
    assert np.array_equal(covers(FOREST)(one).contributions.values[0], expected)


def test_rows_by_name_of_columns():
    explainer = covers(NAMED, FRAME, output="margin")
    expected = explainer(FRAME[3:4]).contributions.values
    for one in (FRAME.iloc[3], dict(FRAME.iloc[3]), FRAME.iloc[3:4][["size", "dose", "bmi", "age"]]):
        assert np.array_equal(explainer(one).contributions.values, expected)
    turned = covers(NAMED, output="margin")(FRAME.iloc[3:4][["size", "dose", "bmi", "age"]])
    assert turned.feature_names == ("size", "dose", "bmi", "age")
    assert np.array_equal(turned.contributions.values[:, ::-1], expected)
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(FRAME, Y)
    of_polars = covers(model)(pl.DataFrame(X[:5], schema=list(FRAME)))
    assert np.array_equal(of_polars.contributions.values, covers(model)(FRAME[:5]).contributions.values)


def test_outputs():
    y = np.digitize(Y, [0.0, 1.0])
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y)
    explanation = covers(model)(X[:3])
    assert explanation.output_names == ("0", "1", "2")
    assert explanation.contributions.values.shape == (3, 4, 3)
    one = covers(model, output=2)(X[:3])
    np.testing.assert_allclose(one.contributions.values, explanation.contributions.values[..., 2], atol=1e-15)
    assert covers(model.predict_proba)(X[:3]).contributions.values.shape == (3, 4, 3)


def test_texts_and_categories():
    frame, y = boosters.mixed()
    model = lightgbm.LGBMRegressor(n_estimators=8, min_data_per_group=1, verbose=-1, n_jobs=1).fit(frame, y)
    whole, explainer = covers(model)(frame).contributions.values, covers(model)
    np.testing.assert_allclose(whole, model.predict(frame, pred_contrib=True)[:, :-1], atol=1e-12)
    # rows with other texts, and missing ones, one after the other
    parts = [explainer(frame[i : i + 40]).contributions.values for i in range(0, len(frame), 40)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert np.array_equal(covers(model, frame)(frame[:9]).contributions.values, whole[:9])
    assert explainer(frame[:1]).conditions[0][1].startswith("color ")


def test_pipelines_of_encoders():
    frame = pd.DataFrame({"town": RNG.choice(["Bonn", "Kiel", "Ulm"], 300), "age": X[:, 0]})
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestRegressor(8, max_depth=4, random_state=0)).fit(frame, Y)
    explanation = covers(model)(frame[:20])
    account = explanation.contributions
    assert account.values.shape == (20, 2)  # dummies of a text are one player
    np.testing.assert_allclose(account.base_values + account.values.sum(axis=1), model.predict(frame[:20]))
    assert np.array_equal(covers(model, frame)(frame[:20]).contributions.values, account.values)
    with pytest.raises(InputError, match="town"):
        covers(model, frame)(frame.assign(age=np.inf)[["age"]])


def test_single_precision_of_xgboost_is_no_mismatch():
    model = xgboost.XGBRegressor(n_estimators=200, n_jobs=1).fit(X, Y + 1000.0)
    explanation = covers(model)(X[:50])
    account = explanation.contributions
    np.testing.assert_allclose(
        account.base_values + account.values.sum(axis=1), explanation.predictions, rtol=1e-6
    )


def test_a_model_that_was_fitted_again_is_read_again():
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)
    explainer = covers(model)
    first = explainer(X[:3]).contributions.values
    model.fit(X, -2.0 * Y)
    assert np.array_equal(explainer(X[:3]).contributions.values, covers(model)(X[:3]).contributions.values)
    assert not np.array_equal(explainer(X[:3]).contributions.values, first)


def test_copies_and_pickles():
    explainer = covers(NAMED, FRAME, output="margin")
    expected = explainer(FRAME[:5])
    for other in (pickle.loads(pickle.dumps(explainer)), copy.copy(explainer), explainer.reproducible):
        assert type(other) is type(explainer)
        assert np.array_equal(other(FRAME[:5]).contributions.values, expected.contributions.values)
    stored = limes.Explanation.from_json(expected.to_json())
    assert np.array_equal(stored.contributions.values, expected.contributions.values)
    with pytest.raises(InputError, match="has no coefficients"):
        _ = stored.coefficients


def test_errors_by_row_need_a_background():
    rows = FRAME[:4].copy()
    rows.iloc[1, 0] = np.inf
    skipping = covers(NAMED, FRAME, output="margin", errors="row")(rows)
    assert skipping.ids == (0, 2, 3)
    assert skipping.errors[0][0] == 1
    with pytest.raises(InputError, match="errors='row' needs a background"):
        covers(NAMED, output="margin", errors="row")


# -- what is shown ----------------------------------------------------------------------------------------


def test_everything_shown_speaks_of_contributions_alone():
    explanation = covers(NAMED, output="margin")(FRAME[:4])
    texts = [
        str(explanation),
        explanation.to_html(),
        explanation.to_report(),
        explanation[0].to_html(kind="decision"),
    ]
    for text in texts[:2]:
        assert "as they count these" in text
        assert "LIME" not in text
    assert len(explanation.top(2).feature_names) == 2
    assert len(explanation.reasons(2, row=0)) == 2
    assert set(explanation.to_frame()["feature"]) == set(FRAME)
    for picture in (
        explanation.plot.waterfall,
        explanation.plot.bar,
        explanation.plot.beeswarm,
        explanation.plot.heatmap,
    ):
        assert picture() is not None
    assert limes.summary(explanation) is not None


def test_pairs_add_up():
    account = covers(NAMED, output="margin")(FRAME[:4]).contributions
    np.testing.assert_allclose(account.pairs.sum(axis=2), account.values, atol=1e-12)
    np.testing.assert_allclose(account.pairs, account.pairs.swapaxes(1, 2), atol=0)
    assert not account.pair_errors.any()
    y = np.digitize(Y, [0.0, 1.0])
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y)
    several = covers(model)(X[:3])
    assert several.contributions.pairs.shape == (3, 4, 4, 3)
    one = several[1:, :, "1"]
    np.testing.assert_allclose(one.contributions.pairs, several.contributions.pairs[1:, ..., 1])


NOT_THERE = {
    "coefficients": lambda e, _: e.coefficients,
    "effects": lambda e, _: e.effects,
    "": lambda e, _: e.fidelity,
    "interactions": lambda e, _: e.interactions(),
    "additive_fidelity": lambda e, _: e.additive_fidelity,
    "diagnosis": lambda e, _: limes.diagnose(e),
    "design": lambda _, explainer: explainer.design(X[0]),
    "moments of features": lambda _, explainer: explainer.features(X[:2]),
    "perturbed rows": lambda _, explainer: limes.suggest_design(explainer, X[:2]),
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_the_law_refuses_with_the_reason(name):
    explainer = covers(FOREST)
    with pytest.raises(InputError, match=f"no .*{name}.*by the order of the splits"):
        NOT_THERE[name](explainer(X[:3]), explainer)


def _compiled_cases():
    coded = FRAME.assign(k=RNG.integers(0, 6, len(X)))
    texts = FRAME.assign(k=pd.Categorical(np.array([*"abcdef"])[coded["k"]]))
    regressor = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1, n_jobs=1)
    classes = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, Y), 10)
    return {
        "forest": (FOREST, X, {}, None),
        "three classes": (
            RandomForestClassifier(5, max_depth=4, random_state=0).fit(FRAME, classes),
            FRAME,
            {},
            None,
        ),
        "margin": (NAMED, FRAME, {"output": "margin"}, None),
        "booster": (booster, X, {}, None),
        "codes": (copy.copy(regressor).fit(coded, Y, categorical_feature=["k"]), coded, {}, None),
        "texts": (copy.copy(regressor).fit(texts, Y), texts, {}, texts[:50]),
    }


COMPILED = _compiled_cases()


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_explainers_give_the_same_numbers(name):
    model, rows, options, background = COMPILED[name]
    explainer = covers(model, *([] if background is None else [background]), **options)
    explanation = explainer(rows[20:27])
    explain = explainer.compiled()
    assert explain.feature_names == explanation.feature_names
    assert explain.output_names == explanation.output_names
    account = explanation.contributions
    one = rows[22].tolist() if isinstance(rows, np.ndarray) else rows.iloc[22].to_dict()
    for plain, places in (
        (explain(rows[20:27]), slice(0, 7)),
        (explain(one), [2]),
        (pickle.loads(pickle.dumps(explain))(one), [2]),
        (explain.each([one, one])[1], [2]),
    ):
        np.testing.assert_allclose(plain.values, account.values[places], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(plain.base_values, account.base_values[places], rtol=1e-12)
        np.testing.assert_allclose(plain.predictions, explanation.predictions[places], rtol=1e-6)
        total = plain.base_values + plain.values.sum(axis=1)
        np.testing.assert_allclose(total, plain.predictions, rtol=1e-12, atol=1e-12)
        assert not plain.standard_errors.any()
        assert plain.warnings == ((),) * len(plain.predictions)


def test_compiled_explainers_ask_no_model_that_was_read(monkeypatch):
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, Y)
    explain = covers(model).compiled()
    expected = model.predict(X[:1])
    monkeypatch.setattr(RandomForestRegressor, "predict", None)
    np.testing.assert_allclose(explain(X[0]).predictions, expected)


def test_compiled_explainers_read_rows_by_name_and_missing_values():
    explainer = covers(NAMED, output="margin")
    row = {**dict(FRAME.iloc[3]), "dose": np.nan}
    explain = explainer.compiled()
    expected = explainer(pd.DataFrame([row])).contributions.values
    for one in (row, dict(reversed(row.items())), pd.DataFrame([row])[["size", "dose", "bmi", "age"]]):
        np.testing.assert_array_equal(explain(one).values, expected)


def test_compiled_explainers_take_new_texts():
    _, rows, _, _ = COMPILED["texts"]
    background = rows[rows["k"] != "f"].assign(k=lambda its: its["k"].astype(str))
    row = rows[rows["k"] == "f"].assign(k="f")[:1]
    trained = RandomForestRegressor(5, random_state=0)
    encoder = make_column_transformer((OneHotEncoder(), ["k"]), remainder="passthrough")
    pipeline = make_pipeline(encoder, trained).fit(rows.assign(k=rows["k"].astype(str)), Y)
    explainer = covers(pipeline, background)
    np.testing.assert_array_equal(
        explainer.compiled()(row.iloc[0].to_dict()).values, explainer(row).contributions.values
    )


def test_compiled_explainers_without_columns_are_refused():
    model, _, _, _ = COMPILED["texts"]
    with pytest.raises(InputError, match=r"takes all columns for numbers.*pass rows as a background"):
        covers(model).compiled()
    with pytest.raises(InputError, match="no law of one other row"):
        covers(FOREST).compiled().between(X[0], X[1])


def test_compiled_explainers_compare_what_was_read_with_the_model(monkeypatch):
    explainer, true = covers(FOREST), Covers.contributions

    def off(self, x):
        computed = true(self, x)
        return replace(computed, values=computed.values * (1.0 + 1e-6))

    monkeypatch.setattr(Covers, "contributions", off)
    with pytest.raises(ReadMismatchError):
        explainer.compiled()


def test_explainers_say_what_they_are():
    explainer = covers(FOREST)
    assert isinstance(explainer, limes.TabularExplainer)
    assert repr(explainer) == "<CoversExplainer: RandomForestRegressor, 4 columns, exact>"
    assert "covers" in str(explainer)
    assert explainer.pool_calls == 0
    assert explainer.model_warnings == ()
    assert explainer.suggestion is None


@pytest.mark.parametrize(
    ("model", "options", "kind", "message"),
    [
        (FOREST, {"bins": "decile"}, InputError, "bins='decile' is about perturbed rows"),
        (FOREST, {"bandwidth": 2.0}, InputError, "options are output, categorical, errors"),
        (FOREST, {"binz": 2}, UnknownOptionError, "bins"),
        (Ridge().fit(X, Y), {}, InputError, "read as Linear"),
        (lambda x: x[:, 0], {}, NotReadableError, "a callable has no structure"),
        (
            # its probabilities have tables too large to be read
            GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, Y > 0.4),
            {},
            InputError,
            "output='margin'",
        ),
        (NAMED, {}, InputError, "output='margin'"),
        (FOREST, {"errors": "all"}, InputError, "errors"),
        (FOREST, {"output": "nothing"}, InputError, "output"),
    ],
)
def test_misuse(model, options, kind, message):
    with pytest.raises(kind, match=message):
        covers(model, **options)


def test_defaults_may_be_written_out():
    covers(FOREST, bins="quartile", bandwidth=None, weights="bins", missing=(), ridge=0.0, method="auto")


def test_other_laws_need_a_background():
    for options in ({}, {"law": "joint"}):
        with pytest.raises(InputError, match="background= is missing"):
            limes.TabularExplainer(FOREST, **options)


def test_rows_of_other_columns():
    with pytest.raises(ModelError, match="expecting 4 features"):
        covers(FOREST)(X[:2, :3])
    with pytest.raises(InputError, match="no column"):
        covers(NAMED, FRAME, output="margin")(FRAME.drop(columns="bmi"))
