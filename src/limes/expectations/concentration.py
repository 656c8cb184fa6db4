"""Upper bounds of an expectation from a sample, at a stated confidence."""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError


def bernstein_bound(values: Floats, *, largest: float, risk: float) -> float:
    r"""Empirical Bernstein: E ≤ mean + √(2 V ln(2/δ)/n) + 7 L ln(2/δ)/(3(n - 1)) with probability ≥ 1 - δ.

    Parameters
    ----------
    values
        (n,) independent draws, all in [0, L].
    largest
        L.
    risk
        δ in (0, 1).

    Raises
    ------
    InputError
        If there are fewer than two draws.

    References
    ----------
    Maurer and Pontil 2009, Theorem 4.

    Examples
    --------
    >>> bernstein_bound(np.array([0.0, 0.5, 1.0] * 100), largest=1.0, risk=0.05).__round__(3)
    0.593
    """
    n = values.size
    if n < 2:
        raise InputError(f"a bound needs two fresh rows at least, got {n}")
    log = float(np.log(2.0 / risk))
    deviation = np.sqrt(2.0 * values.var(ddof=1) * log / n)
    return float(min(largest, values.mean() + deviation + 7.0 * largest * log / (3.0 * (n - 1))))


def theorem_accuracy(samples: int, size: int, k: int, risk: float) -> float:
    """Return ε of a sample: (((32 ln 2d + 8 ln 2/δ)(k + 1)²)/m)^¼, of Koriche et al. 2025, Theorem 2.

    It holds for √fidelity; the paper's step from there to precision is wrong.
    """
    return float((_demand(size, k, risk) / samples) ** 0.25)


def theorem_samples(accuracy: float, size: int, k: int, risk: float) -> float:
    """Return the number of rows that the theorem asks for to be within ε."""
    return float(np.ceil(_demand(size, k, risk) / accuracy**4))


def _demand(size: int, k: int, risk: float) -> float:
    return float((32.0 * np.log(2.0 * size) + 8.0 * np.log(2.0 / risk)) * (k + 1) ** 2)
