r"""Product designs: independent columns, weights that are products over columns.

There are three cases:

- LIME for tables: z_j = 1 where column j stays in the instance's bin, weight exp(-#changed/(2ν²));
- smooth weights (2020 paper): the same z, weight exp(-‖x - ξ‖²/(2ν²));
- LIME without bins: the surrogate's feature is x_j itself.

Tilting a product by a product leaves a product: under the weighted law w the columns are independent, so Σ is
diagonal and every column is treated alone (``_coordinates.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from limes import _kernels
from limes._arrays import Bools, Floats, Ints, float_array
from limes.designs._columns import marginals_from_bins
from limes.designs._coordinates import Coordinate, IndicatorCoordinate, SlopeCoordinate
from limes.designs._features import FeatureTable, Uncorrelated
from limes.designs._marginals import Levels, Marginal
from limes.designs._partial_slopes import PartialSlopeCoordinate
from limes.designs._weights import BinWeights, EuclideanWeights, Weights, named_weights
from limes.exceptions import InputError

# Direction numbers exist for this many dimensions; further columns make all points independent numbers.
SOBOL_DIMENSIONS = 21_201
# Binary digits of their points
_BITS = 30


@dataclass(frozen=True, eq=False)
class ProductDesign(Uncorrelated):
    """Independent columns under the weighted law w, at one instance.

    ``limes.limit(design, form)`` explains a form under it. Built by :class:`ProductFamily` from a
    background, or by :meth:`from_bins` from statistics alone.

    Parameters
    ----------
    coordinates
        The tilted law of each column, d of them.
    family, cells
        The family, and the instance's cells (d,), where the family's laws are the same at every instance.

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
    family: ProductFamily | None = None
    cells: Ints | None = None

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
            One array a column, (p_j,), of non-negative numbers; equal by default.
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
        row = float_array("instance", instance, 0, 1)
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

    @property
    def laws(self) -> tuple[Marginal, ...]:
        """Laws of the columns, without the instance's weights."""
        return tuple(coordinate.marginal for coordinate in self.coordinates)

    @cached_property
    def units(self) -> Floats:
        """Powers of two of about the size of slopes' features, (d,); 1 for indicators."""
        return np.array([c.unit for c in self.coordinates])

    @property
    def slopes(self) -> Bools:
        """Whether features are the columns themselves, (d,); the others are indicators."""
        return np.array([not isinstance(c, IndicatorCoordinate) for c in self.coordinates])

    def feature(self, x: Floats) -> Floats:
        """Return features of rows ``x`` (n, d), (n, d)."""
        return np.stack([c.feature(x[:, j]) for j, c in enumerate(self.coordinates)], axis=1)

    def in_units(self) -> ProductDesign:
        """Return the same design with features h_j / units_j, so that slopes of all columns are of one order.

        A coefficient under it, divided by its unit, is the coefficient under this design.
        """
        if (self.units == 1.0).all():
            return self
        return replace(self, coordinates=tuple(c.in_units() for c in self.coordinates))

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

    @cached_property
    def log_weight(self) -> Floats:
        """Log E[π] before tilting, (): the share of the unweighted law that the weights keep."""
        return np.array(sum(c.log_weight for c in self.coordinates))

    def locate(self, x: Floats) -> Ints:
        """Cell of every value of rows ``x``, (n, d) -> (n, d)."""
        columns = zip(self.coordinates, x.T, strict=True)
        return np.stack([c.marginal.cells.locate(column) for c, column in columns], axis=1)

    def sampler(self, streams: Sequence[np.random.SeedSequence]) -> SobolRows:
        """Return scrambled sequences of rows of w, all of the same weight, one of each of the ``streams``."""
        return SobolRows(self, streams)

    def states(self, most: int) -> tuple[Floats, Floats, Floats] | None:  # noqa: ARG002
        """Return None, whatever ``most`` is: laws inside bins have infinitely many states."""
        return None

    def draw(self, levels: Floats) -> tuple[Floats, Floats]:
        """Rows x and features h of the tilted law at points of the unit cube, ``levels`` (n, d)."""
        # an inverse distribution function has no value at 0
        levels = np.clip(levels, 2.0**-54, 1.0 - 2.0**-53)
        columns = [c.draw(levels[:, j]) for j, c in enumerate(self.coordinates)]
        return np.stack([x for x, _ in columns], axis=1), np.stack([h for _, h in columns], axis=1)


@dataclass(frozen=True, eq=False)
class ProductFamily:
    """The product designs of one background: one at each instance.

    Attributes
    ----------
    marginals
        The background's law, one a column.
    weights
        Weights of perturbed rows.
    slopes
        (d,) columns whose feature is x itself instead of the indicator of a cell; none by default. Where such
        a column is missing at the instance, its feature is the indicator of missing values.
    scales
        (d,) unit of distance of each column for smooth weights; ones by default.
    held
        (d,) columns that keep the instance's value: their law is a point mass there. None by default.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> explainer = limes.TabularExplainer(lambda X: X[:, 0], np.arange(8.0).reshape(-1, 1))
    >>> explainer.design([[0.5]]).inclusion.round(2)  # the family's design at one row
    array([0.45])
    """

    marginals: tuple[Marginal, ...]
    weights: Weights
    slopes: Bools | None = None
    scales: Floats | None = None
    held: Bools | None = None

    def __post_init__(self) -> None:
        if isinstance(self.weights, BinWeights) and self.slopes is not None and self.slopes.any():
            raise InputError("a slope has no bins to weigh by: use smooth weights, EuclideanWeights")

    def cells(self, rows: Floats) -> Ints:
        """Cell of every value of ``rows``, (n, d) -> (n, d)."""
        cells = np.empty(rows.shape, dtype=np.int64)
        _kernels.locate(np.ascontiguousarray(rows), *self._points, cells)
        return cells

    @cached_property
    def _points(self) -> tuple[Floats, Ints, Bools, Ints]:
        """Numbers that decide the cells of values, of all columns: see ``kernels/cells.cpp``."""
        kinds = [law.cells for law in self.marginals]
        points = [kind.points for kind in kinds]
        return (
            np.concatenate(points),
            np.cumsum([0, *(column.size for column in points)]),
            np.array([isinstance(kind, Levels) for kind in kinds]),
            np.array([kind.of_missing for kind in kinds]),
        )

    @property
    def by_cell(self) -> bool:
        """Whether a row's cells alone decide its design: not with weights by distance, or held values."""
        return self.counts_cells and self.held is None

    @cached_property
    def is_tilted(self) -> bool:
        """Whether every row has separate laws, which can be tilted for many rows together (`Rows`)."""
        if not isinstance(self.weights, EuclideanWeights) or self.held is not None:
            return False
        slopes = np.zeros(len(self.marginals), dtype=np.bool_) if self.slopes is None else self.slopes
        return all(map(_can_be_tilted, self.marginals, slopes.tolist()))

    @property
    def counts_cells(self) -> bool:
        """Whether rows are weighted by the number of cells that they change."""
        return isinstance(self.weights, BinWeights) and self.slopes is None

    def at(self, row: Floats) -> ProductDesign:
        """The design at one instance, ``row`` (d,)."""
        cells = self.cells(row[None, :])[0]
        if self.by_cell:
            return self.of_cells(cells)
        return ProductDesign(
            tuple(self._coordinate(j, float(row[j]), int(cells[j])) for j in range(row.size))
        )

    def of_cells(self, cells: Ints) -> ProductDesign:
        """The design at a row with these ``cells`` (d,); for families that are ``by_cell``."""
        chosen = tuple(self.variants[j][b] for j, b in enumerate(cells))
        return ProductDesign(chosen, self, cells)

    def draw(self, levels: Floats) -> tuple[Floats, Ints]:
        """Rows x of the background's own law, without weights, and their cells: (n, d) each.

        ``levels`` (n, d) are points of the unit cube.
        """
        # an inverse distribution function has no value at 0
        levels = np.clip(levels, 2.0**-54, 1.0 - 2.0**-53)
        columns = [m.draw(levels[:, j]) for j, m in enumerate(self.marginals)]
        return np.stack([x for x, _ in columns], axis=1), np.stack([c for _, c in columns], axis=1)

    @cached_property
    def variants(self) -> tuple[tuple[Coordinate, ...], ...]:
        """Each column's coordinate at an instance in each cell; for families that are ``by_cell``."""
        return tuple(
            tuple(self._coordinate(j, np.nan, b) for b in range(law.cells.count))
            for j, law in enumerate(self.marginals)
        )

    @cached_property
    def masses(self) -> Floats:
        """P_w(cell) where the instance's cell is c, (d, c, cell), 0 beyond a column's last cell.

        For families that are ``by_cell``.
        """
        widest = max(law.cells.count for law in self.marginals)
        masses = np.zeros((len(self.marginals), widest, widest))
        for table, column in zip(masses, self.variants, strict=True):
            for c, coordinate in enumerate(column):
                table[c, : len(column)] = coordinate.probability
        return masses

    def features(self, cells: Ints) -> FeatureTable:
        """Features of the designs at n rows, from ``cells`` (n, d); for families that are ``by_cell``."""
        center, variance, at_instance, log_weight = self._numbers[:, np.arange(cells.shape[1]), cells]
        return FeatureTable(center, variance, at_instance, log_weight.sum(axis=1))

    @cached_property
    def _numbers(self) -> Floats:
        """(4, d, widest): center, variance, value at the instance and log weight of every variant."""
        numbers = np.zeros((4, len(self.variants), max(len(column) for column in self.variants)))
        for j, column in enumerate(self.variants):
            for b, c in enumerate(column):
                numbers[:, j, b] = c.center, c.variance, c.at_instance, c.log_weight
        return numbers

    def _coordinate(self, j: int, x: float, cell: int) -> Coordinate:
        if self.held is not None and self.held[j]:
            return IndicatorCoordinate.held(x)
        scale = 1.0 if self.scales is None else float(self.scales[j])
        if self.slopes is not None and self.slopes[j] and not np.isnan(x):
            missing = self.marginals[j].cells.of_missing >= 0
            kind = PartialSlopeCoordinate if missing else SlopeCoordinate
            return kind.tilted(self.marginals[j], x, scale=scale, weights=self.weights)
        return IndicatorCoordinate.tilted(self.marginals[j], x, cell, scale=scale, weights=self.weights)


def _can_be_tilted(law: Marginal, slope: bool) -> bool:
    if isinstance(law.cells, Levels):
        return not slope
    # without bins a column's law is one normal, or one value; law="empirical" has many
    return not slope or law.owners.size == 1 + (law.cells.of_missing >= 0)


class SobolRows:
    """Endless, independently scrambled Sobol' sequences of rows, one a stream.

    A column's inverse distribution function turns one number into the cell and the place inside it, so that d
    numbers make a row of the tilted law. A scrambled sequence is random, every row of it follows the law, and
    low-order effects of the model average out faster than with independent rows. The first draw should be a
    power of two.
    """

    def __init__(self, design: ProductDesign, streams: Sequence[np.random.SeedSequence]) -> None:
        self._design = design
        self._points = sobol_points(design.size, streams)

    def draw(self, rows: int) -> tuple[Floats, Floats, Ints]:
        """Draw the next rows of every sequence: x and h, (sequences · rows, d) each, sequence by sequence.

        The third value is the number of each row's group: every row is a group.
        """
        x, h = self._design.draw(self._points.random(rows))
        return x, h, np.arange(len(x))


def sobol_points(d: int, streams: Sequence[np.random.SeedSequence]) -> _Sobol | _Independent:
    """Return random Sobol' sequences in d dimensions, one a stream; independent points beyond them."""
    make = _Independent if d > SOBOL_DIMENSIONS else _Sobol
    return make(d, [np.random.default_rng(stream) for stream in streams])


class _Sobol:
    """Sequences that share a random matrix; each has a separate random digital shift.

    Given the matrix, they are independent of each other, and every point is uniform. Some pairs of dimensions
    depend strongly on each other in the first few hundred points, whatever the matrix; every sequence
    therefore assigns its dimensions to the columns in a random order.
    """

    def __init__(self, d: int, rngs: Sequence[np.random.Generator]) -> None:
        from scipy.stats.qmc import Sobol

        self._points = Sobol(d, scramble=True, bits=_BITS, rng=rngs[0])
        self._shifts = [rng.integers(1 << _BITS, size=d) for rng in rngs]
        self._orders = [rng.permutation(d) for rng in rngs]

    def random(self, n: int) -> Floats:
        """Draw the next n points of every sequence, (sequences · n, d), sequence by sequence."""
        digits = (self._points.random(n) * (1 << _BITS)).astype(np.int64)
        shifted = zip(self._orders, self._shifts, strict=True)
        return np.concatenate([digits[:, order] ^ shift for order, shift in shifted]) / (1 << _BITS)


class _Independent:
    def __init__(self, d: int, rngs: Sequence[np.random.Generator]) -> None:
        self._d, self._rngs = d, rngs

    def random(self, n: int) -> Floats:
        return np.concatenate([rng.random((n, self._d)) for rng in self._rngs])
