"""Warnings about the sample behind an explanation: accuracy, rare answers, ties.

They cost next to nothing: sentences are written for the rows that have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from limes._arrays import Floats
from limes._expectations.sampling import Sampling
from limes._expectations.trust import ENOUGH_ANSWERS, ENOUGH_CARRIERS, FEW_ROWS
from limes._explainers.warnings import SAMPLED_ALONE
from limes._explanation.wording import CONFIDENCE
from limes._pipeline import Fitted
from limes._variance import ROUNDING

# Features that people look at
_LOOKED_AT = 5
# Part of every warning that standard errors are not to be believed
RARE = "standard errors are not to be trusted"


@dataclass(frozen=True)
class SampleKind:
    """What a sample consists of, what makes it larger, and what an undetermined coefficient is, in words."""

    rows: str
    more: str
    undetermined: str


PERTURBED = SampleKind("perturbed rows", "raise max_calls", "the control variate's guess")
OCCURRING = SampleKind("background rows", "use a larger background", "0, the smallest that fits")


def sampling_warnings(
    fitted: Fitted,
    names: Sequence[str],
    outputs: Sequence[str],
    *,
    sampling: Sampling,
    kind: SampleKind = PERTURBED,
) -> dict[int, tuple[str, ...]]:
    """Return warnings about the sample behind each row of a sampled model, keyed by row index."""
    warnings = {}
    for i in range(len(fitted.moments.calls)):
        refusal = fitted.refusals.get(i, "")
        texts = (
            *((f"{SAMPLED_ALONE}: {refusal}",) if refusal else ()),
            *_shortfall(fitted, i, sampling, kind),
            *_few_rows(fitted, i, names, kind),
            *_collinear(fitted, i, names),
            *_rare(fitted, i, outputs, kind),
            *_unseen(fitted, i, names, kind),
            *_ties(fitted, i, names, outputs),
        )
        if texts:
            warnings[i] = texts
    return warnings


def unchanged_answers(
    fitted: Fitted, predictions: Floats, outputs: Sequence[str], kind: SampleKind
) -> tuple[str, ...]:
    """Return a sentence for outputs of one input (1, ...) that are alike in all rows that were enumerated."""
    if fitted.moments.unlike is None:
        return ()
    calls = int(fitted.moments.calls[0])
    sizes = np.abs(fitted.surrogate.coef[0].reshape(-1, len(outputs))).max(axis=0)
    # the input itself is one of the rows, without weight where the design always removes some feature
    weightless = sizes <= ROUNDING * np.abs(predictions.ravel())
    everywhere = (
        f"the model answered the same in all {calls:,} {kind.rows}, so that all coefficients are 0: check "
        "that it receives what is explained"
    )
    elsewhere = (
        f"the model answered the same in all {calls - 1:,} {kind.rows}, and otherwise to what is explained, "
        "so that all coefficients are 0: take fewer, larger features"
    )
    unlike = fitted.moments.unlike.ravel().tolist()
    return _by_output(
        [
            everywhere if rows == 0 else elsewhere if rows == 1 and alone else ""
            for rows, alone in zip(unlike, weightless.tolist(), strict=True)
        ],
        outputs,
    )


def _by_output(sentences: Sequence[str], outputs: Sequence[str]) -> tuple[str, ...]:
    """Return sentences about outputs, "" for none; outputs with the same one share it."""
    owners: dict[str, list[str]] = {}
    for sentence, output in zip(sentences, outputs, strict=True):
        if sentence:
            owners.setdefault(sentence, []).append(output)
    return tuple(
        f"{sentence} (output {', '.join(its)})" if len(outputs) > 1 else sentence
        for sentence, its in owners.items()
    )


def _shortfall(fitted: Fitted, i: int, sampling: Sampling, kind: SampleKind) -> tuple[str, ...]:
    assert fitted.sampled is not None  # noqa: S101 - checked by the caller
    calls, excess = _answers(fitted, i), float(fitted.sampled.excess[i])
    if fitted.moments.cut_short[i] and (sampling.tolerance is None or excess <= 1):
        most = sampling.max_shared if fitted.moments.shared[i] else sampling.max_calls
        return (f"stopped after {calls:,} of at most {most:,} model calls; explain the row again to go on",)
    if sampling.tolerance is None or excess <= 1:
        # whether the default accuracy is reached is what ``converged`` says
        return ()
    needed = f"; about {calls * excess**2:,.0f} would be needed: {kind.more}" if np.isfinite(excess) else ""
    return (
        f"the tolerance is not met: after the model's answers to {calls:,} {kind.rows} the largest error is "
        f"{excess:.3g} times what is allowed{needed}",
    )


def _few_rows(fitted: Fitted, i: int, names: Sequence[str], kind: SampleKind) -> tuple[str, ...]:
    """Return a warning about a row that hardly any row of a sample counts for."""
    assert fitted.sampled is not None  # noqa: S101 - checked by the caller
    effective = float(fitted.sampled.effective[i])
    if effective >= FEW_ROWS * (len(names) + 1):
        return ()
    return (
        f"only about {effective:.0f} {kind.rows} count around this row, for {len(names)} coefficients: "
        f"{kind.more}, or widen the bandwidth",
    )


def _collinear(fitted: Fitted, i: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return a warning about features that change together in all rows that count."""
    assert fitted.sampled is not None  # noqa: S101 - checked by the caller
    together = [names[j] for j in np.flatnonzero(fitted.sampled.collinear[i]).tolist()]
    if not together:
        return ()
    return (
        f"{', '.join(together)}: collinear, their conditions change together in all rows that count; the "
        "coefficients of least norm are shown, and others fit as well",
    )


def _answers(fitted: Fitted, i: int) -> int:
    """Return the number of the model's answers that a row rests on, shared with other rows or its own."""
    return int(fitted.moments.calls[i] + fitted.moments.shared[i])


def _rare(fitted: Fitted, i: int, outputs: Sequence[str], kind: SampleKind) -> tuple[str, ...]:
    """Return a sentence for outputs that too few rows inform, shared by outputs with the same words."""
    assert fitted.sampled is not None  # noqa: S101 - checked by the caller
    calls = _answers(fitted, i)
    numbers = zip(fitted.sampled.unlike[i].ravel(), fitted.sampled.carriers[i].ravel(), strict=True)
    return _by_output(
        [_few(int(unlike), float(carriers), calls, kind) for unlike, carriers in numbers], outputs
    )


def _few(unlike: int, carriers: float, calls: int, kind: SampleKind) -> str:
    if unlike == 0:
        return (
            f"the model answered the same in all {calls:,} {kind.rows}: an answer rarer than 3 in {calls:,} "
            f"may have been missed, so that {RARE}; {kind.more}, or widen the bandwidth"
        )
    if unlike < ENOUGH_ANSWERS:
        return (
            f"the model answered the same in all but {unlike} of {calls:,} {kind.rows}: {RARE}; {kind.more}"
        )
    if carriers < ENOUGH_CARRIERS:
        return f"about {carriers:.0f} of {calls:,} rows decide the coefficients: {RARE}; {kind.more}"
    return ""


def _unseen(fitted: Fitted, i: int, names: Sequence[str], kind: SampleKind) -> tuple[str, ...]:
    """Return a warning about features that hardly changed in the sample of outputs whose answers differ."""
    assert fitted.sampled is not None  # noqa: S101 - checked by the caller
    seen = fitted.sampled.unlike[i].reshape(-1) > 0
    blind = np.isinf(fitted.surrogate.standard_errors[i].reshape(len(names), -1))[:, seen].any(axis=1)
    if not blind.any():
        return ()
    unchanged = ", ".join(names[j] for j in np.flatnonzero(blind).tolist())
    return (
        f"{unchanged}: hardly changed in the sample; the coefficient is {kind.undetermined}, and its error "
        f"cannot be estimated: {kind.more}",
    )


def _ties(fitted: Fitted, i: int, names: Sequence[str], outputs: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for coefficients of uncertain order, shared by outputs with the same ties."""
    d = len(names)
    values = fitted.surrogate.coef[i].reshape(d, -1)
    errors = fitted.surrogate.standard_errors[i].reshape(d, -1)
    assert fitted.sampled is not None  # noqa: S101 - checked by the caller
    differ = fitted.sampled.unlike[i].reshape(-1) > 0
    sentences = [""] * len(outputs)
    for k in np.flatnonzero(differ).tolist():
        if tied := _tied(values[:, k], errors[:, k]):
            pairs = "; ".join(f"{names[a]} and {names[b]}" for a, b in tied)
            sentences[k] = f"the order is not certain, coefficients are equal within their errors: {pairs}"
    return _by_output(sentences, outputs)


def _tied(values: Floats, errors: Floats) -> list[tuple[int, int]]:
    """Return neighbours among the largest coefficients whose sizes differ by less than their errors."""
    order = np.argsort(-np.abs(values), kind="stable")[: _LOOKED_AT + 1]
    size = np.abs(values)
    return [
        (int(a), int(b))
        for a, b in pairwise(order)
        if size[a] - size[b] < CONFIDENCE * np.hypot(errors[a], errors[b])
    ]
