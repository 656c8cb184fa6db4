"""Progress bars, which go when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any, Protocol

# Where there is neither a terminal nor a notebook, every refresh is a line of a log
_LOG_SECONDS = 30.0
# The bar of an explainer counts what takes time: rows, or calls of the model
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit} [{elapsed}, {remaining} left]"


class Progress(Protocol):
    """Makes a progress bar, or nothing."""

    def __call__(self, total: int, unit: str = "rows", /) -> AbstractContextManager[Callable[[int], object]]:
        """Return a context whose value is called with numbers of finished steps, ``total`` in all."""
        ...


def progress_bar(total: int, what: str, *, unit: str, shown: bool = True, **options: Any) -> Any:
    """Return tqdm's bar for work that takes more than a second, of notebooks or of terminals."""
    options = {"delay": 1.0, "leave": False, **options}
    return tqdm_class()(total=total, desc=what, unit=unit, disable=not shown, **options)


def tqdm_class() -> Any:
    """Return the bar of this place: text in a notebook without ipywidgets, where tqdm.auto would warn."""
    if "ipykernel" in sys.modules and find_spec("ipywidgets") is None:
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm


def progress_of(*, shown: bool) -> Progress:
    """Return a bar that appears when work takes more than a second, or no bar."""
    return _bar if shown else _no_bar


@contextmanager
def _bar(total: int, unit: str = "rows", /) -> Iterator[Callable[[int], object]]:
    if total == 1:
        yield _ignore
        return
    live = sys.stderr.isatty() or "ipykernel" in sys.modules
    interval = 0.1 if live else _LOG_SECONDS
    with progress_bar(total, "explaining", unit=unit, bar_format=_FORMAT, mininterval=interval) as bar:
        yield bar.update


def _no_bar(total: int, unit: str = "rows", /) -> nullcontext[Callable[[int], object]]:  # noqa: ARG001 - one signature
    return nullcontext(_ignore)


def _ignore(count: int) -> None:
    pass
