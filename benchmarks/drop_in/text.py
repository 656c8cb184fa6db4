"""Texts at lime's defaults: reviews of 50 and 200 words, TF-IDF and a logistic regression, 5,000 samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.drop_in.turns import in_turn
from benchmarks.progress import say
from benchmarks.speed.cases import AbsentError
from benchmarks.text import cases

SIZES = (50, 200)
OUTSIDE, ALTOGETHER = 10.0, 50.0
# lime selects forward up to six features, which takes it longer, and ranks above
FEATURES = (6, 10)
GOALS = {
    **{
        f"text of {size} words, {count} features, engine lime: times less outside the model": OUTSIDE
        for size in SIZES
        for count in FEATURES
    },
    **{f"text of {size} words, margin, engine limit: times less": ALTOGETHER for size in SIZES},
}


def measure() -> dict[str, float]:
    """Seconds a call, and how many times ``lime``'s they are."""
    texts, opinions = _reviews()
    pipeline = cases.models(texts, opinions)[cases.MARGIN].pipeline
    figures: dict[str, float] = {}
    for size in SIZES:
        text = cases.with_words(texts, size)
        for count in FEATURES:
            figures |= _outside(f"text of {size} words, {count} features", text, pipeline, count)
        for output in ("margin", "probability"):
            figures |= _altogether(f"text of {size} words, {output}", text, pipeline, output)
    return figures


def _outside(name: str, text: str, pipeline: Any, count: int) -> dict[str, float]:
    """Engine lime beside lime: what is not the model's own time."""
    say(f"drop-in: {name}")
    result = in_turn(
        pipeline.predict_proba,
        {
            "lime": lambda model: _lime().explain_instance(text, model, num_features=count),
            "engine lime": lambda model: _limes("lime").explain_instance(text, model, num_features=count),
        },
    )
    figures = {f"{name}, {way}: s outside the model": cost.outside for way, cost in result.items()}
    times = result["lime"].outside / result["engine lime"].outside
    return figures | {f"{name}, engine lime: times less outside the model": times}


def _altogether(name: str, text: str, pipeline: Any, output: str) -> dict[str, float]:
    """Engine limit, which reads the Pipeline, beside lime, which asks it."""
    say(f"drop-in: {name}")
    theirs, ours, mode = {
        "margin": (_both_margins(pipeline), pipeline.decision_function, "regression"),
        "probability": (pipeline.predict_proba, pipeline.predict_proba, "classification"),
    }[output]
    result = in_turn(
        theirs,
        {
            "lime": lambda model: _lime().explain_instance(text, model),
            "engine limit": lambda _: _limes("limit", mode).explain_instance(text, ours),
        },
    )
    figures = {f"{name}, {way}: s": cost.total for way, cost in result.items()}
    return figures | {
        f"{name}, engine limit: times less": result["lime"].total / result["engine limit"].total
    }


def _both_margins(pipeline: Any) -> Callable[[Sequence[str]], np.ndarray]:
    """The margin as ``lime`` takes it: a column a class."""

    def margins(batch: Sequence[str]) -> np.ndarray:
        margin = pipeline.decision_function(batch)
        return np.column_stack([-margin, margin])

    return margins


def _lime() -> Any:
    from lime.lime_text import LimeTextExplainer

    return LimeTextExplainer(random_state=0)


def _limes(engine: str, mode: str = "classification") -> Any:
    from limes.compat.lime.lime_text import LimeTextExplainer

    return LimeTextExplainer(random_state=0, engine=engine, mode=mode)


def _reviews() -> tuple[list[str], np.ndarray]:
    """Yelp's reviews; where they are absent, words as frequent as in any language, and an opinion."""
    try:
        return cases.reviews()
    except AbsentError:
        rng = np.random.default_rng(0)
        words = np.array([f"word{i}" for i in range(5000)])
        share = 1.0 / np.arange(1, len(words) + 1)
        drawn = [rng.choice(words, rng.integers(20, 500), p=share / share.sum()) for _ in range(6000)]
        stars = [3.0 + np.sign(np.isin(row, words[10:90:2]).sum() - len(row) / 12) for row in drawn]
        return [" ".join(row) for row in drawn], np.array(stars)
