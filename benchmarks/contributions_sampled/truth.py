"""Shapley values by the values of all sets of columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import factorial

import numpy as np


def shapley_values(values: np.ndarray) -> np.ndarray:
    """Contributions by the values of all sets of d columns, (2^d,), the first column's bit the highest."""
    d = int(np.log2(values.size))
    kept = np.array(list(itertools.product((False, True), repeat=d)))
    sizes, place = kept.sum(axis=1), 1 << np.arange(d)[::-1]
    shares = np.array([factorial(s) * factorial(d - 1 - s) / factorial(d) for s in range(d)])
    phi = []
    for j in range(d):
        without = np.flatnonzero(~kept[:, j])
        phi.append((shares[sizes[without]] * (values[without + place[j]] - values[without])).sum())
    return np.array(phi)


def of_background(
    answer: Callable[[np.ndarray], np.ndarray], background: np.ndarray, row: np.ndarray
) -> tuple[float, np.ndarray]:
    """v(no column), and Shapley values, of v(S) = mean of f(row_S, b_-S) over the background's rows b."""
    d = row.size
    kept = np.array(list(itertools.product((False, True), repeat=d)))
    values = np.empty(len(kept))
    for start in range(0, len(kept), 1024):
        some = kept[start : start + 1024]
        mixed = np.where(some[:, None], row, background)
        values[start : start + 1024] = answer(mixed.reshape(-1, d)).reshape(len(some), -1).mean(axis=1)
    return float(values[0]), shapley_values(values)
