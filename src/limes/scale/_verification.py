"""Verification of a folder of explanations against its journal, its run and its input.

A folder is right if each part is the file whose checksum the journal states, names the folder's run, and has
the rows that follow those of the part before it; and if no other file can be taken for a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from limes.exceptions import InputError
from limes.scale._parts import Folder, PartRecord, run_name, run_of
from limes.scale._sources import Source
from limes.scale._stores import Place, absolute, parsed, place_of


@dataclass(frozen=True)
class FolderCheck:
    """Counts of the parts that the journal lists, and what is wrong with the folder."""

    parts: int
    rows: int
    errors: int
    problems: tuple[str, ...]


def verify(out: str | Place, source: Source | None = None) -> FolderCheck:
    """Compare a folder with its journal, its run and, if it is passed, the table that was explained.

    Every byte of the folder, and of the table, is read.

    Raises
    ------
    InputError
        There is no such folder, or the file that states its run is missing or damaged.
    """
    folder = Folder(absolute(place_of(out)))
    if not folder.path.is_dir():
        raise InputError(f"{out}: no such folder")
    run, journal = folder.run(), folder.journal()
    problems = [*_folder_problems(folder, journal)]
    for number, actual in folder.checksums(sorted(journal)).items():
        problems += _part_problems(folder, journal, number, actual, run_name(run))
    if source is not None:
        problems += _input_problems(run, source, journal)
    records = journal.values()
    rows, errors = sum(record.rows for record in records), sum(record.errors for record in records)
    return FolderCheck(len(journal), rows, errors, tuple(problems))


def _folder_problems(folder: Folder, journal: Mapping[int, PartRecord]) -> Iterator[str]:
    listed_files = {folder.part(number) for number in journal}
    for path in folder.files():
        if path not in listed_files:
            yield f"{path.name} is in the folder, but not in its journal"
    end = folder.end()
    if end is None:
        yield "the run is not finished: run the same command again"
        return
    missing = sorted({*range(end["parts"])} - journal.keys())
    yield from (f"part {number} is not in the journal" for number in missing)
    if not missing and (rows := sum(record.rows for record in journal.values())) != end["rows"]:
        yield f"the journal counts {rows:,} rows, and the run had {end['rows']:,}"


def _part_problems(
    folder: Folder, journal: Mapping[int, PartRecord], number: int, actual: str | None, name: str
) -> Iterator[str]:
    path, record = folder.part(number), journal[number]
    if actual != record.sha256:
        yield (
            f"{path.name} is missing" if actual is None else f"{path.name} was changed: its checksum differs"
        )
        return
    if (other := run_of(path)) != name:
        yield f"{path.name} is of run {other}, and the folder of run {name}"
    lines = parsed(path, lambda file: pq.read_table(file, columns=["row"]))
    rows = np.unique(lines["row"].to_numpy())
    before = [journal[n].rows for n in range(number) if n in journal]
    if len(before) == number and not np.array_equal(rows, np.arange(record.rows) + sum(before)):
        yield f"{path.name} does not have the {record.rows:,} rows from row {sum(before):,}"


def _input_problems(
    run: Mapping[str, Any], source: Source, journal: Mapping[int, PartRecord]
) -> Iterator[str]:
    stated, actual = run.get("input", {}), source.fingerprint
    for name in sorted(stated.keys() | actual.keys()):
        was, now = stated.get(name, "missing"), actual.get(name, "missing")
        if was != now:
            yield f"file {name} of the input was {was}, is {now}"
    if stated == actual and not source.is_csv:
        rows = sum(record.rows for record in journal.values())
        if rows != source.likely_rows:  # of Parquet, exact: the footers state it
            yield f"the journal counts {rows:,} rows, and the input has {source.likely_rows:,}"
