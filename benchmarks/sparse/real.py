"""Rules of 15 and 20 literals of real tables, proved or not: ``LIMES_DATA=... python -m benchmarks.sparse.real``.

Networks over the literals of the 2025 paper's larger sets, a row of each: 1,000 rows at σ = 1. The search without a
constant is the paper's problem. Seconds are the processor's; a search ends by the clock on the wall.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor

import limes
from benchmarks import readme
from benchmarks.progress import say
from benchmarks.speed.run import machine
from limes.designs._literals import FlipLaw
from limes.surrogates._branch_and_bound import branch_and_bound
from limes.surrogates._sparse import SampleProblem

TABLES = (
    "pollution",
    "student_performance",
    "ailerons",
    "auto_imports",
    "online_news_popularity",
    "geographical_origin_of_music",
)
SPARSITIES, SAMPLES, SPREAD = (15, 20), 1000, 1.0


def main() -> None:
    """Measure all, write JSON and a table in README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a search may take")
    limit = parser.parse_args().limit
    cases = []
    for table in TABLES:
        problem = _problem(table)
        for k, intercept in product(SPARSITIES, (True, False)):
            say(f"sparse rules of real tables: {table}, k = {k}")
            cases.append({"table": table, **_searched(problem(intercept), k, limit)})
    result = {"machine": machine(), "limit": limit, "cases": cases}
    (readme.RESULTS / "sparse_real.json").write_text(json.dumps(result, indent=1) + "\n")
    readme.replace("sparse real", text(result), by="benchmarks.sparse.real")


def text(result: dict) -> str:
    """Markdown."""
    head = ["table", "literals", "k", "constant", "seconds", "nodes", "proved", "gap"]
    lines = [
        [
            case["table"],
            case["literals"],
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


def _problem(table: str):
    """Return a function of ``intercept`` that makes the problem at a row of a table."""
    path = Path(os.environ["LIMES_DATA"]) / "tabular" / f"{table}.csv.gz"
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    y = frame.pop("target").to_numpy(dtype=float)
    signs = limes.Literals.fit(frame, bins=4).transform(frame)
    train, test, answers, _ = train_test_split(signs, 2 * (y - y.min()) / np.ptp(y) - 1, random_state=0)
    predict, x = MLPRegressor(random_state=0).fit(train, answers).predict, test[0]
    flips = FlipLaw(x.size, SPREAD).flips(np.random.default_rng(0), SAMPLES)
    values, target = predict(np.where(flips, -x, x)), float(predict(x[None])[0])
    return lambda intercept: SampleProblem(x, target, 1.0 - 2.0 * flips, values, intercept)


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
