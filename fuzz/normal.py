"""The normal law on intervals, in logarithms: tails of 200 standard deviations keep their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr

Array = Any
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


def log_mass(a: Array, b: Array) -> Array:
    """log(Φ(b) - Φ(a)); -inf where b <= a."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    flip = a > 0  # the upper tail is the lower one, mirrored
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        top, bottom = log_ndtr(high), log_ndtr(low)
        result = top + np.log(-np.expm1(np.where(np.isneginf(bottom), -np.inf, bottom - top)))
    return np.where(low < high, result, -np.inf)


def log_interval(low: Array, high: Array, mean: Array, std: Array) -> Array:
    """Log of the integral over (low, high) of the density, or of 1 where std is infinite."""
    flat = np.isinf(std)
    scale = np.where(flat, 1.0, std)
    center = np.where(flat, 0.0, mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.log(np.maximum(high - low, 0.0))
        curved = log_mass((low - center) / scale, (high - center) / scale)
    return np.where(flat, length, curved)


def log_density(x: Array, mean: Array, std: Array) -> Array:
    """Log density; 0 where std is infinite."""
    flat = np.isinf(std)
    scale = np.where(flat, 1.0, std)
    with np.errstate(invalid="ignore"):
        curved = -0.5 * ((x - np.where(flat, 0.0, mean)) / scale) ** 2 - np.log(scale) - _LOG_ROOT
    return np.where(flat, 0.0, curved)


def log_sum(x: Array) -> float:
    """Log of a sum of exponentials; -inf of nothing."""
    top = float(np.max(x, initial=-np.inf))
    return top if np.isinf(top) else top + float(np.log(np.exp(x - top).sum()))
