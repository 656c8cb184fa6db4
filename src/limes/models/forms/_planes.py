r"""Sums of exponentials of two numbers that equal the probability of one of three classes.

With a and b the margins of the other two classes less that of class r, p_r = 1 / (1 + e^a + e^b) has the
double Mellin-Barnes integral of F(z₁, z₂) = Γ(-z₁) Γ(-z₂) Γ(1 + z₁ + z₂). Its midpoint sum on Re z = 0, at
t = ((k + ½) h, (l + ½) h), adds up the copies of p_r at distances of P = 2π/h with alternating signs. Copies
far away are series of powers, whose sums over k or l are known: 1 / (1 + e^{jP}) = τ_j of e^{ja}, and
1 / (e^{jP} - 1) = ρ_j along the diagonal. With s = σ(-a) and the midpoint sum of its powers on a line,

    B_j(a) = (h/2π) Σ_k Γ(-it_k) Γ(j + 1 + it_k) / j!  e^{it_k a},

the powers below the order o are subtracted exactly:

    p_r = (h/2π)² Σ_kl F(it) e^{i(t₁ a + t₂ b)}
          + Σ_{j<o} (-1)^j τ_j (e^{jb} B_j(a) + e^{ja} B_j(b))  +  Σ_{1≤j<o} (-1)^j ρ_j e^{-jb} B_{j-1}(a - b)
          + Σ_{j<o} (-1)^j τ_j (Σ_{n<o-j} c_jn τ_n e^{ja + nb} + Σ_{n<o-1-2j} c_jn τ_m e^{ja - mb})
          - Σ_{1≤j<o} (-1)^j τ_j Σ_{i<j} C(j - 1, i) e^{ib - ja},

with c_jn = (-1)^n C(j + n, n) and m = j + 1 + n. All that is left is of the order o or above: its exponents
lie in the hexagon of o (±a, ±b, ±(a - b)), so that it is less than

    C_o e^{-oP} Σ_v e^{ov},    v in ±a, ±b, ±(a - b),    C_o = 3 + 2^{o+1},

and of the first order less than 2.6 e^{-P} (e^a + e^{-a} + e^b + e^{-b}). Expectations of these are products:
P follows from them, not from the range of the margins. |F| falls as e^{-π max(|t₁|, |t₂|, |t₁ + t₂|)}: the
nodes fill a hexagon, half of which are conjugates of the others, some 4.4 P² of them. Higher orders have a
shorter period, and a few hundred nodes on lines. A line's exponentials are large, and their weights are as
small: E e^{θ·(a, b)} is log-convex, so that at |θ| < o (in the hexagon's norm) it is no more than e^{|θ| P}
where the bound above is below 1.

A probability that is tiny keeps its digits as p_c = e^{m_c - m_r} p_r with the sum of the class r that is
likely where c is not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from scipy.special import loggamma

from limes._arrays import Floats, Ints
from limes.models.forms._links import Complexes

CLASSES = 3
# Orders to choose from: the highest has the fewest nodes unless margins have long tails
ORDERS = (1, 3)
# -ln of the weight of all nodes that are left out
_DIGITS = 32.0
# Nodes are searched up to heights where weights have fallen to a power of e^{-digits}
_WINDOW = 1.25
# Periods are rounded up to multiples of a 32nd of an octave, so that designs share their nodes
_PERIODS_PER_OCTAVE = 32
# Copies of the first order add up to no more than this, times e^{-P} (e^a + e^{-a} + e^b + e^{-b})
_FIRST = 2.6
# Approximate numbers of nodes over P², and of nodes on lines over P and order - 1
_NODES, _ON_LINES = 4.4, 6.5


@dataclass(frozen=True, eq=False)
class PlaneSum:
    """Re Σ_n weights[n] e^{z₁ a + z₂ b}, approximately p_r; the origin comes first."""

    exponents: tuple[Complexes, Complexes]  # z₁ and z₂, (K₁,) and (K₂,)
    first: Ints  # (N,) positions of the nodes' exponents
    second: Ints
    weights: Complexes  # (N,)
    sizes: Floats  # (N,), bounds of the weights times the exponentials' expectations
    error: float  # of the nodes left out, without that of the copies
    period: float  # P
    order: int

    @property
    def nodes(self) -> tuple[Complexes, Complexes]:
        """z₁ and z₂ of each node, (N,) each."""
        return self.exponents[0][self.first], self.exponents[1][self.second]


def copies_of(order: int) -> float:
    """Return C: copies add up to less than C e^{-oP} Σ e^{ov}."""
    return _FIRST if order == 1 else 3.0 + 2.0 ** (order + 1)


def nodes_at(period: Floats, order: Ints) -> Floats:
    """Return the approximate number of nodes."""
    return np.asarray(_NODES * period**2 + _ON_LINES * (order - 1) * period)


def longest_period(nodes: float, order: int) -> float:
    """Return the period with this number of nodes."""
    half = 0.5 * _ON_LINES * (order - 1) / _NODES
    return float(np.sqrt(nodes / _NODES + half**2) - half)


def plane_sum(period: float, order: int = 1) -> PlaneSum:
    """The nodes for copies at distances of ``period`` or a little more."""
    octaves = np.ceil(np.log2(period) * _PERIODS_PER_OCTAVE) / _PERIODS_PER_OCTAVE
    return _plane_sum(float(2.0**octaves), order)


@lru_cache(maxsize=64)
def _plane_sum(period: float, order: int) -> PlaneSum:
    parts = [_poles(period, order), _grid(period), *_lines(period, order)]
    z1, z2, weights, sizes = (np.concatenate(each) for each in zip(*parts, strict=True))
    falling = np.argsort(sizes, kind="stable")
    dropped = np.searchsorted(np.cumsum(sizes[falling]), np.exp(-_DIGITS))
    kept = np.sort(falling[dropped:])
    first, at_first = np.unique(z1[kept], return_inverse=True)
    second, at_second = np.unique(z2[kept], return_inverse=True)
    return PlaneSum(
        exponents=(first, second),
        first=at_first,
        second=at_second,
        weights=weights[kept],
        sizes=sizes[kept],
        # nodes beyond the window weigh far less than those dropped inside
        error=2.0 * float(np.exp(-_DIGITS)),
        period=period,
        order=order,
    )


def _grid(period: float) -> tuple[Complexes, Complexes, Complexes, Floats]:
    """z₁, z₂, weights and their sizes of the double sum."""
    half = _heights(period)
    count, step = half.size, 2.0 * np.pi / period
    across = np.concatenate([half, -half])
    # t₁ + t₂ is a multiple of h from 1 - n to 2n - 1
    of_sums = loggamma(1.0 + 1j * step * np.arange(1 - count, 2 * count))
    multiple = np.arange(count)[:, None] + np.concatenate([np.arange(count), -1 - np.arange(count)]) + count
    kernel = np.exp(loggamma(-1j * half)[:, None] + loggamma(-1j * across) + of_sums[multiple])
    weights = (2.0 * (step / (2.0 * np.pi)) ** 2 * kernel).ravel()
    z1, z2 = np.repeat(1j * half, across.size), np.tile(1j * across, count)
    return z1, z2, weights, np.abs(weights)


def _heights(period: float) -> Floats:
    step = 2.0 * np.pi / period
    return np.asarray(step * (np.arange(int(np.ceil(_WINDOW * _DIGITS / np.pi / step))) + 0.5))


def _lines(period: float, order: int) -> list[tuple[Complexes, Complexes, Complexes, Floats]]:
    """The same of sums of one frequency, times a power."""
    z, parts = np.asarray(1j * _heights(period), dtype=np.complex128), []
    for j in range(order):
        sign, level = (-1.0) ** j, np.full(z.size, complex(j))
        weights = sign * _sum(j, period) * _powers(z, j, period)
        sizes = np.abs(weights) * np.exp(j * period)
        parts += [(z, level, weights, sizes), (level, z, weights, sizes)]
        if j:
            weights = sign / np.expm1(j * period) * _powers(z, j - 1, period)
            parts.append((z, -level - z, weights, np.abs(weights) * np.exp(j * period)))
    return parts


def _powers(z: Complexes, j: int, period: float) -> Complexes:
    """Weights of the midpoint sum of σ^{j+1}, twice, as half of the nodes are conjugates."""
    kernel = np.exp(loggamma(-z) + loggamma(j + 1.0 + z) - loggamma(j + 1.0))
    return np.asarray(2.0 / period * kernel)


def _poles(period: float, order: int) -> tuple[Complexes, Complexes, Complexes, Floats]:
    """The same of powers alone, the origin first."""
    poles = defaultdict[tuple[int, int], float](float)
    for j in range(order):
        factor = (-1) ** j * _sum(j, period)
        for n in range(order - j):
            poles[j, n] += factor * (-1) ** n * comb(j + n, n) * _sum(n, period)
        for n in range(order - 1 - 2 * j):
            m = j + 1 + n
            poles[j, -m] += factor * (-1) ** n * comb(j + n, n) * _sum(m, period)
        for i in range(j):
            poles[-j, i] -= factor * comb(j - 1, i)
    first, second = np.array([*poles], dtype=np.float64).T
    weights = np.array([*poles.values()])
    norm = np.max(np.abs([first, second, first + second]), axis=0)
    return first + 0j, second + 0j, weights + 0j, np.abs(weights) * np.exp(norm * period)


def _sum(j: int, period: float) -> float:
    """Return τ_j, the sum of e^{-jkP} over k ≥ 1 with alternating signs; 1 - 1 + 1 - ... is ½."""
    return float(1.0 / (1.0 + np.exp(j * period)))
