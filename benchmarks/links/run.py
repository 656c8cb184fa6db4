"""Probabilities, networks and texts behind links: seconds a row, and the error of samples."""

from __future__ import annotations

import time
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from benchmarks.links import curve, pairs, wide
from benchmarks.progress import say
from benchmarks.speed.run import machine
from limes.designs import ExchangeableDesign
from limes.models import forms

SAMPLES = (1024, 4096, 16384)
LIME_SAMPLES = 5000
BATCH = 1000


def measure(rounds: int = 7) -> dict:
    """Ways to explain what is behind a link, on what machine, and error against time."""
    ways = [
        *({"model": "logistic regression, 30 columns", **way} for way in _probabilities(rounds)),
        *_three_classes(rounds),
        *_networks(rounds),
        *_texts(rounds),
        *pairs.measure(_timed, min(rounds, 3)),
    ]
    say("error against nodes")
    result = {"machine": machine(), "ways": ways, "curve": curve.measure(), "contributions": wide.measure()}
    say("done\n")
    return result


def _three_classes(rounds: int) -> list[dict]:
    """Multinomial logistic regressions, all three probabilities: a batch, and one row."""
    result = []
    wine, kinds = load_wine(return_X_y=True)
    X, _ = load_breast_cancer(return_X_y=True)
    for table, classes in ((wine, kinds), (X, np.digitize(X[:, 0], [12, 16]))):
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, classes)
        explainer = limes.TabularExplainer(model, table, method="exact")
        name = f"logistic regression of three classes, {table.shape[1]} columns"
        say(name)
        timed = _timed(lambda e=explainer, x=table: e(x, progress=False), len(table), min(rounds, 3))
        result.append({"model": name, "way": f"exact, {len(table)} rows", **timed})
        alone = _timed(lambda e=explainer, x=table: e(x[:1]), 1, rounds)
        result.append({"model": name, "way": "exact, one row", **alone})
    return result


def _networks(rounds: int) -> list[dict]:
    """Networks with 100 hidden units on 10 columns, a batch of rows with different cells."""
    X, y = load_diabetes(return_X_y=True)
    result = []
    for activation in ("relu", "tanh", "logistic"):
        say(f"network, {activation}")
        network = MLPRegressor(hidden_layer_sizes=(100,), activation=activation, max_iter=300, random_state=0)
        with catch_warnings():
            simplefilter("ignore")
            model = make_pipeline(StandardScaler(), network).fit(X, (y - y.mean()) / y.std())
        explainer = limes.TabularExplainer(model, X, method="exact")
        timed = _timed(lambda e=explainer: e(X, progress=False), len(X), min(rounds, 3))
        name = f"network, 100 units ({activation}), 10 columns"
        result.append({"model": name, "way": f"exact, {len(X)} rows", **timed})
    return result


def _texts(rounds: int) -> list[dict]:
    """Logistic regressions on TF-IDF of random words, without a norm and with l2: a text of all words."""
    result = []
    for words in (50, 200):
        rng = np.random.default_rng(0)
        vocabulary = np.array([f"word{i:03d}" for i in range(words)])
        counts = rng.random((800, words)) < rng.uniform(0.1, 0.6, size=words)
        labels = counts @ rng.normal(size=words) + rng.logistic(size=800) > 0
        texts = [" ".join(vocabulary[row]) for row in counts]
        text = " ".join(rng.permutation(vocabulary))
        for norm in (None, "l2"):
            kind = "without norm" if norm is None else "with l2 norm"
            say(f"{words} words {kind}")
            model = make_pipeline(TfidfVectorizer(norm=norm), LogisticRegression()).fit(texts, labels)
            explainer = limes.TextExplainer(model, split=r"\W+", output=1, method="exact")
            exact = explainer(text)
            values = dict(zip(exact.feature_names, exact.coefficients.values[0], strict=True))
            name = f"logistic regression, {words} words, {kind}"
            form, design = _over_words(model), ExchangeableDesign.word_deletions(words, 0.25)
            ways = [
                {"way": "exact, one text", **_timed(lambda e=explainer, t=text: e(t), 1, rounds)},
                {
                    "way": "exact, without reading and checking the model",
                    **_timed(lambda f=form, d=design: limes.limit(d, f), 1, rounds),
                },
                *_lime_text(model, text, values, min(rounds, 3)),
            ]
            result += [{"model": name, **way} for way in ways]
    return result


def _over_words(model: Any) -> forms.Form:
    """The probability as a form over the words of a text in which each word of the vocabulary is once."""
    weights, classifier = model[0].idf_, model[1]
    loads, constant = classifier.coef_[0] * weights, classifier.intercept_[0]
    if model[0].norm is None:
        return forms.Linked(forms.Linear(loads, constant), "logistic")
    return forms.Linked(forms.NormalizedLinear(loads, weights**2, intercept=constant), "logistic")


def _lime_text(model: Any, text: str, values: dict[str, float], rounds: int) -> list[dict]:
    try:
        from lime.lime_text import LimeTextExplainer
    except ImportError:
        return []
    explainer = LimeTextExplainer(feature_selection="none", random_state=0)
    options = {"num_features": len(values), "num_samples": LIME_SAMPLES}

    def explain() -> Any:
        return explainer.explain_instance(text, model.predict_proba, **options)

    gaps = [abs(value - values[word]) for word, value in explain().as_list()]
    error = max(gaps) / max(map(abs, values.values()))
    return [{"way": f"lime, {LIME_SAMPLES:,} samples", **_timed(explain, 1, rounds), "error": error}]


def _probabilities(rounds: int) -> list[dict]:
    """One line a way: milliseconds of wall clock and of processor a row, and the error of coefficients."""
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    rows = X[np.random.default_rng(0).integers(len(X), size=BATCH)] * 1.0
    rows += 1e-3 * X.std(axis=0) * np.random.default_rng(1).normal(size=rows.shape)
    explainer = limes.TabularExplainer(model, X, output=1, method="exact")
    exact = explainer(rows[:1]).coefficients.values[0]
    result = [
        {"way": f"exact, {BATCH:,} rows", **_timed(lambda: explainer(rows, progress=False), BATCH, rounds)},
        {"way": "exact, one row", **_timed(lambda: explainer(rows[:1]), 1, rounds)},
    ]
    for calls in SAMPLES:
        say(f"sampled, {calls:,} calls")
        sampled = limes.TabularExplainer(
            model, X, output=1, method="sampled", max_calls=calls, control="none", rng=0
        )
        error = float(np.abs(sampled(rows[:1]).coefficients.values[0] - exact).max() / np.abs(exact).max())
        timed = _timed(lambda s=sampled: s(rows[:1]), 1, min(rounds, 3))
        result.append({"way": f"limes sampled, {calls:,} calls", **timed, "error": error})
    return [
        *result,
        *_lime(model, X, rows[0], exact, min(rounds, 3)),
        *_shap(model, X, rows[0], min(rounds, 3)),
    ]


def _timed(work: Any, rows: int, rounds: int) -> dict[str, float]:
    work()
    wall, processor = [], []
    for _ in range(rounds):
        start, started = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - started)
    return {"ms": 1e3 * min(wall) / rows, "processor_ms": 1e3 * min(processor) / rows}


def _lime(model: Any, X: Any, row: Any, exact: Any, rounds: int) -> list[dict]:
    try:
        from lime.lime_tabular import LimeTabularExplainer
    except ImportError:
        return []
    explainer = LimeTabularExplainer(X, random_state=0)

    def explain() -> Any:
        return explainer.explain_instance(row, model.predict_proba, num_features=X.shape[1])

    coef = np.zeros(X.shape[1])
    for j, value in explain().local_exp[1]:
        coef[j] = value
    error = float(np.abs(coef - exact).max() / np.abs(exact).max())
    return [{"way": f"lime, {LIME_SAMPLES:,} samples", **_timed(explain, 1, rounds), "error": error}]


def _shap(model: Any, X: Any, row: Any, rounds: int) -> list[dict]:
    """shap's explainers of the same model, for their time: Shapley values are other numbers."""
    try:
        import shap
    except ImportError:
        return []
    few = X[:100]
    linear = shap.LinearExplainer(model[-1], model[:-1].transform(few))
    kernel = shap.KernelExplainer(model.predict_proba, few)
    permutation = shap.PermutationExplainer(model.predict_proba, few)
    scaled = model[:-1].transform(row[None])
    ways = {
        "shap LinearExplainer (of the margin)": lambda: linear.shap_values(scaled),
        "shap KernelExplainer, 100 background rows": lambda: kernel.shap_values(row[None], silent=True),
        "shap PermutationExplainer, 100 background rows": lambda: permutation(row[None], silent=True),
    }
    with catch_warnings():
        simplefilter("ignore")
        return [{"way": way, **_timed(work, 1, rounds), "error": None} for way, work in ways.items()]
