"""A suggested design of a table's explainer as a card: what was compared, the winner in bold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.wording import estimate
from limes._show import cards
from limes._show.cards import Card

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType


def plain_text(suggestion: Any) -> str:
    """Return the printed text, without colours."""
    return cards.plain_text(card(suggestion))


def printed(suggestion: Any, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return cards.printed(card(suggestion), options)


def card(suggestion: Any) -> Card:
    """Return the designs and their numbers."""
    columns = (
        suggestion.names,
        suggestion.fidelity.tolist(),
        suggestion.fidelity_errors.tolist(),
        suggestion.own_fidelity.tolist(),
        suggestion.noise.tolist(),
        suggestion.locality.tolist(),
    )
    return Card(
        title=f"suggested design: {suggestion.name}",
        subtitle=suggestion.reason,
        columns=["design", "R²", "own R²", "noise", "locality"],
        rows=[
            [
                name,
                " ".join(filter(None, estimate(r2, error))),
                f"{in_law:.3f}",
                f"{noise:.0%}",
                "" if np.isnan(locality) else f"{locality:.0%}",
            ]
            for name, r2, error, in_law, noise, locality in zip(*columns, strict=True)
        ],
        strong=suggestion.names.index(suggestion.name),
        remarks=(
            "R²: of the surrogate on common draws. own R²: under the design's own law.",
            "noise: standard error of lime's own fit to 5,000 rows, as a share of the coefficients. "
            "locality: share of the row's conditions that hold in a perturbed row.",
        ),
    )
