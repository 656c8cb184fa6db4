"""Measure tables, texts and images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version

from benchmarks.progress import say
from benchmarks.speed.run import machine

PARTS = ("tables", "text", "image", "fresh")


def measure(cases: str = "") -> dict:
    """Figures and goals of the parts with ``cases`` in their name."""
    files = [import_module(f"benchmarks.drop_in.{part}") for part in PARTS if cases in part]
    result = {
        "machine": machine(),
        "versions": {
            name: version(name) for name in ("limes", "lime", "scikit-learn", "scikit-image", "numpy")
        },
        "figures": dict(pair for file in files for pair in _flat(file.measure())),
        "goals": dict(pair for file in files for pair in _flat(file.GOALS)),
    }
    say("done\n")
    return result


def _flat(result: Mapping, *above: str) -> Iterator[tuple[str, float]]:
    """Figures by their whole name, whatever they are grouped by."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from _flat(value, *above, name)
        else:
            yield ", ".join([*above, name]), float(value)
