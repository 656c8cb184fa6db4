r"""Squares of links as sums of exponentials: second moments, hence variances, by the same products.

    σ² = σ - σ'                      F(z) = (1 - z) π / sin πz
    Φ²                               F(z) = e^{z²/2} erfc(z/2) / z, of the larger of two normal numbers
    (1 - e^{-e^s})² = 2 f(s) - f(s + ln 2)     F(z) = (2^z - 2) Γ(-z)

The square of e^s is e^{2s}, and products of cosines are cosines of sums and differences. Products of two
other functions of two sums have no such form: their expectations are integrals over two numbers, about 10,000
nodes a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy.special import gamma, wofz

from limes._arrays import Floats
from limes.models.forms._links import LINKS, Complexes, Contour, Link

# e^{2s} where a probability is tiny: contours up to there
_DOUBLED = (0.0, 0.5, 1.0, 1.5, 2.0, -0.5, -1.0)


def _logistic_kernel(z: Complexes) -> Complexes:
    return np.asarray((1.0 - z) * np.pi / np.sin(np.pi * z))


def _normal_kernel(z: Complexes) -> Complexes:
    return np.asarray(np.exp(0.25 * z * z) * wofz(0.5j * z) / z)


def _log_log_kernel(z: Complexes) -> Complexes:
    return np.asarray((2.0**z - 2.0) * gamma(-z))


def _of_square(function: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda s: np.asarray(function(s) ** 2)


def _normal_size(tilt: float) -> float:
    """|e^{z²/4} wofz(iz/2)| at z = θ is at most e^{θ²/4}; below 0 it is e^{θ²/2} erfc(θ/2)."""
    return 2.0 * float(np.exp(tilt * tilt * (0.25 if tilt > 0 else 0.5)))


def _normal_period(lower: float, upper: float, tilt: float) -> float:
    """Aliases fall as the link's, e^{θ²/2 - (P - |s| - θ)²/2}, and are kept below those of this size."""
    link = LINKS["probit"]
    assert isinstance(link, Contour)  # noqa: S101 - as below
    reach = max(upper + tilt, -lower - tilt, 0.0)
    return reach + float(np.sqrt(2.0 * link.digits + 0.5 * tilt * tilt))


def _square(
    name: str, kernel: Callable[[Complexes], Complexes], factor: Callable[[int], float], **changes: object
) -> Contour:
    """The square of a link, whose residues are those of the link times a factor."""
    link = LINKS[name]
    assert isinstance(link, Contour)  # noqa: S101 - all but the exponential
    residues = {p: residue * factor(p) for p, residue in link.residues.items() if factor(p)}
    height = link.height * (1.0 + 4.0 / link.digits)  # where |F| is a power of z more
    fields = {"tilts": _DOUBLED, "height": height, **changes}
    return replace(
        link,
        function=_of_square(link.function),
        kernel=kernel,
        residues=residues,
        **fields,  # type: ignore[arg-type]
    )


SQUARES: Mapping[str, Link] = {
    "logistic squared": _square("logistic", _logistic_kernel, lambda p: 1.0 - p, size=lambda tilt: 6.0),  # noqa: ARG005 - the same
    "probit squared": _square(
        "probit",
        _normal_kernel,
        lambda p: 0.0,  # noqa: ARG005 - it has no residues
        tilts=(0.0, 1.0, 2.0, 4.0, 6.0, 8.0, -1.0),
        period=_normal_period,
        size=_normal_size,
        height=float(2.0 * np.sqrt(34.0)),  # |F| falls as e^{-t²/4}
    ),
    "cloglog squared": _square(
        "cloglog",
        _log_log_kernel,
        lambda p: 2.0 - 2.0**p,
        # as large as the link's, times |2^z - 2|
        size=lambda tilt: (2.0 + 2.0**tilt) * LINKS["cloglog"].size(tilt),
    ),
}
