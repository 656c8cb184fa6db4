"""One engine on one task in its own process: ``python -m benchmarks.contributions.worker FILE ENGINE``."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np

from benchmarks.contributions.cases import BACKGROUND, Task
from benchmarks.speed.memory import Watch

# Explained rows begin behind the background's; single rows are explained so often
_FIRST, _ONE_BY_ONE = 1000, 9


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds of the clock, of all threads, and the result."""
    start, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - start, time.process_time() - cpu, result


def of_limes(task: Task, *, joint: bool) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return what explains rows, and what reads contributions (n, d) off an explanation."""
    import limes

    background = task.X[:BACKGROUND] if joint else task.X
    options = {"law": "joint", "bandwidth": np.inf} if joint else {}
    explainer = limes.TabularExplainer(task.model, background, contributions=False, **options)
    return lambda rows: explainer(rows, progress=False), lambda explanation: explanation.contributions.values


def of_shap(task: Task, *, joint: bool) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The same of shap, which has no step in between."""
    import shap

    background = (task.X[:BACKGROUND],) if joint else ()
    mode = "interventional" if joint else "tree_path_dependent"
    explainer = shap.TreeExplainer(task.model, *background, feature_perturbation=mode)
    return lambda rows: explainer.shap_values(rows, check_additivity=False), lambda values: values


def main(file: str, engine: str) -> dict[str, Any]:
    """Seconds and megabytes."""
    task: Task = joblib.load(file)
    task.model.predict(task.X[:10])
    library, _, joint = engine.partition(", ")
    make = of_limes if library == "limes" else of_shap
    rows = task.X[_FIRST : _FIRST + task.engines[engine]]
    watch = Watch()
    prepare, prepare_cpu, (explain, read) = timed(lambda: make(task, joint=bool(joint)))
    of_explain, explain_cpu, explanation = timed(lambda: explain(rows))
    account, account_cpu, values = timed(lambda: read(explanation))
    memory = watch()
    single = [timed(lambda i=i: read(explain(rows[i : i + 1]))) for i in range(_ONE_BY_ONE)]
    return {
        "prepare": [prepare, prepare_cpu],
        "whole": [(of_explain + account) / len(rows), (explain_cpu + account_cpu) / len(rows)],
        "account": [account / len(rows), account_cpu / len(rows)],
        "one row": [float(np.median([each[i] for each in single])) for i in (0, 1)],
        "peak_mb": memory["peak_mb"],
        "values": np.asarray(values)[:20].reshape(len(values[:20]), -1).tolist(),
    }


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(main(*sys.argv[1:])))
