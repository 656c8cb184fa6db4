"""An explanation as a long data frame: one line a row, feature and output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from limes.exceptions import InputError
from limes.show.optional import require
from limes.show.view import with_outputs

if TYPE_CHECKING:
    from limes.explanation import Explanation

Backend: TypeAlias = Literal["pandas", "polars", "pyarrow"]


def to_frame(explanation: Explanation, backend: Backend) -> Any:
    """Return the long frame of `backend`; see `Explanation.to_frame`."""
    if backend not in get_args(Backend):
        raise InputError(f"backend={backend!r} is not known; use one of {get_args(Backend)}")
    require(backend, f"to_frame(backend={backend!r})")
    import narwhals as nw

    schema = {
        "row": nw.Int64(),
        "feature": nw.String(),
        "condition": nw.String(),
        "data": nw.String(),
        "output": nw.String(),
        "value": nw.Float64(),
        "standard_error": nw.Float64(),
    }
    return nw.from_dict(_columns(explanation), schema, backend=backend).to_native()


def _columns(explanation: Explanation) -> dict[str, list[Any]]:
    values = with_outputs(explanation.values, explanation)
    errors = with_outputs(explanation.standard_errors, explanation)
    n, d, k = values.shape
    rows, features, outputs = (axis.ravel().tolist() for axis in np.indices((n, d, k)))
    texts = [[None if v is None else str(v) for v in row] for row in explanation.data.tolist()]
    cells = list(zip(rows, features, strict=True))
    return {
        "row": rows,
        "feature": [explanation.feature_names[j] for j in features],
        "condition": [explanation.conditions[i][j] for i, j in cells],
        "data": [texts[i][j] for i, j in cells],
        "output": [explanation.output_names[j] for j in outputs],
        "value": values.ravel().tolist(),
        "standard_error": errors.ravel().tolist(),
    }
