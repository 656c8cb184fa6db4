"""A model bound to a background: its answers, the form that could be read, and its expectation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._bars import Progress
from limes._expectations.controls import CONTROLS
from limes._expectations.controls.control import Control
from limes._expectations.controls.tables import MarginControl
from limes._expectations.joint import JointExpectation
from limes._expectations.moments import ExactMoments, Moments
from limes._expectations.of_forms import exact_expectation
from limes._expectations.pooled import PooledExpectation, sampler
from limes._expectations.sampled import SampledExpectation
from limes._explainers.options import REQUESTED, SamplingOptions
from limes._explainers.tables.read_model import ReadModel
from limes._explainers.tables.table import Table
from limes._explainers.tables.table_laws import Family
from limes._explainers.verification import (
    TABLE_DRAWS,
    Probe,
    check_agreement,
    check_atoms,
    check_draws,
    product_rows,
    widened,
)
from limes._pipeline import Expectation
from limes.designs._joint import JointFamily
from limes.designs._product import ProductDesign, ProductFamily
from limes.exceptions import InputError, ModelError, NotReadableError, ReadMismatchError
from limes.models._calling.caller import (
    CHECK_CALLS,
    ModelCaller,
    RowwisePredictions,
    few_inputs,
    spread_of_answers,
)
from limes.models._calling.methods import direct_question
from limes.models._calling.outputs import Output, is_log_odds, noted
from limes.models._identity import REFIT_ROUNDING, Predict, Watch, few_rows
from limes.models._inverse_links import matching_curve
from limes.models._reading import tolerance_of, watch
from limes.models.forms._base import BlackBox, Form
from limes.models.forms._trees import Forest
from limes.models.readers import EXACT_TOLERANCE, SINGLE_TOLERANCE

# Rows predicted at once, where only predictions are needed
_BATCH = 10_000


@dataclass(frozen=True, eq=False)
class BoundModel:
    """A model as the pipeline takes it.

    Attributes
    ----------
    predict
        (n, d) -> (n,) or (n, k), the model's own answers, or those of its form where they are the same.
    predict_reproducibly
        The same, where a row's answer does not depend on the rows beside it, to the last bit: a model may add
        up many rows in another order than few.
    expectation
        Exact or sampled.
    outputs
        Names of the outputs.
    answer
        Method of the model, "call" where it is called itself.
    is_log_odds
        Whether it is the log-odds of a class.
    reason
        Why it is sampled; "" where exact.
    watch
        Notices that the model is no longer the one that was read.
    form
        What was read, of an exact expectation; None where it is sampled.
    asks
        Whether the model answers the rows of a sample itself, and not what was read.
    spread
        Largest difference of two answers to one input, of a model that answers.
    fallback
        What samples rows that the exact expectation refuses, from the form, with ``method="auto"``.
    """

    predict: Callable[[Floats], Floats]
    predict_reproducibly: Callable[[Floats], Floats]
    expectation: Expectation
    outputs: tuple[str, ...]
    answer: str
    is_log_odds: bool
    reason: str
    watch: Watch
    form: Form | None = None
    asks: bool = True
    spread: float = 0.0
    fallback: PooledExpectation | SampledExpectation | None = None

    @property
    def pool_calls(self) -> int:
        """Rows that the model was asked about once for all explained rows."""
        pool = self._pool
        if self.form is not None or not self.asks:
            return 0
        return CHECK_CALLS + (0 if pool is None else pool.pool_calls)

    def fill_pool(self, progress: Progress, workers: int) -> None:
        """Ask for all answers that rows share, if they share any."""
        if self._pool is not None:
            self._pool.fill(progress, workers=workers)

    @property
    def _pool(self) -> PooledExpectation | JointExpectation | None:
        its = self.expectation
        return its if isinstance(its, PooledExpectation | JointExpectation) else None

    def answers(self, rows: Floats) -> Floats | None:
        """Return the answers at rows (n, d); None if the model is no longer the one that was read.

        Where the state of a model does not show a new fit, answers of the model and of its form are
        compared: those that are returned, and a few others.
        """
        if not self.watch.same_state():
            return None
        answers = self.predict_all(rows)
        return answers if self.watch.agrees(rows, answers, by=self.predict) else None

    def check_same(self, rows: Floats, predictions: Floats) -> None:
        """Raise an InputError if the model was fitted again since rows (n, d) were explained.

        ``predictions`` (n, ...) are those of the explanation, of all outputs or of some.
        """
        if self.form is None:
            return  # a model that is only asked may answer differently at each call
        answers = self.answers(rows)
        scale = REFIT_ROUNDING * np.abs(predictions).max(initial=0.0)
        if answers is None or (
            answers.shape == predictions.shape and not np.allclose(answers, predictions, rtol=0.0, atol=scale)
        ):
            raise InputError("the model was fitted again since this explanation: explain the rows again")

    def predict_all(self, rows: Floats) -> Floats:
        """Return the answers at rows (n, d), in batches."""
        if len(rows) <= _BATCH:
            return self.predict(rows)
        return np.concatenate([self.predict(rows[i : i + _BATCH]) for i in range(0, len(rows), _BATCH)])

    @classmethod
    def of(
        cls,
        reading: ReadModel,
        table: Table,
        family: Family,
        options: SamplingOptions,
        *,
        also: Floats | None = None,
    ) -> BoundModel:
        """Compare the form with the model, and choose an exact or a sampled expectation.

        ``also`` are further rows at which the two must agree.

        Raises
        ------
        ModelError, NotReadableError, ReadMismatchError
            As for :class:`limes.TabularExplainer`.
        """
        if isinstance(family, JointFamily):
            return cls._joint(reading, family, _Check(reading.model, table, family.product, also), options)
        check = _Check(reading.model, table, family, also)
        form, reason = reading.form, REQUESTED
        if isinstance(form, BlackBox):
            reason = form.reason
        elif options.method != "sampled":
            try:
                return cls._exact(reading, form, check, options)
            except (NotReadableError, ReadMismatchError) as error:
                if options.method == "exact":
                    raise
                reason = str(error)
        source = _AnswerSource.of(reading, check, options)
        margin_control = _margin_control(reading, options.control, check)
        controls = CONTROLS if margin_control is None else {**CONTROLS, "margin": margin_control}
        sampling = replace(options.with_controls(controls), spread=source.spread)
        if options.method == "exact":
            raise NotReadableError(
                f"method='exact' needs a model that can be read: {reason}. "
                "Use method='auto' to sample it, with error bars"
            )
        expectation = sampler(family, source.answer, sampling)
        return cls._sampled(reading, check, source, expectation, source.reason(reason))

    @classmethod
    def _joint(
        cls, reading: ReadModel, family: JointFamily, check: _Check, options: SamplingOptions
    ) -> BoundModel:
        source = _AnswerSource.of(reading, check, options)
        expectation = JointExpectation(family, source.answer, options.sampling)
        reason = f"law='joint' rests on {len(family.rows):,} background rows, a sample of their population"
        return cls._sampled(reading, check, source, expectation, source.reason(reason))

    @classmethod
    def _sampled(
        cls,
        reading: ReadModel,
        check: _Check,
        source: _AnswerSource,
        expectation: Expectation,
        reason: str,
    ) -> BoundModel:
        return cls(
            source.ask,
            RowwisePredictions(source.ask, check.table.matrix),
            expectation,
            source.names,
            reading.output.method or "call",
            check.is_log_odds(reading.output),
            reason,
            source.watch,
            asks=source.asks,
            spread=source.spread,
        )

    @classmethod
    def _exact(cls, reading: ReadModel, form: Form, check: _Check, options: SamplingOptions) -> BoundModel:
        ask = check.caller(reading.output)
        expectation, answers, allowed = check.expectation(form, reading.output)
        predict: Callable[[Floats], Floats] = form.predict if check.tolerance <= EXACT_TOLERANCE else ask
        fallback = None
        if options.method == "auto":
            control = options.control if options.control in CONTROLS else "auto"
            sampling = replace(options, control=control).with_controls(CONTROLS)
            fallback = sampler(check.family, form.predict, sampling)
        return cls(
            predict,
            # every library adds up trees row by row
            predict if isinstance(form, Forest) else form.predict,
            expectation,
            reading.output.names(answers.shape[1:]),
            reading.output.method or "call",
            check.is_log_odds(reading.output),
            "",
            watch(
                reading.model,
                ask=check.quickest(reading.output, ask),
                predict=form.predict,
                allowed=allowed,
            ),
            form,
            fallback=fallback,
        )


@dataclass(frozen=True, eq=False)
class _Check:
    """Everything that a form is compared with."""

    model: Any
    table: Table
    family: ProductFamily
    also: Floats | None
    _answers: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def probe(self) -> Probe:
        """The rows on which form and model are compared."""
        return Probe.of(self.table, self.family.marginals, self.also)

    @cached_property
    def tolerance(self) -> float:
        """How closely the model itself adds up, relative to its largest answer."""
        single = any(column.dtype == np.float32 for column in self.table.columns)
        return max(tolerance_of(self.model), SINGLE_TOLERANCE if single else 0.0)

    def caller(self, output: Output) -> Predict:
        """Return what calls the model with tables like the background."""
        return noted(ModelCaller(self.model, output, self.table.decode), self.model, output.method)

    def answers(self, output: Output) -> Floats:
        """Return the model's answers at the rows of the probe; it is asked once about an output.

        Raises
        ------
        ModelError, ReadMismatchError
            As :meth:`Probe.answers`.
        """
        key = f"{output.method} {output.columns}"
        if key not in self._answers:
            self._answers[key] = self.probe.answers(self.caller(output))
        return self._answers[key]

    def quickest(self, output: Output, ask: Predict) -> Predict:
        """Return what answers as ``ask`` does, without what an estimator adds to the time of a booster."""
        direct = direct_question(self.model, output.method) if self.table.numeric.all() else None
        if direct is None:
            return ask

        def answer(rows: Floats) -> Floats:
            return output.pick(direct(rows))

        rows = few_rows(self.table.matrix)
        return answer if np.array_equal(answer(rows), ask(rows)) else ask

    def is_log_odds(self, output: Output) -> bool:
        """Tell whether an output is the log-odds of a class, by two background rows."""
        return is_log_odds(self.model, output, self.table.decode(self.table.matrix[:2]))

    def expectation(self, form: Form, output: Output) -> tuple[ExactMoments, Floats, float]:
        """Return the exact expectation of a form that agrees with the model.

        With it the model's answers on which the two were compared, and by how much they may differ.

        Raises
        ------
        ModelError
            If the model fails on the background.
        NotReadableError
            If the background's laws have no exact expectation of the form.
        ReadMismatchError
            If form or expectation disagree with the model.
        """
        probe = self.probe
        try:
            answers = self.answers(output)
        except ReadMismatchError:
            self._moments(form)  # its error may name the column and the step without an answer
            raise
        allowed = self.tolerance * float(np.abs(answers).max())
        check_agreement(answers, form.predict(probe.rows), allowed, probe.where)
        expectation, design, moments = self._moments(form)
        with _no_exact_expectation():
            check_atoms(expectation, probe, answers, allowed)
        check_draws(moments, form.predict, design, product_rows(design), TABLE_DRAWS)
        return expectation, answers, allowed

    def _moments(self, form: Form) -> tuple[ExactMoments, ProductDesign, Moments]:
        """Return the expectation, and its design and moments at one background row.

        Raises
        ------
        NotReadableError
            If no exact expectation exists on this background.
        """
        row = self.table.matrix[len(self.table.matrix) // 2]
        design = widened(self.family).at(row).in_units()
        with _no_exact_expectation():
            expectation = exact_expectation(form)
            return expectation, design, expectation.moments(design)


@dataclass(frozen=True, eq=False)
class _AnswerSource:
    """What answers the rows of a sample: the model itself, or what was read of it.

    Attributes
    ----------
    ask
        The model.
    read
        (n, d) -> the same answers from the form, or from that of the margin and the curve behind it; None
        without them.
    names
        Of the outputs.
    watch
        Notices that the model is no longer the one that was read.
    spread
        Largest difference of the model's answers to one input; 0 where what was read answers.
    """

    ask: Predict
    read: Callable[[Floats], Floats] | None
    names: tuple[str, ...]
    watch: Watch
    spread: float = 0.0

    @classmethod
    def of(cls, reading: ReadModel, check: _Check, options: SamplingOptions) -> _AnswerSource:
        """Compare what was read with the model, unless the user wants the model's own answers."""
        ask, matrix = check.caller(reading.output), check.table.matrix
        # called first: a model that is not fitted, or fails on this table, raises its own error
        names = reading.output.names(ask(matrix[:2]).shape[1:])
        read, allowed = None, 0.0
        parts = (reading.form, None if reading.margin is None else reading.margin[0])
        if options.method != "sampled" and any(isinstance(part, Form) for part in parts):
            with suppress(ReadMismatchError):
                answers = check.answers(reading.output)
                allowed = check.tolerance * float(np.abs(answers).max())
                read = _answers_of_form(reading, check.probe, answers, allowed)
        if read is not None:
            return cls(ask, read, names, watch(reading.model, ask=ask, predict=read, allowed=allowed))
        spread = spread_of_answers(ask, few_inputs(matrix), options.retry)
        return cls(ask, None, names, watch(reading.model), spread)

    @property
    def asks(self) -> bool:
        """Whether the model answers."""
        return self.read is None

    @property
    def answer(self) -> Callable[[Floats], Floats]:
        """(n, d) -> answers (n,) or (n, k)."""
        return self.ask if self.read is None else self.read

    def reason(self, reason: str) -> str:
        """Return why a model is sampled, and that its form answers, if so."""
        return reason if self.asks else f"{reason} (sampled from the read model)"


def _answers_of_form(
    reading: ReadModel, probe: Probe, answers: Floats, allowed: float
) -> Callable[[Floats], Floats] | None:
    """Return (n, d) -> the model's answers from what was read; None unless they are the model's."""
    form = reading.form
    if isinstance(form, Form):
        try:
            check_agreement(answers, form.predict(probe.rows), allowed, probe.where)
        except ReadMismatchError:
            return None
        return form.predict
    if reading.margin is None:
        return None
    margin = reading.margin[0].predict
    curve = matching_curve(margin(probe.rows), answers, reading.output.pick, allowed)
    return None if curve is None else _BehindCurve(margin, curve)


@dataclass(frozen=True, eq=False)
class _BehindCurve:
    """A margin and the curve behind it, (n, d) -> answers; unlike a closure it can be pickled."""

    margin: Callable[[Floats], Floats]
    curve: Callable[[Floats], Floats]

    def __call__(self, x: Floats) -> Floats:
        return self.curve(self.margin(x))


@contextmanager
def _no_exact_expectation() -> Iterator[None]:
    """Turn errors of an expectation into a reason to leave the model to sampling."""
    try:
        yield
    except (InputError, ModelError) as error:
        raise NotReadableError(
            f"the model was read, but its expectation is not exact on this background: {error}"
        ) from error


def _margin_control(reading: ReadModel, control: str, check: _Check) -> Control | None:
    """Return the control from the margin behind a link; None without one, or where it is not the model's."""
    if reading.margin is None or control not in ("auto", "margin"):
        return None
    form, output = reading.margin
    try:
        return MarginControl(form.predict, check.expectation(form, output)[0])
    except (ModelError, NotReadableError, ReadMismatchError):
        if control == "margin":
            raise
        return None
