"""Measure all of it; shap's maskers of images need OpenCV (cv2)."""

from __future__ import annotations

from importlib.metadata import version

from benchmarks.images.networks import DATA
from benchmarks.levels import photographs, texts
from benchmarks.progress import say
from benchmarks.speed.run import machine


def measure(cases: str = "") -> dict:
    """Of the models with ``cases`` in their name."""
    if not (DATA / "text").exists():
        raise SystemExit(f"the texts and photographs are not in {DATA}: set LIMES_DATA")
    result = {
        "machine": machine(),
        "versions": {name: version(name) for name in ("limes", "lime", "shap", "onnxruntime")},
        "calls": texts.CALLS,
        "texts": texts.measure(cases),
        "photographs": photographs.measure(cases),
    }
    say("done\n")
    return result
