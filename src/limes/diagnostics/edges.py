r"""Bin edges: β depends on ξ only through its cells, so that a hair's breadth may change it all.

The distance to an edge is measured in standard deviations of the column. Where a column is recorded on a
grid (ages in years), the row cannot cross the edge by less than a step: its distance is that to the nearest
background value on the other side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.designs.marginals import BinCells, Marginal
from limes.diagnostics.facts import Facts
from limes.diagnostics.finding import SURE, Finding, Measure
from limes.diagnostics.sample import Estimate
from limes.diagnostics.table_scene import TableScene

# In standard deviations: nearer than measurements are
_NEAR = {"warning": 1e-3, "note": 1e-2}
# Change of a coefficient beyond the edge, of the largest one
_CHANGES = {"warning": 0.25, "note": 0.5}
# A column is recorded on a grid if more than this share of its values occurs at least twice
_TIED = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Edge:
    """The nearest edge of one row, and the explanation (d,) beyond it.

    ``distance`` is in standard deviations of the column, ``value`` the edge itself, ``beyond`` the cell on
    the other side in words.
    """

    facts: Facts
    column: int
    distance: float
    value: float
    beyond: str
    coef: Estimate

    @property
    def changes(self) -> Floats:
        """How much coefficients change beyond the edge, of the largest one, less what noise may do; (d,)."""
        values, errors = self.facts.values, np.where(np.isfinite(self.facts.errors), self.facts.errors, 0.0)
        noise = SURE * np.hypot(errors, np.where(np.isfinite(self.coef.error), self.coef.error, np.inf))
        change = np.maximum(np.abs(np.nan_to_num(self.coef.value) - values) - noise, 0.0)
        largest = max(np.abs(values).max(initial=0.0), np.nanmax(np.abs(self.coef.value), initial=0.0))
        return np.asarray(change / largest if largest > 0 else change)

    @property
    def severity(self) -> str:
        """How near, and how much changes."""
        change = float(self.changes.max(initial=0.0))
        return next(
            (s for s in ("warning", "note") if self.distance <= _NEAR[s] and change >= _CHANGES[s]), "none"
        )

    def measures(self) -> Iterator[Measure]:
        """The distance."""
        yield Measure(
            name="nearest edge",
            value=self.distance,
            error=0.0,
            remark=f"standard deviations of {self.facts.names[self.column]} to “{self.beyond}”",
        )

    def findings(self) -> Iterator[Finding]:
        """A row on the edge whose explanation would be another one beyond it."""
        if self.severity == "none":
            return
        name, j = self.facts.names[self.column], int(self.changes.argmax())
        where = f"{self.distance:.2g} standard deviations from" if self.distance > 0 else "on"
        yield Finding(
            kind="edge",
            severity="warning" if self.severity == "warning" else "note",
            features=(name,),
            number=self.distance,
            error=0.0,
            unit="standard deviations to the nearest bin edge",
            sentence=(
                f"{name} lies {where} {self.value:.6g}, beyond which “{self.beyond}” would "
                f"hold: there the coefficient of {self.facts.names[j]} would be {self.coef.value[j]:+.3g} in "
                f"place of {self.facts.values[j]:+.3g}."
            ),
            advice="Report both sides, or use other edges (bins=), smooth weights, or slopes (bins=None).",
        )


@dataclass(frozen=True, eq=False)
class Crossings:
    """How far rows are from leaving their cells: learnt from the background once, for any rows.

    Attributes
    ----------
    below, above
        (d, p) where a value in a cell of a column must get to, to be in the next cell: the edge itself, or,
        on a grid, the nearest background value on the other side. Infinite where there is none.
    unit
        (d,) standard deviation of each column.
    """

    below: Floats
    above: Floats
    unit: Floats

    @classmethod
    def of(cls, marginals: Sequence[Marginal], background: Floats, binned: Bools, unit: Floats) -> Crossings:
        """Learn edges, and on which grid the columns are recorded."""
        widest = max(law.cells.count for law in marginals)
        below, above = (np.full((len(marginals), widest), np.nan) for _ in range(2))
        for j, law in enumerate(marginals):
            if binned[j] and isinstance(law.cells, BinCells):
                down, up = _crossed(law.cells.edges[1:-1], background[:, j])
                below[j, 1 : down.size + 1], above[j, : up.size] = down, up
        return cls(below, above, unit)

    def distances(self, rows: Floats, cells: Ints) -> tuple[Floats, Floats]:
        """Distance to the edge below and above each value, in units, both (n, d); NaN where there is none."""
        columns = np.arange(rows.shape[1])
        below, above = self.below[columns, cells], self.above[columns, cells]
        return (rows - below) / self.unit, (above - rows) / self.unit


def _crossed(inner: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Where values above and below each inner edge must get to, to cross it."""
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    if counts[counts > 1].sum() <= _TIED * counts.sum():
        return inner, inner
    at = np.searchsorted(values, inner, side="right")
    return values[np.maximum(at - 1, 0)], values[np.minimum(at, values.size - 1)]


def edges(scene: TableScene) -> list[Edge | None]:
    """The nearest edge of each row, None where no column is cut."""
    crossings = Crossings.of(scene.family.marginals, scene.background, scene.binned, scene.units)
    down, up = (np.nan_to_num(a, nan=np.inf) for a in crossings.distances(scene.rows, scene.cells))
    nearest = np.minimum(down, up)
    return [
        _edge(scene, i, j, step=-1 if down[i, j] <= up[i, j] else 1, distance=float(nearest[i, j]))
        if np.isfinite(nearest[i, j])
        else None
        for i, j in enumerate(nearest.argmin(axis=1).tolist())
    ]


def _edge(scene: TableScene, i: int, j: int, *, step: int, distance: float) -> Edge:
    cell, cells = int(scene.cells[i, j]), scene.family.marginals[j].cells
    assert isinstance(cells, BinCells)  # noqa: S101 - only bins have edges
    found = scene.source.moved(scene, i, [(j, cell + step)])
    return Edge(
        facts=scene.facts[i],
        column=j,
        distance=max(distance, 0.0),
        value=float(cells.edges[cell if step < 0 else cell + 1]),
        beyond=scene.texts[j][cell + step],
        coef=Estimate(found.value[0], found.error[0]),
    )
