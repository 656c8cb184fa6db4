"""Probabilities and their log odds, on which some controls are fitted."""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats

# Probabilities are clipped to this distance from 0 and 1 before their log odds are taken
_NEAREST = 1e-6


def are_probabilities(f: Floats) -> bool:
    """Whether all answers lie in [0, 1]."""
    return bool(((f >= 0) & (f <= 1)).all())


def log_odds(p: Floats) -> Floats:
    """Log odds of probabilities, finite at 0 and 1."""
    from scipy.special import logit

    return np.asarray(logit(np.clip(p, _NEAREST, 1.0 - _NEAREST)))
