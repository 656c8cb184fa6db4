"""Warnings that a sampled explanation carries: ties, accuracy not reached, odd probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from limes._arrays import Floats
from limes.pipeline import Fitted

# Features that people look at
_LOOKED_AT = 5
_CONFIDENCE = 1.96
# Rounding that a sum of probabilities is allowed
_PROBABILITY = 1e-3
# Rows that differ from the most frequent answer: fewer say little of how large errors are
_ENOUGH_ANSWERS = 16
# Effective rows that an error rests on: fewer, and the sample may well have missed the ones that matter
_ENOUGH_CARRIERS = 12.0
# What every warning says whose standard errors are not to be believed
RARE = "standard errors are not to be trusted"


def doubts(
    fitted: Fitted, predictions: Floats, names: Sequence[str], outputs: Sequence[str], *, max_calls: int
) -> dict[int, tuple[str, ...]]:
    """What the user should know of n rows, by the rows it concerns."""
    found: dict[int, tuple[str, ...]] = _odd_probabilities(predictions)
    if fitted.sampled is None:
        return found
    for i in range(len(predictions)):
        own = (
            *_shortfall(fitted, i, max_calls),
            *_rare(fitted, i, outputs),
            *_unseen(fitted, i, names),
            *_ties(fitted, i, names, outputs),
        )
        if own:
            found[i] = (*found.get(i, ()), *own)
    return found


def _shortfall(fitted: Fitted, i: int, max_calls: int) -> tuple[str, ...]:
    assert fitted.sampled is not None  # noqa: S101 - asked by the caller
    calls, excess = int(fitted.calls[i]), float(fitted.sampled.excess[i])
    if fitted.converged[i]:
        return ()
    if excess <= 1 and not fitted.sampled.unlike[i].all():
        # nothing was seen, and more calls are not what was missing: ``_rare`` says so
        return ()
    if excess <= 1:
        return (
            f"stopped after {calls:,} of at most {max_calls:,} model calls; explain the row again to go on",
        )
    needed = (
        f"; about {calls * excess**2:,.0f} calls would be needed (max_calls)" if np.isfinite(excess) else ""
    )
    return (
        f"the tolerance is not met: after {calls:,} model calls the largest error is {excess:.3g} times "
        f"what is allowed{needed}",
    )


def _rare(fitted: Fitted, i: int, outputs: Sequence[str]) -> tuple[str, ...]:
    """Outputs of which too few rows tell anything; those with the same words share a sentence."""
    assert fitted.sampled is not None  # noqa: S101 - asked by the caller
    calls = int(fitted.calls[i])
    having: dict[str, list[str]] = {}
    numbers = zip(fitted.sampled.unlike[i].ravel(), fitted.sampled.carriers[i].ravel(), outputs, strict=True)
    for unlike, carriers, output in numbers:
        words = _few(int(unlike), float(carriers), calls)
        if words:
            having.setdefault(words, []).append(output)
    return tuple(
        f"{words} (output {', '.join(owners)})" if len(outputs) > 1 else words
        for words, owners in having.items()
    )


def _few(unlike: int, carriers: float, calls: int) -> str:
    if unlike == 0:
        return (
            f"the model answered the same in all {calls:,} perturbed rows: rarer answers were not seen, and "
            f"{RARE} beyond a rule of three; raise max_calls or the bandwidth"
        )
    if unlike < _ENOUGH_ANSWERS:
        return (
            f"the model answered the same in all but {unlike} of {calls:,} perturbed rows: {RARE}; "
            "raise max_calls"
        )
    if carriers < _ENOUGH_CARRIERS:
        return f"about {carriers:.0f} of {calls:,} rows decide the coefficients: {RARE}; raise max_calls"
    return ""


def _unseen(fitted: Fitted, i: int, names: Sequence[str]) -> tuple[str, ...]:
    """Features of which the sample tells nothing, unless all is infinite for a reason of its own."""
    assert fitted.sampled is not None  # noqa: S101 - asked by the caller
    seen = fitted.sampled.unlike[i].reshape(-1) > 0
    blind = np.isinf(fitted.surrogate.standard_errors[i].reshape(len(names), -1))[:, seen].any(axis=1)
    if not blind.any():
        return ()
    whom = ", ".join(names[j] for j in np.flatnonzero(blind).tolist())
    return (
        f"{whom}: hardly changed in the sample; the coefficient is the control variate's guess, and how far "
        "off that is, is not known: raise max_calls",
    )


def _ties(fitted: Fitted, i: int, names: Sequence[str], outputs: Sequence[str]) -> tuple[str, ...]:
    """Outputs with the same ties, as two classes have, share a sentence."""
    d = len(names)
    values = fitted.surrogate.coef[i].reshape(d, -1)
    errors = fitted.surrogate.standard_errors[i].reshape(d, -1)
    having: dict[str, list[str]] = {}
    for k, output in enumerate(outputs):
        tied = _tied(values[:, k], errors[:, k])
        if tied:
            having.setdefault("; ".join(f"{names[a]} and {names[b]}" for a, b in tied), []).append(output)
    return tuple(
        "the order is not certain, coefficients are equal within their errors: "
        + (f"{pairs} (output {', '.join(owners)})" if len(outputs) > 1 else pairs)
        for pairs, owners in having.items()
    )


def _tied(values: Floats, errors: Floats) -> list[tuple[int, int]]:
    """Neighbours among the largest coefficients whose sizes differ by less than their errors."""
    order = np.argsort(-np.abs(values), kind="stable")[: _LOOKED_AT + 1]
    size = np.abs(values)
    return [
        (int(a), int(b))
        for a, b in pairwise(order)
        if size[a] - size[b] < _CONFIDENCE * np.hypot(errors[a], errors[b])
    ]


def _odd_probabilities(predictions: Floats) -> dict[int, tuple[str, ...]]:
    """Rows (n, k) of several numbers between 0 and 1 that do not add up to 1."""
    if predictions.ndim == 1 or predictions.shape[1] < 2:
        return {}
    total = predictions.sum(axis=1)
    odd = ((predictions >= 0) & (predictions <= 1)).all(axis=1) & (np.abs(total - 1) > _PROBABILITY)
    return {
        int(i): (
            f"the model's {predictions.shape[1]} answers lie between 0 and 1 and add up to {total[i]:.3g}: "
            "as probabilities of classes that would be wrong; they are explained as they are",
        )
        for i in np.flatnonzero(odd)
    }
