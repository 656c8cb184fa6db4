"""Measure all of it."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context

from benchmarks.data import DATA
from benchmarks.levels import texts
from benchmarks.progress import say
from benchmarks.speed.run import machine

PROCESSES = 4


def measure() -> dict:
    """All, side by side: nothing is timed."""
    if not (DATA / "text").exists():
        raise SystemExit(f"the texts are not in {DATA}: set LIMES_DATA")
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        running = [pool.submit(texts.measure, name) for name in texts.MODELS]
        running.append(pool.submit(texts.covered))
        *cases, covered = (one.result() for one in running)
    say("done\n")
    return {
        "machine": machine(),
        "versions": {name: version(name) for name in ("limes", "lime", "shap")},
        "calls": texts.CALLS,
        "cases": cases,
        "covered": covered,
    }
