r"""Product designs: independent columns, weights that are products over columns.

There are three cases:

- LIME for tables: z_j = 1 where column j stays in the instance's bin, weight exp(-#changed/(2ν²));
- smooth weights (2020 paper): the same z, weight exp(-‖x - ξ‖²/(2ν²));
- LIME without bins: the surrogate's feature is x_j itself.

Tilting a product by a product leaves a product: under the weighted law w the columns are independent, so Σ is
diagonal and every column is treated alone (``_column.py``). A design does not expose Σ as a matrix. It
applies functions of Σ: Σ⁻¹Γ, or (nCΣ + penalty)⁻¹ for a ridge; they act on the variances alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from limes import _kernels
from limes._arrays import (
    Bools,
    Floats,
    Ints,
    aligned,
    distinct_rows,
    first_of_each,
    float_array,
    sobol_points,
    stacked_rows,
)
from limes._threads import LRUCache
from limes.designs._column import (
    Column,
    ColumnOfLaws,
    IndicatorColumn,
    KeptColumns,
    column_at,
    of_each_cell,
    sliced,
)
from limes.designs._marginals import (
    BinCells,
    Levels,
    Marginal,
    TupleCells,
    marginals_from_bins,
)
from limes.designs._stacks import StackedLaws
from limes.designs._tuples import has_new_tuples
from limes.designs._weights import BinWeights, Weights, named_weights
from limes.exceptions import InputError

# Largest number of rows in a block, and of numbers in an array of its integrals
_ROWS, _NUMBERS = 256, 1 << 20
# Columns of one cell that a family remembers
_SINGLE = 4096


# -- features ------------------------------------------------------------------------------------------------


class Features(Protocol):
    """Moments of h under w; arrays (d,) for one design, (n, d) for n designs, values (..., d, *outputs)."""

    @property
    def inclusion(self) -> Floats:
        """α = E_w h."""
        ...

    @property
    def variance(self) -> Floats:
        """Var_w h, the diagonal of the centred Σ; 0 for a column that cannot vary."""
        ...

    @property
    def at_instance(self) -> Floats:
        """h(ξ)."""
        ...

    @property
    def departure(self) -> Floats:
        """h(ξ) - α; 0 for a column that cannot vary."""
        ...

    @property
    def log_weight(self) -> Floats:
        """Log E[π], () or (n,)."""
        ...

    def solve(self, gamma: Floats) -> Floats:
        """β = Σ⁻¹Γ for ``gamma`` Γ_j = Cov_w(h_j, f), (d, ...); 0 for columns that cannot vary."""
        ...

    def gamma(self, coef: Floats) -> Floats:
        """Γ = Σβ for ``coef`` β, (d, ...): the inverse of ``solve``."""
        ...

    def spectral(self, function: Callable[[Floats], Floats], values: Floats) -> Floats:
        """g(Σ) · ``values`` (d, ...), for a ``function`` g of the eigenvalues of Σ."""
        ...

    def largest(self, function: Callable[[Floats], Floats]) -> Floats:
        """The largest g(eigenvalue), (d,), of eigenvectors that involve a feature; ``function`` is g >= 0."""
        ...


class Uncorrelated:
    """Functions of a diagonal Σ, for a class that has the other members of ``Features``."""

    @property
    def departure(self: Features) -> Floats:
        return np.where(self.variance > 0, self.at_instance - self.inclusion, 0.0)

    def solve(self: Features, gamma: Floats) -> Floats:
        variance = aligned(self.variance, gamma)
        return np.divide(gamma, variance, out=np.zeros_like(gamma), where=variance > 0)

    def gamma(self: Features, coef: Floats) -> Floats:
        return np.asarray(aligned(self.variance, coef) * coef)

    def spectral(self: Features, function: Callable[[Floats], Floats], values: Floats) -> Floats:
        return np.asarray(aligned(function(self.variance), values) * values)

    def largest(self: Features, function: Callable[[Floats], Floats]) -> Floats:
        return function(self.variance)


@dataclass(frozen=True, eq=False)
class FeatureNumbers:
    """Moments of each feature by itself under n designs, (n, d); log E[π], (n,)."""

    inclusion: Floats
    variance: Floats
    at_instance: Floats
    log_weight: Floats

    @classmethod
    def merged(cls, parts: Sequence[Any], merge: Callable[[list[Floats]], Floats]) -> Self:
        """Stack single designs, or concatenate the numbers of several."""
        numbers = {each.name: [getattr(part, each.name) for part in parts] for each in fields(cls)}
        merged: Any = {name: None if its[0] is None else merge(its) for name, its in numbers.items()}
        return cls(**merged)

    @classmethod
    def stacked(cls, designs: Sequence[Features | FeatureNumbers]) -> Self:
        return cls.merged(designs, stacked_rows)

    def select(self, rows: Ints) -> Self:
        numbers = {each.name: getattr(self, each.name) for each in fields(self)}
        chosen: Any = {name: None if its is None else its[rows] for name, its in numbers.items()}
        return type(self)(**chosen)


@dataclass(frozen=True, eq=False)
class FeatureTable(Uncorrelated, FeatureNumbers):
    """Uncorrelated features of n designs, divided by their ``units``."""

    # (n, d), and whether features are slopes, (n, d); None where all are indicators, whose unit is 1
    units: Floats | None = None
    slopes: Bools | None = None

    @property
    def unscaled(self) -> FeatureTable:
        """The features themselves."""
        if self.units is None:
            return self
        with np.errstate(over="ignore"):
            variance = self.variance * self.units * self.units
        return FeatureTable(
            self.inclusion * self.units, variance, self.at_instance * self.units, self.log_weight
        )


# -- many rows -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows as expectations ask for them: the laws of each column, and which of them a row has.

    Under bin weights a column has a law a cell, which all rows of a background share, else a law a row.
    """

    family: ProductFamily | None  # the designs; None of a row whose design stands alone
    x: Floats  # (n, d); NaN where cells decide the designs
    cells: Ints  # (n, d)
    alone: Sequence[Any] = ()  # the columns without a family; cells are positions of their laws

    @classmethod
    def in_cells(
        cls, family: ProductFamily | None, cells: Ints, alone: tuple[ColumnOfLaws, ...] = ()
    ) -> Rows:
        """Rows whose values do not matter."""
        return cls(family, np.broadcast_to(np.nan, cells.shape), cells, alone)

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def by_cell(self) -> bool:
        """Whether the rows share their columns with all others of the background."""
        return self.family is not None and self.family.by_cell

    @property
    def lasting(self) -> bool:
        """Whether the columns are those of other calls, too."""
        return self.by_cell or self.family is None

    @cached_property
    def _columns(self) -> tuple[Sequence[Column], Ints]:
        if self.family is None:
            return self.alone, self.cells
        if self.family.by_cell:
            return self.family.columns, self.cells
        columns, index = zip(*self.family.columns_at(self.x, self.cells), strict=True)
        return columns, np.stack(index, axis=1)

    @property
    def columns(self) -> Sequence[Column]:
        return self._columns[0]

    @property
    def index(self) -> Ints:
        """The law of each column that a row has, (n, d)."""
        return self._columns[1]

    @cached_property
    def distinct(self) -> tuple[Rows, Ints]:
        """Rows whose designs differ, and the position of each row's among them, (n,)."""
        if not self.by_cell:
            return self, np.arange(len(self))
        cells, place = distinct_rows(self.cells)
        return self.take(first_of_each(place, len(cells))), place

    @property
    def parts(self) -> list[tuple[Ints, Rows]]:
        """Rows that share their columns, and those with a new tuple, which do not, by their positions."""
        if self.family is None or not self.family.groups:
            return [(np.arange(len(self)), self)]
        return self._by_tuples(self.family)

    def _by_tuples(self, family: ProductFamily) -> list[tuple[Ints, Rows]]:
        is_new = family.has_new_tuples(self.cells) & family.by_cell
        usual, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
        both = (usual, self.take(usual)), (new, replace(self.take(new), family=family.by_row))
        return [(at, rows) for at, rows in both if at.size]

    def take(self, at: Ints | slice) -> Rows:
        return replace(self, x=self.x[at], cells=self.cells[at])

    def blocks(self, size: int) -> list[Rows]:
        if len(self) <= size:
            return [self]
        return [self.take(slice(start, start + size)) for start in range(0, len(self), size)]

    @cached_property
    def designs(self) -> list[ProductDesign]:
        if self.family is None:
            return [ProductDesign(tuple(self.alone))]
        if self.family.by_cell:
            return [self.family.of_cells(cells) for cells in self.cells]
        return [self.family.at(row) for row in self.x]

    @cached_property
    def features(self) -> FeatureTable:
        """Moments of the designs' features, in units."""
        family = self.family
        if family is not None and family.by_cell:
            return family.features(self.cells)
        if family is not None:
            blocks = self.blocks(rows_at_once(sum(law.owners.size for law in family.marginals)))
            if len(blocks) > 1 and "_columns" not in vars(self):
                return FeatureTable.merged([block.features for block in blocks], np.concatenate)
        moments = [column.feature_moments for column in self.columns]
        center, variance, at_row, unit, log_weight, slopes, _ = (
            np.stack([numbers[place] for numbers, place in zip(each, self.index.T, strict=True)], axis=1)
            for each in zip(*moments, strict=True)
        )
        total = np.add.reduce(log_weight, axis=1)
        return FeatureTable(center / unit, variance, at_row / unit, total, unit, slopes)

    @property
    def nearly_fixed(self) -> Bools:
        """Rows at which differences of distribution functions lose the digits of some contrast, (n,)."""
        pairs = zip(self.columns, self.index.T, strict=True)
        return np.asarray(
            np.any([column.feature_moments.nearly_fixed[place] for column, place in pairs], axis=0)
        )


@dataclass(frozen=True, eq=False)
class KeptRows(Rows):
    """n rows whose values are kept with T probabilities t each: n · T designs, those of a row side by side.

    The cells are positions of laws; see `KeptColumn`.
    """

    source: ProductFamily | None = None  # whose columns these are, where all rows share them
    held: int | None = None  # a column with other probabilities than the rest: see `holding`

    @classmethod
    def of(cls, family: ProductFamily, x: Floats, cells: Ints, t: Floats) -> KeptRows:
        """Rows x in these cells (n, d), and t (T, 2); one row of a family whose laws cells do not decide."""
        n, d = cells.shape
        laws: Sequence[ColumnOfLaws] = family.columns if family.by_cell else family.at(x[0]).coordinates
        which = cells if family.by_cell else np.zeros_like(cells)
        columns = KeptColumns(laws, which, x, t)
        index = np.broadcast_to(np.arange(n * len(t))[:, None], (n * len(t), d))
        source = family if family.by_cell else None
        return cls(None, np.broadcast_to(np.nan, index.shape), index, columns, source)

    @cached_property
    def point(self) -> Ints:
        """Which of the n rows each design is of."""
        return np.repeat(np.arange(self.alone[0].x.size), len(self.alone[0].t))

    def holding(self, column: int, end: Floats) -> KeptRows:
        """The same rows with one column at one end of t, (2,), whatever the others' t is."""
        its = self.alone[column]
        ends = replace(its, t=np.broadcast_to(end, its.t.shape))
        return replace(self, alone=(*self.alone[:column], ends, *self.alone[column + 1 :]), held=column)

    def kept(self, places: Sequence[int]) -> tuple[Ints, Floats]:
        """The n rows' laws and values of these columns, (F, n) each."""
        if isinstance(self.alone, KeptColumns):
            return self.alone.law[:, places].T, self.alone.x[:, places].T
        its, shape = [self.alone[place] for place in places], (len(places), self.alone[0].x.size)
        return np.reshape([c.law for c in its], shape).astype(np.int64), np.reshape([c.x for c in its], shape)

    def shares_of(self, places: Sequence[int]) -> Floats:
        """Each design's t and 1 - t for these columns, (F, n · T, 2)."""
        n = self.alone[0].x.size
        if self.held is None:
            shares = np.tile(self.alone[0].t, (n, 1))
            return np.broadcast_to(shares, (len(places), *shares.shape))
        each = [np.tile(self.alone[place].t, (n, 1)) for place in places]
        return np.reshape(each, (len(places), len(self), 2))

    @cached_property
    def features(self) -> FeatureTable:
        """Return what `KeptColumn` has in every column."""
        ones, none = np.ones(self.cells.shape), np.zeros(self.cells.shape, dtype=np.bool_)
        center = self.shares_of(range(self.cells.shape[1]))[:, :, 0].T
        return FeatureTable(center, ones, ones, np.zeros(len(ones)), ones, none)

    @property
    def single(self) -> list[KeptRows]:
        """The n rows apart."""
        size = len(self.alone[0].t)
        alone = [
            tuple(replace(column, law=column.law[[row]], x=column.x[[row]]) for column in self.alone)
            for row in range(self.alone[0].x.size)
        ]
        return [replace(self, x=self.x[:size], cells=self.cells[:size], alone=each) for each in alone]

    @property
    def lasting(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class CellRows(Rows):
    """n designs whose features are indicators of any cells, and whose columns may keep to one cell.

    The cells are positions of laws; see `of_each_cell`.
    """

    source: ProductFamily | None = None  # whose columns these are, where all rows share them

    @classmethod
    def of(cls, columns: Sequence[ColumnOfLaws], source: ProductFamily | None = None) -> CellRows:
        """No design yet, of these columns."""
        none = np.zeros((0, len(columns)))
        each = tuple(of_each_cell(column) for column in columns)
        return cls(None, none, none.astype(np.int64), each, source)

    @cached_property
    def counts(self) -> Ints:
        """Numbers of cells of the columns, (d,)."""
        return np.array([column.elsewhere.shape[1] for column in self.alone])

    def at(self, laws: Ints) -> CellRows:
        """Each of the laws (n, d) once with every cell as the feature: n · B designs, B of the widest column.

        A column of fewer cells repeats its last one. A law that is negative, -1 - b, is that inside cell b.
        """
        feature = np.minimum(np.arange(self.counts.max())[:, None], self.counts - 1)
        sizes = np.array([column.size for column in self.alone])
        mixed = laws[:, None] * self.counts + feature
        inside = (sizes - self.counts - 1 - laws)[:, None]
        index = np.where(laws[:, None] < 0, inside, mixed).reshape(-1, len(sizes))
        return replace(self, x=np.broadcast_to(np.nan, index.shape), cells=index)

    @property
    def lasting(self) -> bool:
        return self.source is not None


def rows_at_once(numbers: int) -> int:
    """Return the number of rows in a block whose arrays hold ``numbers`` numbers for each row."""
    return min(_ROWS, max(1, _NUMBERS // numbers))


# -- one row -------------------------------------------------------------------------------------------------


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

    coordinates: tuple[ColumnOfLaws, ...]
    family: ProductFamily | None = None
    cells: Ints | None = None
    # whether features are h_j / units_j, see `in_units`
    _scaled: bool = False

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

    @cached_property
    def rows(self) -> Rows:
        """The row as the only one."""
        if self.family is not None and self.cells is not None:
            return Rows.in_cells(self.family, self.cells[None])
        return Rows.in_cells(None, np.zeros((1, self.size), dtype=np.int64), self.coordinates)

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
        return np.asarray(self._of_columns("unit"))

    @property
    def slopes(self) -> Bools:
        """Whether features are the columns themselves, (d,); the others are indicators."""
        return np.asarray(self._of_columns("is_slope"))

    def _of_columns(self, name: str) -> Any:
        return np.concatenate([getattr(column.feature_moments, name) for column in self.coordinates])

    def feature(self, x: Floats) -> Floats:
        """Return features of rows ``x`` (n, d), (n, d)."""
        return np.stack([c.feature(x[:, j]) for j, c in enumerate(self.coordinates)], axis=1) / self._divisor

    @property
    def _divisor(self) -> Floats | float:
        return self.units if self._scaled else 1.0

    def in_units(self) -> ProductDesign:
        """Return the same design with features h_j / units_j, so that slopes of all columns are of one order.

        A coefficient under it, divided by its unit, is the coefficient under this design.
        """
        return self if self._scaled or (self.units == 1.0).all() else replace(self, _scaled=True)

    @property
    def undivided(self) -> Floats:
        """Units by which features are not divided, (d,); ones for a design that is ``in_units``."""
        return np.ones(self.size) if self._scaled else self.units

    @cached_property
    def inclusion(self) -> Floats:
        """α_j = E_w h_j, (d,): the probability to stay in the instance's cell; a slope's mean."""
        return np.asarray(self._of_columns("center") / self._divisor)

    @cached_property
    def variance(self) -> Floats:
        """Var_w h_j, (d,): the diagonal of the centred Σ; 0 for a column that cannot vary."""
        with np.errstate(over="ignore"):
            return np.asarray(self._of_columns("variance") * self.undivided * self.undivided)

    @cached_property
    def at_instance(self) -> Floats:
        """h_j(ξ), (d,): ones, or the instance's own values for slopes."""
        return np.asarray(self._of_columns("at_row") / self._divisor)

    @cached_property
    def log_weight(self) -> Floats:
        """Log E[π] before tilting, (): the share of the unweighted law that the weights keep."""
        return np.array(sum(self._of_columns("log_weight")))

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
        stacks, others = self._stacks
        x = np.empty(levels.shape)
        for stack in stacks:
            x[:, stack.columns], _ = stack.draw(levels[:, stack.columns])
        for j in others:
            x[:, j] = self.coordinates[j].draw(levels[:, j])
        if self.family is not None and self.cells is not None:
            return x, (self.family.cells(x) == self.cells).astype(np.float64)
        return x, self.feature(x)

    @cached_property
    def _stacks(self) -> tuple[list[StackedLaws], list[int]]:
        return StackedLaws.of(self.laws, [column.probability for column in self.coordinates])

    def sliced(self) -> ProductDesign:
        """Return the design with every slope replaced by the indicator of the instance's slice."""
        return ProductDesign(tuple(sliced(column) for column in self.coordinates))

    @property
    def instance_cells(self) -> Ints:
        """Cells of the instance, (d,); 0 for a slope, which has one but for missing values."""
        return np.array([c.cell[0] if isinstance(c, IndicatorColumn) else 0 for c in self.coordinates])


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
        for j in self.groups:
            cells[:, j] = self.marginals[j].cells.locate(rows[:, j])
        return cells

    @cached_property
    def groups(self) -> list[int]:
        """Positions of the columns that are groups."""
        return [j for j, law in enumerate(self.marginals) if isinstance(law.cells, TupleCells)]

    def has_new_tuples(self, cells: Ints) -> Bools:
        """Whether a group of a row in these ``cells`` (n, d) is in no cell of the background, (n,)."""
        new = [has_new_tuples(self.marginals[j], cells[:, j]) for j in self.groups]
        return np.any(new, axis=0) if new else np.zeros(len(cells), dtype=np.bool_)

    @cached_property
    def by_row(self) -> ProductFamily:
        """The same designs, each row's computed from its values."""
        return replace(self, held=np.zeros(len(self.marginals), dtype=np.bool_))

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

    @property
    def counts_cells(self) -> bool:
        """Whether rows are weighted by the number of cells that they change."""
        return isinstance(self.weights, BinWeights) and self.slopes is None

    def at(self, row: Floats) -> ProductDesign:
        """The design at one instance, ``row`` (d,)."""
        cells = self.cells(row[None, :])
        if self.by_cell and not self.has_new_tuples(cells).any():
            return self.of_cells(cells[0])
        columns: Any = [column for column, _ in self.columns_at(row[None, :], cells)]
        return ProductDesign(tuple(columns))

    def squared_distances(self, row: Floats, x: Floats) -> Floats:
        """D of rows ``x`` (m, d) from a ``row`` (d,), (m,): its weights are π = exp(-D / (2ν²))."""
        differs = self.cells(x) != self.cells(row[None])
        if self.counts_cells:
            return np.asarray(differs.sum(axis=1), dtype=np.float64)
        scales = np.ones(row.size) if self.scales is None else self.scales
        measured = np.array([isinstance(law.cells, BinCells) for law in self.marginals])
        away = ((x - row) / scales) ** 2
        # a missing value is one unit away, as another category is
        return np.asarray(np.where(measured & ~np.isnan(away), away, differs).sum(axis=1))

    def of_cells(self, cells: Ints) -> ProductDesign:
        """The design at a row with these ``cells`` (d,); for families that are ``by_cell``."""
        return ProductDesign(tuple(self.column_in(j, b) for j, b in enumerate(cells.tolist())), self, cells)

    def columns_at(self, x: Floats, cells: Ints) -> list[tuple[Column, Ints]]:
        """Each column at rows ``x`` in these ``cells`` (n, d), and the law there that each row has, (n,)."""
        d, n = len(self.marginals), len(x)
        slopes, held = (
            np.zeros(d, dtype=np.bool_) if each is None else each for each in (self.slopes, self.held)
        )
        scales = np.ones(d) if self.scales is None else self.scales
        return [
            (IndicatorColumn.held(x[:, j]), np.arange(n))
            if held[j]
            else column_at(
                law, x[:, j], cells[:, j], scale=float(scales[j]), weights=self.weights, slope=bool(slopes[j])
            )
            for j, law in enumerate(self.marginals)
        ]

    @cached_property
    def columns(self) -> tuple[IndicatorColumn, ...]:
        """Each column with a law a cell; for families that are ``by_cell``."""
        penalty = self.weights.penalty
        return IndicatorColumn.of_all_cells(self.marginals, penalty)

    def column_in(self, column: int, cell: int) -> IndicatorColumn:
        """The ``column`` of this position at rows in this ``cell``; for families that are ``by_cell``."""
        return self._single.get((column, cell), lambda: self.columns[column].select(np.array([cell])))

    @cached_property
    def _single(self) -> LRUCache[tuple[int, int], IndicatorColumn]:
        return LRUCache(_SINGLE)

    def draw(self, levels: Floats) -> tuple[Floats, Ints]:
        """Rows x of the background's own law, without weights, and their cells: (n, d) each.

        ``levels`` (n, d) are points of the unit cube.
        """
        # an inverse distribution function has no value at 0
        levels = np.clip(levels, 2.0**-54, 1.0 - 2.0**-53)
        stacks, others = self._stacks
        if len(stacks) == 1 and not others:
            return stacks[0].draw(levels)
        x, cells = np.empty(levels.shape), np.empty(levels.shape, dtype=np.int64)
        for stack in stacks:
            x[:, stack.columns], cells[:, stack.columns] = stack.draw(levels[:, stack.columns])
        for j in others:
            x[:, j], cells[:, j] = self.marginals[j].draw(levels[:, j])
        return x, cells

    @cached_property
    def _stacks(self) -> tuple[list[StackedLaws], list[int]]:
        return StackedLaws.of(self.marginals, [np.exp(law.log_mass) for law in self.marginals])

    @cached_property
    def widest(self) -> int:
        """Largest number of cells of a column."""
        return max(law.cells.count for law in self.marginals)

    @cached_property
    def masses(self) -> Floats:
        """P_w(cell) where the instance's cell is c, (d, c, cell), 0 beyond a column's last cell.

        For families that are ``by_cell``.
        """
        return np.stack([np.pad(c.masses, (0, self.widest - c.size)) for c in self.columns])

    def features(self, cells: Ints) -> FeatureTable:
        """Features of the designs at n rows, from ``cells`` (n, d); for families that are ``by_cell``."""
        center, variance, at_instance, log_weight = self._numbers[:, np.arange(cells.shape[1]), cells]
        return FeatureTable(center, variance, at_instance, log_weight.sum(axis=1))

    @cached_property
    def _numbers(self) -> Floats:
        """(4, d, widest): center, variance, value at the instance and log weight in each cell."""
        numbers = np.zeros((4, len(self.columns), self.widest))
        for j, column in enumerate(self.columns):
            inside, outside = column.inclusion, column.exclusion
            numbers[:, j, : inside.size] = inside, inside * outside, np.ones(inside.size), column.log_weight
        return numbers


# -- rows that are drawn -------------------------------------------------------------------------------------


class SobolRows:
    """Endless, independently scrambled Sobol' sequences of rows, one a stream.

    A scrambled sequence is random, every row of it follows the law, and low-order effects of the model
    average out faster than with independent rows. The first draw should be a power of two.
    """

    def __init__(self, design: ProductDesign, streams: Sequence[np.random.SeedSequence]) -> None:
        self._design = design
        self._points = sobol_points(design.size, streams)

    def draw(self, rows: int) -> tuple[Floats, Floats, Ints]:
        """The next x and h of every sequence, (sequences · rows, d) each; every row is a group."""
        x, h = self._design.draw(self._points.random(rows))
        return x, h, np.arange(len(x))
