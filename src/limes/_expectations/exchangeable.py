r"""Exact expectations of sums, presence products and products over switches under an exchangeable design.

With three weights a stratum of s removed features (``designs/_exchangeable.py``), and F_s = E[f | s],

    E_w f = Σ_s p_s F_s,    β_j = Σ_s between_s F_s + Σ_s within_s E[(z_j - r/d) f | s],    r = d - s.

A sum Σ_j f_j(z_j) has coefficients β_j = f_j(1) - f_j(0) at any bandwidth. A product of k words kept and m
removed has F_s = C(d - k - m, s - m) / C(d, s); where it is 1, z_j is 1 if word j is to be kept, 0 if it is
to be removed, and 1 with probability (r - k) / (d - k - m) if it is any other.

For products over switches, f = Σ_i a_i ∏_j (on_ij or off_ij), let B_k[s] be the mean product over all ways to
remove s of the first k features. It follows from B_{k-1}: feature k is one of the removed ones with
probability s / k,

    B_k[s] = (1 - s/k) on_k B_{k-1}[s] + (s/k) off_k B_{k-1}[s-1],

and F_s = B_d[s]. Going back through the recursion with weights on s gives Σ_s weight_s E[z_j f | s] for all j
together, as f is linear in on_j: it is on_j times the derivative by on_j. Both take d² steps a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments
from limes.designs._exchangeable import Counts, ExchangeableDesign, log_binomial
from limes.exceptions import InputError
from limes.models.forms._base import Sum
from limes.models.forms._presence import PresenceProducts, SwitchProducts

# pairs (k, m) x strata at once: 16 MB of float64
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class SumExpectation:
    """Moments of c + Σ_j f_j(z_j)."""

    terms: Sum
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(z, f), exactly."""
        terms, mean = self.terms, self.terms.intercept.astype(np.float64)
        design.check_size(len(terms.functions))
        coef = np.zeros((design.size, *mean.shape))
        for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True)):
            if function is not None:
                removed, kept = np.tensordot(function(np.array([0.0, 1.0])), loading, axes=(0, 0))
                coef[j] = kept - removed
                mean = mean + removed
        mean = mean + np.tensordot(design.inclusion, coef, axes=1)
        return Moments.exact(np.asarray(mean), design.gamma(coef))


@dataclass(frozen=True, eq=False)
class PresenceExpectation:
    """Moments of a sum of presence products; those of the same (k, m) differ only in their words."""

    form: PresenceProducts
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(z, f), exactly.

        Raises
        ------
        InputError
            If a product names a word that the design does not have.
        """
        form, d = self.form, design.size
        if form.size > d:
            raise InputError(f"the design has {d} words, the form (PresenceProducts) reads {form.size}")
        count = len(form.coef)
        kept = np.bincount(form.product[form.present], minlength=count)
        removed = np.bincount(form.product[~form.present], minlength=count)
        pairs, which = np.unique(kept * (d + 1) + removed, return_inverse=True)
        # a product's part of the mean and of all coefficients, and what it adds for the words that it names
        mean, every, on, off = _functionals(design.counts, *np.divmod(pairs, d + 1))[:, which]
        coef = form.coef.reshape(count, form.intercept.size)
        beyond = np.where(form.present, on[form.product], off[form.product])
        values = np.zeros((d, coef.shape[1]))
        np.add.at(values, form.word, beyond[:, None] * coef[form.product])
        values = (values + every @ coef).reshape(d, *form.intercept.shape)
        total = (mean @ coef).reshape(form.intercept.shape)
        return Moments.exact(form.intercept + total, design.gamma(values))


@dataclass(frozen=True, eq=False)
class SwitchExpectation:
    """Moments of a sum of products over switches."""

    form: SwitchProducts
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(z, f), exactly."""
        form = self.form
        design.check_size(form.size)
        mean, coef = switch_surrogates(form.on, form.off, design)
        total = np.tensordot(mean, form.coef, axes=(0, 0))
        values = np.tensordot(coef, form.coef, axes=(0, 0))
        return Moments.exact(np.asarray(form.intercept + total), design.gamma(np.asarray(values)))


def switch_surrogates(on: Floats, off: Floats, design: ExchangeableDesign) -> tuple[Floats, Floats]:
    """E_w (m,) and coefficients β (m, d) of each of m products (m, d)."""
    counts = design.counts
    mean, coef = np.zeros(len(on)), np.zeros(on.shape)
    every = counts.between - counts.within * counts.kept / design.size
    on, off = np.ascontiguousarray(on), np.ascontiguousarray(off)
    _kernels.add_products(on, off, counts.law, every, counts.within, mean, coef)
    return mean, coef


def _functionals(counts: Counts, kept: Ints, removed: Ints) -> Floats:
    """Four numbers of each product of k words kept and m removed, (4, P).

    E_w f, the coefficient of a word that the product does not name, and what must be added to it for a word
    to be kept, and for a word to be removed.
    """
    step = max(1, _BLOCK // (counts.size + 1))
    blocks = [
        _block(counts, kept[i : i + step, None].astype(float), removed[i : i + step, None].astype(float))
        for i in range(0, len(kept), step)
    ]
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((4, 0))


def _block(counts: Counts, k: Floats, m: Floats) -> Floats:
    d, r = float(counts.size), counts.kept
    s = d - r
    others = d - k - m
    satisfied = np.exp(log_binomial(others, s - m) - log_binomial(np.full_like(s, d), s))
    within = satisfied * counts.within
    on, off = within @ (s / d), -within @ (r / d)
    # unused when the product names every word
    other = (within * (r * m - s * k)).sum(axis=1) / (d * np.maximum(others[:, 0], 1.0))
    return np.stack([satisfied @ counts.law, satisfied @ counts.between + other, on - other, off - other])
