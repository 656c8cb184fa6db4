"""Effects and interactions as cards: the curve of a column, the columns of a row, the cells of a pair."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.effects import Effect, Effects, Interaction
from limes._explanation.wording import count, estimates, signed_column
from limes._show import cards
from limes._show.cards import Card
from limes._show.terminal import signed_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import ConsoleOptions, RenderableType

    from limes._arrays import Floats

_MOST_LINES = 30


def plain_text(effects: Effect | Effects | Interaction) -> str:
    """Return the printed text, without colours."""
    return cards.plain_text(card(effects))


def printed(effects: Effect | Effects | Interaction, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return cards.printed(card(effects), options)


@singledispatch
def card(effects: Effect | Effects | Interaction) -> Card:
    """Return numbers, bars and their meaning."""
    raise NotImplementedError(type(effects).__name__)


@card.register
def _(effect: Effect) -> Card:
    reach = _largest([effect.values])
    exact = not effect.standard_errors.any()
    values, errors = effect.values.tolist(), effect.standard_errors.tolist()
    texts = [(text, "") for text in _signed(effect.values)] if exact else _estimated(values, errors)
    lines = zip(effect.cells, effect.masses.tolist(), texts, values, strict=True)
    return Card(
        title=f"effect of {effect.feature}{_on(effect.output)}: {effect.share:.0%} of the variance",
        columns=["cell", "mass", "effect", *([] if exact else ["± std. error"]), "", ""],
        rows=[
            [
                cell,
                f"{mass:.0%}",
                text,
                *([] if exact else [uncertain]),
                signed_bar(value, reach).plain,
                "the row" if b == effect.current else "",
            ]
            for b, (cell, mass, (text, uncertain), value) in enumerate(lines)
        ][:_MOST_LINES],
        bars=4 - exact,
        strong=effect.current if effect.current < _MOST_LINES else None,
        remarks=("effect: the model's average in the cell, less its average around the row",),
    )


@card.register
def _(effects: Effects) -> Card:
    shown = [effect for effect in effects if effect.output in effects.shown_outputs] or [*effects]
    entries = sorted(shown, key=lambda effect: -np.nan_to_num(effect.share))[:_MOST_LINES]
    current = [effect.values[effect.current] for effect in entries]
    reach = _largest([effect.values for effect in entries])
    low, high = ([end.reduce(effect.values) for effect in entries] for end in (np.fmin, np.fmax))
    numbers = [_signed(np.array(column)) for column in (low, high, current)]
    rows, names = len({effect.row for effect in effects}), len({effect.feature for effect in effects})
    outputs = len({effect.output for effect in shown})
    of_rows = f" around {count(rows, 'row')}" if rows > 1 else ""
    on_output = _on(shown[0].output) if outputs == 1 and len(shown) < len(effects) else ""
    hidden = max(0, len(shown) - _MOST_LINES)
    return Card(
        title=f"whole effects of {count(names, 'column')}{on_output}{of_rows}, those that explain most first",
        columns=[
            *(["row"] if rows > 1 else []),
            *(["output"] if outputs > 1 else []),
            "column",
            "share",
            "lowest",
            "highest",
            "at the row",
            "",
        ],
        rows=[
            [
                *([str(effect.row)] if rows > 1 else []),
                *([effect.output] if outputs > 1 else []),
                effect.cells[effect.current],
                f"{effect.share:.1%}",
                *texts,
                signed_bar(value, reach).plain,
            ]
            for effect, texts, value in zip(entries, zip(*numbers, strict=True), current, strict=True)
        ],
        bars=5 + (rows > 1) + (outputs > 1),
        remarks=(
            "share: of the model's variance around the row",
            "lowest, highest: of the effects of the column's cells",
            *([f"{hidden:,} smaller ones are not shown: .effects[i]"] if hidden else []),
        ),
    )


@card.register
def _(pair: Interaction) -> Card:
    first, second = pair.cells
    texts = iter(_signed(pair.values.reshape(-1)))
    names = " and ".join(pair.features)
    return Card(
        title=f"{names}{_on(pair.output)}: {pair.share:.1%} of the variance beyond their effects",
        columns=["", *second, ""],
        rows=[
            [cell, *(next(texts) for _ in second), "the row" if b == pair.current[0] else ""]
            for b, cell in enumerate(first)
        ],
        strong=pair.current[0],
        remarks=(f"the row: {first[pair.current[0]]} and {second[pair.current[1]]}",),
    )


def _on(output: str) -> str:
    return "" if output == "output" else f" on {output}"


def _largest(values: Sequence[Floats]) -> float:
    numbers = np.concatenate([np.abs(array[np.isfinite(array)]) for array in values])
    return float(numbers.max(initial=0.0))


def _estimated(values: list[float], errors: list[float]) -> list[tuple[str, str]]:
    """Write a column of numbers with their errors; "?" for cells with too few rows."""
    finite = [i for i, value in enumerate(values) if np.isfinite(value)]
    texts = estimates([values[i] for i in finite], [errors[i] for i in finite])
    written = dict(zip(finite, texts, strict=True))
    return [written.get(i, ("?", "")) for i in range(len(values))]


def _signed(values: Floats) -> list[str]:
    """Write a column of numbers; "?" for cells with too few rows."""
    texts = iter(signed_column(values[np.isfinite(values)].tolist()))
    return [next(texts) if finite else "?" for finite in np.isfinite(values).tolist()]
