"""Arguments that cannot mean what they say, as lime takes them: cut, dropped or ignored, here with a warning.

With ``install(strict=True)`` they are errors (`warn_or_raise`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from limes._checks import as_number, check_choice, check_count, check_size, is_count
from limes.compat.lime.exceptions import warn_or_raise
from limes.exceptions import InputError

_POSITIVE = "pass a whole number >= 1"


def kernel_width_of(value: Any, default: Any, kernel: Any = None) -> Any:
    """Any number but 0, whose sign does not matter: lime's kernel squares it.

    A kernel of the user's may take anything; the default stands for what is no number > 0.
    """
    if kernel is not None:
        return as_number(value) if as_number(value) > 0 else default
    try:
        width = float(value)
    except (TypeError, ValueError):
        width = np.nan
    if width < 0:
        warn_or_raise(f"kernel_width={value!r}", "pass a number > 0", "its sign does not matter, as in lime")
    return abs(width) if width and not np.isnan(width) else check_size("kernel_width", value)


def selection_of(value: Any, names: Sequence[str]) -> Any:
    """A way to select features; another than ``names`` only a base of the user's may have."""
    try:
        return check_choice("feature_selection", value, names)
    except InputError as error:
        warn_or_raise(str(error), "pass one of them", "only a base of your own may have it, as in lime")
        return value


def feature_count(value: Any, selection: str) -> int:
    """How many features a selection keeps; below 0 all but the smallest."""
    if is_count(value):
        return int(value)
    number = float(value) if isinstance(value, bool | np.bool_) else as_number(value)
    whole = np.isfinite(number) and number == round(number)
    if selection == "none":
        count, consequence = 1, "all features are explained, as in lime"
    elif selection == "lasso_path" and not np.isnan(number):
        count = int(np.clip(number, 1, sys.maxsize // 2))
        consequence = "the path ends at the last step with no more features, as in lime"
    elif whole and (number >= 1 or (number < 0 and selection == "highest_weights")):
        count, consequence = int(number), "it cuts the list of features, as in lime"
    else:
        return check_count("num_features", value)
    warn_or_raise(f"num_features={value!r}", _POSITIVE, consequence)
    return count


def sliced_count(name: str, value: Any) -> int:
    """A number of entries that lime takes from a list by a slice: any whole number."""
    if not is_count(value):
        if not hasattr(value, "__index__"):
            check_count(name, value)
        warn_or_raise(f"{name}={value!r}", _POSITIVE, "it cuts the list, as in lime")
    return int(value)


def batch_size_of(value: Any, whole: int) -> int:
    """Images that are asked at once: all of them, where lime never meets the number."""
    if is_count(value):
        return int(value)
    number = as_number(value)
    size = int(number) if number >= 1 and number == round(number) else whole
    warn_or_raise(f"batch_size={value!r}", _POSITIVE, f"{size} images are asked at once, as in lime")
    return size


def column_names(names: Sequence[Any] | None, d: int, *, fill: bool) -> list[str]:
    """Names of d columns; positions for those without one, if lime runs without it."""
    if names is None:
        return [str(j) for j in range(d)]
    problem = f"feature_names has {len(names)} names, but training_data has {d} columns"
    if len(names) > d:
        warn_or_raise(problem, "leave out what is no column, such as the target", f"the first {d} are used")
    elif len(names) < d and not fill:
        raise InputError(problem)
    elif len(names) < d:
        warn_or_raise(problem, "pass one a column", "the others are called by their position")
    return [str(name) for name in names[:d]] + [str(j) for j in range(len(names), d)]


def category_columns(chosen: Iterable[Any], d: int, *, cut: bool) -> list[Any]:
    """Columns of categories; lime asks which positions are in the list, without bins negative ones too."""
    wanted = list(chosen)
    odd = [
        c for c in wanted if not isinstance(c, str) and (c not in range(d) or isinstance(c, bool | np.bool_))
    ]
    if not odd:
        return wanted
    columns = [j for j in range(d) if j in wanted or (not cut and j - d in wanted)]
    rest = [c for c in wanted if isinstance(c, str) or (not cut and c not in range(-d, d))]
    warn_or_raise(
        f"categorical_features={wanted!r} of {d} columns",
        "pass positions",
        f"columns {columns} are categories, as in lime",
    )
    return [*columns, *rest]
