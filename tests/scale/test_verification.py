"""`limes verify`: the contents of a folder against its journal and input."""

from __future__ import annotations

import json
import os
import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

import limes
from internals import Source, explain_files, verify
from limes.exceptions import InputError

OPTIONS = {"keys": ["id"], "rows_per_part": 64, "progress": False}


@pytest.fixture
def source(tmp_path, table):
    table[0].to_parquet(tmp_path / "in.parquet", row_group_size=100, index=False)
    return Source.of(tmp_path / "in.parquet")


@pytest.fixture
def out(source, explainer, tmp_path):
    explain_files(source, explainer, tmp_path / "out", run={"model": "a"}, **OPTIONS)
    return tmp_path / "out"


def test_a_folder_as_it_was_written_has_no_problem(out, source):
    result = verify(out, source)
    assert result.problems == ()
    assert (result.parts, result.rows, result.errors) == (7, 442, 0)


def lose_line(out):
    lines = (out / "_parts.jsonl").read_text().splitlines()
    (out / "_parts.jsonl").write_text("\n".join(line for line in lines if '"part": 3,' not in line))


def swap(out):
    """Exchange two parts, and their checksums."""
    text = (out / "_parts.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines() if line]
    lines[1]["sha256"], lines[2]["sha256"] = lines[2]["sha256"], lines[1]["sha256"]
    (out / "_parts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    paths = [out / f"part-0000{n}.parquet" for n in (1, 2)]
    paths[0].rename(out / "aside")
    paths[1].rename(paths[0])
    (out / "aside").rename(paths[1])


HARMS = {
    "part-00002.parquet is missing": lambda out: (out / "part-00002.parquet").unlink(),
    "part-00002.parquet was changed": lambda out: os.truncate(out / "part-00002.parquet", 500),
    "part-00009.parquet is in the folder, but not": lambda out: shutil.copy(
        out / "part-00002.parquet", out / "part-00009.parquet"
    ),
    "part 3 is not in the journal": lose_line,
    "the run is not finished": lambda out: (out / "_finished.json").unlink(),
    "does not have the 64 rows from row 64": swap,
    "is of run": lambda out: (out / "_run.json").write_text('{"model": "b"}'),
}


@pytest.mark.parametrize("problem", HARMS)
def test_damage_is_found(out, problem):
    HARMS[problem](out)
    assert any(problem in result for result in verify(out).problems), verify(out).problems


def test_another_input_is_found(out, tmp_path, table):
    table[0].iloc[::-1].to_parquet(tmp_path / "in.parquet", index=False)
    [problem] = verify(out, Source.of(tmp_path / "in.parquet")).problems
    assert "file in.parquet of the input was" in problem


def test_a_folder_without_explanations_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        verify(tmp_path / "none")
    with pytest.raises(InputError, match="cannot be read"):
        verify(tmp_path)


def test_no_row_is_repeated_after_a_lost_journal(source, explainer, tmp_path, out):
    before = pd.read_parquet(out)
    (out / "_parts.jsonl").unlink()
    with pytest.raises(InputError, match="rows_per_part was 64, is 200"):
        explain_files(source, explainer, out, run={"model": "a"}, **{**OPTIONS, "rows_per_part": 200})
    explain_files(source, explainer, out, run={"model": "a"}, **OPTIONS)
    assert verify(out, source).problems == ()
    pd.testing.assert_frame_equal(pd.read_parquet(out), before, check_exact=True)


def test_parts_of_another_model_are_refused(source, explainer, table, tmp_path, out):
    X = table[0].drop(columns="id")
    other = limes.TabularExplainer(lambda rows: rows["bmi"], X, max_calls=64, control="none")
    (out / "_parts.jsonl").unlink()
    with pytest.raises(InputError, match="model was 'a', is 'b'"):
        explain_files(source, other, out, run={"model": "b"}, **OPTIONS)


def test_a_part_that_appears_during_the_run_is_reported(source, explainer, tmp_path):
    out = tmp_path / "new"

    class Late(Source):
        def parts(self, rows, columns):
            yield from super().parts(rows, columns)
            shutil.copy(out / "part-00000.parquet", out / "part-00077.parquet")

    with pytest.raises(InputError, match=r"'part-00077.parquet' appeared, disappeared or was exchanged"):
        explain_files(Late(source.files), explainer, out, run={}, **OPTIONS)
    explain_files(Source(source.files), explainer, out, run={}, **OPTIONS)
    assert verify(out).problems == ()


def test_each_part_states_its_run(out):
    names = {pq.read_schema(path).metadata[b"limes.run"] for path in out.glob("part-*.parquet")}
    assert len(names) == 1
