"""Rules of 15 and 20 literals of real tables: ``python -m benchmarks.sparse.real``.

Networks over the literals of the 2025 paper's larger sets, a row of each, σ = 1; 1,000 rows as in the paper,
and more of the largest set. The search without a constant is the paper's problem. Seconds are the
processor's, of one thread; a search ends by the clock on the wall.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import product
from time import process_time

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor

import limes
from benchmarks import readme
from benchmarks.data import table_path
from benchmarks.progress import say
from benchmarks.speed.run import machine
from limes._rules.neighbourhood import FlipLaw
from limes._rules.problem import SampleProblem
from limes._rules.solvers import branch_and_bound

TABLES = (
    "pollution",
    "student_performance",
    "ailerons",
    "auto_imports",
    "online_news_popularity",
    "geographical_origin_of_music",
)
SPARSITIES, SPREAD = (15, 20), 1.0
SAMPLES, MORE = (1000,), (1000, 2000, 4000)


def main() -> None:
    """Measure all, write JSON and a table on its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a search may take")
    limit = parser.parse_args().limit
    cases = []
    for table in TABLES:
        problem = _problem(table)
        for rows, k, intercept in product(
            MORE if table == TABLES[-1] else SAMPLES, SPARSITIES, (True, False)
        ):
            say(f"sparse rules of real tables: {table}, {rows} rows, k = {k}")
            cases.append({"table": table, "rows": rows, **_searched(problem(rows, intercept), k, limit)})
    result = {"machine": machine(), "limit": limit, "cases": cases}
    (readme.RESULTS / "sparse_real.json").write_text(json.dumps(result, indent=1) + "\n")
    readme.replace("sparse real", text(result), by="benchmarks.sparse.real")


def text(result: dict) -> str:
    """Markdown."""
    head = ["table", "literals", "rows", "k", "constant", "seconds", "nodes", "proved", "gap"]
    lines = [
        [
            case["table"],
            case["literals"],
            f"{case['rows']:,}",
            case["k"],
            "yes" if case["intercept"] else "no",
            f"{case['seconds']:.2f}",
            f"{case['nodes']:,}",
            "yes" if case["proved"] else "no",
            f"{case['gap']:.1%}",
        ]
        for case in result["cases"]
    ]
    table = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *lines])
    return f"Machine: {result['machine']}. A search may take {result['limit']:g} s.\n\n{table}"


def _problem(table: str) -> Callable[[int, bool], SampleProblem]:
    """Return a function of the number of rows and ``intercept`` that makes the problem at a table's row."""
    path = table_path(table)
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    y = frame.pop("target").to_numpy(dtype=float)
    signs = limes.Literals.fit(frame, bins=4).transform(frame)
    train, test, answers, _ = train_test_split(signs, 2 * (y - y.min()) / np.ptp(y) - 1, random_state=0)
    predict, x = MLPRegressor(random_state=0).fit(train, answers).predict, test[0]
    target = float(predict(x[None])[0])

    def problem(rows: int, intercept: bool) -> SampleProblem:
        flips = FlipLaw(x.size, SPREAD).flips(np.random.default_rng(0), rows)
        return SampleProblem(x, target, 1.0 - 2.0 * flips, predict(np.where(flips, -x, x)), intercept)

    return problem


def _searched(problem: SampleProblem, k: int, limit: float) -> dict:
    began = process_time()
    solution = branch_and_bound(problem, k, time_limit=limit)
    return {
        "literals": problem.size,
        "k": k,
        "intercept": problem.intercept,
        "seconds": process_time() - began,
        "nodes": solution.nodes,
        "proved": bool(solution.proved),
        "gap": float(solution.gap),
    }


if __name__ == "__main__":
    main()
