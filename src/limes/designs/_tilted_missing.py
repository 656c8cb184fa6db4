"""Columns that are numbers at some rows and missing at others; slopes of columns that may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from limes._arrays import Bools, Floats, Ints
from limes._functions import Function
from limes.designs._tilted_columns import GatheredColumn, PointColumn, SlopeColumn, TiltedColumn
from limes.designs._tilted_laws import BasisPoints, Waves


@dataclass(frozen=True, eq=False)
class PartialSlopeColumn:
    """h = x, and its mean where x is missing, at rows that hold a number: see ``PartialSlopeCoordinate``.

    Attributes
    ----------
    present
        The slope under the laws of present values.
    log_mass
        log P of the two cells, present and missing, (n, 2).
    """

    present: SlopeColumn | PointColumn
    log_mass: Floats

    @cached_property
    def log_weight(self) -> Floats:
        """Log of the column's factor of E[π], (n,)."""
        return np.asarray(logsumexp(self.log_mass, axis=1))

    @cached_property
    def _probability(self) -> Floats:
        """P_w of the two cells, (n, 2)."""
        probability = np.exp(self.log_mass - self.log_weight[:, None])
        return np.asarray(probability / probability.sum(axis=1, keepdims=True))

    @property
    def center(self) -> Floats:
        """E_w h, (n,)."""
        return self.present.center

    @property
    def variance(self) -> Floats:
        """Var_w (h / unit), (n,)."""
        return self._probability[:, 0] * self.present.variance

    @property
    def at_instance(self) -> Floats:
        """Values of the rows, (n,)."""
        return self.present.at_instance

    @property
    def unit(self) -> Floats:
        """Approximate spread of x, powers of two, (n,)."""
        return self.present.unit

    @property
    def is_slope(self) -> Bools:
        """True, (n,)."""
        return self.present.is_slope

    @property
    def mixing(self) -> Floats:
        """(n, 2, 2)."""
        return self.present.mixing

    def basis(self, function: Function) -> Floats:
        """Mean and contrast of m functions, (m, n, 2)."""
        basis, missing = self.present.basis(function), function(np.array([np.nan]))
        mean = basis[:, :, 0] * self._probability[:, 0] + missing * self._probability[:, 1]
        return np.stack([mean, basis[:, :, 1]], axis=2)

    def points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points of the numbers, and one point of the missing values."""
        numbers, rows = self.present.points(function, waves), np.arange(len(self.log_mass))
        present, missing = self._probability.T
        weight = np.stack([numbers.weight[0] * present[numbers.row], numbers.weight[1]])
        absent = np.stack([missing, 0.0 * missing])
        return _ordered(
            [
                BasisPoints(numbers.row, numbers.x, weight),
                BasisPoints(rows, np.full(rows.size, np.nan), absent),
            ]
        )


@dataclass(frozen=True, eq=False)
class MixedColumn(GatheredColumn):
    """A column with rows of several kinds: ``parts`` are the positions of each kind, and its column."""

    parts: Sequence[tuple[Ints, TiltedColumn]]

    def basis(self, function: Function) -> Floats:
        """Two functionals of m functions from which mean and contrast are mixed, (m, n, 2)."""
        return np.concatenate([part.basis(function) for _, part in self.parts], axis=1)[:, self._order]

    def points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points of all parts."""
        each = [(rows, part.points(function, waves)) for rows, part in self.parts]
        return _ordered([BasisPoints(rows[points.row], points.x, points.weight) for rows, points in each])

    def _each(self, name: str) -> Floats:
        return np.concatenate([getattr(part, name) for _, part in self.parts])[self._order]

    @cached_property
    def _order(self) -> Ints:
        """Position of each row when one part comes after the other, (n,)."""
        return np.argsort(np.concatenate([rows for rows, _ in self.parts]))


def _ordered(parts: Sequence[BasisPoints]) -> BasisPoints:
    """Join the points of all parts, ordered by row."""
    row, x = (np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "x"))
    order = np.argsort(row, kind="stable")
    return BasisPoints(row[order], x[order], np.concatenate([p.weight for p in parts], axis=1)[:, order])
