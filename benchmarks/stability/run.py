"""Explain the same rows with many seeds: limes, limes where it must sample, and ``lime``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from lime.lime_tabular import LimeTabularExplainer

import limes
from benchmarks.accuracy.cases import Case, boosted, forest, perceptron
from benchmarks.accuracy.tables import TABLES, numbers
from benchmarks.pool import processes
from benchmarks.progress import say
from benchmarks.speed.cases import AbsentError
from benchmarks.speed.run import machine
from benchmarks.stability import texts

SEEDS = 20
ROWS = 3
_STRONGEST = 5

MODELS = {
    "random forest, Boston": (forest, partial(numbers, "boston_housing")),
    "random forest, diabetes": (forest, TABLES["diabetes"]),
    "MLP, diabetes": (perceptron, TABLES["diabetes"]),
    "boosted trees, breast cancer": (boosted, TABLES["breast cancer"]),
}

# Features of a run, and whether it says that their order is not certain
Run = tuple[frozenset[Any], bool]


def measure(seeds: int = SEEDS, cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name."""
    names = [name for name in (*MODELS, texts.NAME) if cases.lower() in name.lower()]
    with processes() as pool:
        result = []
        for case in pool.map(_measured, names, [seeds] * len(names)):
            result.append(case)
            say(case["case"])
    say("done\n")
    return {"machine": machine(), "seeds": seeds, "rows": ROWS, "cases": result}


def _measured(name: str, seeds: int) -> dict:
    """A case, or why it is absent."""
    try:
        return _texts(seeds) if name == texts.NAME else _table(name, seeds)
    except AbsentError as reason:
        return {"case": name, "absent": str(reason)}


def _texts(seeds: int) -> dict:
    ours, theirs, words = texts.runs(seeds)
    return {
        "case": texts.NAME,
        "columns": words,
        "exact": False,
        "limes": _differing(ours),
        "limes, sampled": _differing(ours),
        "lime": _differing(theirs),
    }


def _table(name: str, seeds: int) -> dict:
    build, table = MODELS[name]
    case = build(name, table())
    ours, exact = _limes(case, case.readable or case.subject, seeds, method="auto")
    sampled = ours if not exact else _limes(case, case.subject, seeds, method="sampled")[0]
    return {
        "case": name,
        "columns": case.size,
        "exact": exact,
        "limes": _differing(ours),
        "limes, sampled": _differing(sampled),
        "lime": _differing(_lime(case, seeds)),
    }


def _rows(case: Case) -> Any:
    return case.table.X.iloc[:ROWS]


def _limes(case: Case, subject: Any, seeds: int, *, method: str) -> tuple[list[list[Run]], bool]:
    """Runs of each row at limes's defaults, and whether they are exact."""
    runs: list[list[Run]] = [[] for _ in range(ROWS)]
    for seed in range(seeds):
        explainer = limes.TabularExplainer(subject, case.table.X, output=case.output, method=method, rng=seed)
        explanation = explainer(_rows(case), progress=False)
        for i, values in enumerate(explanation.coefficients.values):
            warned = any("order" in warning for warning in explanation.row_warnings[i])
            runs[i].append((_strongest(values), warned))
    return runs, explainer.method == "exact"


def _lime(case: Case, seeds: int) -> list[list[Run]]:
    """Runs of each row at lime's defaults: 5,000 calls, ten features."""
    names, X = list(case.table.X), case.table.X.to_numpy()
    return [[(_lime_once(case, names, X, row, seed), False) for seed in range(seeds)] for row in X[:ROWS]]


def _lime_once(case: Case, names: Sequence[str], X: np.ndarray, row: np.ndarray, seed: int) -> frozenset[int]:
    import pandas as pd

    def ask(rows: np.ndarray) -> np.ndarray:
        return case.answer(pd.DataFrame(rows, columns=names))

    explanation = LimeTabularExplainer(X, mode="regression", random_state=seed).explain_instance(row, ask)
    # strongest first
    return frozenset(int(j) for j, _ in explanation.local_exp[1][:_STRONGEST])


def _strongest(values: np.ndarray) -> frozenset[int]:
    return frozenset(np.argsort(-np.abs(values), kind="stable")[:_STRONGEST].tolist())


def _differing(rows: list[list[Run]]) -> dict[str, float]:
    """Shares of pairs of runs whose features differ: in all, and without a warning in either."""
    pairs = [pair for runs in rows for pair in combinations(runs, 2)]
    return {
        "differ": _share(pairs, lambda a, b: a[0] != b[0]),
        "unwarned": _share(pairs, lambda a, b: a[0] != b[0] and not (a[1] or b[1])),
    }


def _share(pairs: list[tuple[Run, Run]], holds: Callable[[Run, Run], bool]) -> float:
    return float(np.mean([holds(a, b) for a, b in pairs]))
