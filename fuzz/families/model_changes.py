"""Tables of the other families, whose model is compared with an older one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from fuzz.families.accounts import tables
from fuzz.model_changes import ModelChangeCase
from fuzz.tables import TableCase


def changes(generator: Callable[[Any, int], TableCase], rng: Any, seed: int) -> ModelChangeCase:
    """A case of another family."""
    case = generator(rng, seed)
    return ModelChangeCase.of(replace(case, setup=replace(case.setup, twice=True)))  # type: ignore[return-value]


def generators() -> tuple[tuple[Callable[[Any, int], ModelChangeCase], float], ...]:
    """Return those of tables that have a grid."""
    return tuple((partial(changes, one), share) for one, share in tables().items())
