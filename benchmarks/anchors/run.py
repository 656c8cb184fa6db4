"""Anchors of limes and of their authors' program, under one law: rows of the table in which facts hold.

``python -m benchmarks anchors``; anchor is ``pip install anchor-exp``. Its search runs as its
``AnchorTabularExplainer`` runs it, with its own options, and facts about quartiles. limes has as many facts
for the comparison of errors, and the fewest that it can certify for that of promises. A sampler of this file
draws the rows that judge both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier

import limes
from benchmarks.data import table_path
from benchmarks.progress import say
from benchmarks.speed.run import machine

ROWS, MOST, BACKGROUND, DRAWN = 8, 6000, 1000, 10_000
PROMISE = 0.05
TARGETS = {
    "wine_quality_white": lambda y: y >= 6,
    "titanic": lambda y: y == 1,
    "german_credit": lambda y: y == "bad",
}

# The (low, high] of each column with a fact; of a category both are its code
Sides = dict[int, tuple[float, float]]


@dataclass
class Case:
    """A forest, its background, which columns are categories, and rows to explain."""

    table: str
    model: Any
    background: np.ndarray
    categories: list[int]
    rows: np.ndarray
    calls: int = 0

    def chance(self, rows: np.ndarray) -> np.ndarray:
        self.calls += len(rows)
        return np.asarray(self.model.predict_proba(rows)[:, 1])

    def label(self, rows: np.ndarray) -> np.ndarray:
        return (self.chance(rows) >= 0.5).astype(int)


def measure(cases: str = "") -> dict[str, Any]:
    """A line a table, with a number a row."""
    lines = []
    for case in _cases(cases):
        say(f"anchors: {case.table}")
        lines.append(_compared(case))
    return {"machine": machine(), "promise": PROMISE, "drawn": DRAWN, "cases": lines}


def _cases(wanted: str) -> Iterator[Case]:
    for table in ("breast_cancer", "wine", *TARGETS):
        if wanted not in table:
            continue
        if table in TARGETS:
            path = table_path(table)
            x = pd.read_csv(path, keep_default_na=False, na_values=[""]).head(MOST)
            y = np.asarray(TARGETS[table](x.pop("target")))
        else:
            load = load_breast_cancer if table == "breast_cancer" else load_wine
            x, target = load(return_X_y=True, as_frame=True)
            y = np.asarray(target == 1)
        texts = [j for j, kind in enumerate(x.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
        for j in texts:
            x.isetitem(j, x.iloc[:, j].factorize()[0])
        matrix = x.fillna(x.median()).to_numpy(dtype=float)
        order = np.random.default_rng(0).permutation(len(x))
        train, test = order[: -len(x) // 4], order[-ROWS:]
        model = RandomForestClassifier(20, min_samples_leaf=2, random_state=0).fit(matrix[train], y[train])
        yield Case(table, model, matrix[train[:BACKGROUND]], texts, matrix[test])


def _compared(case: Case) -> dict[str, Any]:
    names = [f"x{j}" for j in case.categories]
    literals = limes.Literals.fit(case.background, encoding="thresholds", categorical=names)
    reference = _reference(case)
    result: dict[str, Any] = {
        who: {"facts": [], "error": [], "disagree": [], "coverage": [], "calls": [], "seconds": []}
        for who in ("anchor", "same size", "asked", "promise")
    }
    result["promise"]["kept"] = []
    limes.SparseExplainer(case.model, literals=literals, law="background", objective="class", output=1, k=1)(
        case.rows[:1], progress=False
    )  # kernels and caches
    for i, row in enumerate(case.rows):
        sides = _timed(case, result["anchor"], lambda row=row, i=i: reference(row, i))
        _judge(case, row, sides, result["anchor"])
        size = max(1, len(sides))
        for who, model in (("same size", case.model), ("asked", case.chance)):
            sides = _timed(
                case,
                result[who],
                lambda model=model, row=row, size=size: _rule(model, literals, row, k=size)[0],
            )
            _judge(case, row, sides, result[who])
        sides, kept = _timed(
            case,
            result["promise"],
            lambda row=row: _rule(case.model, literals, row, k="smallest", error=PROMISE),
        )
        _judge(case, row, sides, result["promise"])
        result["promise"]["kept"].append(kept)
    return {"table": case.table, "columns": case.rows.shape[1], **result}


def _timed(case: Case, record: dict[str, list[float]], search: Callable[[], Any]) -> Any:
    case.calls, began = 0, process_time()
    answer = search()
    record["seconds"].append(process_time() - began)
    record["calls"].append(case.calls)
    return answer


def _judge(case: Case, row: np.ndarray, sides: Sides, record: dict[str, list[float]]) -> None:
    """Note the share of another class, in rows of the law and in the table's own with the facts."""
    label = case.label(row[None])[0]
    record["facts"].append(len(sides))
    record["error"].append(float((case.label(_drawn(case.background, sides)) != label).mean()))
    holds = np.all([_inside(case.background[:, j], *ends) for j, ends in sides.items()], axis=0)
    rows = case.background[holds] if sides else case.background
    record["coverage"].append(len(rows) / len(case.background))
    record["disagree"].append(float((case.label(rows) != label).mean()) if len(rows) else None)


def _inside(x: np.ndarray, low: float, high: float) -> np.ndarray:
    return x == low if low == high else (x > low) & (x <= high)


def _drawn(table: np.ndarray, sides: Sides) -> np.ndarray:
    """Rows of the table; where one lacks a fact, a value of the table that has it."""
    rng = np.random.default_rng(99)
    rows = table[rng.integers(len(table), size=DRAWN)]
    for j, ends in sides.items():
        has = table[_inside(table[:, j], *ends), j]
        lacks = ~_inside(rows[:, j], *ends)
        rows[lacks, j] = rng.choice(has, int(lacks.sum()))
    return rows


def _reference(case: Case) -> Callable[[np.ndarray, int], Sides]:
    from anchor.anchor_base import AnchorBaseBeam
    from anchor.anchor_tabular import AnchorTabularExplainer

    table = case.background
    categories = {j: [str(v) for v in range(int(table[:, j].max()) + 1)] for j in case.categories}
    names = [f"x{j}" for j in range(table.shape[1])]
    explainer = AnchorTabularExplainer(["0", "1"], names, table, categories)
    cuts = {
        j: np.unique(np.percentile(table[:, j], [25, 50, 75]))
        for j in range(table.shape[1])
        if j not in categories
    }

    def explain(row: np.ndarray, seed: int) -> Sides:
        np.random.seed(seed)  # noqa: NPY002 - anchor's own generator
        sample, mapping = explainer.get_sample_fn(row, case.label)
        options = {"delta": 0.1, "epsilon": 0.15, "batch_size": 100, "desired_confidence": 1.0 - PROMISE}
        chosen = AnchorBaseBeam.anchor_beam(sample, max_anchor_size=None, **options)
        sides: Sides = {}
        for j, kind, place in (mapping[i] for i in chosen["feature"]):
            low, high = sides.get(j, (-np.inf, np.inf))
            if kind == "eq":
                low = high = float(row[j])
            elif kind == "leq":
                high = min(high, float(cuts[j][place]))
            else:
                low = max(low, float(cuts[j][place]))
            sides[j] = (low, high)
        return sides

    return explain


def _rule(model: Any, literals: limes.Literals, row: np.ndarray, **size: Any) -> tuple[Sides, bool]:
    """The facts of limes, and whether it certifies what was promised."""
    which = {"output": 1} if hasattr(model, "predict_proba") else {"threshold": 0.5}
    explainer = limes.SparseExplainer(
        model, literals=literals, law="background", objective="class", rng=0, **which, **size
    )
    certificate = explainer(row[None], progress=False).certificate
    near, sides = literals.draws(row, "background"), {}
    for fact in certificate.facts:
        literal = near.texts.index(fact)
        j, cells = int(near.varying[literal]), np.flatnonzero(near.cells[literal])
        column = literals.columns[j].law.cells
        if hasattr(column, "edges"):
            ends = np.asarray(column.edges, dtype=float)
            low = -np.inf if cells[0] == 0 else float(ends[cells[0]])
            high = np.inf if cells[-1] == len(ends) - 2 else float(ends[cells[-1] + 1])
            sides[j] = (low, high)
        else:
            sides[j] = (float(row[j]), float(row[j]))
    return sides, certificate.certified == "class"
