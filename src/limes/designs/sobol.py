"""Rows of a product design by scrambled Sobol' points: one dimension a column.

A column's inverse distribution function turns one number into the cell and the place inside it, so that d
numbers make a row of the tilted law. A scrambled sequence is random, every row of it follows the law, and
low-order effects of the model average out faster than with independent rows. Some pairs of dimensions depend
strongly on each other in the first few hundred points, however they are scrambled; every sequence therefore
gives its dimensions to the columns in an order of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from limes._arrays import Floats, Ints

# Direction numbers are known for so many dimensions; beyond, columns are independent numbers.
_DIMENSIONS = 21_201


class Drawn(Protocol):
    """A design that can turn points of the unit cube into rows."""

    @property
    def size(self) -> int:
        """Number of columns d."""
        ...

    def draw(self, levels: Floats) -> tuple[Floats, Floats]:
        """Rows x and features h, (n, d) each, at levels (n, d)."""
        ...


class SobolRows:
    """Independently scrambled sequences of rows, one a stream, as long as one likes.

    The first draw should be a power of two.
    """

    def __init__(self, design: Drawn, streams: Sequence[np.random.SeedSequence]) -> None:
        self._design = design
        make = _Independent if design.size > _DIMENSIONS else _Sobol
        self._sequences = [make(design.size, np.random.default_rng(stream)) for stream in streams]

    def draw(self, rows: int) -> tuple[Floats, Floats, Ints]:
        """Take the next rows of every sequence: x and h, (sequences · rows, d) each, sequence by sequence.

        The third value is the number of each row's group: every row is one of its own.
        """
        levels = np.concatenate([sequence.random(rows) for sequence in self._sequences])
        # an inverse distribution function has no value at 0
        x, h = self._design.draw(np.clip(levels, 2.0**-54, 1.0 - 2.0**-53))
        return x, h, np.arange(len(x))


class _Sobol:
    def __init__(self, d: int, rng: np.random.Generator) -> None:
        from scipy.stats.qmc import Sobol

        self._points = Sobol(d, scramble=True, rng=rng)
        self._order = rng.permutation(d)

    def random(self, n: int) -> Floats:
        return np.asarray(self._points.random(n)[:, self._order])


class _Independent:
    def __init__(self, d: int, rng: np.random.Generator) -> None:
        self._d, self._rng = d, rng

    def random(self, n: int) -> Floats:
        return self._rng.random((n, self._d))
