"""Exact explanations against the model on rows of the law: each case was wrong once."""

from __future__ import annotations

import types

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from internals import TABLE_DRAWS, ExactExpectation, Moments, Probe, Table, binned, check_draws, product_rows
from limes.designs import ProductDesign
from limes.exceptions import ReadMismatchError
from limes.models import forms

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 3))


def codes(model):
    """A column of the categories 0, 1, 2, of which only 0 matters: f = 60 there and 50 elsewhere."""
    x = np.column_stack([np.arange(600) % 3, np.random.default_rng(0).normal(size=600)]).astype(float)
    return model(x, 10.0 * (x[:, 0] == 0) + 50), x


def lightgbm_codes(x, y):
    library = pytest.importorskip("lightgbm")
    model = library.LGBMRegressor(n_estimators=1, learning_rate=1, verbose=-1)
    return model.fit(x, y, categorical_feature=[0])


def xgboost_codes(x, y):
    library = pytest.importorskip("xgboost")
    model = library.XGBRegressor(
        n_estimators=1, learning_rate=1, reg_lambda=0, feature_types=["c", "q"], enable_categorical=True
    )
    return model.fit(x, y)


def histogram_codes(x, y):
    seen = x[:, 0] < 2
    model = HistGradientBoostingRegressor(max_iter=1, learning_rate=1, categorical_features=[0])
    return model.fit(x[seen], y[seen])


@pytest.mark.parametrize("fitted", [lightgbm_codes, xgboost_codes, histogram_codes])
def test_categories_wider_than_every_set_of_a_split(fitted):
    """The coefficient of column 0 was 60 (7.3 for the third model), as code 2 reached no leaf."""
    model, x = codes(fitted)
    explanation = limes.TabularExplainer(model, x, categorical=[0])([[0.0, 0.0]])
    assert explanation.method == "exact"
    grid = np.column_stack([np.arange(3.0), np.zeros(3)])
    predictions = model.predict(grid).astype(np.float64)
    np.testing.assert_allclose(
        explanation.coefficients.values[0, 0], predictions[0] - predictions[1:].mean(), rtol=1e-6
    )
    form = limes.models.read(model)
    hostile = np.column_stack([[-1.0, 7.0, 0.5, np.nan, -np.inf, 2.0**60], np.zeros(6)])
    np.testing.assert_array_equal(form.reduce().predict(hostile), form.predict(hostile))


def test_a_negative_code_for_missing():
    """The first coefficient was -100.06; enumeration over the ten codes and -1 gives the oracle."""
    library = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    code = np.where(rng.random(2000) < 0.2, -1, rng.integers(0, 10, 2000))
    x = np.column_stack([code, rng.normal(size=(2000, 2))]).astype(float)
    y = 3.0 * (code == -1) + x[:, 1] + 100 + rng.normal(size=2000) * 0.1
    model = library.LGBMRegressor(n_estimators=50, verbose=-1).fit(x, y, categorical_feature=[0])
    explainer = limes.TabularExplainer(model, x, categorical=[0], law="empirical")
    explanation = explainer(x[code == -1][:1])
    assert explanation.method == "exact"
    levels = RNG.random((1 << 16, 3))
    rows, h = explainer.design(x[code == -1][0]).draw(levels)
    f = model.predict(rows)
    inside, other = f[h[:, 0] == 1], f[h[:, 0] == 0]
    error = np.hypot(inside.std() / np.sqrt(inside.size), other.std() / np.sqrt(other.size))
    assert abs(explanation.coefficients.values[0, 0] - (inside.mean() - other.mean())) < 5 * error


def test_the_margin_control_knows_every_category():
    """It gave -0.1768 ± 0.00009, converged, where the coefficient is -0.0095."""
    library = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    code = np.where(rng.random(2000) < 0.2, -1, rng.integers(0, 10, 2000))
    x = np.column_stack([code, rng.normal(size=(2000, 2))]).astype(float)
    chance = np.where(code == -1, 0.75, 0.8 + 0.05 * x[:, 1].clip(-2, 2))
    model = library.LGBMClassifier(n_estimators=30, learning_rate=0.03, verbose=-1)
    model.fit(x, (rng.random(2000) < chance).astype(int), categorical_feature=[0])
    row = x[code == -1][:1]
    options = {"categorical": [0], "output": 1}
    chosen = limes.TabularExplainer(model, x, control="margin", **options)(row)
    plain = limes.TabularExplainer(model, x, control="none", max_calls=1 << 12, **options)(row)
    error = np.hypot(chosen.coefficients.standard_errors, plain.coefficients.standard_errors)
    assert (np.abs(chosen.coefficients.values - plain.coefficients.values) < 4 * error).all()


def test_a_predict_put_on_the_instance_is_not_read():
    """A clip that no background row meets was read past: 8.87 and -8.93 for 0.99 and -1.01."""
    rng = np.random.RandomState(0)
    first = rng.randn(300, 4)[:, 0]
    x = np.column_stack([first, first + 0.05 * rng.randn(300)])
    model = LinearRegression().fit(x, 5 * (x[:, 0] - x[:, 1]))
    model.predict = types.MethodType(lambda self, t: np.clip(LinearRegression.predict(self, t), -1, 1), model)
    explanation = limes.TabularExplainer(model, x)(x[[3]])
    assert explanation.method == "sampled"
    assert "was replaced" in explanation.reason
    np.testing.assert_allclose(explanation.coefficients.values[0], [0.99, -1.01], atol=0.05)


def test_the_functions_that_predict_calls_are_compared_on_rows_of_the_law():
    """The same clip below the public methods: only rows that the background does not hold show it."""
    first = RNG.normal(size=300)
    x = np.column_stack([first, first + 0.05 * RNG.normal(size=300)])
    model = LinearRegression().fit(x, 5 * (x[:, 0] - x[:, 1]))
    raw = model._decision_function
    model._decision_function = lambda t: np.clip(raw(t), -1, 1)
    explanation = limes.TabularExplainer(model, x)(x[[3]])
    assert explanation.method == "sampled"
    assert "a row of the background's law (x0=" in explanation.reason
    with pytest.raises(ReadMismatchError, match="a row of the background's law"):
        limes.TabularExplainer(model, x, method="exact")


def test_a_borrowed_class_name_is_not_read():
    namespace = {"predict": lambda self, t: np.zeros(len(t)), "__module__": "sklearn.evil"}
    model = type("LinearRegression", (LinearRegression,), namespace)().fit(ROWS, ROWS[:, 0])
    assert limes.TabularExplainer(model, ROWS).method == "sampled"


def test_a_method_put_on_the_class_is_not_read(monkeypatch):
    model = LinearRegression().fit(ROWS, ROWS[:, 0])
    monkeypatch.setattr(LinearRegression, "predict", lambda self, t: np.zeros(len(t)))
    explainer = limes.TabularExplainer(model, ROWS)
    assert explainer.method == "sampled"
    assert "was replaced" in explainer(ROWS[:1]).reason


def test_a_step_with_another_transform_is_not_read():
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(ROWS, ROWS[:, 0])
    model[0].transform = lambda t: np.zeros_like(t)
    explainer = limes.TabularExplainer(model, ROWS)
    assert explainer.method == "sampled"
    assert "standardscaler" in explainer(ROWS[:1]).reason


def test_a_tree_of_a_forest_with_another_predict_is_not_read():
    model = RandomForestRegressor(5, random_state=0).fit(ROWS, ROWS[:, 0])
    model.estimators_[3].predict = lambda t, check_input=True: np.zeros(len(t))
    assert limes.TabularExplainer(model, ROWS).method == "sampled"


def refit(model):
    model.fit(ROWS, -ROWS.sum(axis=1))


def boosters():
    for home, name, quiet in (
        ("xgboost", "XGBRegressor", {}),
        ("lightgbm", "LGBMRegressor", {"verbose": -1}),
        ("catboost", "CatBoostRegressor", {"verbose": 0, "allow_writing_files": False}),
    ):
        yield lambda home=home, name=name, quiet=quiet: getattr(pytest.importorskip(home), name)(
            n_estimators=5, **quiet
        )


MODELS = [
    LinearRegression,
    lambda: SGDRegressor(random_state=0),
    lambda: RandomForestRegressor(5, random_state=0),
    lambda: HistGradientBoostingRegressor(max_iter=5),
    lambda: make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0)),
    *boosters(),
]


@pytest.mark.parametrize("make_model", MODELS)
def test_a_model_that_was_fitted_again_is_read_again(make_model):
    """An explainer used to keep the first fit and show its predictions."""
    model = make_model().fit(ROWS, ROWS.sum(axis=1))
    explainer = limes.TabularExplainer(model, ROWS)
    before = explainer(ROWS[:2])
    explainer.reproducible(ROWS[:2])
    refit(model)
    again, reproducible = explainer(ROWS[:2]), explainer.reproducible(ROWS[:2])
    fresh = limes.TabularExplainer(model, ROWS)(ROWS[:2])
    assert before.method == again.method == "exact"
    np.testing.assert_array_equal(again.coefficients.values, fresh.coefficients.values)
    np.testing.assert_allclose(reproducible.coefficients.values, fresh.coefficients.values, rtol=1e-9)
    np.testing.assert_allclose(again.predictions, model.predict(ROWS[:2]), rtol=1e-5)
    assert np.abs(again.coefficients.values - before.coefficients.values).max() > 0.1


def test_a_rule_of_a_model_that_was_fitted_again():
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (200, 5))
    model = LinearRegression().fit(signs, 0.1 * signs[:, 0])
    explainer = limes.SparseExplainer(model, k=2)
    assert explainer.method == "exact"
    explainer(signs[:1])
    model.fit(signs, 0.2 * signs[:, 3])
    fresh = limes.SparseExplainer(model, k=2)(signs[:1])
    np.testing.assert_array_equal(explainer(signs[:1]).coefficients.values, fresh.coefficients.values)


def test_maple_of_a_model_that_was_fitted_again():
    model = LinearRegression().fit(ROWS, ROWS[:, 0])
    explainer = limes.MapleExplainer(model, ROWS, trees=10)
    before = explainer(ROWS[:1])
    model.fit(ROWS, 2 * ROWS[:, 2])
    fresh = limes.MapleExplainer(model, ROWS, trees=10)(ROWS[:1])
    np.testing.assert_array_equal(explainer(ROWS[:1]).coefficients.values, fresh.coefficients.values)
    assert not np.array_equal(before.coefficients.values, fresh.coefficients.values)


def test_a_booster_that_grew_in_place_is_read_again():
    library = pytest.importorskip("lightgbm")
    data = library.Dataset(ROWS, ROWS.sum(axis=1), free_raw_data=False)
    model = library.train({"verbose": -1}, data, 3, keep_training_booster=True)
    explainer = limes.TabularExplainer(model, ROWS)
    explainer(ROWS[:1])
    for _ in range(10):
        model.update()
    explanation = explainer(ROWS[:1])
    np.testing.assert_allclose(explanation.predictions, model.predict(ROWS[:1]), rtol=1e-9)
    np.testing.assert_array_equal(
        explanation.coefficients.values, limes.TabularExplainer(model, ROWS)(ROWS[:1]).coefficients.values
    )


@pytest.mark.parametrize("make_model", MODELS)
def test_asking_a_model_does_not_look_like_a_fit(make_model):
    model = make_model().fit(ROWS, ROWS.sum(axis=1))
    explainer = limes.TabularExplainer(model, ROWS)
    bound = explainer._model
    explainer(ROWS[:3])
    model.predict(ROWS)
    explainer(ROWS[3:5])
    assert explainer._model is bound


SAMPLED = {"method": "sampled", "control": "additive", "max_calls": 512}


def test_whole_numbers_that_an_encoder_takes_for_categories():
    """They raised InputError, under "sampled" too, and the message named no column."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.RandomState(0)
    data = pd.DataFrame({"a": rng.rand(300), "zone": rng.randint(1, 6, 300)})
    target = ((data.a + (data.zone == 3)) > 0.7).astype(int)
    for unknown in ("ignore", "error"):
        encoded = ColumnTransformer(
            [("c", OneHotEncoder(handle_unknown=unknown), ["zone"])], remainder="passthrough"
        )
        for head in (GradientBoostingClassifier(n_estimators=5), LogisticRegression()):
            model = make_pipeline(encoded, head).fit(data, target)
            for options in ({}, SAMPLED, {"output": "margin"}, {"bins": None}):
                explanation = limes.TabularExplainer(model, data, **options)(data.iloc[[0]])
                assert explanation.provenance["categories of the model"] == ["zone"]
                assert explanation.conditions[0][1] == f"zone = {data.zone[0]}"
                assert (explanation.method == "exact") == ("method" not in options)
                by_option = limes.TabularExplainer(model, data, categorical=["zone"], **options)(
                    data.iloc[[0]]
                )
                np.testing.assert_array_equal(explanation.coefficients.values, by_option.coefficients.values)


def test_bins_given_to_a_column_that_the_model_takes_for_categories():
    model, x = codes(lightgbm_codes)
    bins = [[-1, 0.5, 3], None]
    explanation = limes.TabularExplainer(model, x, bins=bins)(x[:1])
    assert explanation.method == "sampled"
    assert "takes column 'x0' for categories" in explanation.reason
    with pytest.raises(limes.exceptions.NotReadableError, match="pass None in its place"):
        limes.TabularExplainer(model, x, bins=bins, method="exact")


def test_an_expectation_that_disagrees_with_the_form_is_not_used(monkeypatch):
    """The form predicts what the model predicts, and its expectation is wrong: this was never looked at."""
    from internals import ForestExpectation

    right = ForestExpectation._moments

    def shifted(self, mean, contrast, variance):
        return right(self, mean + 1e-3, contrast, variance)

    monkeypatch.setattr(ForestExpectation, "_moments", shifted)
    model = RandomForestRegressor(5, random_state=0).fit(ROWS, ROWS.sum(axis=1))
    with pytest.raises(ReadMismatchError, match="as a law of this row alone"):
        limes.TabularExplainer(model, ROWS, method="exact")
    assert limes.TabularExplainer(model, ROWS).method == "sampled"


def a_design():
    edges, means, stds = [[-1.0, 0.0, 1.0]] * 2, [[-0.5, 0.5]] * 2, [[0.3, 0.3]] * 2
    return ProductDesign.from_bins(edges, means, stds, instance=[0.2, -0.4], bandwidth=1.0)


@pytest.mark.parametrize("change", [0.0, 0.3])
@pytest.mark.parametrize("part", ["mean", "gamma"])
def test_moments_are_held_against_draws(part, change):
    design, form = a_design(), forms.Boxes([[0.0, -np.inf]], [[np.inf, np.inf]], [1.0])
    surrogate = limes.limit(design, form)
    mean = surrogate.intercept + design.inclusion @ surrogate.coef
    moments = Moments.exact(
        mean + change * (part == "mean"),
        design.variance * (surrogate.coef + change * (part == "gamma")),
    )
    if change:
        with pytest.raises(ReadMismatchError, match="16,384 draws"):
            check_draws(moments, form.predict, design, product_rows(design), TABLE_DRAWS)
    else:
        check_draws(moments, form.predict, design, product_rows(design), TABLE_DRAWS)


@pytest.mark.parametrize("weights", ["bins", "euclidean"])
@pytest.mark.parametrize("bandwidth", [1e-200, 0.01, 0.2, np.inf])
@pytest.mark.parametrize("bins", ["quartile", None])
def test_exact_at_any_bandwidth(bandwidth, weights, bins):
    """Where no draw leaves the instance's cells there is nothing to disagree with."""
    model = RandomForestRegressor(5, random_state=0).fit(ROWS, ROWS.sum(axis=1))
    limes.TabularExplainer(model, ROWS, bandwidth=bandwidth, weights=weights, bins=bins, method="exact")


def test_rare_values_are_no_disagreement():
    """A box with one part in ten thousand of the law, which few draws do not meet."""
    design = a_design()
    form = forms.Boxes([[0.9999, -np.inf]], [[np.inf, np.inf]], [1000.0])
    surrogate = limes.limit(design, form)
    moments = Moments.exact(
        surrogate.intercept + design.inclusion @ surrogate.coef, design.variance * surrogate.coef
    )
    check_draws(moments, form.predict, design, product_rows(design), TABLE_DRAWS)


def test_leaves_add_up_to_one_at_every_value():
    """Unknown, negative, fractional, missing and infinite values reach one leaf of each tree."""
    pytest.importorskip("lightgbm")
    model, _ = codes(lightgbm_codes)
    form = limes.models.read(model)
    terms = form.reduce()
    hostile = np.array([-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e9, np.inf, np.nan])
    grid = np.stack(np.meshgrid(hostile, hostile), axis=-1).reshape(-1, 2)
    product = np.ones((len(terms.coef), len(grid)))
    for j, function in enumerate(terms.functions):
        if function is not None:
            product *= function(grid[:, j])
    np.testing.assert_array_equal(product.sum(axis=0), form.roots.size)


@pytest.mark.parametrize(("row", "bandwidth"), [(0.1, 0.02), (0.1, 0.05), (5.2, 0.1), (5.2, 0.5)])
def test_slopes_over_values_that_hardly_vary(row, bandwidth):
    """A narrow weight leaves all but 1e-30 to one value: -419.4 was called exact where 3.5 is true."""
    values = np.array([0.1, 0.7, 1.3, 2.9, 5.2, 7.7])
    x = np.tile(values, 4)[:, None]
    y = 1000 + 50 * np.sin(1.3 * x[:, 0])
    model = RandomForestRegressor(5, random_state=0).fit(x, y)
    explainer = limes.TabularExplainer(model, x, bins=None, law="empirical", bandwidth=bandwidth)
    explanation = explainer([[row]])
    # weighted least squares, centred at the row itself, where nothing cancels
    away, f = values - row, model.predict(values[:, None])
    change = f - f[values == row]
    weight = np.exp(-0.5 * (away / (bandwidth * x.std())) ** 2)
    weight /= weight.sum()
    covariance = weight @ (away * change) - (weight @ away) * (weight @ change)
    slope = covariance / (weight @ away**2 - (weight @ away) ** 2)
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.coefficients.values[0, 0], slope, rtol=1e-9)


def test_leaves_that_only_other_cells_reach_at_a_narrow_bandwidth():
    """Rounding made their probability in the own cell -2e-16: 0.427 for a coefficient of -0.451."""
    library = pytest.importorskip("lightgbm")
    x = np.column_stack([np.random.default_rng([1034, j]).normal(size=99) for j in (0, 1)])
    noise = np.random.default_rng([1034, 99]).normal(size=99)
    y = np.sin(1.3 * x[:, 0]) + 2 * np.sin(1.3 * x[:, 1] + 1) + noise
    model = library.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1).fit(x, y)
    explainer = limes.TabularExplainer(model, x, weights="euclidean", bandwidth=0.02)
    row = [0.0, -2.89864342566512]
    explanation, form = explainer([row]), limes.models.read(model)
    # the plain engine: a product of intervals a leaf
    moments = ExactExpectation(form).moments(explainer.design(row))
    np.testing.assert_allclose(
        explanation.coefficients.values[0], explainer.design(row).solve(moments.gamma), atol=1e-12
    )
    np.testing.assert_allclose(explanation.coefficients.values[0, 1], -0.45054106, rtol=1e-7)


def test_rows_of_the_law_have_the_precision_of_their_columns():
    """A model gets columns of float32 as such, and is not to be held against numbers that it never gets."""
    frame = pd.DataFrame({"single": ROWS[:, 0].astype(np.float32), "double": ROWS[:, 1]})
    table = Table.fit(frame)
    laws = [binned(column, np.quantile(column, [0, 0.25, 0.5, 0.75, 1])) for column in table.matrix.T]
    probe = Probe.of(table, laws)
    single, double = probe.rows.T
    np.testing.assert_array_equal(single, single.astype(np.float32))
    assert (double != double.astype(np.float32)).any()
