"""The text of an explanation, in pieces with the coefficients of their words.

Explanations of texts say in their provenance what the text is, and where the words of each condition stand.
Terminal, HTML and plots colour the pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limes.show.view import with_outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limes.explanation import Explanation

# Fainter than this share of the largest coefficient, a word is not coloured
FAINTEST = 0.04


@dataclass(frozen=True)
class Piece:
    """A part of a text; ``value`` is the coefficient of a word, nan of what stands between words.

    ``strength`` is its size as a share of the largest, 0 where there is nothing to be coloured.
    """

    text: str
    value: float
    strength: float


def pieces(explanation: Explanation, row: int, output: int) -> tuple[Piece, ...]:
    """Return the text in pieces, () if the explanation is not of a text."""
    text, spans = explanation.provenance.get("text"), explanation.provenance.get("spans")
    if not (isinstance(text, str) and isinstance(spans, dict)):
        return ()
    values = with_outputs(explanation.values, explanation)[row, :, output]
    largest = max((abs(v) for v in values.tolist() if np.isfinite(v)), default=0.0)
    places = sorted(
        (start, end, float(value))
        for condition, value in zip(explanation.conditions[row], values, strict=True)
        for start, end in spans.get(condition, ())
    )
    return tuple(_cut(text, places, largest))


def _cut(text: str, places: list[tuple[int, int, float]], largest: float) -> Iterator[Piece]:
    at = 0
    for start, end, value in places:
        if at < start:
            yield _piece(text[at:start], float("nan"), 0.0)
        share = abs(value) / largest if largest and np.isfinite(value) else 0.0
        yield _piece(text[start:end], value, share if share >= FAINTEST else 0.0)
        at = end
    if at < len(text):
        yield _piece(text[at:], float("nan"), 0.0)


def _piece(text: str, value: float, strength: float) -> Piece:
    """Line ends stay; other control characters are spaces: texts are data, never commands."""
    return Piece("".join(c if c.isprintable() or c == "\n" else " " for c in text), value, strength)


def shortened(found: tuple[Piece, ...], longest: int) -> tuple[Piece, ...]:
    """Return the first pieces of a text that is too long."""
    room = longest
    kept: list[Piece] = []
    for piece in found:
        if len(piece.text) > room:
            return (*kept, Piece("…", float("nan"), 0.0))
        room -= len(piece.text)
        kept.append(piece)
    return tuple(kept)
