"""All explainers of all cases, judged by ``limes.evaluate.compare``."""

from __future__ import annotations

from benchmarks.pool import processes
from benchmarks.progress import say
from benchmarks.quality.cases import CASES
from benchmarks.speed.cases import AbsentError
from benchmarks.speed.run import machine

ROWS, RUNS = 10, 3


def measure(seeds: int = RUNS, cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name."""
    names = [name for name in CASES if cases.lower() in name.lower()]
    with processes() as pool:
        result = []
        for case in pool.map(_case, names, [seeds] * len(names)):
            result.append(case)
            say(case["case"])
    say("done\n")
    return {"machine": machine(), "rows": ROWS, "runs": seeds, "cases": result}


def _case(name: str, runs: int) -> dict:
    from benchmarks.quality.explainers import EXPLAINERS
    from limes.evaluate import EvaluationTask, compare

    try:
        case = CASES[name](name)
    except AbsentError as reason:
        return {"case": name, "absent": str(reason)}
    step = len(case.X) // ROWS
    task = EvaluationTask.of(case.ask, case.X, case.X[::step][:ROWS])
    explainers = {explainer: make(case) for explainer, make in EXPLAINERS.items()}
    result = compare(explainers, task, runs=runs, k=min(5, case.X.shape[1] // 2), progress=False)
    return {"case": name, "columns": case.X.shape[1], "lines": list(result.lines())}
