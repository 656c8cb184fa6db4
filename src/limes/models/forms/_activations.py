r"""Activations of networks as sums of exponentials.

tanh and erf are rescaled links, and a cosine is one exponential. A function that is 0 far below 0 and s far
above (GELU, SiLU, softplus) has a kernel with a double pole, F(z) = 1/z² + something regular, that falls
fast:

    f(s) = s/2 + P/4 + (h/π) Σ_{n≥0} Re F(z_n) e^{z_n s},    z_n = i (n + ½) h,   h = 2π/P,

up to the difference of f and max(s, 0) beyond P - |s|: half of F's sum is the kink itself. A true kink has no
such kernel: with |s| <= P

    relu(s) = s/2 + P/4 - (2P/π²) Σ_{k odd} cos(kπs/P) / k².

Its terms beyond k = K add up to no more than P/(π²K) D(Kπ/P), where D(t) bounds |E e^{itS}| and does not
rise. The law of S decides how many are used, and it must have a density (``_expectations/summed.py``):
where S takes a few values only, E e^{itS} does not fall, and 1/K alone is too slow.

References
----------
Zygmund 2002, Trigonometric Series, II.2 (the series of |s|).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import erf, expit, ndtr

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models.forms._links import LINKS, MOST_NODES, SQUARES, Decay, ExponentialSum, Link, no_decay

# Error of a kink, relative to the range of s, and the numbers of terms to choose from
_KINK_ERROR = 2e-13
_KINK_TERMS = np.unique(np.rint(np.geomspace(4, MOST_NODES, 61)).astype(np.int64))


# Error of a smooth bend, aliases and tails together
_BEND_ERROR = 1e-13


def _unit(tilt: float) -> float:  # noqa: ARG001 - there is one contour
    return 1.0


@dataclass(frozen=True, eq=False)
class Activation:
    """A function that needs no other contour than Re z = 0."""

    function: Callable[[Floats], Floats]
    tilts: tuple[float, ...] = (0.0,)
    size: Callable[[float], float] = _unit


class Cosine(Activation):
    """cos s = Re e^{is}."""

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        one = np.ones(1, dtype=np.complex128)
        return ExponentialSum(1j * one, one, np.zeros(1), 1, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Centred(Activation):
    """2 link(inner · s) - 1: tanh from the logistic link, erf from the probit."""

    link: Link = LINKS["logistic"]
    inner: float = 2.0

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:
        rule = self.link.sum(self.inner * lower, self.inner * upper, tilt, decay)
        return replace(
            rule,
            nodes=self.inner * rule.nodes,
            weights=2.0 * rule.weights,
            rest=2.0 * (rule.base + rule.rest) - 1.0,
            base=0.0,
            error=2.0 * rule.error,
        )


@dataclass(frozen=True, eq=False)
class Bend(Activation):
    """A smooth max(s, 0) by its transform: ``kernel`` on Re z = 0, negligible beyond ``height``.

    It differs from max(s, 0) by less than e^{-31} where |s| is above ``reach``.
    """

    kernel: Callable[[Floats], Floats] = np.ones_like
    height: float = 1.0
    reach: float = 1.0

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        period = max(-lower, upper, 0.0) + self.reach
        count = int(np.ceil(period * self.height / (2.0 * np.pi)))
        if count > MOST_NODES:
            raise InputError(
                f"the sum before an activation ranges from {lower:.3g} to {upper:.3g} under the background's "
                f"law, too far for quadrature with {MOST_NODES:,} nodes"
            )
        heights: Floats = np.asarray(2.0 * np.pi / period * (np.arange(count) + 0.5), dtype=np.float64)
        return ExponentialSum(
            nodes=(1j * heights).astype(np.complex128),
            weights=(2.0 / period * self.kernel(heights)).astype(np.complex128),
            log_weights=np.zeros(count),
            contour=count,
            base=0.0,
            rest=0.25 * period,
            tilt=0.0,
            error=_BEND_ERROR,
            slope=0.5,
        )


class Rectifier(Activation):
    """max(s, 0) by the Fourier series of |s|; where s keeps its sign it is s, or 0."""

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        if lower >= 0.0 or upper <= 0.0:
            nothing = np.zeros(0)
            nodes = nothing.astype(np.complex128)
            return ExponentialSum(nodes, nodes, nothing, 0, 0.0, 0.0, 0.0, 0.0, slope=float(lower >= 0.0))
        reach = max(-lower, upper)
        last = 2.0 * _KINK_TERMS - 1.0
        heights = np.asarray(last * np.pi / reach, dtype=np.float64)
        errors = reach / np.pi**2 * decay(heights) / last
        enough = np.flatnonzero(errors <= _KINK_ERROR * reach)
        if not enough.size:
            raise InputError(
                f"a kink is known to {errors[-1] / reach:.1g} of its range only: too few columns have "
                "densities, as numbers in bins have and categories do not, and the values of all columns "
                "have too many combinations, or infinitely many"
            )
        k = np.arange(1.0, last[enough[0]] + 1.0, 2.0)
        return ExponentialSum(
            nodes=1j * np.pi / reach * k,
            weights=(-2.0 * reach / np.pi**2 / k**2).astype(np.complex128),
            log_weights=np.zeros(k.size),
            contour=k.size,
            base=0.0,
            rest=0.25 * reach,
            tilt=0.0,
            error=float(errors[enough[0]]),
            slope=0.5,
        )


# Links, their squares, and activations by name
CURVES: Mapping[str, Link] = {
    **LINKS,
    **SQUARES,
    "cos": Cosine(np.cos),
    "erf": Centred(erf, link=LINKS["probit"], inner=float(np.sqrt(2.0))),
    "gelu": Bend(
        lambda s: s * ndtr(s),
        kernel=lambda t: -np.exp(-0.5 * t * t) * (1.0 / (t * t) + 1.0),
        height=8.5,
        reach=9.0,
    ),
    "relu": Rectifier(lambda s: np.maximum(s, 0.0)),
    "silu": Bend(
        lambda s: s * expit(s),
        kernel=lambda t: -(np.pi**2) * np.cosh(np.pi * t) / np.sinh(np.pi * t) ** 2,
        height=11.5,
        reach=38.0,
    ),
    "softplus": Bend(
        lambda s: np.logaddexp(0.0, s),
        kernel=lambda t: -np.pi / (t * np.sinh(np.pi * t)),
        height=11.0,
        reach=34.0,
    ),
    "tanh": Centred(np.tanh),
}
