"""Measure agreement with repeated runs of ``lime``, and seconds a text."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.progress import say
from benchmarks.text import cases
from limes import TextExplainer

SAMPLES = 5000
RUNS = 10
TEXTS = 20
SIZES = (50, 200)
ROUNDS = 5


def lime_run(model: Any, method: str, text: str, seed: int) -> tuple[np.ndarray, list[str]]:
    """Coefficients of one run at the defaults, with all words kept in the fit; and the words."""
    from lime.lime_text import LimeTextExplainer

    def ask(texts: list[str]) -> np.ndarray:
        answer = np.asarray(getattr(model, method)(texts), dtype=float)
        return answer if answer.ndim == 2 else np.stack([-answer, answer], axis=1)

    explainer = LimeTextExplainer(feature_selection="none", random_state=seed)
    found = explainer.explain_instance(text, ask, num_features=cases.distinct(text), num_samples=SAMPLES)
    by_word = dict(found.local_exp[1])
    words = found.domain_mapper.indexed_string
    return np.array([by_word[i] for i in range(len(by_word))]), [words.word(i) for i in range(len(by_word))]


def agreement(runs: int = RUNS, texts: int = TEXTS) -> list[dict]:
    """How far the exact values lie from the mean of repeated runs, in standard errors of that mean."""
    everything, stars = cases.reviews()
    models = cases.models(everything, stars)
    chosen = [t for t in everything[cases.TRAINING :] if 10 <= cases.distinct(t) <= 150][:texts]
    rows = []
    for name, (model, method) in models.items():
        output = "margin" if method == "decision_function" else None
        explainer = TextExplainer(model, output=output, ridge=1.0, method="exact")
        z = []
        for place, text in enumerate(chosen):
            say(f"agreement, {name}: text {place + 1} of {len(chosen)}")
            found = explainer(text)
            theirs = [lime_run(model, method, text, seed) for seed in range(runs)]
            order = [found.feature_names.index(word) for word in theirs[0][1]]
            coefs = np.array([coef for coef, _ in theirs])
            spread = coefs.std(axis=0, ddof=1) / np.sqrt(runs)
            z += ((coefs.mean(axis=0) - found.values[0, order]) / spread).tolist()
        rows.append({"model": name, "coefficients": len(z), **_told(np.array(z), runs)})
    return rows


def _told(z: np.ndarray, runs: int) -> dict[str, float]:
    from scipy.stats import t

    reach = t.ppf(0.975, runs - 1)
    return {
        "inside 95 % intervals": float((np.abs(z) <= reach).mean()),
        "largest |t|": float(np.abs(z).max()),
        "largest |t| expected": float(t.ppf(1 - 0.25 / z.size, runs - 1)),
    }


def speed(rounds: int = ROUNDS) -> list[dict]:
    """Median seconds a text, in turn."""
    everything, stars = cases.reviews()
    models = cases.models(everything, stars)
    model, method = models["TF-IDF + logistic margin"]
    exact = TextExplainer(model, output="margin")
    sampled = TextExplainer(model, output="True")
    rows = []
    for size in SIZES:
        text = cases.with_words(everything, size)
        ways: dict[str, Callable[[int], object]] = {
            "limes exact, margin": lambda _, t=text: exact(t),
            "limes sampled, probability": lambda _, t=text: sampled(t),
            "lime, margin": lambda seed, t=text: lime_run(model, method, t, seed),
            "lime, probability": lambda seed, t=text: lime_run(model, "predict_proba", t, seed),
        }
        for way in ways.values():
            way(0)
        times = {name: [] for name in ways}
        for turn in range(rounds):
            say(f"speed, {size} words: round {turn + 1} of {rounds}")
            for name, way in ways.items():
                start = time.perf_counter()
                way(turn)
                times[name].append(time.perf_counter() - start)
        medians = {name: float(np.median(found)) for name, found in times.items()}
        rows.append({"words": cases.distinct(text), **medians, **_errors(model, sampled, text)})
    return rows


def _errors(model: Any, sampled: TextExplainer, text: str) -> dict[str, float]:
    """Root mean squared errors of the probability's coefficients, against 400,000 calls of limes."""
    truth = TextExplainer(model, output="True", max_calls=400_000, rng=1)(text)
    ours = sampled(text).values[0] - truth.values[0]
    seeds = range(3)
    theirs = []
    for seed in seeds:
        coef, words = lime_run(model, "predict_proba", text, seed)
        theirs.append(coef - truth.values[0, [truth.feature_names.index(word) for word in words]])
    return {
        "error of limes": float(np.sqrt(np.mean(ours**2))),
        "error of lime": float(np.sqrt(np.mean(np.square(theirs)))),
    }


def batch(count: int = 1000) -> dict[str, float]:
    """Seconds for many reviews."""
    everything, stars = cases.reviews()
    model, _ = cases.models(everything, stars)["TF-IDF + logistic margin"]
    texts = [t for t in everything[cases.TRAINING :] if re.search(r"\w", t)][:count]
    explainer = TextExplainer(model, output="margin")
    start = time.perf_counter()
    explainer(texts)
    return {"texts": len(texts), "seconds": time.perf_counter() - start}
