r"""Expectations of links of any bounded random number, from its moment generating function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._checks import check_choice, check_number, check_size
from limes.exceptions import InputError
from limes.models.forms._links import links

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
