"""How far rows of features that are on or off are from the row where all are on.

Cosine distance of z from (1, ..., 1):  1 - √(share of features that are on).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError

__all__ = ["distances"]


def distances(z: Floats, metric: Any) -> Floats:
    """Of rows z (n, d) from the first one, where all features are on, (n,).

    Raises
    ------
    InputError
        If scikit-learn has no such metric.
    """
    if metric == "cosine":
        return np.asarray(1.0 - np.sqrt(z.mean(axis=1)))
    from sklearn.metrics import pairwise_distances

    try:
        return np.asarray(pairwise_distances(z, z[:1], metric=metric)).ravel()
    except ValueError as error:
        raise InputError(f"distance_metric={metric!r} is no metric of scikit-learn's: {error}") from None
