"""Lines of a run as they are measured, so that a full run can be stopped and go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks import readme

PART = readme.RESULTS / "coverage.part.json"


class Store:
    """Lines by job; kept in a file if this is a full run, whose ``jobs`` are then given."""

    def __init__(self, jobs: Sequence[tuple[Any, ...]] | None) -> None:
        self._file = None if jobs is None else PART
        self._lines: dict[tuple[Any, ...], dict] = {}
        if self._file is not None and self._file.exists():
            self._lines = {tuple(job): line for job, line in json.loads(self._file.read_text())}

    def __contains__(self, job: tuple[Any, ...]) -> bool:
        return job in self._lines

    def __getitem__(self, job: tuple[Any, ...]) -> dict:
        return self._lines[job]

    def add(self, job: tuple[Any, ...], line: dict) -> None:
        """Keep a line."""
        self._lines[job] = line
        if self._file is not None:
            self._file.write_text(json.dumps(list(self._lines.items())))
