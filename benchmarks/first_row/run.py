"""limes and ``lime`` with their default options, each in new processes, in turn."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats.qmc import Sobol

from benchmarks.first_row.cases import TRUTH_ROWS, model_of, table
from benchmarks.progress import say
from benchmarks.speed.run import machine

# Kind of table, model, and numbers of columns
CASES = (
    ("correlated", "network", (10, 30, 100, 500, 2000, 10_000)),
    ("correlated", "boosted trees", (10, 30, 100, 500, 2000)),
    ("one-hot", "network", (100, 500, 2000)),
    ("counts of words", "network", (100, 500, 2000, 10_000)),
)
# Rows of a background; of the widest tables fewer, as they are
ROWS, FEWER, WIDEST = 3000, 1000, 10_000
# Columns for which the truth is computed, by weighted least squares of many rows
_COMPARED = 100
# Variables that would limit threads
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure(rounds: int = 3, cases: str = "") -> dict[str, Any]:
    """Every case in new processes, ``rounds`` of each library; of more than 500 columns one."""
    result = []
    for kind, model, widths in CASES:
        for columns in widths:
            name = f"{kind}, {model}, {columns:,} columns"
            if cases.lower() in name.lower():
                result.append(
                    {
                        "case": name,
                        "columns": columns,
                        **_case(kind, model, columns, rounds if columns <= 500 else 1),
                    }
                )
                say(name)
    return {"machine": machine(), "rounds": rounds, "cases": result}


def _case(kind: str, name: str, columns: int, rounds: int) -> dict[str, Any]:
    X, margin = table(kind, columns, FEWER if columns >= WIDEST else ROWS)
    model = model_of(name, X, margin)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.pickle"
        file.write_bytes(pickle.dumps((X, model)))
        runs: dict[str, list[dict[str, Any]]] = {"limes": [], "lime": []}
        for _ in range(rounds):
            for library, its in runs.items():
                its.append(_worker(file, library))
        squares = {}
        if columns <= _COMPARED:
            truth = _truth(X, model)
            others = {"limes": runs["limes"][0], "lime": _worker(file, "all of lime")}
            squares = {who: float(((its["values"] - truth) ** 2).sum()) for who, its in others.items()}
    each = {
        library: {
            what: float(np.median([one[what] for one in its])) for what in ("seconds", "cpu", "calls", "mb")
        }
        for library, its in runs.items()
    }
    first = runs["limes"][0]
    return {**each, "squares": squares, "error": first["error"], "control": first["control"]}


def _worker(file: Path, library: str) -> dict[str, Any]:
    free = {name: value for name, value in os.environ.items() if name not in _THREADS}
    command = [sys.executable, "-m", "benchmarks.first_row.worker", str(file), library]
    process = subprocess.run(command, env=free, capture_output=True, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def _truth(X: np.ndarray, model: Any) -> np.ndarray:
    """Weighted least squares of many rows of the law that both libraries have."""
    import limes

    design = limes.TabularExplainer(lambda x: x[:, 0], X).design(X[0])
    size = X.shape[1]
    x, cells = design.family.draw(Sobol(size, rng=1).random(TRUTH_ROWS))
    z = (cells == design.cells).astype(float)
    w = design.family.weights.ratio ** (size - z.sum(axis=1))
    a = np.column_stack([np.ones(len(z)), z])
    return np.linalg.solve(a.T @ (w[:, None] * a), a.T @ (w * model(x)))[1:]
