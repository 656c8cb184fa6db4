"""Any explanation that has values, as one matrix: rows × features.

Each kind of object has its door; what comes through is an :class:`Attribution`, and nothing behind the doors
knows whose it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Attribution:
    """Values (n, d) of n rows, and their standard errors (n, d) where the explainer says them."""

    values: Floats
    errors: Floats | None = None


def attribution(explanation: Any, *, output: Any = None) -> Attribution:
    """Values of an explanation of limes, shap or lime, of a list of such, or an array (n, d).

    Parameters
    ----------
    explanation
        ``limes.Explanation``, ``shap.Explanation`` or anything else with ``values``; an explanation of
        ``lime``, or a list of them, one a row; an array; or an :class:`Attribution`, which is returned.
    output
        Which one, where there are several: its position, or ``lime``'s label. Of two outputs the last if not
        given, as with two classes it tells all.

    Raises
    ------
    InputError
        If there is no door for the object, an output has to be chosen, or values are not finite.

    Examples
    --------
    >>> attribution([[1.0, -2.0]]).values.shape
    (1, 2)
    """
    for fits, door in _DOORS:
        if fits(explanation):
            found = door(explanation, output)
            break
    else:
        raise InputError(
            f"{type(explanation).__name__} is no explanation that is known: give one of limes, shap or lime, "
            "a list of them, one a row, or an array (rows, features)"
        )
    if found.values.ndim != 2 or not np.isfinite(found.values).all():
        raise InputError(
            f"an explanation's values must be finite and (rows, features); got {found.values.shape}"
        )
    return found


def _listed(explanation: Any) -> bool:
    return isinstance(explanation, list | tuple) and len(explanation) > 0 and not np.isscalar(explanation[0])


def _is_list_of_objects(explanation: Any) -> bool:
    return _listed(explanation) and any(fits(explanation[0]) for fits, _ in _DOORS[2:4])


def _several(explanations: Sequence[Any], output: Any) -> Attribution:
    parts = [attribution(one, output=output) for one in explanations]
    if len({part.values.shape[1] for part in parts}) > 1:
        raise InputError("explanations in a list must have the same number of features")
    errors = [part.errors for part in parts if part.errors is not None]
    return Attribution(
        np.concatenate([part.values for part in parts]),
        np.concatenate(errors) if len(errors) == len(parts) else None,
    )


def _with_values(explanation: Any, output: Any) -> Attribution:
    values = np.asarray(explanation.values, dtype=np.float64)
    errors = getattr(explanation, "standard_errors", None)
    # shap gives one row alone without its axis
    base = getattr(explanation, "base_values", None)
    if values.ndim == 1 or (
        values.ndim == 2 and base is not None and np.ndim(base) == 1 and _one_row(values, base)
    ):
        values = values[None]
    return Attribution(
        _picked(values, output), None if errors is None else _picked(np.asarray(errors), output)
    )


def _one_row(values: Floats, base: Any) -> bool:
    """Whether (d, k) values of one row are meant, rather than n rows: k base values, and not n."""
    return bool(len(base) == values.shape[1] != values.shape[0])


def _picked(values: Floats, output: Any) -> Floats:
    """(n, d) of (n, d) or (n, d, k)."""
    if values.ndim < 3:
        return np.asarray(values, dtype=np.float64)
    if output is None and values.shape[2] > 2:
        raise InputError(
            f"the explanation has {values.shape[2]} outputs: choose one by its position, output="
        )
    return np.asarray(values[..., -1 if output is None else output], dtype=np.float64)


def _of_lime(explanation: Any, output: Any) -> Attribution:
    """``local_exp`` lists (feature, value) of a label; of a regression label 0 is the negation of label 1."""
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


def _of_array(explanation: Any, output: Any) -> Attribution:
    return Attribution(_picked(np.asarray(explanation, dtype=np.float64), output))


_Door = tuple[Callable[[Any], bool], Callable[[Any, Any], Attribution]]
_DOORS: list[_Door] = [
    (lambda e: isinstance(e, Attribution), lambda e, _: e),
    (_is_list_of_objects, _several),
    (lambda e: hasattr(e, "local_exp"), _of_lime),
    (lambda e: hasattr(e, "values") and not callable(e.values), _with_values),
    (lambda e: isinstance(e, np.ndarray) or _listed(e), _of_array),
]
