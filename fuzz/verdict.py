"""The outcome of one explainer: agreement, or what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any

AGREES, MISMATCH, NOT_FINITE, CRASH = "agrees", "mismatch", "not finite", "crash"
REFUSED, REJECTED, SAMPLED, SKIPPED = "refused", "rejected", "sampled", "skipped"
# What the fuzzer is there to find
FAULTS = (MISMATCH, NOT_FINITE, CRASH)

# Where a coefficient may truly be 0, errors are judged against this share of the largest answer: with a
# tolerance of 1e-9 that is a few thousand roundings of the answers themselves.
VANISHING = 1e-3


@dataclass(frozen=True)
class Verdict:
    """One explainer's outcome.

    Attributes
    ----------
    kind
        One of the names above.
    triples
        Rows that were compared.
    detail
        What was wrong or why it was not compared.
    row
        The place of the row that is furthest off, -1 where none is.
    found, expected
        Its coefficients and intercept, (d + 1, k).
    """

    kind: str
    triples: int = 0
    detail: str = ""
    row: int = -1
    result: list[Any] = field(default_factory=list)
    expected: list[Any] = field(default_factory=list)

    @property
    def fault(self) -> bool:
        """Whether the library is accused."""
        return self.kind in FAULTS


def compare(
    values: Array,
    intercepts: Array,
    beta: Array,
    start: Array,
    size: float,
    *,
    slope: float,
    level: float,
    units: Array = 1.0,
    rounding: float = 0.0,
    reach: float = 1.0,
) -> Verdict:
    """Hold coefficients (n, d, k) and intercepts (n, k) against the oracle's.

    Errors are relative to the largest coefficient (intercept) of the row, or to ``VANISHING`` of ``size``;
    slopes count per ``units`` (d,) of their columns. ``rounding`` is how far a rounding of the background
    moves a probability: it moves a mean of answers by that share of ``size``, however small the coefficients.
    An intercept lies ``reach`` units of a slope away from the data, and moves that much more.
    """
    values = np.asarray(values, dtype=float).reshape(beta.shape)
    intercepts = np.asarray(intercepts, dtype=float).reshape(start.shape)
    bad = ~(np.isfinite(values).all(axis=(1, 2)) & np.isfinite(intercepts).all(axis=1))
    if bad.any():
        return _verdict(
            NOT_FINITE, int(np.argmax(bad)), "a coefficient is not finite", values, intercepts, beta, start
        )
    floor = VANISHING * size
    unit = np.broadcast_to(np.asarray(units, dtype=float), beta.shape[1:2])[None, :, None]
    largest = np.abs(beta * unit).max(axis=(1, 2))
    gap = np.abs((values - beta) * unit).max(axis=(1, 2))
    off = gap / (slope * np.maximum(largest, floor or 1.0) + rounding * size)
    gap = np.abs(intercepts - start).max(axis=1)
    # the intercept is a level less a sum of coefficients
    scale = np.maximum(np.abs(start).max(axis=1), np.abs(beta).max(axis=(1, 2)))
    off = np.maximum(off, gap / (level * np.maximum(scale, floor or 1.0) + rounding * size * reach))
    worst = int(np.argmax(off))
    if off[worst] > 1.0:
        text = f"off by {off[worst]:.3g} times the tolerance {slope:g}"
        return _verdict(MISMATCH, worst, text, values, intercepts, beta, start)
    return Verdict(AGREES, len(values))


def _verdict(
    kind: str, row: int, detail: str, values: Array, intercepts: Array, beta: Array, start: Array
) -> Verdict:
    result = np.vstack([values[row], intercepts[row][None]]).tolist()
    expected = np.vstack([beta[row], start[row][None]]).tolist()
    return Verdict(kind, len(values), detail, row, result, expected)
