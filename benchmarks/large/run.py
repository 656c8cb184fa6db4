"""Cases in new processes, with no thread variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.progress import say
from benchmarks.speed.run import machine

_WORKER = Path(__file__).with_name("worker.py")
_CASES = {"classes": (100,), "words": (600,), "frame": (30_000,)}


def measure(cases: str = "", rounds: int = 3) -> dict:
    """All cases, or those with ``cases`` in their name; medians of rounds."""
    results = []
    for case, sizes in _CASES.items():
        for size in sizes if cases.lower() in case else ():
            runs = []
            for turn in range(rounds):
                say(f"{case}, {size}, round {turn + 1}")
                runs.append(_measured(case, size))
            results.append({"case": case, "size": size, "figures": _medians(runs)})
    say("done\n")
    return {"machine": machine(), "rounds": rounds, "cases": results}


def _measured(case: str, size: int) -> dict:
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {key: value for key, value in os.environ.items() if key not in threads}
    command = [sys.executable, _WORKER, case, str(size)]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    measured: dict = json.loads(run.stdout)
    return measured


def _medians(runs: list[dict]) -> dict:
    def middle(values: list) -> float | list[float]:
        if isinstance(values[0], list):
            return [middle(list(each)) for each in zip(*values, strict=True)]
        return sorted(values)[len(values) // 2]

    return {name: middle([run[name] for run in runs]) for name in runs[0]}
