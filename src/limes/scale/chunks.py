"""Rows of a table that were read, or that should be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from limes._checks import SHOWN, did_you_mean, listed
from limes.exceptions import InputError


@dataclass(frozen=True)
class Unreadable:
    """Rows that should be there, and why they cannot be read."""

    num_rows: int
    reason: str

    def slice(self, start: int, length: int) -> Unreadable:  # noqa: ARG002 - all rows are alike
        """Some of the rows."""
        return replace(self, num_rows=length)


Chunk: TypeAlias = Any  # pa.Table | Unreadable; pyarrow has no types


def check_names(where: str | Path, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a table that lacks a column that is wanted: says which are like it."""
    lost = [name for name in wanted if name not in found]
    if lost:
        names = ", ".join(repr(name) + did_you_mean(name, found) for name in lost[:SHOWN])
        raise InputError(f"{where} has no column {names}; it has {listed(found)}")


def in_one_line(error: Exception) -> str:
    """What an error says, as part of a sentence."""
    return " ".join(str(error).split())
