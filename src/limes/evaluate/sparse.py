"""The precision of sparse explanations, as their certificates say it."""

from __future__ import annotations

import numpy as np

from limes.evaluate.score import Score
from limes.explanation import Explanation


def precision(explanation: Explanation) -> Score:
    """P(w) = E[|f(z) - f(x)| given w·z = w·x] of each row, on fresh rows or exactly; lower is better.

    Parameters
    ----------
    explanation
        Of :class:`limes.SparseExplainer`.

    Raises
    ------
    InputError
        If it is not sparse.

    References
    ----------
    Koriche et al. 2025, equation 3.
    """
    values = [one.certificate.precision for one in explanation]
    return Score("precision error", np.array(values, dtype=np.float64), "lower")
