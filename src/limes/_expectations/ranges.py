"""The range of a form's answers over rows whose columns take listed values.

A sum lies in Σ_j [min f_j, max f_j], each over the values of column j, and reaches both ends. A forest lies
between the sums of its trees' least and largest leaves; a combination between those of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from limes._arrays import Floats, times
from limes.models.forms._base import Combination, Form, Reducible, Sum
from limes.models.forms._trees import Forest


def answer_range(form: Form, values: Sequence[Floats]) -> tuple[float, float] | None:
    """Return the least and the largest answer of a form of one output; None where they are not bounded.

    Parameters
    ----------
    form
        A form with one output, (n,).
    values
        Values that each column may take, (v_j,) each.

    Examples
    --------
    >>> from limes.models.forms import Linear
    >>> answer_range(Linear([2.0, -1.0], 5.0), [np.array([0.0, 1.0]), np.array([3.0])])
    (2.0, 4.0)
    """
    ends = _ends(form, values)
    return None if ends is None or not np.isfinite(ends).all() else (float(ends[0]), float(ends[1]))


def _ends(form: Form, values: Sequence[Floats]) -> Floats | None:
    """Return the least and the largest answer, (2,)."""
    match form:
        case Forest():
            return form.extremes
        case Combination():
            parts = [_ends(part, values) for part in form.parts]
            weighted = [w * p for w, p in zip(form.weights, parts, strict=True) if p is not None]
            if len(weighted) < len(parts):
                return None
            return np.asarray(float(form.intercept) + np.sort(weighted, axis=1).sum(axis=0))
        case Reducible():
            total = form.reduce()
            return _of_sum(total, values) if isinstance(total, Sum) else None
    return None


def _of_sum(form: Sum, values: Sequence[Floats]) -> Floats:
    ends = np.full(2, float(form.intercept))
    for function, loading, points in zip(form.functions, form.loadings, values, strict=True):
        if function is not None:
            effects = times(function(np.asarray(points)).T, loading)
            ends += effects.min(), effects.max()
    return ends
