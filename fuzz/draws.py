"""Coefficients by draws, where a grid would be too large: scrambled Sobol' points and a z-test.

β is least squares of f on the features under the weighted law. Each of several scramblings gives one
estimate; their mean has a standard error. All columns are drawn from one point, so that what is drawn is the
weighted law itself and nothing is thrown away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from fuzz.laws import Law
from fuzz.verdict import AGREES, MISMATCH, NOT_FINITE, SKIPPED, Verdict

Array = Any

# t of 15 degrees of freedom is beyond 6 once in 40,000; twice, on fresh points, once in a billion.
_LIMIT, _SCRAMBLINGS = 6.0, 16
_FIRST, _SECOND = 10, 14  # log2 of points a scrambling
_ROWS = 4
# A cell that is met, or left, less often than this is met too rarely by the first draws to have an error
_LEAST = 0.03


def compare_drawn(
    explanation: Any, answers: Any, background: Any, laws: list[Law], options: Any, rows: Array
) -> Verdict:
    """Hold a few rows' coefficients against draws; only what is off twice is a mismatch."""
    nu, kind = options.nu(rows.shape[1]), options.kind
    compared = 0
    for i, row in enumerate(rows):
        if compared == _ROWS:
            break
        values = np.asarray(explanation.coefficients.values[i], dtype=float).reshape(row.size, -1)
        start = np.asarray(explanation.coefficients.intercepts[i], dtype=float).reshape(1, -1)
        result = np.concatenate([values, start])
        if not np.isfinite(result).all():
            return Verdict(NOT_FINITE, i + 1, "a coefficient is not finite", i, result.tolist())
        tilted = [law.weighted(float(x), kind, nu) for law, x in zip(laws, row, strict=True)]
        if min(_variation(law, float(x)) for law, x in zip(tilted, row, strict=True)) < _LEAST:
            continue
        for log2, seed in ((_FIRST, 1), (_SECOND, 2)):
            mean, error = estimate(answers.ask, background.table, tilted, row, log2, seed)
            # what float64 cannot tell is no difference
            z = np.abs(result - mean) / (error + 1e-9 * np.abs(mean).max())
            if z.max() <= _LIMIT:
                break
        else:
            text = f"|z| = {z.max():.3g} after 2^{_SECOND} x {_SCRAMBLINGS} draws"
            return Verdict(MISMATCH, i + 1, text, i, result.tolist(), mean.tolist())
        compared += 1
    return Verdict(AGREES, compared) if compared else Verdict(SKIPPED, detail="cells too rare for draws")


def _variation(law: Law, at: float) -> float:
    """min(α, 1 - α) of an indicator that varies; 1 of a slope or of a column of one cell."""
    if law.slope or law.log_mass.size == 1:
        return 1.0
    p = np.exp(law.log_mass - law.log_mass.max())
    alpha = p[law.locate(at)] / p.sum()
    return float(min(alpha, 1.0 - alpha))


def estimate(ask: Any, table: Any, laws: list[Law], row: Array, log2: int, seed: int) -> tuple[Array, Array]:
    """Mean and standard error of (d + 1, k) coefficients and the intercept over scramblings."""
    result = []
    for s in range(_SCRAMBLINGS):
        u = qmc.Sobol(len(laws), rng=np.random.default_rng([seed, s])).random_base2(log2)
        u = np.clip(u, 1e-15, 1 - 1e-15)
        x = np.column_stack([quantile(law, u[:, j]) for j, law in enumerate(laws)])
        h = np.column_stack([_feature(law, x[:, j], float(row[j])) for j, law in enumerate(laws)])
        f = ask(table(x))
        result.append(_least_squares(h, f))
    all_of = np.stack(result)
    return all_of.mean(axis=0), all_of.std(axis=0, ddof=1) / np.sqrt(_SCRAMBLINGS)


def _least_squares(h: Array, f: Array) -> Array:
    center = h.mean(axis=0)
    beta = np.linalg.lstsq(h - center, f - f.mean(axis=0), rcond=None)[0]
    return np.concatenate([beta, (f.mean(axis=0) - center @ beta)[None]])


def _feature(law: Law, x: Array, at: float) -> Array:
    if law.slope:
        return x
    row_cell = law.locate(at)
    if law.inner is None:
        return (np.isnan(x) if np.isnan(at) else x == at).astype(float)
    missing = np.isnan(x)
    cell = np.searchsorted(law.inner, x, side="left")
    return np.where(missing, np.isnan(at), ~np.isnan(at) & (cell == row_cell)).astype(float)


def quantile(law: Law, u: Array) -> Array:
    """Values at levels of the law's distribution, pieces in their order."""
    p = np.exp(law.log_weight + (law.log_mass - law.log_mass.max())[law.cell])
    upper = np.cumsum(p / p.sum())
    piece = np.minimum(np.searchsorted(upper, u, side="right"), p.size - 1)
    share = p / p.sum()
    inside = np.clip((u - (upper - share)[piece]) / share[piece], 0.0, 1.0)
    m, s, low, high = law.mean[piece], law.std[piece], law.low[piece], law.high[piece]
    flat, point = np.isinf(s), s == 0
    scale, center = np.where(flat | point, 1.0, s), np.where(flat | point, 0.0, m)
    a, b = (low - center) / scale, (high - center) / scale
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    level = np.where(flip, 1.0 - inside, inside)
    z = ndtri(ndtr(a) + level * (ndtr(b) - ndtr(a)))
    normal = np.clip(center + scale * np.where(flip, -z, z), low, high)
    with np.errstate(invalid="ignore"):
        straight = low + inside * (high - low)
    result = np.where(point, m, np.where(flat, straight, normal))
    # a bin does not hold its lower edge
    return np.where(~point & (result <= low), np.nextafter(low, np.inf), result)
