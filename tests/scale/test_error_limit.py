"""How many errors end a run: a share of the whole table, whichever parts end first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import limes
from internals import Source, explain_files
from limes.exceptions import InputError

ROWS = pd.DataFrame({"a": np.arange(400.0), "b": np.arange(400.0) % 7})
CALM = pd.DataFrame({"a": 5.0 * np.arange(50) + 100.5, "b": np.arange(50.0) % 7})


def failing(bad):
    """An explainer of a model that raises on these rows."""

    def model(X):
        if bad(X["a"]).any():
            raise RuntimeError("no")
        return X["a"] + X["b"]

    return limes.TabularExplainer(model, CALM, law="joint")


def explain(source, out, explainer, max_errors, size=20):
    options = {"run": {}, "rows_per_part": size, "progress": False, "max_errors": max_errors}
    return explain_files(source, explainer, out, **options)


@pytest.fixture
def source(tmp_path):
    ROWS.to_parquet(tmp_path / "in.parquet", row_group_size=100)
    return Source.of(tmp_path / "in.parquet")


def finished(out):
    return len([*out.glob("part-*.parquet")])


@pytest.mark.parametrize("share", ["10%", 0.1, "0.1"])
def test_bad_parts_that_end_first_end_no_run(source, tmp_path, share):
    result = explain(source, tmp_path / "out", failing(lambda a: a < 40), share)
    assert (result.rows, result.errors) == (400, 40)


def test_errors_beyond_the_share_of_the_table_end_the_run_at_once(source, tmp_path):
    message = r"59 of 80 rows have no explanation, more than was allowed \(10% of 400\).*RuntimeError"
    with pytest.raises(InputError, match=message):
        explain(source, tmp_path / "out", failing(lambda a: (a > 0) & (a < 60)), "10%", size=80)
    assert finished(tmp_path / "out") == 1


def test_parts_that_cannot_be_read_state_nothing_about_the_model(source, tmp_path):
    start = pq.read_metadata(source.files[0]).row_group(0).column(0).dictionary_page_offset
    with source.files[0].open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 500)
    result = explain(source, tmp_path / "out", failing(lambda a: a < 0), 0.3, size=8)  # 13 parts
    assert result.errors == 100


def test_a_model_that_fails_on_everything_ends_the_run_after_a_part(source, tmp_path):
    broken = []

    def model(X):
        if broken:
            raise RuntimeError("license")
        return X["a"] + X["b"]

    explainer = limes.TabularExplainer(model, CALM, law="joint")
    broken.append(True)
    message = r"20 of 20 rows have no explanation, and the model fails on a row of the background.*license"
    with pytest.raises(InputError, match=message):
        explain(source, tmp_path / "out", explainer, 0.5)
    assert finished(tmp_path / "out") == 1
    with pytest.raises(InputError, match="the background too"):  # the same command again, too
        explain(source, tmp_path / "out", explainer, 0.5)
    assert explain(source, tmp_path / "out", explainer, 1).errors == 400


def test_a_model_that_fails_on_every_row_of_the_table_ends_the_run_after_ten_parts(source, tmp_path):
    fails = failing(lambda a: a == a.round())  # the background's rows are in between
    with pytest.raises(InputError, match=r"200 of 200 rows have no explanation, none in the first 10 parts"):
        explain(source, tmp_path / "out", fails, 0.9)


def test_rows_of_csv_are_estimated_and_then_counted(tmp_path, monkeypatch):
    # the first lines are longer than the others: the table looks as though it had fewer rows
    rows = ROWS.assign(text=["x" * 16 if i < 80 else "" for i in range(400)])
    rows.to_csv(tmp_path / "in.csv", index=False)
    monkeypatch.setattr("limes.scale._sources._HEAD", 2000)
    source = Source.of(tmp_path / "in.csv")
    assert 200 <= source.likely_rows < 260
    assert explain(source, tmp_path / "out", failing(lambda a: a < 40), "20%").errors == 40
    with pytest.raises(InputError, match=r"allowed \(8.999% of 400\)"):  # not before the end
        explain(Source.of(tmp_path / "in.csv"), tmp_path / "few", failing(lambda a: a >= 364), "8.999%")
    assert finished(tmp_path / "few") == 20


@pytest.mark.parametrize("share", ["2", -0.1, "101%", "many", "%", "nan", None])
def test_a_limit_that_is_no_share_is_refused(source, tmp_path, share):
    with pytest.raises(InputError, match=r"max_errors=.* must be a share of the rows, from 0 to 1"):
        explain(source, tmp_path / "out", failing(lambda a: a < 0), share)
