"""An explanation as a long data frame, one line a row, feature and output, or as an object of shap's."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import is_wide
from limes._checks import require
from limes._explanation.view import output_title, slope_facts, with_outputs
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._arrays import Floats, Objects
    from limes._explanation import Explanation

_BACKENDS = ("pandas", "polars", "pyarrow")


def to_frame(explanation: Explanation, backend: Any) -> Any:
    """Return the long frame of `backend`; see `Explanation.to_frame`."""
    if backend not in _BACKENDS:
        raise InputError(f"backend={backend!r} is not known; use one of {_BACKENDS}")
    require(backend, f"to_frame(backend={backend!r})")
    import narwhals as nw

    whole = all(type(label) is int for label in explanation.ids)
    schema = {
        "row": nw.Int64(),
        "id": nw.Int64() if whole else nw.String(),
        "feature": nw.String(),
        "condition": nw.String(),
        "data": nw.String(),
        "output": nw.String(),
        "value": nw.Float64(),
        "standard_error": nw.Float64(),
        "prediction": nw.Float64(),
        "fidelity": nw.Float64(),
    }
    return nw.from_dict(_columns(explanation), schema, backend=backend).to_native()


def _columns(explanation: Explanation) -> dict[str, list[Any]]:
    values = with_outputs(explanation.values, explanation)
    errors = with_outputs(explanation.standard_errors, explanation)
    per_row = {
        name: np.repeat(with_outputs(numbers, explanation)[:, None], values.shape[1], axis=1)
        for name, numbers in (("prediction", explanation.predictions), ("fidelity", explanation.fidelity))
    }
    n, d, k = values.shape
    ids = explanation.ids
    names = ids if all(type(label) is int for label in ids) else [*map(str, ids)]
    rows, features, outputs = (axis.ravel().tolist() for axis in np.indices((n, d, k)))
    texts = [[None if v is None else str(v) for v in row] for row in explanation.data.tolist()]
    cells = list(zip(rows, features, strict=True))
    return {
        "row": rows,
        "id": [names[i] for i in rows],
        "feature": [_encodable(explanation.feature_names[j]) for j in features],
        "condition": [_encodable(explanation.conditions[i][j]) for i, j in cells],
        "data": [_encodable(texts[i][j]) for i, j in cells],
        "output": [_encodable(explanation.output_names[j]) for j in outputs],
        "value": values.ravel().tolist(),
        "standard_error": errors.ravel().tolist(),
        **{name: numbers.ravel().tolist() for name, numbers in per_row.items()},
    }


def _encodable(text: str | None) -> str | None:
    """Replace lone surrogates, which no column of texts can hold, by question marks."""
    return text and text.encode("utf-8", "replace").decode("utf-8")


def to_shap(explanation: Explanation) -> Any:
    """Return a ``shap.Explanation``; see `Explanation.to_shap`."""
    shap = require("shap", "to_shap()")
    several = explanation.values.ndim == 3
    warnings.warn(
        "to_shap() holds coefficients of LIME's surrogate, not Shapley values: shap's plots call their sum "
        "f(x), which is the surrogate's prediction, and the intercept E[f(X)]; explanation.plot.waterfall() "
        "draws both as what they are",
        UserWarning,
        stacklevel=3,
    )
    values, base = _contributions(explanation)
    names = [f"surrogate of {output_title(explanation, k)}" for k in range(len(explanation.output_names))]
    return shap.Explanation(
        values=values,  # copies: shap writes into these arrays
        base_values=base,
        data=_shap_data(explanation.data),
        feature_names=list(explanation.feature_names),
        output_names=names if several else names[0],
    )


def _contributions(explanation: Explanation) -> tuple[Floats, Floats]:
    """Return the contribution of each feature at the row, and the base to which contributions are added.

    A condition adds its coefficient, 0 where it is unknown; a slope adds its product with the distance from
    the column's mean, and the base is then the surrogate at the means. A row that lacks the value has a
    condition in the slope's place.
    """
    # the prediction does not depend on a feature whose coefficient is unknown
    values, base = np.nan_to_num(explanation.values, copy=True, nan=0.0), explanation.intercepts.copy()
    for name, facts in slope_facts(explanation).items():
        j = explanation.feature_names.index(name)
        distance = explanation.data[:, j].astype(np.float64) - facts["mean"]
        distance = distance.reshape(-1, *(1 for _ in values.shape[2:]))
        base += np.where(np.isnan(distance), 0.0, facts["mean"]) * values[:, j]
        values[:, j] *= np.where(np.isnan(distance), 1.0, distance)
    return values, base


def _shap_data(cells: Objects) -> Floats | Objects:
    wide = np.array([is_wide(cell) for cell in cells.ravel()]).reshape(cells.shape)
    try:
        numbers = cells.astype(float)  # shap colours by value, for which it needs numbers
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is not None and not wide.any():
        return numbers
    # shap formats every cell that is not a text as a number
    texts = cells.astype(object)
    texts[wide] = [str(cell) for cell in texts[wide]]
    texts[np.array([cell is None for cell in cells.ravel()]).reshape(cells.shape)] = "missing"
    return texts
