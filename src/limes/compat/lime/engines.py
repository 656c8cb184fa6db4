"""Which engine answers: the explainer's choice, or the ``with`` block's, or LIMES_ENGINE's, or "limit"."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from limes._checks import check_choice

ENGINES = ("limit", "lime")
VARIABLE = "LIMES_ENGINE"
_chosen: ContextVar[str | None] = ContextVar("engine", default=None)

__all__ = ["ENGINES", "VARIABLE", "Seeds", "engine", "engine_for", "engine_of"]


@dataclass(frozen=True)
class Seeds:
    """Seeds of the engines.

    Attributes
    ----------
    limit
        0 unless the user gives a seed: the limit is one number, and its estimate the same every time.
    lime
        Of the user's seed, else another every time: who asks for lime's own sample is to see it scatter.
    """

    limit: int
    lime: int

    @classmethod
    def of(cls, given: Any, state: Any) -> Seeds:
        """Draw them from a random state, made from what the user has ``given``."""
        drawn = int(state.randint(2**31 - 1))
        return cls(0 if given is None else drawn, drawn)


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Let an engine answer inside a ``with`` block.

    Parameters
    ----------
    name : "limit" or "lime"

    Raises
    ------
    InputError
        Another name.

    Examples
    --------
    >>> with engine("lime"):
    ...     engine_of(None)
    'lime'
    """
    token = _chosen.set(check_choice("engine", name, ENGINES))
    try:
        yield
    finally:
        _chosen.reset(token)


def engine_of(own: str | None) -> str:
    """Return the engine that answers an explainer whose own choice is ``own``."""
    if own is not None:
        return check_choice("engine", own, ENGINES)
    chosen = _chosen.get()
    return chosen if chosen else check_choice(VARIABLE, os.environ.get(VARIABLE, ENGINES[0]), ENGINES)


def engine_for(own: str | None, only_lime: Mapping[str, bool]) -> tuple[str, str]:
    """Return the engine that answers a request, and why, if it is not the one that was asked for.

    ``only_lime`` says of options that only lime's own sampling knows whether they are used.
    """
    wanted = engine_of(own)
    used = [option for option, given in only_lime.items() if given]
    if wanted == "lime" or not used:
        return wanted, ""
    return "lime", f"only lime's own sampling knows {', '.join(used)}"
