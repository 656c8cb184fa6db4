"""A folder of parts: each part is whole or absent, and belongs to one run."""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from internals import NOTHING, Folder, PartRecord, checksum, run_name, with_run, write_whole
from limes.exceptions import InputError

RUN = {"model": "abc", "options": {"bins": "quartile", "bandwidth": None}}


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path / "out")
    with folder.opened(RUN):
        for n in range(3):
            write_whole(folder.part(n), b"part %d" % n)
            folder.append(record(folder, n))
    return folder


def record(folder, n):
    return PartRecord(n, checksum(folder.part(n)), replace(NOTHING, rows=10, errors=n))


def opened(folder, run=RUN):
    with folder.opened(run):
        pass


def test_the_same_run_resumes(folder):
    opened(Folder(folder.path))
    assert Folder(folder.path).finished().keys() == {0, 1, 2}
    assert folder.finished()[2].errors == 2


def test_another_run_is_refused_and_the_difference_named(folder):
    with pytest.raises(InputError, match="options bins was 'quartile', is 'decile'"):
        opened(folder, {**RUN, "options": {"bins": "decile", "bandwidth": None}})
    with pytest.raises(InputError, match="model was 'abc', is 'abd'"):
        opened(folder, {**RUN, "model": "abd"})


def test_an_error_names_the_first_of_many_differences(folder):
    with pytest.raises(InputError, match=r"options 0 is new; .*; and 91 differences more"):
        opened(folder, {**RUN, "options": {**RUN["options"], **{str(i): "x" for i in range(101)}}})


@pytest.mark.parametrize("harm", ["truncate", "change", "delete"])
def test_a_changed_part_is_computed_again(folder, harm):
    path = folder.part(1)
    harms = {"truncate": lambda: os.truncate(path, 3), "change": lambda: path.write_bytes(b"part X")}
    harms.get(harm, path.unlink)()
    assert folder.finished().keys() == {0, 2}


def test_a_truncated_line_of_the_journal_is_ignored(folder):
    journal = folder.path / "_parts.jsonl"
    os.truncate(journal, journal.stat().st_size - 20)
    assert folder.finished().keys() == {0, 1}
    folder.append(record(folder, 2))
    assert folder.finished().keys() == {0, 1, 2}


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"not empty \('?thesis.tex"):
        opened(Folder(tmp_path))
    assert [one.name for one in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_unfinished_file_is_deleted(tmp_path, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "part", b"x")
    assert not [*tmp_path.iterdir()]
    with pytest.raises(InputError, match=r"No space left on device.*run the same command again"):
        opened(Folder(tmp_path / "out"))


def test_unfinished_files_of_a_killed_run_are_deleted(folder):
    (folder.path / ".unfinished-part-00003.parquet.17").write_bytes(b"PAR")
    opened(folder)
    assert not [*folder.path.glob(".*")]


def test_unfinished_files_of_killed_workers_go_with_the_run(folder):
    beside = folder.path / ".unfinished-part-00003.parquet.17"
    with folder.opened(RUN):
        beside.write_bytes(b"PAR")
    assert not beside.exists()


def part_of(run, rows=10, first=0):
    sink = pa.BufferOutputStream()
    pq.write_table(with_run(pa.table({"row": range(first, first + rows)}), run_name(run)), sink)
    return sink.getvalue().to_pybytes()


def test_parts_that_are_not_in_the_journal_are_deleted(folder):
    write_whole(folder.part(99_999), part_of(RUN))
    (folder.path / "_parts.jsonl").unlink()
    opened(folder)
    assert folder.files() == []


def test_parts_of_another_run_are_refused(folder):
    write_whole(folder.part(99_999), part_of({**RUN, "model": "abd"}))
    with pytest.raises(InputError, match=r"holds 'part-99999.parquet', which this run did not write"):
        opened(folder)
    folder.part(99_999).rename(folder.path / "other.parquet")
    with pytest.raises(InputError, match=r"holds 'other.parquet', which this run did not write"):
        opened(folder)


def test_a_folder_without_its_journal_belongs_to_its_run(folder):
    (folder.path / "_parts.jsonl").unlink()
    with pytest.raises(InputError, match="model was 'abc', is 'abd'"):
        opened(folder, {**RUN, "model": "abd"})
    assert len(folder.files()) == 3


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_a_run_that_cannot_be_read_is_refused(folder, content):
    (folder.path / "_run.json").write_text(content)
    with pytest.raises(InputError, match=r"_run\.json .*pass another folder, or delete this one"):
        opened(folder)


def test_a_task_of_an_earlier_run_writes_nothing(folder):
    folder.check_run(run_name(RUN))
    with pytest.raises(InputError, match="now belongs to another run"):
        folder.check_run(run_name({**RUN, "model": "abd"}))
