r"""Vectorizers of scikit-learn on what is left of one text: x(z) = z R, over its norm where there is one.

R has a row a word of the text: what the vectorizer makes of that word alone, before the norm. That holds
where the tokens of what is left are the tokens of the words that are left, and where no two words of the text
meet in a column that is not a plain sum. Both are checked here; a linear model on x is then a form over z by
its coefficients times R, and a tree on x asks which words are there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.additive import Linear
from limes.models.asking import class_name
from limes.models.boxes import Boxes
from limes.models.combination import Combination
from limes.models.documents import Document
from limes.models.presence import presence_of_columns
from limes.models.read import CannotRead, read_form
from limes.models.reductions import Form
from limes.models.text_models import transformed
from limes.models.trees import Forest
from limes.models.words import NormalizedLinear

_WEIGHING = "sklearn.TfidfTransformer"
_NORMS = (None, "l1", "l2")
# Steps after which a sum of rows is the sum of what becomes of them
_SELECTORS = (
    "GenericUnivariateSelect SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest SelectPercentile"
)
_LINEAR = f"{_SELECTORS} MaxAbsScaler StandardScaler TruncatedSVD VarianceThreshold".split()
# Patterns that take nothing but word characters, and look at nothing but edges of words
_OF_WORD_CHARACTERS = re.compile(
    r"(?:\(\?[aiu]+\)|\\[bwd]|\[(?:\\[wd]|[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d|\w)+\]|\(\?:|[()|+*?]|\{\d*,?\d*\}|\w)+"
)


@dataclass(frozen=True, eq=False)
class WordRows:
    """What vectorizing steps make of a text's words.

    Attributes
    ----------
    matrix
        R, sparse (d, V).
    norm
        None, "l1" or "l2".
    single
        The columns that a single word of the text makes, all others being sums of several words' parts.
    steps
        How many of the model's steps this is.
    single_precision
        Whether the vectorizer adds in float32.
    kind
        The class of the vectorizer's own sparse rows, as some models take one kind only.
    """

    matrix: Any
    norm: str | None
    single: bool
    steps: int
    single_precision: bool
    kind: type

    def rows(self, z: Floats) -> Any:
        """x(z), sparse (n, V), at rows z (n, d)."""
        from scipy.sparse import csr_array
        from sklearn.preprocessing import normalize

        found = self.kind(csr_array(z) @ self.matrix)
        return found if self.norm is None else normalize(found, norm=self.norm)


def word_rows(steps: Sequence[Any], document: Document) -> WordRows:
    """Read the first steps of a model of texts, on one document.

    Raises
    ------
    CannotRead
        With the reason.
    """
    from scipy.sparse import csr_array

    if not steps:
        raise CannotRead("the model takes texts as they are, and can only be asked")
    vectorizer = steps[0]
    if class_name(type(vectorizer)) not in _COUNTERS:
        raise CannotRead(f"limes does not know what {type(vectorizer).__qualname__} makes of single words")
    check_local(vectorizer, document)
    own = _counts(vectorizer, document.alone())
    counts = csr_array(own).astype(np.float64)
    if document.mask and _counts(vectorizer, [document.mask]).nnz:
        raise CannotRead(f"the vectorizer knows the mask {document.mask!r}")
    single_precision = vectorizer.dtype == np.float32
    found = WordRows(counts, None, _is_single(counts), 1, single_precision, type(own))
    if vectorizer.binary and not found.single:
        raise CannotRead("binary counts of words that share a column of the vectorizer do not add up")
    found = _WEIGHTS[class_name(type(vectorizer))](found, vectorizer)
    if len(steps) > 1 and class_name(type(steps[1])) == _WEIGHING:
        if found.norm is not None:
            raise CannotRead("TF-IDF weights on counts that are normalised already")
        found = replace(_weighted(found, steps[1]), steps=2)
    return found


def text_form(found: WordRows, rest: Sequence[Any], head: Any, method: str) -> Form:
    """The form over words of what the other steps and the head say of x(z).

    Raises
    ------
    CannotRead
        With the reason.
    """
    if class_name(type(head)).startswith("xgboost."):
        raise CannotRead("XGBoost takes the words that a text does not have as missing, not as 0")
    return _over_words(read_form(head, method, None), found, _after(rest, found))


def _after(rest: Sequence[Any], found: WordRows) -> Any:
    """R after linear steps, which see each word by itself."""
    from scipy.sparse import csr_array

    for step in rest:
        name = class_name(type(step)).removeprefix("sklearn.")
        if name not in _LINEAR or getattr(step, "clip", False):
            raise CannotRead(f"limes does not know whether {name}, behind the vectorizer, is linear")
    columns = csr_array(transformed(rest, found.matrix))
    if csr_array(transformed(rest, 0 * found.matrix[:1])).count_nonzero():
        raise CannotRead("the steps behind the vectorizer move the origin")
    return columns


def _over_words(form: Form, found: WordRows, columns: Any) -> Form:
    if isinstance(form, Combination):
        parts = [_over_words(part, found, columns) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if isinstance(form, Linear):
        return _linear(form, found, columns)
    if isinstance(form, Forest | Boxes):
        return _presence(form, found, columns)
    raise CannotRead(f"a {type(form).__name__} is not read over the words of a text")


def _linear(form: Linear, found: WordRows, columns: Any) -> Form:
    coef = np.asarray(columns @ form.coef)
    if found.norm is None:
        return Linear(coef, form.intercept)
    sizes = abs(found.matrix) if found.norm == "l1" else found.matrix.multiply(found.matrix)
    total = np.asarray(sizes.sum(axis=1), dtype=np.float64).ravel()
    return NormalizedLinear(coef, total, "l1" if found.norm == "l1" else "l2", form.intercept)


def _presence(form: Forest | Boxes, found: WordRows, columns: Any) -> Form:
    if found.norm is not None:
        raise CannotRead("trees on normalised texts ask how many words are left, not which")
    if not _is_single(columns):
        raise CannotRead("trees on columns that several words of the text share are not read")
    words = columns.tocoo()
    word_of, value_of = np.full(form.size, -1), np.zeros(form.size)
    word_of[words.col], value_of[words.col] = words.row, words.data
    return presence_of_columns(form, word_of, value_of, columns.shape[0])


# -- counts, weights, norms ----------------------------------------------------------------------------------


def _counts(vectorizer: Any, texts: Sequence[str]) -> Any:
    """Counts (n, V) of texts, without weights and norm."""
    return _COUNTERS[class_name(type(vectorizer))](vectorizer, list(texts))


def _count(vectorizer: Any, texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer.transform(vectorizer, texts)


def _hash(vectorizer: Any, texts: Sequence[str]) -> Any:
    from sklearn.base import clone

    return clone(vectorizer).set_params(norm=None).transform(texts)


_COUNTERS = {
    "sklearn.CountVectorizer": _count,
    "sklearn.TfidfVectorizer": _count,
    "sklearn.HashingVectorizer": _hash,
}


def _weighted(found: WordRows, weights: Any) -> WordRows:
    """TF-IDF: logarithms and inverse document frequencies, then the norm."""
    if weights.sublinear_tf and not found.single:
        raise CannotRead("logarithms of counts that several words of the text share do not add up")
    matrix = found.matrix.copy()
    if weights.sublinear_tf:
        matrix.data = np.log(matrix.data) + 1.0
    if weights.use_idf:
        matrix.data *= weights.idf_[matrix.indices]
    return _normalised(replace(found, matrix=matrix), weights.norm)


def _normalised(found: WordRows, norm: str | None) -> WordRows:
    if norm not in _NORMS:
        raise CannotRead(f"limes does not know the norm {norm!r}")
    if norm == "l2" and not found.single:
        raise CannotRead("the norm of a text in which several words share a column is not a sum over words")
    if norm == "l1" and not found.single and (found.matrix.data < 0).any():
        raise CannotRead("words of different signs share a column of the vectorizer")
    return replace(found, norm=norm)


_WEIGHTS: Mapping[str, Callable[[WordRows, Any], WordRows]] = {
    "sklearn.CountVectorizer": lambda found, vectorizer: found,  # noqa: ARG005 - counts as they are
    "sklearn.TfidfVectorizer": _weighted,
    "sklearn.HashingVectorizer": lambda found, vectorizer: _normalised(found, vectorizer.norm),
}


def _is_single(counts: Any) -> bool:
    """Whether no two words of the text share a column."""
    return bool(np.bincount(counts.indices).max(initial=0) <= 1)


# -- do words keep to themselves? ----------------------------------------------------------------------------


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
    if tuple(vectorizer.ngram_range) != (1, 1):
        raise CannotRead(f"ngram_range={tuple(vectorizer.ngram_range)}: pairs of words depend on neighbours")
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
    if not steps or class_name(type(steps[0])) not in _COUNTERS:
        return None
    vectorizer = steps[0]
    if vectorizer.preprocessor is not None or vectorizer.analyzer not in ("word", "char", "char_wb"):
        return None
    return vectorizer.build_preprocessor()
