"""Columns of classifiers of several targets, whose probabilities lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limes.exceptions import InputError


def target_columns(
    model: Any, classes: Sequence[Any], output: Any
) -> tuple[int | list[int] | None, tuple[str, ...]]:
    """Resolve the option ``output`` of a classifier of several targets: columns (as of ``Output``) and names.

    Parameters
    ----------
    model
        A classifier whose ``classes_`` is a list.
    classes
        The list ``classes_``: the labels of each target.
    output
        None or "probability" for all; a pair (target, label), or its name; a list of these.

    Raises
    ------
    InputError
        If the model has no probabilities, or no such target or label.
    """
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} predicts several targets, and has no probabilities: explain the "
            "classifier of one target, or pass a callable"
        )
    pairs = [(target, label) for target, labels in enumerate(classes) for label in labels]
    names = [f"{target}: {label}" for target, label in pairs]
    if output is None or (isinstance(output, str) and output == "probability"):
        return None, tuple(names)
    if not isinstance(output, list):
        column = _target_column(output, pairs, names)
        return column, (names[column],)
    columns = [_target_column(each, pairs, names) for each in output]
    if not columns:
        raise InputError("output=[] names no class")
    return columns, tuple(names[column] for column in columns)


def _target_column(output: Any, pairs: Sequence[tuple[int, Any]], names: Sequence[str]) -> int:
    """The column of the probability of a pair (target, label), or of its name."""
    if isinstance(output, str) and output in names:
        return names.index(output)
    if isinstance(output, tuple) and len(output) == 2:
        for column, (target, label) in enumerate(pairs):
            if str(output[0]) == str(target) and (output[1] == label or str(output[1]) == str(label)):
                return column
    raise InputError(
        f"output={output!r}: the model predicts several targets at once, so output may be a pair (target, "
        f"label), such as {(pairs[-1][0], str(pairs[-1][1]))!r}, or its name, or a list of these. Known: "
        f"{list(names)}"
    )
