"""Probabilities and their log odds, on which some controls are fitted.

Rows have weights p (1 - p), the inverse variance of log odds whose p has binomial errors: where p is near 0
or 1, log odds say little about p.
"""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats

# Probabilities are clipped to this distance from 0 and 1 before their log odds are taken
_NEAREST = 1e-6
# Least weight of a row
_LEAST_WEIGHT = 1e-3


def are_probabilities(f: Floats) -> bool:
    """Return whether all answers lie in [0, 1]."""
    return bool(((f >= 0) & (f <= 1)).all())


def log_odds(p: Floats) -> Floats:
    """Log odds of probabilities, finite at 0 and 1."""
    from scipy.special import logit

    return np.asarray(logit(np.clip(p, _NEAREST, 1.0 - _NEAREST)))


def roots_of_weights(p: Floats) -> Floats:
    """Square roots of the weights of rows with answers p (n, k), (n, 1)."""
    return np.asarray(np.sqrt(np.maximum((p * (1.0 - p)).mean(axis=1, keepdims=True), _LEAST_WEIGHT)))
