r"""Closed forms: Σ and its inverse, robustness, sample sizes, averaged probabilities, linear models.

The formulas are the papers', corrected where they are wrong as printed, as each docstring states.

**Sample sizes.** ``robustness`` and ``theorem_samples`` are envelopes that hold for every model; practice is
far below them. ``clt_samples`` is the central limit theorem with a measured variance: a weighted
least-squares fit to n rows is nearly normal around its limit, with covariance V/n,

    V = Σ⁻¹ E[π² e² Z Zᵀ] Σ⁻¹,    Σ = E[π Z Zᵀ],    e = f - β·Z.

The residual e is what the surrogate cannot fit, so V depends on the model and has to be measured: a few
hundred rows are enough to tell how many thousand are needed.

**Smooth weights**, the setting of the 2020 paper. All columns have the law normal(μ_j, σ²), bins are its
quantiles, and a row weighs exp(-‖x - ξ‖² / (2ν²)). A normal law times a Gaussian weight is normal again,

    x_j ~ normal(μ̃_j, σ̃²)  under w,    μ̃ = (ν²μ + σ²ξ)/(ν² + σ²),    σ̃ = νσ/√(ν² + σ²),

so that the limit depends on Φ and its density at the two edges q₋, q₊ of the instance's bin. The paper prints
σ̃² instead of σ̃.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from limes._arrays import ROUNDING, Floats, finite_array, is_constant
from limes._checks import (
    check_choice,
    check_count,
    check_number,
    check_probability,
    check_size,
)
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._joint import JointDesign
from limes.designs._product import ProductDesign
from limes.designs._weights import check_bandwidth
from limes.exceptions import InputError
from limes.models.forms._links import links

__all__ = [
    "ExpectedLink",
    "Robustness",
    "SmoothLimit",
    "clt_samples",
    "expected_link",
    "gaussian_bins",
    "gram",
    "inverse_gram",
    "measured_errors",
    "robustness",
    "smooth_limit",
    "switch_off_bandwidth",
    "tfidf_factor",
    "theorem_samples",
]


# Log E[π] whose inverse a float64 holds
_LEAST_WEIGHT = -700.0


def gram(design: ProductDesign | ExchangeableDesign | JointDesign) -> Floats:
    r"""Return Σ = E[π Z Zᵀ] of Z = (1, h₁, ..., h_d), the intercept first, (d + 1, d + 1).

    Its first entry is E[π], which the papers call C or α₀: divide by it for the moments under w.

    Parameters
    ----------
    design
        Of any kind: ``ProductDesign.from_bins(...)``, ``ExchangeableDesign.word_deletions(d, bandwidth)``, or
        ``explainer.design(row)``.

    Raises
    ------
    InputError
        If it is no design, or E[π] is below 1e-304.

    References
    ----------
    Garreau & von Luxburg 2020, Lemma 8.1; 2022, Proposition 10; Mardaoui & Garreau 2021, Proposition 1.

    Examples
    --------
    Two columns of two bins, no weights: each is in its bin with probability ½.

    >>> from limes.designs import ProductDesign
    >>> columns = [[0, 1, 2]] * 2, [[0.5, 1.5]] * 2, [[1, 1]] * 2
    >>> design = ProductDesign.from_bins(*columns, instance=[0, 0], bandwidth=float("inf"))
    >>> gram(design).tolist()
    [[1.0, 0.5, 0.5], [0.5, 0.5, 0.25], [0.5, 0.25, 0.5]]
    """
    covariance = _checked_design(design).gamma(np.eye(design.size))
    means = np.append(1.0, design.inclusion)
    moments = np.outer(means, means)
    moments[1:, 1:] += covariance
    return np.asarray(np.exp(design.log_weight) * moments)


def inverse_gram(design: ProductDesign | ExchangeableDesign | JointDesign) -> Floats:
    r"""Return the inverse of :func:`gram`, (d + 1, d + 1), without inverting it numerically.

        Σ⁻¹ = (1/C) [[1 + αᵀS⁻¹α, -αᵀS⁻¹], [-S⁻¹α, S⁻¹]],    S = Cov_w(h),  α = E_w h.

    Parameters
    ----------
    design
        As for :func:`gram`.

    Raises
    ------
    InputError
        As for :func:`gram`; and if a feature cannot vary, or repeats others: then there is no inverse.

    References
    ----------
    Garreau & von Luxburg 2020, Lemma 8.2; 2022, Proposition 11; Mardaoui & Garreau 2021, Propositions 6, 7.

    Examples
    --------
    >>> from limes.designs import ExchangeableDesign
    >>> design = ExchangeableDesign.word_deletions(5, 0.25)
    >>> bool(np.allclose(gram(design) @ inverse_gram(design), np.eye(6)))
    True
    """
    alone = np.eye(_checked_design(design).size)
    if not np.allclose(design.gamma(design.solve(alone)), alone, atol=ROUNDING**0.5):
        raise InputError("Σ has no inverse: a feature cannot vary under this design, or repeats others")
    inverse = design.solve(alone)
    slopes = inverse @ design.inclusion
    whole = np.empty((design.size + 1, design.size + 1))
    whole[0, 0], whole[1:, 1:] = 1.0 + design.inclusion @ slopes, inverse
    whole[0, 1:] = whole[1:, 0] = -slopes
    return np.asarray(np.exp(-design.log_weight) * whole)


def _checked_design(design: Any) -> ProductDesign | ExchangeableDesign | JointDesign:
    if not isinstance(design, ProductDesign | ExchangeableDesign | JointDesign):
        raise InputError(f"Σ is that of a design of limes.designs, got {type(design).__name__}")
    if design.log_weight < _LEAST_WEIGHT:
        raise InputError(f"E[π] = exp({float(design.log_weight):.4g}) is below what a float64 holds")
    return design


def tfidf_factor(bandwidth: float) -> float:
    r"""Return c(ν) of β_j ≈ c(ν) λ_j φ_j, words of a linear model on normalised TF-IDF in long texts.

        c(ν) = E[u (1 - u) / √u] / E[u (1 - u)],    u uniform on (0, 1), weighted by exp(-(1 - √u)² / (2ν²)).

    λ_j is the model's coefficient and φ_j the word's TF-IDF in the text; no word may dominate the norm. u is
    the share of words that are kept. ``limes.TextExplainer`` computes β_j itself, for any text.

    Parameters
    ----------
    bandwidth
        ν > 0, infinity allowed; ``lime`` calls 0.25 a kernel width of 25.

    Raises
    ------
    InputError
        If ν is not positive.

    References
    ----------
    Mardaoui & Garreau 2021, eq. 12, corrected: 1.36 is printed for all ν.

    Examples
    --------
    >>> [round(tfidf_factor(nu), 3) for nu in (0.05, 0.25, 0.35, float("inf"))]
    [1.064, 1.307, 1.394, 1.6]
    """
    nu = check_bandwidth(bandwidth)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    # over y = 1 - √u, where the rest is a polynomial; beyond 12 ν the weight is below 1e-31
    y = 0.5 * min(1.0, 12.0 * nu) * (nodes + 1.0)
    mass = weights * y * (2.0 - y) * np.exp(-0.5 * (y / nu) ** 2)
    return float(mass @ (1.0 - y) ** 2 / (mass @ (1.0 - y) ** 3))


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


# Largest and smallest error that can be requested: below the smallest, rounding is larger
_LARGEST, _SMALLEST = 0.1, 1e-13


@dataclass(frozen=True, eq=False)
class ExpectedLink:
    """E link(S), a bound of its error, and the number of evaluations of the generating function.

    Attributes
    ----------
    value
        E link(S).
    error
        Bound of the quadrature's error, without rounding (about 1e-15 times the number of factors of the
        generating function).
    nodes
        Number of complex numbers at which the generating function was evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.theory import expected_link
    >>> always_zero = expected_link(lambda z: np.ones_like(z), -1.0, 1.0, error=1e-12)
    >>> round(always_zero.value, 9)
    0.5
    """

    value: float
    error: float
    nodes: int


def expected_link(
    generating: Callable[[Any], Any],
    lower: float,
    upper: float,
    link: str = "logistic",
    *,
    error: float = 1e-12,
) -> ExpectedLink:
    r"""Compute E link(S) of a random S in [lower, upper] from M(z) = E e^{zS}, its error known beforehand.

        E link(S) ≈ r + Re Σ_n W_n M(z_n),    z_n = i (n + ½) h, and the nearest real poles

    For sums of independent terms M is a product, so that a probability averaged over any number of columns
    costs one product a node. Step and number of nodes follow from the range and the error alone:
    about L (M + L/4) / (2π²) for the logistic link, with L = -ln(error) and |S| <= M.

    Parameters
    ----------
    generating
        Complex (N,) -> complex (N,): M at real and at imaginary numbers.
    lower, upper
        Ends of a range that S never leaves; M need only be right for such an S.
    link
        "logistic", "probit" or "cloglog".
    error
        The largest error, from 1e-13 to 0.1.

    Returns
    -------
    ExpectedLink
        ``.value``, ``.error`` (at most the one requested) and ``.nodes``.

    Raises
    ------
    InputError
        If an argument is not usable, or the range takes more than 4,096 nodes.

    References
    ----------
    Trefethen & Weideman 2014, The exponentially convergent trapezoidal rule.

    Examples
    --------
    The average probability of 1 / (1 + e^{-S}), where S is the sum of ten coins of -1 or 2:

    >>> import numpy as np
    >>> from limes.theory import expected_link
    >>> result = expected_link(lambda z: ((np.exp(-z) + np.exp(2 * z)) / 2) ** 10, -10, 20)
    >>> round(result.value, 9), result.nodes
    (0.834277176, 49)
    """
    check_choice("link", link, sorted(name for name in links(1.0) if name != "exp"))
    if not callable(generating):
        raise InputError(f"generating must be a function, got {type(generating).__name__}")
    lower, upper = check_number("lower", lower), check_number("upper", upper)
    if not lower <= upper:
        raise InputError(f"lower and upper must ascend, got {lower} and {upper}")
    if not _SMALLEST <= check_size("error", error) <= _LARGEST:
        raise InputError(f"error must be from {_SMALLEST} to {_LARGEST}, got {error}")
    # errors are multiplied by the size of the link's kernel on the contour
    size = links(-np.log(error))[link].size(0.0)
    rule = links(float(np.log(3.0 * size / error)))[link].sum(float(lower), float(upper), 0.0)
    moments = np.asarray(generating(rule.nodes), dtype=np.complex128)
    if moments.shape != rule.nodes.shape or not np.isfinite(moments).all():
        raise InputError(
            f"the generating function must return {rule.nodes.size} finite numbers, got {moments.shape}"
        )
    terms = rule.weights * np.exp(rule.log_weights) * moments
    return ExpectedLink(float(rule.base + rule.rest + terms.sum().real), float(error), rule.nodes.size)


def gaussian_bins(
    mean: ArrayLike, std: float, *, bins: int = 4
) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """Return edges, means and standard deviations of quantile bins of normal(μ_j, σ²).

    They are the arguments of :meth:`limes.designs.ProductDesign.from_bins`. Inside a bin the law is the
    normal law itself, cut to it: means and deviations are those of the uncut law, the same in every bin.

    Parameters
    ----------
    mean
        μ, (d,).
    std
        σ, one for all columns.
    bins
        p, the same for all columns.

    Raises
    ------
    InputError
        If σ is not positive, or p below 2.

    References
    ----------
    Garreau & von Luxburg 2020, section 2.2.

    Examples
    --------
    >>> edges, means, stds = gaussian_bins([0.0, 10.0], 2.0)
    >>> edges[1].round(3).tolist()
    [-inf, 8.651, 10.0, 11.349, inf]
    """
    centers = _means(mean, std)
    check_count("bins", bins, 2)
    cuts = ndtri(np.arange(bins + 1) / bins)
    return (
        [m + std * cuts for m in centers],
        [np.full(bins, m) for m in centers],
        [np.full(bins, float(std)) for _ in centers],
    )


@dataclass(frozen=True, eq=False)
class SmoothLimit:
    """Limit of LIME for a linear f under smooth weights.

    Attributes
    ----------
    intercept, coef
        β₀ and β (d,).
    inclusion
        α_j = P_w(x_j in the instance's bin), (d,).
    local_error
        Surrogate at the instance less f(ξ) (Corollary 3.1).

    Examples
    --------
    >>> import limes
    >>> limes.theory.smooth_limit([10.0], 0.0, [1.0], mean=[0.0], std=1.0, bandwidth=1.0).coef.shape
    (1,)
    """

    intercept: float
    coef: Floats
    inclusion: Floats
    local_error: float


def smooth_limit(
    slopes: ArrayLike,
    constant: float,
    instance: ArrayLike,
    *,
    mean: ArrayLike,
    std: float,
    bandwidth: float,
    bins: int = 4,
) -> SmoothLimit:
    r"""Return the limit for f(x) = Σ λ_j x_j + c: Theorem 3.1, corrected.

        β_j = -λ_j θ_j / (α_j (1 - α_j)),    β₀ = f(μ̃) + Σ_j λ_j θ_j / (1 - α_j),

        α_j = Φ((q₊ - μ̃_j)/σ̃) - Φ((q₋ - μ̃_j)/σ̃),    θ_j = σ̃ [φ((q₊ - μ̃_j)/σ̃) - φ((q₋ - μ̃_j)/σ̃)].

    Parameters
    ----------
    slopes, constant
        λ (d,) and c.
    instance
        ξ, (d,).
    mean, std
        μ (d,) and σ of the training law.
    bandwidth
        ν > 0, in the units of the columns.
    bins
        p quantile bins.

    Raises
    ------
    InputError
        If shapes disagree, a number is not positive, or ν is so narrow that α or 1 - α is 0 in float64: then
        use ``limes.limit(ProductDesign.from_bins(..., weights="euclidean"), forms.Linear(...))``, which
        loses no digits.

    References
    ----------
    Garreau & von Luxburg 2020, Theorem 3.1 and Corollary 3.1; σ̃² is printed instead of σ̃.

    Examples
    --------
    >>> limit = smooth_limit([10.0, -10.0], 0.0, [1.0, 0.4], mean=[0.0, 0.0], std=1.0, bandwidth=1.0)
    >>> limit.coef.round(2).tolist()
    [11.38, -1.99]
    """
    centers, width = _means(mean, std), check_bandwidth(bandwidth)
    row, weights = finite_array("instance", instance, 1), finite_array("slopes", slopes, 1)
    constant = check_number("constant", constant)
    if not row.shape == weights.shape == centers.shape:
        raise InputError(
            f"slopes {weights.shape}, instance {row.shape} and mean {centers.shape} must have one number "
            "a column"
        )
    edges, _, _ = gaussian_bins(centers, std, bins=bins)
    shrink = 1.0 if np.isinf(width) else width**2 / (width**2 + std**2)
    middle, spread = shrink * centers + (1 - shrink) * row, std * np.sqrt(shrink)
    lower, upper = ((edge - middle) / spread for edge in _bin_edges(edges, row))
    inside, outside = ndtr(upper) - ndtr(lower), ndtr(lower) + ndtr(-upper)
    if not ((inside > 0) & (outside > 0)).all():
        raise InputError(
            f"bandwidth={bandwidth!r} is too narrow for the closed form: use limes.limit with "
            "ProductDesign.from_bins(..., weights='euclidean')"
        )
    theta = spread * (_density(upper) - _density(lower))
    coef = -weights * theta / (inside * outside)
    intercept = float(weights @ middle + constant + (weights * theta / outside).sum())
    return SmoothLimit(
        intercept=intercept,
        coef=coef,
        inclusion=inside,
        local_error=float(weights @ (middle - row) - (weights * theta / inside).sum()),
    )


def switch_off_bandwidth(instance: ArrayLike, *, mean: ArrayLike, std: float, bins: int = 4) -> Floats:
    r"""Return the bandwidth at which a feature vanishes from the explanation of any linear model.

        ν_j² = σ² (2ξ_j - q₋ - q₊) / (q₋ + q₊ - 2μ_j),

    NaN where the right side is not positive, or the bin is unbounded: then there is no such bandwidth.

    Parameters
    ----------
    instance
        ξ, (d,).
    mean, std
        μ (d,) and σ of the training law.
    bins
        p quantile bins.

    Raises
    ------
    InputError
        If shapes disagree, σ is not positive, or p below 2.

    References
    ----------
    Garreau & von Luxburg 2020, Eq. 4.1. Default weights have no such bandwidth (2022, Corollary 4).

    Examples
    --------
    >>> switch_off_bandwidth([0.432, 0.2, 2.0], mean=[0.0, 0.0, 0.0], std=1.0).round(3).tolist()
    [0.53, nan, nan]
    """
    centers, row = _means(mean, std), finite_array("instance", instance, 1)
    if row.shape != centers.shape:
        raise InputError(f"instance {row.shape} and mean {centers.shape} must have one number a column")
    lower, upper = _bin_edges(gaussian_bins(centers, std, bins=bins)[0], row)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    edge_sum = np.where(bounded, lower + upper, np.nan)
    # a bin around μ itself is switched off at no finite ν; its edges are symmetric but for rounding
    asymmetric = np.abs(edge_sum - 2 * centers) > ROUNDING * std
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = std**2 * (2 * row - edge_sum) / (edge_sum - 2 * centers)
        return np.where(asymmetric & (squared > 0), np.sqrt(squared), np.nan)


def _means(mean: ArrayLike, std: float) -> Floats:
    centers = finite_array("mean", mean, 1)
    if not centers.size:
        raise InputError("mean must have a number for each column, and one column at least")
    check_size("std", std)
    return centers


def _bin_edges(edges: Sequence[Floats], row: Floats) -> Floats:
    """Return edges q₋, q₊ of the bins (q₋, q₊] that contain the instance, (2, d)."""
    bins = [int(np.searchsorted(e[1:-1], x, side="left")) for e, x in zip(edges, row, strict=True)]
    return np.transpose([e[b : b + 2] for e, b in zip(edges, bins, strict=True)])


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
