"""A contrast as a card: which columns change, to what, and whether fewer are proved not to be enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limes._explanation.wording import cell, number, one_line
from limes._show import cards

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

    from limes._explanation.contrast import Contrast


def sentence(contrast: Contrast) -> str:
    """Return the contrast in one sentence."""
    goal = f"{'fall below' if contrast.side == 'below' else 'rise above'} {number(contrast.threshold)}"
    name = "the output" if contrast.output == "output" else f"“{one_line(contrast.output)}”"
    if not contrast.reached:
        who = "No row of background values makes" if contrast.proved else "No row that was tried makes"
        return f"{who} {name} {goal}; it is {number(contrast.prediction)}."
    if not contrast.changes:
        side = f"{contrast.side} {number(contrast.threshold)}"
        return f"{name[0].upper()}{name[1:]} is {number(contrast.prediction)}, {side} already."
    changes = " and ".join(
        f"{one_line(change.feature)} from {cell(change.value)} to {cell(change.new_value)}"
        for change in contrast.changes
    )
    return (
        f"For {name} to {goal}, change {changes}: it is {number(contrast.prediction)}, and becomes "
        f"{number(contrast.new_prediction)}."
    )


def one_line_summary(contrast: Contrast) -> str:
    """Return the sentence, in brackets."""
    return f"<Contrast: {sentence(contrast)}>"


def card(contrast: Contrast) -> cards.Card:
    """Return the changes as a table."""
    return cards.Card(
        title="Contrast",
        subtitle=sentence(contrast),
        columns=("column", "now", "then", "which is") if contrast.changes else (),
        rows=[
            (
                one_line(change.feature),
                cell(change.value),
                cell(change.new_value),
                one_line(change.new_condition),
            )
            for change in contrast.changes
        ],
        remarks=(_proof(contrast),),
    )


def _proof(contrast: Contrast) -> str:
    if not (contrast.proved or contrast.reached):
        return f"Not proved: {contrast.reason}."
    if not contrast.proved:
        return f"Not proved to be the fewest columns: {contrast.reason}."
    if not contrast.reached:
        return "Proved by bounds of the model over all background values."
    return "Proved to be the fewest columns, whatever background values they take."


def plain_text(contrast: Contrast) -> str:
    """Return the printed text, without colours."""
    return cards.plain_text(card(contrast))


def printed(contrast: Contrast, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return cards.printed(card(contrast), options)
