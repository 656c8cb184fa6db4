"""Moments of a design's features h, from which surrogates are computed; of one design or of many at once.

A design does not expose Σ as a matrix. It applies functions of Σ: Σ⁻¹Γ, or (nCΣ + penalty)⁻¹ for a ridge.
Where features are uncorrelated Σ is diagonal, and such a function acts on the variances alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from limes._arrays import Bools, Floats, Ints


class Features(Protocol):
    """Moments of h under w; arrays (d,) for one design, (n, d) for n designs, values (..., d, *outputs)."""

    @property
    def inclusion(self) -> Floats:
        """α = E_w h."""
        ...

    @property
    def variance(self) -> Floats:
        """Var_w h, the diagonal of the centred Σ; 0 for a column that cannot vary."""
        ...

    @property
    def at_instance(self) -> Floats:
        """h(ξ)."""
        ...

    @property
    def departure(self) -> Floats:
        """h(ξ) - α; 0 for a column that cannot vary."""
        ...

    @property
    def log_weight(self) -> Floats:
        """Log E[π], () or (n,)."""
        ...

    def solve(self, gamma: Floats) -> Floats:
        """β = Σ⁻¹Γ for centred Γ_j = Cov_w(h_j, f); 0 for columns that cannot vary.

        Parameters
        ----------
        gamma
            Γ, (d, ...).
        """
        ...

    def gamma(self, coef: Floats) -> Floats:
        """Γ = Σβ, the inverse of ``solve``.

        Parameters
        ----------
        coef
            β, (d, ...).
        """
        ...

    def spectral(self, function: Callable[[Floats], Floats], values: Floats) -> Floats:
        """g(Σ) · values, for a function g of the eigenvalues of Σ.

        Parameters
        ----------
        function
            g, from eigenvalues to numbers.
        values
            (d, ...).
        """
        ...

    def largest(self, function: Callable[[Floats], Floats]) -> Floats:
        """The largest g(eigenvalue) among the eigenvectors that involve a feature, for g >= 0.

        Parameters
        ----------
        function
            g, from eigenvalues to numbers.
        """
        ...


class Uncorrelated:
    """Functions of a diagonal Σ, for a class that has the other members of ``Features``."""

    @property
    def departure(self: Features) -> Floats:
        """h(ξ) - α; 0 for a column that cannot vary."""
        return np.where(self.variance > 0, self.at_instance - self.inclusion, 0.0)

    def solve(self: Features, gamma: Floats) -> Floats:
        """β = Σ⁻¹Γ: each Γ_j over its variance, 0 for columns that cannot vary."""
        variance = aligned(self.variance, gamma)
        return np.divide(gamma, variance, out=np.zeros_like(gamma), where=variance > 0)

    def gamma(self: Features, coef: Floats) -> Floats:
        """Γ = Σβ."""
        return np.asarray(aligned(self.variance, coef) * coef)

    def spectral(self: Features, function: Callable[[Floats], Floats], values: Floats) -> Floats:
        """g(Σ) · values: the eigenvalues are the variances."""
        return np.asarray(aligned(function(self.variance), values) * values)

    def largest(self: Features, function: Callable[[Floats], Floats]) -> Floats:
        """g(variance_j)."""
        return function(self.variance)


@dataclass(frozen=True, eq=False)
class FeatureNumbers:
    """Moments of each feature by itself under n designs, (n, d); log E[π], (n,)."""

    inclusion: Floats
    variance: Floats
    at_instance: Floats
    log_weight: Floats

    @classmethod
    def stacked(cls, designs: Sequence[Features | FeatureNumbers]) -> Self:
        """Stack the numbers of n single designs."""
        return cls(
            np.stack([design.inclusion for design in designs]),
            np.stack([design.variance for design in designs]),
            np.stack([design.at_instance for design in designs]),
            np.stack([design.log_weight for design in designs]),
        )

    def select(self, rows: Ints) -> Self:
        """Select designs by index; an index may repeat."""
        return type(self)(
            self.inclusion[rows], self.variance[rows], self.at_instance[rows], self.log_weight[rows]
        )


class FeatureTable(Uncorrelated, FeatureNumbers):
    """Uncorrelated features of n designs."""


class InUnits(NamedTuple):
    """Features of n designs, and the same features in units.

    ``units`` and ``slopes``, both (n, d), are the units, and whether features are slopes; None where all are
    indicators, whose unit is 1.
    """

    features: FeatureTable
    inner: FeatureTable
    units: Floats | None
    slopes: Bools | None

    @classmethod
    def of_indicators(cls, features: FeatureTable) -> Self:
        """Return indicators, which are also their features in units."""
        return cls(features, features, None, None)

    @classmethod
    def of_designs(cls, designs: Sequence[Any]) -> Self:
        """Stack single designs."""
        inner = FeatureTable.stacked([design.in_units() for design in designs])
        units = np.stack([design.units for design in designs])
        slopes = np.stack([design.slopes for design in designs])
        return cls(FeatureTable.stacked(designs), inner, units, slopes)

    @classmethod
    def joined(cls, blocks: Sequence[InUnits]) -> InUnits:
        """Join the features of several blocks of designs."""
        if len(blocks) == 1:
            return blocks[0]

        def table(name: str) -> FeatureTable:
            tables = [vars(getattr(block, name)) for block in blocks]
            return FeatureTable(**{key: np.concatenate([each[key] for each in tables]) for key in tables[0]})

        if blocks[0].units is None:
            return cls.of_indicators(table("features"))
        units, slopes = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("units", "slopes"))
        return cls(table("features"), table("inner"), units, slopes)

    def select(self, rows: Ints) -> Self:
        """Select designs by index."""
        units = None if self.units is None else self.units[rows]
        slopes = None if self.slopes is None else self.slopes[rows]
        return type(self)(self.features.select(rows), self.inner.select(rows), units, slopes)


def aligned(features: Floats, values: Floats) -> Floats:
    """Append axes to features (..., d) for the outputs of values (..., d, *outputs)."""
    return features.reshape((*features.shape, *(1,) * (values.ndim - features.ndim)))


def weighted_sum(features: Floats, values: Floats) -> Floats:
    """Σ_j features_j values_j, (..., d) and (..., d, *outputs) -> (..., *outputs)."""
    return np.asarray((aligned(features, values) * values).sum(axis=features.ndim - 1))
