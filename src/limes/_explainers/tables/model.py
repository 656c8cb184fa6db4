"""A model on a table: read, compared with its answers, and bound to the background's laws.

All that explanations of a table's rows share is one frozen `TabularModel`: the background's laws, the model
as it was read, and its expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from limes._arrays import Floats, Objects, column_stds, distinct_rows
from limes._diagnostics.context import Estimate
from limes._expectations.moments import CutShort
from limes._expectations.of_forms import reproducible
from limes._explainers.results import OCCURRING, PERTURBED, RowWarnings, fixed_warnings, sampling_warnings
from limes._explainers.tables.dummies import warnings_of_dummies
from limes._explainers.tables.fits import ReadForm, TableFits
from limes._explainers.tables.groups import GroupedTable
from limes._explainers.tables.joint_fits import JointFits
from limes._explainers.tables.laws import (
    Family,
    TabularOptions,
    cell_texts,
    edges_by_column,
    fit_laws,
    laws_of_values,
    provenance,
    value_texts,
    writer_of,
)
from limes._explainers.tables.table import EncodedRows, Table
from limes._explainers.tables.unseen import UnseenValues
from limes._explainers.tables.verification import (
    BoundTable,
    TableVerification,
    read_on,
    read_with_categories,
)
from limes._explainers.verified_form import VerifiedForm
from limes._explanation.fit import QUICK, RowFits
from limes._fidelity.variance import CellEffects
from limes._fitting import Fitted, fit_rows
from limes._sampling.joint import JointExpectation
from limes._sampling.sampled import SampledExpectation
from limes._shapley.curved_margins import behind_links
from limes._shapley.permutations import PermutationSampler
from limes._threads import LRUCache, Progress, progress_of
from limes._warnings import RowWarning
from limes.designs._joint import JointFamily
from limes.designs._marginals import Marginal
from limes.designs._product import ProductDesign, ProductFamily, Rows
from limes.exceptions import InputError, ModelError
from limes.models._calling.counts import AnswerCount
from limes.models._calling.outputs import (
    SCORE,
    NotedAnswers,
    add_up_to_one,
    replaced_labels,
    resolve,
)
from limes.models._identity import few_rows

# Background rows that a model is asked about where only the laws are compared
_COMPARED = 4096
# Sets of categories beyond the background's whose models are cached
_WIDER = 8


@dataclass(frozen=True, eq=False)
class TabularModel:
    """One model on one background, under fixed options: all that explanations of rows are computed from."""

    model: Any
    options: TabularOptions
    table: Table  # the background; columns that the model takes for categories are categorical
    family: ProductFamily  # the designs with independent columns, one at each row
    law: Family  # the designs that rows are explained by: the same, or those of the joint law
    texts: Sequence[Objects]  # of each column, the condition that each of its cells stands for
    bound: BoundTable
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
        compared: VerifiedForm | None = None,
        laws: tuple[Marginal, ...] | None = None,
        calls: int = 0,
    ) -> TabularModel:
        """Read the model, learn the background's laws, and compare the form with the model on them.

        ``also`` are further rows at which the two must agree. A form that was ``compared`` on this
        background, under another design, is not compared again, and ``laws`` that are known not learnt.
        The model had ``calls`` before.
        """
        checks = AnswerCount()
        checks.add(calls)
        with checks.counting():
            its = table.ungrouped.for_model(model)
            return cls._fit(model, its, options, also, compared, laws, checks)

    @classmethod
    def _fit(
        cls,
        model: Any,
        table: Table,
        options: TabularOptions,
        also: Floats | None,
        compared: VerifiedForm | None,
        laws: tuple[Marginal, ...] | None,
        checks: AnswerCount,
    ) -> TabularModel:
        options = replace(options, bins=edges_by_column(table, options.bins))
        read = partial(read_on, model, options.output) if compared is None else lambda _: compared
        background = table
        table, verified = read_with_categories(model, table, read, options.bins)
        also = also if also is None or table is background else table.encode(background.decode(also))
        by_model = np.flatnonzero(background.numeric & ~table.numeric).tolist()
        is_read = verified.form is not None or verified.margin is not None
        own_values = frozenset[int]() if is_read else options.own_values(table)
        marginals = laws or fit_laws(
            table, options.bins, options.target, options.law_in_bin, options.missing, own_values=own_values
        )
        columns = [*zip(table.columns, marginals, table.matrix.T, strict=True)]
        texts = [np.array(cell_texts(*each), dtype=object) for each in columns]
        if options.groups is not None:
            source, of_columns = table, marginals
            table = GroupedTable.of(source, options.groups)
            marginals, verified = table.laws(of_columns), table.verified(verified)
            also = None if also is None else table.grouping.encode(also)
            options = replace(options, hold=options.groups.held(source, options.hold))
            texts = table.texts(texts, marginals)
        if len(table.matrix) == 1 and not options.is_one_row:
            raise InputError(
                "the background has one row, so no column can vary: pass the training data, or a few hundred "
                "rows of it; or TabularExplainer(model, reference=row) for contributions that lead from this "
                "row to others"
            )
        deviations = column_stds(table.matrix)
        units = np.where(table.numeric & (deviations > 0), deviations, 1.0)
        family = options.product_family(table, marginals, units)
        binding = TableVerification(
            verified, table, family, also, options.sampling, checks, compared is not None
        )
        law = options.family(family, table.matrix, binding.occurring if options.is_joint else 0)
        bound = binding.bind(law)
        return cls(
            model,
            options,
            table,
            family,
            law,
            texts,
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

        Such a category is a cell without mass. None if the model itself is asked, no category is new, the
        model refuses it, or results must not depend on other rows of a call, to the last bit.
        """
        if (self.bound.asks and not self.options.is_one_row) or self.is_reproducible:
            return None
        source = self.table.ungrouped
        table = source.with_levels_of(X)
        if table is source:
            return None
        rows = few_rows(table.encode_rows(X, errors).matrix)
        levels = tuple(column.levels for column in table.columns)
        return self._wider.get(levels, partial(self._of_table, table, rows))

    def _of_table(self, table: Table, rows: Floats) -> TabularModel | None:
        """Return the same on a wider table; None if the model is not read there, or differs at some rows."""
        try:
            model = TabularModel.fit(self.model, table, self.options, rows)
        except (InputError, ModelError):
            return None
        return model if self.options.is_one_row or not model.bound.asks else None

    @cached_property
    def _wider(self) -> LRUCache[Any, TabularModel | None]:
        return LRUCache(_WIDER)

    def reproducible(self) -> TabularModel:
        """The same, with results that depend on no other row, to the last bit; without warnings."""
        return replace(self, bound=replace(self.bound, is_rowwise=True), is_reproducible=True)

    @cached_property
    def expectation(self) -> Any:
        """The expectation that explains rows.

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
        if len(rows) == 1:
            cells, place = rows.cells[0].tolist(), np.zeros(1, dtype=np.int64)
            conditions = [tuple(text[cell] for text, cell in zip(self.texts, cells, strict=True))]
        else:
            patterns, place = distinct_rows(rows.cells)
            columns = [
                np.asarray(text, dtype=np.object_)[of_rows].tolist()
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
        form = self.bound.form
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
    def can_afford_permutations(self) -> bool:
        """Whether the calls that contributions have, where they are not asked for, are enough."""
        return self.bound.budget.can_afford_permutations

    @property
    def has_exact_contributions(self) -> bool:
        """Whether rows have exact contributions, but for single rows that are refused."""
        expectation: Any = self.bound.expectation
        if isinstance(expectation, JointExpectation):
            return expectation.interventional is not None
        return bool(expectation.method == "exact" and not expectation.needs_densities)

    @property
    def can_ask_for_contributions_alone(self) -> bool:
        """Whether contributions rest on no answer that coefficients are fitted to."""
        return self.bound.asks and isinstance(self.law, ProductFamily)

    def fits(
        self,
        rows: Rows,
        predictions: Floats,
        fit: Callable[[], Fitted],
        *,
        has_surrogates: bool = True,
    ) -> RowFits:
        """The fits of rows of one call; ``fit`` returns their surrogates, which may not be asked for."""
        expectation: Any = self.bound.expectation
        read_predict, its = self.bound.read_predict, self.options.sampling
        sampling, budget = replace(its.sampling, spread=self.bound.spread), self.bound.budget
        spent = np.zeros(len(rows), dtype=np.int64)
        if read_predict is None and (budget.most is not None or budget.can_afford_permutations):
            sampling = replace(sampling, max_calls=budget.walked)
        if read_predict is None and budget.most is not None and has_surrogates:
            fitted = fit()
            spent = fitted.moments.calls + self.bound.shared_calls(fitted.moments.shared) - budget.checks
        asks, ask = read_predict is None, read_predict or self.bound.ask

        walks: PermutationSampler | None = PermutationSampler(
            ask,
            sampling,
            asks=asks,
            check=self.bound.check_current if asks else None,
            advice=budget.advice,
            reads=self.bound.reads,
        )
        if isinstance(self.law, JointFamily):
            joint = rows.x, rows.cells, fit, predictions, walks, spent, self.table.groups
            return JointFits(expectation, self.texts, *joint)
        form = None
        if expectation.method == "exact":
            form, expectation = self._read_form, self.bound.fallback
            # method="exact" gives no estimates
            predict = behind_links(form.form) or form.form.predict
            reads = self.bound.reads
            walks = (
                PermutationSampler(predict, its.sampling, asks=False, reads=reads) if expectation else None
            )
        inputs = rows.x, rows.cells, fit, form, expectation, predictions, walks, spent
        writers = [*map(writer_of, self.table.columns)]
        return TableFits(
            self.family, lambda: self.account, self.texts, writers, *inputs, has_surrogates, self.table.groups
        )

    @cached_property
    def account(self) -> ProductFamily:
        """The designs that contributions rest on: with the background's own values, unless a law is named."""
        options = self.options
        if options.law is not None:
            return self.family
        laws = laws_of_values(self.table, self.table.by_column(options.bins), self.family.marginals)
        return replace(self.family, marginals=laws)

    @property
    def other_law(self) -> Callable[[Floats], Estimate] | None:
        """Coefficients of a row (d,) under the joint law; under the product law if that explains rows."""
        # the joint law weighs rows by their cells
        return self._coefficients_under_other_law if self.family.by_cell else None

    def _coefficients_under_other_law(self, row: Floats) -> Estimate:
        other = self._other
        x = other.table.encoded(self.table.plain(row[None]))
        predict = other.bound.read_predict or other.bound.predict  # what was read needs no call
        try:
            fitted = other.explain(other.rows(x), predict(x), progress=progress_of(shown=False))
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
        same = options.law_in_bin == self.options.law_in_bin and options.groups is None
        laws = self.family.marginals if same else None
        return TabularModel.fit(self.model, self.table, options, laws=laws)

    @cached_property
    def _read_form(self) -> ReadForm:
        form = self.bound.form
        assert form is not None  # noqa: S101 - the expectation is exact
        seed = self.options.sampling.sampling.seed
        return ReadForm(
            form, self.bound.expectation, self.family, self.table.matrix, seed, keeps=self.is_reproducible
        )

    @property
    def effects_of_cells(self) -> CellEffects | None:
        """Exact effects of cells of a read model, where they are feasible."""
        return self._read_form.cells

    @cached_property
    def row_warnings(self) -> RowWarnings:
        verified = self.bound
        learnt = RowWarnings.from_background(
            self.table,
            self.family,
            self.units,
            verified,
            adds_up=add_up_to_one(self.model, resolve(self.model, self.options.output)),
            threshold=self.options.sampling.threshold,
        )
        fixed = fixed_warnings(self.table.remark, self.bound.spread)
        alone = [j for j in range(len(self.table.names)) if j not in self.table.groups]
        dummies = warnings_of_dummies([self.table.names[j] for j in alone], self.table.matrix[:, alone])
        return replace(learnt, fixed=fixed + learnt.fixed + dummies)

    def warnings_of(
        self, rows: Rows, predictions: Floats, fitted: Fitted
    ) -> tuple[tuple[RowWarning, ...], ...]:
        of_samples = {}
        if fitted.sampled is not None:
            names, outputs = self.table.names, self.bound.outputs
            kind = OCCURRING if self.options.is_joint else PERTURBED
            sampling = self.bound.budget.sampling(is_read=self.bound.is_read)
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
        return UnseenValues.of(self.table, self.family, is_of_both=self.account is self.family)

    @cached_property
    def _replaced(self) -> str:
        return replaced_labels(
            self.model, self.bound.output.method or "call", by_predict=self.options.by_predict
        )
