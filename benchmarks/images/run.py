"""Measure all of it."""

from __future__ import annotations

from importlib.metadata import version

from benchmarks.data import DATA
from benchmarks.images import accuracy, overhead
from benchmarks.progress import say
from benchmarks.speed.run import machine


def measure(seeds: int = accuracy.SEEDS, cases: str = "") -> dict:
    """Overhead, memory, and accuracy of the cases with ``cases`` in their name."""
    if not (DATA / "models").exists():
        raise SystemExit(f"the photographs and networks are not in {DATA}: set LIMES_DATA")
    result = {
        "machine": machine(),
        "versions": {name: version(name) for name in ("limes", "lime", "onnxruntime", "numpy")},
        "overhead": overhead.measure(),
        "accuracy": accuracy.measure(seeds, cases),
    }
    say("done\n")
    return result
