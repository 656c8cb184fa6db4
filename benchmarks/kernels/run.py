"""Measure: both versions in turn, round after round, each in a lasting process; then first processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks.kernels import earlier
from benchmarks.progress import say
from benchmarks.speed.cases import BOOSTED, FULL_DEPTH, SHALLOW, build
from benchmarks.speed.run import machine

ROUNDS = 7
FIRST = ("forest, one row", "forest, 400 rows", "text", "image", "sparse")
_WORKER = Path(__file__).with_name("worker.py")


def measure(rounds: int = ROUNDS, cases: str = "") -> dict[str, Any]:
    """All cases, or those with ``cases`` in their name; and first processes, unless they are left out."""
    versions = {"now": earlier.current(), "numba": earlier.packages()}
    names = [*SHALLOW, *BOOSTED, *FULL_DEPTH, "TF-IDF, 50 words", "branch and bound, 40 literals, k = 6"]
    result: dict[str, Any] = {"machine": machine(), "rounds": rounds, "commit": earlier.COMMIT}
    with tempfile.TemporaryDirectory() as folder:
        result["cases"] = [
            _case(Path(folder), name, versions, rounds) for name in names if cases.lower() in name.lower()
        ]
        if cases.lower() in "first process":
            result["first"] = _first_processes(Path(folder), versions)
    result["bandwidth_gb_s"], result["gflop_s"] = _bandwidth(), _arithmetic()
    result["load_at_the_end"] = os.getloadavg()[0]
    return result


def _case(folder: Path, name: str, versions: dict[str, Path], rounds: int) -> dict[str, Any]:
    say(f"{name}: fitting")
    kind, data = _data(name)
    joblib.dump(data, folder / "case.joblib")
    times: dict[str, list[dict[str, list[float]]]] = defaultdict(list)
    workers = {version: _start(folder, path) for version, path in versions.items()}
    for turn in range(rounds):
        for version in list(workers)[:: 1 if turn % 2 else -1]:
            say(f"{name}: round {turn + 1} of {rounds}, {version}")
            times[version].append(_ask(workers[version], kind))
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    figures = {
        what: {version: np.median([t[what] for t in times[version]], axis=0).tolist() for version in versions}
        for what in times["now"][0]
    }
    return {"case": name, "figures": figures, **_sizes(data)}


def _data(name: str) -> tuple[str, dict[str, Any]]:
    """The task, and what both versions are given."""
    rng = np.random.default_rng(0)
    if name.startswith("TF-IDF"):
        return "text", {"c": rng.normal(size=50), "a": rng.exponential(size=50)}
    if name.startswith("branch"):
        signs = rng.choice([-1.0, 1.0], (1000, 40))
        weights = rng.normal(size=40) * (rng.random(40) < 0.4)
        values = np.tanh(signs @ weights / 3) + 0.1 * rng.normal(size=1000)
        return "search", {"instance": np.ones(40), "target": 0.4, "signs": signs, "values": values, "k": 6}
    case = build(name)
    return "table", {"model": case.model, "X": case.X}


def _sizes(data: dict[str, Any]) -> dict[str, int]:
    trees = getattr(data.get("model"), "estimators_", None)
    if not trees:
        return {}
    return {"splits": int(sum((tree.tree_.feature >= 0).sum() for tree in trees))}


def _start(folder: Path, packages: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(_WORKER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(packages)},
    )


def _ask(worker: subprocess.Popen[str], kind: str) -> dict[str, list[float]]:
    worker.stdin.write(json.dumps([kind, "case"]) + "\n")
    worker.stdin.flush()
    answer = worker.stdout.readline()
    if not answer:
        raise RuntimeError(f"the worker of {kind} ended: see its error above")
    return json.loads(answer)


def _first_processes(folder: Path, versions: dict[str, Path]) -> dict[str, dict[str, dict[str, float]]]:
    """Seconds of the import, of a first answer and of a later one, without any cache."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(200)]
    texts = [" ".join(rng.choice(words, 30)) for _ in range(200)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, rng.integers(0, 2, 200))
    case = build(SHALLOW[1])
    data = {"model": case.model, "X": case.X, "text model": model, "text": texts[0]}
    joblib.dump(data, folder / "first.joblib")
    return {
        task: {version: _first(folder, task, version, path) for version, path in versions.items()}
        for task in FIRST
    }


def _first(folder: Path, task: str, version: str, packages: Path) -> dict[str, float]:
    say(f"first process: {task}, {version}")
    with tempfile.TemporaryDirectory() as empty:
        process = subprocess.run(
            [sys.executable, str(_WORKER), str(folder), "first", task],
            env={**os.environ, "PYTHONPATH": str(packages), "NUMBA_CACHE_DIR": empty},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return json.loads(process.stdout)


def _bandwidth() -> float:
    """GB a second that one thread reads from memory: the sum of an array far larger than any cache."""
    array = np.ones(1 << 26)
    return array.nbytes / 1e9 / min(_seconds(array.sum) for _ in range(5))


def _arithmetic() -> float:
    """Billions of additions and multiplications a second of one thread, in BLAS."""
    from limes._threads import one_blas_thread

    a = np.ones((1000, 1000))
    with one_blas_thread():
        return 2.0 / min(_seconds(lambda: a @ a) for _ in range(5))


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
