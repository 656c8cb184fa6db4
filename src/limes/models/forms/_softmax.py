r"""Probabilities of three classes: the softmax of three sums, as sums of exponentials.

With a and b the margins of the other two classes less that of class r, p_r = 1 / (1 + e^a + e^b) has the
double Mellin-Barnes integral of F(z₁, z₂) = Γ(-z₁) Γ(-z₂) Γ(1 + z₁ + z₂). Its midpoint sum on Re z = 0, at
t = ((k + ½) h, (l + ½) h), adds up the copies of p_r at distances of P = 2π/h with alternating signs. Where a
or b is far below 0 the copies are logistic functions of the other one, or 1, and add up to half or a quarter
of these:

    p_r = (h/2π)² Σ_kl F(it) e^{i(t₁ a + t₂ b)} + ½ σ(-a) + ½ σ(-b) - ¼,

the two σ by midpoint sums with the same h. All other copies, of pairs of alternating sequences that fall as
geometric ones, add up to less than 2.6 e^{-P} (e^a + e^{-a} + e^b + e^{-b}), whose expectation is a product:
P follows from E e^{±a}, not from the range of the margins. |F| falls as e^{-π max(|t₁|, |t₂|, |t₁ + t₂|)}:
the nodes fill a hexagon, half of which are conjugates of the others.

A probability that is tiny keeps its digits as p_c = e^{m_c - m_r} p_r with the sum of the class r that is
likely where c is not.

References
----------
Trefethen & Weideman 2014, The exponentially convergent trapezoidal rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import loggamma, softmax

from limes._arrays import Floats, Ints, times
from limes.exceptions import InputError
from limes.models.forms._base import Form, FormBase, Sum, coefficients, outputs_of, zero
from limes.models.forms._links import Complexes
from limes.models.forms._margins import as_sum

CLASSES = 3
# -ln of the weight of all nodes that are left out
_DIGITS = 32.0
# Nodes are searched up to heights where weights have fallen to a power of e^{-digits}
_WINDOW = 1.25
# Periods are rounded up to multiples of a 32nd of an octave, so that designs share their nodes
_PERIODS_PER_OCTAVE = 32
# Copies add up to no more than this, times e^{-P} (e^a + e^{-a} + e^b + e^{-b})
COPIES = 2.6
# Approximate number of nodes over P²
NODES = 4.4


@dataclass(frozen=True, eq=False)
class Softmax(FormBase):
    """f(x) = intercept + Σ_c coef[c] · softmax_c(margins(x)), for three classes.

    Parameters
    ----------
    margin
        A form with three outputs: a sum of functions of one column each, as linear and additive models are.
    coef
        (3,), or (3, k) for k outputs; by default each class is an output.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If the margin is no such sum, or has not three outputs; if shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> classes = forms.Softmax(forms.Linear([[1.0, 0.0, -1.0]], [0.0, 0.0, 0.0]))
    >>> classes.predict([[0.0]])
    array([[0.33333333, 0.33333333, 0.33333333]])
    """

    margin: Form
    coef: Floats | None = None
    intercept: Floats = field(default_factory=zero)
    output_arrays: ClassVar[tuple[str, ...]] = ("coef",)

    def __post_init__(self) -> None:
        if outputs_of(self.margin) != (CLASSES,):
            raise InputError(f"softmax is read for three margins, got outputs {outputs_of(self.margin)}")
        default = np.eye(CLASSES)
        coef, intercept = coefficients(default if self.coef is None else self.coef, self.intercept)
        if len(coef) != CLASSES:
            raise InputError(f"three classes need as many rows of coef, got {len(coef)}")
        self._freeze(coef=coef, intercept=intercept)
        self.terms  # noqa: B018 - refuses margins that are no sums

    @property
    def size(self) -> int:
        return self.margin.size

    @cached_property
    def terms(self) -> Sum:
        """The three margins."""
        return as_sum(self.margin)

    def predict(self, x: Floats) -> Floats:
        assert self.coef is not None  # noqa: S101 - set by __post_init__
        margins = self.margin.predict(x)
        return np.asarray(self.intercept + times(softmax(margins, axis=1), self.coef))


@dataclass(frozen=True, eq=False)
class PlaneSum:
    """Re Σ_n weights[n] e^{i (first[...] a + second[...] b)}, approximately p_r; the origin comes first.

    Attributes
    ----------
    heights
        t₁ and t₂, (K₁,) and (K₂,).
    first, second
        Positions of each node's heights, (N,).
    weights
        (N,).
    error
        Error of the nodes left out, without that of the copies.
    period
        P.
    """

    heights: tuple[Floats, Floats]
    first: Ints
    second: Ints
    weights: Complexes
    error: float
    period: float


def plane_sum(period: float) -> PlaneSum:
    """The nodes for copies at distances of ``period`` or a little more."""
    octaves = np.ceil(np.log2(period) * _PERIODS_PER_OCTAVE) / _PERIODS_PER_OCTAVE
    return _plane_sum(float(2.0**octaves))


@lru_cache(maxsize=64)
def _plane_sum(period: float) -> PlaneSum:
    step = 2.0 * np.pi / period
    count = int(np.ceil(_WINDOW * _DIGITS / np.pi / step))
    half = step * (np.arange(count) + 0.5)
    # 0 is on the lines of the two logistic functions, or the origin
    t1, t2 = np.append(0.0, half), np.concatenate([[0.0], half, -half])
    weights = np.zeros((t1.size, t2.size), dtype=np.complex128)
    weights[0, 0] = 0.25
    weights[1:, 0] = weights[0, 1 : count + 1] = 0.5j * step / np.sinh(np.pi * half)
    # t₁ + t₂ is a multiple of h from 1 - n to 2n - 1
    of_sums = loggamma(1.0 + 1j * step * np.arange(1 - count, 2 * count))
    multiple = np.arange(count)[:, None] + np.concatenate([np.arange(count), -1 - np.arange(count)]) + count
    kernel = np.exp(loggamma(-1j * half)[:, None] + loggamma(-1j * t2[1:]) + of_sums[multiple])
    weights[1:, 1:] = 2.0 * (step / (2.0 * np.pi)) ** 2 * kernel
    size = np.abs(weights).ravel()
    order = np.argsort(size, kind="stable")
    dropped = np.searchsorted(np.cumsum(size[order]), np.exp(-_DIGITS))
    first, second = np.divmod(np.sort(order[dropped:]), t2.size)
    used = np.unique(first), np.unique(second)
    return PlaneSum(
        heights=(t1[used[0]], t2[used[1]]),
        first=np.searchsorted(used[0], first),
        second=np.searchsorted(used[1], second),
        weights=weights[first, second],
        # nodes beyond the window weigh far less than those dropped inside
        error=2.0 * float(np.exp(-_DIGITS)),
        period=period,
    )
