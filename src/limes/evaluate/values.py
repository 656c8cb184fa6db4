"""Any explanation that has values, as one matrix: rows × features.

Every kind of object is converted to an :class:`Attribution`; the measures see nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Attribution:
    """Values (n, d) of n rows, and their standard errors (n, d) if the explainer has them."""

    values: Floats
    errors: Floats | None = None


def attribution(explanation: Any, *, output: Any = None) -> Attribution:
    """Return the values of an explanation of limes, shap or lime, of a list of such, or an array (n, d).

    Parameters
    ----------
    explanation
        ``limes.Explanation``, ``shap.Explanation`` or anything else with ``values``; an explanation of
        ``lime``, or a list of them, one a row; an array; or an :class:`Attribution`, which is returned as it
        is.
    output
        Which one of several: its position, or ``lime``'s label. By default the last of two, which
        determines the other for two classes.

    Raises
    ------
    InputError
        If the object is of another kind, ``output`` has to choose one, or values are not finite.

    Examples
    --------
    >>> attribution([[1.0, -2.0]]).values.shape
    (1, 2)
    """
    result = _converted(explanation, output)
    if result.values.ndim != 2 or not np.isfinite(result.values).all():
        raise InputError(
            f"an explanation's values must be finite and (rows, features); got {result.values.shape}"
        )
    return result


def _converted(explanation: Any, output: Any) -> Attribution:
    if isinstance(explanation, Attribution):
        return explanation
    is_list = isinstance(explanation, list | tuple) and len(explanation) > 0
    is_list = is_list and not np.isscalar(explanation[0])
    if is_list and (_is_lime(explanation[0]) or _has_values(explanation[0])):
        return _stacked(explanation, output)
    if _is_lime(explanation):
        return _from_lime(explanation, output)
    if _has_values(explanation):
        return _from_values(explanation, output)
    if is_list or isinstance(explanation, np.ndarray):
        return Attribution(_select_output(np.asarray(explanation, dtype=np.float64), output))
    raise InputError(
        f"cannot read values of a {type(explanation).__name__}: pass an explanation of limes, shap or lime, "
        "a list of them, one a row, or an array (rows, features)"
    )


def _is_lime(explanation: Any) -> bool:
    return hasattr(explanation, "local_exp")


def _has_values(explanation: Any) -> bool:
    return hasattr(explanation, "values") and not callable(explanation.values)


def _stacked(explanations: Sequence[Any], output: Any) -> Attribution:
    parts = [attribution(explanation, output=output) for explanation in explanations]
    if len({part.values.shape[1] for part in parts}) > 1:
        raise InputError("explanations in a list must have the same number of features")
    errors = [part.errors for part in parts if part.errors is not None]
    return Attribution(
        np.concatenate([part.values for part in parts]),
        np.concatenate(errors) if len(errors) == len(parts) else None,
    )


def _from_values(explanation: Any, output: Any) -> Attribution:
    values = np.asarray(explanation.values, dtype=np.float64)
    errors = getattr(explanation, "standard_errors", None)
    # a single row of shap has no axis for rows
    base = getattr(explanation, "base_values", None)
    if values.ndim == 1 or (
        values.ndim == 2 and base is not None and np.ndim(base) == 1 and _one_row(values, base)
    ):
        values = values[None]
    return Attribution(
        _select_output(values, output), None if errors is None else _select_output(np.asarray(errors), output)
    )


def _one_row(values: Floats, base: Any) -> bool:
    """Whether (d, k) values are those of one row, not of n rows: there are k base values, and not n."""
    return bool(len(base) == values.shape[1] != values.shape[0])


def _select_output(values: Floats, output: Any) -> Floats:
    """Return (n, d) from (n, d) or (n, d, k)."""
    if values.ndim < 3:
        return np.asarray(values, dtype=np.float64)
    if output is None and values.shape[2] > 2:
        raise InputError(
            f"the explanation has {values.shape[2]} outputs: choose one by its position, output="
        )
    return np.asarray(values[..., -1 if output is None else output], dtype=np.float64)


def _from_lime(explanation: Any, output: Any) -> Attribution:
    """Read ``local_exp``, lists of (feature, value) by label; for a regression, label 0 negates label 1."""
    labels = explanation.local_exp
    label = output
    if label is None:
        label = 1 if 1 in labels else next(iter(labels))
    if label not in labels:
        raise InputError(f"the explanation of lime has no label {label!r}; it has {sorted(labels)}")
    size = len(explanation.domain_mapper.feature_names)
    values = np.zeros((1, size))
    for j, value in labels[label]:
        values[0, j] = value
    return Attribution(values)
