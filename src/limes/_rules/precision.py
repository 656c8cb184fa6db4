"""The precision error P(w) = E[|f(z) - f(x)| given w·z = w·x], and upper bounds of expectations from samples.

With u = w∘x, w·z = w·x if and only if the flipped literals T of the support have Σ_T u_j = 0. There are at
most 2^|S| such sets; given one, all other literals flip by the law. For generic weights only the empty set
qualifies, and P depends on the support alone; with more than 20 literals no other set is looked for. The
bounds hold at a stated confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats
from limes._rules.neighbourhood import LiteralNeighbourhood
from limes.exceptions import InputError


def bernstein_bound(values: Floats, *, largest: float, risk: float) -> float:
    r"""Empirical Bernstein: E ≤ mean + √(2 V ln(2/δ)/n) + 7 L ln(2/δ)/(3(n - 1)) with probability ≥ 1 - δ.

    Maurer and Pontil 2009, Theorem 4.
    """
    n = values.size
    if n < 2:
        raise InputError(f"a bound needs two fresh rows at least, got {n}")
    log = float(np.log(2.0 / risk))
    deviation = np.sqrt(2.0 * values.var(ddof=1) * log / n)
    return float(min(largest, values.mean() + deviation + 7.0 * largest * log / (3.0 * (n - 1))))


def theorem_accuracy(samples: int, size: int, k: int, risk: float) -> float:
    """Return ε of a sample: (((32 ln 2d + 8 ln 2/δ)(k + 1)²)/m)^½, of Koriche et al. 2025, Theorem 2, mended.

    With probability 1 - δ the mean of |w·z - f(z)| exceeds the sample's by ε at most, for all k-sparse w in
    [-1, 1]^d at once: the loss that the paper's proof bounds. It prints ^¼, for √fidelity and precision,
    which do not follow.
    """
    return float(np.sqrt(_demand(size, k, risk) / samples))


def theorem_samples(accuracy: float, size: int, k: int, risk: float) -> float:
    return float(np.ceil(_demand(size, k, risk) / accuracy**2))


def _demand(size: int, k: int, risk: float) -> float:
    return float((32.0 * np.log(2.0 * size) + 8.0 * np.log(2.0 / risk)) * (k + 1) ** 2)


# A sum of coefficients is zero below this share of their sizes, as weights are rounded
_ZERO = 1e-9
# Largest number of literals whose subsets are listed
_LARGEST_SUPPORT = 20
# Largest number of free literals that are enumerated: 16,384 rows per set
EXACT_LITERALS = 14


@dataclass(frozen=True, eq=False)
class Precision:
    """P(w), its standard error (0 where exact), Pr[w·z = w·x], and the sampled errors ((0,) where exact)."""

    value: float
    error: float
    coincidence: float
    draws: Floats


def zero_sum_sets(u: Floats) -> Bools:
    """Return sets of positions whose coefficients add up to 0, (sets, n); the empty one first."""
    if u.size > _LARGEST_SUPPORT:
        raise InputError(f"sets of at most {_LARGEST_SUPPORT} literals are listed, these are {u.size}")
    sets = _subsets(u.size)
    return np.asarray(sets[np.abs(sets @ u) <= _ZERO * np.abs(u).sum()])


def precision(
    near: LiteralNeighbourhood,
    predict: Callable[[Floats], Floats],
    u: Floats,
    target: float,
    *,
    draws: int,
    rng: np.random.Generator,
    exact_literals: int = EXACT_LITERALS,
) -> Precision:
    """Compute P(w), exactly where few literals are free and determine the rows."""
    support, rest = np.flatnonzero(u), np.flatnonzero(u == 0.0)
    law, none = near.law, np.zeros((1, support.size), dtype=np.bool_)
    sets = zero_sum_sets(u[support]) if support.size <= _LARGEST_SUPPORT else none
    flipped = sets.sum(axis=1)
    probability = law.pattern(flipped, support.size)
    coincidence = float(probability.sum())

    def answers(inside: Bools, outside: Bools) -> Floats:
        flips = np.empty((len(outside), u.size), dtype=np.bool_)
        flips[:, support], flips[:, rest] = inside, outside
        return predict(near.rows(flips, rng))

    if near.decided_by_flips and rest.size <= exact_literals:
        free = _subsets(rest.size)
        weights = law.pattern(flipped[:, None] + free.sum(axis=1), u.size)
        parts = [
            weight @ np.abs(answers(set_, free) - target) for weight, set_ in zip(weights, sets, strict=True)
        ]
        return Precision(float(np.sum(parts) / coincidence), 0.0, coincidence, np.zeros(0))
    drawn = rng.choice(len(sets), draws, p=probability / coincidence)
    errors = np.abs(answers(sets[drawn], law.elsewhere(rng, flipped[drawn], rest)) - target)
    return Precision(float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(draws)), coincidence, errors)


def _subsets(n: int) -> Bools:
    return np.asarray((np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1)
