r"""Bounds on the change of an explanation, and sample sizes: what theory requires and what is enough.

``robustness`` and ``theorem_samples`` are envelopes that hold for every model; practice is far below them.
``clt_samples`` is the central limit theorem with a measured variance: a weighted least-squares fit to n rows
is nearly normal around its limit, with covariance V/n,

    V = Σ⁻¹ E[π² e² Z Zᵀ] Σ⁻¹,    Σ = E[π Z Zᵀ],    e = f - β·Z.

The residual e is what the surrogate cannot fit, so V depends on the model and has to be measured: a few
hundred rows are enough to tell how many thousand are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from limes._arrays import Floats
from limes._checks import check_count, check_probability, check_size, finite_array
from limes._variance import is_constant
from limes.designs._product import ProductDesign
from limes.designs._weights import check_bandwidth
from limes.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Robustness:
    """Largest difference of the explanations of two models that differ by at most 1 everywhere.

    Attributes
    ----------
    coef
        Bound for each coefficient, (d,): 2, or 0 where a column cannot vary. It is attained.
    intercept
        Bound for the intercept.
    norm
        Bound for the vector of intercept and coefficients.

    Examples
    --------
    >>> import limes
    >>> design = limes.TabularExplainer(lambda X: X[:, 0], [[0.0], [1.0]]).design([[0.0]])
    >>> limes.theory.robustness(design).coef
    array([2.])
    """

    coef: Floats
    intercept: float
    norm: float


def robustness(design: ProductDesign) -> Robustness:
    r"""Bound the change of an explanation by the change of the model, ‖f - g‖∞ ≤ 1.

        |β_j^f - β_j^g| ≤ 2,    |β₀^f - β₀^g| ≤ 1 + 2 Σ α_j,    ‖β^f - β^g‖ ≤ √(4d + (1 + 2 Σ α_j)²).

    β_j is a difference of two means of f, and β₀ = E_w f - Σ α_j β_j. Multiply by ‖f - g‖∞.

    Parameters
    ----------
    design
        A design of bins or categories.

    Raises
    ------
    InputError
        If a column's feature is x itself (slopes): no such bound holds.

    References
    ----------
    Garreau & von Luxburg 2022, Proposition 2, corrected: the printed bound √(d(9d + 4p²)) e^{1/(2ν²)}/(p - 1)
    fails for many bins.

    Examples
    --------
    >>> from limes.designs import ProductDesign
    >>> design = ProductDesign.from_bins([[0, 1, 2]], [[0.5, 1.5]], [[0.3, 0.3]], [0.2], float("inf"))
    >>> round(robustness(design).norm ** 2, 9)
    8.0
    """
    if not isinstance(design, ProductDesign):
        raise InputError(f"robustness needs a ProductDesign, got {type(design).__name__}")
    if design.slopes.any():
        raise InputError("the bound holds for bins and categories; bins=None makes slopes, which have none")
    varies = design.variance > 0
    coef = np.where(varies, 2.0, 0.0)
    intercept = float(1.0 + coef @ design.inclusion)
    return Robustness(coef, intercept, float(np.sqrt(coef @ coef + intercept**2)))


def theorem_samples(
    tolerance: float, *, size: int, bins: int, bandwidth: float, bound: float, risk: float = 0.05
) -> float:
    r"""Return the rows that Theorem 1 requires for ‖β̂ - β‖ < ε with probability at least 1 - η.

        max( 2¹² C_f² d⁴ p⁴ e^{1/ν²} / (c^{2d} ε²),  2¹⁵ C_f² d⁷ p⁸ e^{2/ν²} / (c^{4d} ε²) ) · ln(8d/η),

        c = 1/p + (1 - 1/p) e^{-1/(2ν²)}.

    An upper envelope, by many orders of magnitude; :func:`clt_samples` is enough in practice.

    Parameters
    ----------
    tolerance
        ε in (0, C_f).
    size, bins, bandwidth
        d columns, p bins each, ν; default weights.
    bound
        C_f ≥ |f|.
    risk
        η in (0, 1).

    Returns
    -------
    float
        Infinite for a narrow ν.

    Raises
    ------
    InputError
        If a number is out of its range.

    References
    ----------
    Garreau & von Luxburg 2022, Theorem 1, corrected: the first term is printed with C_f instead of C_f².

    Examples
    --------
    >>> f"{theorem_samples(0.1, size=10, bins=4, bandwidth=2.4, bound=1.0):.1e}"
    '2.9e+20'
    """
    tolerance, bound = check_size("tolerance", tolerance), check_size("bound", bound)
    if not tolerance < bound:
        raise InputError(f"tolerance must lie between 0 and bound={bound!r}, got {tolerance!r}")
    size, bins, risk = (
        check_count("size", size),
        check_count("bins", bins, 2),
        check_probability("risk", risk),
    )
    nu = check_bandwidth(bandwidth)
    with np.errstate(over="ignore"):
        log_c = np.log(1 / bins + (1 - 1 / bins) * np.exp(-0.5 / nu**2))
        first = 12 * np.log(2) + 4 * np.log(size * bins) + nu**-2 - 2 * size * log_c
        second = 15 * np.log(2) + 7 * np.log(size) + 8 * np.log(bins) + 2 * nu**-2 - 4 * size * log_c
        scale = np.log(8 * size / risk) * (bound / tolerance) ** 2
        return float(np.ceil(scale * np.exp(max(first, second))))


def measured_errors(features: ArrayLike, values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return the standard errors of the coefficients of a weighted least-squares fit with an intercept.

    They hold for any residuals (sandwich, with the factor n/(n - d - 1)).

    Parameters
    ----------
    features
        h, (n, d): for LIME zeros and ones.
    values
        f(x), (n,).
    weights
        π, (n,); equal by default.

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
    h, f = finite_array("features", features, 2), finite_array("values", values, 1)
    n = len(h)
    pi = np.ones(n) if weights is None else finite_array("weights", weights, 1)
    if (pi < 0).any() or not pi.any():
        raise InputError("weights must be >= 0, and not all of them 0")
    if f.shape != (n,) or pi.shape != (n,) or n < h.shape[1] + 2:
        raise InputError(
            f"features {h.shape} need values and weights of {n} rows, and more rows than columns; "
            f"got {f.shape} and {pi.shape}"
        )
    share = pi / pi.sum()
    centred, deviation = h - share @ h, f - share @ f
    gram = centred.T @ (share[:, None] * centred)
    spread = np.sqrt(np.diag(gram))
    constant = is_constant(spread**2, np.abs(h).max(axis=0))
    if constant.any() or np.linalg.matrix_rank(gram / np.outer(spread, spread)) < len(gram):
        raise InputError("a feature does not vary among these rows, or repeats others: draw more rows")
    residual = deviation - centred @ np.linalg.solve(gram, centred.T @ (share * deviation))
    scores = np.linalg.solve(gram, (centred * (share * residual)[:, None]).T)
    return np.asarray(np.sqrt((scores**2).sum(axis=1) * n / (n - h.shape[1] - 1)))


def clt_samples(
    standard_errors: ArrayLike, samples: int, tolerance: float, *, confidence: float = 0.95
) -> int:
    r"""Return the rows after which all coefficients are within the tolerance, with simultaneous confidence.

        n = n₀ (z s / ε)²,    z = Φ⁻¹(1 - (1 - confidence)/(2d)),    s the largest standard error at n₀ rows.

    Parameters
    ----------
    standard_errors
        Standard errors of d coefficients of a first fit: from :func:`measured_errors`, or
        ``explanation.standard_errors[0]``.
    samples
        n₀, the number of rows of that fit: ``explanation.calls[0]``.
    tolerance
        ε, in the output's units.
    confidence
        Probability that all d are within ε (Bonferroni).

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> clt_samples([0.02, 0.05], 1000, 0.01)
    125598
    """
    errors = finite_array("standard_errors", standard_errors, 0, 1, 2).ravel()
    if errors.size == 0 or (errors < 0).any():
        raise InputError(f"standard_errors must be finite and not negative, got {standard_errors!r}")
    samples, tolerance = check_count("samples", samples), check_size("tolerance", tolerance)
    confidence = check_probability("confidence", confidence)
    z = float(ndtri(1 - (1 - confidence) / (2 * errors.size)))
    return int(np.ceil(samples * (z * errors.max() / tolerance) ** 2))
