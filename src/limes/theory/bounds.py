r"""How far an explanation can move, and how many rows theory asks for.

Both are envelopes that hold for every model: what is seen is far below them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes.designs.coordinates import IndicatorCoordinate
from limes.designs.product import ProductDesign
from limes.designs.weights import check_bandwidth
from limes.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Robustness:
    """What two models that differ by no more than 1 anywhere can differ in their explanations.

    Attributes
    ----------
    coef
        Of each coefficient, (d,): 2, or 0 where a column cannot vary. It is reached.
    intercept
        Of the intercept.
    norm
        Of the vector of intercept and coefficients.
    """

    coef: Floats
    intercept: float
    norm: float


def robustness(design: ProductDesign) -> Robustness:
    r"""Bound what a change of the model does: for ‖f - g‖∞ ≤ 1.

        |β_j^f - β_j^g| ≤ 2,    |β₀^f - β₀^g| ≤ 1 + 2 Σ α_j,    ‖β^f - β^g‖ ≤ √(4d + (1 + 2 Σ α_j)²).

    β_j is a difference of two means of f, and β₀ = E_w f - Σ α_j β_j. Multiply by ‖f - g‖∞.

    Parameters
    ----------
    design
        Of bins or categories.

    Raises
    ------
    InputError
        If a column's feature is x itself (slopes): no such bound holds.

    References
    ----------
    Garreau & von Luxburg 2022, Proposition 2, mended: the printed bound √(d(9d + 4p²)) e^{1/(2ν²)}/(p - 1)
    fails for many bins.

    Examples
    --------
    >>> from limes.designs import ProductDesign
    >>> design = ProductDesign.from_bins([[0, 1, 2]], [[0.5, 1.5]], [[0.3, 0.3]], [0.2], float("inf"))
    >>> round(robustness(design).norm ** 2, 9)
    8.0
    """
    if not all(isinstance(c, IndicatorCoordinate) for c in design.coordinates):
        raise InputError("the bound holds for bins and categories; bins=None makes slopes, which have none")
    varies = design.variance > 0
    coef = np.where(varies, 2.0, 0.0)
    intercept = float(1.0 + coef @ design.inclusion)
    return Robustness(coef, intercept, float(np.sqrt(coef @ coef + intercept**2)))


def theorem_samples(
    tolerance: float, *, size: int, bins: int, bandwidth: float, bound: float, risk: float = 0.05
) -> float:
    r"""Rows that Theorem 1 asks for, so that ‖β̂ - β‖ < ε with probability 1 - η at least.

        max( 2¹² C_f² d⁴ p⁴ e^{1/ν²} / (c^{2d} ε²),  2¹⁵ C_f² d⁷ p⁸ e^{2/ν²} / (c^{4d} ε²) ) · ln(8d/η),

        c = 1/p + (1 - 1/p) e^{-1/(2ν²)}.

    An upper envelope, by many orders of magnitude: see :func:`clt_samples` for what is enough in practice.

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
        May be infinite: for a narrow ν.

    Raises
    ------
    InputError
        If a number is out of its range.

    References
    ----------
    Garreau & von Luxburg 2022, Theorem 1, mended: the first term is printed with C_f in the place of C_f².

    Examples
    --------
    >>> f"{theorem_samples(0.1, size=10, bins=4, bandwidth=2.4, bound=1.0):.1e}"
    '2.9e+20'
    """
    if not 0 < tolerance < bound:
        raise InputError(f"tolerance must lie between 0 and bound={bound!r}, got {tolerance!r}")
    if size < 1 or bins < 2 or not 0 < risk < 1:
        raise InputError(
            f"size={size!r} columns and bins={bins!r} must be 1 and 2 at least, risk={risk!r} in (0, 1)"
        )
    nu = check_bandwidth(bandwidth)
    with np.errstate(over="ignore"):
        log_c = np.log(1 / bins + (1 - 1 / bins) * np.exp(-0.5 / nu**2))
        first = 12 * np.log(2) + 4 * np.log(size * bins) + nu**-2 - 2 * size * log_c
        second = 15 * np.log(2) + 7 * np.log(size) + 8 * np.log(bins) + 2 * nu**-2 - 4 * size * log_c
        scale = np.log(8 * size / risk) * (bound / tolerance) ** 2
        return float(np.ceil(scale * np.exp(max(first, second))))
