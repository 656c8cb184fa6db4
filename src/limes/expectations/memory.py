"""Moments by pattern of cells: what was computed for one piece of a table need not be for the next.

Under bin weights a row's cells decide its moments. A long table meets the same patterns again and again, so a
worker that remembers them explains the table at the price of its distinct patterns, however it is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from limes._arrays import Ints
from limes.expectations.moments import Moments, joined

# Places of the patterns whose moments are wanted -> their moments
Compute: TypeAlias = Callable[[Ints], Moments]
# Patterns (n, d) and a way to compute moments -> their moments
Recall: TypeAlias = Callable[[Ints, Compute], Moments]
# Bytes that a memory may take, about
_MOST = 128 << 20
# Of a dictionary's entry, beside the pattern itself
_ENTRY = 150


def afresh(patterns: Ints, compute: Compute) -> Moments:
    """Remember nothing."""
    return compute(np.arange(len(patterns)))


@dataclass(frozen=True)
class _Known:
    """Moments that are known, and where among them those of a pattern are."""

    places: Mapping[bytes, int] = field(default_factory=dict)
    moments: Moments | None = None

    def more(self, patterns: list[bytes], moments: Moments) -> _Known:
        start = len(self.places)
        places = {**self.places, **{pattern: start + i for i, pattern in enumerate(patterns)}}
        return _Known(places, moments if self.moments is None else joined([self.moments, moments]))


class Memory:
    """Computes the moments of a pattern once, as long as there is room.

    Right only where a pattern's moments do not depend on what else is computed with it, to the last bit.
    """

    def __init__(self) -> None:
        self._known = _Known()

    def __call__(self, patterns: Ints, compute: Compute) -> Moments:
        """Moments of patterns (n, d), n >= 1."""
        known = self._known  # looked at once: another thread may replace it
        asked = [pattern.tobytes() for pattern in patterns]
        new = [i for i, pattern in enumerate(asked) if pattern not in known.places]
        if new:
            known = known.more([asked[i] for i in new], compute(np.array(new)))
            if _size(known, patterns) <= _MOST:
                self._known = known
        assert known.moments is not None  # noqa: S101 - there is a pattern, and it is known
        return known.moments.taken(np.array([known.places[pattern] for pattern in asked]))


def _size(known: _Known, patterns: Ints) -> int:
    arrays = 0 if known.moments is None else known.moments.nbytes
    entry: int = patterns.shape[1] * patterns.itemsize + _ENTRY
    return arrays + len(known.places) * entry
