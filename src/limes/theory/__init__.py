"""Closed forms: robustness, sample sizes, averaged probabilities, and linear models under smooth weights.

The formulas are the papers', corrected where they are wrong as printed, as each docstring states.
"""

from limes.theory._bounds import (
    Robustness,
    clt_samples,
    measured_errors,
    robustness,
    theorem_samples,
)
from limes.theory._links import ExpectedLink, expected_link
from limes.theory._smooth import SmoothLimit, gaussian_bins, smooth_limit, switch_off_bandwidth

__all__ = [
    "ExpectedLink",
    "Robustness",
    "SmoothLimit",
    "clt_samples",
    "expected_link",
    "gaussian_bins",
    "measured_errors",
    "robustness",
    "smooth_limit",
    "switch_off_bandwidth",
    "theorem_samples",
]
