"""Results of diagnostics: a finding has a number, a sentence with its meaning, and an advice.

A *measure* is a number that is always reported; a *finding* is reported only where something is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Severity = Literal["note", "warning"]
SEVERITIES: tuple[Severity, ...] = ("warning", "note")
# Standard errors by which a sampled number must exceed a threshold
SURE = 2.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a reader of the explanation should consider.

    Attributes
    ----------
    kind
        Name of the diagnostic.
    severity
        "warning": without it the explanation misleads. "note": worth knowing.
    features
        Names of the features concerned; empty if it is about the whole explanation.
    number, error, unit
        The measurement, its standard error (0 where exact), and its quantity in words.
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
    """A number that is reported for every row: its name, its error (0 where exact), and how to read it."""

    name: str
    value: float
    error: float
    remark: str


class Diagnostic(Protocol):
    """The result of one diagnostic at one row."""

    def measures(self) -> Iterable[Measure]:
        """Numbers that are always reported."""
        ...

    def findings(self) -> Iterable[Finding]:
        """What is wrong with the explanation, if anything."""
        ...


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort warnings before notes, otherwise in the order of the diagnostics."""
    return tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity)))


def enumerate_names(names: Sequence[str], most: int = 3) -> str:
    """Return some names as a text: "a, b, c and 4 more"."""
    head = ", ".join(names[:most])
    return head if len(names) <= most else f"{head} and {len(names) - most} more"
