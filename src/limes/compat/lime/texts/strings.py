"""A text as lime sees it: words or characters with their numbers, and what is left when some are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Ints, Objects
from limes.compat.lime.domain_mapper import DomainMapper, Pairs
from limes.exceptions import InputError
from limes.explainers.texts.tokens import Spans, parse_text, splitter
from limes.models.documents import Document

if TYPE_CHECKING:
    from limes.explanation import Explanation as Told

# What lime puts in the places of words and of characters, where they are not to be deleted
_MASKED_WORD, _MASKED_CHARACTER = "UNKWORDZ", "\0"

__all__ = [
    "IndexedCharacters",
    "IndexedString",
    "IndexedText",
    "Split",
    "TextDomainMapper",
    "characters",
]


@dataclass(frozen=True)
class Split:
    """Where words stand: between matches of a regular expression, or where a callable's tokens are found.

    Raises
    ------
    InputError
        If it is neither; or, with a text, if a token is not in it.
    """

    expression: Any

    def __post_init__(self) -> None:
        if not self._by_tokens:
            splitter(self.expression)

    def __call__(self, text: str) -> Iterable[tuple[int, int]]:
        """Give the words' places (start, end)."""
        if self._by_tokens:
            return _found(self.expression(text), text)
        return splitter(self.expression)(text)

    @property
    def _by_tokens(self) -> bool:
        # a tokenizer of Hugging Face can be called too, but its offsets are better than its tokens
        return callable(self.expression) and not hasattr(self.expression, "encode")


def _found(tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
    """Places of tokens, one behind the other; empty ones stand nowhere."""
    spans: list[tuple[int, int]] = []
    end = 0
    for token in filter(None, tokens):
        start = text.find(token, end)
        if start < 0:
            raise InputError(
                f"split_expression gives the token {token!r}, which is not in the text behind character "
                f"{end}: tokens must be pieces of the text, in their order; of a tokenizer of Hugging Face "
                "give the tokenizer itself"
            )
        end = start + len(token)
        spans.append((start, end))
    return spans


class IndexedText:
    """Words of a document by number; the base of lime's indexed strings.

    Attributes
    ----------
    raw : str
    bow : bool
        Whether a word has one number wherever it stands.
    mask_string : str
        What stands in the places of removed words, if not ``bow``.
    as_list, as_np : list of str, array
        Words and what stands between them, in order.
    string_start : (n,)
        First character of each of these.
    inverse_vocab : list of str
        Words by number.
    positions : list of lists, or (d,)
        Places of each word in ``as_list``; one each if not ``bow``.
    """

    def __init__(self, document: Document, bow: bool, mask_string: str) -> None:
        self.document = document
        self.raw = document.text
        self.bow = bow
        self.mask_string = mask_string
        self.inverse_vocab = list(document.names)

    @cached_property
    def _pieces(self) -> tuple[list[str], list[int]]:
        """Words and what stands between them, and the places of the words."""
        pieces, places = [], []
        for gap, word in zip(self.document.gaps, (*self.document.occurrences, ""), strict=True):
            pieces += [gap] if gap else []
            places.append(len(pieces))
            pieces.append(word)
        return pieces[:-1], places[:-1]

    @property
    def as_list(self) -> list[str]:
        """Words and what stands between them."""
        return self._pieces[0]

    @property
    def as_np(self) -> Objects:
        """The same, as an array."""
        return np.array(self.as_list, dtype=object)

    @property
    def string_start(self) -> Ints:
        """First character of each piece."""
        return np.asarray(np.cumsum([0, *map(len, self.as_list[:-1])]))

    @cached_property
    def positions(self) -> Any:
        """Places of each word among the pieces."""
        places = np.array(self._pieces[1])
        return (
            [places[self.document.word == j].tolist() for j in range(self.num_words())]
            if self.bow
            else places
        )

    def raw_string(self) -> str:
        """The whole text."""
        return self.raw

    def num_words(self) -> int:
        """Number of words d."""
        return self.document.size

    def word(self, id_: int) -> str:
        """The word of a number."""
        return self.inverse_vocab[id_]

    def string_position(self, id_: int) -> Ints:
        """First character of each occurrence of a word."""
        return np.asarray(self.document.spans[self.document.word == id_, 0])

    def inverse_removing(self, words_to_remove: Sequence[int]) -> str:
        """The text without some words; if not ``bow``, ``mask_string`` stands in their places."""
        kept = np.ones((1, self.num_words()))
        kept[0, np.asarray(words_to_remove, dtype=int)] = 0.0
        return self.document.texts(kept)[0]


def _document(text: str, spans: Spans, bow: bool, mask: str) -> Document:
    return parse_text(text, spans, bag=bow, mask="" if bow else mask)


class IndexedString(IndexedText):
    """A text's words by number.

    Parameters
    ----------
    raw_string : str
    split_expression : str or callable
        Regular expression of what stands between words; or a function from a text to its tokens.
    bow : bool
        Whether a word has one number wherever it stands, and is deleted; else every occurrence has its own,
        and ``mask_string`` is put in its place.
    mask_string : str, optional
        UNKWORDZ unless given.

    Raises
    ------
    InputError
        If it is no text or has no words, or the split is not usable.

    Examples
    --------
    >>> indexed = IndexedString("Good food, good service")
    >>> indexed.inverse_vocab, indexed.inverse_removing([1])
    (['Good', 'food', 'good', 'service'], 'Good , good service')
    """

    def __init__(
        self,
        raw_string: str,
        split_expression: str | Callable[[str], Iterable[str]] = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
    ) -> None:
        mask = _MASKED_WORD if mask_string is None else mask_string
        super().__init__(_document(raw_string, Split(split_expression), bow, mask), bow, mask)


class IndexedCharacters(IndexedText):
    """A text's characters by number; ``bow`` and ``mask_string``, chr(0) unless given, as for words.

    Examples
    --------
    >>> IndexedCharacters("noon").inverse_removing([1])
    'nn'
    """

    def __init__(self, raw_string: str, bow: bool = True, mask_string: str | None = None) -> None:
        mask = _MASKED_CHARACTER if mask_string is None else mask_string
        super().__init__(_document(raw_string, characters, bow, mask), bow, mask)


def characters(text: str) -> list[tuple[int, int]]:
    """Every character by itself."""
    return [(i, i + 1) for i in range(len(text))]


class TextDomainMapper(DomainMapper):
    """Words of a text, by their numbers."""

    page_options = frozenset({"text", "opacity"})

    def __init__(self, indexed_string: IndexedText) -> None:
        self.indexed_string = indexed_string

    def map_exp_ids(self, exp: Pairs, positions: bool = False, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace numbers by words, or with ``positions`` by words and where they stand: bad_3-6-12."""
        return [(self._name(j, positions), value) for j, value in exp]

    def on_page(self, told: Told, *, text: Any = True, **kwargs: Any) -> Told:  # noqa: ARG002 - colours always fade
        """Leave out the text, if it is not wanted."""
        left = {name: fact for name, fact in told.provenance.items() if name not in ("text", "spans")}
        return told if text else replace(told, provenance=left)

    def _name(self, j: int, positions: bool) -> str:
        word = self.indexed_string.word(j)
        return f"{word}_{'-'.join(map(str, self.indexed_string.string_position(j)))}" if positions else word
