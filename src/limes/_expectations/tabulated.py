"""Links of sums: exponentials of the functions of a column, tables of them, and products over columns.

e^{z f(x)}, with real or complex z, is what products are made of. Where f is constant between breaks an
integral is a sum over the pieces; elsewhere all exponentials share the points of a quadrature that resolves
the fastest. Mean and contrast of e^{z f_j} depend on a row only through the law of its column: under bin
weights all rows share one table of cells x nodes, and a row costs the products over columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments, ProductExpectation, concatenate_moments
from limes._functions import Density, Function, StraightLine, is_line, line_of, texture
from limes._kernels import add_exponentials, add_kept_products, add_node_products
from limes._threads import LRUCache
from limes.designs._column import Column, IndicatorColumn, RangedColumn
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Marginal
from limes.designs._product import CellRows, KeptRows, ProductFamily, Rows
from limes.designs._stacks import ends_of
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Form
from limes.models.forms._links import Complexes

# Largest error of an expectation, relative to E f
TOLERANCE = 1e-9
# Relative rounding of a product of d factors is about (d + this) times that of one
_ROUNDINGS = 8
# Rows whose tables are looked up together
_ROWS = 256
# Values of which all loadings' waves are made at once
_FEW_VALUES = 32
# Numbers of waves of rows that are held at once
_NUMBERS = 2_000_000
# Backgrounds whose tables are cached
_CACHED = 4
# Below a float64 nothing has digits: there is nothing to resolve
_TINY = 1e-250

Store = TypeVar("Store")
# m functions of one column, and their loadings (m, K) in K margins
_Addend: TypeAlias = "tuple[Function, Floats]"
T = TypeVar("T")

# -- exponentials --------------------------------------------------------------------------------------------


def waves_at(nodes: Complexes, value: Floats, offsets: Floats, equidistant: int = 0) -> Complexes:
    """e^{z_n v - offset} at nodes z (N,) for values (n,), (N, n); offsets are (N, 1) or (N, n).

    The first ``equidistant`` nodes are a constant step apart, and have one offset.
    """
    count = max(equidistant, 1)
    waves = np.empty((nodes.size, value.size), dtype=np.complex128)
    if not nodes.size:
        return waves
    waves[0] = np.exp(nodes[0] * value - offsets[0])
    if count > 1:
        ratio, filled = np.exp((nodes[1] - nodes[0]) * value), 1
        while filled < count:
            more = min(filled, count - filled)
            np.multiply(waves[:more], ratio, out=waves[filled : filled + more])
            ratio, filled = ratio * ratio, filled + more
    waves[count:] = _exponentials(nodes[count:], value, offsets[count:])
    return waves


def _exponentials(nodes: Complexes, value: Floats, offsets: Floats) -> Complexes | Floats:
    """e^{z_n v - offset} one by one, (N, n): real numbers at real nodes, which take a tenth of the time."""
    numbers = nodes if nodes.imag.any() else nodes.real
    return np.asarray(np.exp(np.multiply.outer(numbers, value) - offsets))


class NodeGroup(NamedTuple):
    """Nodes z (N,); the first ``equidistant`` are a constant step apart, and have one real part."""

    nodes: Complexes
    equidistant: int = 0


class NodeGroups:
    """Nodes of K groups, one after the other; the first of each group are a constant step apart."""

    def __init__(self, groups: Sequence[NodeGroup], offsets: Floats) -> None:
        nodes = np.concatenate([group.nodes for group in groups])
        sizes = np.array([group.nodes.size for group in groups])
        even = np.array([group.equidistant for group in groups])
        count = np.minimum(np.maximum(even, 1), sizes)
        start = np.cumsum(sizes) - sizes
        self._group = np.repeat(np.arange(sizes.size), sizes)
        self._place = np.arange(nodes.size) - start[self._group]
        self._most = int(count.max(initial=0))
        # of an empty group any node will do: none of its waves is taken
        at = np.minimum(start, nodes.size - 1)
        self._first, self._offset = nodes[at], offsets[at]
        self._step = nodes[np.minimum(at + (count > 1), nodes.size - 1)] - self._first
        others = self._place >= count[self._group]
        # exponentials of real numbers and of complex ones may differ in their last bit
        turning = np.bincount(self._group[others], nodes[others].imag != 0, sizes.size) > 0
        self._real = np.flatnonzero(others & ~turning[self._group])
        self._others = np.flatnonzero(others & turning[self._group])
        self._place = np.where(others, 0, self._place)
        self._nodes, self._offsets = nodes, offsets

    def waves(self, value: Floats) -> Complexes:
        """Return what `waves_at` gives of each group at its values (K, n), to the last bit: (N, n)."""
        waves = np.empty((self._most, *value.shape), dtype=np.complex128)
        waves[0] = np.exp(self._first[:, None] * value - self._offset[:, None])
        ratio, filled = np.exp(self._step[:, None] * value), 1
        while filled < self._most:
            more = min(filled, self._most - filled)
            np.multiply(waves[:more], ratio, out=waves[filled : filled + more])
            ratio, filled = ratio * ratio, filled + more
        each = waves[self._place, self._group]
        for chosen, nodes in ((self._real, self._nodes.real), (self._others, self._nodes)):
            numbers = nodes[chosen, None] * value[self._group[chosen]]
            each[chosen] = np.exp(numbers - self._offsets[chosen, None])
        return np.asarray(each)


def mixed_logs(kept: Floats, drawn: Floats, t: Floats, point: Ints) -> tuple[Floats, Floats]:
    """Logs of q = t e^kept + (1 - t) e^drawn, and (e^kept - e^drawn) / q, (..., n, E) each.

    ``kept`` and ``drawn`` (..., U, E) are those of points, ``point`` (n,) each row's, and ``t`` (..., n, 2)
    its t and 1 - t.
    """
    top = np.maximum(kept, drawn)
    kept, drawn, top = (each[..., point, :] for each in (np.exp(kept - top), np.exp(drawn - top), top))
    mean = t[..., :1] * kept + t[..., 1:] * drawn
    return np.log(mean) + top, (kept - drawn) / mean


@dataclass(frozen=True, eq=False)
class Waves:
    """e^{z_n f(x) - offset_n} for N nodes z, f = loading · functions."""

    function: Function  # m functions
    loading: Floats  # (m,)
    nodes: Complexes
    offsets: Floats  # (N,)
    equidistant: int = 0  # number of first nodes that are a constant step apart, and have one offset

    def of(self, value: Floats) -> Complexes:
        """The exponentials of values of f, (n,) -> (N, n)."""
        return waves_at(self.nodes, value, self.offsets[:, None], self.equidistant)

    def sums(self, value: Floats, weight: Floats, start: Ints) -> Complexes:
        """Weighted sums over runs of values of f, each from its start (runs + 1,) to the next: (N, runs)."""
        even, runs = self.equidistant, start.size - 1
        sums = np.zeros((self.nodes.size, runs), dtype=np.complex128)
        if even:
            nodes, parts = self.nodes[:even].view(np.float64).reshape(-1, 2), np.zeros((runs, 1, 2, even))
            offsets = np.tile(self.offsets[:even], (runs, 1))
            add_exponentials(value, weight[None], start, nodes, even, offsets, parts)
            sums[:even] = (parts[:, 0, 0] + 1j * parts[:, 0, 1]).T
        if even < self.nodes.size and value.size:
            terms = _exponentials(self.nodes[even:], value, self.offsets[even:, None]) * weight
            filled = start[:-1] < start[1:]
            sums[even:, filled] = np.add.reduceat(terms, start[:-1][filled], axis=1)
        return sums

    def fastest(self, value: Floats) -> Floats:
        """The exponentials that turn and grow fastest, as real functions, (n,) -> (m, n)."""
        if not self.nodes.size:
            return np.zeros((0, value.size))
        extremes = {
            int(pick(part)) for part in (self.nodes.real, self.nodes.imag) for pick in (np.argmin, np.argmax)
        }
        chosen = sorted(extremes)
        waves = np.exp(np.multiply.outer(self.nodes[chosen], value) - self.offsets[chosen, None])
        return np.concatenate([waves.real, waves.imag]) + _TINY


@dataclass(frozen=True, eq=False)
class WaveBundle:
    """Waves of several loadings of the same functions, one after the other: they share their quadrature."""

    waves: tuple[Waves, ...]

    @property
    def function(self) -> Function:
        return self.waves[0].function

    def __call__(self, x: Floats) -> Complexes:
        values = self.function(x)
        if len(self.waves) == 1 or x.size > _FEW_VALUES:
            return np.concatenate([waves.of(waves.loading @ values) for waves in self.waves])
        return self._groups.waves(np.stack([waves.loading @ values for waves in self.waves]))

    @cached_property
    def _groups(self) -> NodeGroups:
        groups = [NodeGroup(waves.nodes, waves.equidistant) for waves in self.waves]
        return NodeGroups(groups, np.concatenate([waves.offsets for waves in self.waves]))

    def integrate(self, density: Density) -> Complexes:
        breaks, constant, panels = texture(self.function)
        whole = self.function.integrate(density)  # raises where a lookup meets a density
        if constant:
            ends = np.concatenate([[-np.inf], breaks, [np.inf]])
            return np.asarray(self(ends[1:]) @ density.interval(ends[:-1], ends[1:]))
        if not any(waves.nodes.size for waves in self.waves):
            return np.zeros((0, whole.shape[1]), dtype=np.complex128)
        piece, x, weight = density.points(self.fastest, breaks, panels)
        return self.sums(x, weight, np.searchsorted(piece, np.arange(whole.shape[1] + 1)))

    def sums(self, x: Floats, weight: Floats, start: Ints) -> Complexes:
        values = self.function(x)
        return np.concatenate([waves.sums(waves.loading @ values, weight, start) for waves in self.waves])

    def fastest(self, x: Floats) -> Floats:
        values, waves = self.function(x), self.waves
        if len(values) == 1:
            # of one function the largest |z| times the loading is the fastest
            speeds = [np.abs(each.nodes).max(initial=0.0) * np.abs(each.loading).max() for each in waves]
            waves = (waves[int(np.argmax(speeds))],)
        return np.concatenate([each.fastest(each.loading @ values) for each in waves])


@dataclass(frozen=True, eq=False)
class PlaneWaves:
    """e^{level(x) - offset + z₁ a(x) + z₂ b(x)} at N nodes (z₁, z₂) of a grid, where a law is."""

    function: Function  # m functions
    loading: Floats  # (m, 3): level, a and b as sums of these
    exponents: tuple[Complexes, Complexes]  # z₁ and z₂, (K₁,) and (K₂,)
    first: Ints  # (N,), positions of each node's exponents
    second: Ints
    offset: float | Floats  # approximately the largest level; or one of each x

    def __call__(self, x: Floats) -> Complexes:
        along, across = self._factors(x, *self.exponents)
        return np.asarray(along[self.first] * across[self.second])

    def lines(self, x: Floats) -> tuple[Complexes, Complexes]:
        """Their factors along and across the grid, a line for each x: (n, K₁) and (n, K₂)."""
        along, across = self._factors(x, *self.exponents)
        return along.T, across.T

    def integrate(self, density: Density) -> Complexes:
        """Integrate against P measures -> (N, P): the grid is a product of two matrices."""
        breaks, constant, panels = texture(self.function)
        count = self.function.integrate(density).shape[1]  # raises where a lookup meets a density
        if constant:
            ends = np.concatenate([[-np.inf], breaks, [np.inf]])
            points, weights = [ends[1:]] * count, list(density.interval(ends[:-1], ends[1:]).T)
        else:
            piece, x, weight = density.points(self.fastest, breaks, panels)
            ends = np.searchsorted(piece, np.arange(1, count))
            points, weights = np.split(x, ends), np.split(weight, ends)
        sums = [self._sums(x, weight) for x, weight in zip(points, weights, strict=True)]
        return np.stack(sums, axis=1)

    def _sums(self, x: Floats, weight: Floats) -> Complexes:
        along, across = self._factors(x, *self.exponents)
        return np.asarray(((along * weight) @ across.T)[self.first, self.second])

    def _factors(self, x: Floats, first: Complexes, second: Complexes) -> tuple[Complexes, Complexes]:
        """The waves of a, with the level, and those of b, (K₁, n) and (K₂, n)."""
        level, a, b = self.loading.T @ self.function(x)
        along = np.exp(np.multiply.outer(first, a) + (level - self.offset))
        return along, np.exp(np.multiply.outer(second, b))

    def fastest(self, x: Floats) -> Floats:
        """The waves at the corners of the hexagons that nodes and powers fill, as real functions."""
        high, steep = self.exponents[0].imag.max(), self.exponents[0].real.max()
        first, second = np.array([1j * high, 1j * high, 0.0]), np.array([0.0, -1j * high, 1j * high])
        if steep:
            first = np.append(first, [steep, -steep, 0.0, 0.0, steep, -steep])
            second = np.append(second, [0.0, 0.0, steep, -steep, -steep, steep])
        along, across = self._factors(x, first, second)
        waves = along * across
        return np.concatenate([waves.real, waves.imag]) + _TINY


def _ranges(
    laws: Sequence[Marginal], addends: Sequence[_Addend], lines: Sequence[StraightLine | None]
) -> tuple[Floats, Floats]:
    """Least and largest values of columns' addends in the laws' support, a little widened: (F, K) each."""
    lower, upper = np.empty((2, len(addends), addends[0][1].shape[1] if addends else 0))
    # lines are largest at an end: those of thousands of columns at once
    straight = [(j, line) for j, line in enumerate(lines) if line and laws[j].cells.of_missing < 0]
    if straight:
        at = [j for j, _ in straight]
        constant, slope, center = (
            np.array(each) for each in zip(*(line for _, line in straight), strict=True)
        )
        ends = ends_of([laws[j] for j in at])[:, :, None]
        values = constant + slope * (ends - center[:, None])
        lower[at], upper[at] = values.min(axis=0), values.max(axis=0)
    for j in sorted({*range(len(addends))} - {j for j, _ in straight}):
        function, loading = addends[j]
        values = np.concatenate([loading.T @ function(x) for x in _support(laws[j], function)], axis=1)
        lower[j], upper[j] = values.min(axis=1), values.max(axis=1)
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise ModelError("the margin has no finite value somewhere under the background's law")
    # a curve may rise higher between two points
    slack = 0.01 * (upper - lower)
    return lower - slack, upper + slack


def _support(marginal: Marginal, function: Function) -> list[Floats]:
    breaks, constant, panels = texture(function)
    points = []
    for measure in marginal.measures:
        if not isinstance(measure, GaussianPieces):
            points.append(measure.value[measure.weight > 0])
        elif constant:
            ends = np.concatenate([[-np.inf], breaks, [np.inf]])
            points.append(ends[1:][(measure.interval(ends[:-1], ends[1:]) > 0).any(axis=1)])
        else:
            if not is_line(function):
                points.append(measure.points(function, breaks, panels)[1])
            points += [*(measure.anchor + measure.scale * side for side in measure.reach)]
    return points


# -- tables --------------------------------------------------------------------------------------------------


def product_rounding(factors: int) -> float:
    """Return about the relative rounding error of a product of a number of factors."""
    return float(np.finfo(np.float64).eps) * (factors + _ROUNDINGS)


@dataclass(frozen=True, eq=False)
class ColumnTerm:
    """The addend of one column in K margins."""

    place: int
    function: Function  # m functions
    loading: Floats  # (m, K)
    column: RangedColumn
    lower: Floats  # (K,), ranges of the sums
    upper: Floats
    line: StraightLine | None = None  # what it adds, if it is one
    # what was integrated, by the law and the exponentials: bandwidths change the weights of cells alone
    integrals: LRUCache[Any, tuple[Any, Floats]] | None = None

    @property
    def places(self) -> Ints:
        return np.array([self.place])

    @classmethod
    def of(cls, place: int, function: Function, loading: Floats, column: RangedColumn) -> ColumnTerm:
        return cls.of_all({place: (function, loading)}, {place: column})[0]

    @classmethod
    def of_all(
        cls, addends: Mapping[int, _Addend], columns: Mapping[int, RangedColumn] | Sequence[RangedColumn]
    ) -> list[ColumnTerm]:
        """The terms of functions and their loadings, by the places of their columns."""
        its = [columns[place] for place in addends]
        lines = [line_of(*addend) for addend in addends.values()]
        lower, upper = _ranges([column.marginal for column in its], [*addends.values()], lines)
        return [
            cls(place, function, loading, its[i], lower[i], upper[i], lines[i])
            for i, (place, (function, loading)) in enumerate(addends.items())
        ]

    def offsets(self, groups: Sequence[NodeGroup]) -> Floats:
        """The largest Re z f, for the nodes of all K groups."""
        ends = zip(groups, self.lower, self.upper, strict=True)
        largest = [np.maximum(g.nodes.real * low, g.nodes.real * high) for g, low, high in ends]
        return np.concatenate(largest)

    def waves(self, groups: Sequence[NodeGroup]) -> WaveBundle:
        """e^{zf - offset} of all K margins."""
        offsets, first, waves = self.offsets(groups), 0, []
        for (nodes, equidistant), loading in zip(groups, self.loading.T, strict=True):
            shift = offsets[first : first + nodes.size]
            waves.append(Waves(self.function, loading, nodes, shift, equidistant))
            first += nodes.size
        return WaveBundle(tuple(waves))

    def functionals(self, groups: Sequence[NodeGroup]) -> tuple[Complexes, Complexes, Floats]:
        """Mean and contrast of e^{zf - offset}, (V, N), and offsets (N,); a margin has a group of nodes."""
        column, integrals, waves = self.column, self.integrals, self.waves(groups)
        if integrals is None or not isinstance(column, IndicatorColumn) or not column.by_means_in_cells:
            return *self.tabulate(waves), self.offsets(groups)
        law = column.marginal
        nodes = tuple((group.nodes.tobytes(), group.equidistant) for group in groups)
        # the law is kept beside its integrals, so that no other one has its number
        key = self.place, id(law), self.loading.tobytes(), nodes
        _, means = integrals.get(key, lambda: (law, law.expect(waves)), lambda each: each[1].nbytes)
        return *checked_functionals(self.place, column, column.basis_of_cells(means)), self.offsets(groups)

    def tabulate(self, function: Function) -> tuple[Complexes, Complexes]:
        return finite_functionals(self.place, self.column, function)

    def tables(
        self, groups: Sequence[NodeGroup], derive: Callable[[Complexes, Complexes, Floats], T]
    ) -> ColumnTables[T]:
        """Return lookups of means (V, N), contrasts (V, 1, N) and offsets (N,), converted to a T."""
        means, contrasts, offsets = self.functionals(groups)
        return ColumnTables(self.place, offsets, derive(means, contrasts[:, None], offsets))


class ColumnTables(NamedTuple, Generic[T]):
    """Tables of one column: a pattern is one of its laws."""

    place: int
    offsets: Floats  # (N,) of the nodes
    patterns: T

    def at(self, index: Ints) -> tuple[Ints, T]:
        """The pattern of each row (n,), given the law of each column (n, d), and tables of patterns."""
        return index[:, self.place], self.patterns


class Numbers(NamedTuple):
    """One factor: means (P, 2N) and contrasts (P, g, 2N), real parts before imaginary ones."""

    means: Floats
    contrasts: Floats

    @property
    def nbytes(self) -> int:
        return self.means.nbytes + self.contrasts.nbytes

    @classmethod
    def of(cls, means: Complexes, contrasts: Complexes, offsets: Floats) -> Numbers:  # noqa: ARG003
        """Split (P, N) and (P, g, N) into parts; the weights contain the offsets."""
        return cls(in_parts(means), in_parts(contrasts))


def in_parts(numbers: Complexes) -> Floats:
    """Real parts before imaginary ones, (..., N) -> (..., 2N)."""
    return np.ascontiguousarray(np.concatenate([numbers.real, numbers.imag], axis=-1))


class Tables(Protocol):
    """Lookup of the numbers of one factor."""

    def at(self, index: Ints) -> tuple[Ints, Numbers]: ...


class Grid(NamedTuple):
    """Positions of nodes (N,) along and across a grid."""

    first: Ints
    second: Ints


class AtGrid(NamedTuple):
    """Numbers of F columns along and across a grid, which are multiplied at the nodes."""

    along: Floats  # (F, U, 2K), real parts before imaginary ones
    across: Floats  # (F, U, 2L)


class NodeProducts:
    """Re Σ_n W_n ∏_j mean_j(n), and its contrasts, for k outputs with weights W (k, N)."""

    def __init__(self, places: Sequence[Ints], tables: Sequence[Tables], weights: Complexes) -> None:
        # the positions of the columns of each factor, and its numbers
        self._places, self._tables = places, tables
        self._weights = in_parts(weights)

    @cached_property
    def kept(self) -> KeptProducts:
        """The same where columns keep a point's value; all tables are of single columns."""
        none = np.zeros(
            (0, 1 + max((int(places.max()) for places in self._places), default=0)), dtype=np.int64
        )
        return KeptProducts.of([table.at(none)[1].means for table in self._tables], self._weights)

    def expect(self, index: Ints) -> tuple[Floats, Floats]:
        n, outputs = len(index), len(self._weights)
        mean, contrast = np.zeros((n, outputs)), np.zeros((*index.shape, outputs))
        if not self._tables:
            return mean + self._weights[:, : self._weights.shape[1] // 2].sum(axis=1), contrast
        places = np.concatenate(self._places)
        for start in range(0, n, _ROWS):
            rows = slice(start, start + _ROWS)
            patterns, parts = zip(*(table.at(index[rows]) for table in self._tables), strict=True)
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


class KeptProducts(NamedTuple):
    """Re Σ_n W_n ∏_j (t g_j(n) + (1 - t) m_j(n)), and its contrasts, for k outputs with weights W."""

    means: Floats  # (laws of all columns, 2N), one column after the other, real parts before imaginary ones
    start: Ints  # (F,), the first law of each
    weights: Floats  # (k, 2N)

    @classmethod
    def of(cls, means: Sequence[Floats], weights: Floats) -> KeptProducts:
        """The products of columns with these means under each law, (V, 2N) each."""
        start = np.cumsum([0, *map(len, means)], dtype=np.int64)[:-1]
        return cls(np.concatenate([np.zeros((0, weights.shape[1])), *means]), start, weights)

    def expect(
        self,
        waves: Callable[[Ints], Sequence[Complexes] | AtGrid],
        laws: Ints,
        points: Ints,
        shares: Floats,
        grid: Grid | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the sums (n, k) and the contrasts (n, F, k) of columns that keep a point's value.

        Column j is t g_j + (1 - t) m_j with means m, and its contrast g_j - m_j, all over a scale of the row.
        ``waves`` gives g (U, N) of each column at some points; of the nodes of a ``grid`` both factors of
        each column. ``points`` (n,), in order, and ``laws`` (F, n) are each row's, and ``shares`` (F, n, 2)
        are t and 1 - t over the scales.
        """
        n, (outputs, nodes) = points.size, self.weights.shape
        mean, changes = np.zeros((n, outputs)), np.zeros((n, len(laws), outputs))
        if not self.start.size:
            return mean + self.weights[:, : nodes // 2].sum(axis=1), changes
        each = np.arange(nodes // 2)
        first, second = (each, each) if grid is None else grid
        held = nodes if grid is None else 2 * int(first.max() + second.max() + 2)
        starts = np.flatnonzero(np.diff(points, prepend=-1))
        distinct = points[starts]
        starts, step = np.append(starts, n), max(1, _NUMBERS // (len(laws) * held))
        for at in range(0, distinct.size, step):
            some, start = distinct[at : at + step], starts[at : at + step + 1]
            rows = slice(start[0], start[-1])
            # numpy rounds products of complex numbers otherwise where there is one in a line
            its = waves(some.repeat(2) if some.size == 1 and grid is None else some)
            if isinstance(its, AtGrid):
                along, across = its
            else:
                along, across = in_parts(np.stack([g[: some.size] for g in its])), np.zeros((0, 0, 0))
            added, changed = np.zeros((start[-1] - start[0], outputs)), np.zeros(changes[rows].shape)
            add_kept_products(
                self.means,
                along,
                across,
                np.ascontiguousarray(self.start[:, None] + laws[:, start[:-1]]),
                start - start[0],
                first,
                second,
                np.ascontiguousarray(shares[:, rows]),
                self.weights,
                added,
                changed,
                "",
            )
            mean[rows], changes[rows] = added, changed
        return mean, changes


def finite_functionals(place: int, column: Column, function: Function) -> tuple[Complexes, Complexes]:
    """Mean and contrast of N functions under every law, (V, N) each; raise if one is not finite there."""
    return checked_functionals(place, column, column.basis(function))


def checked_functionals(place: int, column: Column, basis: Any) -> tuple[Complexes, Complexes]:
    """Turn the basis of N functions into mean and contrast."""
    if not np.isfinite(basis).all():
        raise ModelError(
            f"the margin has no finite value everywhere in column {place}: it cannot take a missing or an "
            "extreme value that the background holds there; impute it in a Pipeline"
        )
    return column.mixed(basis)


class TabulatedExpectation(ProductExpectation, Generic[Store]):
    """Moments of links of sums under many designs, by tables of their columns."""

    error_bound = TOLERANCE  # designs with a larger bound of the quadrature are refused

    def __init__(self, form: Form) -> None:
        self._form = form
        self._tables: LRUCache[ProductFamily, Store] = LRUCache(_CACHED)
        self._cells: LRUCache[tuple[Any, ...], Store] = LRUCache(_CACHED)

    # about the seconds of a row of 20 columns, from tables that rows share; None without such tables
    _seconds_of_20: float | None = None

    @property
    def laws_at_once(self) -> int:  # type: ignore[override]
        # tables of the background's laws serve all rows
        return 1 << (12 if self._seconds_of_20 is None else 14)

    def account_seconds(self, family: ProductFamily) -> float:
        # measured: columns, nodes of the quadrature, and of t where all tables are made anew
        columns = len(family.marginals) / 20
        shared = self._seconds_of_20
        if shared is None:
            return float(0.02 * columns**3.5)
        return shared * columns**2 + (0.0 if self.shares_tables(family) else 0.05 * columns)

    def shares_tables(self, family: ProductFamily | None) -> bool:
        """Whether cells decide the designs, and are few."""
        return (
            family is not None and family.by_cell and self.holds(sum(m.cells.count for m in family.marginals))
        )

    @abstractmethod
    def _tabulate(self, columns: Sequence[RangedColumn]) -> Store:
        """Return tables of the laws of every column."""

    @abstractmethod
    def _moments(self, tables: Store, index: Ints, variance: Floats) -> Moments:
        """Return moments of n rows, given the law of each column and Var_w h, both (n, d)."""

    def at(self, rows: Rows) -> Moments:
        if rows.cells.shape[1] != self._form.size:
            name, size = type(self._form).__name__, self._form.size
            raise InputError(f"the design has {rows.cells.shape[1]} columns, the form ({name}) has {size}")
        family = rows.family
        if family is not None and self.shares_tables(family):
            return self._moments(self._shared(family), rows.cells, rows.features.variance)
        if isinstance(rows, KeptRows):
            return self._at_kept(rows)
        if isinstance(rows, CellRows):
            return self._moments(self._of_cells(rows), rows.index, rows.features.variance)
        if rows.family is None and len(rows) > 1:
            return self._moments(self._tabulate(rows.alone), rows.index, rows.features.variance)
        return self._apart(rows)

    def _of_cells(self, rows: CellRows) -> Store:
        """Tables of columns with any cell as the feature, which the rows of a family share."""
        return self._cells.get(tuple(rows.alone), lambda: self._tabulate(rows.alone))

    def _at_kept(self, rows: KeptRows) -> Moments:
        """Moments at rows whose values may be kept: by tables of the laws, else of all columns anew."""

        def by(tables: Store) -> Moments:
            return self._moments(tables, rows.index, rows.features.variance)

        try:
            return by(self._kept(rows))
        except ModelError:
            if len(rows) == len(rows.alone[0].t):
                if self._seconds_of_20 is None:
                    raise  # these tables were made
                return by(self._tabulate(rows.alone))
        # one row's fault does not change another's bits
        return concatenate_moments([self._at_kept(row) for row in rows.single])

    def _shared(self, family: ProductFamily) -> Store:
        """Tables that all rows of a family share."""
        return self._tables.get(family, lambda: self._tabulate(family.columns))

    def _kept(self, rows: KeptRows) -> Store:
        """Tables of rows whose values may be kept."""
        return self._tabulate(rows.alone)

    def _drawn(self, rows: KeptRows) -> Store:
        """Tables of the laws that these rows' columns have where they are not kept."""
        family = rows.source
        if family is not None and self.shares_tables(family):
            return self._shared(family)
        return self._tabulate([column.inner for column in rows.alone])

    def _apart(self, rows: Rows) -> Moments:
        """Moments at rows that share no tables: one by one, as the ranges of margins decide their nodes."""
        each = []
        for design in rows.designs:
            index = np.zeros((1, design.size), dtype=np.int64)
            variance = design.in_units().variance[None]
            each.append(self._moments(self._tabulate(design.coordinates), index, variance))
        return concatenate_moments(each)
