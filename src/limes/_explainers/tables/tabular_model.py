"""What explanations of a table's rows share: the background's laws, the model as read, the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from limes import __version__
from limes._arrays import Floats, Ints, Objects, column_stds, distinct_rows, mean_and_std
from limes._bars import progress_of
from limes._diagnostics.context import Estimate
from limes._expectations.joint import JointExpectation
from limes._expectations.pooled import PooledExpectation
from limes._expectations.sampled import SampledExpectation
from limes._explainers.tables.bound_model import BoundModel
from limes._explainers.tables.fits import ReadFits
from limes._explainers.tables.form_spread import FormSpread
from limes._explainers.tables.joint_fits import JointFits
from limes._explainers.tables.laws import cell_texts, fit_laws, value_text
from limes._explainers.tables.mixed_fits import MixedFits
from limes._explainers.tables.read_model import ReadModel
from limes._explainers.tables.sampled_fits import PooledFits, SampledFits
from limes._explainers.tables.table import EncodedRows, Table
from limes._explainers.tables.table_laws import TABLE_LAWS, Family, TabularOptions
from limes._explainers.warnings import RowWarnings
from limes._explanation.fit import RowFits
from limes._fitted import CutShort, Fitted
from limes._pipeline import Pipeline
from limes._threads import LRUCache
from limes.designs._marginals import Marginal
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._weights import named_weights
from limes.exceptions import InputError, ModelError
from limes.models._calling.caller import repetition_warnings
from limes.models._calling.outputs import add_up_to_one, label_remark, replaced_labels, resolve
from limes.models._identity import few_rows

# Background rows that a model is asked about where only the laws are compared
_COMPARED = 4096
# Sets of categories beyond the background's whose models are cached
_WIDER = 8

SLOPE_MEANING = (
    "how much the surrogate changes per unit of a number, or if a category holds rather than not; bars are "
    "per standard deviation"
)


@dataclass(frozen=True, eq=False)
class TabularModel:
    """One model on one background, under fixed options: all that explanations of rows are computed from.

    Attributes
    ----------
    model, options
        What it was fitted from.
    table
        The background; columns that the model takes for categories are categorical.
    family
        The designs with independent columns, one at each row.
    law
        The designs that rows are explained by: the same, or those of the joint law.
    texts
        Of each column, the condition that each of its cells stands for.
    bound
        The model, read and checked.
    pipeline
        Family, expectation and surrogate.
    units
        (d,) standard deviation of numbers, 1 for categories and for columns that do not vary.
    provenance
        Of its explanations.
    warns
        Whether explanations carry warnings.
    """

    model: Any
    options: TabularOptions
    table: Table
    family: ProductFamily
    law: Family
    texts: Sequence[Objects]
    bound: BoundModel
    pipeline: Pipeline
    units: Floats
    provenance: dict[str, Any]
    warns: bool = True

    @classmethod
    def fit(
        cls, model: Any, table: Table, options: TabularOptions, also: Floats | None = None
    ) -> TabularModel:
        """Read the model, learn the background's laws, and compare the form with the model on them.

        ``also`` are further rows at which the two must agree.

        Raises
        ------
        InputError, ModelError, NotReadableError, ReadMismatchError
            As for :class:`limes.TabularExplainer`.
        """
        reading = ReadModel.of(model, options.output, table)
        categories = reading.category_columns
        numbers = [j for j in np.flatnonzero(table.numeric).tolist() if j in categories]
        by_model = [j for j in numbers if not _has_bins(options.bins, j)]
        if len(by_model) < len(numbers):
            (name, *_) = (table.names[j] for j in numbers if j not in by_model)
            reading = reading.unread(
                f"the model takes column {name!r} for categories, and bins= cuts it as a number: pass None "
                "in its place"
            )
        table = table.with_categories(by_model)
        marginals = fit_laws(table, options.bins, options.target, options.table_law.in_bin)
        _check_variety(table)
        units = _units(table)
        family = _family(table, marginals, units, options)
        sampling = options.sampling
        law = options.table_law.family(
            family, table.matrix, max_calls=sampling.max_calls, seed=sampling.sampling.seed
        )
        bound = BoundModel.of(reading, table, law, options.sampling, also=also)
        slopes = np.zeros(len(marginals), dtype=np.bool_) if family.slopes is None else family.slopes
        pipeline = Pipeline(
            family,
            bound.expectation,
            penalty=options.ridge or None,
            # lime fits slopes on standardised columns: its penalty is per standard deviation
            scales=np.where(slopes, units, 1.0),
            names=table.names,
            fallback=bound.fallback,
        )
        return cls(
            model,
            options,
            table,
            family,
            law,
            [
                np.array(cell_texts(column, law, values), dtype=object)
                for column, law, values in zip(table.columns, marginals, table.matrix.T, strict=True)
            ],
            bound,
            pipeline,
            units,
            _provenance(model, table, family, bound, options, by_model),
        )

    def encoded(self, X: Any, errors: str) -> tuple[TabularModel, EncodedRows]:
        """Return rows ``X`` as a matrix, and the model that explains them: a wider one if categories are new.

        Raises
        ------
        InputError
            As for :class:`limes.TabularExplainer`; ``errors`` is its option.
        """
        try:
            rows = _encode(self.table, X, errors)
        except InputError:
            wider = self._admitting(X, errors)
            if wider is None:
                raise
        else:
            wider = self._admitting(X, errors) if rows.errors else None
            if wider is None:
                return self, rows
        return wider, _encode(wider.table, X, errors)

    def _admitting(self, X: Any, errors: str) -> TabularModel | None:
        """Return the same for rows ``X`` with categories that the background does not have.

        Such a category is a cell without mass. None if the model is not read, no category is new, the model
        refuses it, or results must not depend on other rows of a call, to the last bit.

        Raises
        ------
        InputError
            If a row is not usable on the wider table either; ``errors`` is the explainer's option.
        """
        if self.bound.form is None or not self.warns:
            return None
        table = self.table.with_levels_of(X)
        if table is self.table:
            return None
        rows = few_rows(_encode(table, X, errors).matrix)
        return self._wider.get(table.schema.levels, partial(self._of_table, table, rows))

    def _of_table(self, table: Table, rows: Floats) -> TabularModel | None:
        """Return the same on a wider table; None if the model is not read there, or differs at some rows."""
        try:
            model = TabularModel.fit(self.model, table, self.options, rows)
        except (InputError, ModelError):
            return None
        return None if model.bound.form is None else model

    @cached_property
    def _wider(self) -> LRUCache[Any, TabularModel | None]:
        return LRUCache(_WIDER)

    def reproducible(self) -> TabularModel:
        """Return the same, with results that depend on no other row, to the last bit; without warnings."""
        bound = replace(self.bound, predict=self.bound.predict_reproducibly)
        return replace(self, bound=bound, pipeline=self.pipeline.reproducible(), warns=False)

    def conditions(self, cells: Ints, rows: Floats) -> tuple[tuple[str, ...], ...]:
        """Return the texts of rows' cells (n, d), and of the values (n, d) of columns that are held.

        Rows with the same cells share a tuple.
        """
        patterns, place = distinct_rows(cells)
        columns = [
            np.array(text, dtype=np.object_)[of_rows].tolist()
            for text, of_rows in zip(self.texts, patterns.T, strict=True)
        ]
        conditions = list(zip(*columns, strict=True))
        if self.family.held is None:
            return tuple(map(conditions.__getitem__, place.tolist()))
        texts = [list(conditions[i]) for i in place.tolist()]
        for j in np.flatnonzero(self.family.held).tolist():
            for row, value in zip(texts, rows[:, j].tolist(), strict=True):
                row[j] = value_text(self.table.columns[j], value)
        return tuple(map(tuple, texts))

    def laws(self, rows: Floats) -> tuple[list[ProductDesign], Callable[[Floats], Floats]]:
        """Return the designs of rows (n, d), and the model's answers; the form's where the model was read.

        Columns are independent whatever the law is.
        """
        form = self.bound.form
        predict = self.bound.predict if form is None else form.predict
        return [self.family.at(row) for row in rows], predict

    def provenance_of(self, fitted: Fitted) -> dict[str, Any]:
        """Return the provenance of an explanation; of a read model, some of whose rows may be sampled."""
        if not fitted.refusals:
            return self.provenance
        sampling = self.options.sampling.sampling
        return {**self.provenance, "seed": sampling.seed, "tolerance": str(sampling.accuracy)}

    def features_at(self, row: Floats, x: Floats) -> Floats:
        """Return the surrogate's features of rows x (m, d) around a row (d,), (m, d)."""
        return self.family.at(row).feature(x)

    def effective_share(self, rows: Floats) -> Floats:
        """Return the effective share of a weighted sample of the background's law, E[π]² / E[π²], (n,)."""
        narrower = self.family.weights.bandwidth / np.sqrt(2.0)
        weights = replace(self.family.weights, bandwidth=narrower)
        squared = replace(self.family, weights=weights)
        logs = [2.0 * self.family.at(row).log_weight - squared.at(row).log_weight for row in rows]
        return np.exp(np.array(logs))

    @property
    def keeps_fits(self) -> bool:
        """Whether R² and effects can be computed later; not where rows' own draws would fill the memory."""
        return self.warns or not isinstance(self.bound.expectation, SampledExpectation)

    def fits(self, rows: Floats, cells: Ints, fitted: Fitted) -> RowFits:
        """Return what computes R² and effects of explained rows."""
        expectation = self.bound.expectation
        if isinstance(expectation, JointExpectation):
            return JointFits(expectation, self.texts, cells, fitted)
        if expectation.method == "sampled":
            return self._sampled_fits(expectation, rows, cells, fitted)
        exact = ReadFits(self._spread, self.texts, rows, cells, fitted)
        if not fitted.refusals:
            return exact
        sampled = self._sampled_fits(self.bound.fallback, rows, cells, fitted)
        return MixedFits(exact, sampled, fitted)

    def _sampled_fits(self, expectation: Any, rows: Floats, cells: Ints, fitted: Fitted) -> SampledFits:
        kind: Any = PooledFits if isinstance(expectation, PooledExpectation) else SampledFits
        fits: SampledFits = kind(expectation, self.family, self.texts, rows, cells, fitted)
        return fits

    @property
    def other_law(self) -> Callable[[Floats], Estimate] | None:
        """Coefficients of a row (d,) under the joint law, or, if that explains rows, under the product law.

        None where rows are not weighted by their cells, which the joint law needs.
        """
        return self._under_other_law if self.family.by_cell else None

    def _under_other_law(self, row: Floats) -> Estimate:
        """Return coefficients (d, k) and their standard errors.

        Raises
        ------
        ModelError
            If the model fails.
        """
        rows, other = row[None], self._other
        try:
            fitted = other.pipeline.explain(
                rows, other.family.cells(rows), other.bound.predict(rows), progress=progress_of(shown=False)
            )
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
        law = "joint" if isinstance(self.law, ProductFamily) else TABLE_LAWS["joint"].in_bin
        return TabularModel.fit(self.model, self.table, replace(self.options, law=law, sampling=sampling))

    @cached_property
    def _spread(self) -> FormSpread:
        form = self.bound.form
        assert form is not None  # noqa: S101 - the expectation is exact
        return FormSpread(
            form, self.bound.expectation, self.family, self.table.matrix, self.options.sampling.sampling.seed
        )

    @cached_property
    def row_warnings(self) -> RowWarnings:
        """Warnings about rows, by what is ordinary in the background."""
        adds_up = add_up_to_one(self.model, resolve(self.model, self.options.output))
        learnt = RowWarnings.from_background(self.table, self.family, self.units, adds_up=adds_up)
        return replace(learnt, fixed=repetition_warnings(self.bound.spread) + learnt.fixed)

    def warnings_of(
        self,
        rows: Floats,
        cells: Ints,
        fitted: Fitted,
        predictions: Floats,
        sampling: Mapping[int, tuple[str, ...]],
    ) -> tuple[tuple[str, ...], ...]:
        """Return warnings of rows (n, d): `RowWarnings.of_rows`, and one about answers that are labels."""
        warnings = self.row_warnings.of_rows(rows, cells, fitted, predictions, sampling)
        remark = self._replaced or label_remark(self.bound.predict)
        return tuple((remark, *texts) for texts in warnings) if remark else warnings

    @cached_property
    def _replaced(self) -> str:
        return replaced_labels(self.model, self.bound.answer, by_predict=self.options.by_predict)


def _encode(table: Table, X: Any, errors: str) -> EncodedRows:
    """Turn rows into a matrix: all of them for "raise", those whose cells are all usable for "row"."""
    if errors == "row":
        return table.encode_good(X)
    matrix = table.encode(X)
    return EncodedRows(matrix, np.arange(len(matrix)), {})


def _units(table: Table) -> Floats:
    scales = column_stds(table.matrix)
    return np.where(table.numeric & (scales > 0), scales, 1.0)


def _check_variety(table: Table) -> None:
    """Refuse a background of one row, around which nothing can change."""
    if len(table.matrix) == 1:
        raise InputError(
            "the background has one row: rows are perturbed by what its columns hold, and nothing would "
            "change; pass the training data, or a few hundred rows of it"
        )


def _has_bins(bins: Any, j: int) -> bool:
    """Return whether the user passed bins for a column."""
    return isinstance(bins, list | tuple) and j < len(bins) and bins[j] is not None


def _family(
    table: Table, marginals: tuple[Marginal, ...], units: Floats, options: TabularOptions
) -> ProductFamily:
    empty = np.isnan(table.matrix).all(axis=0)
    held = np.isin(table.names, options.hold)
    slopes = table.numeric & ~empty & ~held & (options.bins is None)
    bandwidth = 0.75 * np.sqrt(len(marginals)) if options.bandwidth is None else options.bandwidth
    return ProductFamily(
        marginals,
        named_weights(options.weights_name, bandwidth),
        slopes=slopes if slopes.any() else None,
        scales=units,
        held=held if held.any() else None,
    )


def _provenance(
    model: Any,
    table: Table,
    family: ProductFamily,
    bound: BoundModel,
    options: TabularOptions,
    by_model: Sequence[int],
) -> dict[str, Any]:
    bins = options.bins
    sampled = bound.expectation.method == "sampled"
    error_bound = getattr(bound.expectation, "error_bound", 0.0)
    return {
        **({"meaning": SLOPE_MEANING} if bins is None else {}),
        **_slopes(table, family),
        "limes": __version__,
        "model": type(model).__name__,
        "answer": bound.answer,
        **({"quantity": "log-odds"} if bound.is_log_odds else {}),
        "background": f"{len(table.matrix)} rows",
        "bins": bins if bins is None or isinstance(bins, str | int) else "given",
        **({"hold": list(options.hold)} if options.hold else {}),
        **({"categories of the model": [table.names[j] for j in by_model]} if by_model else {}),
        "law": options.law,
        "weights": options.weights_name,
        "bandwidth": float(family.weights.bandwidth),
        "ridge": float(options.ridge),
        **({"error bound": f"{error_bound:g} of each mean, by quadrature"} if error_bound else {}),
        "seed": options.sampling.sampling.seed if sampled else None,
        **({"tolerance": str(options.sampling.sampling.accuracy)} if sampled else {}),
    }


def _slopes(table: Table, family: ProductFamily) -> dict[str, Any]:
    """Return mean and standard deviation of each column that has a slope, by its name."""
    if family.slopes is None:
        return {}
    slopes = {}
    for j in np.flatnonzero(family.slopes).tolist():
        column = table.matrix[:, j]
        mean, deviation = mean_and_std(column[np.isfinite(column)])
        slopes[table.names[j]] = {"mean": mean, "deviation": deviation}
    return {"slopes": slopes}
