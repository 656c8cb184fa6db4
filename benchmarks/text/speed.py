"""Seconds a text, in turn: limes exact and sampled, and ``lime``; and what accuracy that buys."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.progress import say
from benchmarks.text import cases, lime_runs
from limes import TextExplainer

SIZES = (50, 200)
ROUNDS = 3
# Model calls of limes, of which the fewest are taken that are as accurate as lime's 5,000
CALLS = (512, 1024, 1536, 2048, 4096)
TRUTH = 100_000
BATCH = 1000

Way = Callable[[int], object]


def exact(texts: Sequence[str], models: Mapping[str, cases.Model], rounds: int = ROUNDS) -> list[dict]:
    """Each model at texts of each size: limes exact, and ``lime``."""
    rows = []
    for size in SIZES:
        text = cases.with_words(texts, size)
        for name, model in models.items():
            say(f"speed: {name}, {size} words")
            explainer = TextExplainer(model.pipeline, split=r"\W+", output=model.output, method="exact")
            seconds = in_turn(
                {
                    "limes": lambda _, e=explainer, t=text: e(t),
                    "lime": lambda seed, m=model, t=text: lime_runs.run([m.ask], t, seed),
                },
                rounds,
            )
            rows.append({"model": name, "words": cases.distinct(text), "seconds": seconds})
    return rows


def sampled(texts: Sequence[str], model: cases.Model, rounds: int = ROUNDS) -> dict:
    """A probability of the longer text: calls and seconds that limes needs for lime's accuracy."""
    text = cases.with_words(texts, SIZES[-1])

    def probability(batch: Sequence[str]) -> np.ndarray:
        return model.pipeline.predict_proba(batch)[:, 1]

    truth = _sampled(model, TRUTH, 99)(text)
    seeds = range(2 * rounds)
    say("speed: errors of lime")
    coefs, words = zip(*(lime_runs.run([probability], text, seed) for seed in seeds), strict=True)
    order = [truth.feature_names.index(word) for word in words[0]]
    theirs = _error(np.array(coefs)[:, 0, :-1] - truth.coefficients.values[0, order])
    errors = {}
    for calls in CALLS:
        say(f"speed: errors of limes at {calls} calls")
        errors[calls] = _error(
            [
                _sampled(model, calls, s)(text).coefficients.values[0] - truth.coefficients.values[0]
                for s in seeds
            ]
        )
    calls = next((c for c in CALLS if errors[c] <= theirs), CALLS[-1])
    ours = _sampled(model, calls, 0)
    seconds = in_turn(
        {"limes": lambda _: ours(text), "lime": lambda seed: lime_runs.run([probability], text, seed)}, rounds
    )
    return {
        "words": cases.distinct(text),
        "error": {"lime": theirs, **{str(c): errors[c] for c in CALLS}},
        "truth_error": float(np.sqrt(np.mean(truth.coefficients.standard_errors**2))),
        "calls": calls,
        "seconds": seconds,
    }


def batch(texts: Sequence[str], model: cases.Model, count: int = BATCH) -> dict:
    """Many reviews in one call, with its progress bar."""
    chosen = [text for text in texts[cases.TRAINING :] if cases.distinct(text)][:count]
    explainer = TextExplainer(model.pipeline, split=r"\W+", output=model.output, method="exact")
    explainer(chosen[0])
    start = time.perf_counter()
    explainer(chosen, progress=True)
    words = np.array([cases.distinct(text) for text in chosen])
    return {
        "texts": len(chosen),
        "words": [int(q) for q in np.quantile(words, (0.5, 1))],
        "seconds": time.perf_counter() - start,
    }


def in_turn(ways: Mapping[str, Way], rounds: int) -> dict[str, dict[str, float]]:
    """Medians over rounds of wall-clock and CPU seconds; the first round only warms up."""
    wall = {name: np.empty(rounds + 1) for name in ways}
    cpu = {name: np.empty(rounds + 1) for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            start, used = time.perf_counter(), time.process_time()
            way(turn)
            wall[name][turn], cpu[name][turn] = time.perf_counter() - start, time.process_time() - used
    return {
        name: {"wall": float(np.median(wall[name][1:])), "cpu": float(np.median(cpu[name][1:]))}
        for name in ways
    }


def _sampled(model: cases.Model, calls: int, seed: int) -> Callable:
    explainer = TextExplainer(model.pipeline, split=r"\W+", output="True", max_calls=calls, rng=seed)
    return lambda text: explainer(text, progress=False)


def _error(differences: Sequence[np.ndarray] | np.ndarray) -> float:
    """Root of the mean square over coefficients and seeds."""
    return float(np.sqrt(np.mean(np.square(differences))))
