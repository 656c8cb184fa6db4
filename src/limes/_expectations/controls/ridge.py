"""Ridge regression, on columns and on kernels, with penalties chosen by cross-validation.

Columns: a penalty for each output, by generalised cross-validation. Kernels: leave-one-out errors of many
penalties, and fits on few centres.
"""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats

# Of columns of variance 1 in units of the number of rows, and of kernels that are 1 at no distance
PENALTIES = np.logspace(-5, 1, 13)


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
    coefs = target / (sizes[:, None] + PENALTIES[:, None, None])
    squares = np.maximum(total - (coefs * (2 * target - sizes[:, None] * coefs)).sum(axis=1), 0.0)
    freedom = 1.0 + (sizes / (sizes + PENALTIES[:, None])).sum(axis=1)
    score = squares / np.maximum(1.0 - freedom / n, 0.05)[:, None] ** 2
    best = coefs[score.argmin(axis=0), :, np.arange(values.shape[1])].T
    coef = np.zeros((columns.shape[1], values.shape[1]))
    coef[live] = (axes @ best) / scale[live, None]
    return mean - center @ coef, coef


def evenly_spread(n: int, most: int) -> slice:
    """Pick at most ``most`` of n rows, evenly spread."""
    return slice(None, None, -(-n // most))


def leave_one_out_errors(gram: Floats, f: Floats) -> Floats:
    """Mean squared leave-one-out residuals a_i / (K + λ)⁻¹_ii of kernel ridge regression, one a penalty."""
    sizes, axes = np.linalg.eigh(gram)
    target = axes.T @ f
    mean_squares = []
    for penalty in PENALTIES:
        inverse = 1.0 / (np.maximum(sizes, 0.0) + penalty)
        errors = (axes @ (target * inverse[:, None])) / (axes**2 @ inverse)[:, None]
        mean_squares.append((errors**2).mean())
    return np.array(mean_squares)


def fit_on_centers(gram: Floats, center_gram: Floats, penalty: float, f: Floats) -> Floats:
    """Coefficients a (m, k) of least |f - gram a|² + penalty aᵀ center_gram a."""
    from scipy.linalg import solve

    normal = gram.T @ gram + penalty * center_gram
    normal[np.diag_indices_from(normal)] += 1e-10 * np.trace(normal) / len(normal)
    return np.asarray(solve(normal, gram.T @ f, assume_a="pos"))
