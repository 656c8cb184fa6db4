"""Models behind scikit-learn's vectorizers, as forms over the kept words z of one text.

Rows of a vectorizer are x(z) = φ(z) R, over their norm if any. R has a row for each word of the text, the
vectorizer's output for that word alone, before the norm; φ(z) = z. With n-grams R has a row for every product
of words that makes one appear, and φ(z) are these products: an n-gram of tokens i_1 < ... < i_n appears where
they are kept and all tokens between them are removed. That holds where the tokens of a perturbed text are the
tokens of its kept words, and where rows of R that share a column add up there; both are checked here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.exceptions import InputError
from limes.models._documents import VECTORIZERS, Document, transform
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, read_form, refuse_replaced_methods
from limes.models.forms._base import Boxes, Combination, Form, Linear
from limes.models.forms._linked import Linked, Softmax
from limes.models.forms._presence import (
    LARGEST_GROUP,
    NormalizedLinear,
    PresenceProducts,
    Switches,
    presence_products,
    shared_words,
)
from limes.models.forms._trees import Forest

# Most tokens that are tried to extend runs, and most factors of products: both take about a second
_MOST_TRIED, _MOST_FACTORS = 4_000_000, 3_000_000

# A token, and which of the text's words it belongs to
Token: TypeAlias = tuple[str, int]
_Words: TypeAlias = frozenset[int]


class Grams(NamedTuple):
    """Products of the words of a text, and the n-gram that appears where each of them is 1."""

    texts: tuple[str, ...]  # (G,) the n-grams
    counts: Ints  # (G,) how often each then appears
    factors: tuple[Ints, Ints, Bools]  # product, word and presence (L,), as in PresenceProducts


def _grams_of(tokens: Sequence[Token], sizes: range, vocabulary: Collection[str] | None) -> Grams:
    """All n-grams, n in ``sizes``, that a perturbed text can have, of the vocabulary if there is one."""
    counts: Counter[tuple[str, _Words, _Words]] = Counter()
    factors = 0
    for run in _runs(tokens, sizes[-1], None if vocabulary is None else _prefixes(vocabulary)):
        if run.length in sizes and (vocabulary is None or run.text in vocabulary):
            counts[run.text, frozenset(run.kept), frozenset(run.removed)] += 1
            factors += len(run.kept) + len(run.removed)
        if factors > _MOST_FACTORS:
            raise _too_many(tokens)
    sides = [side for _, kept, removed in counts for side in (kept, removed)]
    side_of = np.repeat(np.arange(len(sides)), [len(side) for side in sides])
    words = np.array([word for side in sides for word in side], dtype=np.int64)
    times = np.array(list(counts.values()), dtype=np.int64)
    return Grams(tuple(text for text, _, _ in counts), times, (side_of // 2, words, side_of % 2 == 0))


def _prefixes(vocabulary: Collection[str]) -> set[str]:
    prefixes = set(vocabulary)
    for gram in vocabulary:
        while " " in gram:
            gram = gram.rpartition(" ")[0]
            if gram in prefixes:
                break
            prefixes.add(gram)
    return prefixes


class _Run(NamedTuple):
    """Tokens that are neighbours in some perturbed text."""

    text: str
    length: int
    last: int
    kept: set[int]
    removed: set[int]


def _runs(tokens: Sequence[Token], longest: int, prefixes: set[str] | None) -> Iterator[_Run]:
    """Runs of a text that are prefixes of the vocabulary; all runs if ``prefixes`` is None."""
    # A run is valid until the next one is yielded.
    tried = 0

    def with_longer(run: _Run) -> Iterator[_Run]:
        """Yield the run itself, and those that begin with it; the words between its tokens are removed."""
        nonlocal tried
        yield run
        if run.length == longest:
            return
        removed = set(run.removed)
        for i in range(run.last + 1, len(tokens)):
            token, word = tokens[i]
            tried += 1
            if word not in removed:
                text = f"{run.text} {token}"
                if prefixes is None or text in prefixes:
                    yield from with_longer(_Run(text, run.length + 1, i, run.kept | {word}, removed))
            if word in run.kept:
                break
            removed.add(word)
        if tried > _MOST_TRIED:
            raise _too_many(tokens)

    for first, (token, word) in enumerate(tokens):
        if prefixes is None or token in prefixes:
            yield from with_longer(_Run(token, 1, first, {word}, set()))


def _too_many(tokens: Sequence[Token]) -> CannotRead:
    return CannotRead(f"a text of {len(tokens)} words has too many n-grams once some are removed")


_WEIGHING = "sklearn.TfidfTransformer"
_NORMS = (None, "l1", "l2")


@dataclass(frozen=True, eq=False)
class WordRows:
    """The rows of a text's words after vectorizing steps."""

    matrix: Any  # R, sparse (d, V), or (G, V) with n-grams
    words: int  # d
    grams: Grams | None  # the products φ of n-grams; None where φ(z) = z
    norm: str | None  # None, "l1" or "l2"
    single: bool  # whether no two rows of R share a column
    steps: int  # of the model's, that are vectorizing
    single_precision: bool  # whether the vectorizer adds in float32
    kind: type  # class of the vectorizer's sparse rows, as some models accept one class only

    def rows(self, z: Floats) -> Any:
        """x(z), sparse (n, V), at rows z (n, d), where there are no n-grams."""
        from scipy.sparse import csr_array
        from sklearn.preprocessing import normalize

        rows = self.kind(csr_array(z) @ self.matrix)
        return rows if self.norm is None else normalize(rows, norm=self.norm)


def word_rows(steps: Sequence[Any], document: Document) -> WordRows:
    """Read the first steps of a model of texts, on one document."""
    if not steps:
        raise CannotRead("the model takes texts as they are, and can only be called")
    vectorizer = steps[0]
    kind = qualified_name(type(vectorizer))
    if kind not in VECTORIZERS:
        raise CannotRead(f"limes does not know how {type(vectorizer).__qualname__} treats single words")
    refuse_replaced_methods(vectorizer)
    _check_options(vectorizer)
    _check_gaps(vectorizer, document)
    rows = _counts(vectorizer, document)
    if vectorizer.binary and not rows.single:
        raise CannotRead("binary counts of words that share a column of the vectorizer do not add up")
    if kind == "sklearn.TfidfVectorizer":
        rows = _weighted(rows, vectorizer)
    elif kind == _HASHING:
        rows = _normalised(rows, vectorizer.norm)
    if len(steps) > 1 and qualified_name(type(steps[1])) == _WEIGHING:
        if rows.norm is not None:
            raise CannotRead("TF-IDF weights on counts that are normalised already")
        rows = replace(_weighted(rows, steps[1]), steps=2)
    return rows


# -- counts --------------------------------------------------------------------------------------------------

_HASHING = "sklearn.HashingVectorizer"


def _counts(vectorizer: Any, document: Document) -> WordRows:
    from scipy.sparse import csr_array

    if tuple(vectorizer.ngram_range) == (1, 1):
        if document.mask and _counted(vectorizer, [document.mask]).nnz:
            raise CannotRead(f"the mask {document.mask!r} is a token of the vectorizer")
        grams, rows = None, _counted(vectorizer, document.word_texts())
        counts = csr_array(rows).astype(np.float64)
    else:
        grams = _grams(vectorizer, document)
        rows = _counted_grams(vectorizer, grams.texts)
        counts = csr_array(csr_array(rows).astype(np.float64).multiply(grams.counts[:, None]))
    if vectorizer.binary:
        counts.data = np.sign(counts.data)
    single_precision = vectorizer.dtype == np.float32
    return WordRows(counts, document.size, grams, None, _is_single(counts), 1, single_precision, type(rows))


def _grams(vectorizer: Any, document: Document) -> Grams:
    clean, cut = vectorizer.build_preprocessor(), vectorizer.build_tokenizer()
    stop = vectorizer.get_stop_words() or frozenset()

    def tokens(text: str) -> list[str]:
        return [token for token in cut(clean(text)) if token not in stop]

    if tokens(document.mask):
        raise CannotRead(f"the mask {document.mask!r} stands between the words of n-grams")
    smallest, largest = vectorizer.ngram_range
    each: list[Token] = [
        (token, word)
        for occurrence, word in zip(document.occurrences, document.word.tolist(), strict=True)
        for token in tokens(occurrence)
    ]
    vocabulary = getattr(vectorizer, "vocabulary_", None)
    return _grams_of(each, range(smallest, largest + 1), vocabulary)


def _counted(vectorizer: Any, texts: Sequence[str]) -> Any:
    from sklearn.base import clone
    from sklearn.feature_extraction.text import CountVectorizer

    if qualified_name(type(vectorizer)) == _HASHING:
        return clone(vectorizer).set_params(norm=None).transform(list(texts))
    return CountVectorizer.transform(vectorizer, list(texts))


def _counted_grams(vectorizer: Any, grams: Sequence[str]) -> Any:
    from scipy.sparse import csr_matrix
    from sklearn.base import clone

    if qualified_name(type(vectorizer)) != _HASHING:
        columns = [vectorizer.vocabulary_[gram] for gram in grams]
        shape = (len(grams), len(vectorizer.vocabulary_))
        return csr_matrix((np.ones(len(grams)), columns, np.arange(len(grams) + 1)), shape=shape)
    if not grams:
        return csr_matrix((0, vectorizer.n_features))
    whole = clone(vectorizer).set_params(norm=None, ngram_range=(1, 1), analyzer=lambda gram: [gram])
    return whole.transform(list(grams))


def _is_single(counts: Any) -> bool:
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


# -- whether the vectorizer reads each word by itself -------------------------------------------------------

# Patterns of word characters and edges of words only
_OF_WORD_CHARACTERS = re.compile(
    r"(?:\(\?[aiu]+\)|\\[bwd]|\[(?:\\[wd]|[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d|\w)+\]|\(\?:|[()|+*?]|\{\d*,?\d*\}|\w)+"
)


# Patterns of what is between spaces, and scikit-learn's own
_BETWEEN_SPACES = (r"\S+", r"(?u)\S+", r"[^\s]+")
_USUAL = r"(?u)\b\w\w+\b"


def token_pattern(steps: Sequence[Any]) -> tuple[str, Callable[[str], str]] | None:
    """A vectorizer's ``token_pattern`` and preprocessor; None where that is scikit-learn's own or unused."""
    if not steps or qualified_name(type(steps[0])) not in VECTORIZERS:
        return None
    vectorizer = steps[0]
    pattern = vectorizer.token_pattern
    is_used = vectorizer.analyzer == "word" and vectorizer.tokenizer is None and isinstance(pattern, str)
    return (pattern, vectorizer.build_preprocessor()) if is_used and pattern != _USUAL else None


def _check_options(vectorizer: Any) -> None:
    """Refuse vectorizers whose tokens of a text are not the tokens of its words."""
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
    matches_empty = any(not match.group() for match in re.finditer(pattern, "a1 _!"))
    if pattern not in _BETWEEN_SPACES and (not _OF_WORD_CHARACTERS.fullmatch(pattern) or matches_empty):
        raise CannotRead(f"token_pattern={pattern!r} may match more than the characters of one word")


def _check_gaps(vectorizer: Any, document: Document) -> None:
    """Refuse texts whose tokens are not the tokens of their words."""
    clean = vectorizer.build_preprocessor()
    if vectorizer.lowercase and "Σ" in document.text:
        raise CannotRead("how the Greek letter Σ is written in lower case depends on its neighbours")
    gaps, character = [clean(gap) for gap in dict.fromkeys(document.gaps)], r"\w"
    if vectorizer.token_pattern in _BETWEEN_SPACES:
        character = r"\S"
    letters = [gap for gap in gaps if re.search(character, gap)]
    if letters and not _are_ignored(vectorizer, document, letters):
        raise CannotRead("the split leaves letters between the words, which may be tokens of the vectorizer")
    # a symbol that touches a word is no part of it, but two words that touch it would touch without it
    touched = False
    for k, (gap, word) in enumerate(zip(map(clean, document.gaps), document.occurrences, strict=False)):
        joined, has_letters = k > 0 and not gap, bool(re.search(character, clean(word)))
        if joined and touched and has_letters:
            raise CannotRead("words of this split touch each other, and the vectorizer may join them")
        touched = has_letters or (joined and touched)


def _are_ignored(vectorizer: Any, document: Document, gaps: Sequence[str]) -> bool:
    """Whether a vectorizer of single words counts nothing of gaps, whose letters touch no word."""
    before, behind = document.gaps[:-1], document.gaps[1:]
    touching = any(re.search(r"\w$", gap) for gap in before) or any(re.match(r"\w", gap) for gap in behind)
    return not touching and tuple(vectorizer.ngram_range) == (1, 1) and not vectorizer.transform(gaps).nnz


def word_normalizer(steps: Sequence[Any]) -> Any:
    """The preprocessor of a vectorizer: words that it maps to one string are the same; None if unknown."""
    if not steps or qualified_name(type(steps[0])) not in VECTORIZERS:
        return None
    vectorizer = steps[0]
    if vectorizer.preprocessor is not None or vectorizer.analyzer not in ("word", "char", "char_wb"):
        return None
    return vectorizer.build_preprocessor()


# -- models behind the vectorizer ------------------------------------------------------------------------


# Linear steps: the sum of rows becomes the sum of their images
_SELECTORS = (
    "GenericUnivariateSelect SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest SelectPercentile"
)
_LINEAR = f"{_SELECTORS} MaxAbsScaler StandardScaler TruncatedSVD VarianceThreshold".split()


def text_form(word_rows: WordRows, rest: Sequence[Any], head: Any, method: str) -> Form:
    """The form over words of the other steps and the head, at x(z)."""
    if qualified_name(type(head)).startswith("xgboost."):
        raise CannotRead("XGBoost takes words that are not in a text as missing, not as 0")
    return _over_words(read_form(head, method, None), word_rows, _after(rest, word_rows))


def _after(rest: Sequence[Any], word_rows: WordRows) -> Any:
    """R after linear steps, which act on each word by itself."""
    if not rest:
        return word_rows.matrix
    from scipy.sparse import csr_array, csr_matrix, vstack

    for step in rest:
        name = qualified_name(type(step)).removeprefix("sklearn.")
        if name not in _LINEAR or getattr(step, "clip", False):
            raise CannotRead(f"limes does not know whether {name}, behind the vectorizer, is linear")
    origin = csr_array((1, word_rows.matrix.shape[1]))
    columns = csr_array(transform(rest, csr_matrix(vstack([word_rows.matrix, origin]))))
    if columns[-1:].count_nonzero():
        raise CannotRead("the steps behind the vectorizer move the origin")
    return columns[:-1]


def _over_words(form: Form, word_rows: WordRows, columns: Any) -> Form:
    if isinstance(form, Combination):
        parts = [_over_words(part, word_rows, columns) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if isinstance(form, Linear):
        return _linear_over_words(form, word_rows, columns)
    if isinstance(form, Forest | Boxes):
        return _trees_on_words(form, word_rows, columns)
    if isinstance(form, Linked):
        margin = _over_words(form.margin, word_rows, columns)
        try:
            return replace(form, margin=margin)
        except InputError as error:
            raise CannotRead(
                f"probabilities follow a margin that is no sum of words ({error}); output='margin' is read"
            ) from error
    if isinstance(form, Softmax):
        raise CannotRead(
            "probabilities of three classes over words have no exact expectation; output='margin' has"
        )
    raise CannotRead(f"a {type(form).__name__} is not read over the words of a text")


def _linear_over_words(form: Linear, word_rows: WordRows, columns: Any) -> Form:
    coef = np.asarray(columns @ form.coef)
    if word_rows.grams is not None:
        factors = word_rows.grams.factors
        return PresenceProducts.from_factors(*factors, coef, form.intercept, word_rows.words)
    if word_rows.norm is None:
        return Linear(coef, form.intercept)
    sizes = abs(word_rows.matrix) if word_rows.norm == "l1" else word_rows.matrix.multiply(word_rows.matrix)
    total = np.asarray(sizes.sum(axis=1), dtype=np.float64).ravel()
    if word_rows.norm == "l1":
        return NormalizedLinear(coef, total, "l1", form.intercept)
    shared = () if word_rows.single else shared_words(word_rows.matrix)
    if shared is None:
        raise CannotRead(f"more than {LARGEST_GROUP} words of the text share columns of the vectorizer")
    return NormalizedLinear(coef, total, "l2", form.intercept, shared)


def used_words(form: Form) -> Bools:
    """Return which words a form over them depends on, (d,)."""
    if isinstance(form, Combination):
        return np.asarray(np.stack([used_words(part) for part in form.parts]).any(axis=0))
    if isinstance(form, Linked):
        return used_words(form.margin)
    if isinstance(form, Linear):
        return np.asarray(form.coef.any(axis=tuple(range(1, form.coef.ndim))))
    if isinstance(form, NormalizedLinear):  # a word without a coefficient is part of the norm
        return np.asarray(form.a > 0)
    if isinstance(form, PresenceProducts):
        counts = np.asarray(form.coef.any(axis=tuple(range(1, form.coef.ndim))))
        return np.isin(np.arange(form.size), form.word[counts[form.product]])
    return np.ones(form.size, dtype=np.bool_)


def _trees_on_words(form: Forest | Boxes, word_rows: WordRows, columns: Any) -> Form:
    if word_rows.norm is not None:
        raise CannotRead("trees on normalised texts test how many words are kept, not which")
    if word_rows.grams is not None:
        raise CannotRead("trees on counts of n-grams are not read, only on counts of words")
    if not _is_single(columns):
        raise CannotRead("trees on columns that several words of the text share are not read")
    words = columns.tocoo()
    word_of, value_of = np.full(form.size, -1), np.zeros(form.size)
    word_of[words.col], value_of[words.col] = words.row, words.data
    return presence_products(form, Switches(value_of, np.zeros(form.size), word_of), columns.shape[0])
