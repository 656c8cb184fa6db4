"""Error of an averaged probability against nodes and time: the quadrature, and sampling."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from limes.theory import expected_link

COLUMNS = 30
ERRORS = 10.0 ** -np.arange(1, 14)
DRAWS = 4 ** np.arange(3, 10)
_SEEDS = 10


def measure() -> dict[str, list[dict[str, float]]]:
    """E σ(c + Σ_j a_j x_j) of 30 columns of two values: nodes or draws, errors, milliseconds of processor."""
    rng = np.random.default_rng(0)
    effects, shares = rng.normal(size=COLUMNS), rng.uniform(0.2, 0.8, size=COLUMNS)
    lower, upper = np.minimum(effects, 0).sum() - 1.0, np.maximum(effects, 0).sum() - 1.0

    def generating(z: Any) -> Any:
        return np.exp(-z) * np.prod(1.0 - shares + shares * np.exp(np.multiply.outer(z, effects)), axis=1)

    # with more digits than any of those measured
    truth = expected_link(generating, lower - 20.0, upper + 20.0, error=1e-13).value

    def quadrature(error: float) -> dict[str, float]:
        milliseconds, result = _timed(lambda: expected_link(generating, lower, upper, error=error))
        gap = max(abs(result.value - truth), 1e-16)
        return {"nodes": result.nodes, "error": gap, "bound": result.error, "ms": milliseconds}

    def sampled(draws: int) -> dict[str, float]:
        def mean(seed: int) -> float:
            x = np.random.default_rng(seed).random((draws, COLUMNS)) < shares
            return float((1.0 / (1.0 + np.exp(1.0 - x @ effects))).mean())

        milliseconds, _ = _timed(lambda: mean(0))
        gaps = [mean(seed) - truth for seed in range(_SEEDS)]
        return {"nodes": draws, "error": float(np.sqrt(np.mean(np.square(gaps)))), "ms": milliseconds}

    return {
        "quadrature": [quadrature(float(error)) for error in ERRORS],
        "sampled": [sampled(int(draws)) for draws in DRAWS],
    }


def _timed(work: Any, rounds: int = 5) -> tuple[float, Any]:
    result = work()
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start)
    return 1e-6 * min(times), result
