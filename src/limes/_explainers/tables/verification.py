"""A model on a table's background: read, compared with its answers there, or bound to what samples it.

`TableVerification` compares the form that was read with the model on a `Probe`, chooses an exact or a sampled
expectation, and makes a `BoundTable`.

Columns of numbers may be categories to the model: by its encoders, or by what was read of it. Categories of
an encoder need not be whole numbers, nor start at 0, and trees behind it are read as splitting sets of small
whole numbers. A model that is not read over other categories is read over their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._expectations.moments import ExactMoments, Moments
from limes._expectations.of_forms import columns_read, exact_expectation
from limes._explainers.budget import FEW_CALLS, TableBudget
from limes._explainers.options import REQUESTED, SamplingOptions
from limes._explainers.tables.laws import Family
from limes._explainers.tables.table import Table
from limes._explainers.verified_form import (
    NO_EXPECTATION,
    TABLE_DRAWS,
    VerifiedForm,
    check_agreement,
    check_draws,
    even_positions,
    exact_moments,
    margin_of,
    product_rows,
    shuffled,
)
from limes._explanation.wording import cell
from limes._fitting import Expectation, fit_rows
from limes._sampling.controls import CONTROLS
from limes._sampling.controls.control import Control
from limes._sampling.controls.tables import MarginControl
from limes._sampling.controls.wide import strong_effects
from limes._sampling.joint import JointExpectation
from limes._sampling.pooled import PooledExpectation, sampler
from limes._sampling.sampled import SampledExpectation
from limes._shapley.curved_margins import CurvedMargin
from limes._shapley.interventional import Interventional
from limes._threads import Progress, progress_of
from limes.designs._joint import JointFamily
from limes.designs._marginals import Marginal, categorical
from limes.designs._product import ProductDesign, ProductFamily, Rows
from limes.designs._weights import BinWeights
from limes.exceptions import InputError, ModelError, NotReadableError, ReadMismatchError
from limes.models._algebra import category_columns
from limes.models._calling.caller import (
    ModelCaller,
    RowwisePredictions,
    few_inputs,
    repeated_answers,
    spread_of,
    with_retries,
)
from limes.models._calling.counts import AnswerCount
from limes.models._calling.outputs import (
    Output,
    answered_names,
    direct_question,
    noted,
    prediction_method,
    resolve,
)
from limes.models._encoders import encoded_columns
from limes.models._identity import FITTED_AGAIN, Predict, RefitDetector, Witnesses, few_rows, rounding_of
from limes.models._reading import fitted_columns, read_output, tolerance_of
from limes.models.forms._base import Form, outputs_of
from limes.models.forms._linked import Linked
from limes.models.forms._trees import Forest
from limes.models.forms._tuples import ForestOfTuples
from limes.models.readers import EXACT_TOLERANCE, SINGLE_TOLERANCE
from limes.models.readers.links import matching_curve

# Rows predicted at once, where only predictions are needed
_BATCH = 10_000
# Share of the calls that may be spent on comparing a margin
_MOST_COMPARED = 1 / 4

# Rows that the model is asked about: of the background, and of its law in each of two ways; and for a margin,
# which is a control alone, where max_calls bounds them
_BACKGROUND, _LAW = 744, 128
_FEW_OF_BACKGROUND, _FEW_OF_LAW = 32, 8
# Rows at which the expectation must give the model's answer: enough for a forest to use its table of splits;
# mixed from two rows, as the table has an entry for each value of a column
_ATOMS, _MIXED = 12, 2
# Their bandwidth, so small that other rows' atoms have no weight
_NARROW = 1e-3
# Columns of a row that messages show
_SHOWN = 8

# Where an expectation is not exact, in messages
_WHERE = " on this background"


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundTable(VerifiedForm):
    """A model bound to a background and read, with its expectation; without a form where rows are sampled."""

    expectation: Expectation
    # answers that do not depend on the rows beside a row, to the last bit: a model may add up many rows in
    # another order than few
    rowwise: Predict
    is_rowwise: bool = False  # whether these are its answers
    detector: RefitDetector
    budget: TableBudget
    checks: AnswerCount  # what was asked before any row was explained
    reads: Bools | None = None  # columns (d,) that the answers of a read model may depend on
    # what samples rows that the exact expectation refuses, from the form, with method="auto"
    fallback: PooledExpectation | SampledExpectation | None = None

    @property
    def read(self) -> VerifiedForm:
        """The form that was read, on no background."""
        return VerifiedForm(**{each.name: getattr(self, each.name) for each in fields(VerifiedForm)})

    @property
    def predict(self) -> Predict:
        """The model's own answers, or its form's where they are the same."""
        return self.rowwise if self.is_rowwise else super().predict

    @property
    def asks(self) -> bool:
        """Whether the model answers the rows of a sample itself, and not what was read."""
        return self.read_predict is None

    @property
    def pool_calls(self) -> int:
        """Rows that the model was asked about once for all explained rows."""
        if not self.asks:
            return 0
        blocks = self.rowwise.calls if isinstance(self.rowwise, RowwisePredictions) else 0
        return self.checks.rows + blocks + (0 if self._pool is None else self._pool.pool_calls)

    def asked_for(self, shared: Ints) -> Ints:
        """Rows that the model was asked about for pools of these sizes (n,): equal rows are asked once."""
        pool = self.expectation.pool if isinstance(self.expectation, PooledExpectation) else None
        return shared if pool is None else np.array([pool.questions(int(size)) for size in shared])

    def shared_calls(self, shared: Ints) -> Ints:
        """The same with all that was asked before any row was explained."""
        return self.checks.rows + self.asked_for(shared)

    def fill_pool(self, progress: Progress, workers: int) -> None:
        if self._pool is not None:
            self._pool.fill(progress, workers=workers)

    @property
    def _pool(self) -> PooledExpectation | JointExpectation | None:
        expectation = self.expectation
        return expectation if isinstance(expectation, PooledExpectation | JointExpectation) else None

    def answers(self, rows: Floats) -> Floats | None:
        """Return the answers at rows (n, d); None if the model is no longer the one that was read.

        Where the state of a model does not show a new fit, answers of the model and of its form are
        compared: those that are returned, and a few others. Other models are asked about a few rows again.
        """
        if not (self.detector.same_state() and self.detector.repeats()):
            return None
        # one call of the model, which takes most of the time of one row
        beside, n = self.detector.beside(rows), len(rows)
        try:
            answers = self.predict_all(np.concatenate([rows, beside]) if len(beside) else rows)
        except ModelError as error:
            raise self._at_row(error, rows) from error.__cause__
        both, its = (
            np.concatenate([few_rows(each[:n]), more])
            for each, more in ((rows, beside), (answers, answers[n:]))
        )
        return answers[:n] if self.detector.agrees(both, its, self.predict) else None

    def _at_row(self, error: ModelError, rows: Floats) -> ModelError:
        """The same error, of the first of rows (n, d) that the model refuses, if it takes another of them.

        Halves are asked again, about 2 n rows in all.
        """
        if error.row is not None or self.is_rowwise:  # rows of long tables are tried one by one
            return error
        places, its, takes_another = np.arange(len(rows)), self._failure(rows), len(rows) == 1
        while its is not None and len(places) > 1:
            half, others = np.array_split(places, 2)
            failure = self._failure(rows[half])
            takes_another |= failure is None
            places, its = (others, self._failure(rows[others])) if failure is None else (half, failure)
        if its is None or not (takes_another or self._failure(rows[-1:]) is None):
            return error  # the model answers now, or it answers no row
        row = int(places[0])
        named = its if len(rows) == 1 else ModelError(f"row {row}: {its}", batch=its.batch)
        named.row = row
        return named

    def _failure(self, rows: Floats) -> ModelError | None:
        try:
            self.predict_all(rows)
        except ModelError as error:
            return error
        return None

    def check_current(self) -> None:
        """Raise an InputError if the model, which is asked itself, was fitted again since."""
        if not (self.detector.same_state() and self.detector.repeats()):
            raise InputError(FITTED_AGAIN)

    def check_same(self, rows: Floats, predictions: Floats) -> None:
        """Raise an InputError if the model was fitted again since rows (n, d) were explained.

        ``predictions`` (n, ...) are those of the explanation, of all outputs or of some.
        """
        answers, tolerated = self.answers(rows), np.max(self.detector.tolerated)
        allowed = np.maximum(rounding_of(predictions), tolerated)
        if answers is None or (
            answers.shape == predictions.shape and (np.abs(answers - predictions) > allowed).any()
        ):
            raise InputError(FITTED_AGAIN)

    def predict_all(self, rows: Floats) -> Floats:
        batches = [self.predict(rows[i : i + _BATCH]) for i in range(0, max(len(rows), 1), _BATCH)]
        answers = batches[0] if len(batches) == 1 else np.concatenate(batches)
        bad = np.flatnonzero(~np.isfinite(answers).all(axis=tuple(range(1, answers.ndim))))
        if bad.size:  # a form's: the model itself may refuse the row
            raise _no_answer(int(bad[0]), answers)
        return answers


def _no_answer(row: int, answers: Floats) -> ModelError:
    error = ModelError(
        f"row {row}: the model has no finite answer, but {answers[row]}: it may not accept a value there"
    )
    error.row = row
    return error


def read_on(model: Any, output: Any, table: Table) -> VerifiedForm:
    """Read a model before the background's laws are learnt."""
    output = resolve(model, output)
    ask = ModelCaller(model, output, table.decode, partial(advice_on, model, table))
    if fitted_columns(model) not in (None, len(table.columns)):
        # a reader's error about other columns would puzzle the user: the model raises its own
        ask(table.matrix[:2])

    def read(output: Output) -> Form:
        return table.form_of(read_output(model, output, table.schema))

    single = any(column.dtype == np.float32 for column in table.columns)
    verified = VerifiedForm.of(
        read,
        model=model,
        output=output,
        ask=ask,
        tolerance=max(tolerance_of(model), SINGLE_TOLERANCE if single else EXACT_TOLERANCE),
    )
    if prediction_method(model, "decision_function") is None:
        return verified
    form = verified.form
    # a probability was read with its margin: to read a model of thousands of columns again takes long
    if isinstance(form, Linked) and not outputs_of(form.margin):
        return replace(verified, margin=form.margin)
    return replace(verified, margin=margin_of(model, output, read))


@dataclass(frozen=True, eq=False)
class TableVerification:
    """A form that was read, and all that it is compared with; ``also`` are further rows, or None."""

    unbound: VerifiedForm
    table: Table
    family: ProductFamily
    also: Floats | None
    options: SamplingOptions
    checks: AnswerCount  # what it asks
    is_compared: bool = False  # whether its form was found to agree with the model
    few: bool = False  # whether it is asked about few rows
    _answers: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def read(self) -> VerifiedForm:
        return replace(self.unbound, ask=self.caller(self.unbound.output))

    @cached_property
    def probe(self) -> Probe:
        return Probe.of(self.table, self.family.marginals, self.also, few=self.few)

    def caller(self, output: Output) -> Predict:
        model, table = self.unbound.model, self.table
        typical = table.matrix[even_positions(len(table.matrix), _BACKGROUND)]
        caller = ModelCaller(model, output, table.decode, partial(advice_on, model, table), typical=typical)
        return noted(caller, model, output.method)

    def answers(self, output: Output) -> Floats:
        """The model's answers at the rows of the probe; it is asked once about an output."""
        key = f"{output.method} {output.columns}"
        if key not in self._answers:
            ask = self.read.ask if output == self.unbound.output else self.caller(output)
            self._answers[key] = self.probe.answers(ask)
        return self._answers[key]

    @property
    def budget(self) -> TableBudget:
        """The calls that are left now."""
        return TableBudget(self.options, len(self.family.marginals), self.checks.rows)

    @property
    def occurring(self) -> int:
        """Number of background rows that the joint law may have: all that a form answers."""
        rows = len(self.table.matrix)
        return rows if self.answering.read_predict is not None else self.budget.occurring(rows)

    def bind(self, law: Family) -> BoundTable:
        """Compare the form with the model, and choose an exact or a sampled expectation."""
        form, method = self.read.form, self.options.method
        if isinstance(law, JointFamily):
            verified = self.answering
            is_read = verified.read_predict is not None
            self.budget.sampling(is_read=is_read)  # refuses too few calls
            expectation = JointExpectation(
                law,
                verified.read_predict or verified.ask,
                self.options.sampling,
                exact_contributions=partial(Interventional, verified.form) if is_read else None,
            )
            why = f"law='joint' rests on {len(law.rows):,} background rows, a sample of their population"
            if is_read:
                why += f"; {expectation.how_contributions}"
            elif self.read.reason:
                why += f"; the model is called: {self.read.reason}"
            return self._sampled(verified, expectation, why)
        reason = self.read.reason or REQUESTED
        if form is not None and method != "sampled":
            try:
                return self._exact(form)
            except (NotReadableError, ReadMismatchError) as error:
                if method == "exact":
                    raise
                reason = str(error)
        verified, margin = self.answering, self._margin_control()
        controls = CONTROLS if margin is None else {**CONTROLS, "margin": margin}
        pool = self.budget.sampling(is_read=verified.read_predict is not None)
        chosen = self.options.with_controls(controls).controls
        sampling = replace(pool, spread=verified.spread, controls=chosen)
        if method == "exact":
            raise NotReadableError(
                f"method='exact' needs a model that can be read: {reason}. "
                "Use method='auto' to sample it, with error bars"
            )
        return self._sampled(
            verified, sampler(self.family, verified.read_predict or verified.ask, sampling), reason
        )

    def _sampled(self, verified: VerifiedForm, expectation: Expectation, reason: str) -> BoundTable:
        if verified.read_predict is not None:
            reason = f"{reason} (sampled from the read model)"
        budget = self.budget
        rowwise = RowwisePredictions(verified.ask, self.table.matrix, budget.most and budget.again)
        detector = verified.watch(verified.ask, few_rows(self.table.matrix))
        facts = vars(verified) | {"form": None, "margin": None, "reason": reason}
        predict, reads = verified.read_predict, None
        if predict is not None:
            form = predict.margin if isinstance(predict, CurvedMargin) else verified.form
            reads = None if form is None else columns_read(form)
        parts = {"expectation": expectation, "rowwise": rowwise, "detector": detector, "reads": reads}
        return self._bound(facts, **parts)

    def _exact(self, form: Form) -> BoundTable:
        if self.is_compared:  # rows whose moments cannot be computed are refused one by one
            verified, expectation = self.read, exact_expectation(form)
        else:
            verified, expectation = self.verify(form, self.read.output)
        fallback = None
        if self.options.method == "auto":
            control = self.options.control if self.options.control in CONTROLS else "auto"
            sampling = replace(self.options, control=control).with_controls(CONTROLS)
            fallback = sampler(self.family, form.predict, sampling)
        # every library adds up trees row by row
        rowwise = verified.predict if isinstance(form, Forest | ForestOfTuples) else form.predict
        detector = verified.watch(self._quickest(verified), few_rows(self.table.matrix))
        parts = {"expectation": expectation, "rowwise": rowwise, "detector": detector, "fallback": fallback}
        return self._bound(vars(verified), **parts, reads=columns_read(form))

    def _bound(self, facts: Mapping[str, Any], **parts: Any) -> BoundTable:
        return BoundTable(**facts, **parts, budget=self.budget, checks=self.checks)

    def verify(self, form: Form, output: Output) -> tuple[VerifiedForm, ExactMoments]:
        """Return the exact expectation of a form that agrees with the model, or raise."""
        probe = self.probe
        try:
            answers = self.answers(output)
        except ReadMismatchError:
            self._moments(form)  # its error may name the column and the step without an answer
            raise
        names = output.names(answers.shape[1:])
        verified = replace(self.read, form=form, margin=None, outputs=names)
        verified = verified.compared(probe.rows, answers, probe.where)
        expectation, design, moments = self._moments(form)
        check_atoms(expectation, probe, answers, verified.allowed)
        check_draws(moments, form.predict, design, product_rows(design), TABLE_DRAWS)
        return verified, expectation

    def _moments(self, form: Form) -> tuple[ExactMoments, ProductDesign, Moments]:
        """The expectation, and its design and moments at one background row."""
        family = self.family
        # under a narrow bandwidth nearly all draws would lie in the instance's own cells
        usual = 0.75 * np.sqrt(len(family.marginals))
        if family.weights.bandwidth < usual:
            family = replace(family, weights=replace(family.weights, bandwidth=usual))
        design = family.at(self.table.matrix[len(self.table.matrix) // 2]).in_units()
        expectation, moments = exact_moments(form, design, _WHERE)
        return expectation, design, moments

    @cached_property
    def answering(self) -> VerifiedForm:
        """Compare what was read with the model, unless the user wants the model's own answers to samples."""
        verified, matrix = self.read, self.table.matrix
        ask, inputs = partial(with_retries, verified.ask, retry=self.options.retry), few_inputs(matrix)
        # called first: a model that is not fitted, or fails on this table, raises its own error
        answered = repeated_answers(ask, inputs) if self._has_few_calls else None
        shape = (verified.ask(matrix[:2]) if answered is None else answered[0]).shape[1:]
        verified = replace(verified, outputs=verified.output.names(shape, answered_names(verified.ask)))
        if self.options.method != "sampled" and (verified.form is not None or verified.margin is not None):
            with suppress(ReadMismatchError):
                verified = self._answered_by_form(verified)
        if verified.read_predict is not None:
            return verified
        answered = answered or repeated_answers(ask, inputs)
        spread = spread_of(*answered)
        witnesses = Witnesses.of(ask, matrix, (inputs, *answered), spread, self.budget.witnesses)
        return replace(verified, spread=spread, witnesses=witnesses)

    @property
    def _has_few_calls(self) -> bool:
        """Whether a model that is asked itself has too few calls for one that is a check alone."""
        most, read = self.options.max_calls, self.read
        is_asked = self.options.method == "sampled" or (read.form is None and read.margin is None)
        return is_asked and most is not None and most < FEW_CALLS

    def _answered_by_form(self, verified: VerifiedForm) -> VerifiedForm:
        """Return it with answers of its form, or of its margin and the curve behind that."""
        answers, rows = self.answers(verified.output), self.probe.rows
        read_predict = None
        if verified.form is None and verified.margin is not None:
            margins = verified.margin.predict(rows)
            curve = matching_curve(margins, answers, verified.output.pick, verified.allowance(answers))
            read_predict = None if curve is None else CurvedMargin(verified.margin, curve)
        return verified.compared(rows, answers, self.probe.where, read_predict)

    def _quickest(self, verified: VerifiedForm) -> Predict:
        """Return what answers as the model does, without what an estimator adds to the time of a booster."""
        output, ask = verified.output, verified.ask
        direct = direct_question(verified.model, output.method) if self.table.is_plain else None
        if direct is None:
            return ask
        rows, answer = few_rows(self.table.matrix), partial(_direct_answers, direct, self.table, output)
        return answer if np.array_equal(answer(rows), ask(rows)) else ask

    def _margin_control(self) -> Control | None:
        """The control from the margin behind a link; None without one, or where it is not the model's."""
        margin, control = self.read.margin, self.options.control
        if margin is None or control not in ("auto", "margin"):
            return None
        other, most = self, self.options.max_calls
        # of what was read as a curve the rows were compared already
        if most is not None and self.answering.read_predict is None:
            other = replace(self, few=True, _answers={})
            if control == "auto" and len(other.probe.rows) > _MOST_COMPARED * most:
                return None
        try:
            _, expectation = other.verify(margin, resolve(self.read.model, "margin"))
            return MarginControl(margin.predict, expectation, rest=strong_effects)
        except (ModelError, NotReadableError, ReadMismatchError):
            if control == "margin":
                raise
            return None


def _direct_answers(direct: Predict, table: Table, output: Output, rows: Floats) -> Floats:
    return output.pick(direct(table.as_model_takes(rows)))


# -- rows on which form and model are compared ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Probe:
    """Rows at which form and model are compared."""

    rows: Floats  # (n, d): of the background, then rows mixed from a few of these, then others
    background: int  # number of the first
    origins: Sequence[str]  # the rows' kinds in words
    table: Table

    @classmethod
    def of(
        cls, table: Table, marginals: Sequence[Marginal], also: Floats | None = None, *, few: bool = False
    ) -> Probe:
        """Take background rows, rows whose columns come from different background rows, and rows of the law.

        ``also`` are further rows (m, d), those to be explained.
        """
        missing = np.isnan(table.matrix)
        most, drawn = (_FEW_OF_BACKGROUND, _FEW_OF_LAW) if few else (_BACKGROUND, _LAW)
        evenly = even_positions(len(table.matrix), most)
        # and a row with a missing value for each such column
        background = np.union1d(evenly, missing.argmax(axis=0)[missing.any(axis=0)])
        mixed = table.matrix[np.linspace(0, len(table.matrix) - 1, _MIXED).astype(np.int64)]
        levels = np.random.default_rng(1).random((drawn, table.matrix.shape[1]))
        without_weights, _ = ProductFamily(tuple(marginals), BinWeights(np.inf)).draw(levels)
        law = np.concatenate([shuffled(mixed, _ATOMS), shuffled(table.matrix, drawn), without_weights])
        for j, column in enumerate(table.columns):
            if column.dtype.kind == "f" and column.dtype.itemsize < 8:
                law[:, j] = law[:, j].astype(column.dtype)  # as the model gets it
        explained = np.zeros((0, law.shape[1])) if also is None else also
        origins = (
            *(f"background row {i}" for i in background),
            *["a row of the background's law"] * len(law),
            *["an explained row"] * len(explained),
        )
        rows = np.concatenate([table.matrix[background], law, explained])
        return cls(rows, len(background), origins, table)

    def answers(self, ask: Predict) -> Floats:
        """The model's answers at all rows; a ReadMismatchError where it fails on perturbed rows only."""
        try:
            return ask(self.rows)
        except ModelError as error:
            ask(self.rows[: self.background])
            raise ReadMismatchError(
                f"the model fails on perturbed rows, which its form predicts: {error}"
            ) from error

    def where(self, i: int) -> str:
        """Row i in words: its kind, and its first columns."""
        values = self.table.originals(self.rows[i : i + 1])[0]
        cells = [f"{name}={cell(value)}" for name, value in zip(self.table.names, values, strict=True)]
        more = ", ..." if len(cells) > _SHOWN else ""
        return f"{self.origins[i]} ({', '.join(cells[:_SHOWN])}{more})"


def check_atoms(expectation: Expectation, probe: Probe, answers: Floats, allowed: Any) -> None:
    """Explain some rows under designs of one atom per column: E_w f must be the model's answer there.

    Expectations that need densities are compared with draws alone.
    """
    if getattr(expectation, "needs_densities", False):
        return
    places = probe.background + np.arange(_ATOMS)
    rows = probe.rows[places]
    family = ProductFamily(tuple(categorical(column) for column in rows.T), BinWeights(_NARROW))
    try:
        its, quiet = Rows(family, rows, family.cells(rows)), progress_of(shown=False)
        fitted = fit_rows(expectation, its, answers[places], progress=quiet)
    except (InputError, ModelError) as error:
        raise NotReadableError(f"{NO_EXPECTATION}{_WHERE}: {error}") from error
    check_agreement(
        answers[places],
        fitted.at_instance,
        allowed,
        lambda i: f"{probe.where(places[i])}, as a law of this row alone,",
    )


# -- categories ----------------------------------------------------------------------------------------------


def read_with_categories(
    model: Any, table: Table, read: Callable[[Table], VerifiedForm], bins: Any
) -> tuple[Table, VerifiedForm]:
    """Read a model of a table, in which the columns that it takes for categories become categories.

    Columns with edges of ``bins`` stay numbers, and a model that takes one of these for categories is not
    read.
    """
    encoded = encoded_columns(model, table.names, table.values_of)
    is_number = np.array([column.is_plain for column in table.columns])
    entries = bins[: len(is_number)] if isinstance(bins, list | tuple) else ()
    cut = {j for j, entry in enumerate(entries) if entry is not None and is_number[j]}
    table = table.with_categories([j for j in encoded if is_number[j] and j not in cut])
    verified = read(table)
    if verified.form is None:
        numbered = table.with_codes([j for j in encoded if not table.numeric[j]])
        again = verified if numbered is table else read(numbered)
        if again.form is not None:
            table, verified = numbered, again
    forms = [form for form in (verified.form, verified.margin) if form is not None]
    categories = frozenset().union(*map(category_columns, forms))
    if refused := sorted(categories & cut):
        verified = verified.unread(
            f"the model takes column {table.names[refused[0]]!r} for categories, and bins= cuts it as a "
            "number: pass None in its place"
        )
    return table.with_categories([j for j in categories - cut if table.columns[j].is_plain]), verified


def advice_on(model: Any, table: Table, rows: Floats) -> str:
    """Advice where a model fails on encoded rows (m, d) of a table; "" if nothing is known to help."""
    return advice_on_types(model, table) or table.advice(rows)


def advice_on_types(model: Any, table: Table) -> str:
    """Get what to do where an encoder has texts of a column of numbers, or the reverse; "" if none does."""
    for j, categories in encoded_columns(model, table.names, table.values_of).items():
        trained = {*map(_kind_of, categories)} - {""}
        values = [value for value in table.values_of(j) if _kind_of(value)]
        if len(trained) != 1 or not values or trained & {*map(_kind_of, values)}:
            continue
        (kind,), name = trained, table.names[j]
        example = next(category for category in categories if _kind_of(category))
        return (
            f"the model was trained on {kind} such as {_shown(example)} in column {name!r}, and the "
            f"background holds {_kind_of(values[0])} such as {_shown(values[0])}: pass {kind} there, in the "
            "background and in rows"
        )
    return ""


def _kind_of(value: Any) -> str:
    """The kind of a category; true and false are numbers for encoders, too."""
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return "texts"
    return "numbers" if isinstance(value, int | float | np.integer | np.floating | np.bool_) else ""


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str | bool | np.bool_) else f"{value:g}"
