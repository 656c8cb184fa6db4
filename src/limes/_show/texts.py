"""The text of an explanation, in pieces with the coefficients of their words, and its picture.

The provenance of a text's explanation holds the text and the positions of each condition's words. Terminal,
HTML and plots colour the pieces; matplotlib draws them on a grid of characters of one width.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.view import with_outputs
from limes._show.axes import LOWERS, RAISES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.patches import PathPatch

    from limes._explanation import Explanation

# Fainter than this share of the largest coefficient, a word is not coloured
FAINTEST = 0.04
_COLUMNS = 84
_MOST_LINES = 60
_WIDTH = 0.602  # of a character, in units of the font's size


@dataclass(frozen=True)
class Piece:
    """A part of a text; ``value`` and ``error`` are a word's coefficient and its error, nan between words.

    ``strength`` is its size as a share of the largest, 0 for parts that are not coloured; ``feature`` is the
    position of the word's coefficient, -1 between words.
    """

    text: str
    value: float
    strength: float
    feature: int = -1
    error: float = float("nan")


def pieces(explanation: Explanation, row: int, output: int) -> tuple[Piece, ...]:
    """Return the text in pieces, () if the explanation is not of a text."""
    text, spans = explanation.provenance.get("text"), explanation.provenance.get("spans")
    if not (isinstance(text, str) and isinstance(spans, dict)):
        return ()
    values, errors = (
        with_outputs(numbers, explanation)[row, :, output]
        for numbers in (explanation.values, explanation.standard_errors)
    )
    largest = max((abs(v) for v in values.tolist() if np.isfinite(v)), default=0.0)
    words = sorted(
        (start, end, value, error, feature)
        for feature, (condition, value, error) in enumerate(
            zip(explanation.conditions[row], values.tolist(), errors.tolist(), strict=True)
        )
        for start, end in spans.get(condition, ())
    )
    return tuple(_cut(text, words, largest))


def _cut(text: str, words: list[tuple[int, int, float, float, int]], largest: float) -> Iterator[Piece]:
    position = 0
    for start, end, value, error, feature in words:
        if position < start:
            yield _piece(text[position:start], float("nan"), 0.0)
        share = abs(value) / largest if largest and np.isfinite(value) else 0.0
        yield _piece(text[start:end], value, share if share >= FAINTEST else 0.0, error, feature)
        position = end
    if position < len(text):
        yield _piece(text[position:], float("nan"), 0.0)


def _piece(text: str, value: float, strength: float, error: float = float("nan"), feature: int = -1) -> Piece:
    """Keep line ends, replace other control characters by spaces: texts are data, never commands."""
    printed = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return Piece(printed, value, strength, feature, error)


def shortened(text: tuple[Piece, ...], longest: int) -> tuple[Piece, ...]:
    """Return the first pieces of a text that is too long."""
    room = longest
    first: list[Piece] = []
    for piece in text:
        if len(piece.text) > room:
            return (*first, Piece("…", float("nan"), 0.0))
        room -= len(piece.text)
        first.append(piece)
    return tuple(first)


def _runs_on_grid(pieces: tuple[Piece, ...]) -> list[tuple[int, int, Piece, str]]:
    """Return line, column, piece and text of every run of characters, wrapped between runs."""
    grid: list[tuple[int, int, Piece, str]] = []
    line = column = 0
    for piece, run in _runs(pieces):
        if run == "\n":
            line, column = line + 1, 0
            continue
        if column + len(run) > _COLUMNS and column:
            line, column = line + 1, 0
        if not (run.isspace() and column == 0):
            grid.append((line, column, piece, run))
            column += len(run)
    return grid


def _runs(pieces: tuple[Piece, ...]) -> Iterator[tuple[Piece, str]]:
    for piece in pieces:
        for run in re.findall(r"\n|[^\S\n]+|\S+", piece.text):
            for start in range(0, len(run), _COLUMNS):
                yield piece, run[start : start + _COLUMNS]


def figure_size(pieces: tuple[Piece, ...]) -> tuple[float, float]:
    """Return width and height of a figure for the text, in inches."""
    lines = min(_MOST_LINES, _runs_on_grid(pieces)[-1][0] + 1)
    return 8.5, 1.0 + 0.24 * lines


def draw_text(ax: Axes, pieces: tuple[Piece, ...]) -> None:
    """Draw the text on empty axes."""
    from matplotlib.patches import Rectangle

    runs = _runs_on_grid(pieces)
    lines = min(_MOST_LINES, runs[-1][0] + 1)
    ax.set_xlim(0, _COLUMNS)
    ax.set_ylim(lines, 0)
    ax.set_axis_off()
    inner = ax.get_window_extent()
    slant = (inner.width / _COLUMNS) / (inner.height / lines)  # of a character: its width in lines
    for line, column, piece, run in runs:
        if line >= lines:
            break
        if piece.strength:
            colour = RAISES if piece.value > 0 else LOWERS
            shade = 0.85 * piece.strength
            ax.add_patch(
                Rectangle((column, line + 0.06), len(run), 0.88, color=colour, alpha=shade, linewidth=0)
            )
        if not run.isspace():
            ax.add_patch(_outlined(run, column, line + 0.68, slant))


def _outlined(run: str, column: int, base: float, slant: float) -> PathPatch:
    """Return the characters as outlines, which are as wide as the grid at any resolution."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    drawable = "".join(c if ord(c) in _glyphs() else "□" for c in run)
    font = FontProperties(family="monospace")
    text = drawable.replace("$", r"\$")  # else matplotlib typesets what stands between two as mathematics
    path = TextPath((0, 0), text, size=1 / _WIDTH, prop=font)
    outline = path.transformed(Affine2D().scale(1, -slant).translate(column, base))
    return PathPatch(outline, color="#1d2430", linewidth=0, label=run)


@cache
def _glyphs() -> frozenset[int]:
    """Return the characters of matplotlib's monospace font."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("monospace")).get_charmap())
