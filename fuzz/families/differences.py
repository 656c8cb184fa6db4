"""Tables of the other families, whose rows are compared with each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fuzz.differences import DifferenceCase
from fuzz.families.accounts import tables
from fuzz.tables import TableCase


def differences(generator: Callable[[Any, int], TableCase], rng: Any, seed: int) -> DifferenceCase:
    """A case of another family."""
    return DifferenceCase.of(generator(rng, seed))  # type: ignore[return-value]


def generators() -> tuple[tuple[Callable[[Any, int], DifferenceCase], float], ...]:
    """Return those of tables that have a grid."""
    return tuple((partial(differences, one), share) for one, share in tables().items())
