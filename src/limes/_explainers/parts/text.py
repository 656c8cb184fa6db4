"""Texts, whose words are kept or removed: splits, groups, and the part of a composite input.

A *split* finds pieces of a text, by a separator, as sentences, or by a tokenizer's offsets; a *group* takes
pieces together as one feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Ints
from limes.exceptions import InputError
from limes.models._documents import Document

# text -> (start, end) of each piece
Spans: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
# spelling -> key that is equal for equal words
Key: TypeAlias = Callable[[str], str]

# Name of a split that is no regular expression, and of one way to tell words apart
_SENTENCE, _SPELLING = "sentence", "spelling"


@dataclass(frozen=True, kw_only=True)
class TextPart:
    r"""A text, whose words are features; the model gets a list of texts.

    Parameters
    ----------
    split
        As for :class:`limes.TextExplainer`.
    bag
        True: a word is one feature, wherever it stands, and words are the same if they are spelt alike.
        False: every place is a feature.
    mask
        A text in the place of a word that is deleted; None leaves its place empty.

    Raises
    ------
    InputError
        If one of them is not usable.

    Examples
    --------
    >>> import limes
    >>> limes.TextPart().parse("good food").compose([[1, 0]])
    ['good ']
    """

    split: Any = r"\W+"
    bag: bool = True
    mask: str | None = None

    def __post_init__(self) -> None:
        splitter(self.split)
        check_bag(self.bag)
        check_mask(self.mask, None)

    def parse(self, raw: Any) -> Document:
        """Split a text, ``raw``, into words."""
        return parse_text(raw, splitter(self.split), bag=bool(self.bag), mask=self.mask or "")


def check_bag(bag: Any) -> bool | str:
    if not isinstance(bag, bool) and (not isinstance(bag, str) or bag != _SPELLING):
        raise InputError(f"bag must be True, False or {_SPELLING!r}, got {bag!r}")
    return bag


def check_mask(mask: Any, model: Any) -> str:
    """Return the text in the place of a deleted word, the model's own if ``mask`` is True."""
    if mask is True:
        mask = getattr(model, "mask_token", None)
        if mask is None:
            raise InputError("mask=True needs a model of transformers whose tokenizer has a mask token")
    if mask is not None and not isinstance(mask, str):
        raise InputError(
            f"mask must be None, to delete words, a text to put in their places, or True for the tokenizer's "
            f"own; got {mask!r}"
        )
    return mask or ""


def parse_text(
    text: Any,
    spans: Spans,
    *,
    bag: bool,
    mask: str,
    key: Key | None = None,
    grouping: Grouping | None = None,
) -> Document:
    """Split a text into features: groups, words, or, without ``bag``, single occurrences of words."""
    _check_text(text)
    grouping = grouping or Grouping()
    places = _check_spans(spans(text), text)
    places = np.array(grouping.pieces(text, [(a, b) for a, b in places.tolist()]), dtype=np.int64)
    pieces = [text[start:end] for start, end in places.tolist()]
    groups = [grouping.name(piece) for piece in pieces]
    keys: list[Any] = list(range(len(pieces)))
    if bag:
        keys = pieces if key is None else [key(piece) for piece in pieces]
        # a word that the vectorizer normalises to nothing is still a word of the text
        keys = [clean or piece for clean, piece in zip(keys, pieces, strict=True)]
    # a group and a word may have the same name: pairs keep them apart
    keys = [
        (clean, None) if group is None else (None, group) for clean, group in zip(keys, groups, strict=True)
    ]
    features = {pair: j for j, pair in enumerate(dict.fromkeys(keys))}
    word = np.array([features[pair] for pair in keys], dtype=np.int64)
    spellings: list[dict[str, None]] = [{} for _ in features]
    for j, piece in zip(word.tolist(), pieces, strict=True):
        spellings[j][piece] = None
    names = tuple(
        group or (next(iter(spelt)) if len(spelt) == 1 else clean)
        for spelt, (clean, group) in zip(spellings, features, strict=True)
    )
    return Document(text, places, word, names, mask)


def _check_text(text: Any) -> None:
    if isinstance(text, bytes | bytearray):
        raise InputError("the text is bytes: decode it first, text.decode('utf-8')")
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {type(text).__name__}: {str(text)[:60]!r}")
    if not text.strip():
        raise InputError("the text is empty: there is nothing to explain")


def _check_spans(pairs: Any, text: str) -> Ints:
    try:
        spans = np.array([tuple(pair) for pair in pairs], dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise InputError(f"split must return pairs (start, end) for every word: {error}") from None
    if not spans.size:
        start = text if len(text) <= 60 else f"{text[:60]}…"
        raise InputError(f"the split finds no words in {start!r}: pass another split")
    if spans.ndim != 2 or spans.shape[1] != 2:
        raise InputError(f"split must return pairs (start, end), got an array of shape {spans.shape}")
    edges = spans.ravel()
    if (spans[:, 0] >= spans[:, 1]).any() or (np.diff(edges) < 0).any() or edges[0] < 0:
        raise InputError("split must return spans in order, without overlap, each with a character at least")
    if edges[-1] > len(text):
        raise InputError(f"split returns a span up to {edges[-1]}, but the text has {len(text)} characters")
    return spans


# -- splits --------------------------------------------------------------------------------------------------


def splitter(split: Any) -> Spans:
    """Return the option ``split`` as a function from a text to spans."""
    if isinstance(split, str) and split == _SENTENCE:
        return sentences
    if isinstance(split, str | re.Pattern):
        return _by_pattern(split)
    if hasattr(split, "encode") and not isinstance(split, type):
        return lambda text: _offsets(split, text)
    if callable(split):
        return lambda text: split(text)
    raise InputError(
        f"split={split!r} must be a regular expression of what separates words, 'sentence', a callable "
        "text -> [(start, end), ...], or a tokenizer with offsets"
    )


def _by_pattern(split: str | re.Pattern[str]) -> Spans:
    try:
        pattern = re.compile(split)
        matches: Callable[[str], Iterable[re.Match[str]]] = pattern.finditer
        list(matches(""))
    except (re.error, TypeError) as error:
        raise InputError(f"split={split!r} is no regular expression for texts: {error}") from None

    def spans(text: str) -> list[tuple[int, int]]:
        edges = [0, *(edge for match in matches(text) for edge in match.span()), len(text)]
        return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]

    return spans


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Return offsets of a fast tokenizer: of ``transformers`` (called) or of ``tokenizers`` (encode)."""
    if hasattr(tokenizer, "is_fast"):
        if not tokenizer.is_fast:
            raise InputError(f"{type(tokenizer).__name__} has no offsets: use its fast variant (use_fast)")
        offsets = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
    else:
        offsets = getattr(tokenizer.encode(text), "offsets", None)
        if offsets is None:
            raise InputError(
                f"split: {type(tokenizer).__name__}.encode has no offsets; pass a callable text -> "
                "[(start, end), ...]"
            )
    return _merged((start, end) for start, end in offsets if start < end)  # special tokens are empty


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge tokens that share a character, as the bytes of an emoji do."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


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


# -- groups --------------------------------------------------------------------------------------------------


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
        """Take the options ``group`` and ``ignore``."""
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
        """Merge the spans of words that spell a phrase, and leave out those that are ignored."""
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
        """Return the name of a piece's group, None for a piece by itself."""
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


def _words(name: Any, words: Any) -> list[str]:
    spellings = None if isinstance(words, str) or not isinstance(words, Iterable) else list(words)
    named = isinstance(name, str) and name
    if spellings is None or not named or not all(isinstance(word, str) for word in spellings):
        raise InputError(f"group: {name!r} must be a name of a list of words, got {words!r}")
    return spellings
