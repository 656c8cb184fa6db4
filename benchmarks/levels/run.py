"""Measure all of it; shap's maskers of images need OpenCV (cv2)."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context

from benchmarks.images.networks import DATA, NETWORKS
from benchmarks.levels import photographs, texts
from benchmarks.progress import say
from benchmarks.speed.run import machine

PROCESSES = 4


def measure(cases: str = "") -> dict:
    """Of the models with ``cases`` in their name."""
    if not (DATA / "text").exists():
        raise SystemExit(f"the texts and photographs are not in {DATA}: set LIMES_DATA")
    named = {"texts": (texts.measure, texts.MODELS), "photographs": (photographs.measure, NETWORKS)}
    # nothing is timed
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        running = {
            part: [pool.submit(measure_one, name) for name in names if cases.lower() in name.lower()]
            for part, (measure_one, names) in named.items()
        }
        measured = {part: [one.result() for one in its] for part, its in running.items()}
    say("done\n")
    return {
        "machine": machine(),
        "versions": {name: version(name) for name in ("limes", "lime", "shap", "onnxruntime")},
        "calls": texts.CALLS,
        **measured,
    }
