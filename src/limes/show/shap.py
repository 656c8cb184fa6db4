"""An explanation for those who know shap's plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes.show.optional import require

if TYPE_CHECKING:
    from limes._arrays import Floats, Objects
    from limes.explanation import Explanation


def to_shap(explanation: Explanation) -> Any:
    """Return a ``shap.Explanation``; see `Explanation.to_shap`."""
    shap = require("shap", "to_shap()")
    several = explanation.values.ndim == 3
    return shap.Explanation(
        # shap writes into what it is given
        values=explanation.values.copy(),
        base_values=explanation.intercepts.copy(),
        data=_data(explanation.data),
        feature_names=list(explanation.feature_names),
        output_names=list(explanation.output_names) if several else None,
    )


def _data(cells: Objects) -> Floats | Objects:
    try:
        return cells.astype(float)  # shap colours by value, for which it needs numbers
    except (TypeError, ValueError):
        texts = cells.copy()
        texts[np.array([cell is None for cell in cells.ravel()]).reshape(cells.shape)] = (
            "missing"  # shap formats what is no text as a number
        )
        return texts
