"""Ridge regression whose penalty is chosen by generalised cross-validation, an own one for every output."""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats

# Penalties in units of the number of rows, for columns of variance 1
_PENALTIES = np.logspace(-5, 1, 13)


def ridge_path(columns: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Fit values (n, k) by columns (n, p): intercepts (k,) and coefficients (p, k).

    GCV(λ) = Σ residuals² / (1 - (1 + trace of the smoother)/n)², least over a grid.
    """
    n = len(columns)
    center, scale = columns.mean(axis=0), columns.std(axis=0)
    live = scale > 1e-9 * (np.abs(center) + scale)
    standard = (columns[:, live] - center[live]) / scale[live]
    mean = values.mean(axis=0)
    sizes, axes = np.linalg.eigh(standard.T @ standard / n)
    sizes = np.maximum(sizes, 0.0)
    target = axes.T @ (standard.T @ (values - mean) / n)
    total = ((values - mean) ** 2).mean(axis=0)
    # with a_λ = target / (sizes + λ), the residuals' mean square is total - Σ a_λ (2 target - sizes a_λ)
    coefs = target / (sizes[:, None] + _PENALTIES[:, None, None])
    squares = np.maximum(total - (coefs * (2 * target - sizes[:, None] * coefs)).sum(axis=1), 0.0)
    freedom = 1.0 + (sizes / (sizes + _PENALTIES[:, None])).sum(axis=1)
    score = squares / np.maximum(1.0 - freedom / n, 0.05)[:, None] ** 2
    best = coefs[score.argmin(axis=0), :, np.arange(values.shape[1])].T
    coef = np.zeros((columns.shape[1], values.shape[1]))
    coef[live] = (axes @ best) / scale[live, None]
    return mean - center @ coef, coef
