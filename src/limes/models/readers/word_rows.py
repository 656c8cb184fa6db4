r"""Rows of scikit-learn's vectorizers at the kept words of one text: x(z) = φ(z) R, over its norm if any.

R has a row for each word of the text, the vectorizer's output for that word alone, before the norm; φ(z) = z.
With n-grams R has a row for every product of words that makes one appear, and φ(z) are these products. That
holds where the tokens of a perturbed text are the tokens of its kept words, and where no two rows of R meet
in a column that is not their sum; both are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.documents import Document
from limes.models.identity import qualified_name
from limes.models.readers.ngrams import Grams, Token
from limes.models.reading import CannotRead, refuse_replaced_methods
from limes.models.text_models import VECTORIZERS

_WEIGHING = "sklearn.TfidfTransformer"
_NORMS = (None, "l1", "l2")


@dataclass(frozen=True, eq=False)
class WordRows:
    """The rows of a text's words after vectorizing steps.

    Attributes
    ----------
    matrix
        R, sparse (d, V), or (G, V) with n-grams.
    words
        d.
    grams
        The products φ of n-grams; None where φ(z) = z.
    norm
        None, "l1" or "l2".
    single
        Whether no two rows of R share a column.
    steps
        Number of the model's steps that are vectorizing.
    single_precision
        Whether the vectorizer adds in float32.
    kind
        The class of the vectorizer's sparse rows, as some models accept one class only.
    """

    matrix: Any
    words: int
    grams: Grams | None
    norm: str | None
    single: bool
    steps: int
    single_precision: bool
    kind: type

    def rows(self, z: Floats) -> Any:
        """x(z), sparse (n, V), at rows z (n, d), where there are no n-grams."""
        from scipy.sparse import csr_array
        from sklearn.preprocessing import normalize

        rows = self.kind(csr_array(z) @ self.matrix)
        return rows if self.norm is None else normalize(rows, norm=self.norm)


def word_rows(steps: Sequence[Any], document: Document) -> WordRows:
    """Read the first steps of a model of texts, on one document.

    Raises
    ------
    CannotRead
        With the reason.
    """
    if not steps:
        raise CannotRead("the model takes texts as they are, and can only be called")
    vectorizer = steps[0]
    if qualified_name(type(vectorizer)) not in VECTORIZERS:
        raise CannotRead(f"limes does not know how {type(vectorizer).__qualname__} treats single words")
    refuse_replaced_methods(vectorizer)
    _check_local(vectorizer, document)
    rows = _counts(vectorizer, document)
    if vectorizer.binary and not rows.single:
        raise CannotRead("binary counts of words that share a column of the vectorizer do not add up")
    rows = _WEIGHTS[qualified_name(type(vectorizer))](rows, vectorizer)
    if len(steps) > 1 and qualified_name(type(steps[1])) == _WEIGHING:
        if rows.norm is not None:
            raise CannotRead("TF-IDF weights on counts that are normalised already")
        rows = replace(_weighted(rows, steps[1]), steps=2)
    return rows


# -- counts --------------------------------------------------------------------------------------------------


def _counts(vectorizer: Any, document: Document) -> WordRows:
    """Counts, without weights and norm."""
    from scipy.sparse import csr_array

    count = _COUNTERS[qualified_name(type(vectorizer))]
    if tuple(vectorizer.ngram_range) == (1, 1):
        if document.mask and count(vectorizer, [document.mask]).nnz:
            raise CannotRead(f"the mask {document.mask!r} is a token of the vectorizer")
        grams, rows = None, count(vectorizer, document.word_texts())
        counts = csr_array(rows).astype(np.float64)
    else:
        grams = _grams(vectorizer, document)
        rows = _GRAMS[qualified_name(type(vectorizer))](vectorizer, grams.texts)
        counts = csr_array(csr_array(rows).astype(np.float64).multiply(grams.counts[:, None]))
    if vectorizer.binary:
        counts.data = np.sign(counts.data)
    single_precision = vectorizer.dtype == np.float32
    return WordRows(counts, document.size, grams, None, is_single(counts), 1, single_precision, type(rows))


def _grams(vectorizer: Any, document: Document) -> Grams:
    tokens = _tokens(vectorizer)
    if tokens(document.mask):
        raise CannotRead(f"the mask {document.mask!r} stands between the words of n-grams")
    smallest, largest = vectorizer.ngram_range
    each: list[Token] = [
        (token, word)
        for occurrence, word in zip(document.occurrences, document.word.tolist(), strict=True)
        for token in tokens(occurrence)
    ]
    vocabulary = getattr(vectorizer, "vocabulary_", None)
    return Grams.from_tokens(each, range(smallest, largest + 1), vocabulary)


def _tokens(vectorizer: Any) -> Callable[[str], list[str]]:
    """Tokens of a piece of text, without stop words."""
    clean, cut = vectorizer.build_preprocessor(), vectorizer.build_tokenizer()
    stop = vectorizer.get_stop_words() or frozenset()
    return lambda text: [token for token in cut(clean(text)) if token not in stop]


def _count(vectorizer: Any, texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer.transform(vectorizer, list(texts))


def _hash(vectorizer: Any, texts: Sequence[str]) -> Any:
    from sklearn.base import clone

    return clone(vectorizer).set_params(norm=None).transform(list(texts))


def _count_grams(vectorizer: Any, grams: Sequence[str]) -> Any:
    """Rows of whole n-grams, which are all in the vocabulary."""
    from scipy.sparse import csr_matrix

    columns = [vectorizer.vocabulary_[gram] for gram in grams]
    shape = (len(grams), len(vectorizer.vocabulary_))
    return csr_matrix((np.ones(len(grams)), columns, np.arange(len(grams) + 1)), shape=shape)


def _hash_grams(vectorizer: Any, grams: Sequence[str]) -> Any:
    from scipy.sparse import csr_matrix
    from sklearn.base import clone

    if not grams:
        return csr_matrix((0, vectorizer.n_features))
    whole = clone(vectorizer).set_params(norm=None, ngram_range=(1, 1), analyzer=lambda gram: [gram])
    return whole.transform(list(grams))


_Counter = Callable[[Any, Sequence[str]], Any]
_COUNTERS: Mapping[str, _Counter] = dict(zip(VECTORIZERS, (_count, _count, _hash), strict=True))
_GRAMS: Mapping[str, _Counter] = dict(
    zip(VECTORIZERS, (_count_grams, _count_grams, _hash_grams), strict=True)
)


def is_single(counts: Any) -> bool:
    """Whether no two rows share a column."""
    return bool(np.bincount(counts.indices).max(initial=0) <= 1)


# -- weights and norms ---------------------------------------------------------------------------------------


def _weighted(rows: WordRows, weights: Any) -> WordRows:
    """TF-IDF: logarithms and inverse document frequencies, then the norm."""
    if weights.sublinear_tf and not rows.single:
        raise CannotRead("logarithms of counts that several words of the text share do not add up")
    matrix = rows.matrix.copy()
    if weights.sublinear_tf:
        matrix.data = np.log(matrix.data) + 1.0
    if weights.use_idf:
        matrix.data *= weights.idf_[matrix.indices]
    return _normalised(replace(rows, matrix=matrix), weights.norm)


def _normalised(rows: WordRows, norm: str | None) -> WordRows:
    if norm not in _NORMS:
        raise CannotRead(f"limes does not know the norm {norm!r}")
    if norm is not None and rows.grams is not None:
        raise CannotRead("the norm of a text's n-grams is not a sum over its words; norm=None can be read")
    if norm is not None and not rows.single and (rows.matrix.data < 0).any():
        raise CannotRead("words of different signs share a column of the vectorizer")
    return replace(rows, norm=norm)


_WEIGHTS: Mapping[str, Callable[[WordRows, Any], WordRows]] = {
    "sklearn.CountVectorizer": lambda rows, vectorizer: rows,  # noqa: ARG005 - counts as they are
    "sklearn.TfidfVectorizer": _weighted,
    "sklearn.HashingVectorizer": lambda rows, vectorizer: _normalised(rows, vectorizer.norm),
}


# -- whether the vectorizer reads each word by itself -------------------------------------------------------

# Patterns of word characters and edges of words only
_OF_WORD_CHARACTERS = re.compile(
    r"(?:\(\?[aiu]+\)|\\[bwd]|\[(?:\\[wd]|[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d|\w)+\]|\(\?:|[()|+*?]|\{\d*,?\d*\}|\w)+"
)


def _check_local(vectorizer: Any, document: Document) -> None:
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
        raise CannotRead("the split leaves letters between the words, which may be tokens of the vectorizer")
    between = {clean(gap) for gap in dict.fromkeys(document.gaps[1:-1])}
    if "" in between:
        raise CannotRead("words of this split touch each other, and the vectorizer may join them")


def _check_options(vectorizer: Any) -> None:
    if vectorizer.input != "content":
        raise CannotRead(f"the vectorizer reads texts from input={vectorizer.input!r}")
    if vectorizer.analyzer != "word":
        raise CannotRead(f"the vectorizer's analyzer={vectorizer.analyzer!r} does not read single words")
    for name in ("preprocessor", "tokenizer"):
        if getattr(vectorizer, name) is not None:
            raise CannotRead(f"the vectorizer has its own {name}, which may do anything")
    if callable(vectorizer.strip_accents):
        raise CannotRead("the vectorizer has its own strip_accents, which may do anything")
    pattern = vectorizer.token_pattern
    if not _OF_WORD_CHARACTERS.fullmatch(pattern) or _matches_empty(pattern):
        raise CannotRead(f"token_pattern={pattern!r} may match more than the characters of one word")


def _matches_empty(pattern: str) -> bool:
    return any(not match.group() for match in re.finditer(pattern, "a1 _!"))


def word_normalizer(steps: Sequence[Any]) -> Any:
    """The preprocessor of a vectorizer: words that it maps to one string are the same; None if unknown."""
    if not steps or qualified_name(type(steps[0])) not in VECTORIZERS:
        return None
    vectorizer = steps[0]
    if vectorizer.preprocessor is not None or vectorizer.analyzer not in ("word", "char", "char_wb"):
        return None
    return vectorizer.build_preprocessor()
