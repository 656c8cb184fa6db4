"""Nights: each run explains the files that no earlier one has explained, and numbers their rows on."""

from __future__ import annotations

import gzip
import json
import shutil

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from typer.testing import CliRunner

from internals import Source, app, explain_files, place_of, verify
from jobs import read, same
from limes.exceptions import InputError
from stores import s3

OPTIONS = {"run": {}, "keys": ["id"], "rows_per_part": 64, "progress": False}


def explain(where, explainer, out, **options):
    return explain_files(Source.of(where), explainer, out, **{**OPTIONS, **options})


@pytest.fixture
def days(table):
    X = table[0]
    return [X.iloc[:150], X.iloc[150:300], X.iloc[300:]]


def write(day, path, kind="parquet"):
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        day.to_parquet(path, index=False, row_group_size=40)
    else:
        with gzip.open(path, "wt") as file:
            day.to_csv(file, index=False)


@pytest.mark.parametrize("kind", ["parquet", "csv.gz"])
def test_nights_have_the_bits_of_one_run(tmp_path, explainer, days, kind):
    loans, nights = tmp_path / "loans", []
    for night, day in enumerate(days):
        write(day, loans / f"day={night}" / f"a.{kind}", kind)  # all of one name
        nights.append(tmp_path / f"night-{night}")
        result = explain(loans, explainer, nights[-1], since=nights[-2] if night else None)
        assert (result.rows, result.errors, result.resumed) == (len(day), 0, 0)
        check = verify(nights[-1], Source.of(loans))
        assert (check.problems, check.rows) == ((), len(day))
    explain(loans, explainer, tmp_path / "whole")
    both = pd.concat(map(read, nights), ignore_index=True)
    assert both["row"].tolist() == list(range(442))
    same(both, read(tmp_path / "whole"))
    # the last folder alone states what all nights explained, so the others may be gone
    shutil.rmtree(nights[0])
    shutil.rmtree(nights[1])
    write(days[0].head(7), loans / "day=3" / f"a.{kind}", kind)
    assert explain(loans, explainer, tmp_path / "night-3", since=nights[2]).rows == 7
    assert read(tmp_path / "night-3")["row"].tolist() == list(range(442, 449))
    assert verify(nights[2], Source.of(loans)).problems == ()  # files that came later are no problem


def test_a_new_file_may_sort_before_the_others(tmp_path, explainer, days):
    loans = tmp_path / "loans"
    write(days[1], loans / "b.parquet")
    explain(loans, explainer, tmp_path / "first")
    write(days[0].rename(columns=str).astype({"age": "float32"}), loans / "a.parquet")
    explain(loans, explainer, tmp_path / "second", since=tmp_path / "first")
    result = read(tmp_path / "second")
    assert result["id"].tolist() == days[0]["id"].tolist()
    assert result["row"].tolist() == list(range(150, 300))


def test_a_night_without_new_files_is_finished_and_can_be_continued(tmp_path, explainer, days):
    loans = tmp_path / "loans"
    write(days[0], loans / "0.parquet")
    explain(loans, explainer, tmp_path / "0")
    for _ in range(2):  # the same command again, too
        result = explain(loans, explainer, tmp_path / "1", since=tmp_path / "0", engine="dask")
        assert (result.rows, result.errors) == (0, 0)
        assert str(result.increment) == "no file new since 150 rows of 1 file"
    nothing = pd.read_parquet(tmp_path / "1")
    assert nothing.columns.tolist() == pd.read_parquet(tmp_path / "0").columns.tolist()
    assert len(nothing) == 0
    assert verify(tmp_path / "1", Source.of(loans)).problems == ()
    write(days[1], loans / "1.parquet")
    assert explain(loans, explainer, tmp_path / "2", since=tmp_path / "1").rows == 150
    assert read(tmp_path / "2")["row"].tolist() == list(range(150, 300))


def test_a_first_run_of_no_rows_is_still_refused(tmp_path, explainer, days):
    write(days[0].iloc[:0], tmp_path / "in.parquet")
    with pytest.raises(InputError, match="the table has no rows"):
        explain(tmp_path / "in.parquet", explainer, tmp_path / "out")


def change(loans):
    table = pq.read_table(loans / "1.parquet")
    pq.write_table(table.slice(1), loans / "1.parquet")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (change, r"'1\.parquet' changed since .*night-0.*start a new run without --since"),
        (lambda loans: (loans / "0.parquet").unlink(), r"the table no longer has '0\.parquet' since"),
        (lambda loans: (loans / "0.parquet").rename(loans / "00.parquet"), r"no longer has '0\.parquet'"),
    ],
)
def test_a_file_that_changed_or_vanished_is_refused_by_name(tmp_path, explainer, days, harm, message):
    loans = tmp_path / "loans"
    for i, day in enumerate(days[:2]):
        write(day, loans / f"{i}.parquet")
    explain(loans, explainer, tmp_path / "night-0")
    write(days[2], loans / "2.parquet")
    harm(loans)
    with pytest.raises(InputError, match=message):
        explain(loans, explainer, tmp_path / "night-1", since=tmp_path / "night-0")
    assert not (tmp_path / "night-1").exists()


def test_a_run_continues_only_finished_ones(tmp_path, explainer, days):
    loans, first = tmp_path / "loans", tmp_path / "first"
    write(days[0], loans / "0.parquet")
    with pytest.raises(InputError, match="first: no such folder"):
        explain(loans, explainer, tmp_path / "out", since=first)
    explain(loans, explainer, first)
    with pytest.raises(InputError, match="pass another one"):
        explain(loans, explainer, first, since=first)
    with pytest.raises(InputError, match="pass another one"):
        explain(loans, explainer, first / "next", since=first)
    (first / "part-00001.parquet").rename(tmp_path / "aside")
    with pytest.raises(InputError, match=r"part-00001.parquet is missing\. Run its command again"):
        explain(loans, explainer, tmp_path / "out", since=first)
    (first / "part-00001.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"part-00001.parquet was changed: its checksum differs"):
        explain(loans, explainer, tmp_path / "out", since=first)
    (tmp_path / "aside").rename(first / "part-00001.parquet")
    (first / "_finished.json").unlink()
    with pytest.raises(InputError, match="is not finished"):
        explain(loans, explainer, tmp_path / "out", since=first)


def test_an_interrupted_night_resumes_without_files_that_came_later(tmp_path, explainer, days):
    loans, out = tmp_path / "loans", tmp_path / "1"
    write(days[0], loans / "0.parquet")
    explain(loans, explainer, tmp_path / "0")
    write(days[1], loans / "1.parquet")
    explain(loans, explainer, out, since=tmp_path / "0")
    whole = read(out)
    (out / "part-00001.parquet").unlink()  # as if the night had been stopped
    (out / "_finished.json").unlink()
    write(days[2], loans / "05.parquet")
    again = explain(loans, explainer, out, since=tmp_path / "0")
    assert (again.rows, again.resumed, again.increment.later) == (150, 86, 1)
    assert "1 file came later, for the next run" in str(again.increment)
    same(read(out), whole)
    assert explain(loans, explainer, tmp_path / "2", since=out).increment.new == ("05.parquet",)
    for since in (tmp_path / "2", None):
        with pytest.raises(InputError, match=r"another one for the output|holds explanations of another run"):
            explain(loans, explainer, out, since=since)


def test_another_model_is_allowed_and_stated(tmp_path, explainer, days):
    loans = tmp_path / "loans"
    write(days[0], loans / "0.parquet")
    explain(loans, explainer, tmp_path / "0", run={"model": "a"})
    write(days[1], loans / "1.parquet")
    options = {"layout": "long", "rows_per_part": 50}
    result = explain(loans, explainer, tmp_path / "1", run={"model": "b"}, since=tmp_path / "0", **options)
    assert result.differences == ("model was 'a', is 'b'", "output layout was 'wide', is 'long'")


def test_versions_of_delta_tables_that_only_add_files_are_continued(tmp_path, explainer, days):
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    path, nights = str(tmp_path / "t"), []
    for night, day in enumerate(days):
        rows = pa.Table.from_pandas(day, preserve_index=False)
        deltalake.write_deltalake(path, rows, mode="append")
        nights.append(tmp_path / f"night-{night}")
        explain(path, explainer, nights[-1], since=nights[-2] if night else None)
        assert read(nights[-1])["id"].tolist() == day["id"].tolist()
    assert pd.concat(map(read, nights))["row"].tolist() == list(range(442))
    deltalake.DeltaTable(path).optimize.compact()
    with pytest.raises(InputError, match=r"version 3 of the Delta table no longer has 'part-.*compaction"):
        explain(path, explainer, tmp_path / "compacted", since=nights[-1])
    deltalake.DeltaTable(path).restore(2)
    deltalake.DeltaTable(path).delete("id = 'patient 3'")
    with pytest.raises(InputError, match=r"version 5 of the Delta table no longer has 'part-.*deletes"):
        explain(path, explainer, tmp_path / "deleted", since=nights[-1])


def test_snapshots_of_iceberg_tables_that_only_add_files_are_continued(tmp_path, explainer, days):
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    memory = pytest.importorskip("pyiceberg.catalog.memory", reason="pyiceberg is not installed")
    catalog = memory.InMemoryCatalog("c", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    rows = [pa.Table.from_pandas(day, preserve_index=False) for day in days]
    table, nights = catalog.create_table("n.t", schema=rows[0].schema), []
    for night, day in enumerate(days):
        table.append(rows[night])
        nights.append(tmp_path / f"night-{night}")
        explain(table.metadata_location, explainer, nights[-1], since=nights[-2] if night else None)
        assert read(nights[-1])["id"].tolist() == day["id"].tolist()
    table.delete("id = 'patient 3'")
    with pytest.raises(InputError, match=r"snapshot \d+ of the Iceberg table no longer has"):
        explain(table.metadata_location, explainer, tmp_path / "deleted", since=nights[-1])


def test_a_night_in_a_store_continues_one_in_a_store(explainer, days):
    pytest.importorskip("moto.server", reason="moto, a server of S3, is not installed")
    with s3() as proxy:
        options = f"endpoint_override=http://127.0.0.1:{proxy.port}&region=us-east-1"

        def url(key):
            return f"s3://tables/nights/{key}?{options}"

        for night, day in enumerate(days[:2]):
            place = place_of(url(f"loans/{night}.parquet"))
            with place.filesystem.open_output_stream(place.key, compression=None) as stream:
                pq.write_table(pa.Table.from_pandas(day, preserve_index=False), stream)
            since = url("night-0") if night else None
            assert explain(url("loans"), explainer, url(f"night-{night}"), since=since).rows == 150
        assert verify(url("night-1"), Source.of(url("loans"))).problems == ()
        place = place_of(url("night-1"))
        rows = pq.read_table(place.key, filesystem=place.filesystem)
    assert sorted(rows["row"].to_pylist()) == list(range(150, 300))


# -- the command ---------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    joblib.dump(RandomForestRegressor(4, random_state=0).fit(X.iloc[:, :4], y), tmp_path / "model.joblib")
    monkeypatch.chdir(tmp_path)
    X.iloc[:200, :4].to_parquet("a.parquet")
    (tmp_path / "loans").mkdir()
    shutil.copy("a.parquet", "loans/a.parquet")
    return X.iloc[:, :4]


def run(*options):
    arguments = ["explain-table", "model.joblib", "loans", *options, "--trust-pickle"]
    return CliRunner().invoke(app, arguments)


def test_the_command_continues_a_night_and_states_what_is_new(files):
    assert run("monday").exit_code == 0
    files.iloc[200:].to_parquet("loans/b.parquet")
    finished = run("tuesday", "--since", "monday", "--summary", "night.json", "--seed", "3")
    assert finished.exit_code == 0, finished.output
    assert "1 file new since 200 rows of 1 file" in finished.output
    assert "unlike the earlier run: options rng was 0, is 3" in finished.output
    with open("night.json") as file:
        since = json.load(file)["since"]
    assert since.pop("run")
    assert since == {
        "first_row": 200,
        "files": 1,
        "new_files": 1,
        "later_files": 0,
        "differences": ["options rng was 0, is 3"],
    }
    # bins are those of the first night's rows, as though they had been passed
    another = "elsewhere/by-background"
    other = run(another, "--since", "monday", "--background", "a.parquet", "--seed", "3")
    assert other.exit_code == 0, other.output
    same(pd.read_parquet("tuesday"), pd.read_parquet(another))
    nothing = run("wednesday", "--since", "tuesday", "--seed", "3", "--summary", "night.json")
    assert nothing.exit_code == 0, nothing.output
    assert "no file new since 442 rows of 2 files" in nothing.output
    with open("night.json") as file:
        summary = json.load(file)
    assert (summary["rows"], summary["outputs"]) == (0, [])
    assert CliRunner().invoke(app, ["verify", "wednesday", "--input", "loans"]).exit_code == 0
    shown = CliRunner().invoke(app, ["summary", "wednesday"])
    assert shown.exit_code == 0, shown.output
    assert "no rows with an explanation" in shown.output
    explained = pd.read_parquet("monday"), pd.read_parquet("tuesday")
    assert np.concatenate([night["row"] for night in explained]).tolist() == list(range(442))


def test_a_run_is_continued_once_beside_it(tmp_path, explainer, days):
    """A second continuation of one night would give its rows the numbers of the first one's."""
    loans = tmp_path / "loans"
    write(days[0], loans / "a.parquet")
    explain(loans, explainer, tmp_path / "first")
    write(days[1], loans / "b.parquet")
    explain(loans, explainer, tmp_path / "second", since=tmp_path / "first")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "_run.json").write_text("{", encoding="utf-8")  # of something else
    write(days[2], loans / "c.parquet")
    with pytest.raises(InputError, match=r"second continued .*first already.*pass it as the earlier run"):
        explain(loans, explainer, tmp_path / "third", since=tmp_path / "first")
    assert not (tmp_path / "third").exists() or not [*(tmp_path / "third").iterdir()]
    assert explain(loans, explainer, tmp_path / "third", since=tmp_path / "second").rows == len(days[2])
    # the same command again resumes its own folder
    assert explain(loans, explainer, tmp_path / "third", since=tmp_path / "second").rows == len(days[2])
