r"""Exact expectations of sums and of presence products under an exchangeable design.

With three weights a stratum of s removed features (``designs/counts.py``), and F_s = E[f | s],

    E_w f = Σ_s p_s F_s,    β_j = Σ_s between_s F_s + Σ_s within_s E[(z_j - r/d) f | s],    r = d - s.

A sum Σ_j f_j(z_j) explains itself at any bandwidth: β_j = f_j(1) - f_j(0). A product of k words kept and m
removed has F_s = C(d - k - m, s - m) / C(d, s); where it is 1, z_j is 1 if word j is to be kept, 0 if it is
to be removed, and 1 with probability (r - k) / (d - k - m) if it is any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from limes._arrays import Floats, Ints
from limes.designs.counts import Counts, log_binomial
from limes.designs.exchangeable import ExchangeableDesign
from limes.exceptions import InputError
from limes.expectations.moments import Moments
from limes.models.forms.base import Sum
from limes.models.forms.presence import PresenceProducts

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
        check_words(len(terms.functions), design)
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
    """Moments of a sum of presence products: products of the same (k, m) differ only in their words."""

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
        # what each product adds to the mean, to all words, and beyond that to those kept and removed
        mean, every, on, off = _functionals(design.counts, *np.divmod(pairs, d + 1))[:, which]
        coef = form.coef.reshape(count, form.intercept.size)
        beyond = np.where(form.present, on[form.product], off[form.product])
        values = np.zeros((d, coef.shape[1]))
        np.add.at(values, form.word, beyond[:, None] * coef[form.product])
        values = (values + every @ coef).reshape(d, *form.intercept.shape)
        total = (mean @ coef).reshape(form.intercept.shape)
        return Moments.exact(form.intercept + total, design.gamma(values))


def check_words(size: int, design: ExchangeableDesign) -> None:
    """Refuse a form over another number of words than the design has."""
    if design.size != size:
        raise InputError(f"the design has {design.size} words, the form has {size}")


def _functionals(counts: Counts, kept: Ints, removed: Ints) -> Floats:
    """What products of k words kept and m removed have in common, (4, P).

    E_w f, the coefficient of a word that the product does not name, and what must be added to it for a word
    that is to be kept, and for one that is to be removed.
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
    # where no word is left unnamed nobody asks
    other = (within * (r * m - s * k)).sum(axis=1) / (d * np.maximum(others[:, 0], 1.0))
    return np.stack([satisfied @ counts.law, satisfied @ counts.between + other, on - other, off - other])
