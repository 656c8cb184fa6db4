"""Memory, each figure in a fresh process: what it holds, and the most it held, above what came before.

The peak is the kernel's own (``VmHWM``), set back to the present where the measuring begins, so that neither
what loading the model took for a moment nor an earlier, larger figure hides anything.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks.speed.competitors import load


class Watch:
    """Memory in MB above what the process holds when this is made."""

    def __init__(self) -> None:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what was freed and kept would be used again, and not be seen
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what is held now
        self._before = _megabytes("VmRSS")

    def __call__(self) -> dict[str, float]:
        gc.collect()
        return {"peak_mb": _megabytes("VmHWM") - self._before, "held_mb": _megabytes("VmRSS") - self._before}


def _megabytes(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def fresh(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of ``work`` in a new interpreter, which has loaded no more than this file."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def preparation(competitor: str, case_file: Path) -> dict[str, float]:
    """Get what a competitor takes to be ready for a model and explain a row, above the model and its code."""
    case = joblib.load(case_file)
    case.model.predict(case.X[:100])
    module = import_module(competitor)
    code = Watch()
    load(module)
    code_mb = code()["held_mb"]
    watch = Watch()
    explain = module.prepare(case)
    explain(case.X[:1])
    return {"code_mb": code_mb, **watch()}


def rows(case_file: Path, count: int) -> dict[str, float]:
    """The memory of limes, with its code, to explain many rows like the case's, above the model and the rows.

    The rows are the case's own, moved a little: none are quite alike, as in a real table.
    """
    case = joblib.load(case_file)
    rng = np.random.default_rng(0)
    X = case.X[rng.integers(len(case.X), size=count)]
    X *= 1 + 0.02 * rng.normal(size=X.shape)
    case.model.predict(X[:100])
    watch = Watch()
    import limes

    explainer = limes.TabularExplainer(case.model, case.X, method="exact")
    explainer(X[:100], progress=False)
    start = time.perf_counter()
    explanation = explainer(X, progress=False)
    seconds = time.perf_counter() - start
    return {
        "rows": len(explanation.coefficients.values),
        "input_mb": X.nbytes / 2**20,
        "seconds": seconds,
        **watch(),
    }
