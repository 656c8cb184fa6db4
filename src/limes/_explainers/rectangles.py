"""Rectangles of an image, which accounts at two levels halve where they matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush

import numpy as np

from limes._arrays import Floats, Ints
from limes._explainers.hierarchy import members

# Halvings down to the smallest rectangles, 32 x 32, and to the groups, 4 x 4
_FINEST, _COARSE = 10, 4


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Rectangles of an image, halved across and down in turn."""

    places: Ints  # of the smallest rectangles, (m,), as ``rectangles`` numbers them
    pixels: Ints  # of each of these, (m,)
    depths: Ints  # how often the image was halved down to the unit of each, (m,)
    looks, power, whole_groups = 4, 0, None

    @classmethod
    def of(cls, places: Ints, pixels: Ints) -> Rectangles:
        return cls(places, pixels, np.full(places.size, _COARSE))

    @cached_property
    def of_pieces(self) -> Ints:
        return np.unique(self._at(self.depths), return_inverse=True)[1]

    @property
    def groups(self) -> Ints:
        """The group of each piece, (m,)."""
        return np.unique(self._at(_COARSE), return_inverse=True)[1]

    @property
    def shares(self) -> Floats:
        return members(self.groups[self._firsts])

    @property
    def nodes(self) -> Floats:
        areas = np.bincount(self.of_pieces, self.pixels)
        nodes = []
        for depth in range(int(self.depths.max()) + 1):
            # a unit that is larger than the nodes of this depth is no part of them
            its = np.where(self.depths >= depth, self._at(depth), -1)[self._firsts]
            names = np.unique(its[its >= 0])
            part = (its[:, None] == names) * areas[:, None]
            nodes.append(part / part.sum(axis=0))
        return np.concatenate(nodes, axis=1)

    def refined(self, sizes: Floats, count: int) -> Rectangles:
        """Halve the largest, of which each half is taken to have half the size."""
        depths, firsts = self.depths.copy(), self._firsts
        total = sizes.size
        heap = [(-float(size), int(first)) for size, first in zip(sizes, firsts, strict=True)]
        heapify(heap)
        while total < count and heap:
            size, first = heappop(heap)
            depth = int(depths[first])
            if depth == _FINEST:
                continue
            its = np.flatnonzero((self._at(depth) == self._at(depth)[first]) & (depths == depth))
            depths[its] += 1
            starts = np.unique(self._at(depth + 1)[its], return_index=True)[1]
            total += starts.size - 1
            for start in starts.tolist():
                heappush(heap, (size / 2, int(its[start])))
        return replace(self, depths=depths)

    def _at(self, depth: Ints | int) -> Ints:
        """The first place of what contains each piece after a number of halvings."""
        rest = _FINEST - depth
        return self.places >> rest << rest

    @cached_property
    def _firsts(self) -> Ints:
        """The first piece of each unit."""
        return np.unique(self.of_pieces, return_index=True)[1]


def rectangles(shape: tuple[int, int], depth: int = _FINEST) -> Ints:
    """Number (H, W) the rectangles into which an image is halved ``depth`` times, across first.

    The digits of a number say in which half a pixel is, the first one in the upper or lower half.
    """
    side = 1 << _FINEST // 2
    down, across = (np.arange(n) * side // n for n in shape)
    numbers = np.zeros(shape, dtype=np.int64)
    for digit in range(_FINEST // 2 - 1, -1, -1):
        numbers = 4 * numbers + (2 * (down >> digit & 1)[:, None] + (across >> digit & 1))
    return np.asarray(numbers >> (_FINEST - depth))


def coarse_rectangles(shape: tuple[int, int]) -> Ints:
    """The groups (H, W), numbered from 0."""
    numbers = rectangles(shape, _COARSE)
    return np.unique(numbers, return_inverse=True)[1].reshape(shape)
