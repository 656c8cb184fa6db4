r"""Exact expectations of products over switches, f = Σ_i a_i ∏_j (on_ij or off_ij).

The design is exchangeable. Mean products over all ways to remove s of the first k features, B_k[s], follow
from those of k - 1: feature k is one of the removed ones with probability s / k,

    B_k[s] = (1 - s/k) on_k B_{k-1}[s] + (s/k) off_k B_{k-1}[s-1],

and E[f | s] = B_d[s]. Going back through the recursion with weights on s gives Σ_s weight_s E[z_j f | s] for
all j together, as f is linear in on_j: it is on_j times the derivative by on_j. Both take d² steps a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from limes._arrays import Floats
from limes.designs.exchangeable import ExchangeableDesign
from limes.expectations.moments import Moments
from limes.expectations.words import check_words
from limes.models.forms.switches import SwitchProducts


@dataclass(frozen=True, eq=False)
class SwitchExpectation:
    """Moments of a sum of products over switches."""

    form: SwitchProducts
    method: Literal["exact"] = "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(z, f), exactly."""
        form = self.form
        check_words(form.size, design)
        mean, coef = switch_surrogates(form.on, form.off, design)
        total = np.tensordot(mean, form.coef, axes=(0, 0))
        values = np.tensordot(coef, form.coef, axes=(0, 0))
        return Moments.exact(np.asarray(form.intercept + total), design.gamma(np.asarray(values)))


def switch_surrogates(on: Floats, off: Floats, design: ExchangeableDesign) -> tuple[Floats, Floats]:
    """E_w (m,) and coefficients β (m, d) of each of m products (m, d)."""
    from limes.expectations.product_kernels import add_up

    counts = design.counts
    mean, coef = np.zeros(len(on)), np.zeros(on.shape)
    every = counts.between - counts.within * counts.kept / design.size
    add_up(np.ascontiguousarray(on), np.ascontiguousarray(off), counts.law, every, counts.within, mean, coef)
    return mean, coef
