"""Classifiers of several targets: which probability of which target is explained.

scikit-learn answers one array (n, classes) a target; here they lie side by side, and each column is called
"target: class", with targets counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limes.exceptions import InputError, ModelError


def chosen_columns(
    model: Any, classes: Sequence[Any], output: Any
) -> tuple[int | list[int] | None, tuple[str, ...]]:
    """Columns (as of ``Output``) and their names that the option ``output`` asks for.

    Parameters
    ----------
    model
        A classifier whose ``classes_`` is a list.
    classes
        This list: the labels of each target.
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
        place = _place(output, pairs, names)
        return place, (names[place],)
    places = [_place(wanted, pairs, names) for wanted in output]
    if not places:
        raise InputError("output=[] asks for no class at all")
    return places, tuple(names[place] for place in places)


def _place(wanted: Any, pairs: Sequence[tuple[int, Any]], names: Sequence[str]) -> int:
    """Where the probability of a pair, or of its name, stands among those of all."""
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    if isinstance(wanted, tuple) and len(wanted) == 2:
        for place, (target, label) in enumerate(pairs):
            if str(wanted[0]) == str(target) and (wanted[1] == label or str(wanted[1]) == str(label)):
                return place
    raise InputError(
        f"output={wanted!r}: the model predicts several targets at once, so output may be a pair (target, "
        f"label), such as {(pairs[-1][0], str(pairs[-1][1]))!r}, or its name, or a list of these. Known: "
        f"{list(names)}"
    )


def side_by_side(answer: Any, classes: Sequence[Any], name: str) -> Any:
    """One array (n, all classes) of the arrays (n, classes), one a target, that a model returns.

    Raises
    ------
    ModelError
        If the answer is another.
    """
    widths = [len(labels) for labels in classes]
    if not isinstance(answer, list) or [np.shape(one)[1:] for one in answer] != [(w,) for w in widths]:
        raise ModelError(
            f"{name} did not return one array a target, with a column a class; pass a callable that returns "
            "the probabilities of one target"
        )
    return np.concatenate(answer, axis=1)
