"""Coefficients of the cases, by quadrature and by counting.

Tables: columns are independent under the weighted law, so that β_j = Cov(z_j, f) / Var(z_j) is an integral
over the active columns, and 0 for all others. 2^18 scrambled points leave an error far below that of 4,096
calls.

Words and superpixels: given that s of d are removed, a pattern that removes r of the a active ones has
probability C(d - a, s - r) / C(d, s), and any other feature is kept with probability 1 - (s - r) / (d - a).
That gives Cov(z, f), and solving with the dense Cov(z) gives β.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import qmc

import limes
from benchmarks.coverage.functions import Switches, Table

_POINTS = 18


def of_table(case: Table) -> np.ndarray:
    """β (d,) or (d, k)."""
    explainer = limes.TabularExplainer(case.function, case.background(), max_calls=4096, **case.options())
    design = explainer.design(case.row())
    levels = qmc.Sobol(case.active, rng=np.random.default_rng(1)).random_base2(_POINTS)
    x, h = np.zeros((len(levels), case.d)), np.zeros((len(levels), case.active))
    for j in range(case.active):
        column = design.coordinates[j]
        x[:, j] = column.draw(np.clip(levels[:, j], 2.0**-54, 1 - 2.0**-53))
        h[:, j] = column.feature(x[:, j])
    f = case.expected(x)
    centred = h - h.mean(axis=0)
    coef = np.zeros((case.d, *f.shape[1:]))
    coef[: case.active] = (centred.T @ (f - f.mean(axis=0))) / (centred**2).sum(axis=0).reshape(
        -1, *(1,) * (f.ndim - 1)
    )
    return coef


def of_switches(case: Switches) -> np.ndarray:
    """β (d,)."""
    d, law = case.d, _law(case)
    if case.symmetric:
        kept = np.arange(d, -1, -1)
        rows = (np.arange(d) < kept[:, None]).astype(float)
        f, probability, inclusion = case.function(rows), law, np.tile((kept / d)[:, None], (1, d))
    else:
        f, probability, inclusion = _patterns(case, law)
    total = probability @ inclusion
    covariance = (probability * (f - probability @ f)) @ (inclusion - total)
    return np.linalg.solve(_dense(law, d), covariance)


def _patterns(case: Switches, law: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every pattern of active features and every s: f, probability and E[z | pattern, s]."""
    d, a = case.d, case.active
    patterns = ((np.arange(2**a)[:, None] >> np.arange(a)) & 1).astype(float)
    s = np.arange(d + 1)
    rest = s[None, :] - (a - patterns.sum(axis=1)[:, None])
    possible = (rest >= 0) & (rest <= d - a)
    log = _choose(d - a, np.clip(rest, 0, d - a)) - _choose(d, s)
    probability = np.where(possible, law * np.exp(log), 0.0)
    rows = np.hstack([patterns, np.ones((len(patterns), d - a))])
    inclusion = np.empty((*probability.shape, d))
    inclusion[..., :a] = patterns[:, None, :]
    inclusion[..., a:] = (1 - np.clip(rest, 0, d - a) / (d - a))[..., None]
    f = np.repeat(case.function(rows), d + 1)
    return f, probability.ravel(), inclusion.reshape(-1, d)


def _law(case: Switches) -> np.ndarray:
    """For the number of removed features s: the prior times exp(-(1 - √(1 - s/d))² / (2 ν²))."""
    d = case.d
    s = np.arange(d + 1)
    width = 0.25 if case.bandwidth is None else case.bandwidth
    log = -((1 - np.sqrt(1 - s / d)) ** 2) / (2 * width**2)
    if case.make.__name__ == "word_deletions":
        log[0] = -np.inf
    else:
        log = log + _choose(d, s)
    law = np.exp(log - log.max())
    return law / law.sum()


def _dense(law: np.ndarray, d: int) -> np.ndarray:
    kept = d - np.arange(d + 1.0)
    one, two = law @ (kept / d), law @ (kept * (kept - 1) / (d * (d - 1)))
    return np.full((d, d), two - one**2) + np.eye(d) * (one - two)


def _choose(n: float, k: np.ndarray) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
