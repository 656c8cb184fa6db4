"""From files to files: every row once, the same wherever a table is cut, interrupted or damaged."""

from __future__ import annotations

import os
import re
from pathlib import Path
from time import sleep
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from effort import repeats
from internals import Cluster, Heartbeat, Source, _tables, decimated, explain_files
from jobs import read, same
from limes.exceptions import InputError

RUN = {"model": "forest"}


@pytest.fixture
def source(tmp_path, table):
    table[0].to_parquet(tmp_path / "in.parquet", row_group_size=100, index=False)
    return Source.of(tmp_path / "in.parquet")


def explain(source, explainer, out, **options):
    options = {"run": RUN, "keys": ["id"], "rows_per_part": 64, "progress": False, **options}
    return explain_files(source, explainer, out, **options)


@pytest.mark.parametrize("rows", [10_000, 64, 7])
def test_the_numbers_are_the_same_to_the_bit_for_any_parts(source, explainer, tmp_path, whole, rows):
    summary = explain(source, explainer, tmp_path / "out", rows_per_part=rows)
    assert (summary.rows, summary.errors, summary.resumed) == (442, 0, 0)
    same(read(tmp_path / "out"), whole)
    assert summary.mean_sizes["bmi"] == pytest.approx(whole["value_bmi"].abs().mean(), rel=1e-12)
    assert len([*(tmp_path / "out").glob("*.parquet")]) == -(-442 // rows)


@pytest.mark.engines
@pytest.mark.parametrize("processes", repeats([Cluster(2)], [Cluster(1, timeout=600)]))
def test_other_processes_give_the_same_lines(source, explainer, tmp_path, whole, processes):
    explain(source, explainer, tmp_path / "out", cluster=processes)
    same(read(tmp_path / "out"), whole)


def test_csv_and_folders_of_files_are_one_table(explainer, tmp_path, table, whole):
    (tmp_path / "in").mkdir()
    for i, part in enumerate([table[0].iloc[:150], table[0].iloc[150:]]):
        part.to_csv(tmp_path / "in" / f"{i}.csv", index=False)
    explain(Source.of(tmp_path / "in"), explainer, tmp_path / "out")
    same(read(tmp_path / "out"), whole)
    assert Source.of(tmp_path / "in" / "*.csv").files == Source.of(tmp_path / "in").files


def test_long_has_a_line_a_column(source, explainer, tmp_path, whole):
    summary = explain(source, explainer, tmp_path / "out", layout="long")
    result = read(tmp_path / "out")
    assert len(result) == 442 * 5
    assert np.array_equal(result.loc[result["feature"] == "bp", "value"], whole["value_bp"])
    assert summary.mean_sizes["bp"] == pytest.approx(whole["value_bp"].abs().mean(), rel=1e-12)


def test_a_folder_without_fits_has_the_other_columns_and_takes_no_run_with_them(
    source, explainer, tmp_path, whole
):
    explain(source, explainer, tmp_path / "out", fit=False)
    result = read(tmp_path / "out")
    assert {*whole} - {*result} == {"fidelity", "additive_fidelity"}
    same(result.drop(columns="warnings"), whole[[*result]].drop(columns="warnings"))
    with pytest.raises(InputError, match="output"):
        explain(source, explainer, tmp_path / "out")


NUMBER = {"pandas": "float64", "polars": pl.Float64, "duckdb": "DOUBLE"}
WHOLE = {"pandas": "int64", "polars": pl.Int64, "duckdb": "BIGINT"}
TEXT = {"pandas": pd.Series(["x"]).dtype, "polars": pl.String, "duckdb": "VARCHAR"}
TYPES = {
    "wide": [WHOLE, TEXT, TEXT, *[NUMBER] * 6, *[NUMBER] * 15, *[TEXT] * 3],
    "long": [WHOLE, TEXT, TEXT, *[NUMBER] * 6, TEXT, TEXT, *[NUMBER] * 3, *[TEXT] * 3],
}


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_pandas_polars_and_duckdb_read_one_table_with_its_types(source, explainer, tmp_path, layout):
    out = tmp_path / "out"
    explain(source, explainer, out, layout=layout)
    result = {
        "pandas": pd.read_parquet(out),
        "polars": pl.read_parquet(out / "*.parquet"),
        "duckdb": duckdb.sql(f"select * from '{out}/*.parquet'"),  # noqa: S608
    }
    for library, table in result.items():
        assert [*table.dtypes] == [kind[library] for kind in TYPES[layout]], library
    frame = result["pandas"].sort_values("row", kind="stable", ignore_index=True)
    for other in (result["polars"].to_pandas(), result["duckdb"].df()):
        other = other.sort_values("row", kind="stable", ignore_index=True)
        assert [*other] == [*frame]
        for name in other:
            assert (other[name].isna() | (other[name] == frame[name])).all(), name
            assert np.array_equal(other[name].isna(), frame[name].isna()), name


def test_parts_have_one_schema_whatever_is_in_them(tmp_path, explainer, table):
    lines = table[0].to_csv(index=False).splitlines()
    lines[101:201] = ["lost"] * 100
    (tmp_path / "in.csv").write_text("\n".join(lines))
    source = Source.of(tmp_path / "in.csv")
    for layout in ("wide", "long"):
        explain(source, explainer, tmp_path / layout, layout=layout, rows_per_part=50)
        kinds = {pq.read_schema(path) for path in (tmp_path / layout).glob("*.parquet")}
        assert len(kinds) == 1
        assert read(tmp_path / layout)["row"].nunique() == 442


def test_a_key_that_is_not_unique_is_reported(source, explainer, tmp_path, table):
    twice = table[0].assign(id=table[0]["id"].where(table[0].index != 300, "patient 7"))
    twice.to_parquet(tmp_path / "twice.parquet", index=False)
    assert explain(source, explainer, tmp_path / "a").repeated == ""
    message = explain(Source.of(tmp_path / "twice.parquet"), explainer, tmp_path / "b").repeated
    assert message == "keys are not unique (1 repeated): id='patient 7' in rows 7 and 300"


def test_distinct_explanations_are_counted(source, explainer, tmp_path, whole):
    summary = explain(source, explainer, tmp_path / "out")
    values = whole[[name for name in whole if name.startswith("value_")]]
    assert summary.distinct == (len(values.drop_duplicates()), True)


def test_only_damaged_parts_are_computed_again(source, explainer, tmp_path, whole):
    out = tmp_path / "out"
    explain(source, explainer, out)
    os.truncate(out / "part-00002.parquet", 500)
    times = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    summary = explain(source, explainer, out)
    assert summary.resumed == 442 - 64
    again = {path.name for path in out.glob("*.parquet") if path.stat().st_mtime_ns != times[path.name]}
    assert again == {"part-00002.parquet"}
    same(read(out), whole)


def test_a_background_is_drawn_at_even_distances(source):
    result = decimated(source, ["id"], 50)["id"].to_pylist()
    assert result == [f"patient {i}" for i in range(0, 442, 8)]


def test_bad_input_is_refused(source, explainer, tmp_path, table):
    def refused(match, source=source, **options):
        with pytest.raises(InputError, match=match):
            explain(source, explainer, tmp_path / "out", **options)

    refused("no column 'name'", keys=["name"])
    refused("rows_per_part", rows_per_part=0)
    table[0].drop(columns="bmi").to_parquet(tmp_path / "less.parquet")
    refused("no column 'bmi'", Source.of(tmp_path / "less.parquet"))
    table[0].iloc[:0].to_parquet(tmp_path / "empty.parquet")
    refused("no rows", Source.of(tmp_path / "empty.parquet"))
    assert (
        explain(source, explainer, tmp_path / "out").rows == 442
    )  # nothing had been done: the folder is free
    refused("another run: input", Source.of(tmp_path / "empty.parquet"))
    for where in ("none.parquet", "*.xyz", "."):
        (tmp_path / "x.csv").write_text("a\n1\n")
        with pytest.raises(InputError, match=r"pass a \.parquet or \.csv file"):
            Source.of(Path(tmp_path / where))


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, source, explainer):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match="out is a file: pass a folder"):
        explain_files(source, explainer, tmp_path / "out", run={}, progress=False)


def test_a_log_has_whole_lines_with_the_time(monkeypatch, capsys):
    monkeypatch.setattr(_tables, "_LOG", 0.05)
    parts = [SimpleNamespace(number=number) for number in range(2)]
    with Heartbeat(2000, 500, show=True) as heartbeat:
        [*heartbeat.begun(parts)]
        heartbeat.add(SimpleNamespace(part=0, rows=500, errors=3))
        stderr, patience = "", iter(range(1000))
        while "1,000 of" not in stderr:
            assert next(patience, None) is not None, stderr
            sleep(0.01)
            stderr = capsys.readouterr().err
        heartbeat.add(SimpleNamespace(part=1, rows=1000, errors=0))
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ limes: "
    going = r"1,000 of 2,000 rows \(50%\), [\d,]+ rows/s, [\d,]+ s left"
    at_work = r"part 1 queued or running for \d+ s, 3 errors"
    assert re.fullmatch(f"{stamp}{going}, {at_work}", stderr.splitlines()[-1])
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(stamp + r"2,000 of 2,000 rows \(100%\), [\d,]+ rows/s, 3 errors", last)


def test_a_terminal_has_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Heartbeat(2000, 0, show=True) as heartbeat:
        heartbeat.add(SimpleNamespace(part=0, rows=2000, errors=3))
    stderr = capsys.readouterr().err
    assert "\r" in stderr
    assert "2.00k/2.00k" in stderr
    assert "limes: " not in stderr
