"""Solvers side by side, by literals and k: ``python -m benchmarks.sparse.solvers [--limit 60]``.

One problem a size: tanh of a random sum of literals, 1,000 rows at σ = 1, a fitted constant. Each solver gets
the same rows; seconds are the processor's, of one thread, with the Gram matrix where a solver needs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from time import process_time

import numpy as np

from benchmarks import readme
from benchmarks.progress import say
from benchmarks.speed.run import machine
from limes._rules.neighbourhood import FlipLaw
from limes._rules.problem import (
    PopulationProblem,
    SampleProblem,
    SparseSolution,
    hard_thresholding,
    projection,
)
from limes._rules.solvers import branch_and_bound, convex

LITERALS = (20, 60, 100, 200, 464, 2000, 10_000)
SPARSITIES = (3, 7, 15, 20)
SAMPLES, SPREAD = 1000, 1.0
# Literals up to which the convex solver is asked
_CONVEX = 500
# Bytes of the Gram matrix up to which a search is tried: 10,000 literals need 800 MB
_LARGEST_SEARCH = 2000


def main() -> None:
    """Measure all, write JSON and a table on its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a search may take")
    limit = parser.parse_args().limit
    cases = []
    for d, k in product(LITERALS, SPARSITIES):
        if k >= d:
            continue
        say(f"sparse solvers: {d} literals, k = {k}")
        solvers = {name: _timed(make, d, k, limit) for name, make in SOLVERS.items()}
        cases.append({"literals": d, "k": k, "solvers": {n: one for n, one in solvers.items() if one}})
    result = {"machine": machine(), "limit": limit, "cases": cases}
    readme.save("sparse_solvers", result)
    readme.replace("sparse solvers", text(result), by="benchmarks.sparse.solvers")


def text(result: dict) -> str:
    """Markdown."""
    names = list(SOLVERS)
    head = ["literals", "k", *(f"{name}, ms" for name in names), "proved", "gap", "IHT's error / best"]
    lines = []
    for case in result["cases"]:
        solvers = case["solvers"]
        search = solvers.get("branch and bound")
        errors = [one["rmse"] for one in solvers.values() if one["sparse"]]
        lines.append(
            [f"{case['literals']:,}", case["k"]]
            + [f"{solvers[name]['ms']:.3g}" if name in solvers else "–" for name in names]
            + (
                ["–", "–"]
                if search is None
                else ["yes" if search["proved"] else "no", f"{search['gap']:.1%}"]
            )
            + [f"{solvers['IHT']['rmse'] / min(errors):.4f}"]
        )
    rows = [head, ["---"] * len(head), *lines]
    table = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
    return f"Machine: {result['machine']}. A search may take {result['limit']:g} s.\n\n{table}"


def _problem(d: int) -> tuple[SampleProblem, FlipLaw]:
    rng, law = np.random.default_rng(0), FlipLaw(d, SPREAD)
    weights, x = rng.normal(size=d) / np.sqrt(d), rng.choice([-1.0, 1.0], d)
    signs = 1.0 - 2.0 * law.flips(rng, SAMPLES)
    values = np.tanh((signs * x) @ weights)
    return SampleProblem(x, float(np.tanh(x @ weights)), signs, values, intercept=True), law


def _projected(d: int, k: int, _: float) -> Callable[[], SparseSolution]:
    problem, law = _problem(d)

    def solve() -> SparseSolution:
        values = problem.values
        gamma = (values - values.mean()) @ problem.signs / values.size
        population = PopulationProblem(
            problem.instance, problem.target, law, gamma, float(values.mean()), float(values.var()), True
        )
        return projection(population, k)

    return solve


def _thresholded(d: int, k: int, _: float) -> Callable[[], SparseSolution]:
    problem, _law = _problem(d)
    return lambda: hard_thresholding(problem, k)


def _relaxed(d: int, k: int, _: float) -> Callable[[], SparseSolution] | None:
    problem, _law = _problem(d)
    return (lambda: convex(problem, k)) if d <= _CONVEX else None


def _searched(d: int, k: int, limit: float) -> Callable[[], SparseSolution] | None:
    problem, _law = _problem(d)
    return (lambda: branch_and_bound(problem, k, time_limit=limit)) if d <= _LARGEST_SEARCH else None


SOLVERS: dict[str, Callable[[int, int, float], Callable[[], SparseSolution] | None]] = {
    "projection": _projected,
    "IHT": _thresholded,
    "convex": _relaxed,
    "branch and bound": _searched,
}


def _timed(make: Callable, d: int, k: int, limit: float) -> dict | None:
    solve = make(d, k, limit)
    if solve is None:
        return None
    began = process_time()
    solution = solve()
    seconds = process_time() - began
    problem, _ = _problem(d)
    rmse = float(np.sqrt(problem.objective(solution.w * problem.instance)))
    return {
        "ms": 1e3 * seconds,
        "rmse": rmse,
        "sparse": solution.support.size <= k,
        "proved": bool(solution.proved),
        "gap": float(solution.gap),
    }


if __name__ == "__main__":
    main()
