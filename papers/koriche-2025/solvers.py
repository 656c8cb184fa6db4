"""Koriche et al. 2025, Table 4 and Figure 8 beside other solvers: limes's search, SCIP and Gurobi.

    python papers/koriche-2025/solvers.py                     # an instance of each set and law, 60 s a solver
    python papers/koriche-2025/solvers.py --limit 10 --instances 10

All get the same instances, one after the other, on one thread; instances after the first are for Figure 8
(count law, without SCIP). limes is called as users call it, ``SparseExplainer(time_limit=...)``, with limits
that double: its curve are the certificates, its seconds those of the longest call. The rows that it asked the
network about are the others' problem. Seconds are the processor's, and writing a model down is not counted.
SCIP gets squares of min(m, d) residuals, from a QR factorisation of the rows, Gurobi the same residuals in
its objective; |u_i| <= t_i, t_i in {0, 1}. HiGHS and CBC take no quadratic
objective with whole numbers. Gurobi's free licence takes quadratic problems of up to 200 variables; a solver
that is not installed, or refuses a problem, is left out.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from run import FEW, SAMPLES, SPREAD, K
from sets import available, prepared
from tqdm.auto import tqdm

from explainers import Setting, rule

FOLDER = Path(__file__).parent
# First limit of limes's search; each is twice the one before
_FIRST = 0.01
# A curve has a point where its gap has fallen by this share, and its last
_STEP = 0.02


def main() -> None:
    """Run all, write ``solvers.json``."""
    options = _options()
    measured = []
    for file in tqdm([f for f in available() if not options.sets or f in options.sets]):
        task = prepared(file)
        for law, count in {"literal": 1, "count": options.instances}.items():
            for i in range(count):
                problem = Problem.of(task, Setting(law, K, SPREAD, SAMPLES, FEW, options.limit, i))
                solvers = {
                    name: solve(problem, options.limit)
                    for name, solve in SOLVERS.items()
                    if i == 0 or name != "SCIP"
                }
                measured.append(
                    {
                        "set": file,
                        "law": law,
                        "instance": i,
                        "literals": problem.size,
                        "solvers": {name: end for name, end in solvers.items() if end is not None},
                    }
                )
                _write(options, measured)


def _write(options, measured) -> None:
    lines = ",\n".join(map(json.dumps, measured))
    options.out.write_text(f'{{"limit": {options.limit:g}, "instances": [\n{lines}\n]}}\n')


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows that a rule of limes was fitted on, as signs and answers, and the network."""

    task: Any
    x: np.ndarray
    setting: Setting
    signs: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, task, setting: Setting):
        x, batches = task.instance(setting.seed), []

        def watched(z):
            answers = task.predict(z)
            batches.append((z, answers))
            return answers

        rule(replace(task, predict=watched), x, "iht", setting)
        ((rows, values),) = [batch for batch in batches if len(batch[0]) == setting.samples]
        return cls(task, x, setting, rows * x, values)

    @property
    def size(self) -> int:
        return self.x.size

    @property
    def target(self) -> float:
        return float(self.task.predict(self.x[None])[0])


def _limes(problem, limit: float) -> dict:
    steps, seconds = [], min(_FIRST, limit)
    while True:
        began = process_time()
        setting = replace(problem.setting, limit=seconds)
        certificate = rule(problem.task, problem.x, "optimum", setting).certificate
        longest = max([process_time() - began, *(step[0] for step in steps)])
        steps.append((longest, certificate.lower_bound, certificate.objective))
        if certificate.proved or seconds >= limit:
            return _end(steps, certificate.proved)
        seconds = min(2 * seconds, limit)


def _scip(problem, limit: float) -> dict | None:
    try:
        import pyscipopt
    except ImportError:
        return None

    watched = (pyscipopt.SCIP_EVENTTYPE.BESTSOLFOUND, pyscipopt.SCIP_EVENTTYPE.NODESOLVED)
    steps: list[tuple[float, float, float]] = []

    class RefitDetector(pyscipopt.Eventhdlr):
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
    _formulate(model, problem)
    model.includeEventhdlr(RefitDetector(), "watch", "bounds over time")
    began = process_time()
    model.optimize()
    best = model.getObjVal() if model.getNSols() else np.inf
    steps.append((process_time() - began, model.getDualbound(), best))
    return _end(steps, model.getStatus() in ("optimal", "gaplimit"))


def _formulate(model, problem) -> None:
    import pyscipopt

    d, factor = problem.size, _factor(problem)
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


def _gurobi(problem, limit: float) -> dict | None:
    try:
        import gurobipy
    except ImportError:
        return None
    d, factor = problem.size, _factor(problem)
    model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0}))
    u, used = model.addMVar(d, lb=-1.0, ub=1.0), model.addMVar(d, vtype="B")
    residual = factor[:, :d] @ u - factor[:, d]
    model.setObjective(residual @ residual)
    model.addConstr(u.sum() == problem.target)
    model.addConstr(used.sum() <= K)
    model.addConstr(u <= used)
    model.addConstr(-u <= used)
    for parameter, value in {"Threads": 1, "TimeLimit": limit, "MIPGap": 1e-6}.items():
        model.setParam(parameter, value)
    steps: list[tuple[float, float, float]] = []

    def watch(model, where) -> None:
        if where == gurobipy.GRB.Callback.MIP:
            bounds = (gurobipy.GRB.Callback.MIP_OBJBND, gurobipy.GRB.Callback.MIP_OBJBST)
            lower, best = map(model.cbGet, bounds)
            steps.append((process_time() - began, lower, best if best < gurobipy.GRB.INFINITY else np.inf))

    began = process_time()
    try:
        model.optimize(watch)
    except gurobipy.GurobiError:
        return None  # larger than the free licence takes
    best = model.ObjVal if model.SolCount else np.inf
    steps.append((process_time() - began, model.ObjBound, best))
    return _end(steps, model.Status == gurobipy.GRB.OPTIMAL)


def _factor(problem):
    """R of the rows' QR factorisation, answers last, (·, d + 1): ‖R(u, -1)‖² is the mean square."""
    rows = np.column_stack([problem.signs, problem.values]) / np.sqrt(problem.values.size)
    return np.linalg.qr(rows, mode="r")


SOLVERS = {"limes": _limes, "SCIP": _scip, "Gurobi": _gurobi}


def _end(steps: list[tuple[float, float, float]], proved: bool) -> dict:
    """The end, and the bounds over time at the points where the gap moves."""
    path, last = [], np.inf
    for seconds, lower, best in steps:
        gap = 1.0 if not np.isfinite(best) else max(0.0, (best - max(lower, 0.0)) / best) if best else 0.0
        if np.isfinite(best) and (last - gap > _STEP or (seconds, lower, best) == steps[-1]):
            path.append([round(seconds, 4), float(f"{max(lower, 0.0):.4g}"), float(f"{best:.5g}")])
            last = gap
    seconds, lower, best = steps[-1]
    return {"seconds": seconds, "lower": lower, "objective": best, "proved": bool(proved), "path": path}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FOLDER / "solvers.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
