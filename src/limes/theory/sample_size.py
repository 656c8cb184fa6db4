r"""How many rows are enough in practice: the central limit theorem with a measured variance.

A weighted least-squares fit to n rows is nearly normal around its limit, with covariance V/n,

    V = Σ⁻¹ E[π² e² Z Zᵀ] Σ⁻¹,    Σ = E[π Z Zᵀ],    e = f - β·Z.

The residual e is what the surrogate cannot say, so V depends on the model and has to be measured: a few
hundred rows tell it well enough to say how many thousand are needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from limes._arrays import Floats
from limes.exceptions import InputError

# A feature that spreads less than this share of its size does not vary
_ROUNDING = 1e-12


def measured_errors(features: ArrayLike, values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Standard errors of a weighted least-squares fit with an intercept, coefficients only.

    They hold whatever the residuals are (sandwich, with the factor n/(n - d - 1)).

    Parameters
    ----------
    features
        h, (n, d): for LIME zeros and ones.
    values
        f(x), (n,).
    weights
        π, (n,); all the same if not given.

    Returns
    -------
    array (d,)

    Raises
    ------
    InputError
        If shapes disagree, there are too few rows, or a feature does not vary among them.

    References
    ----------
    White 1980; for LIME Visani et al. 2020, with residuals of equal variance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = (rng.random((400, 2)) < 0.5).astype(float)
    >>> measured_errors(z, z @ [1.0, 2.0] + rng.normal(size=400)).round(1).tolist()
    [0.1, 0.1]
    """
    h, f = np.asarray(features, dtype=np.float64), np.asarray(values, dtype=np.float64)
    n = len(h)
    pi = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if h.ndim != 2 or f.shape != (n,) or pi.shape != (n,) or n < h.shape[1] + 2:
        raise InputError(
            f"features {h.shape} need values and weights of {n} rows, and more rows than columns; "
            f"got {f.shape} and {pi.shape}"
        )
    share = pi / pi.sum()
    away, left = h - share @ h, f - share @ f
    gram = away.T @ (share[:, None] * away)
    spread = np.sqrt(np.diag(gram))
    still = spread <= _ROUNDING * np.abs(h).max(axis=0)
    if still.any() or np.linalg.matrix_rank(gram / np.outer(spread, spread)) < len(gram):
        raise InputError("a feature does not vary among these rows, or repeats others: draw more rows")
    residual = left - away @ np.linalg.solve(gram, away.T @ (share * left))
    scores = np.linalg.solve(gram, (away * (share * residual)[:, None]).T)
    return np.asarray(np.sqrt((scores**2).sum(axis=1) * n / (n - h.shape[1] - 1)))


def clt_samples(
    standard_errors: ArrayLike, samples: int, tolerance: float, *, confidence: float = 0.95
) -> int:
    r"""Rows after which all coefficients are within the tolerance, with the confidence at once.

        n = n₀ (z s / ε)²,    z = Φ⁻¹(1 - (1 - confidence)/(2d)),    s the largest standard error at n₀ rows.

    Parameters
    ----------
    standard_errors
        Of d coefficients in a first fit: of :func:`measured_errors`, or ``explanation.standard_errors[0]``.
    samples
        n₀, the rows of that fit: ``explanation.calls[0]``.
    tolerance
        ε, in the output's units.
    confidence
        That all d are within ε (Bonferroni).

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> clt_samples([0.02, 0.05], 1000, 0.01)
    125598
    """
    errors = np.asarray(standard_errors, dtype=np.float64).ravel()
    if errors.size == 0 or not (np.isfinite(errors) & (errors >= 0)).all():
        raise InputError(f"standard_errors must be finite and not negative, got {standard_errors!r}")
    if samples < 1 or not tolerance > 0 or not 0 < confidence < 1:
        raise InputError(
            f"samples={samples!r} and tolerance={tolerance!r} must be positive, "
            f"confidence={confidence!r} in (0, 1)"
        )
    z = float(ndtri(1 - (1 - confidence) / (2 * errors.size)))
    return int(np.ceil(samples * (z * errors.max() / tolerance) ** 2))
