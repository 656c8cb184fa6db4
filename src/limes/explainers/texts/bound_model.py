"""A model bound to one text: its answers where words are removed, and the form that could be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ReadMismatchError
from limes.expectations.controls.control import if_better_than_linear
from limes.expectations.controls.kernel import switch_kernels
from limes.explainers._masked import MaskedModel, Predict
from limes.explainers.verification import check_agreement
from limes.models.calling.caller import ModelCaller
from limes.models.calling.outputs import Output, resolve
from limes.models.documents import Document, some_rows
from limes.models.forms.base import BlackBox, Form
from limes.models.readers.sklearn_text import text_form
from limes.models.readers.word_rows import WordRows, word_rows
from limes.models.reading import EXACT_TOLERANCE, SINGLE_TOLERANCE, CannotRead, tolerance_of
from limes.models.text_models import TextModel, transform

# Deletions of the text on which form and model are compared
_CHECKED_ROWS = 16


def bind(model: TextModel, output: Output, document: Document) -> MaskedModel:
    """Read a model at a text, and compare the form with its answers to deletions of the text.

    A model whose form answers something else is left to sampling.

    Raises
    ------
    ModelError
        If the model fails on the text.
    """
    # texts have many words, and often a linear fit explains all that the calls can show
    kernel = if_better_than_linear(switch_kernels)
    with_strings = ModelCaller(model.head, output, lambda z: model.encode(document.texts(z)))
    rows = some_rows(document.size, _CHECKED_ROWS)
    # a model that is not fitted, or takes no texts, raises its own error here
    answers = with_strings(rows if model.steps else rows[:1])
    bound = partial(MaskedModel, outputs=output.names(answers.shape[1:]), whole=answers[:1], kernel=kernel)
    try:
        words = word_rows(model.steps, document)
    except CannotRead as reason:
        return bound(with_strings, BlackBox(with_strings, str(reason)))
    tolerance = max(tolerance_of(model.head), SINGLE_TOLERANCE if words.single_precision else EXACT_TOLERANCE)
    check = partial(_check, document, rows, answers, tolerance)
    rest = model.steps[words.steps :]
    ask: Predict = with_strings
    if words.grams is None:
        sparse = ModelCaller(model.head, output, lambda z: transform(rest, words.rows(z)))
        ask = _without_strings(sparse, with_strings, check)
    form = _read(words, rest, model.head, output, ask)
    if isinstance(form, BlackBox):
        return bound(ask, form, predict=ask, margin=_margin(words, rest, model.head, output, ask))
    try:
        check(form.predict)
    except ReadMismatchError as reason:
        return bound(with_strings, BlackBox(with_strings, str(reason)))
    return bound(ask, form, predict=form.predict if tolerance <= EXACT_TOLERANCE else ask)


def _read(words: WordRows, rest: tuple[Any, ...], head: Any, output: Output, ask: Predict) -> Form | BlackBox:
    try:
        form = text_form(words, rest, head, output.method)
    except CannotRead as reason:
        return BlackBox(ask, str(reason))
    return form if output.columns is None else form.select(output.columns)


def _margin(words: WordRows, rest: tuple[Any, ...], head: Any, output: Output, ask: Predict) -> Form | None:
    """Return the form behind the link of a model that could not be read, if that can be."""
    if output.method not in ("predict", "predict_proba"):
        return None
    try:
        form = _read(words, rest, head, resolve(head, "margin"), ask)
    except InputError:
        return None
    return None if isinstance(form, BlackBox) else form


def _without_strings(sparse: Predict, with_strings: Predict, check: Callable[[Predict], None]) -> Predict:
    """Ask with sparse rows, where the answers are those to strings; the two are compared at the first use."""

    @cache
    def chosen() -> Predict:
        try:
            check(sparse)
        except ReadMismatchError:
            return with_strings
        return sparse

    return lambda z: chosen()(z)


def _check(document: Document, rows: Floats, answers: Floats, tolerance: float, predict: Predict) -> None:
    """Raise if predictions differ from the model's own answers at some rows."""

    def where(row: int) -> str:
        (text,) = document.texts(rows[row : row + 1])
        return f"the text {text[:200]!r}"

    check_agreement(answers, predict(rows), tolerance * float(np.abs(answers).max()), where)
