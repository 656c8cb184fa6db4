"""What every explanation of a table's rows says of itself: warnings that cost next to nothing.

Arrays decide which rows get one; sentences are written for those alone. ``limes.diagnose`` looks closer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.designs.product import ProductFamily
from limes.diagnostics.edges import Crossings
from limes.explainers.conditions import number_texts
from limes.explainers.table import Table
from limes.pipeline import Fitted

# Standard deviations: a row so near to an edge is on it
_ON_THE_EDGE = 1e-4
# Of the largest coefficient of the row
_LARGE = 0.2
# Rows looked at together: their distances fit the processor's memory
_BLOCK = 10_000
# R² below, with this many standard errors to spare
_POOR, _SURE = 0.1, 2.0

Warnings = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Cautions:
    """Warnings of one explainer.

    Attributes
    ----------
    names, numeric
        Of the columns; which of them hold numbers.
    low, high
        (d,) smallest and largest background value.
    crossings
        How far values are from the edges of their bins.
    fixed
        What is to be said of every row.
    """

    names: tuple[str, ...]
    numeric: Bools
    low: Floats
    high: Floats
    crossings: Crossings
    fixed: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, family: ProductFamily, unit: Floats) -> Cautions:
        """Learn what is ordinary from the background."""
        known = np.ma.masked_invalid(table.matrix)  # a column may be all missing
        laws = family.marginals
        slopes = np.zeros(len(laws), dtype=np.bool_) if family.slopes is None else family.slopes
        binned = ~slopes & np.array([law.cells.count > 1 for law in laws])
        return cls(
            names=table.names,
            numeric=table.numeric,
            low=known.min(axis=0).filled(np.nan),
            high=known.max(axis=0).filled(np.nan),
            crossings=Crossings.learn(laws, table.matrix, binned, unit),
            fixed=tuple(
                f"{name} does not vary in the background (it has one cell): its coefficient is 0"
                for name, law, slope in zip(table.names, laws, slopes, strict=True)
                if law.is_point or (law.cells.count == 1 and not slope)
            ),
        )

    def of_rows(
        self,
        rows: Floats,
        cells: Ints,
        fitted: Fitted,
        predictions: Floats,
        doubts: Mapping[int, tuple[str, ...]],
    ) -> Warnings:
        """Of rows (n, d) with their cells; rows without a warning of their own share one tuple."""
        outside = self.numeric & ((rows < self.low) | (rows > self.high))
        near = np.concatenate(
            [self._near(rows[i : i + _BLOCK], cells[i : i + _BLOCK]) for i in range(0, len(rows), _BLOCK)]
        )
        near &= _large(fitted) if near.any() else False
        far, poor = _far(fitted, predictions), _poor(fitted)
        found = [self.fixed] * len(rows)
        for i in sorted(
            {*np.flatnonzero(outside.any(axis=1) | near.any(axis=1) | far | poor).tolist(), *doubts}
        ):
            found[i] = (
                *(self._outside(int(j), rows[i, j]) for j in np.flatnonzero(outside[i])),
                *(self._on_the_edge(int(j), rows[i, j]) for j in np.flatnonzero(near[i])),
                *_sentences(far=bool(far[i]), poor=bool(poor[i])),
                *doubts.get(i, ()),
                *self.fixed,
            )
        return tuple(found)

    def _near(self, rows: Floats, cells: Ints) -> Bools:
        """Values (n, d) that lie on an edge."""
        down, up = self.crossings.distances(rows, cells)
        return np.asarray(np.fmin(down, up) <= _ON_THE_EDGE)

    def _outside(self, j: int, x: float) -> str:
        value, low, high = number_texts([x, self.low[j], self.high[j]])
        return (
            f"{self.names[j]} = {value} lies outside the background's range [{low}, {high}]; "
            "it is explained as if it lay in the outermost bin"
        )

    def _on_the_edge(self, j: int, x: float) -> str:
        return (
            f"{self.names[j]} = {x:.6g} lies on an edge of its bin: a hair's breadth away the explanation is "
            "another one; limes.diagnose shows it"
        )


class Silent:
    """Warns of nothing, where nobody would read it."""

    def of_rows(
        self,
        rows: Floats,
        cells: Ints,  # noqa: ARG002 - as `Cautions` does
        fitted: Fitted,  # noqa: ARG002
        predictions: Floats,  # noqa: ARG002
        doubts: Mapping[int, tuple[str, ...]],  # noqa: ARG002
    ) -> Warnings:
        """Of rows (n, d)."""
        return ((),) * len(rows)


def _large(fitted: Fitted) -> Bools:
    """Features (n, d) with a large coefficient: their bin matters."""
    coef = fitted.surrogate.coef
    size = np.abs(coef).reshape(*coef.shape[:2], -1).max(axis=2)
    return np.asarray(size >= _LARGE * size.max(axis=1, keepdims=True))


def _far(fitted: Fitted, predictions: Floats) -> Bools:
    """Rows (n,) where the surrogate misses the prediction by more than all its coefficients together."""
    n = len(predictions)
    missed = np.abs(predictions - fitted.at_instance).reshape(n, -1)
    reach = np.abs(fitted.surrogate.coef).reshape(n, fitted.surrogate.coef.shape[1], -1).sum(axis=1)
    return np.asarray((missed > reach).any(axis=1) & (reach > 0).any(axis=1))


def _poor(fitted: Fitted) -> Bools:
    """Rows (n,) whose R² is known, and poor, in every output."""
    n = len(fitted.calls)
    if fitted.sampled is None:
        return np.zeros(n, dtype=np.bool_)
    upper = fitted.surrogate.fidelity + _SURE * fitted.sampled.fidelity_errors
    return np.asarray((upper.reshape(n, -1) < _POOR).all(axis=1))


def _sentences(*, far: bool, poor: bool) -> Iterator[str]:
    if far:
        yield (
            "the surrogate misses the prediction by more than all its coefficients together: do not derive "
            "the prediction from them; limes.diagnose says more"
        )
    if poor:
        yield (
            "the surrogate tells less than a tenth of how the model varies around the row (R² below 0.1): "
            "its coefficients are averages, no description; limes.diagnose says more"
        )
