"""TabularExplainer from the outside: right use and wrong use."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

import limes
import oracle
from effort import repeats
from internals import CHECK_CALLS, WITNESSES
from limes.exceptions import (
    InputError,
    ModelError,
    NotReadableError,
    ReadMismatchError,
    UnknownOptionError,
)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X, y, RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def mixed():
    """A table with text, ties, missing values and a category coded as a number."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "income": rng.lognormal(10, 1, n),
            "gain": np.where(rng.random(n) < 0.6, 0.0, rng.exponential(100, n)),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "job": rng.choice(["nurse", "clerk", "smith"], n, p=[0.6, 0.3, 0.1]),
            "region": pd.Categorical(rng.choice(list("NSEW"), n), categories=list("NSEWX")),
            "member": rng.random(n) < 0.3,
        }
    )
    y = np.log(X["income"]) + (X["job"] == "nurse") + X["gain"] / 100 + X["age"].fillna(0) / 50
    return X, y


def as_numbers(frame):
    """Check on the way that the model got the mixed table that it was fitted on."""
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["income", "gain", "age", "job", "region", "member"]
    assert list(frame["region"].cat.categories) == list("NSEWX")
    assert frame["member"].dtype == bool
    assert frame["income"].dtype == np.float64
    job = frame["job"].map({"nurse": 2.0, "clerk": -1.0, "smith": 0.5}).astype(float)
    region = frame["region"].cat.codes.astype(float)
    return job * region + frame["age"].fillna(33.0) * frame["member"] + np.log1p(frame["gain"])


# -- shapes, names, kinds of input ------------------------------------------------------------


def test_regression_has_one_output(diabetes):
    X, _, model = diabetes
    e = limes.TabularExplainer(model, X)(X.iloc[:3])
    assert e.method == "exact"
    assert e.model_calls == 0
    assert e.converged
    assert e.coefficients.values.shape == e.coefficients.standard_errors.shape == (3, 10)
    assert e.coefficients.intercepts.shape == e.predictions.shape == (3,)
    assert not e.coefficients.standard_errors.any()
    assert e.feature_names == tuple(X.columns)
    np.testing.assert_allclose(e.predictions, model.predict(X.iloc[:3]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        e.coefficients.surrogate_predictions,
        e.coefficients.intercepts + e.coefficients.values.sum(axis=1),
        rtol=1e-12,
    )
    assert e.conditions[0][2].startswith("bmi > ")
    assert e.data[0, 2] == X.iloc[0, 2]


def test_classifier_explains_all_classes_and_picks_some():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = RandomForestClassifier(10, random_state=0).fit(X, names)
    whole = limes.TabularExplainer(model, X)(X.iloc[:2])
    assert whole.method == "exact"
    assert whole.coefficients.values.shape == (2, 4, 3)
    assert whole.output_names == ("setosa", "versicolor", "virginica")
    # probabilities add up to one, so their coefficients add up to zero
    np.testing.assert_allclose(whole.coefficients.values.sum(axis=2), 0, atol=1e-12)
    one = limes.TabularExplainer(model, X, output="virginica")(X.iloc[:2])
    assert one.coefficients.values.shape == (2, 4)
    assert one.output_names == ("virginica",)
    np.testing.assert_allclose(one.coefficients.values, whole.coefficients.values[..., 2], rtol=oracle.EXACT)
    two = limes.TabularExplainer(model, X, output=["virginica", "setosa"])(X.iloc[:2])
    np.testing.assert_allclose(
        two.coefficients.values, whole.coefficients.values[..., [2, 0]], rtol=oracle.EXACT
    )
    assert two.output_names == ("virginica", "setosa")


def test_margin_of_boosting_is_exact_and_probability_sampled():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    margin = limes.TabularExplainer(model, X, output="margin")(X.iloc[:1])
    assert margin.method == "exact"
    assert margin.coefficients.values.shape == (1, 6)
    assert margin.output_names == ("1",)
    probability = limes.TabularExplainer(model, X, max_calls=512, control="none")(X.iloc[:1])
    assert probability.method == "sampled"
    assert probability.coefficients.values.shape == (1, 6, 2)
    assert "margin" in probability.reason
    assert (probability.coefficients.standard_errors > 0).all()
    # the trees that were read answer
    assert probability.model_calls == 0
    called = limes.TabularExplainer(model, X, max_calls=512, method="sampled", control="none")(X.iloc[:1])
    assert 400 < called.shared_calls[0] + called.model_calls <= 512


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.iloc[:2],
        lambda X: X.iloc[:2][X.columns[::-1]],
        lambda X: pl.from_pandas(X.iloc[:2]),
        lambda X: pa.Table.from_pandas(X.iloc[:2]),
        lambda X: X.iloc[:2].to_numpy(),
        lambda X: X.iloc[:2].to_numpy().tolist(),
    ],
    ids=["pandas", "reordered", "polars", "pyarrow", "numpy", "lists"],
)
def test_rows_of_every_type_have_the_same_explanation(diabetes, convert):
    X, _, model = diabetes
    explainer = limes.TabularExplainer(model, X)
    expected = explainer(X.iloc[:2])
    np.testing.assert_array_equal(explainer(convert(X)).coefficients.values, expected.coefficients.values)


def test_one_row_of_any_kind(diabetes):
    X, _, model = diabetes
    explainer = limes.TabularExplainer(model, X)
    expected = explainer(X.iloc[:1]).coefficients.values
    for row in (X.iloc[0], X.iloc[0].to_numpy(), X.iloc[0].tolist(), X.iloc[0].to_dict()):
        np.testing.assert_array_equal(explainer(row).coefficients.values, expected)


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_numpy])
def test_backgrounds_of_every_type_give_the_same_explanation(diabetes, kind):
    X, y, _ = diabetes
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X.to_numpy(), y)

    def predict(frame):
        table = frame.to_pandas() if isinstance(frame, pa.Table) else frame
        return model.predict(np.asarray(table, dtype=float))

    options = {"max_calls": 256, "control": "additive"}
    expected = limes.TabularExplainer(predict, X, **options)(X.iloc[:1])
    result = limes.TabularExplainer(predict, kind(X), **options)(X.iloc[:1])
    np.testing.assert_array_equal(result.coefficients.values, expected.coefficients.values)


def test_the_model_gets_the_table_it_was_fitted_on(mixed):
    X, _ = mixed
    e = limes.TabularExplainer(as_numbers, X, max_calls=512, control="none")(X.iloc[:3])
    assert e.conditions[0][3] == f"job = {X['job'].iloc[0]}"
    assert e.method == "sampled"


def test_a_pipeline_fitted_on_pandas_gets_pandas_without_warnings(mixed):
    X, y = mixed
    X = X.drop(columns=["age"])
    encoder = make_column_transformer((OneHotEncoder(), ["job", "region"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeRegressor(max_depth=4, random_state=0)).fit(X, y)
    e = limes.TabularExplainer(model, X, max_calls=512, control="none")(X.iloc[:1])
    assert e.coefficients.values.shape == (1, 5)


def test_conditions_name_ties_and_missing_values(mixed):
    X, _ = mixed
    explainer = limes.TabularExplainer(lambda f: f["gain"], X, max_calls=512, control="none")
    rows = pd.concat([X[X["gain"] == 0].iloc[:1], X[X["age"].isna()].iloc[:1]])
    e = explainer(rows)
    assert e.conditions[0][1] == "gain <= 0"
    assert e.conditions[1][2] == "age is missing"
    assert e.data[1, 2] is None


# -- values: against oracles on the learnt background ---------------------------------


def test_sampled_values_equal_enumeration_over_the_background_cells(mixed):
    """f reads cells only, so that its surrogate follows from the background's frequencies."""
    X, _ = mixed
    worth = {"nurse": 1.0, "clerk": -2.0, "smith": 5.0}

    def f(frame):
        job = frame["job"].map(worth).to_numpy(dtype=float)
        unknown = frame["age"].isna().to_numpy()
        none = frame["gain"].to_numpy() <= 0
        return none * job + np.where(unknown, 3.0, -1.0) * (1 + frame["member"].to_numpy()) * job

    e = limes.TabularExplainer(f, X, max_calls=2**15, bandwidth=1.5)(X.iloc[:1])
    cuts = {c: np.unique(np.nanquantile(X[c], [0.25, 0.5, 0.75])) for c in ("gain", "age")}
    cells = pd.DataFrame(
        {
            "gain": np.searchsorted(cuts["gain"], X["gain"]),
            "age": np.where(X["age"].isna(), -1, np.searchsorted(cuts["age"], X["age"])),
            "job": X["job"],
            "member": X["member"],
        }
    )
    masses = [cells[c].value_counts(normalize=True) for c in cells]
    grid = pd.MultiIndex.from_product([m.index for m in masses], names=list(cells)).to_frame(index=False)
    z = np.stack([(grid[c] == cells[c].iloc[0]).to_numpy() for c in grid], axis=1)
    weights = np.prod(
        [grid[c].map(m).to_numpy(dtype=float) for c, m in zip(grid, masses, strict=True)], axis=0
    )
    weights *= np.exp(-0.5 * (~z).sum(axis=1) / 1.5**2)
    values = (grid["gain"] == 0) * grid["job"].map(worth)
    values += np.where(grid["age"] == -1, 3.0, -1.0) * (1 + grid["member"]) * grid["job"].map(worth)
    _, coef = oracle.least_squares(z.astype(float), values.to_numpy(dtype=float), weights)
    columns = [X.columns.get_loc(c) for c in cells]
    result, error = e.coefficients.values[0, columns], e.coefficients.standard_errors[0, columns]
    assert (np.abs(result - coef) < 4.5 * error).all()
    assert (error < 0.05).all()
    assert (
        np.abs(np.delete(e.coefficients.values[0], columns)) < 0.05
    ).all()  # neither income nor region is read


def test_sampled_agrees_with_exact_for_every_design(diabetes):
    X, _, model = diabetes
    for options in (
        {},
        {"bins": "decile"},
        {"bins": 3, "law": "uniform"},
        {"law": "empirical"},
        {"weights": "euclidean"},
        {"bandwidth": 0.7},
        {"bandwidth": float("inf")},
        {"bins": None},
        {"categorical": ["sex"], "weights": "euclidean", "bandwidth": 2.0},
    ):
        exact = limes.TabularExplainer(model, X, method="exact", **options)(X.iloc[:2])
        sampled = limes.TabularExplainer(model, X, method="sampled", control="additive", rng=7, **options)(
            X.iloc[:2]
        )
        z = (sampled.coefficients.values - exact.coefficients.values) / sampled.coefficients.standard_errors
        # 20 numbers a design from a t-like law with 15 degrees of freedom: 5 is beyond 1 in 5,000
        assert np.abs(z).max() < 5, (options, z)
        assert sampled.method == "sampled"


def test_slopes_of_a_linear_model_are_its_coefficients(diabetes):
    X, y, _ = diabetes
    model = LinearRegression().fit(X, y)
    for options in ({}, {"bandwidth": 0.3}, {"law": "empirical"}, {"law": "uniform"}):
        e = limes.TabularExplainer(model, X, bins=None, **options)(X.iloc[:2])
        np.testing.assert_allclose(e.coefficients.values, np.tile(model.coef_, (2, 1)), rtol=oracle.EXACT)
        np.testing.assert_allclose(e.coefficients.surrogate_predictions, e.predictions, rtol=oracle.EXACT)
        assert e.conditions[0] == tuple(X.columns)


def test_entropy_bins_need_a_target(diabetes):
    X, y, model = diabetes
    e = limes.TabularExplainer(model, X, bins="entropy", target=y)(X.iloc[:1])
    assert e.method == "exact"
    with pytest.raises(InputError, match="target"):
        limes.TabularExplainer(model, X, bins="entropy")


def test_ridge_shrinks_towards_lime(diabetes):
    X, _, model = diabetes
    plain = limes.TabularExplainer(model, X)(X.iloc[:1])
    slightly = limes.TabularExplainer(model, X, ridge=1.0)(X.iloc[:1])
    np.testing.assert_allclose(
        slightly.coefficients.values,
        plain.coefficients.values,
        atol=0.01 * np.abs(plain.coefficients.values).max(),
    )
    strongly = limes.TabularExplainer(model, X, ridge=3000.0)(X.iloc[:1])
    assert (np.abs(strongly.coefficients.values) < 0.5 * np.abs(plain.coefficients.values)).all()


# -- the same answer every time ------------------------------------------------------------


def test_sampled_results_depend_on_seed_and_row_only(diabetes):
    X, _, model = diabetes
    options = {"method": "sampled", "max_calls": 256, "control": repeats("auto", "additive")}
    make = lambda seed: limes.TabularExplainer(model, X, rng=seed, **options)  # noqa: E731
    explainer = make(3)
    forward, backward = explainer(X.iloc[:2]), explainer(X.iloc[1::-1])
    np.testing.assert_array_equal(forward.coefficients.values, backward.coefficients.values[::-1])
    np.testing.assert_array_equal(forward.coefficients.values[1:], make(3)(X.iloc[1]).coefficients.values)
    assert (make(4)(X.iloc[1]).coefficients.values != forward.coefficients.values[1]).any()
    again = pickle.loads(pickle.dumps(explainer))(X.iloc[:1])
    np.testing.assert_array_equal(again.coefficients.values, forward.coefficients.values[:1])


def test_tolerance_stops_early_and_is_reported(diabetes):
    X, _, model = diabetes
    loose = limes.TabularExplainer(model, X, method="sampled", tolerance=50.0)(X.iloc[:1])
    assert loose.converged
    assert loose.shared_calls < 16_384
    strict = limes.TabularExplainer(model, X, method="sampled", tolerance=1e-6)(X.iloc[:1])
    assert not strict.converged
    assert strict.shared_calls == 16_384 + 2 + CHECK_CALLS + WITNESSES
    assert strict.calls.tolist() == [1]  # the prediction


# -- bad input ------------------------------------------------------------


def test_unknown_keyword_is_refused_with_the_nearest(diabetes):
    X, _, model = diabetes
    with pytest.raises(UnknownOptionError, match=r"'bandwith'.*did you mean 'bandwidth'"):
        limes.TabularExplainer(model, X, bandwith=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "exakt"}, "did you mean 'exact'"),
        ({"bandwidth": 0.0}, "bandwidth must be a number > 0"),
        ({"bandwidth": "wide"}, "bandwidth must be a number > 0"),
        ({"bandwidth": float("nan")}, "bandwidth must be a number > 0"),
        ({"weights": "cosine"}, "weights"),
        ({"law": "normal"}, "law='normal'"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"max_calls": 0}, "max_calls"),
        ({"max_calls": 12, "method": "sampled"}, "too few"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"control": "trees"}, "did you mean 'tree'"),
        ({"control": "margin", "method": "sampled"}, "margin that can be read"),
        ({"tolerance": "5"}, "'5%'"),
        ({"tolerance": "100%"}, "'5%'"),
        ({"tolerance": "150%"}, "'5%'"),
        ({"bins": None, "weights": "eucldean"}, "did you mean 'euclidean'"),
        ({"tolerance": "many%"}, "'5%'"),
        ({"batch_size": 0}, "batch_size"),
        ({"retry": 3}, "retry must be a callable"),
        ({"rng": "seed"}, "rng"),
        ({"rng": -1}, "rng"),
        ({"bins": "quartiles"}, "quartile"),
        ({"bins": 1}, "bins"),
        ({"categorical": ["sexx"]}, "sex"),
        ({"output": "margin"}, "no classes"),
    ],
)
def test_options_are_checked(diabetes, options, message):
    X, _, model = diabetes
    with pytest.raises(InputError, match=message):
        limes.TabularExplainer(model, X, **options)(X.iloc[:1])


def test_wrong_columns_are_named(diabetes):
    X, _, model = diabetes
    explainer = limes.TabularExplainer(model, X)
    with pytest.raises(InputError, match=r"got 9 columns, expected 10"):
        explainer(X.iloc[:1, :9].to_numpy())
    with pytest.raises(InputError, match="bmi"):
        explainer(X.iloc[:1].drop(columns="bmi"))
    with pytest.raises(InputError, match="weight"):
        explainer(X.iloc[:1].assign(weight=70.0))


def test_bad_values_are_named_with_row_and_column(mixed, diabetes):
    X, _ = mixed
    explainer = limes.TabularExplainer(as_numbers, X, max_calls=512, control="none")
    with pytest.raises(InputError, match=r"row 1.*'job'.*'astronaut'"):
        explainer(X.iloc[:2].assign(job=["nurse", "astronaut"]))
    with pytest.raises(InputError, match=r"row 0.*'income'"):
        explainer(X.iloc[:2].assign(income=[np.inf, 1.0]))
    with pytest.raises(InputError, match=r"row 1.*'income'.*missing"):
        explainer(X.iloc[:2].assign(income=[1.0, np.nan]))
    X, _, model = diabetes
    with pytest.raises(InputError, match="no rows"):
        limes.TabularExplainer(model, X)(X.iloc[:0])


def test_background_must_hold_rows_and_finite_values(diabetes):
    X, _, model = diabetes
    with pytest.raises(InputError, match="rows"):
        limes.TabularExplainer(model, X.iloc[:0])
    bad = X.copy()
    bad.iloc[3, 2] = np.inf
    with pytest.raises(InputError, match="bmi"):
        limes.TabularExplainer(model, bad)


def test_a_column_with_missing_values_has_a_slope_where_it_holds_a_number(diabetes):
    X, _, _ = diabetes
    gaps = X.assign(bmi=X["bmi"].where(X["bmi"] > 25))
    rows = pd.concat([gaps[gaps["bmi"].isna()].iloc[:1], gaps[gaps["bmi"].notna()].iloc[:2]])
    explanation = limes.TabularExplainer(lambda f: f["age"], gaps, bins=None, max_calls=256, control="none")(
        rows
    )
    assert [conditions[2] for conditions in explanation.conditions] == ["bmi is missing", "bmi", "bmi"]
    assert list(explanation.provenance["slopes"]) == list(X.columns)


def test_a_row_outside_the_range_is_explained_with_a_warning(diabetes):
    X, _, model = diabetes
    far = X.iloc[:2].copy()
    far.iloc[0, 2] = 99.0
    e = limes.TabularExplainer(model, X)(far)
    assert len(e.warnings) == 1
    assert "bmi = 99" in e.warnings[0]
    assert not e[1].warnings
    top = X.iloc[:1].copy()
    top.iloc[0, 2] = X["bmi"].max()
    np.testing.assert_array_equal(
        e.coefficients.values[0], limes.TabularExplainer(model, X)(top).coefficients.values[0]
    )


def test_many_columns_outside_their_range_share_a_sentence(diabetes):
    X, _, model = diabetes
    e = limes.TabularExplainer(model, X)(X.iloc[:1] + 1e6)
    assert len(e.warnings) == 4
    assert "7 more columns lie outside the background's range: " in e.warnings[3]
    assert e.warnings[3].endswith(", ".join(X.columns[3:]))


def test_a_constant_column_gets_zero_and_a_warning(diabetes):
    X, y, _ = diabetes
    X = X.assign(clinic=7.0, country="FR")
    numbers = X.drop(columns="country")
    model = RandomForestRegressor(5, random_state=0).fit(numbers, y)
    for method in ("exact", "sampled"):
        e = limes.TabularExplainer(model, numbers, method=method, max_calls=1024)(numbers.iloc[:1])
        assert e.coefficients.values[0, 10] == 0.0
        assert e.coefficients.standard_errors[0, 10] == 0.0
        assert any("clinic" in w for w in e.warnings)
        assert e.conditions[0][10] == "clinic = 7"
    text = limes.TabularExplainer(lambda f: f["bmi"], X, max_calls=512, control="none")(X.iloc[:1])
    assert text.coefficients.values[0, 11] == 0.0
    assert text.conditions[0][11] == "country = FR"
    for law in ("truncnorm", "uniform", "empirical"):
        slopes = limes.TabularExplainer(model, numbers, bins=None, law=law)(numbers.iloc[:1])
        assert slopes.coefficients.values[0, 10] == 0.0


def test_models_that_fail_say_how(diabetes):
    X, _, _ = diabetes

    def broken(frame):
        raise ZeroDivisionError("half of nothing")

    with pytest.raises(ModelError, match=r"ZeroDivisionError.*half of nothing"):
        limes.TabularExplainer(broken, X)
    with pytest.raises(ModelError, match=r"2 rows and returned shape \(3,\)"):
        limes.TabularExplainer(lambda f: np.ones(3), X)
    with pytest.raises(ModelError, match="finite"):
        limes.TabularExplainer(lambda f: np.full(len(f), np.nan), X)
    with pytest.raises(ModelError, match="did not return numbers"):
        limes.TabularExplainer(lambda f: ["much"] * len(f), X)
    with pytest.raises(InputError, match="predict method or be callable"):
        limes.TabularExplainer("model.pkl", X)


@pytest.mark.parametrize("model", [LinearRegression(), RandomForestClassifier(), LogisticRegression()])
def test_unfitted_models_say_so(diabetes, model):
    X, _, _ = diabetes
    with pytest.raises(ModelError, match=r"[Nn]ot.*fitted"):
        limes.TabularExplainer(model, X)


def test_exact_on_an_unreadable_model_says_why(diabetes):
    X, y, _ = diabetes
    model = KNeighborsRegressor().fit(X, y)
    with pytest.raises(NotReadableError, match=r"cannot read KNeighborsRegressor.*method='auto'"):
        limes.TabularExplainer(model, X, method="exact")


def test_a_subclass_is_not_read(diabetes):
    X, y, _ = diabetes

    class Halved(LinearRegression):
        def predict(self, X):
            return super().predict(X) / 2

    explainer = limes.TabularExplainer(Halved().fit(X, y), X, max_calls=512, control="none")
    assert explainer.method == "sampled"
    assert "subclass of LinearRegression" in explainer(X.iloc[:1]).reason


def test_a_reading_that_does_not_predict_what_the_model_predicts_is_refused(diabetes):
    X, y, _ = diabetes
    model = LinearRegression().fit(X, y)
    honest = model._decision_function
    model._decision_function = lambda rows: honest(rows) + (np.arange(len(rows)) == 5)
    with pytest.raises(ReadMismatchError, match="background row 5"):
        limes.TabularExplainer(model, X, method="exact")
    explainer = limes.TabularExplainer(model, X)
    assert explainer.method == "sampled"
    assert "background row 5" in explainer(X.iloc[:1]).reason


def test_a_model_fitted_on_other_columns_says_so(diabetes):
    X, _, model = diabetes
    with pytest.raises(ModelError, match="feature names"):
        limes.TabularExplainer(model, X.rename(columns={"bmi": "mass"}))


def test_another_design_is_reproducible_by_itself(diabetes):
    X, _, model = diabetes
    explainer = limes.TabularExplainer(model, X)
    quartiles = explainer.reproducible(X.iloc[:2])
    other = explainer._with_design(bins="decile")
    deciles = other.reproducible(X.iloc[:2])
    assert deciles.conditions == other(X.iloc[:2]).conditions != quartiles.conditions
    np.testing.assert_allclose(deciles.coefficients.values, other(X.iloc[:2]).coefficients.values, rtol=1e-9)
