"""Cells are cast to the type of their column, or are an error of their row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internals import typed

NUMBERS = pa.schema([("x", pa.float64())])


def cast(cells, kind, loose=()):
    rows, reasons = typed(pa.table({"x": cells}), pa.schema([("x", kind)]), loose)
    return rows["x"], reasons


@given(st.lists(st.sampled_from([b"1", b" 2.5 ", b"-1e3", b"x", b"1,5", b"\xff", None, b"nan"]), max_size=30))
def test_each_cell_is_cast_as_if_it_stood_alone(cells):
    together, reasons = cast(pa.array(cells, pa.binary()), pa.float64())
    alone = [cast(pa.array([cell], pa.binary()), pa.float64()) for cell in cells]
    assert together.type == pa.float64()
    assert str(together.to_pylist()) == str([one[0].to_pylist()[0] for one in alone])
    assert reasons == {i: one[1][0] for i, one in enumerate(alone) if one[1]}
    assert {i for i, cell in enumerate(cells) if cell in (b"x", b"1,5", b"\xff")} == reasons.keys()


def test_the_reason_names_column_and_cell():
    assert cast([b"forty"], pa.float64())[1] == {0: "column 'x': 'forty' is no number"}
    assert cast([b"1.5"], pa.int64())[1] == {0: "column 'x': '1.5' is no whole number"}
    assert cast([b"noon"], pa.date32())[1] == {0: "column 'x': 'noon' is no date32[day]"}


def test_whole_numbers_widen_where_that_is_allowed():
    result, reasons = cast([b"1", b"1.5", b"x"], pa.int64(), loose=["x"])
    assert result.to_pylist() == [1.0, 1.5, None]
    assert reasons.keys() == {2}
    result, reasons = cast([b"1", b"1.5"], pa.int64())
    assert result.to_pylist() == [1, None]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pa.array([1, 2], pa.int32()), pa.int64()),
        (pa.array([1, 2], pa.int64()), pa.float64()),
        (pa.array(["1", "2"]), pa.int64()),
        (pa.array(["a", "b"]), pa.dictionary(pa.int32(), pa.string())),
        (pa.array(["a", "b"]).dictionary_encode(), pa.string()),
    ],
)
def test_files_may_differ_in_types_that_mean_the_same(cells, kind):
    result, reasons = cast(cells, kind)
    assert result.type == kind
    assert reasons == {}


def test_a_type_that_cannot_be_cast_is_an_error_of_every_row():
    result, reasons = cast(pa.array([[1], [2]]), pa.float64())
    assert result.to_pylist() == [None, None]
    assert reasons.keys() == {0, 1}
