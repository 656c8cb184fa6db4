r"""One column's laws at many rows, each tilted by the weight around its row, and points that represent them.

Pieces of laws have an axis of rows. Numbers of a row are computed from its pieces alone, added up in one
order: they are the same to the last bit whatever the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints
from limes._functions import Function, by_category, texture
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Atoms, Marginal
from limes.designs._weights import EuclideanWeights

# A function (n,) -> (m, n) whose integrals show whether a quadrature is fine enough
Waves = Callable[[Floats], Floats]


class BasisPoints(NamedTuple):
    """K points: their rows, which ascend, and their values, (K,); weights in both functionals, (2, K).

    The ends of a row's laws are among the points, if necessary with weights of 0.
    """

    row: Ints
    x: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class TiltedLaws:
    """The laws of a column at n rows; see ``Marginal``.

    Attributes
    ----------
    log_mass
        log P(cell) up to a constant, (n, p).
    measures
        P pieces a row, one row after the other, with weights that add up to 1 in each cell.
    """

    marginal: Marginal
    log_mass: Floats
    measures: tuple[GaussianPieces | Atoms, ...]

    @classmethod
    def of(cls, law: Marginal, x: Floats, scale: float, weights: EuclideanWeights) -> TiltedLaws:
        """Tilt a law at the values x (n,)."""
        products = [weights.times(measure, x[:, None], scale) for measure in law.measures]
        with np.errstate(divide="ignore"):
            each = [factor + np.log(m.weight) for m, (_, factor) in zip(law.measures, products, strict=True)]
        weight, log_cell = law.normalized(np.concatenate(each, axis=1))
        sizes = [measure.weight.size for measure in law.measures]
        measures = tuple(
            _with_weight(product, share)
            for (product, _), share in zip(
                products, np.split(weight, np.cumsum(sizes)[:-1], axis=1), strict=True
            )
        )
        return cls(law, law.log_mass + log_cell, measures)

    def points(self, function: Function, waves: Waves) -> tuple[Ints, Ints, Floats, Floats]:
        """Row, cell, value and weight in the law of its cell, (K,) each, of points ordered by row."""
        n, parts = len(self.log_mass), []
        sizes = [measure.weight.size // n for measure in self.measures]
        owners = np.split(self.marginal.owners, np.cumsum(sizes)[:-1])
        for measure, owner in zip(self.measures, owners, strict=True):
            piece, x, weight = points_of(measure, function, waves)
            row, place = np.divmod(piece, owner.size)
            parts.append((row, owner[place], x, weight))
        row, cell, x, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(row, kind="stable")
        return row[order], cell[order], x[order], weight[order]

    def expect(self, function: Function) -> Floats:
        """E[function | cell], (m, n, p)."""
        order, starts = self.marginal.order
        n = len(self.log_mass)
        pieces = [measure.expect(function) for measure in self.measures]
        each = np.concatenate([part.reshape(len(part), n, -1) for part in pieces], axis=2)
        return np.asarray(np.add.reduceat(each[:, :, order], starts, axis=2))


def _with_weight(measure: GaussianPieces | Atoms, weight: Floats) -> GaussianPieces | Atoms:
    """Lay pieces (n, P) one row after the other, with weights (n, P)."""
    if isinstance(measure, Atoms):
        return Atoms(np.tile(measure.value, len(weight)), weight.ravel())
    arrays = {
        name: np.ascontiguousarray(array).ravel() for name, array in vars(measure).items() if name in _NAMES
    }
    return GaussianPieces(**{**arrays, "weight": weight.ravel()})


_NAMES = ("anchor", "slope", "precision", "lower", "upper", "weight", "scale")


def points_of(
    measure: GaussianPieces | Atoms, function: Function, waves: Waves
) -> tuple[Ints, Floats, Floats]:
    """Piece, value and weight of points, (K,) each, that integrate g(function(x)) as smooth as ``waves``."""
    breaks, _, panels = texture(function)
    pieces = np.arange(measure.weight.size)
    if isinstance(measure, Atoms):
        return pieces, measure.value, measure.weight
    if by_category(function):
        measure.expect(function)  # raises if the function is a lookup and the law has a density
    inner, inside, weight = measure.points(waves, breaks, panels)
    outer = [measure.anchor + measure.scale * side for side in measure.reach]
    piece, x = np.concatenate([inner, pieces, pieces]), np.concatenate([inside, *outer])
    order = np.argsort(piece, kind="stable")
    return piece[order], x[order], np.concatenate([weight, np.zeros(2 * pieces.size)])[order]
