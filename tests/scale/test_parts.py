"""A folder of parts: whole or not there, and of one run only."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from limes.exceptions import InputError
from limes.scale.parts import NOTHING, Folder, PartRecord, checksum, write_whole

RUN = {"model": "abc", "options": {"bins": "quartile", "bandwidth": None}}


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path / "out")
    with folder.opened(RUN):
        for n in range(3):
            write_whole(folder.part(n), b"part %d" % n)
            folder.append(done(folder, n))
    return folder


def done(folder, n):
    return PartRecord(n, checksum(folder.part(n)), replace(NOTHING, rows=10, errors=n))


def opened(folder, run=RUN):
    with folder.opened(run):
        pass


def test_the_same_run_goes_on(folder):
    opened(Folder(folder.path))
    assert Folder(folder.path).finished().keys() == {0, 1, 2}
    assert folder.finished()[2].errors == 2


def test_another_run_is_refused_and_the_difference_named(folder):
    with pytest.raises(InputError, match="options bins was 'quartile', is 'decile'"):
        opened(folder, {**RUN, "options": {"bins": "decile", "bandwidth": None}})
    with pytest.raises(InputError, match="model was 'abc', is 'abd'"):
        opened(folder, {**RUN, "model": "abd"})


def test_of_many_differences_some_are_named(folder):
    with pytest.raises(InputError, match=r"options 0 was None, is 'x'; .*; and 91 differences more"):
        opened(folder, {**RUN, "options": {**RUN["options"], **{str(i): "x" for i in range(101)}}})


@pytest.mark.parametrize("harm", ["truncate", "change", "delete"])
def test_a_part_that_is_not_what_was_written_is_to_be_done_again(folder, harm):
    path = folder.part(1)
    harms = {"truncate": lambda: os.truncate(path, 3), "change": lambda: path.write_bytes(b"part X")}
    harms.get(harm, path.unlink)()
    assert folder.finished().keys() == {0, 2}


def test_a_line_that_was_cut_short_tells_of_no_part(folder):
    journal = folder.path / "_parts.jsonl"
    os.truncate(journal, journal.stat().st_size - 20)
    assert folder.finished().keys() == {0, 1}
    folder.append(done(folder, 2))
    assert folder.finished().keys() == {0, 1, 2}


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"not empty \('?thesis.tex"):
        opened(Folder(tmp_path))
    assert [one.name for one in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "part", b"x")
    assert not [*tmp_path.iterdir()]
    with pytest.raises(InputError, match=r"No space left on device.*run the same command again"):
        opened(Folder(tmp_path / "out"))


def test_what_a_killed_run_left_half_written_is_cleared(folder):
    (folder.path / ".unfinished-part-00003.parquet.17").write_bytes(b"PAR")
    opened(folder)
    assert not [*folder.path.glob(".*")]
