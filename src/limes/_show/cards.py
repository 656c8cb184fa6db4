"""A card: a title, facts, a table and remarks, which terminals and notebooks draw alike.

Objects without a picture are drawn as cards: explainers, certificates, summaries, suggested bandwidths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limes._explanation.wording import one_line
from limes._show.html import render
from limes._show.terminal import ascii_text, captured

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, Group, RenderableType


@dataclass(frozen=True, kw_only=True)
class Card:
    """The content of a card: rows of the table are as long as its columns.

    The row ``strong`` stands out; the column ``bars`` is drawn with characters of one width.
    """

    title: str
    subtitle: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    strong: int | None = None
    bars: int | None = None
    remarks: Sequence[str] = ()


def fragment(card: Card) -> str:
    """Return a part of a page whose style touches nothing outside itself."""
    return render("card.html", {"card": card, "texts": len(card.rows[0]) <= 3 if card.rows else True})


def plain_text(card: Card) -> str:
    """Return the printed text, without colours."""
    return captured(lambda _: drawn(card))


def printed(card: Card, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return ascii_text(plain_text(card)) if options.ascii_only else drawn(card)


def drawn(card: Card) -> Group:
    """Return the card for rich to print."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(one_line(card.title), style="bold")]
    if card.subtitle:
        parts.append(Text(one_line(card.subtitle)))
    if card.rows:
        head = any(card.columns)
        table = Table(box=box.SIMPLE_HEAD if head else box.SIMPLE, pad_edge=False, show_header=head)
        for name in card.columns or [""] * len(card.rows[0]):
            table.add_column(name)
        for place, row in enumerate(card.rows):
            table.add_row(*map(Text, row), style="bold" if place == card.strong else "")
        parts.append(table)
    return Group(*parts, *(Text(one_line(remark), style="dim") for remark in card.remarks))
