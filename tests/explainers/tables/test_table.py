import copy
import datetime as dt
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.dummy import DummyRegressor

from internals import Table
from limes.exceptions import InputError

NAN = float("nan")
TEXTS = st.sampled_from(["", "a", "b", "Ω", "None", "nan", "10"])
NUMBERS = st.floats(-1e9, 1e9, width=32)
WHOLES = st.integers(-100, 100)

# dtype -> (values, may be missing)
PANDAS = {
    "float64": (NUMBERS, True),
    "float32": (NUMBERS, True),
    "int64": (WHOLES, False),
    "int8": (WHOLES, False),
    "bool": (st.booleans(), False),
    "Int64": (WHOLES, True),
    "UInt8": (st.integers(0, 255), True),
    "Float64": (NUMBERS, True),
    "boolean": (st.booleans(), True),
    "str": (TEXTS, True),
    "string": (TEXTS, True),
    "category": (TEXTS, True),
    "object": (st.one_of(TEXTS, WHOLES), True),
    "int64[pyarrow]": (WHOLES, True),
    "float[pyarrow]": (NUMBERS, True),
}
POLARS = {
    pl.Float64: (NUMBERS, True),
    pl.Float32: (NUMBERS, True),
    pl.Int16: (WHOLES, True),
    pl.UInt8: (st.integers(0, 255), True),
    pl.Boolean: (st.booleans(), True),
    pl.String: (TEXTS, True),
    pl.Categorical: (TEXTS, True),
    pl.Enum(["b", "Ω", "a", "", "10", "nan", "None"]): (TEXTS, True),
}


@st.composite
def columns_of(draw, kinds):
    """A few columns: (dtype, values), all of one length."""
    rows = draw(st.integers(1, 6))

    def column(dtype):
        values, optional = kinds[dtype]
        cells = st.one_of(values, st.none()) if optional else values
        return draw(st.lists(cells, min_size=rows, max_size=rows))

    dtypes = draw(st.lists(st.sampled_from(list(kinds)), min_size=1, max_size=6))
    return [(dtype, column(dtype)) for dtype in dtypes]


def pandas_frame(columns):
    data = {j: pd.Series(values, dtype=dtype) for j, (dtype, values) in enumerate(columns)}
    return pd.DataFrame(data)


def polars_frame(columns):
    return pl.DataFrame(
        [pl.Series(f"c{j}", values, dtype=dtype) for j, (dtype, values) in enumerate(columns)]
    )


def people():
    return pd.DataFrame(
        {
            "age": [39, 50, 38, 53],
            "sex": ["male", "female", "male", "male"],
            "income": [1.5, NAN, 2.5, 3.5],
            "vip": [True, False, False, True],
            "size": pd.Categorical(["s", "l", None, "s"], categories=["xl", "s", "m", "l"]),
        }
    )


def message(action):
    with pytest.raises(InputError) as caught:
        action()
    return str(caught.value)


def holds(text, words):
    return [word for word in words if word not in text] == []


# ---------------------------------------------------------------- there and back


@settings(deadline=None)
@given(columns_of(PANDAS))
def test_pandas_comes_back_as_it_was(columns):
    frame = pandas_frame(columns)
    table = Table.fit(frame)
    pd.testing.assert_frame_equal(table.decode(table.matrix), frame)
    assert np.array_equal(table.encode(frame), table.matrix, equal_nan=True)


@settings(deadline=None)
@given(columns_of(POLARS))
def test_polars_and_pyarrow_come_back_as_they_were(columns):
    frame = polars_frame(columns)
    table = Table.fit(frame)
    polars.testing.assert_frame_equal(table.decode(table.matrix), frame)
    assert np.array_equal(table.encode(frame), table.matrix, equal_nan=True)
    arrow = frame.to_arrow()
    other = Table.fit(arrow)
    back = other.decode(other.matrix)
    assert back.schema.equals(arrow.schema)
    assert back.to_pylist() == arrow.to_pylist()
    assert np.array_equal(other.encode(arrow), other.matrix, equal_nan=True)


@settings(deadline=None)
@given(
    columns_of(PANDAS),
    st.sampled_from(["float64", "float32", "int64", "uint8", "bool", "object", "U8"]),
)
def test_arrays_come_back_as_they_were(columns, dtype):
    cells = pandas_frame(columns).astype(object).to_numpy()
    if dtype != "object":
        cells = np.arange(cells.size).reshape(cells.shape).astype(dtype)
    table = Table.fit(cells)
    back = table.decode(table.matrix)
    assert back.dtype == cells.dtype
    pd.testing.assert_frame_equal(pd.DataFrame(back), pd.DataFrame(cells), check_dtype=False)
    assert np.array_equal(table.encode(cells), table.matrix, equal_nan=True)


@settings(deadline=None)
@given(columns_of(PANDAS), st.data())
def test_any_choice_of_rows_comes_back_with_a_fresh_index(columns, data):
    frame = pandas_frame(columns)
    rows = data.draw(st.lists(st.integers(0, len(frame) - 1), min_size=1, max_size=9))
    table = Table.fit(frame.set_axis(range(5, 5 + len(frame))))
    pd.testing.assert_frame_equal(table.decode(table.matrix[rows]), frame.iloc[rows].reset_index(drop=True))


@settings(deadline=None)
@given(columns_of(POLARS))
def test_the_library_of_the_rows_does_not_matter(columns):
    frame = polars_frame(columns)
    table = Table.fit(frame)
    rows = [list(row) for row in frame.rows()]
    for same in (frame.to_pandas(), frame.to_arrow(), rows, frame.to_dict(as_series=False)):
        assert np.array_equal(table.encode(same), table.matrix, equal_nan=True)
    for i, row in enumerate(frame.rows(named=True)):
        for one in (row, tuple(row.values()), pd.Series(row, dtype=object)):
            assert np.array_equal(table.encode(one), table.matrix[[i]], equal_nan=True)


def test_lists_come_back_as_arrays():
    numbers = Table.fit([[1, 2.5], [3, 4]])
    assert numbers.decode(numbers.matrix).dtype == np.float64
    mixed = Table.fit([["a", 1, None], ["b", 2, 0.5]])
    assert mixed.numeric.tolist() == [False, True, True]
    assert mixed.decode(mixed.matrix).tolist() == [["a", 1, None], ["b", 2, 0.5]]
    assert mixed.columns[1].integer
    assert not mixed.columns[2].integer


def test_column_labels_keep_their_type():
    frames = [
        pd.DataFrame([[1.0, 2.0]], columns=[0, "b"]),
        pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
        pd.DataFrame([[1.0, 2.0]], columns=pd.Index(["p", "q"], name="field")),
    ]
    for frame in frames:
        table = Table.fit(frame)
        pd.testing.assert_index_equal(table.decode(table.matrix).columns, frame.columns)
        assert table.names == tuple(map(str, frame.columns))
        assert table.encode(frame).tolist() == [[1.0, 2.0]]


def test_a_table_survives_pickling_and_later_changes_of_the_background():
    frame = people()
    table = Table.fit(frame)
    kept = frame.copy()
    frame.loc[:, "sex"] = "other"
    frame.loc[:, "age"] = 0
    for same in (table, pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        pd.testing.assert_frame_equal(same.decode(same.matrix), kept)
        assert same.names == table.names


# ---------------------------------------------------------------- what the matrix holds


def test_numbers_stand_for_themselves_and_texts_for_their_level():
    table = Table.fit(people())
    assert table.names == ("age", "sex", "income", "vip", "size")
    assert table.numeric.tolist() == [True, False, True, False, False]
    assert [c.levels for c in table.columns] == [(), ("female", "male"), (), (False, True), ("s", "l")]
    assert [c.missing for c in table.columns] == [False, False, True, False, True]
    assert [c.integer for c in table.columns] == [True, False, False, False, False]
    expected = [[39, 1, 1.5, 1, 0], [50, 0, NAN, 0, 1], [38, 1, 2.5, 0, NAN], [53, 1, 3.5, 1, 0]]
    assert np.array_equal(table.matrix, expected, equal_nan=True)
    assert table.matrix.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        table.matrix[0, 0] = 1.0


def test_the_full_list_of_categories_is_kept():
    table = Table.fit(people())
    sizes = table.decode(table.matrix)["size"]
    assert sizes.cat.categories.tolist() == ["xl", "s", "m", "l"]


@pytest.mark.parametrize("ordered", [False, True])
def test_categories_that_are_numbers_stand_for_themselves(ordered):
    frame = pd.DataFrame({"zone": pd.Categorical([30, 10, 30], categories=[30, 20, 10], ordered=ordered)})
    table = Table.fit(frame)
    assert table.matrix[:, 0].tolist() == [30.0, 10.0, 30.0]
    assert table.columns[0].levels == (10, 30)
    pd.testing.assert_frame_equal(table.decode(table.matrix), frame)


def test_categories_may_be_intervals():
    frame = pd.DataFrame({"age": pd.cut([1, 5, 9], [0, 3, 6, 9])})
    table = Table.fit(frame)
    assert table.matrix[:, 0].tolist() == [0.0, 1.0, 2.0]
    pd.testing.assert_frame_equal(table.decode(table.matrix), frame)


def test_enum_levels_follow_their_categories():
    values = pl.Series("size", ["l", "s", "l"], dtype=pl.Enum(["s", "m", "l"]))
    assert Table.fit(values.to_frame()).columns[0].levels == ("s", "l")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_numbers_chosen_as_categories(library):
    frame = library({"zip": [10115, 20095, 10115], "score": [0.5, 1.5, 2.5]})
    for chosen in (["zip"], "zip", [0], 0, np.array([0]), ("zip", 0)):
        table = Table.fit(frame, categorical=chosen)
        assert table.numeric.tolist() == [False, True]
        assert table.columns[0].levels == (10115, 20095)
        assert table.matrix[:, 0].tolist() == [10115.0, 20095.0, 10115.0]


def test_a_number_that_is_the_label_of_one_column_and_the_position_of_another_is_refused():
    """The label used to go first here, and the position in selections of the explanation."""
    frame = pd.DataFrame([[1.0, 2.0]], columns=[1, 0])
    assert holds(message(lambda: Table.fit(frame, categorical=[0])), ["categorical=0", "'0'", "'1'"])
    assert Table.fit(frame, categorical=["0"]).numeric.tolist() == [True, False]


def test_texts_stay_categories_whatever_is_chosen():
    table = Table.fit(people(), categorical=["age"])
    assert table.numeric.tolist() == [False, False, True, False, False]


def test_a_column_of_nothing_but_missing_values_is_one_level():
    for frame in (
        pd.DataFrame({"a": [NAN, NAN], "b": [1, 2]}),
        pd.DataFrame({"a": [None, None], "b": [1, 2]}),
        pd.DataFrame({"a": [pd.NaT, pd.NaT], "b": [1, 2]}),
    ):
        table = Table.fit(frame)
        assert table.numeric.tolist() == [False, True]
        assert np.isnan(table.matrix[:, 0]).all()
        pd.testing.assert_frame_equal(table.decode(table.matrix), frame)
        assert holds(
            message(lambda t=table: t.encode([1.0, 2])), ["'a'", "1.0", "has no value in this column"]
        )
    nulls = pl.DataFrame({"a": [None, None]})
    table = Table.fit(nulls)
    polars.testing.assert_frame_equal(table.decode(table.matrix), nulls)


def test_every_spelling_of_missing_is_nan():
    frame = pd.DataFrame(
        {"a": np.array(["x", None, NAN, pd.NA, pd.NaT], dtype=object), "b": [1.0] + [NAN] * 4}
    )
    table = Table.fit(frame)
    assert np.isnan(table.matrix[1:]).all()
    for blank in (None, NAN, pd.NA, pd.NaT, np.nan):
        assert np.isnan(table.encode([blank, blank])).all()


# ---------------------------------------------------------------- rows of any kind


def test_columns_are_matched_by_name():
    table = Table.fit(people())
    shuffled = people()[["size", "vip", "age", "income", "sex"]]
    for rows in (shuffled, pl.from_pandas(shuffled), pa.Table.from_pandas(shuffled)):
        assert np.array_equal(table.encode(rows), table.matrix, equal_nan=True)
    assert table.encode(shuffled.iloc[0]).tolist() == [table.matrix[0].tolist()]
    assert table.encode(shuffled.iloc[0].to_dict()).tolist() == [table.matrix[0].tolist()]


def test_rows_without_names_go_by_position():
    table = Table.fit(people())
    row = [39, "male", 1.5, True, "s"]
    for one in (row, tuple(row), np.array(row, dtype=object), [row], pl.Series(row, dtype=pl.Object)):
        assert table.encode(one).tolist() == [[39.0, 1.0, 1.5, 1.0, 0.0]]


def test_an_array_background_has_no_names_to_match():
    table = Table.fit(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert table.names == ("x0", "x1")
    for row in (
        pd.Series([5.0, 6.0]),
        pd.DataFrame({"a": [5.0], "b": [6.0]}),
        pl.DataFrame({"a": [5], "b": [6]}),
    ):
        assert table.encode(row).tolist() == [[5.0, 6.0]]
    assert table.encode({"x1": 6, "x0": 5}).tolist() == [[5.0, 6.0]]
    assert table.encode([5, 6]).tolist() == [[5.0, 6.0]]


def test_a_mapping_holds_one_row_or_many():
    table = Table.fit(people()[["age", "sex"]])
    assert table.encode({"sex": "male", "age": 20}).tolist() == [[20.0, 1.0]]
    assert table.encode({"sex": ["male", "female"], "age": np.array([20, 30])}).tolist() == [[20, 1], [30, 0]]


# ---------------------------------------------------------------- perturbed values on the way back


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_whole_column_stays_whole_only_while_its_values_are(library):
    table = Table.fit(library({"n": [1, 2], "x": [0.5, 1.5]}))
    whole, broken = table.decode([[5.0, 0.25]]), table.decode([[5.5, 0.25]])
    assert pl.DataFrame(whole).schema == {"n": pl.Int64, "x": pl.Float64}
    assert pl.DataFrame(broken).rows() == [(5.5, 0.25)]
    assert type(whole) is type(broken) is type(library({"n": [1]}))


def test_nullable_whole_numbers_become_nullable_floats():
    table = Table.fit(pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}))
    assert table.decode(np.array([[3.0], [NAN]]))["n"].dtype == "Int64"
    broken = table.decode(np.array([[3.5], [NAN]]))["n"]
    assert broken.dtype == "Float64"
    assert broken.isna().tolist() == [False, True]
    assert broken[0] == 3.5


def test_a_missing_value_may_come_back_where_the_background_has_none():
    table = Table.fit(
        pd.DataFrame({"n": pd.array([1, 2], dtype="Int64"), "o": np.array([1, 2], dtype=object)})
    )
    for name in table.names:
        assert table.decode(np.array([[3.0, 3.0], [NAN, NAN]]))[name].isna().tolist() == [False, True]


def test_a_value_outside_a_narrow_dtype_is_not_wrapped():
    for background in (np.array([[1], [2]], dtype=np.uint8), pd.DataFrame({"a": [1, 2]}, dtype="uint8")):
        table = Table.fit(background)
        for value in (300.0, -1.0, 1.5):
            assert np.asarray(table.decode(np.array([[value]]))).tolist() == [[value]]


def test_decode_gives_a_copy():
    table = Table.fit(np.array([[1.0], [2.0]]))
    table.decode(table.matrix)[0, 0] = 9.0
    assert table.matrix[0, 0] == 1.0


def test_a_code_that_is_no_level_is_refused():
    table = Table.fit(people()[["sex"]])
    assert holds(message(lambda: table.decode(np.array([[7.0]]))), ["'sex'", "no level"])


def test_originals_are_what_a_person_wrote():
    table = Table.fit(people())
    shown = table.originals(table.matrix)
    assert shown.dtype == object
    assert shown[:3].tolist() == [
        [39, "male", 1.5, True, "s"],
        [50, "female", None, False, "l"],
        [38, "male", 2.5, False, None],
    ]
    assert type(shown[0, 0]) is int
    assert table.originals(np.array([[39.5, 1, 1, 1, 0]]))[0, 0] == 39.5


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([39, "man", 1.5, True, "s"], ["row 0", "'sex'", "'man'", "'female', 'male'", "add rows"]),
        ([39, "femal", 1.5, True, "s"], ["did you mean 'female'?"]),
        ([39, "male", 1.5, True, "xl"], ["'size'", "'xl'", "'s', 'l'"]),
        ([39, "male", 1.5, 2, "s"], ["'vip'", "2 does not occur", "False, True"]),
        ([39, 1.0, 1.5, True, "s"], ["'sex'", "1.0"]),
        (["old", "male", 1.5, True, "s"], ["'age'", "'old'", "not a number", "convert"]),
        (["39", "male", 1.5, True, "s"], ["'age'", "'39'", "not a number"]),
        ([39, "male", float("inf"), True, "s"], ["'income'", "inf is not finite", "replace"]),
        ([NAN, "male", 1.5, True, "s"], ["'age'", "nan is missing", "impute", "add rows"]),
        ([39, None, 1.5, True, "s"], ["'sex'", "None is missing", "impute"]),
        ([2**60, "male", 1.5, True, "s"], ["'age'", "2**53"]),
        ([39, "male"], ["got 2", "expected 5", "'age'"]),
        ([39, "male", 1.5, True, ["s"]], ["list"]),
        ([39, "male", 1.5, True, 1j], ["'size'", "1j"]),
        ([dt.date(2020, 1, 1), "male", 1.5, True, "s"], ["'age'", "not a number"]),
    ],
)
def test_a_bad_cell_is_named(row, words):
    assert holds(message(lambda: Table.fit(people()).encode(row)), words)


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, pd.DataFrame])
def test_the_first_bad_row_is_named(library):
    table = Table.fit(people()[["age", "sex", "income"]])
    good = {"age": [1.0] * 5, "sex": ["male"] * 5, "income": [1.0] * 5}
    cases = {
        "age": [1.0, 2.0, 3.0, None, None],
        "sex": ["male", "male", "female", "x", "y"],
        "income": [1.0, 1.0, 1.0, float("inf"), 1.0],
    }
    for name, values in cases.items():
        rows = library({**good, name: values})
        assert holds(message(lambda X=rows: table.encode(X)), ["row 3", repr(name)])


def test_long_lists_of_levels_are_cut():
    table = Table.fit(pd.DataFrame({"c": [f"level{i:02d}" for i in range(30)]}))
    text = message(lambda: table.encode(["zzz"]))
    assert "'level09', ..." in text
    assert "level10" not in text


def test_a_number_chosen_as_category_may_be_unseen_too():
    table = Table.fit(pd.DataFrame({"zip": [1.0, 2.0]}), categorical=["zip"])
    assert holds(
        message(lambda: table.encode(np.array([[1.0], [7.0]]))), ["row 1", "'zip'", "7.0", "1.0, 2.0"]
    )


def test_columns_that_do_not_match_are_named():
    table = Table.fit(people())
    renamed = people().rename(columns={"age": "Age", "sex": "gender"})
    assert holds(
        message(lambda: table.encode(renamed)), ["X has no column ", "'age' (did you mean 'Age'?)", "'sex'"]
    )
    extra = people().assign(target=0)
    assert holds(message(lambda: table.encode(extra)), ["'target'", "Drop"])
    twice = pa.Table.from_arrays([pa.array([1])] * 2, names=["age", "age"])
    assert holds(message(lambda: table.encode(twice)), ["share a name", "'age'"])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.empty((0, 2)), ["no rows", "at least one"]),
        ([], ["expected 2"]),
        (pd.DataFrame({"a": [], "b": []}), ["no rows"]),
        (np.zeros((1, 2, 1)), ["3 dimensions", "(rows, columns)"]),
        (3.0, ["float", "0 dimensions"]),
        ("text", ["str", "0 dimensions"]),
        ([[1, 2], [3]], ["differ in length"]),
        ({"a": [1, 2], "b": [1]}, ["differ in length"]),
        ({"a": sparse.csr_matrix([[1.0]]), "b": 2.0}, ["csr_matrix is sparse", ".toarray()"]),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]), ["masked", "filled"]),
        (pl.LazyFrame({"a": [1], "b": [1]}), ["LazyFrame is lazy", "collect"]),
        (pl.DataFrame({"a": [dt.date(2020, 1, 1)], "b": [1]}), ["'a'", "is not a number", "convert it"]),
        (np.array([[1j, 2]]), ["complex128"]),
        (np.array([[b"a", b"b"]]), ["|S1"]),
    ],
)
def test_things_that_are_no_rows(rows, words):
    table = Table.fit(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}))
    assert holds(message(lambda: table.encode(rows)), words)


@pytest.mark.parametrize(
    ("background", "words"),
    [
        (np.empty((0, 3)), ["ndarray", "rows and columns"]),
        (np.empty((3, 0)), ["rows and columns"]),
        (pd.DataFrame(), ["DataFrame", "rows and columns"]),
        (pl.DataFrame({"a": []}), ["rows and columns"]),
        ([1.0, 2.0], ["list", "two dimensions"]),
        ({"a": 1.0}, ["dict", "pass a dataframe"]),
        (None, ["NoneType"]),
        (pl.LazyFrame({"a": [1]}), ["lazy", "collect"]),
        (sparse.csr_matrix((2_000_000, 100)), ["2,000,000 x 100 cells", "at most 1,000,000"]),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ["share a name", "'a'", "Rename"]),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), ["share a name", "'1'", "Rename"]),
        (pd.DataFrame({"z": [1j]}), ["'z'", "complex128"]),
        (np.array([[1j]]), ["complex128"]),
        (pl.DataFrame({"li": [[1], [2]]}), ["'li'", "drop"]),
        (pl.DataFrame({"s": [{"a": 1}]}), ["'s'", "drop"]),
        (np.array([["2020-01-01"]], dtype="M8[D]"), ["the array", "datetime64", "days"]),
        (pd.DataFrame({"d": [dt.date(2020, 1, 1), "a"]}), ["'d'", "datetime.date(2020, 1, 1)"]),
        (pl.DataFrame({"d": [Decimal("0.1234567890123456789")]}), ["'d'", "fifteen digits"]),
        (pl.DataFrame({"i": pl.Series([1], dtype=pl.Int128)}), ["'i'", "Int128"]),
        (pl.DataFrame({"t": [dt.time(1)]}), ["'t'", "drop"]),
        (pa.table({"b": [b"x"]}), ["'b'", "drop"]),
        (pd.DataFrame({"t": [(1, 2), "a"]}), ["'t'", "(1, 2)"]),
        (pd.DataFrame({"t": [[1, 2], "a"]}), ["'t'", "list"]),
        (np.array([[1.0], [np.inf]]), ["row 1", "'x0'", "inf is not finite"]),
        (pd.DataFrame({"id": [1, 2**60]}), ["row 1", "'id'", "2**53", "drop"]),
    ],
)
def test_backgrounds_that_cannot_be_used(background, words):
    assert holds(message(lambda: Table.fit(background)), words)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (["Sex"], ["'Sex'", "did you mean 'sex'?", "'age'"]),
        ([9], ["9", "positions"]),
        ([-9], ["-9"]),  # -1 is the last column, as in selections
        ([False, True], ["False", "names or positions"]),
    ],
)
def test_unknown_categorical_columns(chosen, words):
    assert holds(message(lambda: Table.fit(people(), categorical=chosen)), words)


def test_sparse_columns_of_pandas_are_numbers_like_others():
    """They were of "dtype Unknown". The model is given ordinary columns of the same numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "zeros": rng.integers(0, 2, 60).astype(float),
            "counts": rng.integers(0, 5, 60),
            "flags": rng.integers(0, 2, 60) > 0,
            "gaps": np.where(rng.random(60) < 0.5, np.nan, 1.5),
            "dense": rng.normal(size=60),
        }
    )
    thin = frame.astype({name: pd.SparseDtype(frame[name].dtype) for name in frame.columns[:4]})
    table, plain = Table.fit(thin), Table.fit(frame)
    np.testing.assert_array_equal(table.matrix, plain.matrix)
    pd.testing.assert_frame_equal(table.decode(table.matrix), frame)
    np.testing.assert_array_equal(table.encode(thin.iloc[:3]), plain.matrix[:3])
    np.testing.assert_array_equal(plain.encode(thin.iloc[:3]), plain.matrix[:3])
    assert isinstance(thin.dtypes.iloc[0], pd.SparseDtype)


def test_frames_of_plain_numbers_are_read_at_once_as_they_are_column_by_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", 5, ("b", "c")])
    table = Table.fit(frame)
    for X in (frame, frame.iloc[[3]], frame.copy(), frame.astype(np.float32), frame[frame.columns[::-1]]):
        expected = np.column_stack([X[name].to_numpy(np.float64) for name in frame.columns])
        np.testing.assert_array_equal(table.encode(X), expected)
    decoded = table.decode(table.matrix[:4])
    pd.testing.assert_frame_equal(decoded, frame.iloc[:4])
    decoded.iloc[0, 0] = 99.0
    assert table.matrix[0, 0] != 99.0
    for value, message in ((np.nan, "is missing"), (np.inf, "not finite")):
        wrong = frame.iloc[[2]].copy()
        wrong.iloc[0, 1] = value
        with pytest.raises(InputError, match=f"column '5'.*{message}"):
            table.encode(wrong)
    with pytest.raises(InputError, match="has no column 'a'"):
        table.encode(frame.rename(columns={"a": "z"}))


def test_a_part_of_an_arrow_table_is_refused():
    batch = pa.Table.from_pandas(pd.DataFrame({"a": [1.0, 2.0]})).to_batches()[0]
    with pytest.raises(InputError, match="RecordBatch"):
        Table.fit(batch)


def test_a_model_in_place_of_the_background_names_the_order():
    with pytest.raises(InputError, match="pass the model first, then the table"):
        Table.fit(DummyRegressor())
