"""Measure all of it, on one thread: nothing is timed."""

from __future__ import annotations

from importlib.metadata import version

from benchmarks.data import DATA
from benchmarks.images.networks import LITE, SMALL
from benchmarks.photographs import areas
from benchmarks.progress import say
from benchmarks.speed.run import machine

# lime is left out of the larger network: it takes most of the time
CASES = (
    (SMALL, 300, tuple(areas.METHODS)),
    (SMALL, 1000, tuple(areas.METHODS)),
    (LITE, 300, ("limes", "shap Partition")),
    (LITE, 1000, ("limes", "shap Partition")),
)


def measure(cases: str = "") -> dict:
    if not (DATA / "images").exists():
        raise SystemExit(f"the photographs are not in {DATA}: set LIMES_DATA")
    measured = [areas.measure(*case) for case in CASES if cases in case[0].name]
    say("done\n")
    return {
        "machine": machine(),
        "versions": {name: version(name) for name in ("limes", "lime", "shap", "onnxruntime")},
        "cases": measured,
    }
