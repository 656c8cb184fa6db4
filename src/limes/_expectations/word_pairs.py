r"""Effects of pairs of words or superpixels beyond the best sum of functions of single ones.

The features z are 0 or 1, and all pairs have one joint law: P_w(z_j = z_k = 1) = p, P_w(z_j = 1) = α. The
rest r of least squares has the mean 0 wherever one feature is fixed, so that a pair adds a single number:

    c_jk = E_w[r z_j z_k]        E_w[r | z_j = a, z_k = b] = (-1)^(a + b) c_jk / P_w(a, b)

which explains c_jk² Σ_ab 1 / P_w(a, b) of Var_w f. z_j z_k may be replaced by its residuals from a fit on z_j
and z_k: the expectation is the same, and less noisy on drawn rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from limes._arrays import Floats
from limes._expectations.weighted_rows import WeightedRows


@dataclass(frozen=True, eq=False)
class FeaturePair:
    """Effects of a pair on one output: means, errors and masses (2, 2), by z_j and z_k; and a variance."""

    columns: tuple[int, int]
    values: Floats
    errors: Floats
    masses: Floats
    variance: float
    variance_error: float


def largest_pairs(
    rows: WeightedRows, rest: Floats, masses: Floats, top: int, features: Sequence[int], *, exact: bool
) -> Sequence[FeaturePair]:
    """Return the ``top`` pairs of these features that explain most of one output, largest first.

    ``rest`` (m,) are the residuals of least squares on rows of w, ``masses`` (2, 2) is the law of two
    features, and ``exact`` states whether the rows are all states of the design.
    """
    every = (rows.h * (rows.weights * rest)) @ rows.h.T
    first, second = np.array(list(combinations(features, 2))).T
    order = np.argsort(-np.abs(every[first, second]), kind="stable")[: 4 * top]
    pairs = [_pair(rows, rest, masses, (int(first[o]), int(second[o])), exact=exact) for o in order]
    return sorted(pairs, key=lambda pair: -pair.variance)[:top]


def _pair(
    rows: WeightedRows, rest: Floats, masses: Floats, columns: tuple[int, int], *, exact: bool
) -> FeaturePair:
    one, other = (rows.h[j] for j in columns)
    both, alpha = masses[1, 1], masses[1].sum()
    # least squares of z_j z_k on 1, z_j and z_k, by symmetry
    variance, covariance = alpha * (1.0 - alpha), both - alpha**2
    slope = both * (1.0 - alpha) / (variance + covariance) if variance + covariance > 0 else 0.0
    beside = one * other - both - slope * (one + other - 2.0 * alpha)
    influence = rows.weights * rest * beside
    size = float(influence.sum())
    error = 0.0 if exact else float(rows.error(influence[:, None])[0])
    inverse = np.divide(1.0, masses, out=np.zeros((2, 2)), where=masses > 0)
    factor = float(inverse.sum())
    return FeaturePair(
        columns,
        np.array([[1.0, -1.0], [-1.0, 1.0]]) * size * inverse,
        error * inverse,
        masses,
        max(size**2 - error**2, 0.0) * factor,
        float(np.sqrt((2.0 * size * error) ** 2 + 2.0 * error**4)) * factor,
    )
