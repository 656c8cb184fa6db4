r"""Means of exponentials of sums of words under an exchangeable design, and the part of each word in them.

A product of factors, one a word, has means over subsets of r words that follow from those of one word less
(``kernels/waves.h``). ``Subsets.add`` sums up weighted products, and returns the parts of coefficients:

    profile_r = Re Σ_n W_n E[product_n | r],    loss_j = Re Σ_n W_n Σ_r within_r E[(1 - z_j) product_n | r],
    E_w = Σ_r law_r profile_r,                  β_j = Σ_r between_r profile_r + mean(loss) - loss_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._threads import in_threads
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError
from limes.models.forms._links import Complexes

# Up to this many products one thread is quicker. The number of parts does not depend on that of threads, so
# that sums and roundings do not either.
_FEW, _PARTS = 256, 8
# Largest number of steps of the recursions, about 2 s of one core
MOST_STEPS = 2_000_000_000


@dataclass(frozen=True, eq=False)
class WordProducts:
    """N products of d factors, on or off, with their weights.

    Attributes
    ----------
    on
        (N, d), complex.
    off
        (N, d), real.
    weights
        (N,), complex.
    width
        (N,): products are 0 where this many words are kept, or more; d + 1 where they never are.
    """

    on: Complexes
    off: Floats
    weights: Complexes
    width: Ints


@dataclass(frozen=True, eq=False)
class WordSums:
    """E_w (), β (d,), and E[· | r] (d + 1,) of a weighted sum of products."""

    mean: float
    coef: Floats
    profile: Floats


def word_sums(products: WordProducts, design: ExchangeableDesign) -> WordSums:
    """Mean and coefficients of Re Σ_n W_n product_n.

    Raises
    ------
    InputError
        If there are too many products for the number of words.
    """
    nodes, d = products.on.shape
    if nodes * d * d > MOST_STEPS:
        raise InputError(f"{nodes:,} products of {d:,} words take too long to be exact")
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
