"""Freeze what explanations say, and compare it after a change that must not move anything.

    make frozen                                          writes build/frozen.json, or compares with it
    python tools/frozen.py write build/frozen.json       at the commit before
    python tools/frozen.py compare build/frozen.json     after it: differences beyond 1e-12
    python tools/frozen.py compare build/frozen.json forest,     cases whose names begin so

About 200 explanations: models × laws × weights × outputs of tables, texts, images, series, lime's calls, rules.
Of each: coefficients, contributions, R², effects, pairs, warnings with codes and outputs, its print, its page,
its reasons, and its JSON. Numbers are compared relative to the largest of their array, words one by one.
Explanations of `reproducible` explainers must be equal to the last bit.
"""

# ruff: noqa: E501, C901 - lists of cases

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

# Relative to the largest number of an array
TOLERANCE = 1e-12

# What is compared literally
WORDS = ("words", "bits", "print", "print of all", "repr", "page", "reasons", "warnings", "its cells")

Case = tuple[str, Callable[[], dict[str, Any]]]


# What a coefficient knows, and a contribution
OF_COEFFICIENTS = (
    *("values", "standard_errors", "intercepts", "surrogate_predictions", "surrogate_errors"),
    *("fidelity", "fidelity_errors", "shares", "share_errors", "effective_rows", "row_converged"),
)
OF_CONTRIBUTIONS = ("values", "base_values", "standard_errors", "base_errors", "alone", "last", "calls")


def numbers(explanation: Any, *, effects: bool = True) -> dict[str, Any]:
    """The arrays and words of an explanation."""
    coefficients = getattr(explanation, "coefficients", explanation)
    printed = {"print": str(explanation).splitlines(), "repr": [repr(explanation)]}
    arrays = {name: getattr(coefficients, name) for name in OF_COEFFICIENTS}
    arrays |= {name: getattr(explanation, name) for name in ("predictions", "calls", "shared_calls")}
    result = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    result |= printed
    if effects:
        result["additive_fidelity"] = np.asarray(explanation.additive_fidelity)
        result["additive_fidelity_errors"] = np.asarray(explanation.additive_fidelity_errors)
        effect = explanation[0].effects[0]
        result |= {"effect of the first": effect.values, "its cells": list(effect.cells)}
        account = explanation.contributions
        for name in OF_CONTRIBUTIONS:
            result[f"contributions: {name}"] = np.asarray(getattr(account, name))
        for pair in _pairs(explanation):
            result[f"pair {pair.features}, {pair.output}"] = np.array([pair.share, pair.share_error])
    return {
        **result,
        "reasons": list(explanation.reasons(3)) if len(explanation.feature_names) > 1 else [],
        "words": [explanation.method, explanation.reason, *explanation.conditions[0], *explanation.warnings],
        "warnings": [[str(w), w.code, list(w.outputs)] for row in explanation.row_warnings for w in row],
        "print of all": str(explanation).splitlines(),
        "page": explanation.to_html().splitlines(),
        "json": json.loads(explanation.to_json()),
    }


def _pairs(explanation: Any) -> list[Any]:
    """The largest pairs of the first row, where there are any."""
    try:
        return list(explanation[0].interactions(top=2))
    except Exception:  # noqa: BLE001 - slopes have none
        return []


def tables() -> Iterator[Case]:
    """Rows of tables."""
    import pandas as pd
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import make_column_transformer
    from sklearn.datasets import load_diabetes, load_iris
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        IsolationForest,
        RandomForestClassifier,
        RandomForestRegressor,
        VotingRegressor,
    )
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler
    from sklearn.svm import SVC, SVR
    from sklearn.tree import DecisionTreeRegressor

    import limes

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    label = (y > 140).astype(int)
    X3, y3 = load_iris(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    mixed = X.iloc[:, :4].assign(town=rng.choice(["a", "b", "c"], len(X)))
    mixed.loc[::7, "bmi"] = np.nan
    encoder = make_column_transformer(
        (OneHotEncoder(), ["town"]), (StandardScaler(), ["age", "bp"]), remainder="drop"
    )
    small = {"n_estimators": 20, "max_depth": 5, "random_state": 0}
    forest = RandomForestRegressor(**small).fit(X, y)
    logistic = LogisticRegression(C=100.0, max_iter=1000).fit(X, label)
    mlp = {"hidden_layer_sizes": (6,), "max_iter": 300, "random_state": 0}

    def product(Z: Any) -> Any:
        return np.tanh(20 * Z["bmi"]) * (1 + 10 * Z["bp"]) + Z["s5"] ** 2

    read = {
        "linear": (LinearRegression().fit(X, y), X),
        "forest": (forest, X),
        "tree": (DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y), X),
        "forest of classes": (RandomForestClassifier(**small).fit(X3, y3), X3),
        "extra trees": (ExtraTreesClassifier(**small).fit(X, label), X),
        "histograms": (
            HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(mixed.iloc[:, :4], y),
            mixed.iloc[:, :4],
        ),
        "logistic": (logistic, X),
        "softmax": (LogisticRegression(max_iter=1000).fit(X3, y3), X3),
        "discriminant": (LinearDiscriminantAnalysis().fit(X, label), X),
        "naive Bayes": (GaussianNB().fit(X, label), X),
        "Poisson": (PoissonRegressor().fit(X, y), X),
        "support vectors": (SVR(C=100.0).fit(X, y), X),
        "machine": (SVC(random_state=0).fit(X, label), X),
        "Gaussian process": (GaussianProcessRegressor(random_state=0).fit(X[:60], y[:60]), X),
        "network": (make_pipeline(StandardScaler(), MLPRegressor(**mlp)).fit(X, y / 100), X),
        "network of classes": (make_pipeline(StandardScaler(), MLPClassifier(**mlp)).fit(X, label), X),
        "stumps": (HistGradientBoostingClassifier(max_iter=30, max_depth=1, random_state=0).fit(X, label), X),
        "splines": (make_pipeline(SplineTransformer(), Ridge()).fit(X, y), X),
        "polynomial": (make_pipeline(PolynomialFeatures(2), Ridge()).fit(X, y), X),
        "pipeline": (make_pipeline(encoder, LogisticRegression()).fit(mixed, label), mixed),
        "voting": (VotingRegressor([("f", forest), ("l", Ridge())]).fit(X, y), X),
        "isolation": (IsolationForest(n_estimators=10, random_state=0).fit(X), X),
    }
    functions = {
        "function": (product, X),
        "boosting": (GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, label), X),
        "neighbours": (KNeighborsClassifier(20).fit(X, label), X),
        "calibrated": (CalibratedClassifierCV(logistic, method="isotonic").fit(X, label), X),
    }
    ways = {
        "default": {},
        "empirical": {"law": "empirical"},
        "uniform, deciles": {"law": "uniform", "bins": "decile"},
        "euclidean": {"weights": "euclidean"},
        "narrow": {"bandwidth": 0.5},
        "infinite": {"bandwidth": float("inf")},
        "slopes": {"bins": None},
        "joint": {"law": "joint"},
        "ridge": {"ridge": 1.0},
    }

    def case(model: Any, data: Any, options: dict[str, Any], rows: int = 3) -> Callable[[], dict[str, Any]]:
        return lambda: numbers(
            limes.TabularExplainer(model, data, **options)(data.iloc[:rows], progress=False)
        )

    for name, (model, data) in read.items():
        chosen = (
            ways
            if name in ("forest", "logistic", "linear", "histograms")
            else {k: ways[k] for k in ("default", "euclidean", "slopes")}
        )
        for way, options in chosen.items():
            slow = ("network", "network of classes", "softmax", "Gaussian process", "polynomial")
            if name in slow and way in ("euclidean", "slopes"):
                continue  # seconds a row
            yield f"{name}, {way}", case(model, data, options)
    for name, (model, data) in functions.items():
        for way in ("default", "joint", "slopes", "narrow"):
            yield f"{name}, {way}", case(model, data, {**ways[way], "max_calls": 1024, "rng": 1})
        yield f"{name}, without limits", case(model, data, {"rng": 1}, 2)
        yield f"{name}, coefficients alone", case(model, data, {"contributions": False, "rng": 1}, 2)
        yield f"{name}, 21 rows", case(model, data, {"max_calls": 600, "rng": 1}, 21)
    for name in ("forest", "logistic", "linear", "naive Bayes", "support vectors", "stumps"):
        yield f"{name}, 21 rows", case(*read[name], {}, 21)
        yield f"{name}, sampled", case(*read[name], {"method": "sampled", "max_calls": 600, "rng": 1}, 2)
    for kind in ("forest of classes", "softmax"):
        yield f"{kind}, two classes", case(*read[kind], {"output": [0, 2]})
    for output in ("margin", 0, [0, 1]):
        yield f"logistic, output {output}", case(logistic, X, {"output": output})
    yield "forest, held", case(forest, X, {"hold": ["sex"]})
    yield "function, own draws", case(product, X, {"bandwidth": 0.4, "max_calls": 1024, "rng": 1})
    yield "function, tolerance", case(product, X, {"tolerance": "5%", "rng": 1})

    def bits(model: Any, options: dict[str, Any]) -> Callable[[], dict[str, Any]]:
        def run() -> dict[str, Any]:
            explanation = limes.TabularExplainer(model, X, **options).reproducible(X, progress=False)
            return {
                "bits": explanation.coefficients.values.tobytes().hex()[:4096],
                "words": [explanation.method],
            }

        return run

    for name in ("forest", "logistic", "linear", "support vectors"):
        yield f"{name}, bits", bits(read[name][0], {})
    del pd


def items() -> Iterator[Case]:
    """Texts, images and series."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    import limes

    texts = ["good food and good service", "bad food", "good film", "never again, bad and slow", "fine day"]
    labels = [1, 0, 1, 0, 1]
    text = "good food bad service, never a good day again"
    rng = np.random.default_rng(0)
    long = " ".join(f"w{i}" for i in rng.integers(0, 60, 120))

    def count(batch: Any) -> Any:
        return np.array([0.3 * ("good" in t) * ("food" in t) + 0.01 * len(t.split()) for t in batch])

    def words(batch: Any) -> Any:
        return np.array(
            [np.tanh(0.2 * t.count("w1") - 0.1 * t.count("w2") + 0.3 * ("w33" in t)) for t in batch]
        )

    models = {
        "counts": make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, labels),
        "tfidf": make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels),
        "unnormed": make_pipeline(TfidfVectorizer(norm=None), Ridge()).fit(texts, labels),
        "bigrams": make_pipeline(CountVectorizer(ngram_range=(1, 2)), Ridge()).fit(texts, labels),
        "forest": make_pipeline(CountVectorizer(), RandomForestClassifier(10, random_state=0)).fit(
            texts, labels
        ),
        "function": count,
    }
    for name, model in models.items():
        for way, options in {"default": {}, "wide": {"bandwidth": 1.0}, "mask": {"mask": "UNK"}}.items():
            yield (
                f"text, {name}, {way}",
                lambda m=model, o=options: numbers(limes.TextExplainer(m, **o)(text)),
            )
    yield "text, long", lambda: numbers(limes.TextExplainer(words, max_calls=1024, rng=1)(long))
    yield (
        "text, sampled",
        lambda: numbers(limes.TextExplainer(models["tfidf"], method="sampled", rng=1)(long)),
    )

    image = rng.random((24, 24, 3))
    grid = {"segments": "grid", "segment_options": {"rows": 3, "columns": 3}}
    fine = {"segments": "grid", "segment_options": {"rows": 6, "columns": 6}}

    def bright(batch: Any) -> Any:
        planes = np.asarray(batch).mean(axis=-1)
        level = planes[:, :12].mean(axis=(1, 2)) * planes[:, :, 12:].mean(axis=(1, 2))
        return np.stack([level, 1 - level], axis=1)

    flat = Ridge().fit(rng.random((30, 24 * 24 * 3)), rng.random(30))
    for fill in ("mean", "blur", 0.0, ["mean", 0.5]):
        yield (
            f"image, fill {fill}",
            lambda f=fill: numbers(limes.ImageExplainer(bright, fill=f, **grid)(image)),
        )
    yield "image, sampled", lambda: numbers(limes.ImageExplainer(bright, max_calls=400, rng=1, **fine)(image))
    yield "image, read", lambda: numbers(limes.ImageExplainer(flat, **fine)(image))
    series = np.sin(np.arange(60.0) / 5) + 0.1 * rng.normal(size=60)

    def peak(batch: Any) -> Any:
        return np.asarray(batch)[:, 10:30].max(axis=1) + np.asarray(batch)[:, 40:].mean(axis=1)

    for options in ({}, {"fill": "line"}, {"segments": "frequency"}, {"segments": "changepoint"}):
        yield f"series, {options}", lambda o=options: numbers(limes.SeriesExplainer(peak, **o)(series))


def calls_of_lime() -> Iterator[Case]:
    """Calls as lime takes them, by either engine."""
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    from limes.compat.lime.lime_image import LimeImageExplainer
    from limes.compat.lime.lime_tabular import LimeTabularExplainer
    from limes.compat.lime.lime_text import LimeTextExplainer

    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)

    def of(explanation: Any, label: int) -> dict[str, Any]:
        pairs = (
            explanation.as_list(label=label)
            if hasattr(explanation, "as_list")
            else explanation.local_exp[label]
        )
        score = explanation.score[label] if isinstance(explanation.score, dict) else explanation.score
        return {
            "values": np.array([value for _, value in pairs]),
            "score": np.array(score),
            "words": [str(name) for name, _ in pairs],
        }

    for engine in ("limit", "lime"):
        for continuous in (True, False):
            yield f"lime's table, {engine}, {continuous}", lambda e=engine, c=continuous: of(
                LimeTabularExplainer(X, engine=e, discretize_continuous=c, random_state=0).explain_instance(
                    X[60], forest.predict_proba, num_features=3, labels=(1,)
                ), 1)  # fmt: skip
        yield f"lime's text, {engine}", lambda e=engine: of(
            LimeTextExplainer(engine=e, random_state=0).explain_instance(
                "a good film and a bad day", lambda t: np.array([[s.count("good"), s.count("bad")] for s in t]),
                num_features=4, num_samples=400), 1)  # fmt: skip
        yield f"lime's image, {engine}", lambda e=engine: of(
            LimeImageExplainer(engine=e, random_state=0).explain_instance(
                np.random.default_rng(0).random((20, 20, 3)),
                lambda b: np.stack([b[:, :10].mean(axis=(1, 2, 3)), b[:, 10:].mean(axis=(1, 2, 3))], axis=1),
                segmentation_fn=lambda _: np.arange(20)[:, None] // 5 * 4 + np.arange(20)[None] // 5,
                num_samples=200), 1)  # fmt: skip


def rules() -> Iterator[Case]:
    """Sparse rules, and MAPLE."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    import limes

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    forest = RandomForestRegressor(20, max_depth=5, random_state=0).fit(X, y)
    literals = limes.Literals.fit(X)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (3, 12))

    def vote(Z: Any) -> Any:
        return np.tanh(Z[:, 0] * Z[:, 1] + 0.5 * Z[:, 2])

    for solver in ("projection", "hard_thresholding", "branch_and_bound"):
        yield f"rule, {solver}", lambda s=solver: numbers(
            limes.SparseExplainer(vote, k=3, solver=s, rng=1)(signs, progress=False), effects=False)  # fmt: skip
    for intercept in (True, False):
        yield f"rule of a forest, {intercept}", lambda i=intercept: numbers(
            limes.SparseExplainer(forest, k=3, literals=literals, intercept=i, rng=1)(X.iloc[:2], progress=False),
            effects=False)  # fmt: skip
    yield "MAPLE", lambda: numbers(limes.MapleExplainer(forest, X, trees=20)(X.iloc[:2]), effects=False)


def computed(start_of_name: str = "") -> dict[str, dict[str, Any]]:
    """All cases; one that raises is its error's text."""
    results = {}
    for part in (tables, items, calls_of_lime, rules):
        for name, run in part():
            if not name.startswith(start_of_name):
                continue
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    result = run()
                except Exception as error:  # noqa: BLE001 - what is raised is frozen too
                    result = {"words": [f"{type(error).__name__}: {error}"]}
            result["seconds"] = time.process_time() - start
            results[name] = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in result.items()}
    return results


def differences(name: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Return what differs in one case, in words."""
    for key in sorted({*before, *after} - {"seconds"}):
        old, new = before.get(key), after.get(key)
        if key == "json":
            yield from _of_json(f"{name}: json", old, new)
            continue
        if key in WORDS or old is None or new is None:
            if old != new:
                changed = [f"{a!r} -> {b!r}" for a, b in zip(old or [], new or [], strict=False) if a != b]
                yield f"{name}: {key}: {'; '.join(changed)[:300] or f'{old} -> {new}'[:300]}"
            continue
        a, b = np.array(old, dtype=float), np.array(new, dtype=float)
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            yield f"{name}: {key}: shape {a.shape} -> {b.shape}, or other numbers are finite"
            continue
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        size = np.abs(a).max(initial=1e-300)
        apart = np.abs(a - b).max(initial=0.0) / size
        if apart > TOLERANCE:
            yield f"{name}: {key}: {apart:.2g} apart, relative to {size:.3g}"


def _of_json(where: str, old: Any, new: Any) -> Iterator[str]:
    """Differences of two values of JSON: numbers beyond 1e-12 of the largest beside them."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _of_json(f"{where}.{key}", old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        flat = [np.array(its, dtype=float) if _are_numbers(its) else None for its in (old, new)]
        if flat[0] is None or flat[1] is None:
            for i, (a, b) in enumerate(zip(old, new, strict=True)):
                yield from _of_json(f"{where}[{i}]", a, b)
        elif (apart := np.abs(flat[0] - flat[1]).max()) > TOLERANCE * np.abs(flat[0]).max():
            yield f"{where}: {apart:.2g} apart"
    elif isinstance(old, float) and isinstance(new, float):
        if abs(old - new) > TOLERANCE * max(abs(old), 1e-300):
            yield f"{where}: {old!r} -> {new!r}"
    elif old != new:
        yield f"{where}: {old!r} -> {new!r}"[:300]


def _are_numbers(values: list[Any]) -> bool:
    return bool(values) and all(type(value) in (int, float) for value in values)


def main(mode: str, path: Path, start: str = "") -> int:
    """Write what explanations say, or compare with it; 1 if anything differs."""
    if mode == "auto":
        mode = "compare" if path.exists() else "write"
    now = computed(start)
    if mode == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(now), "utf-8")
        print(f"{len(now)} explanations in {path}")
        return 0
    before = json.loads(path.read_text("utf-8"))
    before = {name: case for name, case in before.items() if name.startswith(start)}
    lines = [line for name in before for line in differences(name, before[name], now.get(name, {}))]
    print("\n".join(lines) or f"{len(before)} explanations agree")
    seconds = [sum(case["seconds"] for case in cases.values()) for cases in (before, now)]
    print(f"CPU seconds: {seconds[0]:.1f} before, {seconds[1]:.1f} after")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(Path, sys.argv[2:3]), *sys.argv[3:]))
