"""Measure all that is measured of texts."""

from __future__ import annotations

from benchmarks.progress import say
from benchmarks.speed.run import machine
from benchmarks.text import agreement, cases, speed
from benchmarks.text.agreement import RUNS as RUNS
from benchmarks.text.speed import ROUNDS as ROUNDS


def measure(rounds: int = ROUNDS, seeds: int = RUNS) -> dict:
    """Speed first, as it wants the machine for itself."""
    texts, stars = cases.reviews()
    models = cases.models(texts, stars)
    result = {
        "machine": machine(),
        "rounds": rounds,
        "exact": speed.exact(texts, models, rounds),
        "sampled": speed.sampled(texts, models[cases.MARGIN], rounds),
        "batch": speed.batch(texts, models[cases.MARGIN]),
        "agreement": agreement.measure(runs=seeds),
    }
    say("done\n")
    return result
