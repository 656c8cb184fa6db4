"""From a text to its words and their places: by what separates them, or by a tokenizer's offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Ints
from limes.exceptions import InputError
from limes.models.documents import Document

# text -> (start, end) of each word
Spans: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
# spelling -> what words are the same by
Key: TypeAlias = Callable[[str], str]


def splitter(split: Any) -> Spans:
    """The option ``split`` as a function from a text to spans.

    Raises
    ------
    InputError
        If it is neither a pattern, nor a callable, nor a tokenizer with offsets.
    """
    if isinstance(split, str | re.Pattern):
        return _by_pattern(split)
    if hasattr(split, "encode") and not isinstance(split, type):
        return lambda text: _offsets(split, text)
    if callable(split):
        return lambda text: split(text)
    raise InputError(
        f"split={split!r} must be a regular expression of what separates words, a callable text -> "
        "[(start, end), ...], or a tokenizer that gives offsets"
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
    """Of a fast tokenizer of Hugging Face: of ``transformers`` (called) or of ``tokenizers`` (encode)."""
    if hasattr(tokenizer, "is_fast"):
        if not tokenizer.is_fast:
            raise InputError(f"{type(tokenizer).__name__} gives no offsets: use its fast variant (use_fast)")
        found = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
    else:
        found = getattr(tokenizer.encode(text), "offsets", None)
        if found is None:
            raise InputError(
                f"split: {type(tokenizer).__name__}.encode gives no offsets; give a callable text -> "
                "[(start, end), ...]"
            )
    return _merged((start, end) for start, end in found if start < end)  # special tokens stand nowhere


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Tokens that share a character, as the bytes of an emoji do, are one."""
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and start < found[-1][1]:
            start, end = found[-1][0], max(end, found.pop()[1])
        found.append((start, end))
    return found


def parse_text(text: Any, spans: Spans, *, bag: bool, mask: str, key: Key | None = None) -> Document:
    """A text as its words; ``bag`` takes all occurrences of a word together.

    Raises
    ------
    InputError
        If it is no text, is empty, or has no words; if spans are not in order or out of the text.
    """
    _check_text(text)
    found = _checked(spans(text), text)
    pieces = [text[start:end] for start, end in found.tolist()]
    if not bag:
        return Document(text, found, np.arange(len(found)), tuple(pieces), mask)
    keys = pieces if key is None else [key(piece) for piece in pieces]
    # a word of which the vectorizer leaves nothing is still a word of the text
    keys = [clean or piece for clean, piece in zip(keys, pieces, strict=True)]
    places = {word: j for j, word in enumerate(dict.fromkeys(keys))}
    word = np.array([places[k] for k in keys], dtype=np.int64)
    spellings: list[dict[str, None]] = [{} for _ in places]
    for j, piece in zip(word.tolist(), pieces, strict=True):
        spellings[j][piece] = None
    names = tuple(
        next(iter(each)) if len(each) == 1 else clean for each, clean in zip(spellings, places, strict=True)
    )
    return Document(text, found, word, names, mask)


def _check_text(text: Any) -> None:
    if isinstance(text, bytes | bytearray):
        raise InputError("the text is bytes: decode it first, text.decode('utf-8')")
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {type(text).__name__}: {str(text)[:60]!r}")
    if not text.strip():
        raise InputError("the text is empty: there is nothing to explain")


def _checked(found: Any, text: str) -> Ints:
    try:
        spans = np.array([tuple(span) for span in found], dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise InputError(f"split must give pairs (start, end) for every word: {error}") from None
    if not spans.size:
        raise InputError(f"the split finds no words in {_start(text)!r}: give another split")
    if spans.ndim != 2 or spans.shape[1] != 2:
        raise InputError(f"split must give pairs (start, end), got an array of shape {spans.shape}")
    edges = spans.ravel()
    if (spans[:, 0] >= spans[:, 1]).any() or (np.diff(edges) < 0).any() or edges[0] < 0:
        raise InputError("split must give spans in order, without overlap, each with a character at least")
    if edges[-1] > len(text):
        raise InputError(f"split gives a span up to {edges[-1]}, but the text has {len(text)} characters")
    return spans


def _start(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def word_conditions(document: Document) -> tuple[str, ...]:
    """What each word says when it is kept; words that are spelt alike are told apart by their places."""
    repeated = len(set(document.names)) < document.size
    starts = document.spans[:, 0].tolist()
    return tuple(
        f'"{name}" at {starts[j]} present' if repeated else f'"{name}" present'
        for j, name in enumerate(document.names)
    )


def word_spans(document: Document) -> list[list[list[int]]]:
    """Places of each word in the text, (start, end) each."""
    found: list[list[list[int]]] = [[] for _ in document.names]
    for j, span in zip(document.word.tolist(), document.spans.tolist(), strict=True):
        found[j].append(span)
    return found
