"""Rules that cover a table: how many, how much they cover, in what time, and what draws say of them.

``python -m benchmarks cover``. Forests of 100 trees of depth 5, XGBoost of 100 trees of depth
3 and logistic regression are audited on rows that they were not fitted to. Rows are then drawn in each rule
by code that knows its conditions and the model's own ``predict``, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

import limes
from benchmarks.certain.run import Case
from benchmarks.data import table_path
from benchmarks.progress import say
from benchmarks.speed.run import machine

ROWS, LIMIT, ERROR = 300, 30.0, 0.05
# Rows that are drawn in each rule
DRAWN = 20_000
TABLES = {
    "german_credit": lambda y: y == "bad",
    "wine_quality_white": lambda y: y >= 6,
    "california_housing": lambda y: y > y.median(),
}
MODELS = {
    "forest 100 x 5": lambda: RandomForestClassifier(100, max_depth=5, random_state=0),
    "XGBoost 100 x 3": lambda: XGBClassifier(n_estimators=100, max_depth=3, n_jobs=1, random_state=0),
    "logistic": lambda: LogisticRegression(max_iter=1000),
}
OBJECTIVES = ("certain", "precision")


def measure(cases: str = "") -> dict[str, Any]:
    """A line a model and objective."""
    lines = []
    for case, objective in product(_cases(cases), OBJECTIVES):
        say(f"rules that cover {case.table}: {case.name}, {objective}")
        lines.append(_measured(case, objective))
    return {
        "machine": machine(),
        "rows": ROWS,
        "limit": LIMIT,
        "error": ERROR,
        "drawn": DRAWN,
        "cases": lines,
    }


def _cases(wanted: str) -> Iterator[Case]:
    for (table, of_target), (name, model) in product(TABLES.items(), MODELS.items()):
        if wanted not in table:
            continue
        path = table_path(table)
        x = pd.read_csv(path, keep_default_na=False, na_values=[""])
        y = np.asarray(of_target(x.pop("target"))).astype(int)
        order = np.random.default_rng(0).permutation(len(x))
        train, test = order[:-ROWS], order[-ROWS:]
        texts = [c for c in x if not pd.api.types.is_numeric_dtype(x[c])]
        encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
        rest = StandardScaler() if name == "logistic" else "passthrough"
        fitted = make_pipeline(make_column_transformer((encoder, texts), remainder=rest), model())
        fitted.fit(x.iloc[train], y[train])
        yield Case(table, name, fitted, x.iloc[train], x.iloc[test])


def _measured(case: Case, objective: str) -> dict[str, Any]:
    domain = limes.Domain.fit(case.background, orders=[], one_hot=[])
    began = perf_counter()
    audit = limes.rules.cover(
        case.model,
        case.rows,
        objective=objective,
        error=ERROR if objective == "precision" else None,
        domain=domain,
        time_limit=LIMIT,
    )
    seconds = perf_counter() - began
    rng = np.random.default_rng(0)
    shares = [_other_answers(case, rule, domain, rng) for rule in audit.rules]
    return {
        "table": case.table,
        "model": case.name,
        "objective": objective,
        "columns": case.rows.shape[1],
        "rules": len(audit.rules),
        "fewest": audit.fewest,
        "candidates": audit.candidates,
        "coverage": audit.coverage,
        "first ten": sum(len(rule.new_rows) for rule in audit.rules[:10]) / len(case.rows),
        "conditions": [len(rule.conditions) for rule in audit.rules],
        "exceptions": sum(len(rule.exceptions) for rule in audit.rules),
        "complete": audit.complete,
        "seconds": seconds,
        "shares": shares,
        "bounds": [rule.bound for rule in audit.rules],
    }


def _other_answers(case: Case, rule: Any, domain: Any, rng: np.random.Generator) -> float:
    """The share of another class among rows drawn in a rule: from the domain if it is certain."""
    columns = {}
    for j, name in enumerate(case.rows):
        possible = case.rows[name]
        if rule.proved:
            possible = pd.concat([possible, case.background[name]])
        for each in rule.conditions:
            if each.column == name:
                possible = possible[_meets(each, possible)]
        columns[name] = rng.choice(possible.to_numpy(), DRAWN)
        values = domain.columns[j]
        if rule.proved and values.levels is None and not values.whole:
            # any number in the condition, not the table's alone
            ends = next((each for each in rule.conditions if each.column == name), None)
            low = values.low if ends is None or ends.above is None else np.nextafter(ends.above, np.inf)
            high = values.high if ends is None or ends.at_most is None else ends.at_most
            columns[name] = rng.uniform(low, high, DRAWN)
    drawn = pd.DataFrame(columns).astype(case.rows.dtypes)
    labels = np.array([str(label) for label in case.model.predict(drawn)])
    return float((labels != rule.claim).mean())


def _meets(condition: Any, values: pd.Series) -> pd.Series:
    if condition.levels is not None:
        return values.isin(condition.levels)
    low = -np.inf if condition.above is None else condition.above
    high = np.inf if condition.at_most is None else condition.at_most
    return (values > low) & (values <= high)
