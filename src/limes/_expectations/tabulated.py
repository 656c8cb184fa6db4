"""Common parts of expectations of links: columns under the variants of their laws, and tables of them.

Mean and contrast of e^{z f_j} depend on a row only through the law of its column: under bin weights all rows
share one table of cells x nodes, and a row costs the products over columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments
from limes._expectations.product import ProductExpectation
from limes._expectations.waves import WaveBundle, Waves, extent
from limes._functions import Function
from limes._kernels import add_node_products
from limes._threads import LRUCache
from limes.designs._coordinates import Coordinate, functionals
from limes.designs._product import ProductDesign, ProductFamily
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Form
from limes.models.forms._links import Complexes

# Largest error of an expectation, relative to E f
TOLERANCE = 1e-9
# Relative rounding of a product of d factors is about (d + this) times that of one
_ROUNDINGS = 8
# Rows whose tables are looked up together
_ROWS = 256
# Backgrounds whose tables are cached
_CACHED = 4

Store = TypeVar("Store")
T = TypeVar("T")


def product_rounding(factors: int) -> float:
    """Return about the relative rounding error of a product of a number of factors."""
    return float(np.finfo(np.float64).eps) * (factors + _ROUNDINGS)


class NodeGroup(NamedTuple):
    """Nodes z (N,); the first ``equidistant`` are a constant step apart, and have one real part."""

    nodes: Complexes
    equidistant: int = 0


@dataclass(frozen=True, eq=False)
class Column:
    """One column of K margins: its position, its functions with loadings (m, K), and ranges of the K sums."""

    place: int
    function: Function
    loading: Floats
    variants: Sequence[Coordinate]
    lower: Floats
    upper: Floats

    @property
    def places(self) -> Ints:
        """Position of the column, (1,)."""
        return np.array([self.place])

    @classmethod
    def of(cls, place: int, function: Function, loading: Floats, variants: Sequence[Coordinate]) -> Column:
        """Measure the ranges under all variants of the law."""
        laws = {id(coordinate.marginal): coordinate.marginal for coordinate in variants}
        ends = [extent(law, function, loading) for law in laws.values()]
        lower = np.min([least for least, _ in ends], axis=0)
        return cls(place, function, loading, variants, lower, np.max([most for _, most in ends], axis=0))

    def offsets(self, groups: Sequence[NodeGroup]) -> Floats:
        """The largest Re z f, for the nodes of all K groups."""
        ends = zip(groups, self.lower, self.upper, strict=True)
        largest = [np.maximum(g.nodes.real * low, g.nodes.real * high) for g, low, high in ends]
        return np.concatenate(largest)

    def functionals(self, groups: Sequence[NodeGroup]) -> tuple[Complexes, Complexes, Floats]:
        """Mean and contrast of e^{zf - offset} of every variant, (V, N) each, and the offsets, (N,).

        ``groups`` are the nodes of each margin, one after the other.

        Raises
        ------
        ModelError
            If a margin has no finite value somewhere.
        """
        offsets, first, waves = self.offsets(groups), 0, []
        for (nodes, equidistant), loading in zip(groups, self.loading.T, strict=True):
            shift = offsets[first : first + nodes.size]
            waves.append(Waves(self.function, loading, nodes, shift, equidistant))
            first += nodes.size
        means, contrasts = self.tabulate(WaveBundle(tuple(waves)))
        return means, contrasts, offsets

    def tabulate(self, function: Function) -> tuple[Complexes, Complexes]:
        """Mean and contrast of N functions under every variant, (V, N) each."""
        return tabulated(self.place, self.variants, function)

    def tables(
        self, groups: Sequence[NodeGroup], derive: Callable[[Complexes, Complexes, Floats], T]
    ) -> ColumnTables[T]:
        """Return lookups of means (V, N), contrasts (V, 1, N) and offsets (N,), converted to a T."""
        means, contrasts, offsets = self.functionals(groups)
        return ColumnTables(self.place, offsets, derive(means, contrasts[:, None], offsets))


class ColumnTables(Generic[T]):
    """Tables of one column, with the offsets (N,) of its nodes: a pattern is the variant of its law."""

    def __init__(self, place: int, offsets: Floats, patterns: T) -> None:
        self.offsets = offsets
        self._place, self._patterns = place, patterns

    def at(self, cells: Ints) -> tuple[Ints, T]:
        """The pattern of each row (n,), given the variant of each column (n, d), and tables of patterns."""
        return cells[:, self._place], self._patterns


class Numbers(NamedTuple):
    """One factor: means (P, 2N) and contrasts (P, g, 2N), real parts before imaginary ones."""

    means: Floats
    contrasts: Floats

    @classmethod
    def of(cls, means: Complexes, contrasts: Complexes, offsets: Floats) -> Numbers:  # noqa: ARG003
        """Split (P, N) and (P, g, N) into parts; the weights contain the offsets."""
        return cls(in_parts(means), in_parts(contrasts))


def in_parts(numbers: Complexes) -> Floats:
    """Real parts before imaginary ones, (..., N) -> (..., 2N)."""
    return np.ascontiguousarray(np.concatenate([numbers.real, numbers.imag], axis=-1))


class Tables(Protocol):
    """Lookup of the numbers of one factor."""

    def at(self, cells: Ints) -> tuple[Ints, Numbers]:
        """The pattern of each row (n,), given the variant of each column (n, d), and tables of patterns."""
        ...


class NodeProducts:
    """Re Σ_n W_n ∏_j mean_j(n), and its contrasts, for k outputs with weights W (k, N).

    ``places`` are the positions of the columns of each factor, whose numbers ``tables`` look up.
    """

    def __init__(self, places: Sequence[Ints], tables: Sequence[Tables], weights: Complexes) -> None:
        self._places, self._tables = places, tables
        self._weights = in_parts(weights)

    def moments(self, cells: Ints) -> tuple[Floats, Floats]:
        """Sums (n, k) and contrasts (n, d, k) of rows, given the variant of each column, (n, d)."""
        n, outputs = len(cells), len(self._weights)
        mean, contrast = np.zeros((n, outputs)), np.zeros((*cells.shape, outputs))
        if not self._tables:
            return mean + self._weights[:, : self._weights.shape[1] // 2].sum(axis=1), contrast
        places = np.concatenate(self._places)
        for start in range(0, n, _ROWS):
            rows = slice(start, start + _ROWS)
            patterns, parts = zip(*(table.at(cells[rows]) for table in self._tables), strict=True)
            changes = np.zeros((mean[rows].shape[0], places.size, outputs))
            add_node_products(
                [part.means for part in parts],
                [part.contrasts for part in parts],
                np.stack(patterns),
                self._weights,
                mean[rows],
                changes,
            )
            contrast[rows, places] = changes
        return mean, contrast


def tabulated(place: int, variants: Sequence[Coordinate], function: Function) -> tuple[Complexes, Complexes]:
    """Return mean and contrast of N functions under every variant of a column's law, (V, N) each.

    Raises
    ------
    ModelError
        If a function has no finite value somewhere.
    """
    pairs, law, table = [], None, None
    for coordinate in variants:
        if table is None or coordinate.marginal is not law:
            law, table = coordinate.marginal, coordinate.tabulate(function)
            if not np.isfinite(table.values).all():
                raise ModelError(
                    f"the margin has no finite value everywhere in column {place}: it cannot take a "
                    "missing or an extreme value that the background holds there; impute it in a Pipeline"
                )
        pairs.append(functionals(coordinate, table))
    return np.stack([mean for mean, _ in pairs]), np.stack([contrast for _, contrast in pairs])


class TabulatedExpectation(ProductExpectation, Generic[Store]):
    """Moments of links of sums under many designs, by tables of their columns."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._tables: LRUCache[ProductFamily, Store] = LRUCache(_CACHED)

    @property
    def error_bound(self) -> float:
        return TOLERANCE  # designs with a larger bound of the quadrature are refused

    @abstractmethod
    def _tabulate(self, variants: Sequence[Sequence[Coordinate]]) -> Store:
        """Return tables of the variants of every column."""

    @abstractmethod
    def _moments(self, tables: Store, cells: Ints, variance: Floats) -> Moments:
        """Return moments of n rows, given the variant of each column and Var_w h, both (n, d)."""

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(h, f) under one design."""
        self._check(design.size)
        if design.family is not None and design.cells is not None and self.serves(design.family):
            return self.of_cells(design.family, design.cells[None], design.variance[None]).take(np.array(0))
        tables = self._tabulate([(coordinate,) for coordinate in design.coordinates])
        cells = np.zeros((1, design.size), dtype=np.int64)
        return self._moments(tables, cells, design.variance[None]).take(np.array(0))

    def serves(self, family: ProductFamily) -> bool:
        """Return whether `of_cells` can be used: cells decide the designs."""
        return family.by_cell

    def of_cells(self, family: ProductFamily, cells: Ints, variance: Floats) -> Moments:
        """Moments under the designs at n rows, given their cells and Var_w h, both (n, d)."""
        self._check(len(family.marginals))
        tables = self._tables.get(family, lambda: self._tabulate(family.variants))
        return self._moments(tables, cells, variance)

    def _check(self, columns: int) -> None:
        if columns != self._form.size:
            name, size = type(self._form).__name__, self._form.size
            raise InputError(f"the design has {columns} columns, the form ({name}) has {size}")
