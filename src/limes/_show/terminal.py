"""Tables in the terminal: explanations, cards, whole effects; and the output of rich as plain text."""

from __future__ import annotations

import re
import sys
from functools import singledispatch
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from limes._explanation.attribution import has_coefficients
from limes._explanation.drawing import Card
from limes._explanation.fit import Effect, Effects, Interaction, account_at, leading
from limes._explanation.parts import sentences_of_parts
from limes._explanation.selection import by_size
from limes._explanation.view import (
    AROUND,
    MAX_FEATURES,
    Line,
    OutputView,
    RowView,
    coloured,
    heading_of,
    left_out,
    main_output,
    meaning,
    output_title,
    row_label,
    usual_is,
    view_row,
)
from limes._explanation.wording import (
    count,
    estimates,
    number,
    one_line,
    shorten,
    shorten_condition,
    signed_column,
)
from limes._show.inputs import drawn_parts, largest_size, pieces, shortened
from limes._show.series import columns, lanes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limes._arrays import Floats
    from limes._explanation import Explanation
    from limes._explanation.certain import CertainView
    from limes._show.inputs import Piece


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
    return Text(_encodable(text, "ascii"))


def _encodable(text: str, encoding: str) -> str:
    """Return text that print() can write without an error, whatever the names are."""
    if not encoding.lower().startswith("utf"):
        text = text.translate(_ASCII)
    return text.encode(encoding, "replace").decode(encoding)


def folded(text: str, width: int, between: str) -> str:
    """Fold a text behind separators of its parts, where it is wider; a part that is wider is not folded."""
    lines = [""]
    for part in text.replace(between, f"{between}\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def numbers_table(**options: Any) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", **options)


def drawn_card(card: Card) -> Group:
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


def drawn_rules(card: Card, width: int) -> Group:
    """Draw a card of rules in lines as wide as the terminal, folded between conditions, and their numbers."""
    parts = [Text(one_line(card.title), style="bold"), Text()]
    for rule, *numbers in card.rows:
        name, _, conditions = rule.partition(" ")
        *counted, answer = numbers
        margin = " " * (len(name) + 1)
        lines = folded(one_line(conditions), width - len(margin), " and ").replace("\n", f"\n{margin}")
        parts.append(Text(f"{name} {lines}"))
        parts.append(Text(f"{margin}->  {answer}", style="bold"))
        facts = "; ".join(f"{what}: {text}" for what, text in zip(card.columns[1:-1], counted, strict=True))
        parts.append(Text(margin + facts.replace("\n", f"\n{margin}"), style="dim"))
    parts += [Text()] if card.rows else []
    return Group(*parts, *(Text(one_line(remark), style="dim") for remark in card.remarks))


# -- explanations --------------------------------------------------------------------------------------------

MAX_OUTPUTS = 4
_LABELS = 27  # characters that condition and value need at least
_ROOM_FOR_BARS = 76  # narrower, the numbers alone
_LONGEST_TEXT = 1500  # characters
_STRONG, _WEAK = 0.3, 0.1  # of the largest coefficient
_HALF_BAR = 8  # characters to each side of zero
_ACCOUNT = 37  # characters of an account's table beside names, conditions and coefficients
_APART, _EDGES = 3, 2  # characters between two columns, and at the ends of a line
_LEAST_NAME = 12
_TITLED = re.compile(r"(?:P|log p)\((?P<P>.*)\)|(?:log-odds|margin|score) of (?P<of>.*)")
_LONGEST_TITLE = 41  # of a column, where a shorter one would be another's
_MOST_CHANNELS = 4  # of a series
_ERROR, _LEAST_COEFFICIENT = "± std. error", len("coefficient")
_RAISES, _LOWERS = "#d9564c", "#4c8fd6"  # red raises, blue lowers; safe for the colour-blind


def coloured_input(explanation: Explanation, width: int) -> Iterator[Text]:
    """Yield the coloured text or series that is explained, for the output with the largest prediction."""
    if len(explanation) == 0:
        return
    output = main_output(explanation, 0)
    one = coloured(explanation, 0, view_row(explanation, 0, 1, account=account_at(explanation, [0])))
    drawn: list[Text] = []
    for part, its in drawn_parts(one):
        lines = [*_coloured_text(its, output), *_coloured_series(its, output, width)]
        drawn += [Text(f"{shorten(part, 60)}:", style="dim")] * bool(part and lines) + lines
    if drawn and len(explanation.output_names) > 1:
        yield Text(f"coloured for {shorten(output_title(explanation, output), 40)}:", style="dim")
    yield from drawn


def _coloured_text(one: Explanation, output: int) -> Iterator[Text]:
    text_pieces = shortened(pieces(one, 0, output), _LONGEST_TEXT)
    if text_pieces:
        yield Text.assemble(*((piece.text, _shade(piece)) for piece in text_pieces))
        yield Text()


def _coloured_series(one: Explanation, output: int, width: int) -> Iterator[Text]:
    for lane in lanes(one, 0, output)[:_MOST_CHANNELS]:
        ends = [number(float(end), 3) for end in (lane.values.max(), lane.values.min())]
        margin = max(map(len, ends))
        rows, stretches, below = columns(lane, width - margin - 1)
        if lane.name:
            yield Text(shorten(one_line(lane.name), 60), style="dim")
        for i, row in enumerate(rows):
            label = {0: ends[0], len(rows) - 1: ends[1]}.get(i, "")
            line = Text.assemble((label.rjust(margin) + " ", "dim"))
            for block, stretch in zip(row, stretches, strict=True):
                is_seen = stretch is not None and stretch.strength >= _WEAK
                line.append(block, _colour(stretch.value) if stretch and is_seen else "bright_black")
            yield line
        yield Text(" " * (margin + 1) + below, style="dim")
        yield Text()


def _shade(piece: Piece) -> str:
    """Return a style: strong words on their colour, weaker ones written in it, the weakest plain."""
    if piece.strength < _WEAK:
        return ""
    colour = _colour(piece.value)
    return f"bold #000000 on {colour}" if piece.strength >= _STRONG else colour


def _colour(value: float) -> str:
    if value == 0 or np.isnan(value):
        return ""
    return _RAISES if value > 0 else _LOWERS


def table(explanation: Explanation, width: int, of: str = "") -> Group:
    """The first row: its contributions, where there are any, or the reading that is named."""
    if len(explanation) == 0:
        return Group(Text(repr(explanation)))
    account = explanation.contributions.at([0]) if of == "contributions" else None
    if not of and leading(explanation) == "contributions":
        account = account_at(explanation, [0])
    view = view_row(explanation, 0, len(explanation.feature_names), account=account)
    if view.certain is not None:
        return Group(
            *_certain_header(explanation, view),
            _certain(view.certain, width),
            *_remarks(explanation, view, []),
        )
    columns = _fitting([_Column(output) for output in view.outputs], width, main_output(explanation, 0))
    shown = [column.output for column in columns]
    if len(columns) > 1:
        body = _several(columns, width)
    else:
        body = _single(shown[0], width) if account is None else _account(shown[0], width)
    return Group(*_header(explanation, view, shown), body, *_remarks(explanation, view, shown))


def _certain_header(explanation: Explanation, view: RowView) -> Iterator[Text]:
    assert view.certain is not None  # noqa: S101 - of facts that hold for certain
    named = row_label(explanation, 0) if len(explanation) > 1 or explanation.ids != (0,) else ""
    head, title = f"{shorten(named, 44)}, " if named else "", output_title(explanation, 0)
    is_named = title == "prediction"
    yield Text(f"{head}{'' if is_named else f'{title}: '}{view.certain.answer}", style="bold")
    yield Text(view.rule, style="bold")


def _certain(certain: CertainView, width: int) -> RenderableType:
    """One line a fact: the fact, a row without it, and its answer."""
    if not certain.lines:
        return Text()
    grid = numbers_table()
    for name in certain.columns:
        grid.add_column(name)
    cells = [(line.fact, *line.without) for line in certain.lines]
    widths = [
        max(len(name), *(len(its[c]) for its in cells if len(its) > c))
        for c, name in enumerate(certain.columns)
    ]
    facts = min(widths[0], max(_LEAST_NAME, width // 3))
    room = width - _EDGES - facts - sum(widths[2:]) - _APART * (len(widths) - 1)
    for fact, *without in cells:
        texts = [folded(fact, facts, " and "), *without]
        texts[1:2] = [folded(text, max(room, _LEAST_NAME), ", ") for text in texts[1:2]]
        grid.add_row(*map(Text, texts))
    return grid


class _Column:
    """One output, and its contributions, or coefficients, in words by position of the feature."""

    def __init__(self, output: OutputView) -> None:
        texts = output.texts(significant=3) if output.base is None else output.account_texts()[0]
        self.output = output
        self.lines = {line.position: line for line in output.lines}
        self.sizes = {line.position: line.value for line in output.lines}
        self._texts = dict(zip(self.lines, texts, strict=False))
        self._numbers = max((len(f"{text} {error}".rstrip()) for text, error in texts), default=0)
        self.cut(16 if any(error for _, error in texts) else 11)

    def cut(self, longest: int) -> None:
        """Shorten the title; the line above the table says what the output is."""
        named = _TITLED.fullmatch(self.output.title)
        self.title = shorten(named["P"] or named["of"] if named else self.output.title, longest)
        self.width = max(len(self.title), self._numbers)

    def chosen(self, features: Sequence[int]) -> tuple[list[tuple[str, str]], list[float]]:
        """Numbers of some features with their errors in words, of all others behind them; and their sizes."""
        lines = [self.lines[j] for j in features]
        if self.output.base is None:
            texts, sizes = [self._texts[j] for j in features], [line.value for line in lines]
        else:
            texts, sizes = self.output.account_texts(lines)[0], self.output.shares(lines)
        return [(text, f" {error}" if error else "") for text, error in texts], sizes


def _fitting(columns: list[_Column], width: int, main: int) -> list[_Column]:
    """Return the main output and those with the largest predictions, as many as fit the width, in order."""
    room = width - _LABELS
    chosen: list[int] = []
    sizes = np.array([column.output.prediction for column in columns])
    sizes[[column.output.position == main for column in columns]] = np.inf
    for k in by_size(sizes):
        room -= columns[k].width + 2
        if chosen and (room < 0 or len(chosen) == MAX_OUTPUTS):
            break
        chosen.append(int(k))
    shown = [columns[k] for k in sorted(chosen)]
    for longest in range(12, _LONGEST_TITLE):
        is_full = sum(column.width + _APART for column in shown) >= width - _LABELS
        if is_full or len({column.title for column in shown}) == len(shown):
            break
        for column in shown:
            column.cut(longest)
    return shown


def _header(explanation: Explanation, view: RowView, outputs: list[OutputView]) -> Iterator[Text]:
    # a row alone that has only the number 0 has no name
    named = row_label(explanation, 0) if len(explanation) > 1 or explanation.ids != (0,) else ""
    if named and len(outputs) > 1:
        yield Text(f"{shorten(named, 60)}:", style="bold")
        named = ""
    for output in outputs:
        is_titled = output.titled.startswith(f"{output.title}:")
        head = f"{shorten(named, 44)}{',' if is_titled else ':'} " if named else ""
        yield Text(f"{head}{output.titled}", style="bold")
    if view.rule:
        yield Text(view.rule, style="bold")
    if view.account is None:
        yield Text(view.method, style="dim")


def _single(output: OutputView, width: int) -> Table:
    lines, bars = output.lines[:MAX_FEATURES], width >= _ROOM_FOR_BARS
    texts = output.texts(most=MAX_FEATURES)
    widths = [max(_LEAST_COEFFICIENT, *(len(text) for text, _ in texts), 0)]
    widths += [max(len(_ERROR), 0, *(len(error) for _, error in texts))] if output.sampled else []
    widths += [2 * _HALF_BAR + 1] if bars else []
    labels = _labels(lines, width - sum(widths) - _APART * (len(widths) + 1))
    grid = _grid()
    grid.add_column("coefficient", justify="right", no_wrap=True)
    if output.sampled:
        grid.add_column(_ERROR, no_wrap=True)
    if bars:
        grid.add_column("lowers" + " " * (2 * _HALF_BAR - 11) + "raises", no_wrap=True)
    reach = largest_size([line.drawn for line in lines])
    for line, label, (text, uncertain) in zip(lines, labels, texts, strict=True):
        cells = [Text(text, style=_colour(line.value))]
        cells += [Text(uncertain)] if output.sampled else []
        cells += [_signed_bar(line.drawn, reach)] if bars else []
        grid.add_row(*label, *cells)
    return grid


def _account(output: OutputView, width: int) -> Table:
    """One line a feature: the row's value, and what it contributes."""
    lines = output.lines[:MAX_FEATURES]
    shares, (texts, _) = output.shares(lines), output.account_texts(lines)
    reach = largest_size(shares)
    errors = _APART + max(len("± error"), 0, *(len(error) for _, error in texts)) if output.sampled else 0
    widest = min(48, max(width - _ACCOUNT - errors, _LEAST_NAME))
    names = [shorten_condition(line.holds, line.feature, widest) for line in lines]
    names += [output.others(lines)] * (len(shares) - len(lines))
    grid = numbers_table()
    grid.add_column(heading_of(output.where), min_width=10)
    grid.add_column("contribution", justify="right", no_wrap=True)
    if output.sampled:
        grid.add_column("± error", no_wrap=True)
    grid.add_column("lowers" + " " * (2 * _HALF_BAR - 11) + "raises", no_wrap=True)
    for name, share, (text, error) in zip(names, shares, texts, strict=True):
        cells = [Text(name, no_wrap=True, overflow="ellipsis"), Text(text, style=_colour(share))]
        cells += [Text(error)] if output.sampled else []
        grid.add_row(*cells, _signed_bar(share, reach))
    return grid


def _several(columns: list[_Column], width: int) -> Table:
    accounts = columns[0].output.base is not None
    grid = numbers_table() if accounts else _grid()
    if accounts:
        grid.add_column(heading_of(columns[0].output.where), min_width=12)
    for column in columns:
        grid.add_column(Text(column.title), justify="right", no_wrap=True)
    # the features with the largest numbers of any of the outputs
    sizes = np.abs([[column.sizes[j] for j in sorted(column.lines)] for column in columns])
    largest = np.where(np.isnan(sizes), -np.inf, sizes).max(axis=0)
    chosen = by_size(largest)[:MAX_FEATURES].tolist()
    each = [column.chosen(chosen) for column in columns]
    lines = [columns[0].lines[j] for j in chosen]
    room = width - sum(column.width + _APART for column in columns)
    labels = _labels(lines, room - _APART)
    for i, line in enumerate(lines):
        cells = [Text.assemble((texts[i][0], _colour(sizes[i])), texts[i][1]) for texts, sizes in each]
        holds = shorten_condition(line.holds, line.feature, min(40, max(room - _EDGES, _LEAST_NAME)))
        names = [Text(holds, no_wrap=True, overflow="ellipsis")]
        grid.add_row(*(names if accounts else labels[i]), *cells)
    others = columns[0].output.others([columns[0].lines[j] for j in chosen])
    if accounts and others:
        grid.add_row(others, *(Text(texts[-1][0], _colour(sizes[-1])) for texts, sizes in each))
    return grid


def _grid() -> Table:
    grid = numbers_table()
    grid.add_column("condition", min_width=12)
    grid.add_column("value", justify="right", min_width=5)
    return grid


def _labels(lines: Sequence[Line], room: int) -> list[tuple[Text, Text]]:
    """Conditions and values that fit into some characters: names are cut, edges and numbers are not."""
    values = [shorten(line.data, 16) for line in lines]
    width = max(room - max(len("value"), *map(len, values), 0) - _EDGES, _LEAST_COEFFICIENT)
    return [
        (
            Text(
                shorten_condition(line.condition, line.feature, min(width, 48)),
                no_wrap=True,
                overflow="ellipsis",
            ),
            Text(value, no_wrap=True, overflow="ellipsis"),
        )
        for line, value in zip(lines, values, strict=True)
    ]


def _signed_bar(value: float, reach: float) -> Text:
    """Return a bar to the left of a line for values below 0, to its right above; ``reach`` fills a side."""
    share = abs(value) / reach if reach and np.isfinite(value) else 0.0
    full, half = divmod(round(2 * _HALF_BAR * share), 2)
    left = "▐" * half + "█" * full if value < 0 else ""
    right = "█" * full + "▌" * half if value > 0 else ""
    return Text.assemble((left.rjust(_HALF_BAR), _LOWERS), ("│", "dim"), (right.ljust(_HALF_BAR), _RAISES))


def _remarks(explanation: Explanation, view: RowView, outputs: list[OutputView]) -> Iterator[Text]:
    for warning in view.warnings:
        yield Text(f"! {warning}", style="bold yellow")
    if len(explanation) > 1 and explanation.errors:
        yield Text(f"! {left_out(explanation)}", style="bold yellow")
    for sentence in view.certificate if view.certain is None else view.certain.sentences:
        yield Text(sentence)
    if view.certain is not None:
        yield Text(f"how it was made: {view.method}", style="dim")
    elif view.account is None:
        yield from _about_coefficients(explanation, outputs)
    else:
        yield from _about_contributions(explanation, view, outputs)
    if len(outputs) < len(view.outputs):
        yield Text(
            f"{len(outputs)} of {len(view.outputs)} outputs, with the largest predictions; "
            "any other: explanation[..., name]",
            style="dim",
        )
    if len(explanation) > 1:
        first = row_label(explanation, 0)
        yield Text(
            f"{first}, the first of {len(explanation):,}; any other: explanation[i], all: "
            f"{'limes.summary(explanation)' if view.certain is None else 'explanation.rules()'}",
            style="dim",
        )


def _about_contributions(
    explanation: Explanation, view: RowView, outputs: list[OutputView]
) -> Iterator[Text]:
    """Return what the numbers are, and how they were made; where LIME's are."""
    for output in outputs:
        for text in sentences_of_parts(explanation, output.position):
            yield Text(f"{output.title}: {text}" if len(outputs) > 1 else text)
    usual = "" if outputs[0].where != AROUND else f"usual: {usual_is(explanation)}; "
    error = "; ± is one standard error" if any(output.sampled for output in outputs) else ""
    points = ", in percentage points," if outputs[0].is_probability else ""
    yield Text(f"{usual}contributions{points} lead from there to the prediction{error}", style="dim")
    yield Text(f"how it was made: {view.method}", style="dim")
    if has_coefficients(explanation):
        yield Text("LIME's view: print(explanation.coefficients)", style="dim")


def _about_coefficients(explanation: Explanation, outputs: list[OutputView]) -> Iterator[Text]:
    for output in outputs:
        for sentence in filter(None, (output.remark, output.surrogate_line)):
            yield Text(f"{output.title}: {sentence}" if len(outputs) > 1 else sentence, style="dim")
    yield Text(f"coefficient: {meaning(explanation)}", style="dim")
    hidden = len(outputs[0].lines) - MAX_FEATURES
    if hidden > 0:
        yield Text(f"{count(hidden, 'further feature')} in .to_frame(of='coefficients')", style="dim")


# -- whole effects -------------------------------------------------------------------------------------------

_MOST_LINES = 30


@singledispatch
def effect_card(effects: Effect | Effects | Interaction) -> Card:
    raise NotImplementedError(type(effects).__name__)


@effect_card.register
def _(effect: Effect) -> Card:
    reach = largest_size(effect.values)
    sampled = bool(effect.standard_errors.any())
    texts = _texts(effect.values, effect.standard_errors if sampled else None)
    lines = zip(effect.cells, effect.masses.tolist(), texts, effect.values.tolist(), strict=True)
    return Card(
        title=f"effect of {effect.feature}{_on(effect.output)}: {effect.share:.0%} of the variance",
        columns=["cell", "mass", "effect", *(["± std. error"] if sampled else []), "", ""],
        rows=[
            [
                cell,
                f"{mass:.0%}",
                *(text if sampled else text[:1]),
                _signed_bar(value, reach).plain,
                "the row" if b == effect.current else "",
            ]
            for b, (cell, mass, text, value) in enumerate(lines)
        ][:_MOST_LINES],
        bars=3 + sampled,
        strong=effect.current if effect.current < _MOST_LINES else None,
        remarks=("effect: the model's average in the cell, less its average around the row",),
    )


@effect_card.register
def _(effects: Effects) -> Card:
    shown = [effect for effect in effects if effect.output in effects.shown_outputs] or [*effects]
    entries = sorted(shown, key=lambda effect: -np.nan_to_num(effect.share))[:_MOST_LINES]
    current = np.array([effect.values[effect.current] for effect in entries])
    reach = max((largest_size(effect.values) for effect in entries), default=0.0)
    ends = ([end.reduce(effect.values) for effect in entries] for end in (np.fmin, np.fmax))
    numbers = [[text for text, _ in _texts(np.array(column))] for column in (*ends, current)]
    rows, names = len({effect.row for effect in effects}), len({effect.feature for effect in effects})
    outputs = len({effect.output for effect in shown})
    of_rows = f" around {count(rows, 'row')}" if rows > 1 else ""
    on_output = _on(shown[0].output) if outputs == 1 and len(shown) < len(effects) else ""
    hidden = max(0, len(shown) - _MOST_LINES)
    which = [name for name, number in (("row", rows), ("output", outputs)) if number > 1]
    return Card(
        title=f"whole effects of {count(names, 'column')}{on_output}{of_rows}, those that explain most first",
        columns=[*which, "column", "share", "lowest", "highest", "at the row", ""],
        rows=[
            [
                *(str(getattr(effect, name)) for name in which),
                effect.cells[effect.current],
                f"{effect.share:.1%}",
                *texts,
                _signed_bar(value, reach).plain,
            ]
            for effect, texts, value in zip(
                entries, zip(*numbers, strict=True), current.tolist(), strict=True
            )
        ],
        bars=5 + len(which),
        remarks=(
            "share: of the model's variance around the row",
            "lowest, highest: of the effects of the column's cells",
            *([f"{hidden:,} smaller ones are not shown: .effects[i]"] if hidden else []),
        ),
    )


@effect_card.register
def _(pair: Interaction) -> Card:
    first, second = pair.cells
    texts = iter(_texts(pair.values.reshape(-1)))
    names = " and ".join(pair.features)
    return Card(
        title=f"{names}{_on(pair.output)}: {pair.share:.1%} of the variance beyond their effects",
        columns=["", *second, ""],
        rows=[
            [cell, *(next(texts)[0] for _ in second), "the row" if b == pair.current[0] else ""]
            for b, cell in enumerate(first)
        ],
        strong=pair.current[0],
        remarks=(f"the row: {first[pair.current[0]]} and {second[pair.current[1]]}",),
    )


def _on(output: str) -> str:
    return "" if output == "output" else f" on {output}"


def _texts(values: Floats, errors: Floats | None = None) -> list[tuple[str, str]]:
    """Write a column of numbers, with their errors if they have some; "?" for cells with too few rows."""
    finite = np.isfinite(values)
    if errors is None:
        written = [(text, "") for text in signed_column(values[finite].tolist())]
    else:
        written = estimates(values[finite].tolist(), errors[finite].tolist())
    texts = iter(written)
    return [next(texts) if number else ("?", "") for number in finite.tolist()]
