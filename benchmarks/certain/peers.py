"""``python -m benchmarks.certain.peers``: facts that hold for certain beside the sufficient reasons of PyXAI.

``LIMES_DATA=... PYXAI=...``, the latter the folder of packages of an environment that has PyXAI: they come
behind those of this one. PyXAI reasons about another forest: each tree votes for the class of its leaf, where
scikit-learn and limes add up the shares in the leaves. Its facts are the sides of the trees' thresholds on
which the row lies; columns are counted. *Sufficient*: no fact can be dropped, within the time limit of limes.
*Majority*: the facts that most trees need, one order of them, without a proof that none can be dropped. The
table is printed; with ``--save`` it goes into results/certain_peers.json and pages/certain.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.metadata import distributions
from typing import Any

import numpy as np

import limes
from benchmarks import readme
from benchmarks.certain.run import LIMIT, Case, cases_of
from benchmarks.progress import say
from benchmarks.speed.run import machine

ROWS = 10


def measure(cases: str = "") -> dict[str, Any]:
    """A line a forest."""
    sys.path.append(os.environ["PYXAI"])
    arguments, sys.argv = sys.argv, sys.argv[:1]  # it reads those of the program
    from pyxai import Tools

    sys.argv = arguments
    Tools.set_verbose(0)
    lines = []
    for case in cases_of(cases):
        if "forest" in case.name:
            say(f"certain facts beside PyXAI: {case.table}")
            lines.append(_compared(case))
    (release,) = (its.version for its in distributions(name="pyxai", path=[os.environ["PYXAI"]]))
    return {"machine": machine(), "limit": LIMIT, "version": release, "cases": lines}


def _compared(case: Case) -> dict[str, Any]:
    from pyxai import Explaining, Learning

    forest, matrix, owners = _as_matrix(case)
    _, model = Learning.ModelIO.import_models(forest, instances_type="tabular")
    domain = limes.Domain.fit(case.background, orders=[], one_hot=[])
    explainer = limes.SparseExplainer(
        case.model, domain=domain, objective="certain", time_limit=LIMIT, fresh=100
    )
    explainer(case.rows.iloc[:1], progress=False)  # the model is read once
    names = ("limes", "sufficient", "majority")
    result: dict[str, Any] = {"table": case.table, "columns": case.rows.shape[1], "agree": 0}
    result |= {name: {"columns": [], "seconds": []} for name in names}
    result["smallest"] = 0
    for i in range(ROWS):
        row = case.rows.iloc[[i]]
        certificate, seconds = _timed(lambda: explainer(row, progress=False).certificate)  # noqa: B023
        _add(result["limes"], len(certificate.columns), seconds)
        result["smallest"] += certificate.smallest
        peer, start = _timed(lambda: Explaining.initialize(model, instance=matrix[i]))  # noqa: B023
        result["agree"] += int(peer.target_prediction == case.model.predict(row)[0])
        reasons = {
            "sufficient": lambda: peer.sufficient_reason(time_limit=LIMIT),  # noqa: B023
            "majority": lambda: peer.majoritary_reason(n=1, n_iterations=1),  # noqa: B023
        }
        for name, ask in reasons.items():
            reason, seconds = _timed(ask)
            columns = None if reason is None else len(_columns(peer, reason, owners))
            _add(result[name], columns, start + seconds)
    return result


def _as_matrix(case: Case) -> tuple[Any, np.ndarray, list[int]]:
    """Return the forest, the rows as it takes them, and the column of the table behind each of theirs."""
    if not hasattr(case.model, "steps"):
        matrix = case.rows.to_numpy(dtype=float)
        return case.model, matrix, [*range(matrix.shape[1])]
    encoder, forest = case.model[0], case.model[-1]
    names, owners = [*case.rows], []
    one_hot = encoder.transformers_[0]
    for name, levels in zip(one_hot[2], one_hot[1].categories_, strict=True):
        owners += [names.index(name)] * len(levels)
    owners += [j for j, name in enumerate(names) if name not in one_hot[2]]
    return forest, np.asarray(encoder.transform(case.rows), dtype=float), owners


def _columns(peer: Any, reason: Any, owners: list[int]) -> set[int]:
    """Return the columns of the table that the facts of a reason are about."""
    facts = peer.to_features(reason, details=True, eliminate_redundant_features=False)
    return {owners[fact["id"] - 1] for its in facts.values() for fact in its}


def _timed(compute: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and its seconds of CPU, those of processes that it started among them."""
    began = sum(os.times()[:4])
    result = compute()
    return result, sum(os.times()[:4]) - began


def _add(of: dict[str, list[Any]], columns: int | None, seconds: float) -> None:
    of["columns"].append(columns)
    of["seconds"].append(seconds)


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}. PyXAI {result['version']}; the first {ROWS} rows; columns and "
        f"seconds of CPU are medians; at most {result['limit']:g} s for a smallest set, and for a sufficient "
        "reason.",
        "",
        "| forest of 100 trees | columns | limes: columns | smallest proved | seconds "
        "| PyXAI, sufficient: rows | columns | seconds | majority: columns | seconds "
        "| rows with the same class |",
        "|---" * 11 + "|",
    ]
    for case in result["cases"]:
        reached = [columns for columns in case["sufficient"]["columns"] if columns is not None]
        median = f"{np.median(reached):.0f}" if reached else ""
        ours, other = case["limes"], case["majority"]
        lines.append(
            f"| {case['table']} | {case['columns']} | {np.median(ours['columns']):.0f} "
            f"| {case['smallest']} of {ROWS} | {np.median(ours['seconds']):.2f} | {len(reached)} of {ROWS} "
            f"| {median} | {np.median(case['sufficient']['seconds']):.1f} "
            f"| {np.median(other['columns']):.0f} | {np.median(other['seconds']):.1f} "
            f"| {case['agree']} of {ROWS} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certain.peers", description=__doc__)
    parser.add_argument("--cases", default="", help="only tables with this in their name")
    parser.add_argument("--save", action="store_true", help="also into results/ and pages/")
    arguments = parser.parse_args()
    result = measure(arguments.cases)
    if arguments.save:
        readme.save("certain_peers", result)
        readme.replace("certain_peers", text(result), by="benchmarks.certain.peers")
    print(text(result))


if __name__ == "__main__":
    main()
