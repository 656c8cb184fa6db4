r"""Models behind scikit-learn's vectorizers, as forms over the words of one text.

With x(z) = φ(z) R, over its norm if there is one (``word_rows.py``), a linear model on x is a form over z by
its coefficients times R, and a tree on x tests which words are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from limes.exceptions import InputError
from limes.models._documents import transform
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, read_form
from limes.models.forms._base import Combination, Form
from limes.models.forms._linked import Linked
from limes.models.forms._normalized_linear import LARGEST_GROUP, NormalizedLinear, shared_words
from limes.models.forms._presence import presence_of_columns
from limes.models.forms._reducible import Boxes, Linear
from limes.models.forms._softmax import Softmax
from limes.models.forms._trees import Forest
from limes.models.readers.word_rows import WordRows, is_single

# Linear steps: the sum of rows becomes the sum of their images
_SELECTORS = (
    "GenericUnivariateSelect SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest SelectPercentile"
)
_LINEAR = f"{_SELECTORS} MaxAbsScaler StandardScaler TruncatedSVD VarianceThreshold".split()


def text_form(word_rows: WordRows, rest: Sequence[Any], head: Any, method: str) -> Form:
    """Return the form over words of the other steps and the head, at x(z).

    Raises
    ------
    CannotRead
        If a step or the head cannot be read, with the reason.
    """
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
        return _linear(form, word_rows, columns)
    if isinstance(form, Forest | Boxes):
        return _presence(form, word_rows, columns)
    if isinstance(form, Linked):
        return _linked(form, word_rows, columns)
    if isinstance(form, Softmax):
        raise CannotRead(
            "probabilities of three classes over words have no exact expectation; output='margin' has"
        )
    raise CannotRead(f"a {type(form).__name__} is not read over the words of a text")


def _linked(form: Linked, word_rows: WordRows, columns: Any) -> Form:
    margin = _over_words(form.margin, word_rows, columns)
    try:
        return replace(form, margin=margin)
    except InputError as error:
        raise CannotRead(
            f"probabilities follow a margin that is no sum of words ({error}); output='margin' is read"
        ) from error


def _linear(form: Linear, word_rows: WordRows, columns: Any) -> Form:
    coef = np.asarray(columns @ form.coef)
    if word_rows.grams is not None:
        return word_rows.grams.products(coef, form.intercept, word_rows.words)
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


def _presence(form: Forest | Boxes, word_rows: WordRows, columns: Any) -> Form:
    if word_rows.norm is not None:
        raise CannotRead("trees on normalised texts test how many words are kept, not which")
    if word_rows.grams is not None:
        raise CannotRead("trees on counts of n-grams are not read, only on counts of words")
    if not is_single(columns):
        raise CannotRead("trees on columns that several words of the text share are not read")
    words = columns.tocoo()
    word_of, value_of = np.full(form.size, -1), np.zeros(form.size)
    word_of[words.col], value_of[words.col] = words.row, words.data
    return presence_of_columns(form, word_of, value_of, columns.shape[0])
