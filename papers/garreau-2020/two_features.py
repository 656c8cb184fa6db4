"""The setting of Figures 4, 7 and 8: f(x) = 10 x₁ - 10 x₂ among ten features, quartile bins.

The paper gives f, d, n and ν, and neither the instance nor the law. Ours: normal(0, 1); ξ₂ such that the
second feature is switched off at ν = 0.53 (Eq. 4.1), as in Figure 7, and ξ₁ such that β₁ = 11.4 at ν = 1, as
in the text on Figure 4; the others spread over the bins.
"""

from __future__ import annotations

import numpy as np

from limes.models import forms
from papers.common.tabular import Compared, TabularLime

D, SWITCH, RUNS = 10, 0.53, 20
COEF = np.array([10.0, -10.0] + [0.0] * (D - 2))
FORM = forms.Linear(COEF, 0.0)
LIME = TabularLime.gaussian(np.zeros(D), 1.0)
_UPPER = float(LIME.edges[1][3])
# ν² = (2ξ₂ - q₋ - q₊)/(q₋ + q₊) in the bin (0, 0.674]
INSTANCE = np.concatenate([[1.0, 0.5 * _UPPER * (1 + SWITCH**2)], np.linspace(-1.2, 1.2, D - 2)])


def compared(bandwidth: float, runs: int) -> Compared:
    """Runs of 10,000 rows without a penalty, and theory."""
    return LIME.compared(FORM, answer, INSTANCE, bandwidth=bandwidth, runs=runs, samples=10_000, penalty=0.0)


def answer(x: np.ndarray) -> np.ndarray:
    """f."""
    return x @ COEF
