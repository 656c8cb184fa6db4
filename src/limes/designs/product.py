r"""Product designs: independent columns, weights that are products over columns.

Three instances of one notion:

- LIME for tables: z_j = 1 where column j stays in the instance's bin, weight exp(-#changed/(2ν²));
- smooth weights (2020 paper): the same z, weight exp(-‖x - ξ‖²/(2ν²));
- LIME without bins: the surrogate's feature is x_j itself.

Tilting a product by a product leaves a product: under the weighted law w the columns are independent, so Σ
is diagonal and β_j = Cov_w(h_j, f) / Var_w(h_j) for whatever feature h_j a column offers to the surrogate.
A column is then two linear functionals of a one-dimensional function g,

    mean(g) = E_w g     and     contrast(g) = Cov_w(h, g) / Var_w(h),

and nothing else about the design is needed to explain a sum or a product of such functions. For an
indicator feature the contrast is E_w[g | z = 1] - E_w[g | z = 0] (MATHEMATICS: section 2), which is how it
is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import expit, logsumexp

from limes._arrays import Bools, Floats, Ints
from limes.designs.columns import marginals_from_bins
from limes.designs.marginals import Marginal
from limes.designs.weights import BinWeights, Weights, named_weights
from limes.exceptions import InputError
from limes.functions import Function, Identity

# A cell with less probability than this still tells what the model does there (its conditional law is
# exact), while products of two such masses stay above the smallest float64.
_SMALLEST_MASS = 1e-100


@dataclass(frozen=True, eq=False)
class Table:
    """E[g | cell] of m functions, (m, p), and E[(x - mean) g | cell] where the feature is x itself."""

    values: Floats
    moments: Floats | None = None


class Coordinate(Protocol):
    """One column of a product design, tilted at the instance."""

    @property
    def marginal(self) -> Marginal:
        """The tilted law. Rows that share it (same object) share the tables made from it."""
        ...

    @property
    def center(self) -> float:
        """E_w h."""
        ...

    @property
    def variance(self) -> float:
        """Var_w h; 0 where the column cannot vary."""
        ...

    @property
    def at_instance(self) -> float:
        """Value of h at the instance."""
        ...

    @property
    def log_weight(self) -> float:
        """Log of this column's factor of C = E[π]."""
        ...

    def tabulate(self, function: Function) -> Table:
        """What the functionals need of m functions."""
        ...

    def functionals(self, table: Table) -> tuple[Floats, Floats]:
        """mean(g) and contrast(g), both (m,)."""
        ...

    def draw(self, level: Floats) -> tuple[Floats, Floats]:
        """Values x and features h at levels in (0, 1), by the inverse distribution function."""
        ...


@dataclass(frozen=True, eq=False)
class IndicatorCoordinate:
    """h = z = 1[x lies in the instance's cell].

    ``inclusion`` α = P_w(z = 1) and ``exclusion`` 1 - α are kept both, and ``elsewhere``, the law of the
    cell given z = 0, is kept apart from them: none of the three loses digits when another is tiny.
    """

    marginal: Marginal
    cell: int
    inclusion: float
    exclusion: float
    elsewhere: Floats
    log_weight: float
    at_instance: float = 1.0

    @classmethod
    def tilted(
        cls, marginal: Marginal, x: float, cell: int, *, scale: float, weights: Weights
    ) -> IndicatorCoordinate:
        """Tilt a column's law at the instance."""
        law, penalty = weights.tilt(marginal, x, scale)
        others = law.log_mass.copy()
        here = float(others[cell])
        others[cell] = -np.inf
        rest = float(logsumexp(others)) if others.size > 1 else -np.inf
        if rest == -np.inf:
            return cls(law, cell, 1.0, 0.0, np.zeros(others.size), here)
        odds = here - (rest - penalty)
        return cls(
            law,
            cell,
            max(float(expit(odds)), _SMALLEST_MASS),
            max(float(expit(-odds)), _SMALLEST_MASS),
            np.exp(others - rest),
            float(np.logaddexp(here, rest - penalty)),
        )

    @property
    def center(self) -> float:
        return self.inclusion

    @property
    def variance(self) -> float:
        return self.inclusion * self.exclusion

    def tabulate(self, function: Function) -> Table:
        return Table(self.marginal.expect(function))

    def functionals(self, table: Table) -> tuple[Floats, Floats]:
        on = table.values[:, self.cell]
        if self.exclusion == 0.0:
            return on, np.zeros_like(on)
        off = table.values @ self.elsewhere
        return self.inclusion * on + self.exclusion * off, on - off

    def draw(self, level: Floats) -> tuple[Floats, Floats]:
        probability = self.exclusion * self.elsewhere
        probability[self.cell] = self.inclusion
        cell, inside = _split_level(level, probability)
        return self.marginal.quantile(cell, inside), (cell == self.cell).astype(np.float64)


@dataclass(frozen=True, eq=False)
class SlopeCoordinate:
    """h = x: the surrogate's coefficient is a slope in the column's own units."""

    marginal: Marginal
    at_instance: float
    probability: Floats
    center: float
    variance: float
    log_weight: float

    @classmethod
    def tilted(cls, marginal: Marginal, x: float, *, scale: float, weights: Weights) -> SlopeCoordinate:
        """Tilt a column's law at the instance."""
        law, _ = weights.tilt(marginal, x, scale)
        total = float(logsumexp(law.log_mass))
        probability = np.exp(law.log_mass - total)
        center = float(probability @ law.means)
        table = Table(*_slope_table(law, _IDENTITY))
        variance = float(_covariance(table, law, probability, center)[0])
        return cls(law, x, probability, center, variance, total)

    def tabulate(self, function: Function) -> Table:
        return Table(*_slope_table(self.marginal, function))

    def functionals(self, table: Table) -> tuple[Floats, Floats]:
        mean = table.values @ self.probability
        if self.variance == 0.0:
            return mean, np.zeros_like(mean)
        covariance = _covariance(table, self.marginal, self.probability, self.center)
        return mean, covariance / self.variance

    def draw(self, level: Floats) -> tuple[Floats, Floats]:
        cell, inside = _split_level(level, self.probability)
        x = self.marginal.quantile(cell, inside)
        return x, x


@dataclass(frozen=True, eq=False)
class ProductDesign:
    """Independent columns under the weighted law w, at one instance.

    ``limes.limit(design, form)`` explains a form under it. Built by :class:`ProductFamily` from a
    background, or by :meth:`from_bins` from statistics alone.

    Examples
    --------
    >>> from limes.designs import ProductDesign
    >>> from limes.models import forms
    >>> import limes
    >>> edges = [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    >>> means, stds = [[0.5, 1.5], [0.5, 1.5]], [[0.3, 0.3], [0.3, 0.3]]
    >>> design = ProductDesign.from_bins(edges, means, stds, instance=[0.2, 1.2], bandwidth=1.0)
    >>> limes.limit(design, forms.Linear([1.0, -2.0], 0.5)).coef.round(6)
    array([-1., -2.])
    """

    coordinates: tuple[Coordinate, ...]

    @classmethod
    def from_bins(
        cls,
        edges: Sequence[Sequence[float] | Floats],
        means: Sequence[Sequence[float] | Floats],
        stds: Sequence[Sequence[float] | Floats],
        instance: Sequence[float] | Floats,
        bandwidth: float,
        *,
        frequencies: Sequence[Sequence[float] | Floats] | None = None,
        weights: str = "bins",
    ) -> ProductDesign:
        """LIME's design from bin statistics, without data.

        Inside bin b of column j the law is normal(means[j][b], stds[j][b]) cut to (edges[j][b],
        edges[j][b+1]].

        Parameters
        ----------
        edges
            One array a column with both ends, (p_j + 1,); the outer two may be infinite.
        means, stds
            One array a column, (p_j,). A bin with std 0 or without width is a point mass.
        instance
            The point ξ to explain, (d,). Outside the edges it belongs to the first or last bin.
        bandwidth
            ν > 0, infinity allowed.
        frequencies
            One array a column, (p_j,), of non-negative numbers; equal if not given.
        weights
            "bins": exp(-#changed bins / (2ν²)). "euclidean": exp(-‖x - ξ‖² / (2ν²)) in raw units.

        Raises
        ------
        InputError
            If lengths disagree, edges descend, a number is not finite, or an option is unknown.

        References
        ----------
        Garreau & von Luxburg 2022, section 2 (bins); 2020, eq. 2.4 (smooth weights).
        """
        row = np.asarray(instance, dtype=np.float64)
        marginals = marginals_from_bins(edges, means, stds, frequencies=frequencies)
        if row.shape != (len(marginals),) or not np.isfinite(row).all():
            raise InputError(
                f"instance must hold {len(marginals)} finite numbers, one a column; got {instance!r}"
            )
        family = ProductFamily(marginals, named_weights(weights, bandwidth))
        return family.at(row)

    @property
    def size(self) -> int:
        """Number of columns d."""
        return len(self.coordinates)

    @cached_property
    def inclusion(self) -> Floats:
        """α_j = E_w h_j, (d,): the probability to stay in the instance's cell; a slope's mean."""
        return np.array([c.center for c in self.coordinates])

    @cached_property
    def variance(self) -> Floats:
        """Var_w h_j, (d,): the diagonal of the centred Σ; 0 for a column that cannot vary."""
        return np.array([c.variance for c in self.coordinates])

    @cached_property
    def at_instance(self) -> Floats:
        """h_j(ξ), (d,): ones, or the instance's own values for slopes."""
        return np.array([c.at_instance for c in self.coordinates])

    @property
    def log_weight(self) -> float:
        """Log E[π] before tilting: how much of the unweighted law the weights keep."""
        return float(sum(c.log_weight for c in self.coordinates))

    def solve(self, gamma: Floats) -> Floats:
        """Σ⁻¹Γ for centred Γ_j = Cov_w(h_j, f), (d, ...) -> (d, ...); 0 for columns that cannot vary."""
        variance = self.variance.reshape(-1, *(1,) * (gamma.ndim - 1))
        return np.divide(gamma, variance, out=np.zeros_like(gamma), where=variance > 0)

    def draw(self, levels: Floats) -> tuple[Floats, Floats]:
        """Rows x and features h of the tilted law from points of the unit cube, (n, d) -> (n, d), (n, d)."""
        columns = [c.draw(levels[:, j]) for j, c in enumerate(self.coordinates)]
        return np.stack([x for x, _ in columns], axis=1), np.stack([h for _, h in columns], axis=1)


@dataclass(frozen=True, eq=False)
class ProductFamily:
    """The product designs of one background: one at each instance.

    Attributes
    ----------
    marginals
        The background's law, a column each.
    weights
        How perturbed rows are weighted.
    slopes
        (d,) columns whose feature is x itself instead of the indicator of a cell; none if not given.
    scales
        (d,) unit of distance of each column for smooth weights; ones if not given.
    """

    marginals: tuple[Marginal, ...]
    weights: Weights
    slopes: Bools | None = None
    scales: Floats | None = None

    def cells(self, rows: Floats) -> Ints:
        """Cell of every value, (n, d) -> (n, d)."""
        located = [m.cells.locate(rows[:, j]) for j, m in enumerate(self.marginals)]
        return np.stack(located, axis=1)

    def key(self, row: Floats) -> bytes:
        """Rows with equal keys have equal designs: the cells decide, unless distances count."""
        if isinstance(self.weights, BinWeights) and self.slopes is None:
            return self.cells(row[None, :]).tobytes()
        return row.tobytes()

    def at(self, row: Floats) -> ProductDesign:
        """The design at one instance (d,)."""
        cells = self.cells(row[None, :])[0]
        return ProductDesign(tuple(self._coordinate(j, row, cells) for j in range(row.size)))

    def _coordinate(self, j: int, row: Floats, cells: Ints) -> Coordinate:
        scale = 1.0 if self.scales is None else float(self.scales[j])
        law, x = self.marginals[j], float(row[j])
        if self.slopes is not None and self.slopes[j]:
            return SlopeCoordinate.tilted(law, x, scale=scale, weights=self.weights)
        return IndicatorCoordinate.tilted(law, x, int(cells[j]), scale=scale, weights=self.weights)


_IDENTITY = Identity()


def _slope_table(law: Marginal, function: Function) -> tuple[Floats, Floats]:
    return law.expect(function), law.expect_centred(function)


def _covariance(table: Table, law: Marginal, probability: Floats, center: float) -> Floats:
    """Cov(x, g) = Σ_b q_b (E[(x - m_b) g | b] + (m_b - m) E[g | b])."""
    assert table.moments is not None  # noqa: S101 - a slope's tables always have them
    within = table.moments @ probability
    return np.asarray(within + table.values @ (probability * (law.means - center)))


def _split_level(level: Floats, probability: Floats) -> tuple[Ints, Floats]:
    """One number in (0, 1) gives the cell, and what is left of it the place inside the cell."""
    share = probability / probability.sum()
    upper = np.cumsum(share)
    upper[-1] = max(upper[-1], 1.0)
    cell = np.searchsorted(upper, level, side="right")
    inside = (level - (upper[cell] - share[cell])) / share[cell]
    return cell, np.clip(inside, 0.0, 1.0)
