"""Functions of one coordinate, which models consist of and laws integrate.

LIME's tables meet few kinds. A tree tests *intervals* and *members* of category sets, an RBF kernel
multiplies *Gaussian bumps*, a linear model adds *identities* and a polynomial *powers*, a generalised
additive model adds *steps*, *lookups* or whatever *shape* it has learnt; preprocessing makes *smooth
functions* of any of them. A ``Function`` is a family of m functions of the same kind. It can be evaluated,
and integrated against a density, in closed form where one exists and else by adaptive quadrature.

This file lies below designs and models because both use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from limes._arrays import Bools, Bytes, Floats, Ints, finite_array, times
from limes._tuples import Tuples
from limes.exceptions import InputError, ModelError

# -LARGEST is below every other finite number; -inf is treated as it
LARGEST = float(np.finfo(np.float64).max)


class Density(Protocol):
    """A family of P (possibly signed) measures with densities, and their integrals of common functions."""

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        """∫ 1[lower < x <= upper], bounds (m,) -> (m, P)."""

    def bump(self, center: Floats, precision: float) -> Floats:
        """∫ exp(-precision (x - center)² / 2), centers (m,) -> (m, P)."""

    def decay(self, center: Floats, rate: float) -> Floats:
        """∫ exp(-rate |x - center|), centers (m,) -> (m, P)."""

    def identity(self, center: float = 0.0) -> Floats:
        """∫ (x - center), (1, P)."""

    def square(self, center: float = 0.0) -> Floats:
        """∫ (x - center)², (1, P)."""

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        """∫ shape(x), smooth between the breaks, for a callable (n,) -> (n,) or (m, n): (1, P) or (m, P)."""

    def points(
        self, shape: Callable[[Floats], Floats], breaks: Floats, panels: int
    ) -> tuple[Ints, Floats, Floats]:
        """Measure, value and weight of points, (K,) each by measure: for functions as smooth as shape."""


class Function(Protocol):
    """m functions of one coordinate; those of ``limes._expectations.tabulated`` have complex values."""

    def __call__(self, x: Floats) -> Any: ...

    def integrate(self, density: Density) -> Any: ...


@dataclass(frozen=True, eq=False)
class Interval:
    """1[lower < x <= upper], or lower <= x if lower is -inf, and ``missing`` where x is NaN; arrays (m,)."""

    lower: Floats
    upper: Floats
    missing: Bools

    def __call__(self, x: Floats) -> Floats:
        x = np.maximum(x, -LARGEST)
        inside = (self.lower[:, None] < x) & (x <= self.upper[:, None])
        return np.where(np.isnan(x), self.missing[:, None], inside).astype(np.float64)

    def integrate(self, density: Density) -> Floats:
        return density.interval(self.lower, self.upper)


@dataclass(frozen=True, eq=False)
class Members:
    """1[x is one of the allowed categories], ``other`` at any other value, ``missing`` where x is NaN."""

    allowed: Bools  # (m, G), of groups of category codes that no function tells apart
    missing: Bools  # (m,)
    other: Bools  # (m,)
    group: Ints  # (L,), that of each category code 0 .. L - 1

    @property
    def table(self) -> Bools:
        """Values (m, G + 2) of all groups, of other values and of a missing one."""
        return np.column_stack([self.allowed, self.other, self.missing])

    def places(self, x: Floats) -> Ints:
        """The column of each value in the table."""
        codes, groups = self.group.size, self.allowed.shape[1]
        is_code = (x >= 0) & (x < codes) & (x == np.floor(x))
        beyond = np.where(np.isnan(x), groups + 1, groups)
        if not codes:
            return np.asarray(beyond)
        return np.asarray(np.where(is_code, self.group[np.where(is_code, x, 0).astype(np.int64)], beyond))

    def __call__(self, x: Floats) -> Floats:
        return self.table[:, self.places(x)].astype(np.float64)

    def integrate(self, density: Density) -> Floats:  # noqa: ARG002 - raises
        raise InputError(
            "the model splits a column by its categories, but the background takes it as a number: "
            "name it in categorical="
        )


@dataclass(frozen=True, eq=False)
class Bump:
    """exp(-precision (x - center)² / 2); centers (m,), one precision = 1 / scale²."""

    center: Floats
    precision: float

    def __call__(self, x: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * self.precision * (x - self.center[:, None]) ** 2))

    def integrate(self, density: Density) -> Floats:
        return density.bump(self.center, self.precision)


@dataclass(frozen=True, eq=False)
class Decay:
    """exp(-rate |x - center|); centers (m,), one rate > 0."""

    center: Floats
    rate: float

    def __call__(self, x: Floats) -> Floats:
        return np.asarray(np.exp(-self.rate * np.abs(x - self.center[:, None])))

    def integrate(self, density: Density) -> Floats:
        return density.decay(self.center, self.rate)


@dataclass(frozen=True, eq=False)
class Identity:
    """x itself (m = 1)."""

    def __call__(self, x: Floats) -> Floats:
        return x[None, :]

    def integrate(self, density: Density) -> Floats:
        return density.identity()


@dataclass(frozen=True, eq=False)
class Power:
    """x ** exponent; exponents (m,) among 0, 1 and 2."""

    exponent: Ints

    def __call__(self, x: Floats) -> Floats:
        return np.stack([np.ones_like(x), x, x * x])[self.exponent]

    def integrate(self, density: Density) -> Floats:
        line = np.array([np.inf])
        moments = [density.interval(-line, line), density.identity(), density.square()]
        return np.concatenate(moments)[self.exponent]


@dataclass(frozen=True, eq=False)
class Step:
    """values[:, b] where cuts[b - 1] < x <= cuts[b], and ``missing`` where x is NaN."""

    cuts: Floats  # (c,) ascending
    values: Floats  # (m, c + 1)
    missing: Floats  # (m,)

    def __call__(self, x: Floats) -> Floats:
        values = self.values[:, np.searchsorted(self.cuts, x, side="left")]
        return np.where(np.isnan(x), self.missing[:, None], values)

    @property
    def table(self) -> Floats:
        """All values, those of a missing one last, (m, c + 2)."""
        return np.column_stack([self.values, self.missing])

    def select(self, at: Ints) -> Step:
        """Some of the m functions."""
        return Step(self.cuts, self.values[at], self.missing[at])

    def integrate(self, density: Density) -> Floats:
        ends = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        # row by row: integrals of a piece are the same to the last bit whatever other pieces there are
        return times(density.interval(ends[:-1], ends[1:]).T, self.values.T).T


@dataclass(frozen=True, eq=False)
class Lookup:
    """values[:, i] where x = keys[i], ``missing`` where x is NaN, ``other`` at any other value."""

    keys: Floats  # (L,) ascending: category codes or the user's own numbers
    values: Floats  # (m, L)
    missing: Floats  # (m,)
    other: Floats  # (m,)

    def __call__(self, x: Floats) -> Floats:
        return np.asarray(self.table[:, self.places(x)])

    @cached_property
    def table(self) -> Floats:
        """The values of all keys, of any other value, and of a missing one, (m, L + 2)."""
        return np.column_stack([self.values, self.other, self.missing])

    def select(self, at: Ints) -> Lookup:
        """Some of the m functions."""
        return Lookup(self.keys, self.values[at], self.missing[at], self.other[at])

    @cached_property
    def _ends(self) -> Floats:
        return np.append(self.keys, np.nan)

    def places(self, x: Floats) -> Ints:
        """Columns of the table that values (n,) have."""
        place = np.searchsorted(self.keys, x)
        place = np.where(self._ends[place] == x, place, self.keys.size)
        return np.where(np.isnan(x), self.keys.size + 1, place)

    def integrate(self, density: Density) -> Floats:  # noqa: ARG002 - raises
        raise InputError(
            "the model looks up the categories of a column, but the background takes it as a number: "
            "name it in categorical="
        )


@dataclass(frozen=True, eq=False)
class Shape:
    """A user's callable (n,) -> (n,), smooth between its breaks (m = 1)."""

    shape: Callable[[Floats], Floats]
    breaks: tuple[float, ...] = ()

    def __call__(self, x: Floats) -> Floats:
        values = np.asarray(self.shape(x), dtype=np.float64)
        if values.shape != x.shape:
            raise InputError(
                f"a one-dimensional function was called with an array of shape {x.shape} and answered with "
                f"shape {values.shape}; it must map (n,) to (n,), for instance with numpy functions"
            )
        return values[None, :]

    def integrate(self, density: Density) -> Floats:
        return density.quadrature(lambda x: self(x)[0], self.breaks)


@dataclass(frozen=True, eq=False)
class SmoothFunctions:
    """m functions that are smooth between their breaks, integrated by quadrature."""

    shape: Callable[[Floats], Floats]  # (n,) -> (m, n); NaN or infinite where the model has no answer
    breaks: tuple[float, ...] = ()  # where a function may jump or bend
    name: str = "a function of one column"  # for error messages

    def __call__(self, x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(self.shape(x), dtype=np.float64)

    def integrate(self, density: Density) -> Floats:
        try:
            return density.quadrature(self._checked, self.breaks)
        except InputError as error:
            raise ModelError(f"{self.name}: {error}; use method='sampled'") from error

    def _checked(self, x: Floats) -> Floats:
        values = self(x)
        wrong = ~np.isfinite(values).all(axis=0)
        if wrong.any():
            raise ModelError(
                f"{self.name}: the model has no finite answer at {x[wrong][0]:.6g}, where the background's "
                "law reaches; use law='uniform' or law='empirical', which stay within the background's "
                "values, or bins= where the model has finite answers"
            )
        return values


@dataclass(frozen=True, eq=False)
class Polynomial:
    """c₀ + c₁ (x - center) + c₂ (x - center)², and ``missing`` where x is NaN; c (m, 3), missing (m,)."""

    coefficients: Floats
    center: float
    missing: Floats

    def __call__(self, x: Floats) -> Floats:
        t, c = x - self.center, self.coefficients
        values = c[:, :1] + c[:, 1:2] * t
        if not self.is_line:  # squares that nothing needs would overflow
            values = values + c[:, 2:] * (t * t)
        is_missing = np.isnan(x)
        return np.where(is_missing, self.missing[:, None], values) if is_missing.any() else values

    @cached_property
    def is_line(self) -> bool:
        """Whether no function is curved."""
        return not self.coefficients[:, 2].any()

    def integrate(self, density: Density) -> Floats:
        line = np.array([np.inf])
        # moments about the center: those about 0 would cancel the digits of columns far from 0
        mass, first = density.interval(-line, line), density.identity(self.center)
        integral = self.coefficients[:, :1] * mass + self.coefficients[:, 1:2] * first
        if not self.is_line:
            integral = integral + self.coefficients[:, 2:] * density.square(self.center)
        return integral


@dataclass(frozen=True, eq=False)
class Filled:
    """factor · function(x), and ``missing`` where x is NaN; factor and missing (m,)."""

    function: Function
    factor: Floats
    missing: Floats

    def __call__(self, x: Floats) -> Floats:
        is_missing = np.isnan(x)
        values = self.function(np.where(is_missing, 0.0, x)) * self.factor[:, None]
        return np.where(is_missing, self.missing[:, None], values)

    def integrate(self, density: Density) -> Floats:
        return np.asarray(self.function.integrate(density) * self.factor[:, None])


@dataclass(frozen=True, eq=False)
class Stacked:
    """The functions of several families, one after the other."""

    families: tuple[Function, ...]

    def __call__(self, x: Floats) -> Floats:
        return np.concatenate([family(x) for family in self.families])

    def integrate(self, density: Density) -> Floats:
        return np.concatenate([family.integrate(density) for family in self.families])


@dataclass(frozen=True, eq=False)
class OfTuples:
    """Functions of the codes of a group's tuples."""

    tuples: Tuples

    def __call__(self, x: Floats) -> Floats:
        raise NotImplementedError

    def integrate(self, density: Density) -> Floats:  # noqa: ARG002 - raises
        raise InputError("a group of columns has no density: it has the tuples of the background")


@dataclass(frozen=True, eq=False)
class ProductOfMembers(OfTuples):
    """∏_j functions[j]_i(x_j) over the columns j of a group, for each i of m; 1 where a function is None."""

    functions: tuple[Function | None, ...]

    def __call__(self, x: Floats) -> Any:
        product: Any = 1.0
        for function, column in zip(self.functions, self.tuples.decode(x).T, strict=True):
            if function is not None:
                product = product * function(column)
        return product


# Bytes of a table of the sets that hold a value of a column, at most, and of flags that are packed at once
_SETS, _PACKED = 1 << 26, 1 << 24


@dataclass(frozen=True, eq=False)
class MemberSets:
    """Which of m sets hold a value of one column: as bits, eight sets a byte."""

    sets: Interval | Members

    def bits(self, x: Floats) -> Bytes:
        """(n, ⌈m / 8⌉) at values (n,)."""
        if self._table is None:
            return _packed(self.sets, x)
        if isinstance(self.sets, Members):
            return np.asarray(self._table[self.sets.places(x)])
        cuts = self._points[:-2]
        place = np.searchsorted(cuts, np.maximum(x, -LARGEST), side="left")
        return np.asarray(self._table[np.where(np.isnan(x), cuts.size + 1, place)])

    @cached_property
    def _points(self) -> Floats:
        """Values between which no set begins or ends: the last are beyond all others, and missing."""
        return landmarks(self.sets)

    @cached_property
    def _table(self) -> Bytes | None:
        """The bits at all points, or categories; None where they are too many."""
        if isinstance(self.sets, Members):
            return np.packbits(self.sets.table, axis=0).T.copy()
        if self._points.size * self.sets.upper.size > 8 * _SETS:
            return None
        return _packed(self.sets, self._points)


def _packed(function: Function, x: Floats) -> Bytes:
    step = max(1, _PACKED // max(1, len(function(x[:1]))))
    blocks = [x[start : start + step] for start in range(0, max(x.size, 1), step)]
    return np.concatenate([np.packbits(function(some) > 0.0, axis=0).T for some in blocks])


@dataclass(frozen=True, eq=False)
class BoxesOfTuples(OfTuples):
    """1[every column of a group is in its set], for each of m boxes; None is no restriction."""

    members: tuple[MemberSets | None, ...]
    count: int  # m

    def __call__(self, x: Floats) -> Floats:
        return np.ascontiguousarray(self.flags(x).T, dtype=np.float64)

    def flags(self, x: Floats) -> Bools:
        """(n, m) at codes (n,)."""
        table = self._of_background
        if table is None or not x.size or x.max() >= self.tuples.size:
            return np.unpackbits(self._bits(x), axis=1, count=self.count).view(np.bool_)
        return np.unpackbits(table[x.astype(np.int64)], axis=1, count=self.count).view(np.bool_)

    @cached_property
    def _of_background(self) -> Bytes | None:
        """The bits of all tuples of the background; None where they are too many."""
        if self.tuples.size * self.count > 8 * _SETS:
            return None
        return self._bits(np.arange(float(self.tuples.size)))

    def _bits(self, x: Floats) -> Bytes:
        bits: Any = None
        for member, column in zip(self.members, self.tuples.decode(x).T, strict=True):
            if member is not None:
                its = member.bits(column)
                bits = its if bits is None else bits & its
        return np.asarray(bits)

    def totals(self, codes: Ints, cell: Ints, cells: int) -> Floats:
        """Number of background rows with some codes (n,), by the cell of each code: (cells, m)."""
        sums, counts = np.zeros((cells, self.count)), self.tuples.counts[codes]
        step = max(1, _PACKED // (8 * self.count))
        for start in range(0, codes.size, step):
            some = slice(start, start + step)
            each, place = np.unique(cell[some], return_inverse=True)
            share = np.zeros((each.size, place.size))
            share[place.reshape(-1), np.arange(place.size)] = counts[some]
            sums[each] += share @ self.flags(codes[some].astype(np.float64)).astype(np.float64)
        return sums

    def mean(self, codes: Floats, weight: Floats) -> Floats:
        """Means over codes (n,) with these weights, (m,)."""
        step = max(1, _PACKED // (8 * self.count))
        blocks = [slice(start, start + step) for start in range(0, codes.size, step)]
        return np.asarray(sum(weight[some] @ self.flags(codes[some]).astype(np.float64) for some in blocks))

    @cached_property
    def of_background(self) -> Floats:
        """Number of background rows in each box, (m,)."""
        codes = np.arange(self.tuples.size)
        return np.asarray(self.totals(codes, 0 * codes, 1)[0])


@dataclass(frozen=True, eq=False)
class FunctionsOfMembers(OfTuples):
    """The functions of each column of a group, one column's after the other's."""

    functions: tuple[Function | None, ...]

    def __call__(self, x: Floats) -> Any:
        pairs = zip(self.functions, self.tuples.decode(x).T, strict=True)
        return np.concatenate([function(column) for function, column in pairs if function is not None])


@dataclass(frozen=True, eq=False)
class ShapeOfTuples(OfTuples):
    """Any functions of codes, (n,) -> (m, n)."""

    shape: Callable[[Floats], Floats]

    def __call__(self, x: Floats) -> Floats:
        return self.shape(x)


@runtime_checkable
class Composed(Protocol):
    """Functions of functions of one coordinate: they jump and bend where these do."""

    @property
    def function(self) -> Function: ...

    def fastest(self, x: Floats) -> Floats:
        """Some of the functions, or of their like, that no other one is harder to resolve than, (m, n)."""


@runtime_checkable
class Summed(Protocol):
    """Functions that add up their own values, which would take much memory."""

    def sums(self, x: Floats, weight: Floats, start: Ints) -> Floats:
        """Weighted sums over runs of values (n,), each from its start (runs + 1,) to the next: (m, runs)."""


class Smoothness(NamedTuple):
    """Points where functions may jump or bend, ascending; whether they are constant between them."""

    breaks: Floats
    constant: bool
    panels: int = 4  # on each side of a density's peak, with which a quadrature begins


def parts(function: Function) -> Iterator[Function]:
    """Yield the families that a function is made of, without factors."""
    match function:
        case Filled():
            yield from parts(function.function)
        case Stacked():
            for family in function.families:
                yield from parts(family)
        case _:
            yield function


def texture(function: Function) -> Smoothness:
    """The texture of a family of functions; lookups are constant, and have no breaks."""
    match function:
        case Interval():
            ends = np.concatenate([function.lower, function.upper])
            return Smoothness(np.unique(ends[np.isfinite(ends)]), constant=True)
        case Step():
            return Smoothness(function.cuts, constant=True)
        case Members() | Lookup() | OfTuples():
            return Smoothness(np.zeros(0), constant=True)
        case Bump() | Decay():
            return Smoothness(np.unique(function.center), constant=False)
        case Filled():
            return texture(function.function)
        case Stacked():
            breaks, constant, panels = zip(*map(texture, function.families), strict=True)
            return Smoothness(np.unique(np.concatenate(breaks)), all(constant), max(panels))
        case Identity() | Power() | Polynomial():  # before protocols, which take longer to recognise
            return Smoothness(np.zeros(0), constant=False, panels=1)
        case Shape() | SmoothFunctions():
            return Smoothness(np.unique(np.asarray(function.breaks, dtype=np.float64)), constant=False)
        case Composed():
            return texture(function.function)
    return Smoothness(np.zeros(0), constant=False)


def landmarks(function: Function) -> Floats:
    """Points at which functions that are constant between breaks take all of their values."""
    match function:
        case Lookup():
            return np.append(function.keys, [function.keys.max(initial=0.0) + 1.0, np.nan])
        case Members():
            return np.append(np.arange(float(function.allowed.shape[1])), [-1.0, np.nan])
        case OfTuples():
            return np.arange(float(function.tuples.size))
        case Filled() | Stacked():
            return np.concatenate([landmarks(part) for part in parts(function)])
    return np.append(texture(function).breaks, [np.inf, np.nan])


def is_line(function: Function) -> bool:
    """Whether functions are lines where x is not missing."""
    if isinstance(function, Polynomial):
        return function.is_line
    return isinstance(function, Identity)


class StraightLine(NamedTuple):
    """constant + slope (x - center) in K margins, (K,) each."""

    constant: Floats
    slope: Floats
    center: float

    def at(self, x: Floats) -> Floats:
        """Values at x (n,), (K, n)."""
        return np.asarray(self.constant[:, None] + self.slope[:, None] * (x - self.center))


def line_of(function: Function, loading: Floats) -> StraightLine | None:
    """The line of loading (m, K) times functions where x is not missing; None where there is no line."""
    if isinstance(function, Identity):
        return StraightLine(np.zeros(loading.shape[1]), loading[0], 0.0)
    if isinstance(function, Polynomial) and function.is_line:
        constant, slope = function.coefficients[:, :2].T @ loading
        return StraightLine(constant, slope, function.center)
    return None


def by_category(function: Function) -> bool:
    """Whether functions look up categories: no two values of the column need have one value of theirs."""
    return any(isinstance(part, Members | Lookup | OfTuples) for part in parts(function))


def as_function(candidate: Callable[[Floats], Floats] | Function, breaks: Sequence[float]) -> Function:
    """Wrap a plain callable; return one that has ``integrate`` unchanged."""
    if hasattr(candidate, "integrate"):
        return candidate  # type: ignore[return-value]  # it has both methods of the protocol
    if not callable(candidate):
        raise InputError(f"expected a callable of one array, got {type(candidate).__name__}")
    return Shape(candidate, tuple(finite_array("breaks", breaks, 1).tolist()))
