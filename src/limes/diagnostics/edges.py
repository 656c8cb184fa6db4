r"""Bin edges: β depends on ξ only through its cells, so that a hair's breadth may change it all.

The distance to an edge is measured in standard deviations of the column. Where a column is recorded on a
grid (ages in years), the row cannot cross the edge by less than a step: its distance is that to the nearest
background value on the other side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats
from limes.designs.marginals import Bins, Marginal
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
    """What is needed to find the nearest edges of any rows, learnt from the background once.

    Attributes
    ----------
    inner
        Inner edges of each column; empty for columns that are not cut.
    below, above
        The values a row crosses each edge from and to: the edge itself, or, on a grid, the nearest
        background values to both sides.
    unit
        (d,) standard deviation of each column.
    """

    inner: tuple[Floats, ...]
    below: tuple[Floats, ...]
    above: tuple[Floats, ...]
    unit: Floats

    @classmethod
    def of(cls, marginals: Sequence[Marginal], background: Floats, binned: Bools, unit: Floats) -> Crossings:
        """Learn edges, and on which grid the columns are recorded."""
        found = [
            _crossing(law, background[:, j]) if binned[j] else (np.empty(0),) * 3
            for j, law in enumerate(marginals)
        ]
        inner, below, above = zip(*found, strict=True)
        return cls(inner, below, above, unit)

    def distances(self, rows: Floats) -> tuple[Floats, Floats]:
        """Distance to the edge below and above each value, in units, both (n, d); infinite where none is."""
        down, up = np.full(rows.shape, np.inf), np.full(rows.shape, np.inf)
        for j, inner in enumerate(self.inner):
            if inner.size == 0:
                continue
            x = rows[:, j]
            cell = np.searchsorted(inner, x, side="left")
            # a row above the edge gets to the other side at ``below``, one at or below it at ``above``
            padded_below = np.concatenate([[-np.inf], self.below[j]])
            padded_above = np.concatenate([self.above[j], [np.inf]])
            down[:, j] = (x - padded_below[cell]) / self.unit[j]
            up[:, j] = (padded_above[cell] - x) / self.unit[j]
        return np.nan_to_num(down, nan=np.inf, posinf=np.inf), np.nan_to_num(up, nan=np.inf, posinf=np.inf)


def _crossing(law: Marginal, x: Floats) -> tuple[Floats, Floats, Floats]:
    if not isinstance(law.cells, Bins):
        return np.empty(0), np.empty(0), np.empty(0)
    inner = law.cells.edges[1:-1]
    known = np.sort(x[~np.isnan(x)])
    values, counts = np.unique(known, return_counts=True)
    if inner.size == 0 or counts[counts > 1].sum() <= _TIED * known.size:
        return inner, inner, inner
    at = np.searchsorted(values, inner, side="right")
    below = values[np.maximum(at - 1, 0)]
    above = values[np.minimum(at, values.size - 1)]
    return inner, below, above


def edges(scene: TableScene) -> list[Edge | None]:
    """The nearest edge of each row, None where no column is cut."""
    crossings = Crossings.of(scene.family.marginals, scene.background, scene.binned, scene.units)
    down, up = crossings.distances(scene.rows)
    nearest = np.minimum(down, up)
    return [
        _edge(scene, i, j, crossings, down=bool(down[i, j] <= up[i, j]), distance=float(nearest[i, j]))
        if np.isfinite(nearest[i, j])
        else None
        for i, j in enumerate(nearest.argmin(axis=1).tolist())
    ]


def _edge(scene: TableScene, i: int, j: int, crossings: Crossings, *, down: bool, distance: float) -> Edge:
    cell = int(scene.cells[i, j])
    other = cell - 1 if down else cell + 1
    return Edge(
        facts=scene.facts[i],
        column=j,
        distance=max(distance, 0.0),
        value=float(crossings.inner[j][cell - 1 if down else cell]),
        beyond=scene.texts[j][other],
        coef=_row(scene.source.moved(scene, i, [(j, other)])),
    )


def _row(found: Estimate) -> Estimate:
    return Estimate(found.value[0], found.error[0])
