"""Measure tables, texts and images."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version

from benchmarks.progress import say
from benchmarks.speed.run import machine

PARTS = ("tables", "text", "image")


def measure(cases: str = "") -> dict:
    """Figures and goals of the parts with ``cases`` in their name."""
    files = [import_module(f"benchmarks.drop_in.{part}") for part in PARTS if cases in part]
    result = {
        "machine": machine(),
        "versions": {
            name: version(name) for name in ("limes", "lime", "scikit-learn", "scikit-image", "numpy")
        },
        "figures": {name: float(value) for file in files for name, value in file.measure().items()},
        "goals": {name: least for file in files for name, least in getattr(file, "GOALS", {}).items()},
    }
    say("done\n")
    return result
