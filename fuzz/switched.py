"""Coefficients where features are removed: the answers at all 2^d subsets, and LIME's weights.

s of d features are removed: texts, s uniform on 1..d; images, s ~ Binomial(d, 1/2). The weight is
ψ(s/d) = exp(-(1 - √(1 - s/d))²/(2ν²)), so that Cov_w(z) has one eigenvalue along (1, ..., 1) and one across:

    mean of β = Cov_w(K, f) / Var_w(K),   K = d - s the number kept,
    β_j less it = E_w[(z_j - K/d) f] / (α_1 - α_2),   α_1 - α_2 = E_w[s K] / (d (d - 1)).

Both are sums over strata in which nothing cancels, however narrow the weight.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy.special import gammaln

import limes
from fuzz.verdict import AGREES, CRASH, MISMATCH, REFUSED, REJECTED, SAMPLED, SKIPPED, Verdict, compare

Array = Any


@dataclass
class SwitchedTrial(ABC):
    """A case of texts or images that was run, and answers that were already given."""

    case: Any
    model: Any
    answers: dict[Any, Array] = field(default_factory=dict)

    @abstractmethod
    def explainer(self, options: Any, **more: Any) -> Any:
        """Return what is under test."""

    @abstractmethod
    def compared(self, row: Any, explanation: Any, options: Any) -> Verdict:
        """Hold one explanation against the oracle."""

    def check(self, options: Any, rows: list[Any]) -> Verdict:
        """Explain texts or images and compare."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                explanations = self.explainer(options)(rows, progress=False)
            except limes.exceptions.LimesError as error:
                return self._after(error, options, rows)
            except Exception as error:  # noqa: BLE001 - any other error is a fault of the library
                return Verdict(CRASH, len(rows), f"{type(error).__name__}: {error}", 0)
            return self._all(rows, explanations, options)

    def _all(self, rows: list[Any], explanations: Any, options: Any) -> Verdict:
        compared = 0
        for i, (row, explanation) in enumerate(zip(rows, explanations, strict=True)):
            if explanation.method == "sampled":
                continue
            verdict = self.compared(row, explanation, options)
            if verdict.kind == SKIPPED:
                continue
            compared += 1
            if verdict.kind != AGREES:
                return Verdict(verdict.kind, compared, verdict.detail, i, verdict.result, verdict.expected)
        return Verdict(AGREES, compared) if compared else Verdict(SAMPLED)

    def _after(self, error: Exception, options: Any, rows: list[Any]) -> Verdict:
        """Whether sampling works where an explanation raised."""
        text = f"{type(error).__name__}: {error}"
        try:
            self.explainer(options, method="sampled", control="none", max_calls=64)(rows[0], progress=False)
        except limes.exceptions.LimesError:
            return Verdict(REJECTED, detail=text)
        return Verdict(REFUSED, detail=text)


@cache
def subsets(d: int) -> Array:
    """All z (2^d, d), kept is 1."""
    return (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(bool)


def log_law(d: int, bandwidth: float, kind: str) -> Array:
    """log P_w(s), s = 0..d, normalised so that the largest is 0."""
    s = np.arange(d + 1.0)
    if kind == "texts":
        prior = np.where(s > 0, 0.0, -np.inf)
    else:
        prior = gammaln(d + 1) - gammaln(s + 1) - gammaln(d - s + 1)
    with np.errstate(divide="ignore"):
        result = prior - (1 - np.sqrt(1 - s / d)) ** 2 / (2 * np.float64(bandwidth) ** 2)
    return result - result.max()


def coefficients(answers: Array, d: int, bandwidth: float, kind: str) -> tuple[Array, Array]:
    """β (d, k) and intercept (k,) from answers (2^d, k) in the order of `subsets`.

    With one feature β is f(kept) - f(removed): the weighted law of texts never keeps it, so that this is a
    convention there.
    """
    z = subsets(d)
    if d == 1:
        return answers[1:] - answers[:1], answers[0]
    kept = z.sum(axis=1)
    log_p = log_law(d, bandwidth, kind)
    strata = [answers[kept == d - s] for s in range(d + 1)]
    means = np.stack([stratum.mean(axis=0) for stratum in strata])
    across = np.stack(
        [z[kept == d - s].T @ a / len(a) - (d - s) / d * a.mean(axis=0) for s, a in enumerate(strata)]
    )
    common = _along(means, log_p, d)
    s = np.arange(d + 1.0)
    # what does not vary within a stratum tells nothing across: the heaviest stratum that does is the unit
    inner = np.where((s > 0) & (s < d), log_p, -np.inf)
    p = np.exp(inner - inner.max())
    beta = common + np.einsum("s,sjk->jk", p, across) / (p @ (s * (d - s)) / (d * (d - 1)))
    law = np.exp(log_p) / np.exp(log_p).sum()
    return beta, law @ means - (law @ (d - s)) / d * beta.sum(axis=0)


def compare_known(
    explanation: Any, answers: Array, same: Array, bandwidth: float, kind: str, **tolerances: float
) -> Verdict:
    """Hold an explanation against answers (2^d, k) in the order of `subsets`.

    Features that look the same hidden, ``same`` (d,), are unknown; the others are those of the same input
    without them.
    """
    d = same.size
    values = np.asarray(explanation.coefficients.values, dtype=float).reshape(d, -1)
    f = answers[subsets(d)[:, same].all(axis=1)]
    beta, start = np.zeros((1, f.shape[1])), f[0]
    if not same.all():
        beta, start = coefficients(f, int((~same).sum()), bandwidth, kind)
    if not np.array_equal(np.isnan(values).all(axis=1), same):
        text = f"unknown are {np.flatnonzero(np.isnan(values).any(axis=1))}, not {np.flatnonzero(same)}"
        return Verdict(MISMATCH, 1, text, 0, values.tolist(), beta.tolist())
    others = np.zeros_like(beta) if same.all() else values[~same]
    size = float(np.abs(answers).max())
    verdict = compare(
        others[None], explanation.coefficients.intercepts, beta[None], start[None], size, **tolerances
    )
    account = explanation.contributions
    if verdict.kind != AGREES or account.standard_errors.any():
        return verdict
    phi = np.zeros((d, f.shape[1]))
    if not same.all():
        phi[~same] = shapley(f)
    shares = account.values.reshape(1, d, -1)
    return compare(shares, account.base_values, phi[None], f[:1], size, **tolerances)


def shapley(answers: Array) -> Array:
    """Contributions (d, k) from answers (2^d, k) in the order of `subsets`, by all coalitions."""
    d = len(answers).bit_length() - 1
    z = subsets(d)
    r = z.sum(axis=1)
    weights = np.exp(gammaln(r + 1.0) + gammaln(np.maximum(d - r, 1.0)) - gammaln(d + 1.0))
    without = [np.flatnonzero(~z[:, j]) for j in range(d)]
    return np.stack([weights[s] @ (answers[s + (1 << j)] - answers[s]) for j, s in enumerate(without)])


def _along(means: Array, log_p: Array, d: int) -> Array:
    """Cov(K, F) / Var(K), (k,), by differences from the heaviest stratum, scaled by the next one."""
    first = int(np.argmax(log_p))
    others = np.arange(d + 1) != first
    unit = log_p[others].max()
    kept = d - np.arange(d + 1.0)
    share = np.exp(log_p) / np.exp(log_p).sum()
    center = kept[first] + share @ (kept - kept[first])
    moved = np.exp(log_p[others] - unit) * (kept[others] - center)
    return moved @ (means[others] - means[first]) / (moved @ (kept[others] - kept[first]))
