"""Several texts or images, one after the other: each has features, and an explanation, of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from limes.exceptions import Interrupted, ModelError
from limes.explainers.progress import progress_of
from limes.explanation import Explanation

T = TypeVar("T")


def explained_each(
    things: Sequence[T], explain: Callable[[T], Explanation], *, progress: bool, name: str
) -> list[Explanation]:
    """Explain each; what was done before a failure is the error's ``partial``.

    Raises
    ------
    ModelError
        If the model fails.
    Interrupted
        If the user stops it.
    """
    found: list[Explanation] = []
    try:
        with progress_of(shown=progress)(len(things)) as done:
            for thing in things:
                found.append(explain(thing))
                done(1)
    except ModelError as error:
        error.partial = found
        raise
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped: {len(found)} of {len(things)} {name} are explained (in this error's partial)", found
        ) from None
    return found
