"""A model on a table: read, compared with its answers, and bound to the background's laws.

All that explanations of a table's rows share is one frozen `TabularModel`: the background's laws, the model
as it was read, and its expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, Objects, column_stds, distinct_rows
from limes._diagnostics.context import Estimate
from limes._expectations.behind_curves import BehindCurve, behind_links
from limes._expectations.controls import CONTROLS
from limes._expectations.controls.control import Control
from limes._expectations.controls.tables import MarginControl
from limes._expectations.controls.wide import strong_effects
from limes._expectations.joint import JointExpectation
from limes._expectations.moments import CutShort, ExactMoments, Moments
from limes._expectations.of_forms import exact_expectation, reproducible
from limes._expectations.pooled import PooledExpectation, sampler
from limes._expectations.sampled import SampledExpectation
from limes._expectations.variance import CellEffects
from limes._expectations.walks import Walks
from limes._explainers.budget import TableBudget
from limes._explainers.options import REQUESTED, SamplingOptions
from limes._explainers.reading import (
    NO_EXPECTATION,
    TABLE_DRAWS,
    Reading,
    check_agreement,
    check_draws,
    even_positions,
    exact_moments,
    margin_of,
    product_rows,
    shuffled,
)
from limes._explainers.results import OCCURRING, PERTURBED, RowWarnings, fixed_warnings, sampling_warnings
from limes._explainers.tables.categories import advice_on, read_with_categories
from limes._explainers.tables.fits import JointFits, ReadForm, TableFits
from limes._explainers.tables.laws import (
    Family,
    TabularOptions,
    cell_texts,
    edges_by_column,
    fit_laws,
    laws_of_values,
    value_texts,
    writer_of,
)
from limes._explainers.tables.provenance import provenance
from limes._explainers.tables.table import EncodedRows, Table
from limes._explainers.tables.unseen import UnseenValues
from limes._explanation.fit import QUICK, RowFits
from limes._explanation.record import RowWarning
from limes._explanation.wording import cell
from limes._fitting import Expectation, Fitted, fit_rows
from limes._threads import LRUCache, Progress, progress_of
from limes.designs._joint import JointFamily
from limes.designs._marginals import Marginal, categorical
from limes.designs._product import ProductDesign, ProductFamily, Rows
from limes.designs._weights import BinWeights
from limes.exceptions import InputError, ModelError, NotReadableError, ReadMismatchError
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
    SCORE,
    NotedAnswers,
    Output,
    add_up_to_one,
    answered_names,
    direct_question,
    noted,
    prediction_method,
    replaced_labels,
    resolve,
)
from limes.models._identity import FITTED_AGAIN, Predict, Watch, Witnesses, few_rows, rounding_of
from limes.models._reading import fitted_columns, read_output, tolerance_of
from limes.models.forms._base import Form
from limes.models.forms._trees import Forest
from limes.models.readers import EXACT_TOLERANCE, SINGLE_TOLERANCE
from limes.models.readers.links import matching_curve

# Rows predicted at once, where only predictions are needed
_BATCH = 10_000
# Background rows that a model is asked about where only the laws are compared
_COMPARED = 4096
# Share of the calls that may be spent on comparing a margin
_MOST_COMPARED = 1 / 4
# Sets of categories beyond the background's whose models are cached
_WIDER = 8

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


@dataclass(frozen=True, eq=False)
class TabularModel:
    """One model on one background, under fixed options: all that explanations of rows are computed from."""

    model: Any
    options: TabularOptions
    table: Table  # the background; columns that the model takes for categories are categorical
    family: ProductFamily  # the designs with independent columns, one at each row
    law: Family  # the designs that rows are explained by: the same, or those of the joint law
    texts: Sequence[Objects]  # of each column, the condition that each of its cells stands for
    bound: BoundModel
    units: Floats  # (d,) standard deviation of numbers, 1 for categories and for columns that do not vary
    provenance: dict[str, Any]
    own_values: frozenset[int] = frozenset()  # columns whose bins have their own values, whatever the law is
    is_reproducible: bool = False  # whether results do not depend on other rows of a call, to the last bit

    @classmethod
    def fit(
        cls,
        model: Any,
        table: Table,
        options: TabularOptions,
        also: Floats | None = None,
        compared: Reading | None = None,
        laws: tuple[Marginal, ...] | None = None,
        calls: int = 0,
    ) -> TabularModel:
        """Read the model, learn the background's laws, and compare the form with the model on them.

        ``also`` are further rows at which the two must agree. A reading that was ``compared`` on this
        background, under another design, is not compared again, and ``laws`` that are known not learnt.
        The model had ``calls`` before.
        """
        checks = AnswerCount()
        checks.add(calls)
        with checks.counting():
            return cls._fit(model, table.for_model(model), options, also, compared, laws, checks)

    @classmethod
    def _fit(
        cls,
        model: Any,
        table: Table,
        options: TabularOptions,
        also: Floats | None,
        compared: Reading | None,
        laws: tuple[Marginal, ...] | None,
        checks: AnswerCount,
    ) -> TabularModel:
        options = replace(options, bins=edges_by_column(table, options.bins))
        read = partial(_read, model, options.output) if compared is None else lambda _: compared
        background = table
        table, reading = read_with_categories(model, table, read, options.bins)
        also = also if also is None or table is background else table.encode(background.decode(also))
        by_model = np.flatnonzero(background.numeric & ~table.numeric).tolist()
        is_read = reading.form is not None or reading.margin is not None
        own_values = frozenset[int]() if is_read else options.own_values(table)
        marginals = laws or fit_laws(
            table, options.bins, options.target, options.law_in_bin, options.missing, own_values=own_values
        )
        if len(table.matrix) == 1:
            raise InputError(
                "the background has one row, so no column can vary: pass the training data, or a few hundred "
                "rows of it"
            )
        deviations = column_stds(table.matrix)
        units = np.where(table.numeric & (deviations > 0), deviations, 1.0)
        family = options.product_family(table, marginals, units)
        binding = _Binding(reading, table, family, also, options.sampling, checks, compared is not None)
        law = options.family(family, table.matrix, binding.occurring if options.is_joint else 0)
        bound = binding.bind(law)
        columns = zip(table.columns, marginals, table.matrix.T, strict=True)
        return cls(
            model,
            options,
            table,
            family,
            law,
            [np.array(cell_texts(*each), dtype=object) for each in columns],
            bound,
            units,
            provenance(model, table, family, bound, options, by_model, own_values),
            own_values,
        )

    def encoded(self, X: Any, errors: str) -> tuple[TabularModel, EncodedRows]:
        """Return rows ``X`` as a matrix, and the model that explains them, wider if categories are new."""
        try:
            rows = self.table.encode_rows(X, errors)
        except InputError:
            wider = self._admitting(X, errors)
            if wider is None:
                raise
        else:
            wider = self._admitting(X, errors) if rows.errors else None
            if wider is None:
                return self, rows
        return wider, wider.table.encode_rows(X, errors)

    def _admitting(self, X: Any, errors: str) -> TabularModel | None:
        """Return the same for rows ``X`` with categories that the background does not have.

        Such a category is a cell without mass. None if the model is not read, no category is new, the model
        refuses it, or results must not depend on other rows of a call, to the last bit.
        """
        if self.bound.reading.form is None or self.is_reproducible:
            return None
        table = self.table.with_levels_of(X)
        if table is self.table:
            return None
        rows = few_rows(table.encode_rows(X, errors).matrix)
        return self._wider.get(table.schema.levels, partial(self._of_table, table, rows))

    def _of_table(self, table: Table, rows: Floats) -> TabularModel | None:
        """Return the same on a wider table; None if the model is not read there, or differs at some rows."""
        try:
            model = TabularModel.fit(self.model, table, self.options, rows)
        except (InputError, ModelError):
            return None
        return None if model.bound.reading.form is None else model

    @cached_property
    def _wider(self) -> LRUCache[Any, TabularModel | None]:
        return LRUCache(_WIDER)

    def reproducible(self) -> TabularModel:
        """The same, with results that depend on no other row, to the last bit; without warnings."""
        bound = replace(self.bound, predict=self.bound.predict_reproducibly)
        return replace(self, bound=bound, is_reproducible=True)

    @cached_property
    def expectation(self) -> Any:
        """What explains rows.

        A sum of floats depends on the order of its terms. The fast way through a forest shares trees among
        cores, and takes another order for few rows than for many, so that a row's last bits depend on the
        number of cores and on the rows beside it. The reproducible one always adds in one order, a little
        slower for few rows, and caches: results are the same however a table is cut into parts.
        """
        return reproducible(self.bound.expectation) if self.is_reproducible else self.bound.expectation

    def rows(self, x: Floats) -> Rows:
        """Encoded rows x (n, d), with their cells."""
        return Rows(self.family, x, self.family.cells(x))

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> Fitted:
        """Fit the surrogates at rows, given the model's predictions (n, ...) there: see `fit_rows`."""
        return fit_rows(
            self.expectation,
            rows,
            predictions,
            penalty=self.options.ridge or None,
            # lime fits slopes on standardised columns: its penalty is per standard deviation
            scales=self.units,
            names=self.table.names,
            fallback=self.bound.fallback,
            progress=progress,
            workers=workers,
        )

    def conditions(self, rows: Rows) -> tuple[tuple[str, ...], ...]:
        """Texts of rows' cells, and of the values of columns that are held."""
        patterns, place = distinct_rows(rows.cells)
        columns = [
            np.array(text, dtype=np.object_)[of_rows].tolist()
            for text, of_rows in zip(self.texts, patterns.T, strict=True)
        ]
        conditions = list(zip(*columns, strict=True))
        if self.family.held is None:
            return tuple(map(conditions.__getitem__, place.tolist()))
        texts = [list(conditions[i]) for i in place.tolist()]
        for j in np.flatnonzero(self.family.held).tolist():
            for row, value in zip(texts, rows.x[:, j].tolist(), strict=True):
                (row[j],) = value_texts(self.table.columns[j], np.array([value]))
        return tuple(map(tuple, texts))

    def laws(self, rows: Floats) -> tuple[list[ProductDesign], Callable[[Floats], Floats]]:
        """Designs of rows (n, d), with independent columns whatever the law is, and the model's answers."""
        form = self.bound.reading.form
        predict = self.bound.predict if form is None else form.predict
        return [self.family.at(row) for row in rows], predict

    def provenance_of(self, fitted: Fitted | None, predictions: Floats) -> dict[str, Any]:
        scores = {"quantity": SCORE} if self.row_warnings.scores(predictions) else {}
        if fitted is None or not fitted.refusals:
            return {**self.provenance, **scores}
        sampling = self.options.sampling.sampling
        return {**self.provenance, **scores, "seed": sampling.seed, "tolerance": str(sampling.accuracy)}

    def features_at(self, row: Floats, x: Floats) -> Floats:
        return self.family.at(row).feature(x)

    @property
    def keeps_answers(self) -> bool:
        """Whether effects can be computed later, from the answers to rows' own draws."""
        return not self.is_reproducible or not isinstance(self.bound.expectation, SampledExpectation)

    @property
    def has_quick_contributions(self) -> bool:
        """Whether rows have exact contributions within about `QUICK` seconds each."""
        expectation: Any = self.bound.expectation
        if isinstance(expectation, JointExpectation):
            exact = expectation.interventional
            return exact is not None and bool(exact.seconds <= QUICK)
        if expectation.method != "exact" or expectation.needs_densities or not self.family.by_cell:
            return False
        return bool(expectation.account_seconds(self.family) <= QUICK)

    @property
    def has_cheap_walks(self) -> bool:
        """Whether the calls that contributions have, where they are not asked for, are enough."""
        return self.bound.budget.has_cheap_walks

    @property
    def has_exact_contributions(self) -> bool:
        """Whether rows have exact contributions, but for single rows that are refused."""
        expectation: Any = self.bound.expectation
        if isinstance(expectation, JointExpectation):
            return expectation.interventional is not None
        return bool(expectation.method == "exact" and not expectation.needs_densities)

    def fits(self, rows: Rows, predictions: Floats, fit: Callable[[], Fitted]) -> RowFits:
        """The fits of rows of one call; ``fit`` returns their surrogates."""
        expectation: Any = self.bound.expectation
        by_form, its = self.bound.reading.by_form, self.options.sampling
        sampling, budget = replace(its.sampling, spread=self.bound.reading.spread), self.bound.budget
        spent = np.zeros(len(rows), dtype=np.int64)
        if by_form is None and (budget.most is not None or budget.has_cheap_walks):
            sampling = replace(sampling, max_calls=budget.walked)
        if by_form is None and budget.most is not None:
            fitted = fit()
            spent = fitted.moments.calls + self.bound.shared_calls(fitted.moments.shared) - budget.checks
        asks, ask = by_form is None, by_form or self.bound.reading.ask

        walks: Walks | None = Walks(
            ask,
            sampling,
            asks=asks,
            check=self.bound.check_current if asks else None,
            advice=budget.advice,
        )
        if isinstance(self.law, JointFamily):
            return JointFits(expectation, self.texts, rows.x, rows.cells, fit, predictions, walks, spent)
        form = None
        if expectation.method == "exact":
            form, expectation = self._read_form, self.bound.fallback
            # method="exact" gives no estimates
            predict = behind_links(form.form) or form.form.predict
            walks = Walks(predict, its.sampling, asks=False) if expectation else None
        inputs = rows.x, rows.cells, fit, form, expectation, predictions, walks, spent
        writers = [*map(writer_of, self.table.columns)]
        return TableFits(self.family, lambda: self.account, self.texts, writers, *inputs)

    @cached_property
    def account(self) -> ProductFamily:
        """The designs that contributions rest on: with the background's own values, unless a law is named."""
        options = self.options
        if options.law is not None:
            return self.family
        laws = laws_of_values(self.table, options.bins, self.family.marginals)
        return replace(self.family, marginals=laws)

    @property
    def other_law(self) -> Callable[[Floats], Estimate] | None:
        """Coefficients of a row (d,) under the joint law; under the product law if that explains rows."""
        # the joint law weighs rows by their cells
        return self._coefficients_under_other_law if self.family.by_cell else None

    def _coefficients_under_other_law(self, row: Floats) -> Estimate:
        x, other = row[None], self._other
        try:
            fitted = other.explain(other.rows(x), other.bound.predict(x), progress=progress_of(shown=False))
        except CutShort as stop:
            raise stop.__cause__ or stop from None
        coef, errors = fitted.surrogate.coef[0], fitted.surrogate.standard_errors[0]
        return Estimate(coef.reshape(row.size, -1), errors.reshape(row.size, -1))

    @cached_property
    def _other(self) -> TabularModel:
        """The same model on the same background under the other law, asked about few rows."""
        sampling = self.options.sampling
        most = sampling.max_calls or (_COMPARED if self.bound.asks else None)
        sampling = replace(sampling, method="auto", rng=sampling.sampling.seed, max_calls=most)
        law = self.options.law_in_bin if self.options.is_joint else "joint"
        options = replace(self.options, law=law, sampling=sampling)
        laws = self.family.marginals if options.law_in_bin == self.options.law_in_bin else None
        return TabularModel.fit(self.model, self.table, options, laws=laws)

    @cached_property
    def _read_form(self) -> ReadForm:
        form = self.bound.reading.form
        assert form is not None  # noqa: S101 - the expectation is exact
        return ReadForm(
            form, self.bound.expectation, self.family, self.table.matrix, self.options.sampling.sampling.seed
        )

    @property
    def effects_of_cells(self) -> CellEffects | None:
        """Exact effects of cells of a read model, where they are feasible."""
        return self._read_form.cells

    @cached_property
    def row_warnings(self) -> RowWarnings:
        reading = self.bound.reading
        learnt = RowWarnings.from_background(
            self.table,
            self.family,
            self.units,
            reading,
            adds_up=add_up_to_one(self.model, resolve(self.model, self.options.output)),
            threshold=self.options.sampling.threshold,
        )
        fixed = fixed_warnings(self.table.remark, self.bound.reading.spread)
        return replace(learnt, fixed=fixed + learnt.fixed)

    def warnings_of(
        self, rows: Rows, predictions: Floats, fitted: Fitted
    ) -> tuple[tuple[RowWarning, ...], ...]:
        of_samples = {}
        if fitted.sampled is not None:
            names, outputs = self.table.names, self.bound.reading.outputs
            kind = OCCURRING if self.options.is_joint else PERTURBED
            sampling = self.bound.budget.sampling(is_read=self.bound.reading.is_read)
            of_samples = sampling_warnings(fitted, names, outputs, sampling=sampling, kind=kind)
            if self.bound.asks and not self.options.is_joint:
                pool = getattr(self.bound.expectation, "pool", None)
                news = self._unseen.of_rows(rows.x, fitted.moments.shared.tolist(), pool)
                of_samples |= {i: (*texts, *of_samples.get(i, ())) for i, texts in news.items()}
        warnings = self.row_warnings.of_rows(rows.x, rows.cells, fitted, predictions, of_samples)
        predict = self.bound.predict
        of_answers = predict.remark if isinstance(predict, NotedAnswers) else ""
        remark = RowWarning(self._replaced or of_answers, "labels")
        return tuple((remark, *others) for others in warnings) if remark else warnings

    @cached_property
    def _unseen(self) -> UnseenValues:
        return UnseenValues.of(self.table, self.family)

    @cached_property
    def _replaced(self) -> str:
        return replaced_labels(
            self.model, self.bound.reading.output.method or "call", by_predict=self.options.by_predict
        )


# -- the model, read and bound -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BoundModel:
    """A model that was read, with its expectation on a background."""

    reading: Reading  # without a form where rows are sampled
    expectation: Expectation
    predict: Predict  # the model's own answers, or its form's where they are the same
    # the same, where a row's answer does not depend on the rows beside it, to the last bit: a model may add
    # up many rows in another order than few
    predict_reproducibly: Predict
    watch: Watch
    budget: TableBudget
    checks: AnswerCount  # what was asked before any row was explained
    # what samples rows that the exact expectation refuses, from the form, with method="auto"
    fallback: PooledExpectation | SampledExpectation | None = None

    @property
    def asks(self) -> bool:
        """Whether the model answers the rows of a sample itself, and not what was read."""
        return self.reading.by_form is None

    @property
    def pool_calls(self) -> int:
        """Rows that the model was asked about once for all explained rows."""
        if not self.asks:
            return 0
        rowwise = self.predict_reproducibly
        blocks = rowwise.calls if isinstance(rowwise, RowwisePredictions) else 0
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
        if not (self.watch.same_state() and self.watch.repeats()):
            return None
        answers = self.predict_all(rows)
        return answers if self.watch.agrees(rows, answers, by=self.predict) else None

    def check_current(self) -> None:
        """Raise an InputError if the model, which is asked itself, was fitted again since."""
        if not (self.watch.same_state() and self.watch.repeats()):
            raise InputError(FITTED_AGAIN)

    def check_same(self, rows: Floats, predictions: Floats) -> None:
        """Raise an InputError if the model was fitted again since rows (n, d) were explained.

        ``predictions`` (n, ...) are those of the explanation, of all outputs or of some.
        """
        answers, tolerated = self.answers(rows), np.max(self.watch.tolerated)
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
            raise ModelError(
                f"the model has no finite answer at row {bad[0]} of {len(rows)}, but {answers[bad[0]]}: it "
                "may not accept a value of that row"
            )
        return answers


def _read(model: Any, output: Any, table: Table) -> Reading:
    """Read a model before the background's laws are learnt."""
    output = resolve(model, output)
    ask = ModelCaller(model, output, table.decode, partial(advice_on, model, table))
    if fitted_columns(model) not in (None, len(table.columns)):
        # a reader's error about other columns would puzzle the user: the model raises its own
        ask(table.matrix[:2])

    def read(output: Output) -> Form:
        return table.form_of(read_output(model, output, table.schema))

    has_margin = prediction_method(model, "decision_function") is not None
    margin = margin_of(model, output, read) if has_margin else None
    single = any(column.dtype == np.float32 for column in table.columns)
    return Reading.of(
        read,
        model=model,
        output=output,
        ask=ask,
        margin=margin,
        tolerance=max(tolerance_of(model), SINGLE_TOLERANCE if single else EXACT_TOLERANCE),
    )


@dataclass(frozen=True, eq=False)
class _Binding:
    """A reading, and all that it is compared with on a background; ``also`` are further rows, or None."""

    unbound: Reading
    table: Table
    family: ProductFamily
    also: Floats | None
    options: SamplingOptions
    checks: AnswerCount  # what it asks
    is_compared: bool = False  # whether the reading's form was found to agree with the model
    few: bool = False  # whether it is asked about few rows
    _answers: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def reading(self) -> Reading:
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
            ask = self.reading.ask if output == self.unbound.output else self.caller(output)
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
        return rows if self.answering.by_form is not None else self.budget.occurring(rows)

    def bind(self, law: Family) -> BoundModel:
        """Compare the form with the model, and choose an exact or a sampled expectation."""
        form, method = self.reading.form, self.options.method
        if isinstance(law, JointFamily):
            reading = self.answering
            is_read = reading.by_form is not None
            self.budget.sampling(is_read=is_read)  # refuses too few calls
            expectation = JointExpectation(
                law,
                reading.by_form or reading.ask,
                self.options.sampling,
                form=reading.form if is_read else None,
                is_read=is_read,
            )
            why = f"law='joint' rests on {len(law.rows):,} background rows, a sample of their population"
            return self._sampled(reading, expectation, why)
        reason = self.reading.reason or REQUESTED
        if form is not None and method != "sampled":
            try:
                return self._exact(form)
            except (NotReadableError, ReadMismatchError) as error:
                if method == "exact":
                    raise
                reason = str(error)
        reading, margin = self.answering, self._margin_control()
        controls = CONTROLS if margin is None else {**CONTROLS, "margin": margin}
        pool = self.budget.sampling(is_read=reading.by_form is not None)
        chosen = self.options.with_controls(controls).controls
        sampling = replace(pool, spread=reading.spread, controls=chosen)
        if method == "exact":
            raise NotReadableError(
                f"method='exact' needs a model that can be read: {reason}. "
                "Use method='auto' to sample it, with error bars"
            )
        return self._sampled(reading, sampler(self.family, reading.by_form or reading.ask, sampling), reason)

    def _sampled(self, reading: Reading, expectation: Expectation, reason: str) -> BoundModel:
        if reading.by_form is not None:
            reason = f"{reason} (sampled from the read model)"
        budget = self.budget
        rowwise = RowwisePredictions(reading.ask, self.table.matrix, budget.most and budget.again)
        bound = replace(reading, form=None, margin=None, reason=reason)
        watch = reading.watch(reading.ask, few_rows(self.table.matrix))
        return BoundModel(bound, expectation, reading.ask, rowwise, watch, budget, self.checks)

    def _exact(self, form: Form) -> BoundModel:
        if self.is_compared:  # rows whose moments cannot be computed are refused one by one
            reading, expectation = self.reading, exact_expectation(form)
        else:
            reading, expectation = self.verified(form, self.reading.output)
        fallback = None
        if self.options.method == "auto":
            control = self.options.control if self.options.control in CONTROLS else "auto"
            sampling = replace(self.options, control=control).with_controls(CONTROLS)
            fallback = sampler(self.family, form.predict, sampling)
        # every library adds up trees row by row
        rowwise = reading.predict if isinstance(form, Forest) else form.predict
        watch = reading.watch(self._quickest(reading), few_rows(self.table.matrix))
        answers = reading.predict, rowwise
        return BoundModel(reading, expectation, *answers, watch, self.budget, self.checks, fallback)

    def verified(self, form: Form, output: Output) -> tuple[Reading, ExactMoments]:
        """Return the exact expectation of a form that agrees with the model, or raise."""
        probe = self.probe
        try:
            answers = self.answers(output)
        except ReadMismatchError:
            self._moments(form)  # its error may name the column and the step without an answer
            raise
        names = output.names(answers.shape[1:])
        reading = replace(self.reading, form=form, margin=None, outputs=names)
        reading = reading.compared(probe.rows, answers, probe.where)
        expectation, design, moments = self._moments(form)
        check_atoms(expectation, probe, answers, reading.allowed)
        check_draws(moments, form.predict, design, product_rows(design), TABLE_DRAWS)
        return reading, expectation

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
    def answering(self) -> Reading:
        """Compare what was read with the model, unless the user wants the model's own answers to samples."""
        reading, matrix = self.reading, self.table.matrix
        # called first: a model that is not fitted, or fails on this table, raises its own error
        shape = reading.ask(matrix[:2]).shape[1:]
        reading = replace(reading, outputs=reading.output.names(shape, answered_names(reading.ask)))
        if self.options.method != "sampled" and (reading.form is not None or reading.margin is not None):
            with suppress(ReadMismatchError):
                reading = self._answered_by_form(reading)
        if reading.by_form is not None:
            return reading
        ask, inputs = partial(with_retries, reading.ask, retry=self.options.retry), few_inputs(matrix)
        answered = repeated_answers(ask, inputs)
        spread = spread_of(*answered)
        witnesses = Witnesses.of(ask, matrix, (inputs, *answered), spread, self.budget.witnesses)
        return replace(reading, spread=spread, witnesses=witnesses)

    def _answered_by_form(self, reading: Reading) -> Reading:
        """Return the reading with answers of its form, or of its margin and the curve behind that."""
        answers, rows = self.answers(reading.output), self.probe.rows
        by_form = None
        if reading.form is None and reading.margin is not None:
            margins = reading.margin.predict(rows)
            curve = matching_curve(margins, answers, reading.output.pick, reading.allowance(answers))
            by_form = None if curve is None else BehindCurve(reading.margin, curve)
        return reading.compared(rows, answers, self.probe.where, by_form)

    def _quickest(self, reading: Reading) -> Predict:
        """What answers as the model does, without what an estimator adds to the time of a booster."""
        output, ask = reading.output, reading.ask
        direct = direct_question(reading.model, output.method) if self.table.is_plain else None
        if direct is None:
            return ask

        def answer(rows: Floats) -> Floats:
            return output.pick(direct(self.table.as_model_takes(rows)))

        rows = few_rows(self.table.matrix)
        return answer if np.array_equal(answer(rows), ask(rows)) else ask

    def _margin_control(self) -> Control | None:
        """The control from the margin behind a link; None without one, or where it is not the model's."""
        margin, control = self.reading.margin, self.options.control
        if margin is None or control not in ("auto", "margin"):
            return None
        binding, most = self, self.options.max_calls
        # of what was read as a curve the rows were compared already
        if most is not None and self.answering.by_form is None:
            binding = replace(self, few=True, _answers={})
            if control == "auto" and len(binding.probe.rows) > _MOST_COMPARED * most:
                return None
        try:
            _, expectation = binding.verified(margin, resolve(self.reading.model, "margin"))
            return MarginControl(margin.predict, expectation, rest=strong_effects)
        except (ModelError, NotReadableError, ReadMismatchError):
            if control == "margin":
                raise
            return None


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
        without_weights = ProductFamily(tuple(marginals), BinWeights(np.inf)).at(table.matrix[0])
        law = np.concatenate(
            [
                shuffled(mixed, _ATOMS),
                shuffled(table.matrix, drawn),
                product_rows(without_weights, 1)(drawn)[0],
            ]
        )
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
