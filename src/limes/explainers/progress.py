"""A progress bar for long work, and none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from limes.pipeline import Progress


def progress_of(*, shown: bool) -> Progress:
    """A bar that appears when work takes more than a second, or nothing at all."""
    return _bar if shown else _nothing


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], object]]:
    if total == 1:
        yield _unheard
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="explaining", delay=1.0, unit_scale=True) as bar:
        yield bar.update


def _nothing(total: int) -> nullcontext[Callable[[int], object]]:  # noqa: ARG001 - nobody is told
    return nullcontext(_unheard)


def _unheard(done: int) -> None:
    pass
