"""`limes verify`: the contents of a folder against its journal and input."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import limes
from internals import Folder, Increment, Source, app, explain_files, verify
from limes.exceptions import InputError

OPTIONS = {"keys": ["id"], "rows_per_part": 64, "progress": False}


@pytest.fixture
def source(tmp_path, table):
    table[0].to_parquet(tmp_path / "in.parquet", row_group_size=100, index=False)
    return Source.of(tmp_path / "in.parquet")


@pytest.fixture(scope="module")
def written(table, explainer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    table[0].to_parquet(folder / "in.parquet", row_group_size=100, index=False)
    source = Source.of(folder / "in.parquet")
    explain_files(source, explainer, folder / "out", run={"model": "a"}, **OPTIONS)
    return folder / "out"


@pytest.fixture
def out(source, written, tmp_path):
    return shutil.copytree(written, tmp_path / "out")


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


def link(out):
    """A part that is a link to itself elsewhere: its content is right until somebody changes it there."""
    (out / "part-00002.parquet").rename(out.parent / "elsewhere.parquet")
    (out / "part-00002.parquet").symlink_to(out.parent / "elsewhere.parquet")
    with (out.parent / "elsewhere.parquet").open("ab") as file:
        file.write(b"more")


def flip(out, at=0.5):
    content = bytearray((out / "part-00004.parquet").read_bytes())
    content[int(at * len(content))] ^= 8
    (out / "part-00004.parquet").write_bytes(content)


# How folders of a killed, meddled or damaged run look, to each of its readers
UNFINISHED = {
    **HARMS,
    "part-00004.parquet was changed: its": flip,
    "part-00002.parquet was changed: its": link,
    "the run is not finished, 7 parts so far": lambda out: (out / "_finished.json").write_text("[]"),
    "the run is not finished": lambda out: (out / "_finished.json").write_text('{"parts": 7}'),
    "part 7 is not in the journal": lambda out: (out / "_finished.json").write_text(
        '{"parts": 8, "rows": 500}'
    ),
    "counts 442 rows, and the run had 500": lambda out: (out / "_finished.json").write_text(
        '{"parts": 7, "rows": 500}'
    ),
    "'loans.parquet|loans.parquet is in the folder": lambda out: shutil.copy(
        out / "part-00002.parquet", out / "loans.parquet"
    ),
    "no folder with parts of explanations": lambda out: (out / "_run.json").unlink(),
    "describes no run": lambda out: (out / "_run.json").write_text("[]"),
    "_run.json cannot be read": lambda out: (out / "_run.json").write_bytes(b"\xff"),
    "no such folder": shutil.rmtree,
}


def readers(out, calm):
    """Everything that reads the folder of a finished run."""
    return {
        "summarize": lambda: limes.scale.summarize(out),
        "summarize a path in text": lambda: limes.scale.summarize(str(out)),
        "compare with it": lambda: limes.scale.compare_runs(out, calm),
        "compare it": lambda: limes.scale.compare_runs(calm, out),
        "since": lambda: Increment.of(Source.of(out.parent / "in.parquet"), out, out.parent / "next"),
    }


@pytest.mark.parametrize("problem", UNFINISHED)
def test_no_reader_takes_a_folder_that_is_not_whole(out, problem, tmp_path):
    shutil.copytree(out, tmp_path / "calm")
    UNFINISHED[problem](out)
    for read in readers(out, tmp_path / "calm").values():
        with pytest.raises(InputError, match=problem):
            read()
    for command in (
        ["summary", str(out)],
        ["compare", str(out), str(tmp_path / "calm")],
        ["verify", str(out)],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 1, result.output
        assert "means of" not in result.output


def test_all_readers_take_a_folder_that_is_whole(out, tmp_path):
    shutil.copytree(out, tmp_path / "calm")
    for read in readers(out, tmp_path / "calm").values():
        read()
    assert CliRunner().invoke(app, ["summary", str(out)]).exit_code == 0


def test_no_single_bit_of_a_page_changes_a_number_without_a_word(out):
    """Any reader of Parquet may verify the checksums of pages: here pyarrow, on its own."""
    path = out / "part-00001.parquet"
    content, whole, footer = path.read_bytes(), pq.read_table(path).to_pandas(), pq.read_metadata(path)
    columns = [footer.row_group(0).column(j) for j in range(footer.num_columns)]
    rng, noticed = np.random.default_rng(0), 0
    for column in columns * 3:
        start = column.dictionary_page_offset or column.data_page_offset
        at = int(rng.integers(start, start + column.total_compressed_size))
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        try:
            table = pq.read_table(pa.BufferReader(bytes(changed)), page_checksum_verification=True)
        except (OSError, pa.ArrowException):
            noticed += 1
        else:
            pd.testing.assert_frame_equal(table.to_pandas(), whole, check_exact=True)
    assert noticed > len(columns)


def test_a_part_that_is_damaged_after_the_check_is_named(out):
    with pq.ParquetFile(out / "part-00004.parquet") as file:
        start = file.metadata.row_group(0).column(3).data_page_offset
        end = start + file.metadata.row_group(0).column(3).total_compressed_size
    content = bytearray((out / "part-00004.parquet").read_bytes())
    content[end - 2] ^= 1
    (out / "part-00004.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"part-00004.parquet could not be read .*damaged"):
        [*Folder(out).tables()]


@pytest.mark.parametrize("name", ["_keys", "_parts.jsonl", "_lock"])
def test_a_link_in_place_of_what_is_written_in_its_place_is_refused(source, explainer, tmp_path, out, name):
    victim = tmp_path / "victim"
    if name == "_keys":
        shutil.rmtree(out / name)
        victim.mkdir()
    else:
        (out / name).unlink(missing_ok=True)
        victim.write_text("")
    (out / name).symlink_to(victim)
    (out / "part-00003.parquet").unlink()
    with pytest.raises((InputError, OSError), match="link"):
        explain_files(source, explainer, out, run={"model": "a"}, **OPTIONS)
    assert not [*victim.iterdir()] if victim.is_dir() else victim.read_text() == ""


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
