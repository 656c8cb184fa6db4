"""Facts that hold for certain: how many, in what time, and whether enumeration and a search contradict them.

``python -m benchmarks certain``. Forests of 100 trees of depth 10 and XGBoost of 300 trees of
depth 6 are explained at rows that they were not fitted to. An optimiser that knows nothing but the model's
own ``predict_proba`` then looks for rows with the same facts and another class: it mutates the best of a
population, within the domain. Small models are compared with the enumeration of all rows and of all sets of
columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import limes
from benchmarks.data import table_path
from benchmarks.progress import say
from benchmarks.speed.run import machine
from limes._rules.certain import FactSets

ROWS, LIMIT = 30, 10.0
# Rows that the optimiser asks about, in all, and in one generation
SEARCHED, GENERATION = 10_000_000, 4000
# Seconds of a minimal set in the median, and share of rows whose smallest set is proved in the time limit
GOAL, SHARE = 0.5, 0.5
TABLES = {
    "wine_quality_white": lambda y: y >= 6,
    "california_housing": lambda y: y > y.median(),
    "german_credit": lambda y: y == "bad",
}
MODELS = {
    "forest 100 x 10": lambda: RandomForestClassifier(100, max_depth=10, random_state=0),
    "XGBoost 300 x 6": lambda: XGBClassifier(n_estimators=300, max_depth=6, n_jobs=1, random_state=0),
}
# Instances that are enumerated
ENUMERATED = 500


@dataclass
class Case:
    """A fitted model, its background and rows to explain."""

    table: str
    name: str
    model: Any
    background: pd.DataFrame
    rows: pd.DataFrame


def measure(cases: str = "") -> dict[str, Any]:
    """A line a model, and what enumeration says of small ones."""
    lines = []
    for case in cases_of(cases):
        say(f"certain facts: {case.table}, {case.name}")
        lines.append(_measured(case))
    say("certain facts: enumeration")
    return {
        "machine": machine(),
        "limit": LIMIT,
        "goal": GOAL,
        "share": SHARE,
        "searched": SEARCHED,
        "cases": lines,
        "enumerated": _enumerated(),
    }


def cases_of(wanted: str) -> Iterator[Case]:
    for (table, of_target), (name, model) in product(TABLES.items(), MODELS.items()):
        if wanted not in table:
            continue
        path = table_path(table)
        x = pd.read_csv(path, keep_default_na=False, na_values=[""])
        y = np.asarray(of_target(x.pop("target"))).astype(int)
        order = np.random.default_rng(0).permutation(len(x))
        train, test = order[:-ROWS], order[-ROWS:]
        texts = [c for c in x if not pd.api.types.is_numeric_dtype(x[c])]
        fitted: Any = model()
        if texts:
            encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
            fitted = make_pipeline(make_column_transformer((encoder, texts), remainder="passthrough"), fitted)
        fitted.fit(x.iloc[train], y[train])
        yield Case(table, name, fitted, x.iloc[train], x.iloc[test])


def _measured(case: Case) -> dict[str, Any]:
    domain = limes.Domain.fit(case.background, orders=[], one_hot=[])
    explainer = limes.SparseExplainer(
        case.model, domain=domain, objective="certain", time_limit=LIMIT, fresh=100
    )
    explainer(case.rows.iloc[:1], progress=False)  # the model is read once
    result: dict[str, Any] = {
        name: [] for name in ("facts", "lower", "minimal", "smallest", "confirmed", "seconds", "contradicted")
    }
    rng = np.random.default_rng(0)
    for i in range(len(case.rows)):
        row = case.rows.iloc[[i]]
        began = process_time()
        certificate = explainer(row, progress=False).certificate
        result["seconds"].append(process_time() - began)
        result["facts"].append(len(certificate.columns))
        result["lower"].append(int(certificate.lower_bound))
        result["minimal"].append(certificate.minimal)
        result["smallest"].append(certificate.smallest)
        result["confirmed"].append(_confirmed(case, row, certificate))
        each = SEARCHED // (len(TABLES) * len(MODELS) * ROWS) + 1
        result["contradicted"].append(_contradicted(case, row, certificate.columns, domain, each, rng))
    first = _first_sets(case)
    return {"table": case.table, "model": case.name, "columns": case.rows.shape[1], **result, **first}


def _first_sets(case: Case) -> dict[str, Any]:
    """Minimal sets alone: the search for a smallest one is left out."""
    domain = limes.Domain.fit(case.background, orders=[], one_hot=[])
    explainer = limes.SparseExplainer(
        case.model, domain=domain, objective="certain", time_limit=LIMIT, fresh=100
    )
    explainer(case.rows.iloc[:1], progress=False)
    result: dict[str, Any] = {"first minimal": [], "first facts": [], "first seconds": []}
    for i in range(len(case.rows)):
        began = process_time()
        with patch.object(FactSets, "_smallest", lambda self, best: (best, 0)):  # noqa: ARG005 - its signature
            certificate = explainer(case.rows.iloc[[i]], progress=False).certificate
        result["first seconds"].append(process_time() - began)
        result["first minimal"].append(certificate.minimal)
        result["first facts"].append(len(certificate.columns))
    return result


def _confirmed(case: Case, row: pd.DataFrame, certificate: Any) -> int:
    """Count counterexamples that share all other facts and have the other class by ``predict``."""
    if not certificate.counterexamples:
        return 0
    rows = pd.DataFrame(certificate.counterexamples, columns=row.columns).astype(row.dtypes)
    others = case.model.predict(rows) != case.model.predict(row)[0]
    changed = (rows[list(certificate.columns)].to_numpy() != row[list(certificate.columns)].to_numpy()).sum(
        axis=1
    )
    return int((others & (changed == 1)).sum())


def _contradicted(
    case: Case,
    row: pd.DataFrame,
    columns: tuple[str, ...],
    domain: Any,
    number: int,
    rng: np.random.Generator,
) -> int:
    """Count rows with the facts and another class, among ``number`` that an optimiser asks about."""
    free = [c for c in row if c not in columns]
    if not free:
        return 0
    label = case.model.predict(row)[0]
    pool = {c: case.background[c].to_numpy() for c in free}

    def drawn(column: str, size: int) -> np.ndarray:
        values = pool[column]
        chosen = rng.choice(values, size)
        j = list(row.columns).index(column)
        if domain.columns[j].levels is None and not domain.columns[j].whole:
            apart = rng.uniform(domain.columns[j].low, domain.columns[j].high, size)
            chosen = np.where(rng.random(size) < 0.5, chosen, apart)
        return chosen

    best = pd.concat([row] * 64, ignore_index=True)
    calls = contradicted = 0
    while calls < number:
        size = min(GENERATION, number - calls)
        rows = best.iloc[rng.integers(0, len(best), size)].reset_index(drop=True)
        share = rng.choice([0.1, 0.3, 1.0])
        for column in free:
            change = rng.random(size) < share
            rows[column] = np.where(change, drawn(column, size), rows[column].to_numpy())
        rows = rows.astype(row.dtypes)
        chance = case.model.predict_proba(rows)[:, label]
        contradicted += int((chance < 0.5).sum())
        best = rows.iloc[np.argsort(chance, kind="stable")[:64]]
        calls += size
    return contradicted


# -- small models, by enumeration ---------------------------------------------------------------------------

SMALL = {
    "tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": lambda: RandomForestClassifier(10, max_depth=5, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=20, random_state=0),
    "XGBoost": lambda: XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1),
    "logistic": lambda: LogisticRegression(),
}
LEVELS, WIDTHS = 3, (5, 6, 7, 8)


def _enumerated() -> dict[str, int]:
    """Count instances, and those whose facts are sufficient, minimal and smallest by enumeration."""
    counts = dict.fromkeys(
        ("instances", "sufficient", "said minimal", "minimal", "said smallest", "smallest"), 0
    )
    seed = 0
    while counts["instances"] < ENUMERATED:
        rng = np.random.default_rng(seed)
        d = WIDTHS[seed % len(WIDTHS)]
        x = rng.integers(0, LEVELS, (150, d)).astype(float)
        score = x[:, 0] - x[:, 1] + (x[:, 2] > 1) * x[:, 3] + 0.5 * x[:, 4] + 0.5 * rng.normal(size=len(x))
        model = [*SMALL.values()][seed % len(SMALL)]().fit(x, (score > np.median(score)).astype(int))
        every = np.array([*product(np.arange(float(LEVELS)), repeat=d)])
        classes = model.predict(every)
        explainer = limes.SparseExplainer(
            model, domain=limes.Domain.fit(x, orders=[], one_hot=[]), objective="certain", fresh=20
        )
        chosen = x[rng.choice(len(x), 5, replace=False)]
        explanation = explainer(chosen, progress=False)
        for i, row in enumerate(chosen):
            if counts["instances"] < ENUMERATED:
                _count(
                    counts, explanation[i].certificate, row, model.predict(row[None, :])[0], every, classes
                )
        seed += 1
    return counts


def _count(
    counts: dict[str, int],
    certificate: Any,
    row: np.ndarray,
    label: Any,
    every: np.ndarray,
    classes: np.ndarray,
) -> None:
    columns = [int(name[1:]) for name in certificate.columns]

    def is_sufficient(kept: Any) -> bool:
        shares = (every[:, [*kept]] == row[[*kept]]).all(axis=1)
        return bool((classes[shares] == label).all())

    counts["instances"] += 1
    counts["sufficient"] += certificate.proved and is_sufficient(columns)
    counts["said minimal"] += certificate.minimal
    counts["minimal"] += certificate.minimal and not any(
        is_sufficient([j for j in columns if j != dropped]) for dropped in columns
    )
    counts["said smallest"] += certificate.smallest
    counts["smallest"] += certificate.smallest and not any(
        is_sufficient(kept) for kept in combinations(range(row.size), max(0, len(columns) - 1))
    )
