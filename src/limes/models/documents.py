"""Documents: a text, the positions of its words, and its perturbed texts with words removed.

A text is gaps and occurrences in turn, g_0 o_1 g_1 ... o_m g_m. Removing a word deletes all of its
occurrences, or replaces them by a mask; gaps always stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints, Objects

# Occurrences whose deletions are enumerated, if there are more rows than deletions
_TOGETHER = 8


@dataclass(frozen=True, eq=False)
class Document:
    """A text with m occurrences of d words.

    Attributes
    ----------
    text
        The whole text.
    spans
        (m, 2) start and end of each occurrence, in order, not overlapping.
    word
        (m,) the word, 0, ..., d - 1, of each occurrence.
    names
        (d,) the words.
    mask
        Replaces a word that is removed.

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
        """(m,) the text of each occurrence."""
        return tuple(self.text[start:end] for start, end in self.spans.tolist())

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """(m + 1,) the text before, between and behind the occurrences."""
        starts, ends = [*self.spans[:, 0].tolist(), len(self.text)], [0, *self.spans[:, 1].tolist()]
        return tuple(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    @cached_property
    def counts(self) -> Ints:
        """(d,) the number of occurrences of each word."""
        return np.bincount(self.word, minlength=self.size)

    def texts(self, z: ArrayLike) -> list[str]:
        """The perturbed texts (n,) of rows z (n, d) of kept words."""
        kept = (np.asarray(z) > 0)[:, self.word]
        return self._in_blocks(kept) if len(kept) > 1 << _TOGETHER else self._one_by_one(kept)

    def _one_by_one(self, kept: Bools) -> list[str]:
        """The texts where occurrences (n, m) are kept."""
        start, pieces = self.gaps[0], self._pieces
        return [
            start + "".join([piece[k] for piece, k in zip(pieces, row, strict=True)]) for row in kept.tolist()
        ]

    def _in_blocks(self, kept: Bools) -> list[str]:
        """The same for many rows, which share the texts of a few occurrences: each is joined once."""
        blocks = range(0, len(self.word), _TOGETHER)
        texts = [
            self._deletions(i, i + _TOGETHER)[_codes(kept[:, i : i + _TOGETHER])].tolist() for i in blocks
        ]
        return ["".join(row) for row in zip([self.gaps[0]] * len(kept), *texts, strict=True)]

    def _deletions(self, start: int, end: int) -> Objects:
        """The texts of all deletions of some occurrences, by the codes of those that are kept."""
        texts = [""]
        for removed, kept in self._pieces[start:end]:
            texts = [text + removed for text in texts] + [text + kept for text in texts]
        array = np.empty(len(texts), dtype=object)
        array[:] = texts
        return array

    @cached_property
    def _pieces(self) -> list[tuple[str, str]]:
        """(m,) the text of an occurrence and the gap behind it, if it is removed and if it is kept."""
        pairs = zip(self.occurrences, self.gaps[1:], strict=True)
        return [(self.mask + gap, occurrence + gap) for occurrence, gap in pairs]

    def word_texts(self) -> list[str]:
        """(d,) the occurrences of each word, joined by spaces."""
        texts: list[list[str]] = [[] for _ in self.names]
        for word, occurrence in zip(self.word.tolist(), self.occurrences, strict=True):
            texts[word].append(occurrence)
        return [" ".join(occurrences) for occurrences in texts]


def _codes(kept: Bools) -> Ints:
    """Rows (n, b) as binary numbers, the first digit the smallest; (n,)."""
    codes = np.zeros(len(kept), dtype=np.int64)
    for digit, column in enumerate(kept.T):
        codes += column.astype(np.int64) << digit
    return codes


def some_rows(d: int, rows: int) -> Floats:
    """The whole text, and random subsets of its words, small to large, with a fixed seed; (rows, d)."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0.05, 0.95, rows - 1)
    return np.vstack([np.ones(d), (rng.random((rows - 1, d)) < shares[:, None]).astype(np.float64)])
