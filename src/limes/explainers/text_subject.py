"""The model at one text: what it answers where words are removed, what could be read off it, and why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from limes._arrays import Floats
from limes.designs.exchangeable import ExchangeableDesign
from limes.exceptions import InputError, NotReadableError, ReadMismatchError
from limes.expectations.controls.control import Control, none
from limes.expectations.controls.margin import margin
from limes.expectations.sampled import SampledExpectation
from limes.expectations.sampling import Sampling
from limes.models.documents import Document, some_rows
from limes.models.outputs import Asker, Output, resolve
from limes.models.read import CannotRead, tolerance_of
from limes.models.readers.sklearn_text import text_form
from limes.models.readers.word_rows import WordRows, word_rows
from limes.models.reductions import BlackBox, Form
from limes.models.registry import EXACT_TOLERANCE, SINGLE_TOLERANCE
from limes.models.text_models import TextModel, transformed
from limes.pipeline import Expectation, exact_expectation

# A reading is compared with the model's own answers on so many deletions of the text.
_CHECKED_ROWS = 8
# rows z (n, d) -> (n,) or (n, k)
Answers: TypeAlias = Callable[[Floats], Floats]
CONTROLS = ("auto", "none", "margin")


@dataclass(frozen=True, eq=False)
class TextSubject:
    """A model at one text.

    Attributes
    ----------
    ask
        (n, d) rows of kept words -> (n,) or (n, k), the model's answers.
    form
        What could be read, or a black box with the reason.
    tolerance
        How closely the model itself adds up.
    """

    model: TextModel
    wanted: Output
    ask: Answers
    form: Form | BlackBox
    rows: WordRows | None
    tolerance: float

    @classmethod
    def of(cls, model: TextModel, wanted: Output, document: Document) -> TextSubject:
        """Read a model at a text, and compare what was read with what it says of deletions of the text.

        Raises
        ------
        ModelError
            If the model fails on the text.
        ReadMismatchError
            If what was read does not answer what the model answers.
        """
        own = Asker(model.head, wanted, lambda z: model.encode(document.texts(z)))
        some = some_rows(document.size, _CHECKED_ROWS)
        # a model that is not fitted, or takes no texts, says so itself
        known = own(some if model.steps else some[:1])
        try:
            found = word_rows(model.steps, document)
        except CannotRead as reason:
            return cls(model, wanted, own, BlackBox(own, str(reason)), None, EXACT_TOLERANCE)
        tolerance = max(
            tolerance_of(model.head), SINGLE_TOLERANCE if found.single_precision else EXACT_TOLERANCE
        )
        agree = partial(_compare, document, some, known, tolerance)
        ask: Answers = own
        if found.grams is None:
            rest = model.steps[found.steps :]
            ask = _agreeing(Asker(model.head, wanted, lambda z: transformed(rest, found.rows(z))), agree)
        subject = cls(model, wanted, ask, BlackBox(ask, ""), found, tolerance)
        form = subject._read(wanted)
        if not isinstance(form, BlackBox):
            agree(form.predict)
        return replace(subject, form=form)

    def _read(self, wanted: Output) -> Form | BlackBox:
        assert self.rows is not None  # noqa: S101 - asked where there are some
        try:
            form = text_form(self.rows, self.model.steps[self.rows.steps :], self.model.head, wanted.method)
        except CannotRead as reason:
            return BlackBox(self.ask, str(reason))
        return form if wanted.columns is None else form.select(wanted.columns)

    def expectation(
        self, design: ExchangeableDesign, *, method: str, sampling: Sampling, control: str
    ) -> Expectation:
        """Exact where the form is known, else by asking: all deletions if they are few, a sample if not.

        Raises
        ------
        NotReadableError
            If ``method="exact"``, the model could not be read, and the deletions are many.
        InputError
            If ``control="margin"`` and there is none.
        """
        if method != "sampled" and not isinstance(self.form, BlackBox):
            return exact_expectation(self.form, ExchangeableDesign)
        if method == "exact" and design.states(sampling.max_calls) is None:
            raise NotReadableError(
                f"method='exact' needs a model that can be read: {self.reason}; or a budget for all 2^d "
                f"deletions of d = {design.size} words (max_calls). Use method='auto' to sample it, with "
                "error bars"
            )
        return SampledExpectation(self.ask, replace(sampling, controls=self._controls(control)))

    @property
    def reason(self) -> str:
        """Why it is sampled."""
        return self.form.reason if isinstance(self.form, BlackBox) else "asked for by method='sampled'"

    @property
    def predict(self) -> Answers:
        """Answers of the form where they are the model's own."""
        exact = not isinstance(self.form, BlackBox) and self.tolerance <= EXACT_TOLERANCE
        return self.form.predict if exact else self.ask

    def _controls(self, control: str) -> Mapping[str, Control]:
        """Candidates for the control variate."""
        margins = self._margin()
        known = {"none": none} if margins is None else {"none": none, "margin": margins}
        if control == "auto":
            return known
        if control not in known:
            raise InputError("control='margin' needs a model with a margin that can be read; use 'auto'")
        return {control: known[control]}

    def _margin(self) -> Control | None:
        if self.rows is None or self.wanted.method not in ("predict", "predict_proba"):
            return None
        try:
            form = self._read(resolve(self.model.head, "margin"))
        except InputError:
            return None
        if isinstance(form, BlackBox):
            return None
        return margin(form.predict, exact_expectation(form, ExchangeableDesign), rest=none)


def _agreeing(answers: Answers, agree: Callable[[Answers], None]) -> Answers:
    """The same answers, compared with the model's own before they are first used."""
    compare = cache(lambda: agree(answers))

    def ask(z: Floats) -> Floats:
        compare()
        return answers(z)

    return ask


def _compare(document: Document, some: Floats, known: Floats, tolerance: float, answers: Answers) -> None:
    """Refuse answers that are not the model's own, known at some rows."""
    found = answers(some)
    same = known.shape == found.shape
    wrong = ~(np.abs(known - found) <= tolerance * np.abs(known).max()) if same else np.array([True])
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))
        (text,) = document.texts(some[row : row + 1])
        raise ReadMismatchError(
            f"for the text {text[:200]!r} the model answers {known[row]}, what was read off it gives "
            f"{found[row]}; pass a callable on texts instead of the Pipeline, and please report this"
        )
