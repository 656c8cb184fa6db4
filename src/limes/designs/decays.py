r"""∫ exp(-rate |x - center|) against Gaussian pieces, without loss of digits.

On each side of the center the integrand is exp(∓rate (x - center)), and its product with a piece is again the
exponential of a concave polynomial of degree two. It is integrated by Gauss-Legendre from the point where the
product is largest to both sides, as far as it matters: closed forms would subtract equals for steep kernels,
and divide 0 by 0 on uniform pieces.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from limes._arrays import Floats
from limes.designs import quadrature

# exp(-45) = 3e-20 cannot change a sum, and 64 nodes integrate exp(-45 t) on [0, 1] to the last digit
_NEGLIGIBLE_EXPONENT = 45.0
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)
# Numbers computed at once: 16 MB of float64
_BLOCK = 2_000_000


class Pieces(quadrature.Pieces, Protocol):
    """As for quadrature, and the ends of the pieces."""

    @property
    def lower(self) -> Floats: ...
    @property
    def upper(self) -> Floats: ...


def decays(
    pieces: Pieces, center: Floats, rate: float, centred: tuple[Floats, float] | None = None
) -> Floats:
    """∫ exp(-rate |x - center|) [(x - origin) / unit] d(piece), (m, P).

    Parameters
    ----------
    pieces
        P pieces.
    center, rate
        (m,) and one number > 0.
    centred
        (origin (P,), unit) where the factor in brackets is wanted.
    """
    step = max(1, _BLOCK // (_NODES.size * pieces.anchor.size))
    blocks = [_decays(pieces, center[i : i + step, None], rate, centred) for i in range(0, center.size, step)]
    return np.concatenate(blocks) if blocks else np.zeros((0, pieces.anchor.size))


def _decays(pieces: Pieces, center: Floats, rate: float, centred: tuple[Floats, float] | None) -> Floats:
    """The same for centers (m, 1)."""
    ends = [(side - pieces.anchor) / pieces.scale for side in (pieces.lower, pieces.upper)]
    middle = (center - pieces.anchor) / pieces.scale
    turn = np.clip(middle, *ends)
    pull = rate * pieces.scale
    below = _one_side(pieces, (ends[0], turn), middle, -pull, centred)
    above = _one_side(pieces, (turn, ends[1]), middle, pull, centred)
    return np.asarray((below + above) * (pieces.weight / pieces.area))


def _one_side(
    pieces: Pieces,
    ends: tuple[Floats, Floats],
    middle: Floats,
    pull: Floats,
    centred: tuple[Floats, float] | None,
) -> Floats:
    """∫ exp(-slope t - precision t²/2 - pull (t - middle)) [...] dt between the ends."""
    start, end = np.broadcast_arrays(*ends)
    slope, precision = pieces.slope + pull, pieces.precision
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(precision > 0, -slope / precision, np.where(slope > 0, -np.inf, np.inf))
    peak = np.clip(free, start, end)
    steepness = np.abs(slope + precision * peak) * (peak != free)
    # at most 0 wherever the side is not empty: both the density and the kernel are at most 1
    exponent = -peak * (pieces.slope + 0.5 * precision * peak) - pull * (peak - middle)
    height = np.exp(np.where(start < end, exponent, 0.0))
    with np.errstate(divide="ignore"):
        root = np.sqrt(steepness**2 + 2.0 * precision * _NEGLIGIBLE_EXPONENT)
        far = 2.0 * _NEGLIGIBLE_EXPONENT / (steepness + root)
    found = np.zeros(peak.shape)
    for sign, length in ((-1.0, np.minimum(peak - start, far)), (1.0, np.minimum(end - peak, far))):
        s = 0.5 * length[..., None] * (1.0 + _NODES)
        weight = 0.5 * length[..., None] * _NODE_WEIGHTS
        weight = weight * np.exp(-s * (steepness[..., None] + 0.5 * precision[..., None] * s))
        if centred is not None:
            origin, unit = centred
            shift, step = (pieces.anchor - origin) / unit, pieces.scale / unit
            weight = weight * ((peak[..., None] + sign * s) * step[..., None] + shift[..., None])
        found += weight.sum(axis=-1)
    return found * height
