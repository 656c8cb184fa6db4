"""The model that a rule explains, as it is called and read: its expectation, range, and why it is sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats, are_probabilities
from limes._expectations.moments import ExactMoments
from limes._explainers.options import REQUESTED
from limes._explainers.results import UNFINISHED
from limes._explainers.verified_form import VerifiedForm, exact_moments, margin_of
from limes._rules.bounds import (
    Bounds,
    Box,
    Searched,
    WeightedBounds,
    answer_range,
    bounds_of,
    least,
    searched_form,
    searched_margin,
)
from limes._rules.classes import Classes
from limes._rules.composed import Parts, is_composed
from limes._rules.literals import SignRows
from limes._rules.neighbourhood import LiteralNeighbourhood, TableDraws
from limes._rules.problem import AnswerRange, PopulationProblem
from limes._rules.solvers import SOLVERS
from limes._threads import LRUCache
from limes.exceptions import InputError, NotReadableError, ReadMismatchError
from limes.models._calling.caller import Calls, OneOutput, Retry, with_retries
from limes.models._calling.outputs import MEMBERSHIP, Output
from limes.models._identity import RefitDetector
from limes.models._reading import read_output, tolerance_of
from limes.models.forms._base import Form

# Laws under which literals are independent
_EXACT_LAWS = ("literal", "marginals")
# Methods whose answers lie between 0 and 1
_SHARES = ("predict_proba", MEMBERSHIP)

Ask = Callable[[Floats], Floats]


class RowCalls(Calls):
    """The model's answers around one row, kept batch by batch.

    A row that is explained again after a failure draws the same batches: those with answers are not asked
    again. ``rows`` counts the rows of all batches since ``restart``.
    """

    def __init__(self, ask: Ask, *, batch_size: int, retry: Retry | None = None) -> None:
        super().__init__(ask, batch_size=batch_size, retry=retry)
        self._batches: dict[bytes, Floats] = {}
        self.rows = 0

    def restart(self) -> None:
        self.rows = 0

    def __call__(self, x: Floats, seen: Counter[bytes] | None = None) -> Floats:  # noqa: ARG002 - by batches
        self.rows += len(x)
        starts = range(0, len(x), self.batch_size)
        return np.concatenate([self._batch(x[i : i + self.batch_size]) for i in starts])

    def _batch(self, x: Floats) -> Floats:
        key = blake2b(x.tobytes(), digest_size=16).digest()
        if key not in self._batches:
            self._batches[key] = with_retries(self._predict, x, self._retry)
        return self._batches[key]


@dataclass(frozen=True, eq=False)
class ModelReading:
    """A model as it was read, before a row is explained."""

    expectation: ExactMoments | None
    # answers rows in place of the model, (m, columns) -> (m,); None where the model must be asked
    predict: Ask | None
    samples: bool  # whether a row that the expectation refuses is sampled, from ``predict``
    # the range of answers in a neighbourhood; None where it is not known
    answer_range: Callable[[LiteralNeighbourhood], AnswerRange | None]
    background: Floats  # answers at the background's rows, (n,), that an assumed range has to cover
    bounds: Bounds | None  # of its answers over boxes of rows; None where it is not read, or no box bounds it
    reason: str  # why it is sampled, where it is
    watch: RefitDetector  # notices that the model was fitted again
    unfinished: LRUCache[int, RowCalls]  # answers around rows whose explanation was cut short
    read_searched: Callable[[], Searched | None]  # asks the model about a margin
    read_classes: Callable[[], Classes]
    _searched: LRUCache[None, Searched | None]
    _classes: LRUCache[None, Classes]

    @property
    def searched(self) -> Searched | None:
        """The form that contrasts search; None where no box bounds answers, nor the margin behind them."""
        return self._searched.get(None, self.read_searched)

    @property
    def classes(self) -> Classes:
        """The classes of the model, and what is searched for another one."""
        return self._classes.get(None, self.read_classes)

    def worst_case(self, box: Box, boxes: int) -> tuple[tuple[float, float] | None, bool]:
        """Return the least and the largest answer over a box, or bounds; and whether rows reach them.

        Where answers have no bounds, those of the margin behind them have: a link is monotone.
        """
        bounds, curve = self.bounds, None
        if bounds is None:
            if self.searched is None:
                return None, False
            bounds, curve = self.searched.bounds, self.searched.curve
        if boxes == 0 and bounds.lowest(box, 1.0) is None:  # one pass over the trees in place of two
            ends = bounds(box)
            low, high, is_reached = ends.low, ends.high, not ends.stakes.any()
        else:
            least_of = [least(bounds, box, sign=sign, boxes=boxes) for sign in (1.0, -1.0)]
            low, high = least_of[0].value, -least_of[1].value
            is_reached = all(end.row is not None for end in least_of)
        if curve is not None:
            low, high = np.sort(curve(np.array([low, high]))).tolist()
        return (low, high), is_reached

    @property
    def method(self) -> Literal["exact", "sampled"]:
        return "sampled" if self.expectation is None else "exact"


@dataclass(frozen=True, eq=False)
class RuleModel:
    """A model, how it is called, and by which options it is read."""

    model: Any
    output: Output
    ask: OneOutput  # a call of the model, of this output
    rows: SignRows
    spread: float  # σ
    law: str
    solver: str
    method: str
    passed: AnswerRange | None  # the range that the user states; None for "auto"

    def bind(self) -> ModelReading:
        """Read the model as it is now: for its expectation, and for the range of its answers."""
        why_sampled, expectation, passed = self._why_sampled(), None, self.passed
        bounded = passed is not None or self.output.method in _SHARES
        verified = VerifiedForm(model=self.model, output=self.output, ask=self.ask)
        # rows of the table have no expectation, but what is read answers them
        answers_rows = self.law == "background" and self.method == "auto"
        if answers_rows or not (why_sampled and bounded):
            verified = self._read()
        compared = verified  # its form has bounds even where it has no expectation
        if verified.form is not None and not why_sampled:
            try:
                expectation = self._expectation(verified.form)
            except NotReadableError as reason:
                if self.method == "exact":
                    raise
                verified = replace(verified, form=None, read_predict=None, reason=str(reason))
        form, allowed = verified.form, float(verified.allowed)

        def span(near: LiteralNeighbourhood) -> AnswerRange | None:
            if passed is not None:
                return passed
            if self.output.method in _SHARES and self._in_unit_interval:
                return AnswerRange(0.0, 1.0, "the range of probabilities")
            ends = None if form is None else answer_range(form, near.column_values)
            if ends is None:
                return None
            return AnswerRange(ends[0] - allowed, ends[1] + allowed, "the range that its form has")

        return ModelReading(
            expectation=expectation,
            predict=verified.read_predict if expectation is not None or answers_rows else None,
            samples=self.method == "auto",
            answer_range=span,
            background=np.zeros(0) if bounded or form is not None else self.rows.scale_answers(self.ask),
            bounds=None if form is None else bounds_of(form),
            reason=why_sampled or verified.reason,
            watch=verified.watch(),
            unfinished=LRUCache(UNFINISHED),
            read_searched=lambda: self._searched(self._read() if why_sampled and bounded else compared),
            read_classes=lambda: Classes(self.model, self.rows, self.form_of),
            _searched=LRUCache(1),
            _classes=LRUCache(1),
        )

    def _searched(self, verified: VerifiedForm) -> Searched | None:
        if verified.form is not None:
            rows = self.rows.checked_rows(verified.form.size)
            return searched_form(verified.form, rows, verified.tolerance)
        margin = margin_of(self.model, self.output, self.form_of)
        if margin is None:
            return self._composed()
        rows, columns = self.rows.checked_rows(margin.size), self.output.columns
        column = self.ask.column if columns is None else columns
        if isinstance(column, list):
            (column,) = column
        return searched_margin(margin, column, rows, self.ask(rows), tolerance_of(self.model))

    def _composed(self) -> Searched | None:
        """Return what votes, calibrated and stacked classifiers of two classes are searched on."""
        columns = self.output.columns
        column = columns[0] if isinstance(columns, list) else columns
        if self.output.method != "predict_proba" or not is_composed(self.model) or self.rows.width is None:
            return None

        def read(model: Any, output: Output) -> Form:
            return self.rows.form_of(read_output(model, output, self.rows.schema))

        rows = self.rows.checked_rows(self.rows.width)
        chance = Parts(read, self.rows.decode, rows).chance(self.model)
        if chance is None:
            return None
        # the first of two classes has the rest
        bounds = WeightedBounds((chance,), np.array([-1.0]), 1.0) if column == 0 else chance
        return Searched(bounds, None, tolerance_of(self.model), 1.0)

    @property
    def _in_unit_interval(self) -> bool:
        """Whether all answers so far lie within 0 and 1, as those to ``predict_proba`` need not."""
        return all(are_probabilities(answers, add_up=False) for answers in self.ask.first)

    def _why_sampled(self) -> str:
        solver, method = self.solver, self.method
        if SOLVERS[solver].needs is not PopulationProblem:
            if method == "exact":
                raise InputError(
                    f"method='exact' goes with solver='projection'; {solver!r} works on a sample"
                )
            return f"solver={solver!r} works on a sample"
        if self.law not in _EXACT_LAWS:
            if method == "exact":
                names = " or ".join(map(repr, _EXACT_LAWS))
                raise InputError(f"method='exact' goes with law={names}; law={self.law!r} is sampled")
            return f"law={self.law!r} is sampled"
        return REQUESTED if method == "sampled" else ""

    def _read(self) -> VerifiedForm:
        exact, column = self.method == "exact", self.ask.column

        def read(output: Output) -> Form:
            form = self.form_of(output)
            return form if output.columns is not None or column is None else form.select(column)

        tolerance = tolerance_of(self.model)
        facts = {"model": self.model, "output": self.output, "ask": self.ask, "tolerance": tolerance}
        verified = VerifiedForm.of(read, **facts)
        if verified.form is None:
            if exact:
                raise NotReadableError(f"method='exact' needs a model that can be read: {verified.reason}")
            return verified
        rows = self.rows.checked_rows(verified.form.size)
        try:
            return verified.compared(rows, self.ask(rows), lambda i: f"row {rows[i]}")
        except ReadMismatchError as mismatch:
            if exact:
                raise
            return verified.unread(str(mismatch))

    def form_of(self, output: Output) -> Form:
        return self.rows.form_of(read_output(self.model, output, self.rows.schema))

    def _expectation(self, form: Form) -> ExactMoments:
        """The form's exact expectation, tried around one row; a NotReadableError, if it has none."""
        row = self.rows.checked_rows(form.size)[0]
        near = self.rows.near(row, self.spread)
        assert not isinstance(near, TableDraws)  # noqa: S101 - it is sampled
        return exact_moments(form, near.design)[0]
