"""Tables of the other families, whose columns are put into groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from fuzz.families.accounts import tables
from fuzz.families.columns import number
from fuzz.groups import GroupCase
from fuzz.tables import TableCase

# Cases that are drawn until one has three columns
_TRIES = 20


def groups(generator: Callable[[Any, int], TableCase], rng: Any, seed: int) -> GroupCase:
    """A case of another family, with so few rows in the background that all combinations can be listed."""
    for _ in range(_TRIES):
        case = generator(rng, seed)
        if len(case.setup.columns) > 2:
            break
    setup = case.setup
    if setup.table.startswith("np.column_stack(C)") and "feature_types" not in setup.model.kwargs:
        more = (number(rng) for _ in range(int(rng.integers(0, 4))))
        setup = replace(setup, columns=(*setup.columns, *more))
    most = 26 if len(setup.columns) < 4 else 14
    setup = replace(setup, explained=int(rng.integers(6, most)))
    return GroupCase.of(replace(case, setup=setup))  # type: ignore[return-value]


def generators() -> tuple[tuple[Callable[[Any, int], GroupCase], float], ...]:
    """Return those of tables that have a grid."""
    return tuple((partial(groups, one), share) for one, share in tables().items())
