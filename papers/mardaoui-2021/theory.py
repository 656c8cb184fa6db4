"""The paper's formulas, with the errata mended: Propositions 1 to 3, and the rule of Eq. (12)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

RULE = 1.36


def psi(share: np.ndarray, bandwidth: float) -> np.ndarray:
    """Weight of a text that so large a share of the words has been taken out of (Eq. 4)."""
    return np.exp(-((1 - np.sqrt(1 - share)) ** 2) / (2 * bandwidth**2))


def alpha(p: int, d: int, bandwidth: float) -> float:
    """E[π z_1 ... z_p] (Proposition 1)."""
    s = np.arange(1, d + 1)
    kept = np.prod([(d - s - k) / (d - k) for k in range(p)], axis=0)
    return float(np.mean(kept * psi(s / d, bandwidth)))


def sigmas(d: int, bandwidth: float) -> tuple[float, float, float]:
    """σ_1, σ_2, σ_3 of Definition 4 over c_d of Eq. (7)."""
    a0, a1, a2 = (alpha(p, d, bandwidth) for p in range(3))
    c = (d - 1) * a0 * a2 - d * a1**2 + a0 * a1
    second = ((d - 2) * a0 * a2 - (d - 1) * a1**2 + a0 * a1) / (a1 - a2)
    third = (a1**2 - a0 * a2) / (a1 - a2)
    return -a1 / c, second / c, third / c


def product(words: Sequence[int], d: int, bandwidth: float) -> np.ndarray:
    """β of the indicator that p words are all there (Proposition 3), (d,)."""
    p = len(words)
    s1, s2, s3 = sigmas(d, bandwidth)
    kept, one_more = alpha(p, d, bandwidth), alpha(p + 1, d, bandwidth) if p < d else 0.0
    beta = np.full(d, s1 * kept + s2 * one_more + (d - p - 1) * s3 * one_more + p * s3 * kept)
    beta[list(words)] = s1 * kept + s2 * kept + (d - p) * s3 * one_more + (p - 1) * s3 * kept
    return beta


def presence(on: Sequence[int], off: Sequence[int], d: int, bandwidth: float) -> np.ndarray:
    """β of ∏ z ∏ (1 - z): products of words that are there, by linearity."""
    return sum(
        (-1) ** count * product([*on, *removed], d, bandwidth)
        for count in range(len(off) + 1)
        for removed in combinations(off, count)
    )
