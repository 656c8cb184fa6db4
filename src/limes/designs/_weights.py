"""Weights of perturbed rows: weights that are products over columns keep columns independent.

A weight is used by *tilting*: the law of a column times its factor of the weight is again a law of that
column. Under the tilted law all rows have equal weight, so no later step uses a weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes._checks import as_number
from limes.designs._marginals import Atoms, Measure
from limes.exceptions import InputError


def check_bandwidth(bandwidth: float) -> float:
    """Return the bandwidth as a float; raise unless it is positive (infinity allowed)."""
    number = as_number(bandwidth)
    if not number > 0:
        raise InputError(
            f"bandwidth must be a number > 0, got {bandwidth!r}; float('inf') weighs all rows alike"
        )
    return number


@dataclass(frozen=True)
class _Weights:
    bandwidth: float

    @property
    def penalty(self) -> float:
        """1 / (2ν²), the logarithm of what another cell costs."""
        with np.errstate(over="ignore", divide="ignore"):
            # beyond 1e300 nothing changes: exp(-penalty) is 0
            return float(min(0.5 / np.float64(self.bandwidth) ** 2, 1e300))


@dataclass(frozen=True)
class BinWeights(_Weights):
    """π = ∏ exp(-1[another cell] / (2ν²)): the default of LIME for tables with bins (2022 paper, eq. 6)."""

    @property
    def ratio(self) -> float:
        """Weight of a row for each cell that it has changed, exp(-1 / (2ν²))."""
        return float(np.exp(-self.penalty))


@dataclass(frozen=True)
class EuclideanWeights(_Weights):
    """π = exp(-‖x - ξ‖² / (2ν²)), in units of ``scale`` a column (2020 paper, eq. 2.4).

    Categories have no distance: another category, or a missing value against a number, counts as one unit.
    """

    @property
    def precision(self) -> float:
        """1 / ν²."""
        with np.errstate(over="ignore", divide="ignore"):
            # below 1e-50 units nothing changes: the weight is 0 beyond the nearest float64
            return float(min((1.0 / np.float64(self.bandwidth)) ** 2, 1e100))

    def times(self, measure: Measure, x: Floats | float, scale: float) -> tuple[Measure, Floats]:
        """Multiply a measure by the weight about numbers x; return the product, and log factors of pieces."""
        product, log_factor = measure.times(x, self.precision, scale)
        if isinstance(measure, Atoms):
            log_factor = np.where(np.isnan(measure.value), -self.penalty, log_factor)
        return product, log_factor


Weights = BinWeights | EuclideanWeights
WEIGHTS: Mapping[str, type[BinWeights] | type[EuclideanWeights]] = {
    "bins": BinWeights,
    "euclidean": EuclideanWeights,
}


def named_weights(name: str, bandwidth: float) -> Weights:
    """Look a weight up by its public name."""
    if name not in WEIGHTS:
        raise InputError(f"weights must be one of {sorted(WEIGHTS)}, got {name!r}")
    return WEIGHTS[name](check_bandwidth(bandwidth))
