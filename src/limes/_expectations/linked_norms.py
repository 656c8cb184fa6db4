r"""Exact expectations of links of linear models on TF-IDF with its ℓ2 norm: f(z) = link(b + A/√N).

A = Σ_j c_j z_j, N = Σ_j a_j z_j. The measure ds/s does not change with the scale of s, so that

    (2/π) ∫ sin(ωsA) e^{-s²N/2} ds/s = erf(ωm/√2),     ∫ (1 - cos(ωsA)) e^{-s²N/2} ds/s = E(ωm)

are functions of the margin m = A/√N alone, and integrals of products over words. On the range of m,
which Cauchy-Schwarz bounds, link(b + m) is a sum of these for geometric ω, by least squares in one variable.
Its residual is measured beforehand, and so is the error of the quadrature in s (Gauss-Legendre on panels that
double), by frequency, once and for all. What both add up to is the stated error.

A text without kept words has A = N = 0, where both sides are those of m = 0; words without weight are factors
1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.linked_words import LinkMoments, combined
from limes._expectations.moments import Moments
from limes._expectations.tabulated import TOLERANCE, product_rounding
from limes._expectations.word_waves import WordProducts, word_sums
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Link
from limes.models.forms._presence import NormalizedLinear, SharedWords

# Numbers of frequencies to try, and the fastest, times the range of m; the slowest
_LADDERS, _SLOWEST = ((16, 18.0), (24, 18.0), (32, 36.0), (48, 72.0)), 0.45
# Residual of the least squares that is small enough, relative to link(b), and the singular values in use
_RESIDUAL, _SINGULAR = 4e-11, 1e-13
# Points at which the residual is measured: these, and more by frequency
_POINTS, _POINTS_A_TURN = 96, 8.0
# A Gaussian factor below e^{-37} vanishes in float64: from this s on that of the lightest word does. A
# product of kept words vanishes beyond the second exponent, whatever its weight
_FARTHEST, _VANISHED = float(np.sqrt(2.0 * 37.0)), 46.0
# Largest number of products that replace one where words share columns
_MOST_PARTS = 16
# Nodes of a panel, and more by frequency; every function is integrated with an error below the last number
_FEWEST, _NODES_A_TURN, PANEL_ERROR = 14.0, 1.4, 5e-13


@dataclass(frozen=True, eq=False)
class LinkedNormExpectation:
    """Moments of c + Σ_k coef_k link(margin_k(z)), for a normalised linear margin."""

    form: Linked
    method: Literal["exact"] = "exact"
    # bound of the error of every E f, relative to itself; texts where the bound is larger are refused
    error_bound: float = TOLERANCE

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(z, f).

        Raises
        ------
        InputError
            If design and form have different numbers of words, or there are too many; if many words share
            columns, or the norm is ℓ1.
        ModelError
            If the error cannot be bounded.
        """
        form, margin = self.form, self.form.margin
        design.check_size(form.size)
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        assert isinstance(margin, NormalizedLinear)  # noqa: S101 - chosen for it
        if margin.norm != "l2":
            raise InputError("behind a link TF-IDF without a norm is read, and with the l2 norm")
        loads = margin.c.reshape(form.size, -1)
        links = [
            _of_margin(form.curve, float(constant), load, margin.a, margin.shared, design)
            for constant, load in zip(np.atleast_1d(margin.intercept), loads.T, strict=True)
        ]
        return combined(links, form.coef, form.intercept, design)


def _of_margin(
    link: Link,
    constant: float,
    loads: Floats,
    a: Floats,
    shared: Sequence[SharedWords],
    design: ExchangeableDesign,
) -> LinkMoments:
    """One link of one margin."""
    weighted = a > 0
    if not loads.any():
        value = float(link.function(np.array([constant]))[0])
        return LinkMoments(0.0, value, np.zeros(loads.size), 0.0, 0.0)
    squares = loads[weighted] ** 2 / a[weighted]
    reach = max(float(np.sqrt(squares[side * loads[weighted] > 0].sum())) for side in (-1.0, 1.0))
    expansion = _Expansion.of(link, constant, reach)
    products, error = _products(expansion, loads, a, shared)
    sums = word_sums(products, design)
    counts = design.counts
    spread = float((np.abs(counts.between) + counts.within).sum())
    rounding = product_rounding(loads.size) * np.abs(expansion.coef).sum()
    error += expansion.residual + float(rounding)
    return LinkMoments(0.0, expansion.constant + sums.mean, sums.coef, error, error * spread)


@dataclass(frozen=True, eq=False)
class _Expansion:
    """link(b + m) = constant + Σ_k (coef[0, k] erf(ω_k m/√2) + coef[1, k] E(ω_k m)) for |m| <= reach."""

    ladder: _Ladder
    constant: float
    coef: Floats
    residual: float
    reach: float

    @classmethod
    def of(cls, link: Link, constant: float, reach: float) -> _Expansion:
        """Add frequencies until the residual is small."""
        expansions: list[_Expansion] = []
        small = _RESIDUAL * float(np.abs(link.function(np.array([constant]))[0]))
        for count, fastest in _LADDERS:
            ladder = _ladder(count, fastest)
            values = link.function(constant + reach * ladder.points)
            # in this order: the pseudoinverse itself would lose the digits that its large numbers cancel
            coef = ladder.right @ (ladder.left @ values)
            residual = float(np.abs(ladder.basis @ coef - values).max())
            expansions.append(cls(ladder, float(coef[0]), coef[1:].reshape(2, count), residual, reach))
            if residual <= small:
                break
        return min(expansions, key=lambda each: each.residual)


@dataclass(frozen=True, eq=False)
class _Ladder:
    """K frequencies for |m| <= 1, and least squares with their 1 + 2K functions.

    Attributes
    ----------
    frequencies
        (K,), geometric.
    points
        (n,) in [-1, 1].
    basis, left, right
        Values (n, 1 + 2K) at the points, and factors (q, n) and (1 + 2K, q) of their pseudoinverse.
    panels
        Number of nodes a panel, (K,).
    """

    frequencies: Floats
    points: Floats
    basis: Floats
    left: Floats
    right: Floats
    panels: Ints


@lru_cache(maxsize=len(_LADDERS))
def _ladder(count: int, fastest: float) -> _Ladder:
    frequencies = np.geomspace(_SLOWEST, fastest, count)
    points = np.cos(np.linspace(0.0, np.pi, int(_POINTS + _POINTS_A_TURN * fastest)))
    basis = np.column_stack([np.ones(points.size), *functions(np.multiply.outer(points, frequencies))])
    left, sizes, right = np.linalg.svd(basis, full_matrices=False)
    used = sizes > sizes[0] * _SINGULAR
    panels = nodes_of(frequencies)
    return _Ladder(frequencies, points, basis, left[:, used].T, right[used].T / sizes[used], panels)


def nodes_of(frequencies: Floats) -> Ints:
    """Number of nodes a panel: few numbers, as each costs nodes at frequency 0."""
    return np.asarray(4 * np.ceil((_FEWEST + _NODES_A_TURN * frequencies) / 4), dtype=np.int64)


def functions(x: Floats) -> tuple[Floats, Floats]:
    """erf(x/√2) and E(x) = ∫ (1 - cos(xt)) e^{-t²/2} dt/t, elementwise."""
    from scipy.special import erf

    t, weight = panel_nodes(1.0, 16.0, int(24.0 + 2.2 * np.abs(x).max(initial=0.0)))
    sizes, place = np.unique(np.abs(x), return_inverse=True)
    waves = 2.0 * np.sin(0.5 * np.multiply.outer(sizes, t)) ** 2
    even = (waves @ (weight * np.exp(-0.5 * t * t)))[place].reshape(x.shape)
    return np.asarray(erf(x / np.sqrt(2.0))), even


def panel_nodes(first: float, last: float, count: int) -> tuple[Floats, Floats]:
    """Points and weights of ∫ ds/s on panels [0, first], [first, 2 first], ... up to the last."""
    ends = first * 2.0 ** np.arange(max(1, int(np.ceil(np.log2(last / first)))) + 1)
    edges = np.concatenate([[0.0], ends])
    points, weights = _panel(count)
    half = 0.5 * np.diff(edges)[:, None]
    s = (edges[:-1, None] + half * (points + 1.0)).ravel()
    return s, (half * weights).ravel() / s


@lru_cache(maxsize=64)
def _panel(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss and Legendre on [-1, 1]: texts share a dozen of these rules."""
    return np.polynomial.legendre.leggauss(count)


def _products(
    expansion: _Expansion, loads: Floats, a: Floats, shared: Sequence[SharedWords]
) -> tuple[WordProducts, float]:
    """The functions of the expansion as products over words, and the error of their quadrature."""
    ladder, lightest = expansion.ladder, float(a[a > 0].min())
    total = float(a.sum()) + sum(float(group.excess[-1]) for group in shared)
    phases, squares, weights = [], [], []
    for count in np.unique(ladder.panels):
        s, weight = panel_nodes(1.0 / np.sqrt(total), _FARTHEST / np.sqrt(lightest), int(count))
        chosen = np.flatnonzero(ladder.panels == count)
        for k in chosen:
            phases.append(ladder.frequencies[k] / expansion.reach * s)
            weights.append(weight * (-2j / np.pi * expansion.coef[0, k] - expansion.coef[1, k]))
        phases.append(0.0 * s)
        weights.append(weight * (expansion.coef[1, chosen].sum() + 0j))
        squares += [0.5 * s * s] * (chosen.size + 1)
    square, phase, factor = (
        np.concatenate(squares),
        np.concatenate(phases),
        np.concatenate(weights).astype(np.complex128),
    )
    on = np.exp(1j * np.multiply.outer(phase, loads) - np.multiply.outer(square, a))
    # no r words weigh less than the r lightest
    least = np.concatenate([[0.0], np.cumsum(np.sort(a))])
    width = np.searchsorted(least, _VANISHED / square, side="right").astype(np.int64)
    products = _corrected(WordProducts(on, np.ones(on.shape), factor, width), square, shared)
    return products, PANEL_ERROR * float(np.abs(expansion.coef).sum())


def _corrected(products: WordProducts, square: Floats, shared: Sequence[SharedWords]) -> WordProducts:
    """Multiply by e^{-s² excess / 2} of every group of words that share columns.

    Such a factor is Σ_T m_T ∏_{j in T} z_j over sets T of words of the group, by inclusion and exclusion; a
    product with ∏ z_j is one whose factors are 0 where a word of T is removed.
    """
    if not shared:
        return products
    parts = [(np.zeros(0, dtype=np.int64), np.ones(square.size))]
    for group in shared:
        sets = _interactions(group, square)
        if len(parts) * len(sets) > _MOST_PARTS:
            raise InputError("behind the l2 norm too many words of the text share columns")
        parts = [(np.append(words, more), m * factor) for words, m in parts for more, factor in sets]
    offs = np.repeat(products.off[None], len(parts), axis=0)
    for off, (words, _) in zip(offs, parts, strict=True):
        off[:, words] = 0.0
    weights = np.concatenate([products.weights * m for _, m in parts])
    repeated = (np.concatenate([each] * len(parts)) for each in (products.on, products.width))
    on, width = repeated
    return WordProducts(on, offs.reshape(on.shape), weights, width)


def _interactions(group: SharedWords, square: Floats) -> list[tuple[Ints, Floats]]:
    """The sets T of a group, the empty one and those of two words or more, with m_T at every node."""
    kept = SharedWords.subsets(len(group.words)).astype(np.bool_)
    factors = np.exp(-np.multiply.outer(group.excess, square))
    sets = []
    for subset in kept[(kept.sum(axis=1) != 1)]:
        inside = np.flatnonzero(~(kept & ~subset).any(axis=1))
        signs = (-1.0) ** (subset.sum() - kept[inside].sum(axis=1))
        sets.append((np.asarray(group.words)[subset], signs @ factors[inside]))
    return sets
