"""LIME's sampling, repeated: draw rows of LIME's law, weight them, fit a ridge.

limes draws from the weighted law, so its estimates vary less than ``lime``'s. The papers show how much those
of ``lime`` vary.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# (rng, n) -> features h (n, d), values f(x) (n,) and weights π (n,) of n rows
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


def repeated(
    draw: Draw, *, runs: int, samples: int, penalty: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts (runs,) and coefficients (runs, d) of independent fits, each to ``samples`` rows."""
    streams = np.random.default_rng(seed).spawn(runs)
    fits = [weighted_ridge(*draw(stream, samples), penalty=penalty) for stream in streams]
    return np.array([intercept for intercept, _ in fits]), np.array([coef for _, coef in fits])


def weighted_ridge(
    h: np.ndarray, f: np.ndarray, weights: np.ndarray, *, penalty: float = 1.0
) -> tuple[float, np.ndarray]:
    """Minimise Σ π (f - b₀ - b·h)² + penalty ‖b‖², the intercept b₀ not penalised, as ``lime`` does."""
    share = weights / weights.sum()
    mean_h, mean_f = share @ h, share @ f
    root = np.sqrt(weights)[:, None]
    centred, centred_f = (h - mean_h) * root, (f - mean_f) * root[:, 0]
    gram = centred.T @ centred + penalty * np.eye(h.shape[1])
    # where penalty = 0 and rows are few the least of all solutions
    coef = np.linalg.lstsq(gram, centred.T @ centred_f, rcond=None)[0]
    return float(mean_f - mean_h @ coef), coef
