"""What rich prints as plain text: without colours, and in characters that the terminal can encode."""

from __future__ import annotations

import sys
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType
    from rich.text import Text

# For terminals and files that cannot encode them
_ASCII = str.maketrans({**dict.fromkeys("█▐▌", "#"), "│": "|", "─": "-", "…": "~", "±": "+-"})


def captured(draw: Callable[[int], RenderableType], widest: int | None = None) -> str:
    """Return ``draw(width)`` as text without colours, as wide as the terminal, up to a limit."""
    from rich.console import Console

    console = Console(file=StringIO(), force_terminal=False, color_system=None)
    if widest is not None:
        console.width = min(console.width, widest)
    with console.capture() as capture:
        console.print(draw(console.width))
    text = "\n".join(line.rstrip() for line in capture.get().splitlines())
    return _encodable(text, getattr(sys.stdout, "encoding", None) or "utf-8")


def ascii_text(text: str) -> Text:
    """Return plain text for terminals that print ASCII only."""
    from rich.text import Text

    return Text(_encodable(text, "ascii"))


def _encodable(text: str, encoding: str) -> str:
    """Return text that print() can write without an error, whatever the names are."""
    if not encoding.lower().startswith("utf"):
        text = text.translate(_ASCII)
    return text.encode(encoding, "replace").decode(encoding)
