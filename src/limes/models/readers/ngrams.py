"""n-grams of a text as products: words that stand side by side once all that is between them is removed.

An n-gram of tokens i_1 < ... < i_n of the text appears where they are kept and all tokens between them are
removed. A word that stands between its own occurrences keeps them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models.read import CannotRead
from limes.models.words import PresenceProducts

# Runs of tokens that are looked at, and factors of products that are made: about a second
_MOST_RUNS, _MOST_FACTORS = 400_000, 3_000_000

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
        (L,) a factor each, as in :class:`limes.models.words.PresenceProducts`.
    """

    texts: tuple[str, ...]
    counts: Ints
    product: Ints
    word: Ints
    present: Bools

    @classmethod
    def of(cls, tokens: Sequence[Token], sizes: range, is_known: Callable[[str], bool]) -> Grams:
        """All known n-grams, n in ``sizes``, that the tokens of a text can make.

        Raises
        ------
        CannotRead
            If they are too many.
        """
        found: Counter[tuple[str, _Words, _Words]] = Counter()
        factors = 0
        for looked, places in enumerate(_runs(tokens, sizes[-1])):
            text = " ".join(tokens[i][0] for i in places)
            if len(places) in sizes and is_known(text):
                kept, gone = _sides(tokens, places)
                found[text, kept, gone] += 1
                factors += len(kept) + len(gone)
            if looked > _MOST_RUNS or factors > _MOST_FACTORS:
                raise CannotRead(f"a text of {len(tokens)} words has too many n-grams once some are removed")
        return cls._filled(found)

    def products(self, coef: Floats, intercept: Floats, words: int) -> PresenceProducts:
        """The form intercept + Σ_g coef[g] φ_g, coef (G,) or (G, k), over so many words."""
        return PresenceProducts.of_factors(self.product, self.word, self.present, coef, intercept, words)

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


def _runs(tokens: Sequence[Token], longest: int) -> Iterator[tuple[int, ...]]:
    """Places of tokens that stand side by side in some perturbed text."""
    for first in range(len(tokens)):
        yield from _extended((first,), set(), tokens, longest)


def _extended(
    places: tuple[int, ...], gone: set[int], tokens: Sequence[Token], longest: int
) -> Iterator[tuple[int, ...]]:
    """The run itself, and those that begin with it; ``gone`` are the words between its places."""
    yield places
    if len(places) == longest:
        return
    kept = {tokens[i][1] for i in places}
    gone = set(gone)
    for i in range(places[-1] + 1, len(tokens)):
        word = tokens[i][1]
        if word not in gone:
            yield from _extended((*places, i), gone, tokens, longest)
        if word in kept:
            return
        gone.add(word)


def _sides(tokens: Sequence[Token], places: tuple[int, ...]) -> tuple[_Words, _Words]:
    """The words of a run, and those between its places."""
    between = set(range(places[0], places[-1])) - set(places)
    return frozenset(tokens[i][1] for i in places), frozenset(tokens[i][1] for i in between)
