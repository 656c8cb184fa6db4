"""The additive fit of one row: the effects of all columns' cells together, and what pairs of columns add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np

from limes._arrays import Floats, Ints, r_squared
from limes._expectations.one_hot import OneHotFit, PairEstimate, pair_estimate
from limes._expectations.weighted_rows import WeightedRows
from limes._explainers.tables.fitted_row import Designs, FittedRow, FittedRows
from limes._explanation.fit import RowEffects
from limes.designs._product import ProductDesign

# Share of Var_w f that cells without rows may explain before an error of R² is unknown
_NEGLIGIBLE = 0.01


class AdditiveFit(Protocol):
    """The additive fit of one row."""

    @property
    def r_squared(self) -> tuple[Floats, Floats]:
        """R² of all effects and its errors, (k,) each."""
        ...

    @property
    def total(self) -> Floats:
        """Var_w f, (k,)."""
        ...

    @property
    def effects(self) -> RowEffects:
        """The row's effects."""
        ...

    @property
    def cut(self) -> ProductDesign:
        """The design whose cells the effects are of."""
        ...

    def residuals(self) -> tuple[WeightedRows, Floats]:
        """Return rows of w with what the effects leave of f there, (m, k)."""
        ...


@dataclass(frozen=True, eq=False)
class ExactBlock:
    """Exact effects of n rows: a row's own objects are made when somebody looks at it.

    Attributes
    ----------
    rows, designs
        The rows, and the designs whose cells have effects.
    values
        Effects in the model's own numbers, (n, d, B, k).
    masses, counts
        P_w(cell), (n, d, B), and numbers of cells, (n, d).
    shares
        Parts of Var_w f, (n, d, k).
    total, additive, errors
        Var_w f in units², R² of all effects and its errors, (n, k) each.
    residuals
        Returns rows of w around row i with what the effects leave of f there.
    """

    rows: FittedRows
    designs: Designs
    values: Floats
    masses: Floats
    counts: Ints
    shares: Floats
    total: Floats
    additive: Floats
    errors: Floats
    residuals: Callable[[int], tuple[WeightedRows, Floats]]


@dataclass(frozen=True, eq=False)
class ExactAdditive:
    """The additive fit of row i of a block."""

    block: ExactBlock
    i: int

    @property
    def r_squared(self) -> tuple[Floats, Floats]:
        """R² of all effects and its errors, (k,) each."""
        return self.block.additive[self.i], self.block.errors[self.i]

    @property
    def total(self) -> Floats:
        """Var_w f, (k,)."""
        return np.asarray(self.block.total[self.i])

    @property
    def cut(self) -> ProductDesign:
        """The design whose cells the effects are of."""
        return self.block.designs[self.i]

    @cached_property
    def effects(self) -> RowEffects:
        """The row's effects."""
        block, i = self.block, self.i
        counts, rows = block.counts[i].tolist(), block.rows
        exact = np.zeros(block.values.shape[2:])
        return RowEffects(
            [curve[:count] for curve, count in zip(block.values[i], counts, strict=True)],
            [exact[:count] for count in counts],
            [mass[:count] for mass, count in zip(block.masses[i], counts, strict=True)],
            (rows.cells[i] if rows.family.by_cell else rows[i].cells).tolist(),
            block.shares[i],
            *self.r_squared,
        )

    def residuals(self) -> tuple[WeightedRows, Floats]:
        """Return rows of w with what the effects leave of f there, (m, k)."""
        return self.block.residuals(self.i)


@dataclass(frozen=True, eq=False)
class EstimatedAdditive:
    """The additive fit of one row by the rows of w of ``fit``."""

    effects: RowEffects
    total: Floats
    row: FittedRow
    fit: OneHotFit

    @property
    def r_squared(self) -> tuple[Floats, Floats]:
        """R² of all effects and its errors, (k,) each."""
        return self.effects.additive, self.effects.additive_errors

    @property
    def cut(self) -> ProductDesign:
        """The design whose cells the effects are of."""
        return self.row.cut

    def residuals(self) -> tuple[WeightedRows, Floats]:
        """Return rows of w with what the effects leave of f there, (m, k)."""
        return self.fit.rows, self.fit.residuals


def estimated(
    rows: WeightedRows, row: FittedRow, unit: Floats, variance: Floats | None = None
) -> EstimatedAdditive:
    """Estimate effects of cells: of what slopes leave of f, where there are slopes.

    For a read model ``variance`` (k,) is the exact Var_w f, NaN where it is unknown, and the coefficients are
    exact: the effects explain no less than the surrogate, which is one function of the cells and slopes.
    """
    zero, masses = np.zeros(unit.size), row.masses
    beside_line = replace(rows, f=rows.residuals(zero, row.inclusion, row.line))
    fit, line = OneHotFit(beside_line, masses), row.line_in_cells(max(q.size for q in masses))
    steps, errors = fit.effects()
    between, rest, error = fit.additive()
    error = error * (between + rest)  # of what is explained, beside the line
    by_line = row.explained_by_line
    parts = np.stack([q @ np.nan_to_num(curve) ** 2 for q, curve in zip(masses, steps, strict=True)])
    explained, missing = between + by_line.sum(axis=0), np.zeros_like(parts)
    if variance is not None:
        # cells without rows have no effects here, but what the surrogate explains of them is exact
        unseen = np.stack([np.isnan(curve).any(axis=0) for curve in steps])
        missing = np.where(unseen, np.maximum(row.explained_by_indicators - parts, 0.0), 0.0)
        explained = np.maximum(explained + missing.sum(axis=0), row.explained)
        rest = np.where(np.isnan(variance), rest, np.maximum(variance - explained, 0.0))
    total = explained + rest
    value, _ = r_squared(explained, explained + rest, size_of_answers(row.mean), zero)
    safe = np.where(total > 0, total, 1.0)
    unknown = missing.sum(axis=0) > _NEGLIGIBLE * total
    effects = RowEffects(
        [(curve + part[: len(curve)]) * unit for curve, part in zip(steps, line, strict=True)],
        [values * unit for values in errors],
        masses,
        row.cells.tolist(),
        (parts + missing + by_line) / safe,
        value,
        np.where(unknown, np.inf, error / safe),
    )
    return EstimatedAdditive(effects, total, row, fit)


def pairs_of_columns(masses: list[Floats], columns: Sequence[int]) -> list[tuple[int, int]]:
    """Return all pairs of those of the columns that have several cells."""
    return list(combinations((j for j in columns if masses[j].size > 1), 2))


def ranked_pairs(
    masses: list[Floats], columns: Sequence[tuple[int, int]], additive: AdditiveFit, output: int
) -> list[tuple[tuple[int, int], PairEstimate]]:
    """Return pairs with what they add on rows of w, largest first."""
    if not columns:
        return []
    rows, residuals = additive.residuals()
    pairs = [((j, k), pair_estimate(rows, residuals, (masses[j], masses[k]), (j, k))) for j, k in columns]
    return sorted(pairs, key=lambda pair: -pair[1].variance[output])


def size_of_answers(mean: Floats) -> Floats:
    """Size of answers whose rounding is no variance, in units."""
    return np.maximum(np.abs(mean), 1.0)
