"""The columns that a model was fitted on, by their names, as far as it knows them.

Some models check the names of the columns that they are asked about, some find columns by them, and some,
such as LightGBM's, know names and take columns by position.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from limes._checks import listed
from limes._names import place_of_each, text_of
from limes._warnings import sentence

# Attributes of models and boosters that hold the names of columns; the method of LightGBM's returns them
_ATTRIBUTES, _METHOD = (
    ("feature_names_in_", "feature_names_", "feature_name", "feature_names"),
    "feature_name",
)
# Names that libraries give to columns without names: all of one kind, counted from 0 or 1
_NUMBERED = re.compile(r"(Column_|column_|f|x|)(0|[1-9]\d*)")


def fitted_names(model: Any) -> tuple[str, ...]:
    """Texts of the names of the columns that a model was fitted on, in its order; () if it knows none."""
    return _stated(model) or next(filter(None, map(fitted_names, _steps_of(model))), ())


def _stated(model: Any) -> tuple[str, ...]:
    """Names that the model itself states, not a later step of a Pipeline, before which they may be others."""
    owner = getattr(model, "__self__", model)
    for name in _ATTRIBUTES:
        with suppress(Exception):  # of a model that is not fitted, or whose first step knows no names
            names = getattr(owner, name)
            names = names() if name == _METHOD and callable(names) else names
            if names is not None and not isinstance(names, str) and len(names):
                return tuple(map(text_of, names))
    first = next(iter(_steps_of(owner)), None)
    return _of_exog(owner) if first is None else _stated(first)


def _steps_of(model: Any) -> list[Any]:
    """The steps of a Pipeline, without those that pass all columns through."""
    steps = getattr(model, "steps", None)
    pairs = steps if isinstance(steps, list) else []
    return [step for _, step in pairs if step is not None and not isinstance(step, str)]


def _of_exog(model: Any) -> tuple[str, ...]:
    """Names of the columns of a result of statsmodels, which a formula finds by their names."""
    with suppress(Exception):
        fitted = model.model
        if not hasattr(fitted, "formula"):
            return tuple(map(text_of, fitted.data.orig_exog.columns))
    return ()


def are_numbered(names: Sequence[str]) -> bool:
    """Whether names are numbers in order, such as libraries give to columns without names."""
    numbers = [match.groups() for match in map(_NUMBERED.fullmatch, names) if match]
    if len(numbers) < len(names) or not numbers:
        return False
    prefix, start = numbers[0]
    expected = [(prefix, str(int(start) + j)) for j in range(len(names))]
    return start in ("0", "1") and numbers == expected


def model_order(model: Any, names: Sequence[str]) -> tuple[int, ...] | None:
    """Positions of columns in the order in which a model was fitted on them.

    None if they are in this order already, or if the model was fitted on others, or knows no names.
    """
    order = place_of_each(names, fitted_names(model), mangled)
    return None if order is None or order == [*range(len(names))] else tuple(order)


def other_columns(model: Any, names: Sequence[str]) -> str:
    """A warning where a model was fitted on as many columns, some of which have other names; else ""."""
    fitted = _stated(model)
    if len(fitted) != len(names) or are_numbered(fitted) or place_of_each(names, fitted, mangled):
        return ""
    lacking, others = (
        listed([name for name in some if mangled(name) not in {*map(mangled, rest)}])
        for some, rest in ((fitted, names), (names, fitted))
    )
    return sentence("columns", model=type(model).__name__, lacking=lacking, others=others)


def mangled(name: str) -> str:
    """A name as LightGBM stores it."""
    return re.sub(r"\s", "_", name)
