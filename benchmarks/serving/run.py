"""CPU time of one row by each way, in turn in one process; and a service's latencies under load."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import limes
from benchmarks.progress import say
from benchmarks.serving import clients
from benchmarks.speed.cases import BOOSTED, SHALLOW, build
from benchmarks.speed.run import machine

# Rows of the joint law's background, which shap takes too; rows that are explained one by one
BACKGROUND, ROWS = 100, 60
# A service's processes, and its numbers of concurrent clients with their requests
PROCESSES, CLIENTS, REQUESTS = 2, (1, 8, 64), 1500
LAWS = {"default": {}, "joint": {"law": "joint", "bandwidth": np.inf}}
PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def measure(*, rounds: int = ROWS, cases: str = "") -> dict[str, Any]:
    """Return a record for each model and law, one of cores that are all busy, and the service's."""
    limes.set_threads(1)
    tasks = {name: make for name, make in _TASKS.items() if cases.lower() in name.lower()}
    records, explain, row = [], None, None
    for name, make in tasks.items():
        model, X, has_trees = make()
        for law in LAWS if has_trees else ("default",):
            say(f"{name}, {law} law")
            records.append({"model": name, "law": law, **_one_row(model, X, law, rounds)})
        if explain is None:
            explain, row = limes.TabularExplainer(model, X[:1000]).compiled(), X[1000]
    say("a process a core")
    busy = _busy(explain, row)
    say("a service")
    return {
        "machine": machine(),
        "rows": rounds,
        "cases": records,
        "busy": busy,
        "service": _served(explain, row),
        "served": next(iter(tasks)),
    }


def _logistic() -> tuple[Any, Any, bool]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = X @ rng.normal(size=20) + rng.logistic(size=3000) > 0
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), X, False


def _trees(name: str) -> tuple[Any, Any, bool]:
    case = build(name)
    if hasattr(case.model, "n_jobs"):
        case.model.set_params(n_jobs=1)
    return case.model, np.asarray(case.X), True


_TASKS = {
    BOOSTED[0]: lambda: _trees(BOOSTED[0]),
    BOOSTED[1]: lambda: _trees(BOOSTED[1]),
    SHALLOW[0]: lambda: _trees(SHALLOW[0]),
    "logistic pipeline, 20 columns": _logistic,
}


def _one_row(model: Any, X: Any, law: str, rows: int) -> dict[str, Any]:
    background = X[:BACKGROUND] if law == "joint" else X[:1000]
    explainer = limes.TabularExplainer(model, background, **LAWS[law])
    explain = explainer.compiled()
    ways: dict[str, Callable[[Any], Any]] = {
        "compiled": explain,
        "contributions": lambda row: explainer.contributions(row[None], progress=False).contributions.values,
        "call": lambda row: explainer(row[None], progress=False).contributions.values,
        "predict": lambda row: model.predict(row[None]),
    }
    if law == "joint":
        import shap

        tree = shap.TreeExplainer(model, background, feature_perturbation="interventional")
        ways["shap"] = lambda row: tree.shap_values(row[None], check_additivity=False)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    values: dict[str, Any] = {}
    for i in range(rows + 3):
        for way, work in ways.items():
            start = time.process_time()
            values[way] = work(X[1000 + i])
            seconds[way] += [time.process_time() - start] if i >= 3 else []
    batch, start = explain(X[1000:1064]), time.process_time()
    explain(X[1064:1128])
    together = (time.process_time() - start) / len(batch.values)
    apart = None
    if law == "joint":
        size = np.abs(values["compiled"].values).max()
        apart = float(np.abs(values["shap"] - values["compiled"].values).max() / size)
    return {
        "ms": {way: [1e3 * float(np.quantile(its, q)) for q in (0.5, 0.99)] for way, its in seconds.items()},
        "batch": 1e3 * together,
        "apart": apart,
    }


def _alone(content: str, row: Any, seconds: float) -> tuple[list[float], list[float]]:
    """Milliseconds of the clock and of the processor of each row, for some seconds."""
    explain, clock, cpu = joblib.load(content), [], []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        start, before = time.perf_counter(), time.process_time()
        explain(row)
        clock.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (time.process_time() - before))
    return clock, cpu


def _busy(explain: Any, row: Any) -> dict[str, float]:
    """A process for each core, with as many threads as there are cores."""
    count = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder, get_context("spawn").Pool(count) as pool:
        joblib.dump(explain, f"{folder}/explain.joblib")
        parts = pool.starmap(_alone, [(f"{folder}/explain.joblib", row, 5.0)] * count)
    clock, cpu = ([ms for part in parts for ms in part[i]] for i in range(2))
    return {
        "processes": count,
        "clock": statistics.median(clock),
        "clock p99": float(np.quantile(clock, 0.99)),
        "cpu": statistics.median(cpu),
    }


def _served(explain: Any, row: Any) -> list[dict[str, Any]]:
    """Latencies of the service that docs/serving.md has, as it stands there."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (app,) = (block for block in blocks if "Starlette(" in block)
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(explain, f"{folder}/explain.joblib")
        Path(folder, "app.py").write_text(app, encoding="utf-8")
        environment = {**os.environ, "EXPLAINER": f"{folder}/explain.joblib"}
        ports = [clients.free_port() for _ in range(PROCESSES)]
        command = [sys.executable, "-m", "uvicorn", "app:app", "--log-level", "warning", "--no-access-log"]
        processes = [
            subprocess.Popen([*command, "--port", str(port)], cwd=folder, env=environment) for port in ports
        ]
        try:
            body = dict(zip(explain.feature_names, row.tolist(), strict=True))
            addresses = [f"http://127.0.0.1:{port}/explain" for port in ports]
            for address in addresses:
                clients.wait_for(address, body)
            return [
                {"clients": count, **clients.measure(addresses, body, count, REQUESTS)} for count in CLIENTS
            ]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(30)
