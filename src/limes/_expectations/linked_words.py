r"""Exact expectations of links of sums of words: probabilities of linear models on counts and TF-IDF.

A link is a sum of exponentials on the range of its margin (``models/forms/_links.py``), and an exponential of
a sum is a product over words, whose means over subsets of r words follow from those of one word less
(``kernels/waves.h``). `word_sums` adds up N weighted products and returns the parts of coefficients:

    profile_r = Re Σ_n W_n E[product_n | r],    loss_j = Re Σ_n W_n Σ_r within_r E[(1 - z_j) product_n | r],
    E_w = Σ_r law_r profile_r,                  β_j = Σ_r between_r profile_r + mean(loss) - loss_j.

*Sums*, S = c + Σ_j a_j z_j. Among the contours Re z = θ the one with the least E e^{θS}, which multiplies the
errors, is used: small probabilities keep their digits.

*TF-IDF with its ℓ2 norm*, f(z) = link(b + A/√N), A = Σ_j c_j z_j, N = Σ_j a_j z_j. The measure ds/s does not
change with the scale of s, so that

    (2/π) ∫ sin(ωsA) e^{-s²N/2} ds/s = erf(ωm/√2),     ∫ (1 - cos(ωsA)) e^{-s²N/2} ds/s = E(ωm)

are functions of the margin m = A/√N alone, and integrals of products over words. On the range of m,
which Cauchy-Schwarz bounds, link(b + m) is a sum of these for geometric ω, by least squares in one variable.
Its residual is measured beforehand, and so is the error of the quadrature in s (Gauss-Legendre on panels that
double), by frequency, once and for all. What both add up to is the stated error. A text without kept words
has A = N = 0, where both sides are those of m = 0; words without weight are factors 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments
from limes._expectations.tabulated import TOLERANCE, product_rounding
from limes._expectations.words import switch_effects
from limes._threads import in_threads
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError, ModelError
from limes.models.forms._linked import Linked
from limes.models.forms._links import Complexes, ExponentialSum, Link
from limes.models.forms._presence import NormalizedLinear, SharedWords

# Up to this many products one thread is quicker. The number of parts does not depend on that of threads, so
# that sums and roundings do not either.
_FEW, _PARTS = 256, 8
# Largest number of steps of the recursions, about 2 s of one core
MOST_STEPS = 2_000_000_000


class WordProducts(NamedTuple):
    """N products of d factors, on or off, with their weights."""

    on: Complexes  # (N, d)
    off: Floats  # (N, d)
    weights: Complexes  # (N,)
    width: Ints  # (N,): products are 0 where this many words are kept, or more; d + 1 where they never are


class WordSums(NamedTuple):
    """E_w (), β (d,), and E[· | r] (d + 1,) of a weighted sum of products."""

    mean: float
    coef: Floats
    profile: Floats


def word_sums(products: WordProducts, design: ExchangeableDesign) -> WordSums:
    """Mean and coefficients of Re Σ_n W_n product_n."""
    nodes, d = products.on.shape
    _check_steps(nodes, d)
    counts = design.counts
    within = np.ascontiguousarray(counts.within[::-1])
    parts = 1 if nodes <= _FEW else _PARTS
    profile, loss = np.zeros((parts, d + 1)), np.zeros((parts, d))
    real, imaginary = np.ascontiguousarray(products.on.real), np.ascontiguousarray(products.on.imag)
    off, weights = np.ascontiguousarray(products.off), products.weights

    def part(i: int) -> None:
        rows = slice(nodes * i // parts, nodes * (i + 1) // parts)
        _kernels.add_waves(
            real[rows], imaginary[rows], off[rows], products.width[rows],
            np.ascontiguousarray(weights.real[rows]), np.ascontiguousarray(weights.imag[rows]),
            within, profile[i], loss[i],
        )  # fmt: skip

    in_threads(part, range(parts))
    total, losses = profile.sum(axis=0), loss.sum(axis=0)
    mean = float(counts.law[::-1] @ total)
    return WordSums(mean, counts.between[::-1] @ total + (losses.mean() - losses), total)


def _check_steps(nodes: int, d: int) -> None:
    if nodes * d * d > MOST_STEPS:
        raise InputError(f"{nodes:,} products of {d:,} words take too long to be exact")


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
# Exponents beyond which a contour is not tried
_LARGEST = 600.0
# Probabilities below this are compared with it
_TINY = 1e-15


@dataclass(frozen=True, eq=False)
class LinkedWordsExpectation:
    """Moments of c + Σ_k coef_k link(margin_k(z)), for margins that are sums or normalised by ℓ2."""

    form: Linked
    method: Literal["exact"] = "exact"
    # bound of the error of every E f, relative to itself; texts where the bound is larger are refused
    error_bound: float = TOLERANCE

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        form = self.form
        design.check_size(form.size)
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        base, rest = form.intercept.copy(), np.zeros(form.intercept.shape)
        values = np.zeros((design.size, *rest.shape))
        mean_error, coef_error = np.zeros(rest.shape), np.zeros(rest.shape)
        for link, scale in zip(self._links(design), form.coef, strict=True):
            # the bases are added first: 1 less a probability of almost 1 is then exact
            base = base + link.base * scale
            rest = rest + link.rest * scale
            values += np.multiply.outer(link.coef, scale)
            mean_error = mean_error + link.mean_error * np.abs(scale)
            coef_error = coef_error + link.coef_error * np.abs(scale)
        mean = np.asarray(base + rest)
        size = np.maximum(np.abs(mean), _TINY)
        wide = size + np.abs(values).max(axis=0, initial=0.0)
        for value, error in ((size, mean_error), (wide, coef_error)):
            if not (error <= TOLERANCE * value).all():
                raise ModelError(
                    f"an expectation of about {np.min(value):.3g} is known to {np.max(error):.1g} only"
                )
        return Moments.exact(mean, design.gamma(values))

    def _links(self, design: ExchangeableDesign) -> Iterator[LinkMoments]:
        form, curve, margin = self.form, self.form.curve, self.form.margin
        if not isinstance(margin, NormalizedLinear):
            constants, effects = switch_effects(form.terms)
            tilts = curve.tilts[:1] if form.adds_up else curve.tilts
            for constant, effect in zip(constants, effects.T, strict=True):
                yield _of_margin(curve, tilts, constant, effect, design)
            return
        if margin.norm != "l2":
            raise InputError("behind a link TF-IDF without a norm is read, and with the l2 norm")
        loads = margin.c.reshape(form.size, -1)
        for constant, load in zip(np.atleast_1d(margin.intercept), loads.T, strict=True):
            yield _of_norm(curve, float(constant), load, margin.a, margin.shared, design)


class LinkMoments(NamedTuple):
    """E link(S) = base + rest, its coefficients (d,), and bounds of the errors of both."""

    base: float
    rest: float
    coef: Floats
    mean_error: float
    coef_error: float


def _of_margin(
    link: Link, tilts: tuple[float, ...], constant: float, effects: Floats, design: ExchangeableDesign
) -> LinkMoments:
    """Moments of one link of one margin, on the contour where its errors are least."""
    lower = float(constant + np.minimum(effects, 0.0).sum())
    upper = float(constant + np.maximum(effects, 0.0).sum())
    counts, candidates = design.counts, []
    law, spread = counts.law[::-1], (np.abs(counts.between) + counts.within)[::-1]
    for tilt in tilts:
        if tilt and abs(tilt) * max(-lower, upper) > _LARGEST:
            continue
        sizes = link.size(tilt) * _profile(tilt, constant, effects, design)
        candidates.append((float(law @ sizes), float(spread @ sizes), tilt))
    if not candidates:
        raise ModelError(f"the margin reaches {max(-lower, upper):.3g}, where its link is beyond float64")
    level, widest, tilt = min(candidates)
    rule = link.sum(lower, upper, tilt)
    sums = word_sums(_products(rule, constant, effects), design)
    rounding = product_rounding(effects.size)
    error = rule.error + rounding * (
        1.0 + float(np.abs(rule.weights[: rule.contour]).sum()) / link.size(tilt)
    )
    line = rule.slope * (constant + float(design.inclusion @ effects))
    coef = sums.coef + rule.slope * effects
    return LinkMoments(rule.base, rule.rest + line + sums.mean, coef, error * level, error * widest)


def _profile(tilt: float, constant: float, effects: Floats, design: ExchangeableDesign) -> Floats:
    """E[e^{θS} | r], (d + 1,)."""
    if tilt == 0.0:
        return np.ones(effects.size + 1)
    one = np.ones(1, dtype=np.complex128)
    rule = ExponentialSum(tilt * one, one, np.zeros(1), 1, 0.0, 0.0, tilt, 0.0)
    return word_sums(_products(rule, constant, effects), design).profile


def _products(rule: ExponentialSum, constant: float, effects: Floats) -> WordProducts:
    """The exponentials e^{zS} as products over words, each factor at most 1."""
    exponent = np.multiply.outer(rule.nodes, effects)
    offset = np.maximum(exponent.real, 0.0)
    scale = rule.nodes * constant + rule.log_weights + offset.sum(axis=1)
    width = np.full(rule.nodes.size, effects.size + 1)
    return WordProducts(np.exp(exponent - offset), np.exp(-offset), rule.weights * np.exp(scale), width)


def _of_norm(
    link: Link,
    constant: float,
    loads: Floats,
    a: Floats,
    shared: Sequence[SharedWords],
    design: ExchangeableDesign,
) -> LinkMoments:
    """One link of one margin."""
    if not loads.any():
        value = float(link.function(np.array([constant]))[0])
        return LinkMoments(0.0, value, np.zeros(loads.size), 0.0, 0.0)
    weighted = a > 0
    squares = loads[weighted] ** 2 / a[weighted]
    reach = max(float(np.sqrt(squares[side * loads[weighted] > 0].sum())) for side in (-1.0, 1.0))
    expansion = _Expansion.of(link, constant, reach)
    products, error = _norm_products(expansion, loads, a, shared)
    sums = word_sums(products, design)
    counts = design.counts
    spread = float((np.abs(counts.between) + counts.within).sum())
    rounding = product_rounding(loads.size) * np.abs(expansion.coef).sum()
    error += expansion.residual + float(rounding)
    return LinkMoments(0.0, expansion.constant + sums.mean, sums.coef, error, error * spread)


class _Expansion(NamedTuple):
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


class _Ladder(NamedTuple):
    """K frequencies for |m| <= 1, and least squares with their 1 + 2K functions."""

    frequencies: Floats  # (K,), geometric
    points: Floats  # (n,) in [-1, 1]
    basis: Floats  # values at the points, (n, 1 + 2K)
    left: Floats  # factors of their pseudoinverse, (q, n)
    right: Floats  # and (1 + 2K, q)
    panels: Ints  # numbers of nodes a panel, (K,)


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


# texts share a dozen of these rules
_panel = lru_cache(maxsize=64)(np.polynomial.legendre.leggauss)


def _norm_products(
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
    # before these take memory
    _check_steps(square.size, loads.size)
    on = np.exp(1j * np.multiply.outer(phase, loads) - np.multiply.outer(square, a))
    # no r words weigh less than the r lightest
    least = np.concatenate([[0.0], np.cumsum(np.sort(a))])
    width = np.searchsorted(least, _VANISHED / square, side="right").astype(np.int64)
    products = _corrected(WordProducts(on, np.ones(on.shape), factor, width), square, shared)
    return products, PANEL_ERROR * float(np.abs(expansion.coef).sum())


def _corrected(products: WordProducts, square: Floats, shared: Sequence[SharedWords]) -> WordProducts:
    """Multiply by e^{-s² excess / 2} of every group of words that share columns."""
    if not shared:
        return products
    # such a factor is Σ_T m_T ∏_{j in T} z_j over sets T of words of the group, by inclusion and exclusion; a
    # product with ∏ z_j is one whose factors are 0 where a word of T is removed
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
