r"""Kernel control: a linear trend and a Gaussian kernel regression of what it leaves, for smooth models.

k(x, c) = ∏_j k_j: exp(-(x_j - c_j)² / (2 s_j² γ² d)) for numbers, s_j their standard deviation under w;
1 or exp(-1 / (2 γ² d)) for the same or another category. A missing number is near missing ones only. γ and
the penalty are those of the least leave-one-out error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats
from limes.designs.marginals import Bins
from limes.designs.product import ProductDesign
from limes.expectations.controls.control import Fitted, Known, Zero
from limes.expectations.controls.kernel_ridge import PENALTIES, left_out, solved, spread
from limes.expectations.controls.shrinkage import ridge_path
from limes.expectations.exact import ExactExpectation
from limes.functions import Bump, Filled, Function, Identity, Lookup
from limes.models.forms.base import Sum, SumOfProducts
from limes.models.forms.combination import Reduced

_WIDTHS = (0.7, 1.0, 1.5, 2.5)
# More centres cost more than they bring: fits take centres³, exact moments centres x columns
_MOST_CENTERS = 768
# Rows on which width and penalty are chosen
_MOST_CHOOSING = 400
_FEWEST_ROWS = 32


@dataclass(frozen=True, eq=False)
class _Space:
    """How far two rows are apart; columns that do not vary are not looked at."""

    numeric: Bools
    category: Bools
    scale: Floats

    @classmethod
    def of(cls, design: ProductDesign, x: Floats) -> _Space:
        bins = np.array([isinstance(c.marginal.cells, Bins) for c in design.coordinates])
        scale = np.nanstd(np.where(np.isfinite(x).any(axis=0), x, 0.0), axis=0)
        varies = np.array([np.unique(column).size > 1 for column in x.T])
        return cls(bins & (scale > 0), ~bins & varies, np.where(scale > 0, scale, 1.0))

    @property
    def dimensions(self) -> int:
        return int(self.numeric.sum() + self.category.sum())

    def squares(self, x: Floats, centers: Floats) -> Floats:
        """Squared distances (n, m), infinite between a missing number and a known one."""
        from scipy.spatial.distance import cdist

        a, b = (rows[:, self.numeric] / self.scale[self.numeric] for rows in (x, centers))
        known, known_center = np.isfinite(a), np.isfinite(b)
        found = cdist(np.where(known, a, 0.0), np.where(known_center, b, 0.0), "sqeuclidean")
        if not (known.all() and known_center.all()):
            found[cdist(known.astype(np.float64), known_center.astype(np.float64), "sqeuclidean") > 0] = (
                np.inf
            )
        for j in np.flatnonzero(self.category):
            one, other = x[:, j, None], centers[None, :, j]
            found += (one != other) & ~(np.isnan(one) & np.isnan(other))
        return np.asarray(found)

    def functions(self, centers: Floats, width: float) -> tuple[Function | None, ...]:
        """The kernel's factors, one a column; see ``squares``."""
        precision = 1.0 / (width**2 * self.dimensions)
        return tuple(self._factor(j, centers[:, j], precision) for j in range(centers.shape[1]))

    def _factor(self, j: int, centers: Floats, precision: float) -> Function | None:
        missing = np.isnan(centers)
        if self.numeric[j]:
            bump = Bump(np.where(missing, 0.0, centers), precision / self.scale[j] ** 2)
            return Filled(bump, (~missing).astype(np.float64), missing.astype(np.float64))
        if not self.category[j]:
            return None
        far = np.exp(-0.5 * precision)
        keys = np.unique(centers[~missing])
        values = np.where(centers[:, None] == keys, 1.0, far)
        return Lookup(keys, values, np.where(missing, 1.0, far), np.full(centers.size, far))


@dataclass(frozen=True, eq=False)
class _Kernels:
    trend: Reduced
    bumps: Reduced

    def predict(self, x: Floats) -> Floats:
        return self.trend.predict(x) + self.bumps.predict(x)

    def known(self, design: ProductDesign) -> Known:
        found = [ExactExpectation(part).moments(design) for part in (self.trend, self.bumps)]
        mean, gamma = found[0].mean + found[1].mean, found[0].gamma + found[1].gamma
        return Known.exactly(mean, design.solve(gamma))


def kernel(design: ProductDesign, x: Floats, f: Floats) -> Fitted:
    """Fit a linear trend, then kernel ridge regression of the rest."""
    space = _Space.of(design, x)
    if len(x) < _FEWEST_ROWS or space.dimensions == 0:
        return Zero(f.shape[1])
    trend = _trend(space, x, f)
    rest = f - trend.predict(x)
    centers = x[spread(len(x), _MOST_CENTERS)]
    some = spread(len(x), _MOST_CHOOSING)
    width, penalty = _chosen(space, x[some], rest[some])
    gram = _gram(space.squares(x, centers), width, space.dimensions)
    own = _gram(space.squares(centers, centers), width, space.dimensions)
    coef = solved(gram, own, penalty, rest)
    bumps = SumOfProducts(space.functions(centers, width), coef, np.zeros(f.shape[1]))
    return _Kernels(trend, Reduced(bumps))


def _trend(space: _Space, x: Floats, f: Floats) -> Reduced:
    """Linear in the numbers that are never missing."""
    read = space.numeric & np.isfinite(x).all(axis=0)
    intercept, coef = ridge_path(np.where(read, x, 0.0), f)
    functions = tuple(Identity() if one else None for one in read)
    return Reduced(Sum(functions, tuple(coef[:, None]), intercept))


def _gram(squares: Floats, width: float, dimensions: int) -> Floats:
    return np.asarray(np.exp(squares * (-0.5 / (width**2 * dimensions))))


def _chosen(space: _Space, x: Floats, f: Floats) -> tuple[float, float]:
    """Width and penalty with the least leave-one-out error, every output in units of its own variance."""
    squares = space.squares(x, x)
    standard = f / np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
    scores = np.stack([left_out(_gram(squares, w, space.dimensions), standard) for w in _WIDTHS])
    width, penalty = np.unravel_index(np.argmin(scores), scores.shape)
    return _WIDTHS[width], float(PENALTIES[penalty])
