"""Facts chosen by anchor, by least squares and as rules that hold: how often the prediction moves.

``python -m benchmarks holding``; anchor is ``pip install --no-deps anchor-exp``. All three see
the same facts, rows and law: anchor's own beam search (``AnchorBaseBeam``, with the options that it has for
tables) draws its rows from the neighbourhood of limes. It decides how many facts a row has, and the others
choose as many. Of regressions anchor keeps |f(z) - f(x)| within half a standard deviation of the answers.
Errors are those of rows that no method has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from benchmarks.data import table_path
from benchmarks.progress import say
from benchmarks.speed.run import machine

SPREAD, MOST_FACTS = 0.0, 4
ROWS, MOST, BACKGROUND, CHECKED = 50, 6000, 1000, 5000
# Facts of a forest of 60 columns in a second
WIDE, WIDE_FACTS, WIDE_ROWS, GOAL = 60, 4, 20, 1.0

CLASSIFIERS = {
    "adult": (lambda y: y == ">50K", RandomForestClassifier(20, min_samples_leaf=5, random_state=0)),
    "german_credit": (lambda y: y == "bad", make_pipeline(StandardScaler(), LogisticRegression(C=0.1))),
    "titanic": (lambda y: y == 1, HistGradientBoostingClassifier(max_iter=40, random_state=0)),
    "wine_quality_white": (
        lambda y: y >= 6,
        make_pipeline(StandardScaler(), MLPClassifier((30,), early_stopping=True, random_state=0)),
    ),
    "online_news_popularity": (
        lambda y: y > y.median(),
        HistGradientBoostingClassifier(max_iter=40, random_state=0),
    ),
}
REGRESSIONS = {
    "airfoil_self_noise": make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(30, 30), early_stopping=True, random_state=0)
    ),
    "autompg_full": RandomForestRegressor(20, min_samples_leaf=3, random_state=0),
    "california_housing": HistGradientBoostingRegressor(max_iter=60, random_state=0),
    "student_performance": GradientBoostingRegressor(n_estimators=50, max_depth=3, random_state=0),
    "boston_housing": make_pipeline(StandardScaler(), Ridge()),
}


@dataclass
class Case:
    """A model as a function of rows, the facts about its columns, and rows to explain."""

    table: str
    kind: str  # "class" or "precision", the objective
    answer: Callable[[np.ndarray], np.ndarray]
    literals: limes.Literals
    rows: np.ndarray
    tolerance: float  # of |f(z) - f(x)| for anchor, where it is no class that changes
    calls: int = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.calls += len(x)
        return self.answer(x)

    def losses(self, answers: np.ndarray, target: float) -> np.ndarray:
        """Return what a rule minimises the mean of; in standard deviations for regressions."""
        if self.kind == "class":
            return ((answers >= 0.5) != (target >= 0.5)) * 1.0
        return np.abs(answers - target) / (2.0 * self.tolerance)

    def moves(self, answers: np.ndarray, target: float) -> np.ndarray:
        """Return what anchor avoids."""
        if self.kind == "class":
            return (answers >= 0.5) != (target >= 0.5)
        return np.abs(answers - target) > self.tolerance


def measure(cases: str = "") -> dict:
    """A line a table: errors, facts, calls and seconds, a number a row of each method."""
    lines = []
    for case in _cases():
        if cases in case.table:
            say(f"rules that hold: {case.table}")
            lines.append(_compared(case))
    return {"machine": machine(), "spread": SPREAD, "cases": lines, "wide": _wide(), "goal": GOAL}


def _cases() -> Iterator[Case]:
    for table in (*CLASSIFIERS, *REGRESSIONS):
        path = table_path(table)
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""]).head(MOST)
        y, x = frame.pop("target"), frame
        texts = [j for j, kind in enumerate(x.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
        for j in texts:
            x.isetitem(j, x.iloc[:, j].factorize()[0])  # categories as codes: one matrix for all methods
        matrix = x.fillna(x.median()).to_numpy(dtype=float)
        order = np.random.default_rng(0).permutation(len(x))
        train, test = order[: -len(x) // 4], order[-ROWS:]
        is_class = table in CLASSIFIERS
        of_target, model = CLASSIFIERS[table] if is_class else (lambda y: y, REGRESSIONS[table])
        fitted = model.fit(matrix[train], np.asarray(of_target(y))[train])
        names = [f"x{j}" for j in texts]
        literals = limes.Literals.fit(matrix[train[:BACKGROUND]], categorical=names)

        def answer(rows: np.ndarray, model: Any = fitted, is_class: bool = is_class) -> np.ndarray:
            return model.predict_proba(rows)[:, 1] if is_class else model.predict(rows)

        tolerance = 0.5 * float(answer(matrix[train[:BACKGROUND]]).std())
        yield Case(table, "class" if is_class else "precision", answer, literals, matrix[test], tolerance)


def _compared(case: Case) -> dict[str, Any]:
    facts: list[int] = []
    results: dict[str, Any] = {name: {"error": [], "calls": [], "seconds": []} for name in METHODS}
    for i, row in enumerate(case.rows):
        chosen, spent, size = {}, {}, MOST_FACTS
        for name, choose in METHODS.items():
            case.calls, began = 0, process_time()
            chosen[name] = choose(case, row, size, i)
            spent[name] = case.calls, process_time() - began
            size = len(chosen["anchor"])
            if not size:
                break
        else:
            facts.append(size)
            errors = _errors(case, row, chosen)
            for name, (calls, seconds) in spent.items():
                results[name]["error"].append(errors[name])
                results[name]["calls"].append(calls)
                results[name]["seconds"].append(seconds)
    return {"table": case.table, "kind": case.kind, "columns": len(case.rows[0]), "facts": facts, **results}


def _errors(case: Case, row: np.ndarray, chosen: dict[str, tuple[int, ...]]) -> dict[str, float]:
    """Mean loss of each method's facts in fresh rows of the law, with the same random numbers for all."""
    near = case.literals.changes(row, SPREAD)
    target, errors = float(case.answer(row[None])[0]), {}
    for name, facts in chosen.items():
        rng = np.random.default_rng(99)
        flips = near.law.flips(rng, CHECKED)
        flips[:, np.isin(near.varying, facts)] = False
        errors[name] = float(case.losses(case.answer(near.rows(flips, rng)), target).mean())
    return errors


def _anchor(case: Case, row: np.ndarray, size: int, seed: int) -> tuple[int, ...]:
    from anchor.anchor_base import AnchorBaseBeam

    near, rng = case.literals.changes(row, SPREAD), np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002 - anchor's own generator
    target = float(case(row[None])[0])

    def sample(
        present: list[int], number: int, compute_labels: bool = True
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        flips = near.law.flips(rng, number)
        flips[:, list(present)] = False
        rows = near.rows(flips, rng)
        labels = (~case.moves(case(rows), target)).astype(int) if compute_labels else []
        return rows, (~flips).astype(int), labels

    anchor = AnchorBaseBeam.anchor_beam(
        sample, delta=0.1, epsilon=0.15, batch_size=100, desired_confidence=0.95, beam_size=4,
        max_anchor_size=size,
    )  # fmt: skip
    return tuple(near.varying[list(anchor["feature"])].tolist())


def _rule(case: Case, row: np.ndarray, size: int, objective: str) -> tuple[int, ...]:
    options = {"threshold": 0.5} if objective == "class" else {}
    explainer = limes.SparseExplainer(
        case, literals=case.literals, k=size, spread=SPREAD, objective=objective, **options
    )
    rule = explainer(row[None], progress=False)
    facts = rule.certificate.facts
    return tuple(j for j, condition in enumerate(rule.conditions[0]) if condition in facts)


METHODS: dict[str, Callable[[Case, np.ndarray, int, int], tuple[int, ...]]] = {
    "anchor": _anchor,
    "least squares": lambda case, row, size, _: _rule(case, row, size, "fidelity"),
    "holds": lambda case, row, size, _: _rule(case, row, size, case.kind),
}


def _wide() -> dict[str, Any]:
    """Seconds of a rule of four facts of 60, of a forest that is read."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, WIDE))
    y = x[:, 0] * x[:, 1] + x[:, 2] * (x[:, 5] > 0) + 0.7 * x[:, 3] + 0.2 * x[:, :12] @ rng.normal(size=12)
    model = RandomForestRegressor(100, max_depth=10, random_state=0).fit(x, y)
    explainer = limes.SparseExplainer(
        model, literals=limes.Literals.fit(x), k=WIDE_FACTS, objective="precision"
    )
    explainer(x[:1])
    seconds, proved = [], []
    for i in range(WIDE_ROWS):
        began = process_time()
        proved.append(explainer(x[i : i + 1], progress=False).certificate.proved)
        seconds.append(process_time() - began)
    return {"columns": WIDE, "facts": WIDE_FACTS, "seconds": seconds, "proved": proved}
