"""Sources of the numbers of diagnostics: the read model, exactly, or a sample, with errors.

Both compute the same numbers for every row: coefficients at other bandwidths, the mean of the model in each
cell of a column, and changes when one column leaves its cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._diagnostics.context import SPREAD, DiagnosticContext, Estimate, TableContext
from limes._expectations.moments import (
    REFUSED,
    CombinedExpectation,
    ProductExpectation,
    explain_rows,
    refusals,
)
from limes._expectations.softmax import SoftmaxExpectation
from limes._pipeline import Expectation
from limes.designs._column import IndicatorColumn
from limes.designs._product import ProductDesign, Rows
from limes.surrogates._linear import least_squares

# Rows inside the box, and rows that leave it by one column, for each column
BOX_ROWS, _ROWS_PER_COLUMN = 128, 16
# A column and one of its cells
Place = tuple[int, int]


class SampledSource:
    """Numbers from a sample of the model, with standard errors.

    Attributes
    ----------
    spread
        Bandwidths, as multiples of the explainer's, that samples are drawn at; the first is 1.
    calls
        Default number of rows of a sample: few where only variances are needed.
    """

    spread: tuple[float, ...] = SPREAD
    calls: int = 4096

    def path(self, context: DiagnosticContext, bandwidths: Floats) -> list[Estimate]:
        """Return coefficients (G, d) of each row at the bandwidths."""
        return [self.path_of(context, i, bandwidths) for i in range(len(context))]

    def path_of(self, context: DiagnosticContext, i: int, bandwidths: Floats) -> Estimate:
        """Coefficients (G, d) of one row at the bandwidths."""
        sample = context.wide_samples[i]
        return _stacked([sample.fit(sample.weights(bandwidth)) for bandwidth in bandwidths])

    def profile(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        """Return E_w[f | x_j in cell b] around row i for each place (j, b), (m,)."""
        sample = context.wide_samples[i]
        cells = context.family.cells(sample.x)
        weights = sample.weights(context.bandwidth)
        return _stacked([sample.mean(weights, cells[:, j] == cell) for j, cell in places])

    def coef_in_cells(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        """Return coefficients (m, d) of row i, if its column j lay in cell b."""
        sample = context.wide_samples[i]
        cells = context.family.cells(sample.x)
        estimates = []
        for j, cell in places:
            h = sample.h.copy()
            h[:, j] = cells[:, j] == cell
            # weights of bins count from the other cell; distances hardly change across an edge
            shift = sample.h[:, j] - h[:, j] if context.family.counts_cells else 0.0
            estimates.append(sample.fit(sample.weights(context.bandwidth, sample.squared + shift), h))
        return _stacked(estimates)

    def single_column_effects(self, context: TableContext, i: int) -> Estimate:
        """Return E[f | box] - E[f | column j alone is outside its cell], (d,): β_j as ν → 0."""
        x, inside = box_rows(context, i)
        d = context.rows.shape[1]
        mean, variance = inside.mean(), inside.var() / len(inside)
        value, error = np.zeros(d), np.zeros(d)
        rng = context.rng(i, 2)
        columns = np.flatnonzero(context.binned)
        if columns.size == 0:
            return Estimate(value, error)
        away = np.concatenate([_rows_outside(context, i, int(j), x[:_ROWS_PER_COLUMN], rng) for j in columns])
        predictions = context.predictions(i, away).reshape(columns.size, _ROWS_PER_COLUMN)
        value[columns] = mean - predictions.mean(axis=1)
        error[columns] = np.sqrt(variance + predictions.var(axis=1) / (_ROWS_PER_COLUMN - 1))
        return Estimate(value, error)


class ExactSource(SampledSource):
    """Exact numbers from the read model; numbers that its expectation refuses are those of a sample."""

    spread = (1.0,)
    calls = 512

    def __init__(self, expectation: Any) -> None:
        self._expectation = expectation

    def path(self, context: DiagnosticContext, bandwidths: Floats) -> list[Estimate]:
        rows = np.arange(len(context))
        try:
            return self._path(context, bandwidths, rows)
        except REFUSED:
            # the error bound of a quadrature depends on the row and the bandwidth
            refused = refusals(rows, lambda some: self._path(context, bandwidths, some))
        return [
            self.path_of(context, i, bandwidths)
            if i in refused
            else self._path(context, bandwidths, rows[[i]])[0]
            for i in rows.tolist()
        ]

    def _path(self, context: DiagnosticContext, bandwidths: Floats, rows: Ints) -> list[Estimate]:
        coef = [self._coef(context, bandwidth, rows) for bandwidth in bandwidths]
        return [_exact(np.stack([each[i] for each in coef])) for i in range(len(rows))]

    def profile(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        # E[f | z = 1] = E f + P(z = 0) β_j, in the design where that cell is the instance's
        designs = [context.design_in_cell(i, j, cell) for j, cell in places]
        try:
            mean, coef = self._limits(designs, context.rows[i])
        except REFUSED:
            return super().profile(context, i, places)
        slopes = coef[np.arange(len(places)), [j for j, _ in places], context.positions[i]]
        outside = [
            float(indicator(design, j).exclusion[0]) for design, (j, _) in zip(designs, places, strict=True)
        ]
        return _exact(mean[:, context.positions[i]] + np.array(outside) * slopes)

    def coef_in_cells(self, context: TableContext, i: int, places: Sequence[Place]) -> Estimate:
        designs = [context.design_in_cell(i, j, cell) for j, cell in places]
        try:
            _, coef = self._limits(designs, context.rows[i])
        except REFUSED:
            return super().coef_in_cells(context, i, places)
        return _exact(coef[..., context.positions[i]])

    def single_column_effects(self, context: TableContext, i: int) -> Estimate:
        try:
            _, coef = self._limits([context.box[i]], context.rows[i])
        except REFUSED:
            return super().single_column_effects(context, i)
        return _exact(coef[0, :, context.positions[i]])

    def _coef(self, context: DiagnosticContext, bandwidth: float, rows: Ints) -> list[Floats]:
        """Coefficients (d,) of the output of each of some rows."""
        if isinstance(context, TableContext) and self._takes_columns(context):
            coef = self._coef_at_rows(context, bandwidth, rows)
        else:
            designs = context.designs(bandwidth)
            _, coef = self._limits([designs[i] for i in rows.tolist()], context.rows[rows])
        return [coef[i, :, k] for i, k in enumerate(context.positions[rows])]

    def _takes_columns(self, context: TableContext) -> bool:
        """Return whether rows with separate laws are explained together."""
        expectation = self._expectation
        if not isinstance(expectation, ProductExpectation) or expectation.functions is None:
            return False
        return not context.family.by_cell

    def _coef_at_rows(self, context: TableContext, bandwidth: float, rows: Ints) -> Floats:
        """β of some rows together, (n, d, k)."""
        family = context.family_at(bandwidth)
        its = Rows(family, context.rows[rows], context.cells[rows])
        numbers, moments = explain_rows(self._expectation, its)
        assert numbers.units is not None  # noqa: S101 - of designs under smooth weights
        coef = least_squares(numbers.inner, moments).per(numbers.units).coef
        return coef.reshape(len(rows), context.rows.shape[1], -1)

    def _limits(self, designs: Sequence[Any], rows: Floats) -> tuple[Floats, Floats]:
        """Return E_w f (m, k) and β (m, d, k) of m designs."""
        expectation = self._expectation
        first, m = designs[0], len(designs)
        if _in_blocks(expectation, first):
            cells = np.stack([design.cells for design in designs])
            its = Rows.in_cells(first.family, cells)
            moments = expectation.at(its)
            coef = least_squares(its.features.features, moments).coef
            return moments.mean.reshape(m, -1), coef.reshape(*cells.shape, -1)
        inner_moments = [
            (design.in_units(), expectation.moments(design.in_units(), row))
            for design, row in zip(designs, np.broadcast_to(rows, (m, rows.shape[-1])), strict=True)
        ]
        mean = np.stack([moments.mean for _, moments in inner_moments])
        fits = [least_squares(inner, moments) for inner, moments in inner_moments]
        coef = np.stack([fit.per(design.units).coef for fit, design in zip(fits, designs, strict=True)])
        return mean.reshape(m, -1), coef.reshape(*coef.shape[:2], -1)


def source_of(expectation: Expectation) -> SampledSource:
    """Return the source for an expectation."""
    exact = expectation.method == "exact" and not _makes_large_tables(expectation)
    return ExactSource(expectation) if exact else SampledSource()


def _makes_large_tables(expectation: Any) -> bool:
    """Return whether each bandwidth needs large tables: a diagnosis tries many bandwidths."""
    if isinstance(expectation, CombinedExpectation):
        return any(map(_makes_large_tables, expectation.parts))
    return isinstance(expectation, SoftmaxExpectation)


def box_rows(context: TableContext, i: int) -> tuple[Floats, Floats]:
    """Draw rows x inside the cells of row i, and return them with the model's predictions, (m,)."""
    x, _ = context.draw(context.box[i], BOX_ROWS, context.rng(i, 1))
    return x, context.predictions(i, x)


def _rows_outside(context: TableContext, i: int, j: int, x: Floats, rng: np.random.Generator) -> Floats:
    """Return rows x with column j drawn from its other cells."""
    (elsewhere,) = indicator(context.box[i], j).elsewhere
    cells = rng.choice(elsewhere.size, size=len(x), p=elsewhere)
    moved = x.copy()
    moved[:, j] = context.family.marginals[j].quantile(cells, rng.random(len(x)))
    return moved


def indicator(design: ProductDesign, j: int) -> IndicatorColumn:
    """Return column j of a design, which is cut into cells."""
    column = design.coordinates[j]
    assert isinstance(column, IndicatorColumn)  # noqa: S101 - callers select such columns
    return column


def _in_blocks(expectation: Any, design: Any) -> bool:
    """Return whether many designs can be computed at once."""
    return (
        isinstance(expectation, ProductExpectation)
        and isinstance(design, ProductDesign)
        and design.family is not None
        and design.cells is not None
        and expectation.shares_tables(design.family)
    )


def _exact(value: Floats) -> Estimate:
    return Estimate(value, np.zeros_like(value))


def _stacked(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(np.stack([e.value for e in estimates]), np.stack([e.error for e in estimates]))
