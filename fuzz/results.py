"""From a journal to ``results/fuzz.json`` and the table in ``benchmarks/pages/fuzz.md``."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.readme import replace

from fuzz.journal import Entry, Journal
from fuzz.verdict import AGREES, FAULTS, REFUSED, SAMPLED

HOME = Path(__file__).parent
_PACKAGES = (
    "limes",
    "numpy",
    "scikit-learn",
    "xgboost-cpu",
    "lightgbm",
    "catboost",
    "interpret-core",
    "statsmodels",
)
_COLUMNS = ("cases", "explainers", "triples", "mismatches", "refusals", "sampled")


def write(journal: Path) -> None:
    """Write both; families that the journal does not have keep their numbers."""
    file = HOME / "results" / "fuzz.json"
    result = merged(json.loads(file.read_text()), summary(list(Journal(journal).entries())))
    file.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    replace("fuzz", text(result), by="fuzz")


def merged(earlier: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """The new numbers of families that were run, the earlier ones of others."""
    run = set(result["readers"])
    faults = [fault for fault in earlier["faults"] if fault["family"] not in run]
    by_family = {
        name: {**earlier[name], **result[name]} for name in ("readers", "refusals", "processor_seconds")
    }
    return {**result, **by_family, "faults": [*faults, *result["faults"]]}


def summary(entries: list[Entry]) -> dict[str, Any]:
    """Counts by family and reader, reasons, time and machine."""
    readers: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    notes: Counter[str] = Counter()
    for entry in entries:
        readers[entry.family][entry.reader].update(_counts(entry))
        notes.update({note: count for note, count in entry.notes.items() if note.startswith(REFUSED)})
    return {
        "readers": {
            family: {name: dict(c) for name, c in sorted(each.items())} for family, each in readers.items()
        },
        "refusals": dict(notes.most_common(40)),
        "faults": [{"family": e.family, "seed": e.seed, **fault} for e in entries for fault in e.faults[:1]],
        "processor_seconds": {
            family: round(sum(e.seconds for e in entries if e.family == family), 1) for family in readers
        },
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            **{name: version(name) for name in _PACKAGES},
        },
    }


def _counts(entry: Entry) -> dict[str, int]:
    return {
        "cases": 1,
        "explainers": sum(entry.explainers.values()),
        "triples": entry.triples,
        "agreeing": entry.explainers.get(AGREES, 0),
        "mismatches": sum(entry.explainers.get(kind, 0) for kind in FAULTS),
        "refusals": entry.explainers.get(REFUSED, 0),
        "sampled": entry.explainers.get(SAMPLED, 0),
        "not fitted": sum(note.startswith("not fitted") for note in entry.notes),
    }


def text(result: dict[str, Any]) -> str:
    """The table: a line a reader, pipelines under what stands first in them."""
    lines = [f"| family | reader | {' | '.join(_COLUMNS)} |", "|" + "---|" * (len(_COLUMNS) + 2)]
    for family, readers in result["readers"].items():
        first: dict[str, Counter[str]] = defaultdict(Counter)
        total: Counter[str] = Counter()
        for name, counts in readers.items():
            first[name.split(",")[0]].update(counts)
            total.update(counts)
        for name, counts in sorted(first.items()):
            lines.append(f"| {family} | {name} | {' | '.join(f'{counts[c]:,}' for c in _COLUMNS)} |")
        lines.append(f"| **{family}** | **all** | {' | '.join(f'**{total[c]:,}**' for c in _COLUMNS)} |")
    machine = result["machine"]
    spent = ", ".join(
        f"{family} {seconds / 60:.0f}" for family, seconds in result["processor_seconds"].items()
    )
    packages = ", ".join(f"{name} {machine[name]}" for name in _PACKAGES)
    about = (
        f"Machine: {machine['processor']}, {machine['cores']} cores, Python {machine['python']}; {packages}."
    )
    return "\n".join([about, f"Minutes of one core: {spent}.", "", *lines])
