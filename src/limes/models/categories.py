"""Which columns a form takes for categories: a law of such a column must be made of atoms."""

from __future__ import annotations

import numpy as np

from limes.functions import Filled, Function, Lookup, Members, Stacked
from limes.models.combination import Combination
from limes.models.reductions import Form, Reducible
from limes.models.trees import Forest


def category_columns(form: Form) -> frozenset[int]:
    """Positions of the columns that a form splits by sets of categories or looks up in a table."""
    if isinstance(form, Combination):
        return frozenset().union(*(category_columns(part) for part in form.parts))
    if isinstance(form, Forest):
        return frozenset(np.unique(form.feature[form.set_of >= 0]).tolist())
    if not isinstance(form, Reducible):
        return frozenset()
    functions = form.reduce().functions
    return frozenset(j for j, function in enumerate(functions) if _tells_categories(function))


def _tells_categories(function: Function | None) -> bool:
    if isinstance(function, Stacked):
        return any(_tells_categories(family) for family in function.families)
    if isinstance(function, Filled):
        return _tells_categories(function.function)
    return isinstance(function, Members | Lookup)
