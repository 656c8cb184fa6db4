"""The model that a rule explains, as it is called and read: its expectation, range, and why it is sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats
from limes._expectations.moments import ExactMoments
from limes._expectations.of_forms import exact_expectation
from limes._explainers.options import REQUESTED
from limes._explainers.results import UNFINISHED
from limes._explainers.verification import check_agreement
from limes._rules.bounds import Bounds, Box, answer_range, bounds_of, least
from limes._rules.literals import SignRows, TableRows
from limes._rules.neighbourhood import LiteralNeighbourhood
from limes._rules.problem import AnswerRange, PopulationProblem
from limes._rules.solvers import SOLVERS
from limes._threads import LRUCache
from limes.exceptions import InputError, ModelError, NotReadableError, ReadMismatchError
from limes.models._calling.caller import Calls, OneOutput, Retry, with_retries
from limes.models._calling.outputs import MEMBERSHIP, Output
from limes.models._identity import Watch
from limes.models._reading import read_output, tolerance_of, watch
from limes.models.forms._base import BlackBox, Form

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
        starts = range(0, len(x), self._batch_size)
        return np.concatenate([self._batch(x[i : i + self._batch_size]) for i in starts])

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
    watch: Watch  # notices that the model was fitted again
    unfinished: LRUCache[int, RowCalls]  # answers around rows whose explanation was cut short

    def worst_case(self, box: Box, boxes: int) -> tuple[tuple[float, float] | None, bool]:
        """Return the least and the largest answer over a box, or bounds; and whether rows reach them."""
        if self.bounds is None:
            return None, False
        if boxes == 0 and self.bounds.lowest(box, 1.0) is None:  # one pass over the trees in place of two
            ends = self.bounds(box)
            return (ends.low, ends.high), not ends.stakes.any()
        low, high = (least(self.bounds, box, sign=sign, boxes=boxes) for sign in (1.0, -1.0))
        return (low.value, -high.value), low.row is not None and high.row is not None

    @property
    def method(self) -> Literal["exact", "sampled"]:
        return "sampled" if self.expectation is None else "exact"


@dataclass(frozen=True, eq=False)
class RuleModel:
    """A model, how it is called, and by which options it is read."""

    model: Any
    output: Output
    ask: OneOutput  # a call of the model, of this output
    rows: SignRows | TableRows
    spread: float  # σ
    solver: str
    method: str
    passed: AnswerRange | None  # the range that the user states; None for "auto"

    def bind(self) -> ModelReading:
        """Read the model as it is now: for its expectation, and for the range of its answers."""
        why_sampled, expectation, passed = self._why_sampled(), None, self.passed
        bounded = passed is not None or self.output.method in _SHARES
        form, reason, allowed = (None, "", 0.0) if why_sampled and bounded else self._read()
        if form is not None and not why_sampled:
            expectation, reason = self._expectation(form)
            form = None if expectation is None else form
        predict = None if form is None else form.predict
        watched = watch(self.model, ask=self.ask, predict=predict, allowed=allowed)

        def span(near: LiteralNeighbourhood) -> AnswerRange | None:
            if passed is not None:
                return passed
            if self.output.method in _SHARES:
                return AnswerRange(0.0, 1.0, "the range of probabilities")
            ends = None if form is None else answer_range(form, near.column_values)
            if ends is None:
                return None
            return AnswerRange(ends[0] - allowed, ends[1] + allowed, "the range that its form has")

        return ModelReading(
            expectation=expectation,
            predict=None if expectation is None else predict,
            samples=self.method == "auto",
            answer_range=span,
            background=np.zeros(0) if bounded or form is not None else self.rows.scale_answers(self.ask),
            bounds=None if form is None else bounds_of(form),
            reason=why_sampled or reason,
            watch=watched,
            unfinished=LRUCache(UNFINISHED),
        )

    def _why_sampled(self) -> str:
        solver, method = self.solver, self.method
        if SOLVERS[solver].needs is not PopulationProblem:
            if method == "exact":
                raise InputError(
                    f"method='exact' goes with solver='projection'; {solver!r} works on a sample"
                )
            return f"solver={solver!r} works on a sample"
        return REQUESTED if method == "sampled" else ""

    def _read(self) -> tuple[Form | None, str, float]:
        exact = self.method == "exact"
        form = read_output(self.model, self.output, self.rows.decode, schema=self.rows.schema)
        if isinstance(form, BlackBox):
            if exact:
                raise NotReadableError(f"method='exact' needs a model that can be read: {form.reason}")
            return None, form.reason, 0.0
        if self.output.columns is None and self.ask.column is not None:
            form = form.select(self.ask.column)
        rows = self.rows.checked_rows(form.size)
        answers = self.ask(rows)
        allowed = tolerance_of(self.model) * float(np.abs(answers).max())
        try:
            check_agreement(answers, form.predict(rows), allowed, lambda i: f"row {rows[i]}")
        except ReadMismatchError as error:
            if exact:
                raise
            return None, str(error), 0.0
        return form, "", allowed

    def _expectation(self, form: Form) -> tuple[ExactMoments | None, str]:
        row = self.rows.checked_rows(form.size)[0]
        try:
            expectation = exact_expectation(form)
            expectation.moments(self.rows.near(row, self.spread).design, row)
        except (InputError, ModelError) as error:
            reason = f"the model was read, but its expectation is not exact: {error}"
            if self.method == "exact":
                raise NotReadableError(reason) from error
            return None, reason
        return expectation, ""
