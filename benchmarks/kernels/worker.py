"""The tasks of one version: lines of JSON in, seconds out.

``python worker.py FOLDER`` serves until its input ends; ``python worker.py FOLDER first TASK`` does a task
three times in a process that has loaded no limes, from its import on.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np

FOLDER = Path(sys.argv[1])
ROWS, ONE_BY_ONE = 1000, 20
Times = dict[str, tuple[float, float]]


def load(name: str) -> dict[str, Any]:
    return joblib.load(FOLDER / f"{name}.joblib")


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def timed(work: Callable[[], Any], share: int = 1) -> tuple[float, float]:
    """Seconds of the clock, and of all threads: these do not count what others do on a busy machine."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - start) / share, (time.process_time() - cpu) / share


def rows_of(case: dict[str, Any]) -> Iterator[np.ndarray]:
    """Other rows in every round, the same ones for both versions."""
    rng = np.random.default_rng(0)
    while True:
        yield case["X"][rng.permutation(len(case["X"]))[:ROWS]]


def table(name: str) -> Iterator[Times]:
    """Seconds to prepare, and a row of a batch, and of calls with one row."""
    import limes

    case, explainers = load(name), []

    def prepare() -> None:
        explainers.append(limes.TabularExplainer(case["model"], case["X"], method="exact"))
        explainers[0](case["X"][:1], progress=False)

    prepared = timed(prepare)
    for rows in rows_of(case):
        yield {
            "prepare": prepared,
            "batch": timed(lambda rows=rows: explainers[0](rows, progress=False), len(rows)),
            "one row": timed(
                lambda rows=rows: [explainers[0](row, progress=False) for row in rows[:ONE_BY_ONE]],
                ONE_BY_ONE,
            ),
        }


def text(name: str) -> Iterator[Times]:
    """Seconds of a text's exact limit."""
    import limes
    from limes.designs import ExchangeableDesign
    from limes.models import forms

    case = load(name)
    form = forms.NormalizedLinear(case["c"], case["a"], "l2")
    design = ExchangeableDesign.word_deletions(len(case["a"]), 0.25)
    limes.limit(design, form)
    while True:
        yield {"a text": timed(lambda: limes.limit(design, form))}


def search(name: str) -> Iterator[Times]:
    """Seconds of a certified search, on one thread."""
    if find_spec("limes._rules"):
        sparse, solvers = import_module("limes._rules.problem"), import_module("limes._rules.solvers")
    else:  # the earlier version's modules
        _ = "_" if find_spec("limes.surrogates._sparse") else ""
        sparse = import_module(f"limes.surrogates.{_}sparse")
        solvers = import_module(f"limes.surrogates.{_}branch_and_bound")
    branch_and_bound = solvers.branch_and_bound

    case = load(name)
    sample_problem = sparse.SampleProblem if hasattr(sparse, "SampleProblem") else sparse.Sample
    problem = sample_problem(case["instance"], case["target"], case["signs"], case["values"])
    branch_and_bound(problem, case["k"], threads=1)
    while True:
        yield {"a search": timed(lambda: branch_and_bound(problem, case["k"], threads=1))}


TASKS = {"table": table, "text": text, "search": search}


def check_version() -> None:
    """Raise SystemExit if another limes than that of PYTHONPATH was imported."""
    import limes

    if not Path(limes.__file__).is_relative_to(os.environ["PYTHONPATH"]):
        raise SystemExit(f"limes comes from {limes.__file__}, not from {os.environ['PYTHONPATH']}")


def serve() -> None:
    """Advance the task of each line by one round."""
    check_version()
    running: dict[str, Iterator[Times]] = {}
    for line in sys.stdin:
        kind, name = json.loads(line)
        if name not in running:
            running.clear()
            running[name] = TASKS[kind](name)
            next(running[name])  # warms up
        sys.stdout.write(json.dumps(next(running[name])) + "\n")
        sys.stdout.flush()


def first(name: str) -> None:
    """Seconds of the import, and of construction and first answer, three times."""
    case = load(name)
    rng = np.random.default_rng(0)
    image, segments = rng.random((48, 48)), np.add.outer(np.arange(48) // 8 * 6, np.arange(48) // 8)
    signs = np.sign(rng.normal(size=(1, 14)))
    imported = seconds(lambda: __import__("limes"))
    check_version()
    import limes

    answers = {
        "forest, one row": lambda: limes.TabularExplainer(case["model"], case["X"])(case["X"][:1]),
        "forest, 400 rows": lambda: limes.TabularExplainer(case["model"], case["X"])(case["X"][:400]),
        "text": lambda: limes.TextExplainer(case["text model"])(case["text"]),
        "image": lambda: limes.ImageExplainer(
            lambda a: np.tanh(a[:, :24].mean(axis=(1, 2))), segments=segments, max_calls=256
        )(image),
        "sparse": lambda: limes.SparseExplainer(
            lambda s: s[:, 0] + s[:, 1] * s[:, 2], k=3, solver="branch_and_bound"
        )(signs),
    }
    times = [seconds(answers[sys.argv[3]]) for _ in range(3)]
    sys.stdout.write(json.dumps({"import": imported, "first": times[0], "again": min(times[1:])}) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 2:
        first("first")
    else:
        serve()
