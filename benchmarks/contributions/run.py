"""Measure: each engine in a new process, in turn, round after round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks.contributions.cases import MAKERS, Task
from benchmarks.progress import say
from benchmarks.speed.run import machine

ROUNDS = 3
_COMMAND = "python -m benchmarks contributions"


def measure(rounds: int = ROUNDS, cases: str = "") -> dict[str, Any]:
    """All cases, or those with ``cases`` in their name."""
    result: dict[str, Any] = {
        "machine": machine(),
        "command": _COMMAND,
        "versions": {name: version(name) for name in ("shap", "scikit-learn", "lightgbm", "xgboost-cpu")},
    }
    chosen = [make for name, make in MAKERS.items() if cases.lower() in name.lower()]
    result["cases"] = [_case(make(), rounds) for make in chosen]
    result["load_at_the_end"] = os.getloadavg()[0]
    return result


def _case(task: Task, rounds: int) -> dict[str, Any]:
    measured: dict[str, list[dict[str, Any]]] = {engine: [] for engine in task.engines}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "task.joblib"
        joblib.dump(task, file)
        for turn in range(rounds):
            for engine in [*task.engines][:: 1 if turn % 2 else -1]:
                say(f"{task.name}: round {turn + 1} of {rounds}, {engine}")
                measured[engine].append(_ask(file, engine))
    engines = {
        engine: {
            "rows": task.engines[engine],
            **{
                what: np.median([each[what] for each in runs], axis=0).tolist()
                for what in ("prepare", "whole", "account", "one row", "peak_mb")
            },
        }
        for engine, runs in measured.items()
    }
    return {"case": task.name, "rounds": rounds, "engines": engines, **_compared(measured)}


def _ask(file: Path, engine: str) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.contributions.worker", str(file), engine],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(process.stdout)


def _compared(measured: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Ratios of seconds a row within rounds, and how far apart values of the same game are."""
    result: dict[str, Any] = {"ratios": {}}
    for other, ours in (
        ("shap", "limes"),
        ("shap, 100 rows", "limes"),
        ("shap, 100 rows", "limes, joint law"),
    ):
        if other not in measured:
            continue
        pairs = list(zip(measured[ours], measured[other], strict=True))
        result["ratios"][f"{ours} / {other}"] = {
            what: np.median([np.divide(b["whole"], a[what]) for a, b in pairs], axis=0).tolist()
            for what in ("whole", "account")
        }
    if "shap, 100 rows" in measured:
        a, b = (np.array(measured[name][0]["values"]) for name in ("limes, joint law", "shap, 100 rows"))
        result["apart"] = float(np.abs(a - b).max() / np.abs(a).max())
    return result
