"""n-grams of a text as products: words that stand side by side once all that is between them is removed.

An n-gram of tokens i_1 < ... < i_n of the text appears where they are kept and all tokens between them are
removed. A word that stands between its own occurrences keeps them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models.forms.presence import PresenceProducts
from limes.models.reading import CannotRead

# Tokens that runs are tried to be extended by, and factors of products that are made: about a second
_MOST_TRIED, _MOST_FACTORS = 4_000_000, 3_000_000

# A token, and which of the text's words it belongs to
Token: TypeAlias = tuple[str, int]
_Words: TypeAlias = frozenset[int]


@dataclass(frozen=True, eq=False)
class Grams:
    """Products of the words of a text, and the n-gram that appears where each of them holds.

    Attributes
    ----------
    texts
        (G,) the n-grams.
    counts
        (G,) how often it then appears.
    product, word, present
        (L,) a factor each, as in :class:`limes.models.forms.PresenceProducts`.
    """

    texts: tuple[str, ...]
    counts: Ints
    product: Ints
    word: Ints
    present: Bools

    @classmethod
    def of(cls, tokens: Sequence[Token], sizes: range, vocabulary: Collection[str] | None) -> Grams:
        """All n-grams, n in ``sizes``, that a text can make; those of the vocabulary if there is one.

        Raises
        ------
        CannotRead
            If they are too many.
        """
        found: Counter[tuple[str, _Words, _Words]] = Counter()
        factors = 0
        begins = None if vocabulary is None else _beginnings(vocabulary)
        for run in _Runs(tokens, sizes[-1], begins):
            if run.length in sizes and (vocabulary is None or run.text in vocabulary):
                found[run.text, frozenset(run.kept), frozenset(run.gone)] += 1
                factors += len(run.kept) + len(run.gone)
            if factors > _MOST_FACTORS:
                raise _too_many(tokens)
        return cls._filled(found)

    def products(self, coef: Floats, intercept: Floats, words: int) -> PresenceProducts:
        """The form intercept + Σ_g coef[g] φ_g, coef (G,) or (G, k), over so many words."""
        return PresenceProducts.from_factors(self.product, self.word, self.present, coef, intercept, words)

    @classmethod
    def _filled(cls, found: Counter[tuple[str, _Words, _Words]]) -> Grams:
        sides = [side for _, kept, gone in found for side in (kept, gone)]
        place = np.repeat(np.arange(len(sides)), [len(side) for side in sides])
        return cls(
            texts=tuple(text for text, _, _ in found),
            counts=np.array(list(found.values()), dtype=np.int64),
            product=place // 2,
            word=np.array([word for side in sides for word in side], dtype=np.int64),
            present=place % 2 == 0,
        )


def _beginnings(vocabulary: Collection[str]) -> set[str]:
    """What the n-grams of a vocabulary begin with, and these themselves."""
    found = set(vocabulary)
    for gram in vocabulary:
        while " " in gram:
            gram = gram.rpartition(" ")[0]
            if gram in found:
                break
            found.add(gram)
    return found


class _Run(NamedTuple):
    """Tokens that stand side by side in some perturbed text."""

    text: str
    length: int
    last: int
    kept: set[int]
    gone: set[int]


class _Runs:
    """Runs of a text that something in the vocabulary begins with; all of them if ``begins`` is None.

    A run is valid until the next one is asked for.
    """

    def __init__(self, tokens: Sequence[Token], longest: int, begins: set[str] | None) -> None:
        self._tokens, self._longest, self._begins = tokens, longest, begins
        self._tried = 0

    def __iter__(self) -> Iterator[_Run]:
        for first, (token, word) in enumerate(self._tokens):
            if self._begins is None or token in self._begins:
                yield from self._with_longer(_Run(token, 1, first, {word}, set()))

    def _with_longer(self, run: _Run) -> Iterator[_Run]:
        """The run itself, and those that begin with it; ``gone`` are the words between its tokens."""
        yield run
        if run.length == self._longest:
            return
        gone = set(run.gone)
        for i in range(run.last + 1, len(self._tokens)):
            token, word = self._tokens[i]
            self._tried += 1
            if word not in gone:
                text = f"{run.text} {token}"
                if self._begins is None or text in self._begins:
                    longer = _Run(text, run.length + 1, i, run.kept | {word}, gone)
                    yield from self._with_longer(longer)
            if word in run.kept:
                break
            gone.add(word)
        if self._tried > _MOST_TRIED:
            raise _too_many(self._tokens)


def _too_many(tokens: Sequence[Token]) -> CannotRead:
    return CannotRead(f"a text of {len(tokens)} words has too many n-grams once some are removed")
