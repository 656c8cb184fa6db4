"""What is removed together from a text: words, sentences, phrases, and groups of words.

A *split* finds pieces of a text, a *group* takes pieces together as one feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from limes.exceptions import InputError

# text -> (start, end) of each piece
Spans: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
# spelling -> key that is equal for equal words
Key: TypeAlias = Callable[[str], str]

# Ends of sentences: marks, closing quotes and brackets, and space; marks that need no space; empty lines
_ENDS = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’]*|(?=\n\s*\n)")
# What ends with a full stop inside a sentence: initials and abbreviations, and those of numbers
_ABBREVIATION = re.compile(r"\b(?:[A-Z]|Mrs?|Ms|Dr|Prof|Sr|Jr|St|vs|cf|[Ee]\.g|[Ii]\.e|Inc|Ltd|Co)\.$")
_OF_NUMBERS = re.compile(r"\b(?:[Nn]o|Nr|[Ff]ig|[Ee]q|pp?|approx)\.$")
_EMPTY_LINE = re.compile(r"\s*\n\s*\n|\s*$")


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text's sentences, without the space around them.

    A sentence ends with a mark (. ! ? …) that space follows, with 。！？, or at an empty line; not behind an
    initial or a common abbreviation, nor before a small letter.
    """
    spans, start = [], 0
    for end in [match.end() for match in _ENDS.finditer(text)] + [len(text)]:
        piece = text[start:end]
        if piece.strip() and not _continues(piece, text[end:]):
            first = start + len(piece) - len(piece.lstrip())
            spans.append((first, start + len(piece.rstrip())))
            start = end
    return spans


def _continues(piece: str, rest: str) -> bool:
    """Tell whether a sentence goes on behind a mark, or an empty line."""
    if _EMPTY_LINE.match(rest):
        return False
    behind = rest.lstrip()[:1]
    abbreviated = _ABBREVIATION.search(piece) or (behind.isdigit() and _OF_NUMBERS.search(piece))
    return bool(abbreviated) or behind.islower()


@dataclass(frozen=True)
class Grouping:
    """Pieces of a text that are one feature.

    Attributes
    ----------
    name_of
        Piece -> name of its group, None for a piece by itself.
    phrases
        Sequences of words that are one piece, each word by its key.
    ignored
        Whether a piece is no feature, and always stays in the text; None ignores none.
    """

    name_of: Callable[[str], Any] | None = None
    phrases: tuple[tuple[str, ...], ...] = ()
    ignored: Callable[[str], Any] | None = None

    @classmethod
    def of(cls, group: Any, ignore: Any = None) -> Grouping:
        """Take the options ``group`` and ``ignore``.

        Raises
        ------
        InputError
            If ``group`` is neither a callable, nor a mapping of names to words, nor a list of phrases; if
            ``ignore`` is neither a callable nor a list of words.
        """
        ignored = _ignored(ignore)
        if group is None:
            return cls(ignored=ignored)
        if isinstance(group, Mapping):
            names = {word.casefold(): name for name, words in group.items() for word in _words(name, words)}
            return cls(lambda piece: names.get(piece.casefold()), ignored=ignored)
        if callable(group):
            return cls(group, ignored=ignored)
        if isinstance(group, list | tuple) and group and all(isinstance(phrase, str) for phrase in group):
            phrases = tuple(sorted(filter(None, map(_keys, group)), key=len, reverse=True))
            return cls(phrases=phrases, ignored=ignored)
        raise InputError(
            f"group={group!r} must be a callable word -> name of its group or None, a mapping of names to "
            'lists of words, or a list of phrases such as ["not good"]'
        )

    def pieces(self, text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Merge the spans of words that spell a phrase, and leave out those that are ignored.

        Raises
        ------
        InputError
            If none is left.
        """
        merged = self._merged(text, spans)
        if self.ignored is None:
            return merged
        kept = [(start, end) for start, end in merged if not self.ignored(text[start:end])]
        if not kept:
            raise InputError("ignore leaves no word of the text to explain: pass fewer words")
        return kept

    def _merged(self, text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Merge the spans of words that spell a phrase, the longest phrase first."""
        if not self.phrases:
            return spans
        words = [text[start:end].casefold() for start, end in spans]
        merged, i = [], 0
        while i < len(spans):
            count = next((len(p) for p in self.phrases if tuple(words[i : i + len(p)]) == p), 1)
            merged.append((spans[i][0], spans[i + count - 1][1]))
            i += count
        return merged

    def name(self, piece: str) -> str | None:
        """Return the name of a piece's group, None for a piece by itself.

        Raises
        ------
        InputError
            If the user's function returns something else.
        """
        if self.phrases:
            words = _keys(piece)
            return " ".join(words) if words in self.phrases else None
        name = None if self.name_of is None else self.name_of(piece)
        if name is None or (isinstance(name, str) and name):
            return name
        raise InputError(f"group must return the name of a group or None; it returned {name!r} for {piece!r}")


def _ignored(ignore: Any) -> Callable[[str], Any] | None:
    """Return the option ``ignore`` as a function."""
    if ignore is None:
        return None
    if callable(ignore):
        return lambda piece: ignore(piece)
    words = None if isinstance(ignore, str) or not isinstance(ignore, Iterable) else list(ignore)
    if not words or not all(isinstance(word, str) for word in words):
        raise InputError(f"ignore={ignore!r} must be a list of words, or a callable word -> True or False")
    spellings = {word.casefold() for word in words}
    return lambda piece: piece.casefold() in spellings


def _keys(phrase: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", phrase.casefold()))


def _words(name: Any, words: Any) -> Iterable[str]:
    if isinstance(words, str) or not isinstance(words, Iterable) or not isinstance(name, str) or not name:
        raise InputError(f"group: {name!r} must be a name of a list of words, got {words!r}")
    spellings: list[str] = list(words)
    if not all(isinstance(word, str) for word in spellings):
        raise InputError(f"group: {name!r} must be a name of a list of words, got {words!r}")
    return spellings
