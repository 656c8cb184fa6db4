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

    Examples
    --------
    >>> import limes
    >>> explainer = limes.SparseExplainer(lambda z: z[:, 0] * z[:, 1] / 2, k=1, samples=100)
    >>> precision(explainer([[1.0, 1.0, -1.0]], progress=False)).rows.shape
    (1,)
    """
    values = [one.certificate.precision for one in explanation]
    return Score("precision error", np.array(values, dtype=np.float64), "lower")
