"""Cases in new processes, with no thread variables: this version and the one before, in turn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.progress import say
from benchmarks.speed.run import machine

BEFORE = "af9bae3a"
_ROOT = Path(__file__).parents[2]
_WORKER = Path(__file__).with_name("worker.py")
_CASES = {"classes": (100,), "words": (600,), "frame": (30_000,)}


def measure(cases: str = "", rounds: int = 1) -> dict:
    """All cases, or those with ``cases`` in their name; medians of rounds, which take minutes each."""
    versions = {"before": _earlier(), "now": _ROOT / "src"}
    results = []
    for case, sizes in _CASES.items():
        for size in sizes if cases.lower() in case else ():
            each: dict[str, list[dict]] = {version: [] for version in versions}
            for turn in range(rounds):
                for version, source in versions.items():
                    say(f"{case}, {size}, {version}, round {turn + 1}")
                    each[version].append(_measured(source, case, size))
            results.append({"case": case, "size": size, **{v: _medians(runs) for v, runs in each.items()}})
    say("done\n")
    return {"machine": machine(), "before": BEFORE, "rounds": rounds, "cases": results}


def _earlier() -> Path:
    """The earlier version's Python, with these kernels, which have all that it calls."""
    folder = _ROOT / "build" / f"large-{BEFORE}"
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "archive", BEFORE, "src"], cwd=_ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        for kernels in (_ROOT / "src" / "limes").glob("_kernels*.so"):
            shutil.copy(kernels, folder / "src" / "limes")
    return folder / "src"


def _measured(source: Path, case: str, size: int) -> dict:
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {key: value for key, value in os.environ.items() if key not in threads}
    run = subprocess.run(
        [sys.executable, _WORKER, case, str(size)],
        env={**environment, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
        text=True,
    )
    measured: dict = json.loads(run.stdout)
    return measured


def _medians(runs: list[dict]) -> dict:
    def middle(values: list) -> float | list[float]:
        if isinstance(values[0], list):
            return [middle(list(each)) for each in zip(*values, strict=True)]
        return sorted(values)[len(values) // 2]

    return {name: middle([run[name] for run in runs]) for name in runs[0]}
