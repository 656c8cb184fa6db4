"""How data is drawn: a class names the module of ``limes.show`` that draws it.

``limes.show`` imports the classes that it draws, explanations and diagnoses; they do not import it. Here, and
only here, its modules are looked up by name, when something is drawn for the first time.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


def drawer(medium: str) -> Any:
    """Return the module of ``limes.show`` that draws on a medium: "terminal", "html", "plots", ..."""
    return import_module(f"limes.show.{medium}")


def write_text(text: str, path: str | Path | None) -> str:
    """Return the text, and write it to `path` if given."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


class Printable:
    """Data with a terminal drawing: ``plain_text(data)`` and ``printed(data, options)`` of one module."""

    _terminal: ClassVar[str]

    def __str__(self) -> str:
        return str(drawer(self._terminal).plain_text(self))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield drawer(self._terminal).printed(self, options)


class Page(Printable):
    """Data with a page as well: ``page(data)`` and ``fragment(data)``, and ``one_line_summary(data)``."""

    _html: ClassVar[str]

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained page with pictures, and write it to `path` if given."""
        return write_text(drawer(self._html).page(self), path)

    def _repr_html_(self) -> str:
        return str(drawer(self._html).fragment(self))

    def __repr__(self) -> str:
        return str(drawer(self._terminal).one_line_summary(self))
