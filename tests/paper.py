"""The notation of Garreau & von Luxburg 2022, its integrals by the oracle's quadrature.

The same number p of bins in every column, all alike. e_jb^ψ = E[weight factor · ψ(x_j) | bin b], c_j^ψ is its
mean over bins, C = ∏ c_j (Eqs. 11, 12 and 22).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import oracle
from limes.designs import ProductDesign

ONE, IDENTITY = np.ones_like, np.asarray


@dataclass(frozen=True)
class Paper:
    """A design in the papers' notation, its integrals by the oracle's quadrature."""

    edges: np.ndarray
    means: np.ndarray
    stds: np.ndarray
    instance: np.ndarray
    bandwidth: float
    weights: str = "bins"

    @property
    def d(self):
        return len(self.edges)

    @property
    def p(self):
        return self.means.shape[1]

    @property
    def cells(self):
        """The instance's cell of each column."""
        return [oracle.bin_of(e, x) for e, x in zip(self.edges, self.instance, strict=True)]

    @property
    def columns(self):
        """Points and masses of the weighted law, each column's in total c_j: not normalised."""
        return [self._column(j) for j in range(self.d)]

    def _column(self, j):
        smooth = oracle.Smooth(self.instance[j], self.bandwidth) if self.weights == "euclidean" else None
        column = oracle.binned_column(
            self.edges[j], self.means[j], self.stds[j], log_weight=smooth, resolution=1.0
        )
        return column if smooth else oracle.bin_weighted(column, self.cells[j], self.bandwidth)

    def e(self, j, psi=ONE):
        """e_jb^ψ, (p,)."""
        column = self._column(j)
        mass = np.exp(column.log_mass) * psi(column.x)
        return np.array([self.p * mass[column.cell == b].sum() for b in range(self.p)], dtype=float)

    def c(self, j, psi=ONE):
        return self.e(j, psi).mean()

    @property
    def C(self):  # noqa: N802 - the paper's letter
        return np.prod([self.c(j) for j in range(self.d)])

    def design(self):
        return ProductDesign.from_bins(
            self.edges, self.means, self.stds, self.instance, self.bandwidth, weights=self.weights
        )

    def truth(self, f):
        """The surrogate of f by quadrature: intercept first, (d + 1,)."""
        surrogate = oracle.truth(self.columns, f, self.cells)
        return np.append(surrogate.intercept, surrogate.coef)

    def moments(self, f):
        """E[π f] and E[π z_j f], (d + 1,): Γ, not divided by C."""
        x, share = oracle.grid(self.columns)
        z = oracle.features(self.columns, self.cells)
        weighted = share * f(x)
        return (np.append(weighted.sum(), z.T @ weighted) * self.C).astype(float)


def paper(seed, *, d=2, p=4, bandwidth=1.3, weights="bins"):
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.normal(size=(d, p + 1)) * 2, axis=1)
    edges[:, 1:] += 0.3 * np.arange(1, p + 1)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    means = middle + 0.3 * rng.normal(size=middle.shape)
    stds = rng.uniform(0.3, 1.5, size=means.shape)
    cell = rng.integers(p, size=d)
    share = rng.random(d)
    row = np.arange(d)
    instance = edges[row, cell] + share * (edges[row, cell + 1] - edges[row, cell])
    return Paper(edges, means, stds, instance, bandwidth, weights)
