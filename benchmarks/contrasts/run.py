"""Contrasts: the fewest columns and the cheapest change that turn a class, in what time, and how many proved.

``LIMES_DATA=... python -m benchmarks contrasts``. The models and rows are those of the part "certain". A
contrast has to flip the model's own ``predict``. An optimiser that knows nothing but ``predict`` then looks
for rows of the background's values that cost less and have another class: any such row contradicts a proof,
and one below a stated lower bound contradicts that. Small models are compared with the enumeration of all
rows, under random constraints.
"""

from __future__ import annotations

from itertools import product
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from xgboost import XGBClassifier

import limes
from benchmarks.certain.run import Case, cases_of
from benchmarks.progress import say
from benchmarks.speed.run import machine

ROWS, ANSWERS, OF_SEVERAL = 30, 3, 5
# Rows that the optimiser asks each model about for each row, and in one generation
SEARCHED, GENERATION = 20_000, 2000
# Instances that are enumerated, levels of their columns, and how many columns
ENUMERATED, LEVELS, WIDTHS = 500, 4, (4, 5, 6)
SMALL = {
    "forest": lambda: RandomForestClassifier(10, max_depth=5, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=20, random_state=0),
    "XGBoost": lambda: XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1),
    "logistic": lambda: LogisticRegression(),
    "kernels": lambda: SVC(),
}


def measure(cases: str = "") -> dict[str, Any]:
    """A line a model and objective, and what enumeration says of small ones."""
    lines = []
    for case in cases_of(cases):
        say(f"contrasts: {case.table}, {case.name}")
        lines += [_measured(case, minimize) for minimize in ("columns", "cost")]
    say("contrasts: enumeration")
    return {
        "machine": machine(),
        "answers": ANSWERS,
        "searched": SEARCHED,
        "cases": lines,
        "enumerated": _enumerated(),
    }


def _measured(case: Case, minimize: str) -> dict[str, Any]:
    explainer = limes.SparseExplainer(
        case.model, literals=limes.Literals.fit(case.background), k=1, output=1, fresh=100
    )
    explainer.contrast(case.rows.iloc[:1])  # the model is read once
    names = ("flips", "proved", "gap", "objective", "seconds", "contradicted", "several", "several proved")
    result: dict[str, Any] = {name: [] for name in (*names, "several seconds")}
    rng = np.random.default_rng(0)
    for i in range(ROWS):
        row = case.rows.iloc[[i]]
        began = process_time()
        contrast = explainer.contrast(row, minimize=minimize)
        result["seconds"].append(process_time() - began)
        result["proved"].append(contrast.proved)
        result["gap"].append(contrast.gap)
        result["objective"].append(contrast.objective)
        result["flips"].append(_flips(case, row, contrast))
        result["contradicted"].append(_contradicted(case, row, contrast, rng) if minimize == "cost" else 0)
        if i >= OF_SEVERAL:
            continue
        began = process_time()
        several = explainer.contrasts(row, ANSWERS, minimize=minimize)
        result["several seconds"].append(process_time() - began)
        result["several"].append(len(several))
        result["several proved"].append(sum(one.proved for one in several))
        result["flips"] += [_flips(case, row, one) for one in several]
    return {"table": case.table, "model": case.name, "minimize": minimize, **result}


def _flips(case: Case, row: pd.DataFrame, contrast: Any) -> bool:
    """Whether the model's own ``predict`` has another class at the changed row."""
    changed = row.copy()
    for change in contrast.changes:
        changed[change.feature] = pd.Series([change.new_value], index=row.index).astype(
            row[change.feature].dtype
        )
    return bool(case.model.predict(changed)[0] != case.model.predict(row)[0])


def _contradicted(case: Case, row: pd.DataFrame, contrast: Any, rng: np.random.Generator) -> int:
    """Count rows that cost less than the contrast's lower bound and have another class."""
    spread = {c: case.background[c].std(ddof=0) for c in row if pd.api.types.is_numeric_dtype(row[c])}
    pool = {c: case.background[c].to_numpy() for c in row}
    label, best, count = case.model.predict(row)[0], pd.concat([row] * 64, ignore_index=True), 0
    for change in contrast.changes:
        best.loc[32:, change.feature] = change.new_value
    best = best.astype(row.dtypes)
    for _ in range(SEARCHED // GENERATION):
        rows = best.iloc[rng.integers(0, len(best), GENERATION)].reset_index(drop=True)
        share = rng.choice([0.1, 0.3, 0.6])
        for column in row:
            new = np.where(
                rng.random(GENERATION) < 0.5, rng.choice(pool[column], GENERATION), row[column].iloc[0]
            )
            rows[column] = np.where(rng.random(GENERATION) < share, new, rows[column].to_numpy())
        rows = rows.astype(row.dtypes)
        cost = np.zeros(GENERATION)
        for column in row:
            value = row[column].iloc[0]
            if column in spread:
                cost += np.abs(rows[column].to_numpy() - value) / (spread[column] or 1.0)
            else:
                cost += rows[column].to_numpy() != value
        cheaper = cost < contrast.lower_bound * (1.0 - 1e-9)
        chance = case.model.predict_proba(rows)[:, int(label)]
        count += int((cheaper & (case.model.predict(rows) != label)).sum())
        # close to the threshold for little cost
        best = rows.iloc[np.argsort(np.maximum(chance - 0.5, 0.0) + 0.1 * cost, kind="stable")[:64]]
    return count


# -- small models, by enumeration ---------------------------------------------------------------------------


def _enumerated() -> dict[str, int]:
    """Count instances, answers that flip, proofs, and those that the enumeration of all rows confirms."""
    names = ("instances", "flips", "fewest proved", "fewest", "least proved", "least", "bounds")
    counts, seed = dict.fromkeys(names, 0), 0
    while counts["instances"] < ENUMERATED:
        rng, d = np.random.default_rng(seed), WIDTHS[seed % len(WIDTHS)]
        x = rng.integers(0, LEVELS, (150, d)).astype(float)
        score = x[:, 0] - x[:, 1] + (x[:, 2] > 1) * x[:, 3] + 0.5 * rng.normal(size=len(x))
        name = [*SMALL][seed % len(SMALL)]
        # margins of several classes are no single answer
        edges = np.quantile(score, [0.5] if seed % 2 or name == "kernels" else [0.33, 0.67])
        model = SMALL[name]().fit(x, np.searchsorted(edges, score))
        explainer = limes.SparseExplainer(
            model, literals=limes.Literals.fit(x), k=1, fresh=100, output=_output(model)
        )
        for row in x[rng.choice(len(x), 5, replace=False)]:
            _count(counts, explainer, model, x, row, rng)
        seed += 1
    return counts


def _output(model: Any) -> Any:
    return 0 if hasattr(model, "predict_proba") else "margin"


def _count(
    counts: dict[str, int],
    explainer: Any,
    model: Any,
    x: np.ndarray,
    row: np.ndarray,
    rng: np.random.Generator,
) -> None:
    fixed, move = int(rng.integers(row.size)), int(rng.integers(row.size))
    weights = rng.choice([0.25, 1.0, 4.0], row.size)
    values = [np.arange(float(LEVELS))] * row.size
    values[move] = values[move][values[move] >= row[move]]
    values[fixed] = row[fixed : fixed + 1]
    rows = np.array([*product(*values)])
    enough = model.predict(rows) != model.predict(row[None, :])[0]
    sizes = {
        "fewest": (rows != row).sum(axis=1).astype(float),
        "least": np.abs(rows - row) / x.std(axis=0) @ weights,
    }
    options: dict[str, Any] = {"fixed": [f"x{fixed}"], "directions": {f"x{move}": "up"}}
    costs = {f"x{j}": float(weight) for j, weight in enumerate(weights)}
    counts["instances"] += 1
    for name, minimize in (("fewest", {}), ("least", {"minimize": "cost", "costs": costs})):
        contrast = explainer.contrast(row[None, :], **options, **minimize)
        best = sizes[name][enough].min(initial=np.inf)
        new = row.copy()
        for change in contrast.changes:
            new[int(change.feature[1:])] = change.new_value
        flips = bool(model.predict(new[None, :])[0] != model.predict(row[None, :])[0])
        counts["flips"] += flips if contrast.reached else bool(np.isinf(best) or not contrast.proved)
        counts[f"{name} proved"] += contrast.proved
        counts[name] += contrast.proved and bool(np.isclose(contrast.objective, best, rtol=1e-9, atol=0.0))
        counts["bounds"] += bool(contrast.lower_bound <= best * (1.0 + 1e-9))
