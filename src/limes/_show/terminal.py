"""An explanation in the terminal: a table of one row, a line in words; and rich's output as plain text."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from limes._explanation.selection import by_size
from limes._explanation.view import (
    Line,
    OutputView,
    RowView,
    coefficient_texts,
    headline,
    left_out,
    main_output,
    meaning,
    method_line,
    output_title,
    row_label,
    view_row,
)
from limes._explanation.wording import count, one_line, shorten
from limes._show.texts import pieces, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limes._explanation import Explanation
    from limes._explanation.drawing import Card
    from limes._show.texts import Piece


# For terminals and files that cannot encode them
_ASCII = str.maketrans({**dict.fromkeys("█▐▌", "#"), "│": "|", "─": "-", "…": "~", "±": "+-"})


def plain_text(draw: Callable[[int], RenderableType], widest: int | None = None) -> str:
    """Return ``draw(width)`` as text without colours, as wide as the terminal, up to a limit."""
    console = Console(file=StringIO(), force_terminal=False, color_system=None)
    if widest is not None:
        console.width = min(console.width, widest)
    with console.capture() as capture:
        console.print(draw(console.width))
    text = "\n".join(line.rstrip() for line in capture.get().splitlines())
    return _encodable(text, getattr(sys.stdout, "encoding", None) or "utf-8")


def ascii_text(text: str) -> Text:
    """Return plain text for terminals that print ASCII only."""
    return Text(_encodable(text, "ascii"))


def _encodable(text: str, encoding: str) -> str:
    """Return text that print() can write without an error, whatever the names are."""
    if not encoding.lower().startswith("utf"):
        text = text.translate(_ASCII)
    return text.encode(encoding, "replace").decode(encoding)


def drawn_card(card: Card) -> Group:
    """Return the card for rich to print."""
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


MAX_FEATURES = 10
MAX_OUTPUTS = 4
_LABELS = 27  # characters that condition and value need at least
_ROOM_FOR_BARS = 76  # narrower, the numbers alone
_LONGEST_TEXT = 1500  # characters
_STRONG, _WEAK = 0.3, 0.1  # of the largest coefficient
_HALF_BAR = 8  # characters to each side of zero
_RAISES, _LOWERS = "#d9564c", "#4c8fd6"  # red raises, blue lowers; safe for the colour-blind


def coloured_text(explanation: Explanation) -> Iterator[Text]:
    """Yield the coloured text of an explained text, for the output with the largest prediction."""
    if len(explanation) == 0:
        return
    output = main_output(explanation, 0)
    coloured = shortened(pieces(explanation, 0, output), _LONGEST_TEXT)
    if not coloured:
        return
    if len(explanation.output_names) > 1:
        yield Text(f"coloured for {shorten(output_title(explanation, output), 40)}:", style="dim")
    text = Text()
    for piece in coloured:
        text.append(piece.text, _shade(piece))
    yield text
    yield Text()


def _shade(piece: Piece) -> str:
    """Return a style: strong words on their colour, weaker ones written in it, the weakest plain."""
    if piece.strength < _WEAK:
        return ""
    colour = _RAISES if piece.value > 0 else _LOWERS
    return f"bold #000000 on {colour}" if piece.strength >= _STRONG else colour


def table(explanation: Explanation, width: int) -> Group:
    """Return header, table and remarks of the first row, for rich to print."""
    if len(explanation) == 0:
        return Group(Text(repr(explanation)))
    sampled = explanation.method == "sampled"
    view = view_row(explanation, 0, max_features=explanation.values.shape[1])
    columns = _fitting([_Column.from_output(output, sampled=sampled) for output in view.outputs], width)
    body = (
        _single(columns[0].output, sampled=sampled, bars=width >= _ROOM_FOR_BARS)
        if len(columns) == 1
        else _several(columns)
    )
    return Group(*_header(explanation, view, columns), body, *_remarks(explanation, view, columns))


@dataclass(frozen=True)
class _Column:
    """One output with its numbers in words, by position of the feature."""

    output: OutputView
    lines: dict[int, Line]
    coefficients: dict[int, str]
    errors: dict[int, str]

    @classmethod
    def from_output(cls, output: OutputView, *, sampled: bool) -> _Column:
        positions = [line.position for line in output.lines]
        texts = coefficient_texts(output.lines, sampled=sampled, significant=3)
        coefficients, errors = [text for text, _ in texts], [f" {e}" if e else "" for _, e in texts]
        return cls(
            output,
            dict(zip(positions, output.lines, strict=True)),
            dict(zip(positions, coefficients, strict=True)),
            dict(zip(positions, errors, strict=True)),
        )

    @property
    def title(self) -> str:
        return shorten(self.output.title, 16 if any(self.errors.values()) else 11)

    @property
    def width(self) -> int:
        cells = (len(self.coefficients[j]) + len(self.errors[j]) for j in self.lines)
        return max(len(self.title), *cells) if self.lines else len(self.title)


def _fitting(columns: list[_Column], width: int) -> list[_Column]:
    """Return the outputs with the largest predictions that fit the width, in their order."""
    room = width - _LABELS
    chosen: list[int] = []
    for k in by_size(np.array([column.output.prediction for column in columns])):
        room -= columns[k].width + 2
        if chosen and (room < 0 or len(chosen) == MAX_OUTPUTS):
            break
        chosen.append(int(k))
    return [columns[k] for k in sorted(chosen)]


def _header(explanation: Explanation, view: RowView, columns: list[_Column]) -> Iterator[Text]:
    for output in (column.output for column in columns):
        # "prediction: prediction 199.6" says nothing: a single unnamed output is named by its row
        title = f"row {explanation.ids[0]}" if output.title == "prediction" else output.title
        yield Text.assemble((shorten(title, 40), "bold"), f": {headline(output)}")
    if view.rule:
        yield Text(view.rule, style="bold")
    yield Text(method_line(explanation, view.calls, view.shared_calls), style="dim")


def _single(output: OutputView, *, sampled: bool, bars: bool) -> Table:
    lines = output.lines[:MAX_FEATURES]
    grid = _grid()
    grid.add_column("coefficient", justify="right", no_wrap=True)
    if sampled:
        grid.add_column("± std. error", no_wrap=True)
    if bars:
        grid.add_column("lowers" + " " * (2 * _HALF_BAR - 11) + "raises", no_wrap=True)
    reach = max((abs(v) for line in lines if np.isfinite(v := line.drawn)), default=0.0)
    for line, (text, uncertain) in zip(lines, coefficient_texts(lines, sampled=sampled), strict=True):
        cells = [Text(text, style=_colour(line.value))]
        cells += [Text(uncertain)] if sampled else []
        cells += [signed_bar(line.drawn, reach)] if bars else []
        grid.add_row(*_labels(line), *cells)
    return grid


def _several(columns: list[_Column]) -> Table:
    grid = _grid()
    for column in columns:
        grid.add_column(Text(column.title), justify="right", no_wrap=True)
    for j in _largest_positions(columns):
        cells = [Text.assemble((c.coefficients[j], _colour(c.lines[j].value)), c.errors[j]) for c in columns]
        grid.add_row(*_labels(columns[0].lines[j]), *cells)
    return grid


def _largest_positions(columns: list[_Column]) -> list[int]:
    """Return the features with the largest coefficients of any of the outputs."""
    sizes = np.abs([[column.lines[j].value for j in sorted(column.lines)] for column in columns])
    largest = np.where(np.isnan(sizes), -np.inf, sizes).max(axis=0)
    return [int(j) for j in by_size(largest)[:MAX_FEATURES]]


def _grid() -> Table:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    grid.add_column("condition", min_width=12)
    grid.add_column("value", justify="right", min_width=5)
    return grid


def _labels(line: Line) -> tuple[Text, Text]:
    # Only these two shrink in a narrow terminal; numbers are never cut.
    return (
        Text(shorten(line.condition, 48), no_wrap=True, overflow="ellipsis"),
        Text(shorten(line.data, 16), no_wrap=True, overflow="ellipsis"),
    )


def _colour(value: float) -> str:
    if value == 0 or np.isnan(value):
        return ""
    return _RAISES if value > 0 else _LOWERS


def signed_bar(value: float, reach: float) -> Text:
    """Return a bar to the left of a line for values below 0, to its right above; ``reach`` fills a side."""
    share = abs(value) / reach if reach and np.isfinite(value) else 0.0
    full, half = divmod(round(2 * _HALF_BAR * share), 2)
    left = "▐" * half + "█" * full if value < 0 else ""
    right = "█" * full + "▌" * half if value > 0 else ""
    return Text.assemble((left.rjust(_HALF_BAR), _LOWERS), ("│", "dim"), (right.ljust(_HALF_BAR), _RAISES))


def _remarks(explanation: Explanation, view: RowView, columns: list[_Column]) -> Iterator[Text]:
    for warning in view.warnings:
        yield Text(f"! {warning}", style="bold yellow")
    for output in (column.output for column in columns):
        named = f"{output.title}: " if len(columns) > 1 else ""
        if output.fits_poorly:
            yield Text(f"! {named}{output.remark}", style="bold yellow")
        elif output.remark:
            yield Text(f"{named}{output.remark}")
    for sentence in view.certificate:
        yield Text(sentence)
    yield Text(f"coefficient: {meaning(explanation)}", style="dim")
    hidden = len(columns[0].lines) - MAX_FEATURES
    if hidden > 0:
        yield Text(f"{count(hidden, 'further feature')} in .to_frame()", style="dim")
    if len(columns) < len(view.outputs):
        yield Text(
            f"{len(columns)} of {len(view.outputs)} outputs, with the largest predictions; "
            "any other: explanation[..., name]",
            style="dim",
        )
    if len(explanation) > 1 and explanation.errors:
        yield Text(f"! {left_out(explanation)}", style="bold yellow")
    if len(explanation) > 1:
        first = row_label(explanation, 0)
        yield Text(f"{first}, the first of {len(explanation):,}; any other: explanation[i]", style="dim")
