"""Outlines of superpixels as SVG paths: shapes that a page holds once, and colours for each of its outputs.

The border of a label runs along the edges of its pixels: clockwise around it, the other way around its holes.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limes._arrays import Ints

# Longest side of the labels that are drawn; larger ones are thinned, for example to every second pixel
_LONGEST = 256
# Steps along an edge of a pixel by its direction: right, down, left, up; (rows, columns)
_STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))
_LETTERS = "hvhv"


@dataclass(frozen=True)
class Outlines:
    """Paths of labels (h, w) by label, in a coordinate system of ``width`` by ``height``.

    ``name`` is equal only for equal labels, so that pages may share a document.
    """

    name: str
    width: int
    height: int
    paths: dict[int, str]

    @classmethod
    def of(cls, labels: Ints) -> Outlines:
        """Trace the labels of 0 and above."""
        step = -(-max(labels.shape) // _LONGEST)
        drawn = np.ascontiguousarray(labels[::step, ::step])
        digest = blake2b(drawn.tobytes(), digest_size=5).hexdigest()
        return cls(f"lx{digest}", drawn.shape[1], drawn.shape[0], dict(_paths(drawn)))


def _paths(labels: Ints) -> Iterator[tuple[int, str]]:
    """Yield each label and its path."""
    edges: dict[int, dict[tuple[int, int], list[int]]] = {}
    framed = np.pad(labels, 1, constant_values=-1)
    inner = framed[1:-1, 1:-1]
    # with the label to the right of an edge: its upper edges run right, those on its right run down, ...
    beside = framed[:-2, 1:-1], framed[1:-1, 2:], framed[2:, 1:-1], framed[1:-1, :-2]
    starts = (0, 0), (0, 1), (1, 1), (1, 0)
    for direction, (other, (down, across)) in enumerate(zip(beside, starts, strict=True)):
        rows, columns = np.nonzero((inner != other) & (inner >= 0))
        places = zip((rows + down).tolist(), (columns + across).tolist(), strict=True)
        for label, place in zip(inner[rows, columns].tolist(), places, strict=True):
            edges.setdefault(label, {}).setdefault(place, []).append(direction)
    for label in sorted(edges):
        yield label, "".join(_loops(edges[label]))


def _loops(edges: dict[tuple[int, int], list[int]]) -> Iterator[str]:
    """Join edges to closed loops; each starts at a corner."""
    while edges:
        start = place = min(edges)
        runs: list[list[int]] = []
        while place in edges:
            direction = edges[place].pop()
            if not edges[place]:
                del edges[place]
            if runs and runs[-1][0] == direction:
                runs[-1][1] += 1
            else:
                runs.append([direction, 1])
            place = place[0] + _STEPS[direction][0], place[1] + _STEPS[direction][1]
        # the last run, up to the start, is what closing the path draws
        steps = (f"{_LETTERS[d]}{length * sum(_STEPS[d])}" for d, length in runs[:-1])
        yield f"M{start[1]} {start[0]}{''.join(steps)}z"
