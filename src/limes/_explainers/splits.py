"""Splits of texts into pieces: words, sentences, what separators leave, what a tokenizer finds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias

from limes.exceptions import InputError

# text -> (start, end) of each piece
Spans: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]

# Names of splits that are no regular expressions
WORD, SENTENCE = "word", "sentence"


def splitter(split: Any, tokens: Spans | None = None) -> Spans:
    """Return what finds the pieces of a text; "word" takes the model's ``tokens``, if these are known."""
    if isinstance(split, str) and split in _BY_NAME:
        return tokens if tokens is not None and split == WORD else _BY_NAME[split]
    if isinstance(split, str | re.Pattern):
        _refuse_unit(split)
        return by_pattern(split)
    if hasattr(split, "encode") and not isinstance(split, type):
        return partial(_offsets, split)
    if callable(split):
        return partial(_called, split)
    raise InputError(
        f"split={split!r} must be 'word', 'sentence', a regular expression of what separates words, a "
        "callable text -> [(start, end), ...], or a tokenizer with offsets"
    )


def _called(split: Callable[[str], Any], text: str) -> Any:
    return split(text)


# Units of texts by names that are no options, and how to split into them
_CHARACTERS = "pass lambda text: [(i, i + 1) for i in range(len(text))]"
_TOKENS = "pass the model's tokenizer itself"
_OTHERS = "pass a callable text -> [(start, end), ...]"
_UNITS = {
    WORD: f"pass {WORD!r}",
    SENTENCE: f"pass {SENTENCE!r}",
    "sent": f"pass {SENTENCE!r}",
    **dict.fromkeys(("character", "char", "letter", "grapheme"), _CHARACTERS),
    **dict.fromkeys(("token", "tokenizer", "subword", "wordpiece", "sentencepiece", "bpe"), _TOKENS),
    **dict.fromkeys(("phrase", "clause", "ngram", "syllable", "lemma"), _OTHERS),
    "line": r"pass r'\n'",
    "paragraph": r"pass r'\n\s*\n'",
    **dict.fromkeys(("space", "whitespace", "blank"), r"pass r'\s+'"),
    "punctuation": r"pass r'[^\w\s]+'",
    **dict.fromkeys(("comma", "dot", "newline", "tab"), "pass the character itself"),
}
# Words whose letters agree so far are spellings of one name
_NEAR = 0.75


def _refuse_unit(split: str | re.Pattern[str]) -> None:
    """Raise for the name of a unit, which as a regular expression would match hardly any text."""
    name = split.strip().casefold().replace("-", "").replace("_", "") if isinstance(split, str) else ""
    if not name.isalpha():
        return
    near = get_close_matches(name.removesuffix("s"), _UNITS, n=1, cutoff=_NEAR)
    if near and near[0][0] == name[0]:
        raise InputError(
            f"split={split!r} is no option: {_UNITS[near[0]]}; if it is what stands between words, pass "
            f"re.compile({split!r})"
        )


def by_pattern(split: str | re.Pattern[str]) -> Spans:
    """Return what separators leave of a text, whatever the names of splits."""
    try:
        pattern = re.compile(split)
        list(pattern.finditer(""))
    except (re.error, TypeError) as error:
        raise InputError(f"split={split!r} is no regular expression for texts: {error}") from None
    return partial(_between, pattern)


def _between(separators: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    edges = [0, *(edge for match in separators.finditer(text) for edge in match.span()), len(text)]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Offsets of a fast tokenizer: of ``transformers`` (called) or of ``tokenizers`` (encode)."""
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
    merged: list[tuple[int, int]] = []
    for start, end in offsets:
        if merged and start < merged[-1][1] and start < end:  # share a character, as the bytes of an emoji do
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:  # special tokens are empty
            merged.append((start, end))
    return merged


# -- words -----------------------------------------------------------------------------------------------
#
# The default rules of Unicode's annex 29, as far as readers agree with them: marks belong to the letter
# before them, an apostrophe between letters and a point or comma between digits to what they join. Unlike
# there, runs of symbols are pieces too, and each emoji, with its modifiers and what a joiner joins, is one.

_JOINERS = "\u200c\u200d"  # of letters in Indic and Arabic scripts, and of emoji
_APOSTROPHES, _POINTS = "'\u2019\u00b7", ".,"
# Between letters of Hebrew: of acronyms; behind one: of abbreviations, and of foreign sounds
_GERSHAYIM, _GERESH = '"\u201d\u05f4', "\u05f3"
_TONES = range(0x1F3FB, 0x1F400)  # of skin, behind an emoji
_FLAGS = range(0x1F1E6, 0x1F200)  # letters that make a flag in pairs


def words(text: str) -> list[tuple[int, int]]:
    """Spans of a text's words, numbers, emoji and runs of other symbols."""
    kinds = [_kind(character) for character in text]
    spans: list[tuple[int, int]] = []
    for i, kind in enumerate(kinds):
        if kind and spans and spans[-1][1] == i and _joins(text, kinds, *spans[-1]):
            spans[-1] = (spans[-1][0], i + 1)
        elif kind in ("letter", "digit", "symbol", "emoji"):
            spans.append((i, i + 1))
        elif _is_inside(text, kinds, i) and spans and spans[-1][1] == i:
            spans[-1] = (spans[-1][0], i + 1)
    return spans


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if character in _JOINERS:
        return "joiner"
    if category[0] == "M" or character == _GERESH:
        return "mark"
    if category[0] == "L" or category == "Pc":
        return "letter"
    if category[0] == "N":
        return "digit"
    if category == "So" or ord(character) in _TONES:
        return "emoji"
    return "symbol" if category[0] == "S" else ""


def _joins(text: str, kinds: list[str], start: int, i: int) -> bool:
    """Whether character i belongs to the piece that begins at ``start`` and ends before it."""
    kind, before = kinds[i], kinds[i - 1]
    if kind in ("mark", "joiner"):
        return True
    if kind == "emoji":
        flags = all(ord(character) in _FLAGS for character in text[start : i + 1])
        return before == "joiner" or ord(text[i]) in _TONES or (flags and i == start + 1)
    first = kinds[start]
    if kind == "symbol":
        return first == "symbol"
    return first in ("letter", "digit")


def _is_inside(text: str, kinds: list[str], i: int) -> bool:
    """Whether character i is an apostrophe, a soft hyphen or gershayim in a word, or a point in a number."""
    if not 0 < i < len(text) - 1:
        return False
    before, behind = kinds[i - 1], kinds[i + 1]
    # marks of format are not seen, and one of them is a space
    unseen = unicodedata.category(text[i]) == "Cf" and text[i] != "\u200b"
    if text[i] in _APOSTROPHES or unseen:
        return before in ("letter", "mark") and behind == "letter"
    if text[i] in _GERSHAYIM:
        return "\u05d0" <= text[i + 1] <= "\u05ea" and "\u0591" <= text[i - 1] <= "\u05f3"
    return text[i] in _POINTS and before == behind == "digit"


def of_tokens(pattern: str, clean: Callable[[str], str]) -> Spans:
    """Spans of what a vectorizer's ``token_pattern`` matches in a text that its preprocessor made ``clean``.

    Words where it matches nothing, or where the clean text has other positions than the text.
    """
    compiled = re.compile(pattern)
    group = 1 if compiled.groups == 1 else 0

    def spans(text: str) -> list[tuple[int, int]]:
        cleaned = clean(text)
        pairs = (
            [match.span(group) for match in compiled.finditer(cleaned)] if len(cleaned) == len(text) else []
        )
        return [(start, end) for start, end in pairs if start < end] or words(text)

    return spans


# -- sentences -------------------------------------------------------------------------------------------

# Ends of sentences: marks, closing quotes and brackets, and space; marks that need no space; ends of lines
_ENDS = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？।॥]+[」』”’]*|(?=\n)")
# What a small letter continues: a pause, or speech that ends
_PAUSE = re.compile(r"(?:\.\.+|…|[\"'”’»)\]])$")
# Letters: a longer line that a small letter follows was broken to fit a page
_WRAPPED = 50
# What ends with a full stop inside a sentence: initials and abbreviations, and those of numbers
_ABBREVIATION = re.compile(r"\b(?:[A-Z]|Mrs?|Ms|Dr|Prof|Sr|Jr|St|vs|cf|[Ee]\.g|[Ii]\.e|Inc|Ltd|Co)\.$")
_OF_NUMBERS = re.compile(r"\b(?:[Nn]o|Nr|[Ff]ig|[Ee]q|pp?|approx)\.$")
_EMPTY_LINE = re.compile(r"\s*\n\s*\n|\s*$")


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of a text's sentences, without the space around them.

    A sentence ends with a mark (. ! ? …) that space follows, with 。！？ or a danda, and where a line ends;
    not behind an initial or a common abbreviation, nor where a small letter follows a pause, speech or a line
    that was broken to fit a page.
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
    if _EMPTY_LINE.match(rest):
        return False
    behind, piece = rest.lstrip()[:1], piece.rstrip()
    if _ABBREVIATION.search(piece) or (behind.isdigit() and _OF_NUMBERS.search(piece)):
        return True
    if not behind.islower():
        return False
    ends_in_mark = piece[-1:] in ".!?…。！？।॥"
    is_wrapped = not ends_in_mark and len(piece.rpartition("\n")[2]) > _WRAPPED
    return is_wrapped or bool(_PAUSE.search(piece))


_BY_NAME: dict[str, Spans] = {WORD: words, SENTENCE: sentences}
