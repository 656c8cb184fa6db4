"""Many columns at once: what is learnt and drawn of thousands of columns, of which each takes little.

A call of numpy takes a microsecond for one number or for hundreds. Columns of equal shape are stacked, and
the numbers of all columns are added up by the column and cell that they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import ORDINARY, Floats, Ints
from limes.designs._gaussian import GaussianPieces, learn_mean_steps
from limes.designs._marginals import (
    Atoms,
    BinCells,
    Marginal,
    Measure,
    Sides,
    ends_of_pieces,
    level_shares,
    sides,
)

# Values that are drawn at once, and stay in the processor's cache
_DRAWN = 1 << 14
# Numbers that are learnt from at once
_LEARNT = 1 << 21
# Cells of columns whose sides are computed at once, at most
_FEW_CELLS = 32


@dataclass(frozen=True, eq=False)
class StackedLaws:
    """Columns (d,) of equally many cells, with a piece of one kind in each: they are drawn at once."""

    columns: Ints
    upper: Floats  # P(cell or one before it), (d, p)
    share: Floats  # P(cell), (d, p)
    pieces: Measure  # cell by cell, column by column

    @classmethod
    def of(cls, laws: Sequence[Marginal], masses: Sequence[Floats]) -> tuple[list[StackedLaws], list[int]]:
        """Return stacks of laws whose cells have these masses, and the positions of laws in none."""
        groups: dict[Any, list[int]] = {}
        others = []
        for j, law in enumerate(laws):
            if len(law.measures) == 1 and law.has_one_piece_a_cell and (np.diff(law.owners) > 0).all():
                groups.setdefault((type(law.measures[0]), law.cells.count), []).append(j)
            else:
                others.append(j)
        stacks = []
        for (kind, _), columns in groups.items():
            upper, share = level_shares(np.stack([masses[j] for j in columns]))
            pieces = kind.joined([laws[j].measures[0] for j in columns])
            stacks.append(cls(np.array(columns), upper, share, pieces))
        return stacks, others

    def draw(self, level: Floats) -> tuple[Floats, Ints]:
        """Values x and their cells at levels in (0, 1), (n, d) each, to the same bits as `Marginal.draw`."""
        d, p = self.upper.shape
        x, cells = np.empty(level.shape), np.zeros(level.shape, dtype=np.int64)
        before, share, first = (self.upper - self.share).ravel(), self.share.ravel(), p * np.arange(d)
        step = max(1, _DRAWN // d)
        for start in range(0, len(level), step):
            block = slice(start, start + step)
            its, cell = level[block], cells[block]
            for bound in self.upper[:, :-1].T:
                cell += its >= bound
            piece = cell + first
            inside = np.clip((its - before[piece]) / share[piece], 0.0, 1.0)
            x[block] = self.pieces.quantile(piece.ravel(), inside.ravel()).reshape(its.shape)
        return x, cells


def learn_means(laws: Sequence[Marginal]) -> None:
    """Compute the means inside cells of many columns at once: one by one they take ten times as long."""
    pieces = [measure for law in laws for measure in law.measures if isinstance(measure, GaussianPieces)]
    learn_mean_steps(pieces)


def learn_sides(laws: Sequence[Marginal]) -> None:
    """Compute the sides of many columns' cells at once: one by one they take ten times as long."""
    alike: dict[int, list[Marginal]] = {}
    for law in laws:
        if "sides" not in vars(law) and law.log_mass.size <= _FEW_CELLS:
            alike.setdefault(law.log_mass.size, []).append(law)
    for count, its in alike.items():
        masses = np.repeat(np.stack([law.log_mass for law in its]), count, axis=0)
        together = sides(masses, np.tile(np.arange(count), len(its)))
        for i, law in enumerate(its):
            vars(law)["sides"] = Sides(*(each[count * i : count * (i + 1)] for each in together))


def ends_of(laws: Sequence[Marginal]) -> Floats:
    """Least and largest values that columns have, (2, d), but missing ones and those without mass."""
    ends = np.repeat([[np.inf], [-np.inf]], len(laws), axis=1)
    kinds: tuple[Any, ...] = (GaussianPieces, Atoms)
    for kind in kinds:
        its = [(j, m) for j, law in enumerate(laws) for m in law.measures if isinstance(m, kind)]
        if its:
            joined: Measure = kind.joined([m for _, m in its])
            column = np.repeat([j for j, _ in its], [m.weight.size for _, m in its])
            used = joined.weight > 0
            for values in ends_of_pieces(joined):
                np.fmin.at(ends[0], column[used], values[used])
                np.fmax.at(ends[1], column[used], values[used])
    return ends


def binned_together(matrix: Floats, edges: Sequence[Floats]) -> Iterator[Marginal | None]:
    """The laws `binned` makes of columns (n, d) of finite numbers; None for a column that it has to look at.

    These are columns with a bin that is empty, or has one value, or numbers of unusual sizes.
    """
    step = max(1, _LEARNT // len(matrix))
    for start in range(0, len(edges), step):
        yield from _binned_block(matrix[:, start : start + step], edges[start : start + step])


def _binned_block(matrix: Floats, edges: Sequence[Floats]) -> Iterator[Marginal | None]:
    kinds = [BinCells(each) for each in edges]
    start = np.cumsum([0, *(kind.count for kind in kinds)])
    owner = np.stack([kind.locate(x) for kind, x in zip(kinds, matrix.T, strict=True)]) + start[:-1, None]
    owner, x = owner.ravel(), matrix.T.ravel()
    mass = np.bincount(owner, minlength=start[-1])
    least, largest = np.full(start[-1], np.inf), np.full(start[-1], -np.inf)
    np.minimum.at(least, owner, x)
    np.maximum.at(largest, owner, x)

    def means(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(owner, numbers, start[-1]) / np.maximum(mass, 1))

    size, width = np.maximum(np.abs(least), np.abs(largest)), largest - least
    usual = (mass > 0) & (size < ORDINARY[1]) & (width > ORDINARY[0])
    with np.errstate(all="ignore"):  # of unusual numbers
        mean = means(x)
        mean += means(x - mean[owner])  # whose rounding grows with the number of rows
        std = np.sqrt(means((x - mean[owner]) ** 2))
        lower, upper = (np.concatenate(ends) for ends in zip(*((e[:-1], e[1:]) for e in edges), strict=True))
        pieces = GaussianPieces.truncated_normal(mean, std, lower, upper, weight=np.ones(mean.size))
    owners = [np.arange(count) for count in range(int(np.diff(start).max()) + 1)]
    for cells, its, first, last in zip(kinds, pieces.split(start[1:-1]), start[:-1], start[1:], strict=True):
        inside = mass[first:last]
        log_mass = np.log(inside / inside.sum()) if usual[first:last].all() else None
        yield None if log_mass is None else Marginal(cells, log_mass, (its,), owners[cells.count])
