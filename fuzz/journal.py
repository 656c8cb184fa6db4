"""Finished seeds, one line of JSON each: a stopped run resumes after the last one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Entry:
    """One seed.

    Attributes
    ----------
    explainers
        How many came to each kind of verdict.
    triples
        (model, options, row) that were compared.
    notes
        Reasons of refusals, rejections and skips, and how many there were of each.
    faults
        kind, detail and script of each fault that was found.
    seconds
        Of the processor.
    """

    family: str
    seed: int
    reader: str = ""
    explainers: dict[str, int] = field(default_factory=dict)
    triples: int = 0
    notes: dict[str, int] = field(default_factory=dict)
    faults: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0


class Journal:
    """A file of entries that only grows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> Iterator[Entry]:
        """All that was written; a last line that was cut short is left out."""
        if not self._path.exists():
            return
        for line in self._path.read_text().splitlines():
            try:
                yield Entry(**json.loads(line))
            except json.JSONDecodeError:
                continue

    def add(self, entry: Entry) -> None:
        """Write one entry and flush it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(entry), default=_plain) + "\n")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
