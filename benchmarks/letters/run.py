"""Reasons, ranks of columns and warnings of boosted trees on three real tables, beside an enumeration."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier, XGBRegressor

import limes
from benchmarks.data import DATA
from benchmarks.letters.enumeration import trees
from benchmarks.progress import say
from benchmarks.speed.run import machine

# Rows that are explained of each table, and that models are fitted to; rows of the background, all of which
# the enumeration goes through; reasons of a letter
ROWS, FITTED, BACKGROUND, REASONS = 300, 5000, 200, 4
TABLES = ("german_credit", "adult", "student_performance")
_REASON = re.compile(r"<li>([^<]*?) = [^<]*? (raises|lowers) [^<]*</li>")


def measure(*, cases: str = "") -> dict[str, Any]:
    """Return a record for each table."""
    results = []
    for table in TABLES:
        if cases in table:
            say(table)
            results.append(_measure(table))
    facts = {"rows": ROWS, "background": BACKGROUND, "reasons": REASONS}
    return {"machine": machine(), **facts, "cases": results}


def _measure(table: str) -> dict[str, Any]:
    X, y = _read(table)
    model = _fitted(X, y)
    background = X.sample(min(BACKGROUND, len(X)), random_state=2)
    # categories that the background lacks have no place in it
    occurs = pd.concat([X[name].isna() | X[name].isin(background[name]) for name in _texts(X)], axis=1)
    filled = X.isna() <= background.isna().any()
    rows = X[occurs.all(axis=1) & filled.all(axis=1)].sample(ROWS, random_state=1)
    output = None if y.dtype.kind == "f" else "margin"
    explainer = limes.TabularExplainer(model, X, output=output)
    explanation = explainer(rows, progress=False)
    say(f"{table}: letters")
    letters = _letters(explanation)
    say(f"{table}: enumeration")
    exact = _enumerated(model, rows, background)
    joint = limes.TabularExplainer(model, background, output=output, law="joint", bandwidth=np.inf)
    same = joint.contributions(rows).contributions.values
    return {
        "table": table,
        "columns": X.shape[1],
        "rows": len(rows),
        **letters,
        "ranks of contributions": _ranks(explanation.contributions.values, exact),
        "ranks of coefficients": _ranks(explanation.coefficients.values, exact),
        "joint law apart": float(np.abs(same - exact).max() / np.abs(exact).max()),
        "other warnings": _other_warnings(explanation),
        "warnings of coefficients": sum(map(len, _about_coefficients_alone(explanation))),
    }


def _read(table: str) -> tuple[pd.DataFrame, np.ndarray]:
    data = pd.read_csv(DATA / "tabular" / f"{table}.csv.gz", keep_default_na=False, na_values=[""])
    data = data.sample(min(FITTED, len(data)), random_state=0)
    target = data.pop("target")
    if target.nunique() == 2:
        return data, np.unique(target, return_inverse=True)[1]
    return data, target.to_numpy(float)


def _fitted(X: pd.DataFrame, y: np.ndarray) -> Any:
    texts = _texts(X)
    encoder = make_column_transformer(
        (
            make_pipeline(
                SimpleImputer(strategy="most_frequent"),
                OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
            ),
            texts,
        ),
        (SimpleImputer(strategy="median"), [name for name in X if name not in texts]),
    )
    kind = XGBRegressor if y.dtype.kind == "f" else XGBClassifier
    return make_pipeline(encoder, kind(n_estimators=100, max_depth=3, random_state=0)).fit(X, y)


def _texts(X: pd.DataFrame) -> list[str]:
    return [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]


def _letters(explanation: Any) -> dict[str, Any]:
    """How many letters have the reasons of contributions, and how many reasons speak against the outcome.

    A letter's reasons are those on the page, for the side of the median prediction that the row is on.
    """
    account, names = explanation.contributions.values, explanation.feature_names
    threshold, same, against, reasons = float(np.median(explanation.predictions)), 0, 0, 0
    for i, row in enumerate(explanation):
        same += [*row.reasons(REASONS)] == [*row.reasons(REASONS, of="contributions")]
        page = limes.decision_page(row, threshold=threshold)
        main = page.partition("Main reasons for this outcome")[2].partition("</ol>")[0]
        outcome = np.sign(float(explanation.predictions[i]) - threshold)
        for name, _ in _REASON.findall(main):
            reasons += 1
            against += bool(outcome * account[i, names.index(unescape(name))] < 0)
    return {"same reasons": same, "reasons": reasons, "reasons against": against}


def _enumerated(model: Any, rows: pd.DataFrame, background: pd.DataFrame) -> np.ndarray:
    """Interventional Shapley values of the table's columns, (n, d)."""
    encoder, boosted = model[0], model[-1]
    x, z = (encoder.transform(part).astype(np.float32) for part in (rows, background))
    players = np.array([_owner(name, rows.columns) for name in encoder.get_feature_names_out()])
    every = trees(boosted.get_booster())
    result = np.zeros((len(rows), rows.shape[1]))
    for tree in every:
        its = tree.shapley(x, z, players)
        result[:, : its.shape[1]] += its
    # what trees add up to is what the booster says, in single precision
    options = {} if isinstance(boosted, XGBRegressor) else {"output_margin": True}
    ours, theirs = (boosted.predict(part, **options).astype(float) for part in (x, z))
    np.testing.assert_allclose(result.sum(axis=1), ours - theirs.mean(), atol=1e-5 * np.abs(ours).max())
    return result


def _owner(encoded: str, columns: pd.Index) -> int:
    name = encoded.partition("__")[2]
    owners = [j for j, column in enumerate(columns) if name == column or name.startswith(f"{column}_")]
    return max(owners, key=lambda j: len(columns[j]))


def _ranks(values: np.ndarray, exact: np.ndarray) -> float:
    """Spearman's correlation over columns of mean sizes."""
    return float(spearmanr(np.abs(values).mean(axis=0), np.abs(exact).mean(axis=0)).statistic)


def _about_coefficients_alone(explanation: Any) -> list[set[str]]:
    both = zip(explanation.coefficients.row_warnings, explanation.contributions.row_warnings, strict=True)
    return [{*map(str, lime)} - {*map(str, account)} for lime, account in both]


def _other_warnings(explanation: Any) -> dict[str, int]:
    """Warnings about LIME's coefficients alone that stand outside LIME's view, by medium."""
    outside = {"print": 0, "page": 0, "report": 0}
    for row, texts in zip(explanation, _about_coefficients_alone(explanation), strict=True):
        printed = " ".join(str(row).split())
        page = unescape(row.to_html().partition("<details")[0])
        outside["print"] += sum(text in printed for text in texts)
        outside["page"] += sum(text in page for text in texts)
    with TemporaryDirectory() as name:
        path = Path(name, "report.html")
        explanation.to_report(path, progress=False)
        content = re.search(r'id="content">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    shown = {*json.loads(content[1])["explanations"][0]["warnings"]["entries"]}
    outside["report"] = len(shown & set().union(*_about_coefficients_alone(explanation)))
    return outside
