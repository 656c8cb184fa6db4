"""Kernels of Gaussian processes, as sums of products that are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.identity import qualified_name
from limes.models.read import CannotRead


@dataclass(frozen=True)
class Monomial:
    """weight · exp(-Σ_j precision_j (x_j - ζ_j)²/2 - Σ_j rate_j |x_j - ζ_j|) · (x·ζ) ** dots.

    Kernels are sums of these.
    """

    weight: float
    precision: Floats
    rate: Floats
    dots: int = 0

    def __mul__(self, other: Monomial) -> Monomial:
        return Monomial(
            self.weight * other.weight,
            self.precision + other.precision,
            self.rate + other.rate,
            self.dots + other.dots,
        )

    def power(self, exponent: float) -> Monomial:
        """Of a monomial without dots."""
        return Monomial(self.weight**exponent, self.precision * exponent, self.rate * exponent)


def expanded(kernel: Any, d: int) -> list[Monomial]:
    """A kernel as a sum of monomials."""
    kind = type(kernel)
    if not qualified_name(kind) or kind.__qualname__ not in _EXPAND:
        reason = _NO_PRODUCT_KERNELS.get(kind.__qualname__, UNKNOWN)
        raise CannotRead(f"the kernel {kind.__qualname__} {reason}; {_READ_KERNELS}")
    return _EXPAND[kind.__qualname__](kernel, d)


UNKNOWN = "is not known to limes"
_READ_KERNELS = (
    "sums, products and powers of RBF, Matern(nu=inf), PairwiseKernel('rbf' or 'laplacian'), ConstantKernel, "
    "WhiteKernel and DotProduct are read exactly"
)
_ROUND = "is a function of the distance that no product of one function a column equals"
_NO_PRODUCT_KERNELS: Mapping[str, str] = {
    "CompoundKernel": "answers several kernels at once",
    "ExpSineSquared": _ROUND,
    "RationalQuadratic": _ROUND,
}


def _constant(kernel: Any, d: int) -> list[Monomial]:
    return [Monomial(float(kernel.constant_value), np.zeros(d), np.zeros(d))]


def _white(kernel: Any, d: int) -> list[Monomial]:  # noqa: ARG001 - noise of a row is no other row's
    return []


def _rbf(kernel: Any, d: int) -> list[Monomial]:
    return [Monomial(1.0, _lengths(kernel, d) ** -2.0, np.zeros(d))]


def _lengths(kernel: Any, d: int) -> Floats:
    return np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64), (d,))


def _matern(kernel: Any, d: int) -> list[Monomial]:
    """Smoothness nu = inf is RBF; nu = 1/2 is exp(-distance / length), a product in one dimension only."""
    if kernel.nu == np.inf:
        return _rbf(kernel, d)
    if kernel.nu == 0.5 and d == 1:
        return [Monomial(1.0, np.zeros(d), 1.0 / _lengths(kernel, d))]
    raise CannotRead(f"the kernel Matern(nu={kernel.nu:g}) {_ROUND}; {_READ_KERNELS}")


def _pairwise_kernel(kernel: Any, d: int) -> list[Monomial]:
    """exp(-γ ‖x - ζ‖²) or exp(-γ ‖x - ζ‖₁), by its metric."""
    if kernel.metric not in ("rbf", "laplacian") or kernel.pairwise_kernels_kwargs:
        raise CannotRead(f"the kernel PairwiseKernel({kernel.metric!r}) is not read; {_READ_KERNELS}")
    gamma, none = np.full(d, float(kernel.gamma)), np.zeros(d)
    return [Monomial(1.0, 2.0 * gamma, none) if kernel.metric == "rbf" else Monomial(1.0, none, gamma)]


def _dot(kernel: Any, d: int) -> list[Monomial]:
    none = np.zeros(d)
    return [Monomial(float(kernel.sigma_0) ** 2, none, none), Monomial(1.0, none, none, dots=1)]


def _sum(kernel: Any, d: int) -> list[Monomial]:
    return expanded(kernel.k1, d) + expanded(kernel.k2, d)


def _product(kernel: Any, d: int) -> list[Monomial]:
    return _multiplied(expanded(kernel.k1, d), expanded(kernel.k2, d))


def _power(kernel: Any, d: int) -> list[Monomial]:
    base, exponent = expanded(kernel.kernel, d), float(kernel.exponent)
    if len(base) == 1 and base[0].dots == 0:
        return [base[0].power(exponent)]
    if exponent not in (1.0, 2.0):
        raise CannotRead(f"a sum of kernels to the power {exponent:g} is not read; powers 1 and 2 are")
    return base if exponent == 1.0 else _multiplied(base, base)


def _multiplied(first: list[Monomial], second: list[Monomial]) -> list[Monomial]:
    return [a * b for a in first for b in second]


_EXPAND: Mapping[str, Callable[[Any, int], list[Monomial]]] = {
    "ConstantKernel": _constant,
    "DotProduct": _dot,
    "Exponentiation": _power,
    "Matern": _matern,
    "PairwiseKernel": _pairwise_kernel,
    "Product": _product,
    "RBF": _rbf,
    "Sum": _sum,
    "WhiteKernel": _white,
}
