"""Koriche et al. 2025, Table 4 and Figure 8 with solvers that all have: limes's search beside SCIP.

    python papers/koriche-2025/open_solvers.py                     # an instance of each set, 60 s a solver
    python papers/koriche-2025/open_solvers.py --sets pollution --limit 10

Both get the same instances, one after the other, on one thread; seconds are the processor's, and writing
SCIP's model down is not counted.
It gets squares of min(m, d) residuals, from a QR factorisation of the rows, and |u_i| <= t_i, t_i in {0, 1}.
HiGHS and CBC take no quadratic objective with whole numbers.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time

import numpy as np
from run import LIMIT, SAMPLES, _drawn, _watched
from sets import DATA, SETS, prepared

from limes.designs._literals import LiteralFlips
from limes.surrogates._branch_and_bound import branch_and_bound
from limes.surrogates._branch_and_bound.nodes import perspective_bound
from limes.surrogates._sparse import SampleProblem

HERE = Path(__file__).parent
K, SPREAD = 7, 1.0
# A curve has a point where its gap has fallen by this share, and its last
_STEP = 0.02


def main() -> None:
    """Run all, write ``solvers.json``."""
    options = _options()
    files = [s.file for s in SETS if not options.sets or s.file in options.sets]
    _ours(_instance(files[0]), options.limit)  # compiled, or read from the disk
    found = []
    for file in _watched([f for f in files if (DATA / "tabular" / f"{f}.csv.gz").exists()]):
        problem = _instance(file)
        solvers = {
            "limes": _ours(problem, options.limit),
            "SCIP": _scip(problem, options.limit),
        }
        root = perspective_bound(problem, K)
        found.append({"set": file, "literals": problem.size, "perspective": root, "solvers": solvers})
    options.out.write_text(json.dumps({"limit": options.limit, "instances": found}) + "\n")


def _instance(file: str) -> SampleProblem:
    """The first of ``run.py``."""
    task = prepared(file)
    x = task.test[np.random.default_rng(0).permutation(len(task.test))[0]]
    signs, values = _drawn(LiteralFlips(x, SPREAD), task.predict, SAMPLES, np.random.default_rng(0))
    problem = SampleProblem(x, float(task.predict(x[None])[0]), signs, values)
    problem.gram  # noqa: B018 - part of no solver's time
    return problem


def _ours(problem: SampleProblem, limit: float) -> dict:
    steps: list[tuple[float, float, float]] = []
    began = process_time()
    found = branch_and_bound(
        problem,
        K,
        time_limit=limit,
        on_progress=lambda _, *bounds: steps.append((process_time() - began, *bounds)),
    )
    steps.append((process_time() - began, found.lower_bound, found.objective))
    return _told(steps, found.proved)


def _scip(problem: SampleProblem, limit: float) -> dict:
    import pyscipopt

    watched = (pyscipopt.SCIP_EVENTTYPE.BESTSOLFOUND, pyscipopt.SCIP_EVENTTYPE.NODESOLVED)
    steps: list[tuple[float, float, float]] = []

    class Watch(pyscipopt.Eventhdlr):
        def eventinit(self) -> None:
            for kind in watched:
                self.model.catchEvent(kind, self)

        def eventexec(self, _) -> None:
            steps.append((process_time() - began, self.model.getDualbound(), self.model.getPrimalbound()))

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("timing/clocktype", 1)  # the processor's
    model.setParam("limits/time", limit)
    model.setParam("limits/gap", 1e-6)
    _write(model, problem)
    model.includeEventhdlr(Watch(), "watch", "bounds over time")
    began = process_time()
    model.optimize()
    best = model.getObjVal() if model.getNSols() else np.inf
    steps.append((process_time() - began, model.getDualbound(), best))
    return _told(steps, model.getStatus() in ("optimal", "gaplimit"))


def _write(model, problem: SampleProblem) -> None:
    import pyscipopt

    d, m = problem.size, problem.values.size
    factor = np.linalg.qr(np.column_stack([problem.signs, problem.values]) / np.sqrt(m), mode="r")
    u = [model.addVar(lb=-1.0, ub=1.0) for _ in range(d)]
    used = [model.addVar(vtype="B") for _ in range(d)]
    residuals = [model.addVar(lb=None) for _ in range(len(factor))]
    loss = model.addVar(lb=0.0)
    for row, residual in zip(factor, residuals, strict=True):
        places = np.flatnonzero(row[:d])
        model.addCons(pyscipopt.quicksum(row[i] * u[i] for i in places) - row[d] == residual)
    model.addCons(pyscipopt.quicksum(r * r for r in residuals) <= loss)
    model.addCons(pyscipopt.quicksum(u) == problem.target)
    model.addCons(pyscipopt.quicksum(used) <= K)
    for one, switch in zip(u, used, strict=True):
        model.addCons(one <= switch)
        model.addCons(-one <= switch)
    model.setObjective(loss, "minimize")


def _told(steps: list[tuple[float, float, float]], proved: bool) -> dict:
    """The end, and the gap over time at the points where it moves."""
    path, last = [], np.inf
    for seconds, lower, best in steps:
        gap = 1.0 if not np.isfinite(best) else max(0.0, (best - max(lower, 0.0)) / best) if best else 0.0
        if last - gap > _STEP or (seconds, lower, best) == steps[-1]:
            path.append([round(seconds, 4), round(gap, 5)])
            last = gap
    seconds, lower, best = steps[-1]
    return {"seconds": seconds, "lower": lower, "objective": best, "proved": bool(proved), "path": path}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--out", type=Path, default=HERE / "solvers.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
