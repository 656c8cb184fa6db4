"""Links, and sums of exponentials that equal them.

A link with the Mellin-Barnes integral f(s) = (1/2πi) ∫ F(z) e^{zs} dz along Re z = θ is, for |s| below half
of P = 2π/h and more, its midpoint sum

    f(s) = (h/π) Σ_{n≥0} Re F(z_n) e^{z_n s} + Σ_p n_p r_p e^{ps},    z_n = θ + i (n + ½) h.

Moving the contour across a pole p of F adds its residue term r_p e^{ps}. The sum weights each pole with n_p =
1 / (1 + e^{±P(p - θ)}), which is ½ where the contour runs through it: nothing is singular there. The error
consists of the next poles q, which add up to less than e^{-|q - θ|(P - |s|)} of e^{θs}, and of the truncation
at height T, e^{-πT} (for the logistic link). Node counts therefore follow from the range of s alone:

    |f(s) - sum| <= ε size(θ) e^{θs}  on [lower, upper].

The range of a sum of many columns is far wider than its law. Where no pole from ±q on is counted, the error
is for all s, however large, below

    C (e^{qs - (q - θ)P} + e^{-qs - (q + θ)P}) + ε e^{θs},    C = Σ_n |weights[n]| + q + 3 < 16:

for |s| < P the poles left out add up to no more than twice the first, and beyond P the sum, the link and the
poles counted are each below e^{θs + (q - θ)(s - P)}. P follows from E e^{±qS}, which are products.

The expectation of e^{zS} is a product if S is a sum of independent terms, and ε size(θ) E e^{θS} bounds the
error of E f(S). θ = 0 is the Fourier integral. Where f(S) is tiny, E e^{θS} is tiny for another θ: the
contour that makes it least keeps the relative accuracy of small probabilities.

Squares of links are such sums as well, which gives second moments, hence variances:

    σ² = σ - σ'                      F(z) = (1 - z) π / sin πz
    Φ²                               F(z) = e^{z²/2} erfc(z/2) / z, of the larger of two normal numbers
    (1 - e^{-e^s})² = 2 f(s) - f(s + ln 2)     F(z) = (2^z - 2) Γ(-z)

The square of e^s is e^{2s}, and products of cosines are cosines of sums and differences. Products of two
other functions of two sums have no such form: their expectations are integrals over two numbers, about 10,000
nodes a pair.

References
----------
Trefethen & Weideman 2014, The exponentially convergent trapezoidal rule.
Zygmund 2002, Trigonometric Series, II.2 (the series of |s|).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import factorial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit, gamma, ndtr, wofz

from limes._arrays import Floats
from limes.exceptions import InputError

Complexes: TypeAlias = NDArray[np.complex128]

# -ln of the error of one alias or of a truncated tail, relative to e^{θs}; there are three of them
_DIGITS = 31.0
# Periods are rounded up to multiples of an eighth of an octave, so that designs share their nodes.
_PERIODS_PER_OCTAVE = 8
# The same of sums of many columns, whose tables are larger; the least period of these
_WIDE_PERIODS, _LEAST_PERIOD = 4, 16.0
# ln of what the errors far from 0 add up to, over the first pole's that is left out
_ALIASES = float(np.log(16.0))
# Largest number of nodes: more than a margin of ±2,000 needs
MOST_NODES = 4096


@dataclass(frozen=True, eq=False)
class ExponentialSum:
    """slope s + base + rest + Re Σ_n weights[n] e^{nodes[n] s + log_weights[n]}: approximately a link."""

    nodes: Complexes
    weights: Complexes
    log_weights: Floats
    contour: int  # number of nodes on Re z = tilt; the others, which follow, are the real poles
    base: float  # 0 or 1, stored separately so that 1 less a probability keeps its digits
    rest: float
    tilt: float
    error: float  # the difference is at most error · size(tilt) · e^{tilt · s}
    slope: float = 0.0  # of kinks
    is_even: bool = False  # whether the contour's nodes are a constant step apart, which is faster

    @classmethod
    def of_waves(
        cls, heights: Floats, weights: Floats, rest: float = 0.0, error: float = 0.0, slope: float = 0.0
    ) -> ExponentialSum:
        """A sum at ``heights`` a constant step apart on Re z = 0."""
        nodes, count = (1j * heights).astype(np.complex128), heights.size
        unit = np.zeros(count)
        return cls(nodes, weights.astype(np.complex128), unit, count, 0.0, rest, 0.0, error, slope, True)

    @property
    def equidistant(self) -> int:
        """Number of first nodes that are a constant step apart."""
        return self.contour if self.is_even else 0


# t -> a bound of |E e^{itS}| and of its contrasts, which does not rise
Decay: TypeAlias = Callable[[Floats], Floats]


def no_decay(t: Floats) -> Floats:
    return np.ones(t.shape)


def _unit(tilt: float) -> float:  # noqa: ARG001 - the same for all
    return 1.0


@dataclass(frozen=True, eq=False)
class Link:
    """A function of one number that is a sum of exponentials on any range."""

    function: Callable[[Floats], Floats]  # elementwise
    tilts: tuple[float, ...] = (0.0,)  # contours to choose from, 0 first
    size: Callable[[float], float] = _unit  # factor of the errors on a contour
    is_monotone: bool = True  # extremes on a range are at its ends
    is_symmetric: bool = False  # link(-s) = 1 - link(s)
    # the error of a sum on Re z = 0 is e^{rate · a} times as large beyond its range by a; None if unknown
    rate: float | None = None

    @abstractmethod
    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:
        """The sum on [lower, upper] under a law of s with this ``decay``; too many nodes are refused."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Contour(Link):
    """A link by its Mellin-Barnes integral; ``size`` is about the largest |F(z) sin(πz)/π| on a contour."""

    kernel: Callable[[Complexes], Complexes]  # F; 1/z times something regular at 0, where its residue is 1
    residues: Mapping[int, float]  # r_p by pole p, except that of 0
    height: float  # T, where the kernel has fallen to e^{-31}
    period: Callable[[float, float, float], float]  # (lower, upper, tilt) -> the least P
    digits: float  # -ln of the error of each alias, and of the part beyond T
    order: int | None = None  # q of `sum_by_moments`; None without such a sum

    @property
    def fastest(self) -> Complexes:
        """Numbers z whose e^{zs} turn and grow as fast as any of a sum: ends of contours, and poles."""
        poles = [*self.residues] or [0]
        ends = [tilt + 1j * self.height for tilt in (min(self.tilts), max(self.tilts))]
        return np.array([*ends, min(poles), max(poles)], dtype=np.complex128)

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        period = self.period(lower, upper, tilt)
        if not period * self.height / (2.0 * np.pi) < MOST_NODES:
            raise InputError(
                f"the margin ranges from {lower:.3g} to {upper:.3g} under the background's law, too far for "
                f"quadrature with {MOST_NODES:,} nodes"
            )
        octaves = np.ceil(np.log2(period) * _PERIODS_PER_OCTAVE) / _PERIODS_PER_OCTAVE
        return _sum(self, float(2.0**octaves), tilt)

    def period_by_moments(self, above: Floats, below: Floats, tilt: float) -> Floats:
        """The least P for logarithms of E e^{qs} / E e^{θs} and of E e^{-qs} / E e^{θs}."""
        assert self.order is not None  # noqa: S101 - the caller checks
        digits, q = self.digits + _ALIASES, self.order
        upper, lower = (digits + above) / (q - tilt), (digits + below) / (q + tilt)
        return np.asarray(np.maximum(np.maximum(upper, lower), _LEAST_PERIOD))

    def sum_by_moments(self, period: float, tilt: float) -> ExponentialSum:
        """The sum on the whole line, whose error is that of a law of s with this period."""
        octaves = np.ceil(np.log2(period) * _WIDE_PERIODS) / _WIDE_PERIODS
        if not 2.0**octaves * self.height / (2.0 * np.pi) < MOST_NODES:
            raise InputError(
                "the margin spreads too far under the background's law for quadrature with "
                f"{MOST_NODES:,} nodes"
            )
        return _sum(self, float(2.0**octaves), tilt, self.order)


@lru_cache(maxsize=256)
def _sum(link: Contour, period: float, tilt: float, order: int | None = None) -> ExponentialSum:
    step = 2.0 * np.pi / period
    heights = step * (np.arange(int(np.ceil(link.height / step))) + 0.5)
    contour = np.asarray(tilt + 1j * heights, dtype=np.complex128)
    counted_poles = [p for p in link.residues if order is None or abs(p) < order]
    poles = np.array(counted_poles, dtype=np.float64)
    residues = np.array([link.residues[p] for p in counted_poles])
    away = np.where(poles > 0, poles - tilt, tilt - poles)
    counted = -np.logaddexp(0.0, period * away)
    used = counted > -np.inf
    below = tilt < 0.0
    return ExponentialSum(
        nodes=np.concatenate([contour, poles[used]]),
        weights=np.concatenate([step / np.pi * link.kernel(contour), residues[used]]),
        log_weights=np.concatenate([np.zeros(contour.size), counted[used]]),
        contour=contour.size,
        base=float(below),
        rest=float((-1.0 if below else 1.0) * np.exp(-np.logaddexp(0.0, period * abs(tilt)))),
        tilt=tilt,
        error=3.0 * float(np.exp(-link.digits)),
        is_even=True,
    )


def _log_log(s: Floats) -> Floats:
    return np.asarray(-np.expm1(-np.exp(np.minimum(s, 700.0))))


def _exponential(s: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(s))


_ONE = np.ones(1, dtype=np.complex128)
_ITSELF = ExponentialSum(_ONE, _ONE, np.zeros(1), 1, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class Exponential(Link):
    """e^s is a sum of one exponential."""

    function: Callable[[Floats], Floats] = _exponential
    tilts: tuple[float, ...] = (1.0,)

    @property
    def fastest(self) -> Complexes:
        return _ONE

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        return _ITSELF


_HALVES = (0.0, 0.5, -0.5, 1.0, -1.0)


def links(digits: float) -> Mapping[str, Link]:
    """Links by name, whose aliases and tails are below e^{-digits} each."""
    return {
        "logistic": Contour(
            function=expit,
            kernel=lambda z: np.asarray(np.pi / np.sin(np.pi * z)),
            residues={p: (-1.0) ** (p + (p > 0)) for p in range(-3, 4) if p},
            tilts=_HALVES,
            height=digits / np.pi,
            # aliases decay as e^{-|q - θ| (P - |s|)} with the nearest pole q = ±4 that is not counted
            period=lambda lower, upper, tilt: max(
                upper + digits / (4.0 - tilt), -lower + digits / (4.0 + tilt), digits / 4.0
            ),
            size=_unit,
            digits=digits,
            is_symmetric=True,
            rate=4.0,
            order=2,
        ),
        "probit": Contour(
            function=ndtr,
            kernel=lambda z: np.exp(0.5 * z * z) / z,
            residues={},
            tilts=(0.0, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 6.0, -6.0),
            height=float(np.sqrt(2.0 * digits)),
            # aliases are Φ(-(P - |s|)) times e^{θP}: at most e^{θ²/2 - (P - |s| - θ)²/2}
            period=lambda lower, upper, tilt: (
                max(upper + tilt, -lower - tilt, 0.0) + float(np.sqrt(2.0 * digits))
            ),
            size=lambda tilt: float(np.exp(0.5 * tilt * tilt)),
            digits=digits,
            is_symmetric=True,
            rate=float(np.sqrt(2.0 * digits)),
        ),
        "cloglog": Contour(
            function=_log_log,
            kernel=lambda z: -gamma(-z),
            residues={p: (-1.0) ** (p + 1) / factorial(p) for p in range(1, 5)},
            tilts=_HALVES,
            height=2.0 * digits / np.pi,
            # the alias exp(-e^u + |θ| u), u = P + s, is below e^{-31} from u = 4 on
            period=lambda lower, upper, tilt: max(upper + digits / (5.0 - tilt), 4.0 - lower, digits / 4.0),
            # |Γ(-θ - it)| falls as t^{-θ-½} e^{-πt/2}
            size=lambda tilt: 8.0 * (2.0 * digits / np.pi) ** (0.5 + max(-tilt, 0.0)),
            digits=digits,
        ),
        "exp": Exponential(),
    }


LINKS: Mapping[str, Link] = links(_DIGITS)


# -- squares of links ------------------------------------------------------------------------------------


# e^{2s} where a probability is tiny: contours up to there
_DOUBLED = (0.0, 0.5, 1.0, 1.5, 2.0, -0.5, -1.0)


def _square(
    name: str, kernel: Callable[[Complexes], Complexes], factor: Callable[[int], float], **changes: object
) -> Contour:
    """The square of a link, whose residues are those of the link times a factor."""
    link = LINKS[name]
    assert isinstance(link, Contour)  # noqa: S101 - all but the exponential
    height = link.height * (1.0 + 4.0 / link.digits)  # where |F| is a power of z more
    fields: dict[str, Any] = {"tilts": _DOUBLED, "height": height, **changes}
    return replace(
        link,
        function=lambda s: np.asarray(link.function(s) ** 2),
        kernel=kernel,
        residues={p: residue * factor(p) for p, residue in link.residues.items() if factor(p)},
        is_symmetric=False,
        rate=None,
        order=None,
        **fields,
    )


SQUARES: Mapping[str, Link] = {
    "logistic squared": _square(
        "logistic",
        lambda z: (1.0 - z) * np.pi / np.sin(np.pi * z),
        lambda p: 1.0 - p,
        size=lambda tilt: 6.0,  # noqa: ARG005 - the same
    ),
    "probit squared": _square(
        "probit",
        lambda z: np.exp(0.25 * z * z) * wofz(0.5j * z) / z,
        lambda p: 0.0,  # noqa: ARG005 - it has no residues
        tilts=(0.0, 1.0, 2.0, 4.0, 6.0, 8.0, -1.0),
        # aliases fall as the link's, e^{θ²/2 - (P - |s| - θ)²/2}, and are kept below those of this size
        period=lambda lower, upper, tilt: (
            max(upper + tilt, -lower - tilt, 0.0) + float(np.sqrt(2.0 * _DIGITS + 0.5 * tilt * tilt))
        ),
        # |e^{z²/4} wofz(iz/2)| at z = θ is at most e^{θ²/4}; below 0 it is e^{θ²/2} erfc(θ/2)
        size=lambda tilt: 2.0 * float(np.exp(tilt * tilt * (0.25 if tilt > 0 else 0.5))),
        height=float(2.0 * np.sqrt(34.0)),  # |F| falls as e^{-t²/4}
    ),
    "cloglog squared": _square(
        "cloglog",
        lambda z: (2.0**z - 2.0) * gamma(-z),
        lambda p: 2.0 - 2.0**p,
        # as large as the link's, times |2^z - 2|
        size=lambda tilt: (2.0 + 2.0**tilt) * LINKS["cloglog"].size(tilt),
    ),
}


# -- activations of networks, which need θ = 0 alone -------------------------------------------------------
#
# tanh and erf are rescaled links, and a cosine is one exponential. A function that is 0 far below 0 and s
# far above (GELU, SiLU, softplus) has a kernel with a double pole, F(z) = 1/z² + something regular, that
# falls fast:
#
#     f(s) = s/2 + P/4 + (h/π) Σ_{n≥0} Re F(z_n) e^{z_n s},    z_n = i (n + ½) h,   h = 2π/P,
#
# up to the difference of f and max(s, 0) beyond P - |s|: half of F's sum is the kink itself. A true kink
# has no such kernel: with |s| <= P
#
#     relu(s) = s/2 + P/4 - (2P/π²) Σ_{k odd} cos(kπs/P) / k².
#
# Its terms beyond k = K add up to no more than P/(π²K) D(Kπ/P), where D(t) bounds |E e^{itS}| and does not
# rise. The law of S decides how many are used, and it must have a density (``_expectations/summed.py``):
# where S takes a few values only, E e^{itS} does not fall, and 1/K alone is too slow.


# Error of a kink, relative to the range of s, and the numbers of terms to choose from
_KINK_ERROR = 2e-13
_KINK_TERMS = np.unique(np.rint(np.geomspace(4, MOST_NODES, 61)).astype(np.int64))
# Error of a smooth bend, aliases and tails together
_BEND_ERROR = 1e-13


class Cosine(Link):
    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        return ExponentialSum.of_waves(np.ones(1), np.ones(1))


@dataclass(frozen=True, eq=False)
class Centred(Link):
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


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothRelu(Link):
    """A smooth max(s, 0) by its transform; where |s| > ``reach`` they differ by less than e^{-31}."""

    kernel: Callable[[Floats], Floats]  # on Re z = 0
    height: float  # beyond it the kernel is negligible
    reach: float

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        period = max(-lower, upper, 0.0) + self.reach
        count = int(np.ceil(period * self.height / (2.0 * np.pi)))
        if count > MOST_NODES:
            raise InputError(
                f"the sum before an activation ranges from {lower:.3g} to {upper:.3g} under the background's "
                f"law, too far for quadrature with {MOST_NODES:,} nodes"
            )
        heights = np.asarray(2.0 * np.pi / period * (np.arange(count) + 0.5), dtype=np.float64)
        weights = 2.0 / period * self.kernel(heights)
        return ExponentialSum.of_waves(heights, weights, 0.25 * period, _BEND_ERROR, 0.5)


class Relu(Link):
    """max(s, 0) by the Fourier series of |s|; where s keeps its sign it is s, or 0."""

    def sum(self, lower: float, upper: float, tilt: float, decay: Decay = no_decay) -> ExponentialSum:  # noqa: ARG002
        if lower >= 0.0 or upper <= 0.0:
            return ExponentialSum.of_waves(np.zeros(0), np.zeros(0), slope=float(lower >= 0.0))
        reach = max(-lower, upper)
        last = 2.0 * _KINK_TERMS - 1.0
        errors = reach / np.pi**2 * decay(np.asarray(last * np.pi / reach, dtype=np.float64)) / last
        enough = np.flatnonzero(errors <= _KINK_ERROR * reach)
        if not enough.size:
            raise InputError(
                f"the error of a kink is {errors[-1] / reach:.1g} of its range: too few columns have a "
                "density (numbers in bins have one, categories do not), and the values of all columns have "
                "too many combinations to list"
            )
        k = np.arange(1.0, last[enough[0]] + 1.0, 2.0)
        weights = -2.0 * reach / np.pi**2 / k**2
        return ExponentialSum.of_waves(
            np.pi / reach * k, weights, 0.25 * reach, float(errors[enough[0]]), 0.5
        )


# Links, their squares, and activations by name
CURVES: Mapping[str, Link] = {
    **LINKS,
    **SQUARES,
    "cos": Cosine(np.cos, is_monotone=False),
    "erf": Centred(erf, link=LINKS["probit"], inner=float(np.sqrt(2.0)), rate=float(2.0 * np.sqrt(_DIGITS))),
    "gelu": SmoothRelu(
        lambda s: s * ndtr(s),
        kernel=lambda t: -np.exp(-0.5 * t * t) * (1.0 / (t * t) + 1.0),
        height=8.5,
        reach=9.0,
        is_monotone=False,
        rate=9.5,
    ),
    "relu": Relu(lambda s: np.maximum(s, 0.0)),
    "silu": SmoothRelu(
        lambda s: s * expit(s),
        kernel=lambda t: -(np.pi**2) * np.cosh(np.pi * t) / np.sinh(np.pi * t) ** 2,
        height=11.5,
        reach=38.0,
        is_monotone=False,
        rate=1.0,
    ),
    "softplus": SmoothRelu(
        lambda s: np.logaddexp(0.0, s),
        kernel=lambda t: -np.pi / (t * np.sinh(np.pi * t)),
        height=11.0,
        reach=34.0,
        rate=1.0,
    ),
    "tanh": Centred(np.tanh, rate=8.0),
}
