"""A text and the places of its words: what is left of it when words are removed.

A text is gaps and occurrences in turn, g_0 o_1 g_1 ... o_m g_m. Removing a word takes all of its occurrences
out, or puts a mask in their places; gaps always stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints, Objects

# Occurrences of which all deletions are put together, where rows are more than these
_TOGETHER = 8


@dataclass(frozen=True, eq=False)
class Document:
    """A text with m occurrences of d words.

    Attributes
    ----------
    text
        The whole text.
    spans
        (m, 2) first character of each occurrence, and the one behind its last; in order, not overlapping.
    word
        (m,) which of the words 0, ..., d - 1 it is.
    names
        (d,) the words.
    mask
        What stands where a word is removed.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models.documents import Document
    >>> spans, word = np.array([[0, 3], [4, 7], [8, 11]]), np.array([0, 1, 0])
    >>> Document("ham and ham", spans, word, ("ham", "and")).texts([[1, 0], [0, 1]])
    ['ham  ham', ' and ']
    """

    text: str
    spans: Ints
    word: Ints
    names: tuple[str, ...]
    mask: str = ""

    @property
    def size(self) -> int:
        """Number of words d."""
        return len(self.names)

    @cached_property
    def occurrences(self) -> tuple[str, ...]:
        """(m,) each occurrence as it stands."""
        return tuple(self.text[start:end] for start, end in self.spans.tolist())

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """(m + 1,) what stands before, between and behind the occurrences."""
        starts, ends = [*self.spans[:, 0].tolist(), len(self.text)], [0, *self.spans[:, 1].tolist()]
        return tuple(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    @cached_property
    def counts(self) -> Ints:
        """(d,) how often each word stands in the text."""
        return np.bincount(self.word, minlength=self.size)

    def texts(self, z: ArrayLike) -> list[str]:
        """What is left at rows z (n, d) of kept words: n texts."""
        kept = (np.asarray(z) > 0)[:, self.word]
        return self._in_blocks(kept) if len(kept) > 1 << _TOGETHER else self._one_by_one(kept)

    def _one_by_one(self, kept: Bools) -> list[str]:
        """What is left where occurrences (n, m) are kept."""
        start, pieces = self.gaps[0], self._pieces
        return [
            start + "".join([piece[k] for piece, k in zip(pieces, row, strict=True)]) for row in kept.tolist()
        ]

    def _in_blocks(self, kept: Bools) -> list[str]:
        """The same of many rows, which leave the same of a few occurrences: that is put together once."""
        blocks = range(0, len(self.word), _TOGETHER)
        left = [self._left(i, i + _TOGETHER)[_codes(kept[:, i : i + _TOGETHER])].tolist() for i in blocks]
        return ["".join(row) for row in zip([self.gaps[0]] * len(kept), *left, strict=True)]

    def _left(self, start: int, end: int) -> Objects:
        """What all deletions leave of some occurrences, by the codes of those that are kept."""
        found = [""]
        for removed, kept in self._pieces[start:end]:
            found = [left + removed for left in found] + [left + kept for left in found]
        return self._array(found)

    @cached_property
    def _pieces(self) -> list[tuple[str, str]]:
        """(m,) an occurrence and the gap behind it, when it is removed and when it is kept."""
        pairs = zip(self.occurrences, self.gaps[1:], strict=True)
        return [(self.mask + gap, occurrence + gap) for occurrence, gap in pairs]

    def alone(self) -> list[str]:
        """(d,) the occurrences of each word, with nothing but spaces between them."""
        found: list[list[str]] = [[] for _ in self.names]
        for word, occurrence in zip(self.word.tolist(), self.occurrences, strict=True):
            found[word].append(occurrence)
        return [" ".join(each) for each in found]

    @staticmethod
    def _array(texts: Sequence[str]) -> Objects:
        found = np.empty(len(texts), dtype=object)
        found[:] = texts
        return found


def _codes(kept: Bools) -> Ints:
    """Rows (n, b) as binary numbers, the first digit the smallest; (n,)."""
    found = np.zeros(len(kept), dtype=np.int64)
    for digit, column in enumerate(kept.T):
        found += column.astype(np.int64) << digit
    return found


def some_rows(d: int, rows: int) -> Floats:
    """The whole text, and a few random parts of its words, small to large, always the same; (rows, d)."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0.05, 0.95, rows - 1)
    return np.vstack([np.ones(d), (rng.random((rows - 1, d)) < shares[:, None]).astype(np.float64)])
