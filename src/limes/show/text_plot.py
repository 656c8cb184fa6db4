"""A text with its words coloured, drawn by matplotlib: a grid of characters of one width."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.patches import PathPatch

    from limes.show.texts import Piece

_COLUMNS = 84
_MOST_LINES = 60
_WIDTH = 0.602  # of a character, in units of the font's size


def placed(pieces: tuple[Piece, ...]) -> list[tuple[int, int, Piece, str]]:
    """Return line, column, piece and text of every run of characters, wrapped between runs."""
    found: list[tuple[int, int, Piece, str]] = []
    line = column = 0
    for piece, run in _runs(pieces):
        if run == "\n":
            line, column = line + 1, 0
            continue
        if column + len(run) > _COLUMNS and column:
            line, column = line + 1, 0
        if not (run.isspace() and column == 0):
            found.append((line, column, piece, run))
            column += len(run)
    return found


def _runs(pieces: tuple[Piece, ...]) -> Iterator[tuple[Piece, str]]:
    for piece in pieces:
        for run in re.findall(r"\n|[^\S\n]+|\S+", piece.text):
            for start in range(0, len(run), _COLUMNS):
                yield piece, run[start : start + _COLUMNS]


def size(pieces: tuple[Piece, ...]) -> tuple[float, float]:
    """Inches of a figure for the text."""
    lines = min(_MOST_LINES, placed(pieces)[-1][0] + 1)
    return 8.5, 1.0 + 0.24 * lines


def draw(ax: Axes, pieces: tuple[Piece, ...], raises: str, lowers: str) -> None:
    """Draw the text on axes that are its own."""
    from matplotlib.patches import Rectangle

    runs = placed(pieces)
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
            colour = raises if piece.value > 0 else lowers
            shade = 0.85 * piece.strength
            ax.add_patch(
                Rectangle((column, line + 0.06), len(run), 0.88, color=colour, alpha=shade, linewidth=0)
            )
        if not run.isspace():
            ax.add_patch(_outlined(run, column, line + 0.68, slant))


def _outlined(run: str, column: int, base: float, slant: float) -> PathPatch:
    """The characters as outlines, which are as wide as the grid at any resolution."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    known = "".join(c if ord(c) in _glyphs() else "□" for c in run)
    font = FontProperties(family="monospace")
    path = TextPath((0, 0), known, size=1 / _WIDTH, prop=font)
    placed_path = path.transformed(Affine2D().scale(1, -slant).translate(column, base))
    return PathPatch(placed_path, color="#1d2430", linewidth=0, label=run)


@cache
def _glyphs() -> frozenset[int]:
    """Characters that matplotlib's own font of one width has."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("monospace")).get_charmap())
