"""Checks of options that all explainers share. Errors are advice."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from limes._checks import is_count
from limes.exceptions import InputError, UnknownOptionError


def refuse_unknown(unknown: Mapping[str, Any], owner: type) -> None:
    """Refuse keyword arguments that do not exist, with the nearest one that does."""
    if not unknown:
        return
    name = next(iter(unknown))
    known = [p for p in inspect.signature(owner).parameters if p != "unknown"]
    close = get_close_matches(name, known, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    raise UnknownOptionError(f"{owner.__name__} has no option {name!r}; {advice}")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return the value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        close = get_close_matches(str(value), choices, n=1)
        advice = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"{name}={value!r} is not one of {list(choices)}{advice}")
    return value


def check_count(name: str, value: Any) -> int:
    """Return the value if it is a whole number >= 1."""
    if not is_count(value):
        raise InputError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(value)


def check_size(name: str, value: Any, *, zero: bool = False) -> float:
    """Return the value if it is a finite number > 0 (or >= 0)."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise InputError(f"{name} must be a finite number {'>=' if zero else '>'} 0, got {value!r}")
    return float(value)


def seed_of(rng: Any) -> int:
    """A seed that never changes: None is 0, a generator is asked for one number, once."""
    if rng is None:
        return 0
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1, np.uint64)[0])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InputError(
            f"rng must be None, a whole number >= 0, a numpy Generator or a SeedSequence, got {rng!r}"
        )
    return int(rng)
