"""``explainer.compiled()``: contributions as plain arrays equal those of explanations, whatever a row is."""

from __future__ import annotations

import pickle
from threading import current_thread

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVR

import limes
from computed_once import ComputedOnce
from internals import _threads
from limes.exceptions import InputError, ModelError

RNG = np.random.default_rng(0)
NUMBERS, TARGET = load_diabetes(return_X_y=True, as_frame=True)
NUMBERS = NUMBERS.iloc[:, :5]
WINE, CLASSES = load_wine(return_X_y=True, as_frame=True)
WINE = WINE.iloc[:, :4]
LEVELS = ["car", "house", "other things", "repairs"]
MIXED = pd.DataFrame(
    {
        "amount": RNG.gamma(2, 1000, 300).round(2),
        "months": RNG.integers(6, 60, 300),
        "purpose": RNG.choice(LEVELS, 300),
        "foreign": RNG.random(300) < 0.2,
        "savings": np.where(RNG.random(300) < 0.1, np.nan, RNG.normal(size=300).round(3)),
    }
)
MIXED["rank"] = pd.Categorical.from_codes(RNG.integers(0, 3, 300), ["low", "middle", "high"])
DECLINED = (MIXED["amount"] / 50 > MIXED["months"] * 1.2).to_numpy()


def pipeline(model):
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(
        (encoder, ["purpose", "rank"]), (StandardScaler(), ["amount", "months"]), ("passthrough", ["foreign"])
    )
    return make_pipeline(columns, model)


def power(model):
    return make_pipeline(PowerTransformer(), model)


def product(X):
    X = np.asarray(X)
    return np.tanh(20 * X[:, 0]) * X[:, 1] + X[:, 2]


# name: model, background, options
CASES = ComputedOnce(
    {
        "trees": lambda: (
            RandomForestRegressor(10, max_depth=5, random_state=0).fit(NUMBERS, TARGET),
            NUMBERS,
            {},
        ),
        "classes": lambda: (RandomForestClassifier(8, random_state=0).fit(WINE, CLASSES), WINE, {}),
        "xgboost": lambda: (xgboost.XGBRegressor(n_estimators=20).fit(NUMBERS, TARGET), NUMBERS, {}),
        "lightgbm": lambda: (
            lightgbm.LGBMRegressor(n_estimators=20, verbose=-1).fit(NUMBERS, TARGET),
            NUMBERS,
            {},
        ),
        "linear": lambda: (power(LinearRegression()).fit(NUMBERS, TARGET), NUMBERS, {}),
        "bumps": lambda: (SVR(C=100).fit(NUMBERS, TARGET), NUMBERS, {}),
        "probability": lambda: (pipeline(LogisticRegression(max_iter=1000)).fit(MIXED, DECLINED), MIXED, {}),
        "margin": lambda: (
            HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(
                MIXED.drop(columns="purpose"), DECLINED
            ),
            MIXED.drop(columns="purpose"),
            {"output": "margin"},
        ),
        "boosted probability": lambda: (
            HistGradientBoostingClassifier(max_iter=4, random_state=0).fit(
                MIXED[["amount", "savings"]], DECLINED
            ),
            MIXED[["amount", "savings"]],
            {},
        ),
        "joint": lambda: (
            RandomForestRegressor(10, max_depth=4, random_state=0).fit(NUMBERS, TARGET),
            NUMBERS,
            {"law": "joint", "bandwidth": np.inf},
        ),
        "near": lambda: (
            RandomForestRegressor(10, max_depth=4, random_state=0).fit(NUMBERS, TARGET),
            NUMBERS,
            {"law": "joint"},
        ),
        "slopes": lambda: (
            RandomForestRegressor(5, max_depth=3, random_state=0).fit(NUMBERS, TARGET),
            NUMBERS,
            {"bins": None},
        ),
        "function": lambda: (product, NUMBERS.iloc[:, :3], {"max_calls": 64, "rng": 0}),
    }
)


@pytest.fixture(scope="module", params=[*CASES])
def case(request):
    model, background, options = CASES[request.param]
    explainer = limes.TabularExplainer(model, background, **options)
    return explainer, explainer.compiled(), background


def shapes(row):
    """A row of a frame in the ways in which services have it."""
    frame = row.to_frame().T.astype(row.attrs["dtypes"])
    cells = [None if cell is pd.NA else cell for cell in frame.iloc[0].tolist()]
    named = dict(zip(row.index, cells, strict=True))
    yield "mapping", named
    yield "other order", dict(reversed(named.items()))
    yield "mappings", [named]
    yield "list", cells
    yield "tuple", tuple(cells)
    yield "series", row
    yield "frame", frame
    if not any(isinstance(dtype, pd.CategoricalDtype) for dtype in row.attrs["dtypes"].values()):
        yield "polars", pl.from_pandas(frame)
    yield "array", frame.to_numpy()


def row_of(background, i):
    row = background.iloc[i]
    row.attrs["dtypes"] = background.dtypes.to_dict()
    return row


def assert_same(plain, explanation):
    account = explanation.contributions
    np.testing.assert_array_equal(plain.values, account.values)
    np.testing.assert_array_equal(plain.base_values, account.base_values)
    np.testing.assert_array_equal(plain.standard_errors, account.standard_errors)
    np.testing.assert_allclose(plain.predictions, explanation.predictions, rtol=1e-5)
    assert plain.warnings == tuple(tuple(w.code for w in row) for row in account.row_warnings)
    exact = not plain.standard_errors.any()
    total = plain.base_values + plain.values.sum(axis=1)
    np.testing.assert_allclose(total, plain.predictions, rtol=1e-9 if exact else 1e-6, atol=1e-9)


def test_numbers_are_those_of_explanations_whatever_a_row_is(case):
    explainer, explain, background = case
    is_exact = explainer.method == "exact" or explainer._model.law is not explainer._model.family
    for i in (0, 7) if is_exact else (0,):
        row = row_of(background, i)
        explanation = explainer.contributions(background.iloc[[i]], progress=False)
        for kind, its in [*shapes(row)][:: 1 if is_exact else 3]:
            plain = explain(its)
            assert plain.values.shape[:2] == (1, background.shape[1]), kind
            assert_same(plain, explanation)


def test_rows_of_a_batch_have_the_bits_that_they_have_alone(case):
    explainer, explain, background = case
    rows = background.iloc[[3, 1, 150]]
    together = explain(rows)
    assert_same(together, explainer.contributions(rows, progress=False))
    for i in range(3):
        alone = explain(rows.iloc[[i]])
        np.testing.assert_array_equal(alone.values[0], together.values[i])
        assert alone.warnings[0] == together.warnings[i]


def test_a_pickle_explains_as_the_original_does(case):
    _, explain, background = case
    again = pickle.loads(pickle.dumps(explain))
    assert again.feature_names == explain.feature_names == tuple(background.columns)
    assert again.output_names == explain.output_names
    np.testing.assert_array_equal(again(background.iloc[:2]).values, explain(background.iloc[:2]).values)


def test_rows_outside_of_the_background_have_its_code():
    explainer = limes.TabularExplainer(*CASES["trees"][:2])
    row = NUMBERS.iloc[0].to_numpy() + np.array([0, 10.0, 0, 0, 0])
    assert explainer.compiled()(row).warnings == (("outside",),)


def test_a_read_model_is_not_asked_and_no_other_thread_works(monkeypatch):
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(NUMBERS, TARGET)
    explain = limes.TabularExplainer(model, NUMBERS).compiled()
    expected = explain(NUMBERS.iloc[:2])

    def fail(*_, **__):
        raise AssertionError("the model was asked, or a pool of threads was")

    monkeypatch.setattr(RandomForestRegressor, "predict", fail)
    monkeypatch.setattr(_threads, "_pool", fail)
    monkeypatch.setattr(_threads, "WORKERS", 4)
    monkeypatch.setattr("limes._expectations.forest._OF_ONE_CONTRIBUTION", 1.0)
    monkeypatch.setattr("limes._expectations.forest._SPLITS_TOGETHER", 20)
    np.testing.assert_array_equal(explain(NUMBERS.iloc[:2]).values, expected.values)
    assert current_thread().name == "MainThread"


def test_a_category_that_the_background_lacks_is_the_models_matter():
    model, background, _ = CASES["probability"]
    explainer = limes.TabularExplainer(model, background)
    row = {**background.iloc[0].to_dict(), "purpose": "boat"}
    assert_same(explainer.compiled()(row), explainer.contributions(row))


BAD_ROWS = {
    "a name is missing": {**dict.fromkeys(NUMBERS.columns[1:], 0.0)},
    "a name too many": {**dict.fromkeys(NUMBERS.columns, 0.0), "other": 1.0},
    "too short": [0.0] * 4,
    "too long": [0.0] * 6,
    "infinite": [0.0, np.inf, 0.0, 0.0, 0.0],
    "missing": [0.0, None, 0.0, 0.0, 0.0],
    "nan": np.array([0.0, np.nan, 0.0, 0.0, 0.0]),
    "text": [0.0, "0.1", 0.0, 0.0, 0.0],
    "list": [0.0, [0.1], 0.0, 0.0, 0.0],
    "nothing": [],
    "huge": [0.0, 10**400, 0.0, 0.0, 0.0],
    "no row": np.zeros((0, 5)),
    "three axes": np.zeros((1, 1, 5)),
}


@pytest.mark.parametrize("kind", [*BAD_ROWS])
def test_bad_rows_have_the_explainers_errors(kind):
    explainer = limes.TabularExplainer(*CASES["trees"][:2], errors="row")
    strict = limes.TabularExplainer(*CASES["trees"][:2])
    with pytest.raises((InputError, ModelError)) as expected:
        strict.contributions(BAD_ROWS[kind])
    for each in (explainer, strict):
        with pytest.raises(type(expected.value)) as error:
            each.compiled()(BAD_ROWS[kind])
        assert str(error.value) == str(expected.value)


ODD_CELLS = {
    "amount": [np.float32(3.5), np.int64(7), True, 5],
    "months": [12.0, np.int8(3), 7.5],
    "purpose": ["car", np.str_("house")],
    "foreign": [True, np.bool_(False), 1, 0.0],
    "savings": [None, np.nan, pd.NA, float("nan"), 2],
    "rank": ["low", "high"],
}


@pytest.mark.parametrize("name", [*ODD_CELLS])
def test_cells_are_read_as_explainers_read_them(name):
    model, background, _ = CASES["probability"]
    explainer = limes.TabularExplainer(model, background)
    explain = explainer.compiled()
    for cell in ODD_CELLS[name]:
        row = {**background.iloc[0].to_dict(), name: cell}
        assert_same(explain(row), explainer.contributions(row))


def test_it_says_whether_its_numbers_are_exact():
    _, background, _ = CASES["margin"]
    # many trees, whose columns interact
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(background, DECLINED)
    margin, probability = (
        limes.TabularExplainer(model, background, output=output).compiled() for output in ("margin", None)
    )
    assert repr(margin) == "<CompiledExplainer: 5 columns, exact>"
    assert repr(probability) == "<CompiledExplainer: 5 columns, sampled>"
    assert not margin(background.iloc[0]).standard_errors.any()
    plain = probability(background.iloc[0])
    assert plain.standard_errors.any()
    total = plain.base_values + plain.values.sum(axis=1)
    np.testing.assert_allclose(total, plain.predictions, rtol=1e-9)


def test_a_new_fit_needs_a_new_function():
    model = LinearRegression().fit(NUMBERS, TARGET)
    explainer = limes.TabularExplainer(model, NUMBERS)
    before = explainer.compiled()
    old = before(NUMBERS.iloc[0])
    model.fit(NUMBERS, -TARGET)
    np.testing.assert_array_equal(before(NUMBERS.iloc[0]).values, old.values)
    np.testing.assert_allclose(explainer.compiled()(NUMBERS.iloc[0]).values, -old.values)


@pytest.mark.parametrize("cell", [[1.0], (2.0,), np.array([3.0]), pd.Series([4.0])])
def test_a_sequence_is_no_cell(cell):
    explainer = limes.TabularExplainer(LinearRegression().fit(NUMBERS, TARGET), NUMBERS)
    row = NUMBERS.iloc[0].to_dict() | {"age": cell}
    message = f"column 'age' holds a {type(cell).__name__}, and other columns one cell"
    for explain in (explainer, explainer.contributions, explainer.compiled()):
        with pytest.raises(InputError, match=message):
            explain(row)


def test_a_mapping_of_columns_is_a_table_and_truth_a_number():
    explainer = limes.TabularExplainer(LinearRegression().fit(NUMBERS, TARGET), NUMBERS)
    compiled = explainer.compiled()
    columns = NUMBERS[:2].to_dict("list")
    np.testing.assert_allclose(compiled(columns).values, compiled(NUMBERS[:2]).values, rtol=1e-12)
    row = NUMBERS.iloc[0].to_dict()
    its, one = ({**row, "age": cell} for cell in (True, 1.0))
    np.testing.assert_array_equal(compiled(its).values, compiled(one).values)
    both = (explainer.contributions(of).contributions.values for of in (its, one))
    np.testing.assert_array_equal(*both)
