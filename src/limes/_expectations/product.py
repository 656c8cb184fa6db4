"""Exact expectations under product designs: n rows at a time, by the quickest way that their laws allow.

A form's expectation says how one design is explained (``moments``) and, where it can, how many are: rows in
cells whose laws all rows share (``of_cells``), and rows with separate laws (``of_columns``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.moments import (
    MomentCache,
    Moments,
    RowMoments,
    concatenate_moments,
    stack_moments,
)
from limes._functions import Filled, Function, Shape, SmoothFunctions, Stacked
from limes._threads import Progress
from limes.designs._features import InUnits
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._rows import Rows, rows_at_once
from limes.designs._tilted_columns import TiltedColumn

# Rows whose laws are shared that are explained between two steps of a progress bar
_ROWS_BY_CELL = 4096


class ProductExpectation(ABC):
    """Moments of one form under product designs."""

    method: Literal["exact"] = "exact"

    @property
    def error_bound(self) -> float:
        """Bound of the error of every mean, relative to itself; 0 of closed forms."""
        return 0.0

    @property
    def needs_densities(self) -> bool:
        """Whether laws of many combinations of values have no exact expectation."""
        return False

    @property
    def functions(self) -> Sequence[Function | None] | None:
        """Functions that `of_columns` integrates, one a column; None where there is no such way."""
        return None

    def serves(self, family: ProductFamily) -> bool:  # noqa: ARG002
        """Return whether `of_cells` can be used."""
        return False

    @abstractmethod
    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:
        """E_w f and Cov_w(h, f) under one design."""

    def of_cells(self, family: ProductFamily, cells: Ints, variance: Floats) -> Moments:
        """Moments under the designs at n rows, given their cells and Var_w h, both (n, d)."""
        raise NotImplementedError

    def of_columns(self, columns: Sequence[TiltedColumn]) -> Moments:
        """Moments at n rows, given each column's laws there."""
        raise NotImplementedError

    def at(self, rows: Rows) -> Moments:
        """Moments at n rows of one family."""
        if rows.family.by_cell and self.serves(rows.family):
            return self.of_cells(rows.family, rows.cells, rows.features.features.variance)
        if self.functions is not None and rows.family.is_tilted:
            return self.of_columns(rows.columns)
        return stack_moments([self.moments(design.in_units()) for design in rows.designs])

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> RowMoments:
        """Features and moments at n rows; rows with one design are computed once.

        Raises
        ------
        InputError, ModelError
            If a row is refused.
        """
        del predictions, workers  # nothing is asked, and all cores are used
        distinct, place = rows.distinct
        with progress(len(distinct)) as on_progress:
            features, moments = explain_rows(self, distinct, on_progress)
        if len(place) > 1 and rows.family.by_cell:
            features, moments = features.select(place), moments.take(place)
        return RowMoments(features, np.arange(len(rows)), moments)

    def rows_at_once(self, family: ProductFamily) -> int:
        """Return the number of rows that `at` takes together."""
        if family.by_cell and self.serves(family):
            return _ROWS_BY_CELL
        return rows_at_once(self.integrals(family)) if self.functions is not None and family.is_tilted else 1

    def integrals(self, family: ProductFamily) -> int:
        """Return the number of integrals of a row: functions times pieces of laws, times parts of both."""
        pairs = zip(self.functions or (), family.marginals, strict=True)
        return max(1, sum(law.owners.size * _integrals(f) for f, law in pairs if f is not None))


class CombinedExpectation(ProductExpectation):
    """Moments of intercept + Σ_i weights[i] · part_i: expectations are linear in f."""

    def __init__(self, parts: Sequence[Any], weights: Floats, intercept: Floats) -> None:
        self.parts, self.weights, self.intercept = parts, weights, intercept

    @property
    def error_bound(self) -> float:
        return max(getattr(part, "error_bound", 0.0) for part in self.parts)

    @property
    def needs_densities(self) -> bool:
        return any(getattr(part, "needs_densities", False) for part in self.parts)

    @property
    def functions(self) -> Sequence[Function | None] | None:
        each = [part.functions for part in self.parts]
        return None if None in each else each[0]

    def serves(self, family: ProductFamily) -> bool:
        return all(part.serves(family) for part in self.parts)

    def moments(self, design: Any, row: Floats | None = None) -> Moments:
        return self._add_up([part.moments(design, row) for part in self.parts])

    def of_cells(self, family: ProductFamily, cells: Ints, variance: Floats) -> Moments:
        return self._add_up([part.of_cells(family, cells, variance) for part in self.parts], (len(cells),))

    def of_columns(self, columns: Sequence[TiltedColumn]) -> Moments:
        return self._add_up([part.of_columns(columns) for part in self.parts], columns[0].center.shape)

    def integrals(self, family: ProductFamily) -> int:
        return max(int(part.integrals(family)) for part in self.parts)

    def _add_up(self, parts: Sequence[Moments], designs: tuple[int, ...] = ()) -> Moments:
        """Add up the parts' moments under the same designs."""
        mean = self.intercept + sum(w * m.mean for w, m in zip(self.weights, parts, strict=True))
        # one part after the other, whatever the shape: `np.sum` adds a single column in another order
        gamma = reduce(np.add, [w * m.gamma for w, m in zip(self.weights, parts, strict=True)])
        return Moments.exact(np.asarray(mean), np.asarray(gamma), designs=designs)


class CachedExpectation(ProductExpectation):
    """The same moments, computed once for each pattern of cells, whatever the call."""

    def __init__(self, expectation: ProductExpectation) -> None:
        self._expectation, self._cache = expectation, MomentCache()

    @property
    def functions(self) -> Sequence[Function | None] | None:
        return self._expectation.functions

    def serves(self, family: ProductFamily) -> bool:
        return self._expectation.serves(family)

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:
        return self._expectation.moments(design, row)

    def at(self, rows: Rows) -> Moments:
        if not rows.family.by_cell:
            return self._expectation.at(rows)
        return self._cache.moments(rows.cells, lambda new: self._expectation.at(rows.take(new)))

    def integrals(self, family: ProductFamily) -> int:
        return self._expectation.integrals(family)


def explain_rows(
    expectation: ProductExpectation, rows: Rows, on_progress: Callable[[int], object] = lambda _: None
) -> tuple[InUnits, Moments]:
    """Return features and moments at n rows, block by block."""
    features, moments = [], []
    for block in rows.blocks(expectation.rows_at_once(rows.family)):
        moments.append(expectation.at(block))
        features.append(block.features)
        on_progress(len(block))
    return InUnits.joined(features), concatenate_moments(moments)


def _integrals(function: Function) -> int:
    """Return the number of integrals over one piece of a law: quadrature runs from break to break."""
    match function:
        case Stacked():
            return sum(map(_integrals, function.families))
        case Filled():
            return _integrals(function.function)
        case Shape() | SmoothFunctions():
            return len(function(np.zeros(1))) * (1 + len(function.breaks))
    return len(function(np.zeros(1)))
