"""limes with its default control, and with its cheapest one, beside ``lime``, in fresh processes."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks.one_row.cases import Table, Text, table, text
from benchmarks.progress import say
from benchmarks.speed.run import machine

CALLS = (1024, 4096)
# Calls that tell whether the model is a function, and what it answers to the row
ABOUT_THE_FUNCTION = 16
COLUMNS, MODELS, WORDS = (10, 30), ("network", "boosted trees"), (20, 100, 700)


def measure(rounds: int = 5, cases: str = "") -> dict:
    """Every case in a separate process; ``rounds`` rows or seeds, each on a fresh explainer."""
    names = [f"{model}, {d} columns" for d in COLUMNS for model in MODELS]
    names += [f"text of {words} words" for words in WORDS]
    result = []
    context = multiprocessing.get_context("spawn")
    for name in names:
        if cases.lower() in name.lower():
            for calls in CALLS:
                with ProcessPoolExecutor(1, mp_context=context) as process:
                    result.append(process.submit(_case, name, calls, rounds).result())
            say(name)
    return {"machine": machine(), "rounds": rounds, "cases": result}


def _case(name: str, calls: int, rounds: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    if name.startswith("text"):
        its = text(int(name.split()[2]))
        runs = _text_runs(its, calls)
    else:
        model, columns = name.split(", ")
        its = table(model, int(columns.split()[0]))
        runs = _table_runs(its, calls)
    seconds: dict[str, list[tuple[float, float]]] = {who: [] for who in runs}
    squares: dict[str, list[float]] = {who: [] for who in runs}
    for turn in range(rounds + 1):
        truth = _truth(its, turn)
        for who, run in runs.items():
            wall, cpu, model_seconds, rows_before = (
                time.perf_counter(),
                time.thread_time(),
                its.ask.seconds,
                its.ask.rows,
            )
            coef = run(turn)
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            assert its.ask.rows - rows_before <= calls + ABOUT_THE_FUNCTION, who
            if turn:  # the first round imports
                seconds[who].append((wall, cpu - (its.ask.seconds - model_seconds)))
                squares[who].append(float(((coef - truth) ** 2).sum()))
    return {
        "case": name,
        "calls": calls,
        "ms": {who: 1e3 * float(np.median([cpu for _, cpu in each])) for who, each in seconds.items()},
        "wall_ms": {who: 1e3 * float(np.median([wall for wall, _ in each])) for who, each in seconds.items()},
        "squares": {who: float(np.mean(each)) for who, each in squares.items()},
    }


def _truth(its: Table | Text, turn: int) -> np.ndarray:
    return its.truth(its.X[turn]) if isinstance(its, Table) else its.truth()[1]


def _table_runs(its: Table, calls: int) -> dict[str, Any]:
    from lime.lime_tabular import LimeTabularExplainer

    import limes

    def ours(control: str) -> Any:
        return lambda turn: limes.TabularExplainer(
            its.ask, its.X, max_calls=calls, control=control, contributions=False, rng=turn
        )(its.X[turn], progress=False).coefficients.values[0, :, 1]

    def lime(turn: int) -> np.ndarray:
        explainer = LimeTabularExplainer(its.X, random_state=turn, feature_selection="none")
        one = explainer.explain_instance(its.X[turn], its.ask, num_features=its.X.shape[1], num_samples=calls)
        return np.array([value for _, value in sorted(one.local_exp[1])])

    return {"limes": ours("auto"), "additive": ours("additive"), "lime": lime}


def _text_runs(its: Text, calls: int) -> dict[str, Any]:
    from lime.lime_text import LimeTextExplainer

    import limes

    names = its.truth()[0]

    def ours(control: str) -> Any:
        return lambda turn: limes.TextExplainer(
            its.ask,
            split=r"\W+",
            bag="spelling",
            max_calls=calls,
            control=control,
            contributions=False,
            rng=turn,
        )(its.text, progress=False).coefficients.values[0, :, 1]

    def lime(turn: int) -> np.ndarray:
        explainer = LimeTextExplainer(random_state=turn, feature_selection="none")
        one = explainer.explain_instance(its.text, its.ask, num_features=len(names), num_samples=calls)
        values = dict(one.as_list())
        return np.array([values[name] for name in names])

    return {"limes": ours("auto"), "no control": ours("none"), "lime": lime}
