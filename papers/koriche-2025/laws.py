r"""Two readings of the paper's law, P(z) ∝ e^{-σ·flips}, by their definitions, for what is no rule of limes.

Section 7.1 prints a probability of rows and a normaliser, and literals flip independently under it:

    literal law:    P(j flips) ∝ C(d, j) e^{-σj},    each flips with probability e^{-σ}/(1 + e^{-σ}).

A program that draws *how many* literals flip from e^{-σj}, and then which, has another law:

    count law:      P(j flips) ∝ e^{-σj},            0.58 flips a row on average at σ = 1, whatever d is.

Both are exchangeable: all rows with j flips are equally likely. ``limes.SparseExplainer(law=...)`` has both;
the baselines LIME and MAPLE are evaluated on the rows that are drawn here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import comb

# Rows that are enumerated at once
_BLOCK = 1 << 15
# A sum of coefficients is zero below this share of their sizes, as weights are rounded
_ZERO = 1e-9


@dataclass(frozen=True)
class LiteralLaw:
    """Literals flip independently of each other."""

    size: int
    spread: float

    def flips(self, rng, rows):
        """Draw which literals flip, (rows, d)."""
        return rng.random((rows, self.size)) < 1.0 / (1.0 + np.exp(self.spread))

    def probabilities(self):
        """Probability of each row with j flips, (d + 1,)."""
        counts = np.arange(self.size + 1)
        return np.exp(-self.spread * counts) / (1.0 + np.exp(-self.spread)) ** self.size


@dataclass(frozen=True)
class CountLaw:
    """The number of flips is drawn first, then which literals they are."""

    size: int
    spread: float

    @property
    def counts(self):
        """Probability of j flips, (d + 1,)."""
        weights = np.exp(-self.spread * np.arange(self.size + 1))
        return weights / weights.sum()

    def flips(self, rng, rows):
        """Draw which literals flip, (rows, d)."""
        flips = np.zeros((rows, self.size), dtype=bool)
        for row, count in zip(flips, rng.choice(self.size + 1, size=rows, p=self.counts), strict=True):
            row[rng.choice(self.size, size=count, replace=False)] = True
        return flips

    def probabilities(self):
        """Probability of each row with j flips, (d + 1,)."""
        return self.counts / comb(self.size, np.arange(self.size + 1))


LAWS = {"literal": LiteralLaw, "count": CountLaw}


def precision(law, predict, x, u, target):
    """E[|f(z) - f(x)| given w·z = w·x] over all such z: sets of zero sum, and any free literals."""
    support, free = np.flatnonzero(u), np.flatnonzero(u == 0)
    probability = law.probabilities()
    total = mass = 0.0
    sets = np.arange(1 << support.size)[:, None] >> np.arange(support.size) & 1 == 1
    for flipped in sets[np.abs(sets @ u[support]) <= _ZERO * np.abs(u).sum()]:
        for first, last in pairwise([*range(0, 1 << free.size, _BLOCK), 1 << free.size]):
            flips = np.zeros((last - first, x.size), dtype=bool)
            flips[:, free] = np.arange(first, last)[:, None] >> np.arange(free.size) & 1
            flips[:, support] = flipped
            weights = probability[flips.sum(axis=1)]
            total += weights @ np.abs(predict(np.where(flips, -x, x)) - target)
            mass += weights.sum()
    return float(total / mass)
