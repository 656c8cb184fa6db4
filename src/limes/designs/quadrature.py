"""Adaptive quadrature of a user's function against one Gaussian piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError

# Asked of the adaptive quadrature, and demanded of it: three digits more than what is promised to users.
_QUADRATURE_ASKED, _QUADRATURE_DEMANDED = 1e-13, 1e-10


class Pieces(Protocol):
    """What is asked of ``GaussianPieces``."""

    @property
    def anchor(self) -> Floats: ...
    @property
    def slope(self) -> Floats: ...
    @property
    def precision(self) -> Floats: ...
    @property
    def weight(self) -> Floats: ...
    @property
    def area(self) -> Floats: ...
    @property
    def scale(self) -> Floats: ...
    @property
    def reach(self) -> tuple[Floats, Floats]: ...


def integral(
    pieces: Pieces,
    shape: Callable[[Floats], Floats],
    breaks: Sequence[float],
    piece: int,
    centred: tuple[float, float] | None = None,
) -> float:
    """∫ shape(x) [(x - origin) / unit] d(piece), by adaptive Gauss-Kronrod; ``centred`` is (origin, unit)."""
    from scipy.integrate import quad_vec

    anchor, slope, precision = pieces.anchor[piece], pieces.slope[piece], pieces.precision[piece]
    start, end = (side[piece] for side in pieces.reach)
    scale = float(pieces.scale[piece])
    shift, length = 0.0, scale
    if centred is not None:
        origin, unit = centred
        shift, length = (anchor - origin) / unit, scale / unit

    # in t = (x - anchor) / scale, which keeps the digits of x - origin where x hardly varies
    def integrand(t: Floats) -> Floats:
        density = np.exp(-t * (slope + 0.5 * precision * t))
        value = np.asarray(shape(anchor + scale * t), dtype=np.float64) * density
        return np.asarray(value if centred is None else value * (t * length + shift))

    # quad_vec asks for one point at a time; a grid first gives the size against which errors are judged
    size = float(np.abs(integrand(np.linspace(start, end, 33))).max()) * (end - start)
    found, error = quad_vec(
        lambda t: integrand(np.array([t]))[0],
        start,
        end,
        # not 0, which no error is smaller than, where the function vanishes
        epsabs=max(_QUADRATURE_ASKED * size, 1e-300),
        epsrel=_QUADRATURE_ASKED,
        points=[t for t in sorted({0.0, *((b - anchor) / scale for b in breaks)}) if start < t < end],
        limit=2000,
    )
    where = f"on [{anchor + scale * start:.6g}, {anchor + scale * end:.6g}]"
    if not np.isfinite(found):
        raise InputError(f"a one-dimensional function is not finite somewhere {where}")
    if error > _QUADRATURE_DEMANDED * max(abs(found), size):
        raise InputError(
            f"a one-dimensional function could not be integrated to {_QUADRATURE_DEMANDED:g} {where}; "
            "pass breaks= with the points where it jumps or bends"
        )
    return float(pieces.weight[piece] * found / pieces.area[piece])
