"""What hiding the parts of an input changes: a part that looks the same hidden as shown is no feature.

The model is never asked without such a part, so that nothing is known of its effect. It is left out of the
design, as words of ``ignore=`` are: the other coefficients are those of the same input without this feature,
and its own is unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Bools, Ints

# Rounding error of a fill that is computed, such as a blur of a plain patch, by a channel's largest number
_ROUNDING = 1e-12


def changed(shown: Any, hidden: Any, labels: Ints) -> Bools:
    """Return which parts 0, ..., d - 1 change any number when they are hidden, (d,).

    ``labels`` (n,) or (n, C) says to which part the numbers of ``shown`` (n, C) belong.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models._hidden import changed
    >>> shown, hidden = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [0.0], [3.0]])
    >>> changed(shown, hidden, np.array([0, 0, 1])).tolist()
    [True, False]
    """
    before, after = (np.asarray(numbers, dtype=np.float64) for numbers in (shown, hidden))
    # units differ between channels
    size = np.maximum(np.abs(before).max(axis=0), np.abs(after).max(axis=0))
    with np.errstate(over="ignore"):
        differs = np.abs(before - after) > _ROUNDING * size
    if labels.ndim == 1:
        differs = differs.any(axis=1)
    return np.bincount(labels[differs], minlength=int(labels.max()) + 1) > 0


def relabelled(labels: Ints, kept: Bools) -> Ints:
    """Return labels of the kept parts alone, from 0 on; numbers of the others have label 0."""
    places: Ints = np.where(kept, np.cumsum(kept) - 1, 0)
    return np.asarray(places[labels])
