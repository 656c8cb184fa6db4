"""What surrogates need of a design: the moments of its features h, one design or many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from limes._arrays import Floats, Ints


class Features(Protocol):
    """First and second moments of h under w; arrays (d,) for one design, (n, d) for n designs."""

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
    def log_weight(self) -> Floats:
        """Log E[π], () or (n,)."""
        ...


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of n designs, (n, d)."""

    inclusion: Floats
    variance: Floats
    at_instance: Floats
    log_weight: Floats


def aligned(features: Floats, values: Floats) -> Floats:
    """Features (..., d) with axes for the outputs of values (..., d, *outputs)."""
    return features.reshape((*features.shape, *(1,) * (values.ndim - features.ndim)))


def solve(design: Features, gamma: Floats) -> Floats:
    """Σ⁻¹Γ for centred Γ_j = Cov_w(h_j, f), (..., d, *outputs); 0 for columns that cannot vary."""
    variance = aligned(design.variance, gamma)
    return np.divide(gamma, variance, out=np.zeros_like(gamma), where=variance > 0)


def weighted_sum(features: Floats, values: Floats) -> Floats:
    """Σ_j features_j values_j, (..., d) and (..., d, *outputs) -> (..., *outputs)."""
    return np.asarray((aligned(features, values) * values).sum(axis=features.ndim - 1))


def taken(table: FeatureTable, rows: Ints) -> FeatureTable:
    """Pick designs, repeatedly or not."""
    return FeatureTable(
        table.inclusion[rows], table.variance[rows], table.at_instance[rows], table.log_weight[rows]
    )


def stacked_features(designs: Sequence[Features]) -> FeatureTable:
    """Put single designs into one table."""
    return FeatureTable(
        np.stack([d.inclusion for d in designs]),
        np.stack([d.variance for d in designs]),
        np.stack([d.at_instance for d in designs]),
        np.stack([d.log_weight for d in designs]),
    )
