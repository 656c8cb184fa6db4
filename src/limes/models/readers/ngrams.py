"""n-grams of a text as products: words that become neighbours once all words between them are removed.

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

# Tokens that may be tried to extend runs, and factors of products: about a second
_MOST_TRIED, _MOST_FACTORS = 4_000_000, 3_000_000

# A token, and which of the text's words it belongs to
Token: TypeAlias = tuple[str, int]
_Words: TypeAlias = frozenset[int]


@dataclass(frozen=True, eq=False)
class Grams:
    """Products of the words of a text, and the n-gram that appears where each of them is 1.

    Attributes
    ----------
    texts
        (G,) the n-grams.
    counts
        (G,) how often each then appears.
    product, word, present
        (L,) for each factor, as in :class:`limes.models.forms.PresenceProducts`.
    """

    texts: tuple[str, ...]
    counts: Ints
    product: Ints
    word: Ints
    present: Bools

    @classmethod
    def from_tokens(cls, tokens: Sequence[Token], sizes: range, vocabulary: Collection[str] | None) -> Grams:
        """All n-grams, n in ``sizes``, that a perturbed text can have, of the vocabulary if there is one.

        Raises
        ------
        CannotRead
            If there are too many.
        """
        counts: Counter[tuple[str, _Words, _Words]] = Counter()
        factors = 0
        prefixes = None if vocabulary is None else _prefixes(vocabulary)
        for run in _Runs(tokens, sizes[-1], prefixes):
            if run.length in sizes and (vocabulary is None or run.text in vocabulary):
                counts[run.text, frozenset(run.kept), frozenset(run.removed)] += 1
                factors += len(run.kept) + len(run.removed)
            if factors > _MOST_FACTORS:
                raise _too_many(tokens)
        return cls._from_counts(counts)

    def products(self, coef: Floats, intercept: Floats, words: int) -> PresenceProducts:
        """The form intercept + Σ_g coef[g] φ_g over the words; coef (G,) or (G, k)."""
        return PresenceProducts.from_factors(self.product, self.word, self.present, coef, intercept, words)

    @classmethod
    def _from_counts(cls, counts: Counter[tuple[str, _Words, _Words]]) -> Grams:
        sides = [side for _, kept, removed in counts for side in (kept, removed)]
        side_of = np.repeat(np.arange(len(sides)), [len(side) for side in sides])
        return cls(
            texts=tuple(text for text, _, _ in counts),
            counts=np.array(list(counts.values()), dtype=np.int64),
            product=side_of // 2,
            word=np.array([word for side in sides for word in side], dtype=np.int64),
            present=side_of % 2 == 0,
        )


def _prefixes(vocabulary: Collection[str]) -> set[str]:
    """The n-grams of a vocabulary and all of their prefixes."""
    prefixes = set(vocabulary)
    for gram in vocabulary:
        while " " in gram:
            gram = gram.rpartition(" ")[0]
            if gram in prefixes:
                break
            prefixes.add(gram)
    return prefixes


class _Run(NamedTuple):
    """Tokens that are neighbours in some perturbed text."""

    text: str
    length: int
    last: int
    kept: set[int]
    removed: set[int]


class _Runs:
    """Runs of a text that are prefixes of the vocabulary; all runs if ``prefixes`` is None.

    A run is valid until the next one is yielded.
    """

    def __init__(self, tokens: Sequence[Token], longest: int, prefixes: set[str] | None) -> None:
        self._tokens, self._longest, self._prefixes = tokens, longest, prefixes
        self._tried = 0

    def __iter__(self) -> Iterator[_Run]:
        for first, (token, word) in enumerate(self._tokens):
            if self._prefixes is None or token in self._prefixes:
                yield from self._with_longer(_Run(token, 1, first, {word}, set()))

    def _with_longer(self, run: _Run) -> Iterator[_Run]:
        """Yield the run itself, and those that begin with it; the words between its tokens are removed."""
        yield run
        if run.length == self._longest:
            return
        removed = set(run.removed)
        for i in range(run.last + 1, len(self._tokens)):
            token, word = self._tokens[i]
            self._tried += 1
            if word not in removed:
                text = f"{run.text} {token}"
                if self._prefixes is None or text in self._prefixes:
                    longer = _Run(text, run.length + 1, i, run.kept | {word}, removed)
                    yield from self._with_longer(longer)
            if word in run.kept:
                break
            removed.add(word)
        if self._tried > _MOST_TRIED:
            raise _too_many(self._tokens)


def _too_many(tokens: Sequence[Token]) -> CannotRead:
    return CannotRead(f"a text of {len(tokens)} words has too many n-grams once some are removed")
