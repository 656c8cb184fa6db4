"""Tables of the other families, whose effects, R² and pairs are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fuzz.beside import BesideCase
from fuzz.families.accounts import tables
from fuzz.tables import TableCase


def beside(generator: Callable[[Any, int], TableCase], rng: Any, seed: int) -> BesideCase:
    """A case of another family."""
    return BesideCase.of(generator(rng, seed))


def generators() -> tuple[tuple[Callable[[Any, int], BesideCase], float], ...]:
    """Return those of tables that have a grid, each with its share."""
    return tuple((partial(beside, one), share) for one, share in tables().items())
