"""Tables of the other families, whose pairs of contributions are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fuzz.families.accounts import tables
from fuzz.pairs import PairCase
from fuzz.tables import TableCase


def pairs(generator: Callable[[Any, int], TableCase], rng: Any, seed: int) -> PairCase:
    """A case of another family."""
    return PairCase.of(generator(rng, seed))  # type: ignore[return-value]


def generators() -> tuple[tuple[Callable[[Any, int], PairCase], float], ...]:
    """Return those of tables that have a grid."""
    return tuple((partial(pairs, one), share) for one, share in tables().items())
