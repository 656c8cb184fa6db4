"""The model at one text: what it answers where words are removed, what could be read off it, and why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ReadMismatchError
from limes.expectations.controls.control import if_better_than_linear
from limes.expectations.controls.kernel import switch_kernels
from limes.explainers.switched import Switched
from limes.explainers.verification import check_agreement
from limes.models.calling.caller import ModelCaller
from limes.models.calling.outputs import Output, resolve
from limes.models.documents import Document, some_rows
from limes.models.forms.base import BlackBox, Form
from limes.models.readers.sklearn_text import text_form
from limes.models.readers.word_rows import WordRows, word_rows
from limes.models.reading import EXACT_TOLERANCE, SINGLE_TOLERANCE, CannotRead, tolerance_of
from limes.models.text_models import TextModel, transform
from limes.pipeline import Fitted

# A reading is compared with the model's own answers on so many deletions of the text.
_CHECKED_ROWS = 16
# rows z (n, d) -> (n,) or (n, k)
Answers: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class TextSubject:
    """A model at one text: ``prediction`` (1, ...) is its own answer to the whole of it.

    ``predict`` gives answers of the form where they are the model's own.
    """

    switched: Switched
    predict: Answers
    prediction: Floats

    @classmethod
    def of(cls, model: TextModel, wanted: Output, document: Document) -> TextSubject:
        """Read a model at a text, and compare what was read with its answers to deletions of the text.

        What does not answer the same is left to sampling.

        Raises
        ------
        ModelError
            If the model fails on the text.
        """
        # texts have many words, and often a linear fit tells all that so many calls can tell
        kernel = if_better_than_linear(switch_kernels)
        own = ModelCaller(model.head, wanted, lambda z: model.encode(document.texts(z)))
        some = some_rows(document.size, _CHECKED_ROWS)
        # a model that is not fitted, or takes no texts, says so itself
        known = own(some if model.steps else some[:1])
        try:
            rows = word_rows(model.steps, document)
        except CannotRead as reason:
            return cls(Switched(own, BlackBox(own, str(reason)), kernel=kernel), own, known[:1])
        tolerance = max(
            tolerance_of(model.head), SINGLE_TOLERANCE if rows.single_precision else EXACT_TOLERANCE
        )
        agree = partial(_compare, document, some, known, tolerance)
        rest = model.steps[rows.steps :]
        ask: Answers = own
        if rows.grams is None:
            ask = _quicker(
                ModelCaller(model.head, wanted, lambda z: transform(rest, rows.rows(z))), own, agree
            )
        form = _read(rows, rest, model.head, wanted, ask)
        if isinstance(form, BlackBox):
            behind = _margin(rows, rest, model.head, wanted, ask)
            return cls(Switched(ask, form, behind, kernel), ask, known[:1])
        try:
            agree(form.predict)
        except ReadMismatchError as reason:
            return cls(Switched(own, BlackBox(own, str(reason)), kernel=kernel), own, known[:1])
        predict = form.predict if tolerance <= EXACT_TOLERANCE else ask
        return cls(Switched(ask, form, kernel=kernel), predict, known[:1])


def _read(rows: WordRows, rest: tuple[Any, ...], head: Any, wanted: Output, ask: Answers) -> Form | BlackBox:
    try:
        form = text_form(rows, rest, head, wanted.method)
    except CannotRead as reason:
        return BlackBox(ask, str(reason))
    return form if wanted.columns is None else form.select(wanted.columns)


def _margin(rows: WordRows, rest: tuple[Any, ...], head: Any, wanted: Output, ask: Answers) -> Form | None:
    """What is behind the link of a model that could not be read, if that can be."""
    if wanted.method not in ("predict", "predict_proba"):
        return None
    try:
        form = _read(rows, rest, head, resolve(head, "margin"), ask)
    except InputError:
        return None
    return None if isinstance(form, BlackBox) else form


def _quicker(quick: Answers, own: Answers, agree: Callable[[Answers], None]) -> Answers:
    """Answers without strings, where they are the model's own; the two are compared before the first use."""

    @cache
    def chosen() -> Answers:
        try:
            agree(quick)
        except ReadMismatchError:
            return own
        return quick

    return lambda z: chosen()(z)


def _compare(document: Document, some: Floats, known: Floats, tolerance: float, answers: Answers) -> None:
    """Refuse answers that are not the model's own, known at some rows."""

    def where(row: int) -> str:
        (text,) = document.texts(some[row : row + 1])
        return f"the text {text[:200]!r}"

    check_agreement(known, answers(some), tolerance * float(np.abs(known).max()), where)


class FittedText(NamedTuple):
    """A text, the model at it, and its surrogate."""

    document: Document
    subject: TextSubject
    fitted: Fitted
