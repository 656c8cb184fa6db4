r"""Bin edges: β depends on ξ only through its cells, so that a tiny step over an edge may change all of it.

The distance to an edge is measured in standard deviations of the column. Where a column is recorded on a
grid (ages in years), the row cannot cross the edge by less than a step: its distance is that to the nearest
background value on the other side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._diagnostics.context import Estimate, TableContext
from limes._diagnostics.finding import CHANGES, EDGE, SEVERITIES, SURE, Finding, Measure, RowOutput, Severity
from limes.designs._marginals import BinCells, Marginal

# A column is recorded on a grid if more than this share of its values occurs at least twice
_TIED = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Edge:
    """The nearest edge of one row, and the explanation (d,) beyond it.

    ``distance`` is in standard deviations of the column, ``value`` the edge itself, ``beyond`` the cell on
    the other side in words.
    """

    row: RowOutput
    column: int
    distance: float
    value: float
    beyond: str
    coef: Estimate

    @property
    def changes(self) -> Floats:
        """Changes (d,) of coefficients beyond the edge, as shares of the largest one, less their noise."""
        # an unknown error of the explanation counts as 0; an unknown error beyond the edge leaves no change
        # to report
        values, errors = self.row.values, np.where(np.isfinite(self.row.errors), self.row.errors, 0.0)
        noise = SURE * np.hypot(errors, np.where(np.isfinite(self.coef.error), self.coef.error, np.inf))
        change = np.maximum(np.abs(np.nan_to_num(self.coef.value) - values) - noise, 0.0)
        largest = max(np.abs(values).max(initial=0.0), np.nanmax(np.abs(self.coef.value), initial=0.0))
        return np.asarray(change / largest if largest > 0 else change)

    @property
    def severity(self) -> Severity | None:
        change = float(self.changes.max(initial=0.0))
        return next((s for s in SEVERITIES if self.distance <= EDGE[s] and change >= CHANGES[s]), None)

    def measures(self) -> Iterator[Measure]:
        yield Measure(
            name="nearest edge",
            value=self.distance,
            error=0.0,
            remark=f"standard deviations of {self.row.names[self.column]} to “{self.beyond}”",
        )

    def findings(self) -> Iterator[Finding]:
        if self.severity is None:
            return
        name, j = self.row.names[self.column], int(self.changes.argmax())
        where = f"{self.distance:.2g} standard deviations from" if self.distance > 0 else "on"
        yield Finding(
            kind="edge",
            severity=self.severity,
            features=(name,),
            number=self.distance,
            error=0.0,
            unit="standard deviations to the nearest bin edge",
            sentence=(
                f"{name} lies {where} {self.value:.6g}, beyond which “{self.beyond}” would "
                f"hold: there the coefficient of {self.row.names[j]} would be {self.coef.value[j]:+.3g} in "
                f"place of {self.row.values[j]:+.3g}."
            ),
            advice="Report both sides, or use other edges (bins=), smooth weights, or slopes (bins=None).",
        )


@dataclass(frozen=True, eq=False)
class Crossings:
    """Distances of rows to the next cells: learned from the background once, for any rows.

    Attributes
    ----------
    below, above
        (d, p) the value that a cell of a column must reach to be in the next cell: the edge itself, or, on a
        grid, the nearest background value on the other side. NaN where there is no next cell.
    unit
        (d,) standard deviation of each column.
    """

    below: Floats
    above: Floats
    unit: Floats

    @classmethod
    def learn(
        cls, marginals: Sequence[Marginal], background: Floats, binned: Bools, unit: Floats
    ) -> Crossings:
        """Learn the edges, and the grids on which columns are recorded."""
        widest = max(law.cells.count for law in marginals)
        below, above = (np.full((len(marginals), widest), np.nan) for _ in range(2))
        for j, law in enumerate(marginals):
            if binned[j] and isinstance(law.cells, BinCells):
                down, up = _crossed(law.cells.edges[1:-1], background[:, j])
                below[j, 1 : down.size + 1], above[j, : up.size] = down, up
        return cls(below, above, unit)

    def distances(self, rows: Floats, cells: Ints) -> tuple[Floats, Floats]:
        """Return distances to the edges below and above each value, in units, (n, d); NaN without an edge."""
        columns = np.arange(rows.shape[1])
        below, above = self.below[columns, cells], self.above[columns, cells]
        return (rows - below) / self.unit, (above - rows) / self.unit


def _crossed(inner: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return what values above and below each inner edge must reach to cross it."""
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    if counts[counts > 1].sum() <= _TIED * counts.sum():
        return inner, inner
    above = np.searchsorted(values, inner, side="right")
    return values[np.maximum(above - 1, 0)], values[np.minimum(above, values.size - 1)]


def edges(context: TableContext) -> list[Edge | None]:
    """Return the nearest edge of each row, None if no column is cut into cells."""
    crossings = Crossings.learn(context.family.marginals, context.background, context.binned, context.units)
    down, up = (np.nan_to_num(a, nan=np.inf) for a in crossings.distances(context.rows, context.cells))
    nearest = np.minimum(down, up)
    return [
        _edge(context, i, j, step=-1 if down[i, j] <= up[i, j] else 1, distance=float(nearest[i, j]))
        if np.isfinite(nearest[i, j])
        else None
        for i, j in enumerate(nearest.argmin(axis=1).tolist())
    ]


def _edge(context: TableContext, i: int, j: int, *, step: int, distance: float) -> Edge:
    cell, cells = int(context.cells[i, j]), context.family.marginals[j].cells
    assert isinstance(cells, BinCells)  # noqa: S101 - only bins have edges
    coef = context.source.coef_in_cells(context, i, [(j, cell + step)])
    return Edge(
        row=context.row_outputs[i],
        column=j,
        distance=max(distance, 0.0),
        value=float(cells.edges[cell if step < 0 else cell + 1]),
        beyond=context.texts[j][cell + step],
        coef=Estimate(coef.value[0], coef.error[0]),
    )
