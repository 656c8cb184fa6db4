"""Repeated runs against their theoretical mean.

The mean of R independent runs lies within R^(-1/2) of one run's noise of it. That noise is estimated from the
same runs, which makes the ratio Student's t with R - 1 degrees of freedom; a score here is the normal deviate
that is as improbable, so that |score| < 4 means 6e-5 a coefficient whatever R is.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

TOO_FAR = 4.0
# A comparison is worth making if the mean's standard error is below this part of the largest coefficient.
SHARP = 0.02


def scores(runs, expected):
    """How far the mean of the runs (n, m) lies from what is expected, in normal deviates, (m,)."""
    count = len(runs)
    t = (runs.mean(axis=0) - expected) / (runs.std(axis=0, ddof=1) / np.sqrt(count))
    return np.sign(t) * stats.norm.isf(stats.t.sf(np.abs(t), count - 1))


def assert_agree(runs, expected):
    """Coefficients and, last, the intercept."""
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert error.max() < SHARP * np.abs(expected[:-1]).max()
    assert np.abs(scores(runs, expected)).max() < TOO_FAR
