"""The additive fit of one row: the effects of all columns' cells together, and what pairs of columns add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats
from limes._expectations.one_hot import OneHotFit, PairEstimate, pair_estimate
from limes._expectations.weighted_rows import WeightedRows, r_squared
from limes._explainers.tables.fitted_row import FittedRow
from limes._explanation.fit import RowEffects
from limes.designs._product import ProductDesign


class Additive(NamedTuple):
    """The additive fit of one row.

    ``r_squared`` are R² of all effects and its errors, (k,) each, and ``total`` is Var_w f, (k,). ``effects``
    makes the row's effects, ``cut`` the design whose cells they are of, and ``residuals`` rows of w with what
    the effects leave of f there, (m, k).
    """

    r_squared: tuple[Floats, Floats]
    total: Floats
    effects: Callable[[], RowEffects]
    cut: Callable[[], ProductDesign]
    residuals: Callable[[], tuple[WeightedRows, Floats]]


def estimated(rows: WeightedRows, row: FittedRow, unit: Floats) -> Additive:
    """Estimate effects of cells: of what slopes leave of f, where there are slopes."""
    zero, masses = np.zeros(unit.size), row.masses
    beside_line = replace(rows, f=rows.residuals(zero, row.inclusion, row.line))
    fit, line = OneHotFit(beside_line, masses), row.line_in_cells(max(q.size for q in masses))
    steps, errors = fit.effects()
    between, rest, error = fit.additive()
    by_line = row.explained_by_line
    explained = between + by_line.sum(axis=0)
    total = explained + rest
    value, _ = r_squared(explained, rest, zero, size_of_answers(row.mean))
    safe = np.where(total > 0, total, 1.0)
    parts = [q @ np.nan_to_num(curve) ** 2 for q, curve in zip(masses, steps, strict=True)]
    effects = RowEffects(
        [(curve + part[: len(curve)]) * unit for curve, part in zip(steps, line, strict=True)],
        [values * unit for values in errors],
        masses,
        row.cells.tolist(),
        (np.stack(parts) + by_line) / safe,
        value,
        error * (between + rest) / safe,
    )
    return Additive(
        (effects.additive, effects.additive_errors),
        total,
        lambda: effects,
        lambda: row.cut,
        lambda: (fit.rows, fit.residuals),
    )


def pairs_of_columns(masses: list[Floats]) -> list[tuple[int, int]]:
    """Return all pairs of columns that have several cells."""
    return list(combinations((j for j, mass in enumerate(masses) if mass.size > 1), 2))


def ranked_pairs(
    masses: list[Floats], columns: Sequence[tuple[int, int]], additive: Additive, output: int
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
