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
from limes.models.switch_products import SwitchProducts

# products x d² at once: 32 MB of float64
_BLOCK = 4_000_000


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
    """E_w (m,) and coefficients β (m, d) of each of m products."""
    step = max(1, _BLOCK // design.size**2)
    blocks = [_block(on[i : i + step], off[i : i + step], design) for i in range(0, len(on), step)]
    if not blocks:
        return np.zeros(0), np.zeros((0, design.size))
    means, coefs = zip(*blocks, strict=True)
    return np.concatenate(means), np.concatenate(coefs)


def _block(on: Floats, off: Floats, design: ExchangeableDesign) -> tuple[Floats, Floats]:
    counts = design.counts
    tables = _forward(on, off)
    whole = tables[-1]
    every = whole @ counts.between - whole @ (counts.within * counts.kept / design.size)
    return whole @ counts.law, every[:, None] + _backward(on, off, tables, counts.within)


def _forward(on: Floats, off: Floats) -> list[Floats]:
    """B_0, ..., B_d, (m, d + 1) each."""
    d = on.shape[1]
    removed = np.arange(d + 1.0)
    table = np.zeros((len(on), d + 1))
    table[:, 0] = 1.0
    tables = [table]
    for k in range(1, d + 1):
        stays = np.maximum(1.0 - removed / k, 0.0)
        grown = stays * on[:, k - 1 : k] * table
        grown[:, 1:] += (removed[1:] / k) * off[:, k - 1 : k] * table[:, :-1]
        table = grown
        tables.append(table)
    return tables


def _backward(on: Floats, off: Floats, tables: list[Floats], weights: Floats) -> Floats:
    """Σ_s weights_s E[z_j f | s], (m, d)."""
    d = on.shape[1]
    removed = np.arange(d + 1.0)
    found = np.empty(on.shape)
    adjoint = np.broadcast_to(weights, (len(on), d + 1))
    for k in range(d, 0, -1):
        kept = np.maximum(1.0 - removed / k, 0.0) * on[:, k - 1 : k] * adjoint
        found[:, k - 1] = (kept * tables[k - 1]).sum(axis=1)
        kept[:, :-1] += (removed[1:] / k) * off[:, k - 1 : k] * adjoint[:, 1:]
        adjoint = kept
    return found
