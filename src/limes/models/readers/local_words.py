"""Whether words keep to themselves in a vectorizer: what is left has the tokens of the words left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from limes.models.documents import Document
from limes.models.identity import qualified_name
from limes.models.read import CannotRead
from limes.models.text_models import VECTORIZERS

# Patterns that take nothing but word characters, and look at nothing but edges of words
_OF_WORD_CHARACTERS = re.compile(
    r"(?:\(\?[aiu]+\)|\\[bwd]|\[(?:\\[wd]|[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d|\w)+\]|\(\?:|[()|+*?]|\{\d*,?\d*\}|\w)+"
)


def check_local(vectorizer: Any, document: Document) -> None:
    """Refuse vectorizers whose tokens of a text are not the tokens of its words.

    Raises
    ------
    CannotRead
        With the reason.
    """
    _check_options(vectorizer)
    clean = vectorizer.build_preprocessor()
    if vectorizer.lowercase and "Σ" in document.text:
        raise CannotRead("how the Greek letter Σ is written in lower case depends on its neighbours")
    gaps = [clean(gap) for gap in dict.fromkeys(document.gaps)]
    if any(re.search(r"\w", gap) for gap in gaps):
        raise CannotRead("the split leaves letters between the words, which the vectorizer may know")
    between = {clean(gap) for gap in dict.fromkeys(document.gaps[1:-1])}
    if "" in between:
        raise CannotRead("words of this split touch each other, and the vectorizer may take them as one")


def _check_options(vectorizer: Any) -> None:
    if vectorizer.input != "content":
        raise CannotRead(f"the vectorizer reads texts from input={vectorizer.input!r}")
    if vectorizer.analyzer != "word":
        raise CannotRead(f"the vectorizer's analyzer={vectorizer.analyzer!r} does not look at single words")
    for name in ("preprocessor", "tokenizer"):
        if getattr(vectorizer, name) is not None:
            raise CannotRead(f"the vectorizer has its own {name}, which may do anything")
    if callable(vectorizer.strip_accents):
        raise CannotRead("the vectorizer has its own strip_accents, which may do anything")
    pattern = vectorizer.token_pattern
    if not _OF_WORD_CHARACTERS.fullmatch(pattern) or _takes_nothing(pattern):
        raise CannotRead(f"token_pattern={pattern!r} may look at more than the characters of one word")


def _takes_nothing(pattern: str) -> bool:
    return any(not match.group() for match in re.finditer(pattern, "a1 _!"))


def same_words(steps: Sequence[Any]) -> Any:
    """What a vectorizer makes of the letters of a word, by which words are the same; None if unknown."""
    if not steps or qualified_name(type(steps[0])) not in VECTORIZERS:
        return None
    vectorizer = steps[0]
    if vectorizer.preprocessor is not None or vectorizer.analyzer not in ("word", "char", "char_wb"):
        return None
    return vectorizer.build_preprocessor()
