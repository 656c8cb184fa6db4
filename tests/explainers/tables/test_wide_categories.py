"""Categories that are whole numbers beyond 2**53: the model gets them unrounded, and texts show them."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from xgboost import XGBRegressor

import limes
from internals import Table
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import InputError
from oracle import EXACT

FIRST = 2**53
RNG = np.random.default_rng(0)
ROWS = 90
X = RNG.normal(size=ROWS).tolist()
IDS = RNG.choice(FIRST + np.arange(-1, 5), ROWS).tolist()
HASHES = [[2**64 - 1, 2**64 - 2, 2**63 + 1, FIRST + 1, 7][i] for i in RNG.integers(0, 5, ROWS)]
GAPS = [None if i % 7 == 0 else value for i, value in enumerate(IDS)]
# multiples of 1024 are floats themselves, and yet no other whole number may be taken for one of them
ROUND = [FIRST + 1024 * int(i) for i in RNG.integers(0, 4, ROWS)]


def pandas(ids, **options):
    return pd.DataFrame({"id": pd.Series(ids, **options), "x": X})


TABLES = {
    "int64": pandas(IDS),
    "uint64": pandas(HASHES, dtype="uint64"),
    "round": pandas(ROUND),
    "Int64": pandas(GAPS, dtype="Int64"),
    "UInt64": pandas(HASHES, dtype="UInt64"),
    "int64[pyarrow]": pandas(GAPS, dtype="int64[pyarrow]"),
    "category": pandas(pd.Categorical(IDS)),
    "category with gaps": pandas(pd.Categorical(pd.array(GAPS, dtype="Int64"))),
    "ordered": pandas(pd.Categorical(pd.array(GAPS, dtype="Int64"), ordered=True)),
    "object": pandas(GAPS, dtype=object),
    "objects of numpy": pandas([np.int64(i) for i in IDS], dtype=object),
    "numbers of 150 bits": pandas([i * 10**30 for i in IDS], dtype=object),
    "polars": pl.DataFrame({"id": IDS, "x": X}),
    "polars with gaps": pl.DataFrame({"id": GAPS, "x": X}),
    "polars UInt64": pl.DataFrame({"id": pl.Series(HASHES, dtype=pl.UInt64), "x": X}),
    "arrow with gaps": pa.table({"id": GAPS, "x": X}),
    "arrow uint64": pa.table({"id": pa.array(HASHES, pa.uint64()), "x": X}),
    "arrow dictionary": pa.table({"id": pa.array(GAPS).dictionary_encode(), "x": X}),
    "array of int64": np.array([IDS, IDS[::-1]]).T,
    "array of uint64": np.array([HASHES, HASHES[::-1]], dtype=np.uint64).T,
    "array of objects": np.array([GAPS, X], dtype=object).T,
    "lists": [list(row) for row in zip(GAPS, X, strict=True)],
}
CHOSEN = {"array of int64": [0, 1], "array of uint64": [0, 1]}


def ids_of(table):
    """The ids of a table of any kind, None where missing; shares nothing with the library."""
    if isinstance(table, pd.DataFrame):
        column = table["id"]
        return [None if gap else int(value) for value, gap in zip(column, column.isna(), strict=True)]
    if isinstance(table, pl.DataFrame | pa.Table):
        column = table["id"]
        return column.to_list() if isinstance(column, pl.Series) else column.to_pylist()
    return [None if row[0] is None else int(row[0]) for row in table]


def head(table):
    """The first three rows."""
    return table.slice(0, 3) if isinstance(table, pa.Table) else table[:3]


@pytest.mark.parametrize("kind", TABLES)
def test_ids_come_back_as_they_were(kind):
    background = TABLES[kind]
    table = Table.fit(background, categorical=CHOSEN.get(kind, [0]))
    back = table.decode(table.matrix)
    assert ids_of(back) == ids_of(background)
    assert [None if v is None else int(v) for v in table.originals(table.matrix)[:, 0]] == ids_of(background)
    assert np.array_equal(table.encode(background), table.matrix, equal_nan=True)
    if isinstance(background, pd.DataFrame):
        pd.testing.assert_frame_equal(back, background)
    elif isinstance(background, np.ndarray):
        assert back.dtype == background.dtype


@pytest.mark.parametrize("kind", TABLES)
def test_the_model_sees_the_background_s_ids_alone(kind):
    background, seen = TABLES[kind], set()

    def model(table):
        ids = ids_of(table)
        seen.update(ids)
        return np.array([float((i or 0) % 1000) for i in ids])

    options = {"categorical": CHOSEN.get(kind, [0]), "max_calls": 200, "control": "none"}
    explanation = limes.TabularExplainer(model, background, **options)(head(background))
    assert seen <= {*ids_of(background)}
    ids = ids_of(head(background))
    wanted = [float((i or 0) % 1000) for i in ids]
    assert explanation.predictions == pytest.approx(wanted)
    name = explanation.feature_names[0]
    texts = [f"{name} is missing" if i is None else f"{name} = {i}" for i in ids]
    assert [row[0] for row in explanation.conditions] == texts
    stored = [row[0] for row in json.loads(explanation.to_json())["data"]]
    assert stored == ids


def frame():
    return TABLES["int64"].copy()


def target(table):
    return (np.array(table["id"].tolist()) % 7) * 10.0 + table["x"].to_numpy()


def behind(encoder, model):
    return make_pipeline(make_column_transformer((encoder, ["id"]), remainder="passthrough"), model)


@pytest.mark.parametrize(
    ("model", "category"),
    [
        (behind(OneHotEncoder(), Ridge()), False),
        (behind(OrdinalEncoder(), RandomForestRegressor(5, random_state=0)), False),
        (LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1), True),
        (XGBRegressor(n_estimators=5, enable_categorical=True), True),
        (CatBoostRegressor(iterations=5, verbose=0, cat_features=["id"], one_hot_max_size=20), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_models_that_know_the_ids_are_read(model, category):
    table = frame()
    table = table.assign(id=pd.Categorical(table["id"])) if category else table
    model.fit(table, target(table))
    explanation = limes.TabularExplainer(model, table, categorical=["id"])(table[:3])
    assert explanation.method == "exact"
    assert explanation.predictions == pytest.approx(model.predict(table[:3]), rel=EXACT)


def test_a_model_that_makes_floats_of_ids_is_sampled_and_the_reason_shows_the_id():
    table = frame()
    model = LinearRegression().fit(table, target(table))
    explanation = limes.TabularExplainer(model, table, categorical=["id"])(table.iloc[[0]])
    assert explanation.method == "sampled"
    assert f"id={table['id'][0]}" in explanation.reason


ROW = {"id": IDS[0], "x": 0.5}


@pytest.mark.parametrize(
    "row",
    [ROW, [ROW], [IDS[0], 0.5], [[IDS[0], 0.5]], pd.DataFrame([ROW]), pd.Series(ROW, dtype=object)],
    ids=["mapping", "mappings", "row", "rows", "frame", "series of objects"],
)
def test_one_row_of_any_kind_has_the_very_id(row):
    table = Table.fit(frame(), categorical=["id"])
    assert table.originals(table.encode(row))[0, 0] == IDS[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (np.array([float(FIRST + 1), 0.5]), ["'id'", "float", "X.iloc[[i]]"]),
        (pd.Series({"id": float(FIRST), "x": 0.5}), ["'id'", "float", "X.iloc[[i]]"]),
        ([FIRST + 77, 0.5], ["'id'", str(FIRST + 77), "does not occur"]),
        (["order 7", 0.5], ["'id'", "order 7", "does not occur"]),
    ],
)
def test_an_id_that_is_no_level_is_refused_by_name(row, words):
    table = Table.fit(frame(), categorical=["id"])
    with pytest.raises(InputError) as error:
        table.encode(row)
    assert all(word in str(error.value) for word in words)


def test_a_neighbour_of_an_id_that_is_a_float_itself_is_refused():
    table = Table.fit(TABLES["round"], categorical=["id"])
    with pytest.raises(InputError, match="does not occur"):
        table.encode([FIRST + 1, 0.5])


@pytest.mark.parametrize("kind", ["int64", "Int64", "object", "polars with gaps", "arrow with gaps", "lists"])
def test_numbers_that_are_no_categories_are_refused_by_name(kind):
    with pytest.raises(InputError, match=r"column '(id|x0)'.*categorical="):
        Table.fit(TABLES[kind])


def test_the_first_number_beyond_is_refused_too():
    Table.fit(pd.DataFrame({"id": [1, FIRST]}))
    with pytest.raises(InputError, match=str(FIRST + 1)):
        Table.fit(pd.DataFrame({"id": [1, FIRST + 1]}))


def test_an_array_that_cannot_hold_ids_and_fractions_is_refused_by_name():
    array = np.array([IDS, list(range(ROWS))]).T
    with pytest.raises(InputError, match=r"column 'x0'.*'x1'.*dataframe"):
        limes.TabularExplainer(lambda rows: rows[:, 1] * 1.0, array, categorical=[0])(array[:1])


@pytest.mark.parametrize("engine", ["limit", "lime"])
def test_the_drop_in_shows_the_very_id(engine):
    array = np.array([IDS, RNG.integers(0, 3, ROWS)]).T
    seen = set()

    def model(rows):
        seen.update(int(i) for i in rows[:, 0])
        share = (rows[:, 0] - FIRST + 1) / 6.0
        return np.column_stack([1 - share, share])

    explainer = LimeTabularExplainer(array, categorical_features=[0, 1], engine=engine, random_state=0)
    explanation = explainer.explain_instance(array[0], model, num_samples=300)
    assert seen <= {*IDS}
    assert f"0={IDS[0]}" in dict(explanation.as_list())
    assert explainer.feature_values[0] == sorted({*IDS})
    assert explanation.predict_proba == pytest.approx(model(array[:1])[0])
