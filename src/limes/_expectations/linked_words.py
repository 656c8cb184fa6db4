r"""Exact expectations of links of sums of words: probabilities of linear models on counts and TF-IDF.

S = c + Σ_j a_j z_j. A link is a sum of exponentials on the range of S (``models/forms/_links.py``), and
e^{zS} a product over words, whose means under an exchangeable design follow by a recursion
(``word_waves.py``). Among the contours Re z = θ the one with the least E e^{θS}, which multiplies the errors,
is used: small probabilities keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from limes._arrays import Floats
from limes._expectations.moments import Moments
from limes._expectations.tabulated import TOLERANCE, product_rounding
from limes._expectations.word_waves import WordProducts, word_sums
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import ModelError
from limes.models.forms._base import Sum
from limes.models.forms._linked import Linked
from limes.models.forms._links import ExponentialSum, Link

# Exponents beyond which a contour is not tried
_LARGEST = 600.0
# Probabilities below this are compared with it
_TINY = 1e-15


@dataclass(frozen=True, eq=False)
class LinkedWordsExpectation:
    """Moments of c + Σ_k coef_k link(margin_k(z))."""

    form: Linked
    method: Literal["exact"] = "exact"
    # bound of the error of every E f, relative to itself; designs where the bound is larger are refused
    error_bound: float = TOLERANCE

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(z, f).

        Raises
        ------
        InputError
            If design and form have different numbers of words, or there are too many.
        ModelError
            If the error cannot be bounded.
        """
        form = self.form
        design.check_size(form.size)
        assert form.coef is not None  # noqa: S101 - set by __post_init__
        constants, effects = _effects(form.terms)
        tilts = form.curve.tilts[:1] if form.adds_up else form.curve.tilts
        links = [
            _of_margin(form.curve, tilts, constant, effect, design)
            for constant, effect in zip(constants, effects.T, strict=True)
        ]
        return combined(links, form.coef, form.intercept, design)


@dataclass(frozen=True, eq=False)
class LinkMoments:
    """E link(S) = base + rest, its coefficients (d,), and bounds of the errors of both."""

    base: float
    rest: float
    coef: Floats
    mean_error: float
    coef_error: float


def combined(
    links: list[LinkMoments], coef: Floats, intercept: Floats, design: ExchangeableDesign
) -> Moments:
    """Moments of intercept + Σ_k coef[k] link_k.

    Raises
    ------
    ModelError
        If an error is above 1e-9 of the numbers themselves.
    """
    base, rest = intercept.copy(), np.zeros(intercept.shape)
    values = np.zeros((design.size, *intercept.shape))
    mean_error, coef_error = np.zeros(intercept.shape), np.zeros(intercept.shape)
    for link, scale in zip(links, coef, strict=True):
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


def _effects(terms: Sum) -> tuple[Floats, Floats]:
    """Margins (K,) of the empty text, and what each word adds to them, (d, K)."""
    constants, effects = terms.intercept.copy(), np.zeros((len(terms.functions), terms.intercept.size))
    for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True)):
        if function is not None:
            removed, kept = np.tensordot(function(np.array([0.0, 1.0])), loading, axes=(0, 0))
            constants = constants + removed
            effects[j] = kept - removed
    return constants, effects


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
