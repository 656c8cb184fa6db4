r"""Linear models under smooth weights, in closed form: the setting of the 2020 paper.

All columns have the law normal(μ_j, σ²), bins are its quantiles, and a row weighs exp(-‖x - ξ‖² / (2ν²)). A
normal law times a Gaussian weight is normal again,

    x_j ~ normal(μ̃_j, σ̃²)  under w,    μ̃ = (ν²μ + σ²ξ)/(ν² + σ²),    σ̃ = νσ/√(ν² + σ²),

so that the limit depends on Φ and its density at the two edges q₋, q₊ of the instance's bin. The paper prints
σ̃² instead of σ̃.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from limes._arrays import Floats, finite_array
from limes._checks import check_count, check_number, check_size
from limes.designs._weights import check_bandwidth
from limes.exceptions import InputError

_ROUNDING = 1e-12


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
    asymmetric = np.abs(edge_sum - 2 * centers) > _ROUNDING * std
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = std**2 * (2 * row - edge_sum) / (edge_sum - 2 * centers)
        return np.where(asymmetric & (squared > 0), np.sqrt(squared), np.nan)


def _means(mean: ArrayLike, std: float) -> Floats:
    centers = finite_array("mean", mean, 1)
    if not centers.size:
        raise InputError("mean must have a number for each column, and one column at least")
    check_size("std", std)
    return centers


def _bin_edges(edges: Sequence[Floats], row: Floats) -> tuple[Floats, Floats]:
    """Return edges q₋, q₊ of the bins (q₋, q₊] that contain the instance, (d,) each."""
    place = [int(np.searchsorted(e[1:-1], x, side="left")) for e, x in zip(edges, row, strict=True)]
    lower = np.array([e[b] for e, b in zip(edges, place, strict=True)])
    return lower, np.array([e[b + 1] for e, b in zip(edges, place, strict=True)])


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
