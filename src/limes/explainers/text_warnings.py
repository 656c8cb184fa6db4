"""Warnings about a text itself: it has one word, or its script puts no spaces between words."""

from __future__ import annotations

import unicodedata

from limes.models.documents import Document

# First words of the Unicode names of letters of scripts that put no spaces between words
_WITHOUT_SPACES = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
# Letters: hardly any word of these scripts is longer
_LONG = 8


def text_warnings(document: Document) -> tuple[str, ...]:
    """Warnings for one text."""
    found = []
    if document.size == 1:
        found.append(
            "the text has one word: its coefficient is the prediction less that of the text without it"
        )
    long = [word for word in document.names if _unsplit(word)]
    if long:
        found.append(
            f"{long[0][:20]!r} is taken as one word, as its script puts no spaces between words: pass split= "
            "a tokenizer, or a callable text -> [(start, end), ...]"
        )
    return tuple(found)


def _unsplit(word: str) -> bool:
    """Whether a word is so long, in a script without spaces, that it is probably several."""
    scripts = (unicodedata.name(letter, "").split(" ")[0] for letter in word)
    return sum(script in _WITHOUT_SPACES for script in scripts) > _LONG
