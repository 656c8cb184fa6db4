"""What diagnostics say: a finding has a number, a sentence that says what it means, and an advice.

A *measure* is a number that is always told; a *finding* is only there where something is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Severity = Literal["note", "warning"]
SEVERITIES: tuple[Severity, ...] = ("warning", "note")
# A sampled number is believed where it is so many standard errors beyond a threshold.
SURE = 2.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a reader of the explanation should know.

    Attributes
    ----------
    kind
        Name of the diagnostic.
    severity
        "warning": the explanation misleads whoever does not know it. "note": good to know.
    features
        Names of the features that it is about; empty where it is about the whole explanation.
    number, error, unit
        What was measured, its standard error (0 where exact), and what it is a number of.
    sentence, advice
        What it means, and what to do.
    """

    kind: str
    severity: Severity
    features: tuple[str, ...]
    number: float
    error: float
    unit: str
    sentence: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number that is told of every row: its name, its error (0 where exact), and how to read it."""

    name: str
    value: float
    error: float
    remark: str


class Reading(Protocol):
    """What one diagnostic has seen at one row."""

    def measures(self) -> Iterable[Measure]:
        """Numbers that are always told."""
        ...

    def findings(self) -> Iterable[Finding]:
        """What is wrong, if anything."""
        ...


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Warnings before notes, otherwise in the order of the diagnostics."""
    return tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity)))


def listed(names: Sequence[str], most: int = 3) -> str:
    """Some names as a text: "a, b, c and 4 more"."""
    head = ", ".join(names[:most])
    return head if len(names) <= most else f"{head} and {len(names) - most} more"
