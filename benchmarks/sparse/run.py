"""Measure: the projection alone, and an explanation with its certificate, without the model's own time."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np

import limes
from benchmarks.progress import say
from benchmarks.speed.run import machine
from limes._rules.neighbourhood import LiteralFlips
from limes._rules.problem import PopulationProblem, projection

LITERALS = (20, 100, 500, 2000, 10_000)
K, SAMPLES, SPREAD = 7, 1000, 1.0
_ROUNDS = 30
# Milliseconds that the projection may take, by literals
GOALS = {500: 1.0, 10_000: 50.0}


def measure() -> dict:
    """Median milliseconds of one thread, by the number of literals."""
    result = []
    for d in LITERALS:
        say(f"sparse: {d} literals")
        rng = np.random.default_rng(0)
        weights, x = rng.normal(size=d) / np.sqrt(d), rng.choice([-1.0, 1.0], d)
        result.append({"literals": d, "path": _path(weights, x), "explanation": _explanation(weights, x)})
    return {"machine": machine(), "samples": SAMPLES, "k": K, "cases": result}


def _path(weights: np.ndarray, x: np.ndarray) -> float:
    """From an instance to its weights: draw rows, Γ, project, Γ with that as its control, project."""
    clock, target = Clock(lambda rows: np.tanh(rows @ weights)), float(np.tanh(x @ weights))
    rng = np.random.default_rng(0)

    def path() -> None:
        near = LiteralFlips(x, SPREAD)
        flips = near.law.flips(rng, SAMPLES)
        rows = near.rows(flips, rng)
        values, u = clock(rows), np.zeros(x.size)
        for _ in range(2):
            support = np.flatnonzero(u)
            residuals = values - (1.0 - 2.0 * flips[:, support]) @ u[support]
            gamma = near.law.variance * u + (residuals - residuals.mean()) @ (1.0 - 2.0 * flips) / SAMPLES
            problem = PopulationProblem(x, target, near.law, gamma, float(values.mean()), float(values.var()))
            u = projection(problem, K).w * x

    return clock.median_without(path)


def _explanation(weights: np.ndarray, x: np.ndarray) -> float:
    """SparseExplainer at its defaults: thrice the rows, bounds, names and texts besides."""
    clock = Clock(lambda rows: np.tanh(rows @ weights))
    explainer = limes.SparseExplainer(clock, k=K, samples=SAMPLES, spread=SPREAD)
    return clock.median_without(lambda: explainer(x[None], progress=False))


class Clock:
    """A model that knows how long it took."""

    def __init__(self, predict: Callable[[np.ndarray], np.ndarray]) -> None:
        self._predict = predict
        self._seconds = 0.0

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        began = process_time()
        result = self._predict(rows)
        self._seconds += process_time() - began
        return result

    def median_without(self, work: Callable[[], object]) -> float:
        """Milliseconds of work less those of the model."""
        work()
        seconds = []
        for _ in range(_ROUNDS):
            self._seconds, began = 0.0, process_time()
            work()
            seconds.append(process_time() - began - self._seconds)
        return 1e3 * float(np.median(seconds))
