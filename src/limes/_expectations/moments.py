"""Moments E_w f and Γ of a model with standard errors, all that a surrogate is made of; exact expectations.

An exact expectation under product designs computes the moments at n rows, by the quickest way that their laws
allow: under bin weights all rows share the laws of their columns, so that tables of these are made once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects, aligned, stacked_rows
from limes._functions import Filled, Function, Shape, SmoothFunctions, Stacked
from limes._threads import Progress
from limes.designs._marginals import Marginal, TupleCells
from limes.designs._product import FeatureTable, ProductDesign, ProductFamily, Rows, rows_at_once
from limes.exceptions import InputError, ModelError

T = TypeVar("T")

# Size of a cache of moments, in bytes, and of a dictionary's entry beside its key
_CACHE_BYTES = 128 << 20
_ENTRY_BYTES = 150
# Rows whose laws are shared that are explained between two steps of a progress bar
_ROWS_BY_CELL = 4096
# Errors by which an expectation refuses rows
REFUSED = (InputError, ModelError)


class _Arrays:
    """A dataclass of arrays whose first axis, if there are several designs, is the design."""

    def take(self, rows: Ints | int) -> Self:
        def picked(value: Any) -> Any:
            if value is None:
                return None
            return value[rows, ...] if isinstance(value, np.ndarray) else value.take(rows)

        names = (f.name for f in fields(self))  # type: ignore[arg-type]
        return type(self)(**{name: picked(getattr(self, name)) for name in names})

    @property
    def nbytes(self) -> int:
        values = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return sum(value.nbytes for value in values if value is not None)


@dataclass(frozen=True, eq=False)
class SampleStatistics(_Arrays):
    """Statistics of a sample beyond its moments."""

    surrogate_errors: Floats  # standard errors of the surrogate at the instance, () or (k,)
    fidelity_errors: Floats  # of R², () or (k,)
    share_errors: Floats  # of the features' shares of it, (d,) or (d, k)
    excess: Floats  # the largest error of a coefficient in units of the tolerance, or the default accuracy
    control: Objects  # name of the control variate
    noise: Floats  # what errors of the coefficients add to β_j Γ_j in expectation, (d,) or (d, k)
    unlike: Ints  # number of rows whose answer differs from the most frequent one, () or (k,)
    # effective number of independent rows behind a coefficient's error, the median over features, () or (k,);
    # infinite where the residuals are 0
    effective_clusters: Floats
    effective: Floats  # effective number of rows that count for the explained one, (Σ w)² / Σ w²
    collinear: Bools  # (d,) features that change together: their coefficients are not determined
    answers: Objects  # () of one array: the model's answers (m, ...), in the order of their draws
    beside: Objects  # the same of answers to states that were not drawn

    @classmethod
    def of_exact(cls, moments: Moments) -> SampleStatistics:
        """Return what stands beside n exact moments among sampled ones: no errors, and no control."""
        n, each, columns = len(moments.calls), moments.mean.shape, moments.gamma.shape
        return cls(
            surrogate_errors=np.zeros(each),
            fidelity_errors=np.zeros(each),
            share_errors=np.full(columns, np.nan),
            excess=np.zeros(n),
            control=np.full(n, "", dtype="U16"),
            noise=np.zeros(columns),
            unlike=np.full(each, np.iinfo(np.int64).max),
            effective_clusters=np.full(each, np.inf),
            effective=np.full(n, np.inf),
            collinear=np.zeros(columns[:2], dtype=np.bool_),
            answers=np.array([boxed(np.empty(0))] * n, dtype=object),
            beside=np.array([boxed(np.empty(0))] * n, dtype=object),
        )


@dataclass(frozen=True, eq=False)
class Moments(_Arrays):
    """Expectations of f under w; a last axis for k outputs, a first one for n designs."""

    mean: Floats  # E_w f, () or (k,)
    gamma: Floats  # centred Γ_j = Cov_w(h_j, f), (d,) or (d, k)
    # standard errors of β = Σ⁻¹Γ, 0 where exact; those of Γ would not be enough: its entries are correlated
    coef_errors: Floats
    variance: Floats  # Var_w f, () or (k,); NaN where it was not computed
    # number of rows that the model was called with for this row alone
    calls: Ints = field(default_factory=lambda: np.zeros((), dtype=np.int64))
    # whether errors are within the tolerance, or the default accuracy, by answers that differ
    converged: Bools = field(default_factory=lambda: np.ones((), dtype=np.bool_))
    # whether sampling ended early, as the model failed or the user stopped it
    cut_short: Bools = field(default_factory=lambda: np.zeros((), dtype=np.bool_))
    sampled: SampleStatistics | None = None  # None where exact
    # number of rows of the pool of answers that this row shares with others
    shared: Ints = field(default_factory=lambda: np.zeros((), dtype=np.int64))
    # as of the sample, () or (k,), where all rows of a design were enumerated; else None
    unlike: Ints | None = None
    answers: Objects | None = None  # () of one array, the answers (m, ...) to these rows; else None

    @classmethod
    def exact(cls, mean: Floats, gamma: Floats, *, designs: tuple[int, ...] = ()) -> Moments:
        return cls(
            mean=mean,
            gamma=gamma,
            coef_errors=np.zeros_like(gamma),
            variance=np.full(mean.shape, np.nan),
            calls=np.zeros(designs, dtype=np.int64),
            converged=np.ones(designs, dtype=np.bool_),
            cut_short=np.zeros(designs, dtype=np.bool_),
            shared=np.zeros(designs, dtype=np.int64),
        )


def stack_moments(moments: Sequence[Moments]) -> Moments:
    stacked: Moments = _merged(moments, stacked_rows)
    return stacked


def concatenate_moments(moments: Sequence[Moments]) -> Moments:
    if len(moments) == 1:
        return moments[0]
    concatenated: Moments = _merged(moments, np.concatenate)
    return concatenated


def _merged(parts: Sequence[Any], merge: Callable[[list[Any]], Any]) -> Any:
    def merged_field(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], np.ndarray | np.generic):
            return merge(values)
        return None if values[0] is None else _merged(values, merge)

    return type(parts[0])(**{f.name: merged_field(f.name) for f in fields(parts[0])})


def with_complement(moments: Moments) -> Moments:
    """Moments of 1 - f and f, from those of f, whose arrays have an axis of one output."""
    sampled = moments.sampled

    def twice(values: Any) -> Any:
        return np.concatenate([values, values], axis=-1)

    if sampled is not None:
        names = (
            "surrogate_errors",
            "fidelity_errors",
            "share_errors",
            "noise",
            "unlike",
            "effective_clusters",
        )
        sampled = replace(sampled, **{name: twice(getattr(sampled, name)) for name in names})
    return replace(
        moments,
        mean=np.concatenate([1.0 - moments.mean, moments.mean], axis=-1),
        gamma=np.concatenate([-moments.gamma, moments.gamma], axis=-1),
        coef_errors=twice(moments.coef_errors),
        variance=twice(moments.variance),
        sampled=sampled,
    )


class MomentCache:
    """Exact moments by pattern of cells; their bits must not depend on the patterns computed with them."""

    def __init__(self) -> None:
        # replaced as a whole: threads may compute a pattern twice, but never see a partial update
        self._entries: tuple[Mapping[bytes, int], Moments | None] = ({}, None)

    def get(self, patterns: Ints, compute: Callable[[Ints], Moments]) -> Moments:
        """Moments of patterns (n, d), n >= 1; ``compute`` those at the positions that are not cached."""
        positions, cached = self._entries
        keys = [pattern.tobytes() for pattern in patterns]
        places = np.array([positions.get(key, -1) for key in keys])
        new = np.flatnonzero(places < 0)
        if cached is not None and not new.size:
            return cached.take(places)
        computed = compute(new)
        self._add([keys[i] for i in new.tolist()], computed)
        if cached is None:
            return computed
        hits = np.flatnonzero(places >= 0)
        order = np.argsort(np.concatenate([hits, new]))
        return concatenate_moments([cached.take(places[hits]), computed]).take(order)

    def _add(self, keys: Sequence[bytes], computed: Moments) -> None:
        """Cache the moments of new patterns, unless all together would take too many bytes."""
        positions, cached = self._entries
        size = computed.nbytes + (0 if cached is None else cached.nbytes)
        size += (len(positions) + len(keys)) * (len(keys[0]) + _ENTRY_BYTES)
        if size > _CACHE_BYTES:
            return
        moments = computed if cached is None else concatenate_moments([cached, computed])
        first = len(positions)
        self._entries = {**positions, **{key: first + n for n, key in enumerate(keys)}}, moments


# The answer of an expectation about n rows, block by block: positions (m,) of finished rows, their features,
# and the model's moments. A block is one design (d,) where these are no table
RowBlocks: TypeAlias = Iterator[tuple[Ints, Any, Moments]]


class CutShort(Exception):  # noqa: N818 - caught by explainers, never seen by users
    """Explaining stopped early, for the reason in ``__cause__``; carries the rows that can be explained."""

    # positions (m,), and their surrogates, None if m = 0
    def __init__(self, rows: Ints | None = None, fitted: Any = None) -> None:
        super().__init__()
        self.rows, self.fitted = np.empty(0, dtype=np.int64) if rows is None else rows, fitted


def finished_rows(
    features: FeatureTable, results: Sequence[Moments | None], error: BaseException | None
) -> RowBlocks:
    """Yield the moments of rows, None of those that are not finished; then raise, if there is an error."""
    finished = {i: moments for i, moments in enumerate(results) if moments is not None}
    if finished:
        rows = np.array([*finished], dtype=np.int64)
        yield rows, features.select(rows), stack_moments([*finished.values()])
    if error is not None:
        raise CutShort from error


class ExactMoments(Protocol):
    """An exact expectation: moments of one model under any design of one kind."""

    @property
    def method(self) -> Literal["exact"]: ...

    def moments(self, design: Any, row: Floats | None = None) -> Moments:
        """E_w f and Γ under the design."""
        ...


def boxed(array: Floats) -> Objects:
    """Return an array () that holds an array, so that arrays of different lengths can be stacked."""
    box = np.empty((), dtype=object)
    box[()] = array
    return box


# -- exact expectations --------------------------------------------------------------------------------------


class ProductExpectation(ABC):
    """Moments of one form under product designs."""

    method: Literal["exact"] = "exact"
    # bound of the error of every mean, relative to itself; 0 of closed forms
    error_bound: float = 0.0
    # whether laws of many combinations of values have no exact expectation
    needs_densities: bool = False
    # functions of each column, where rows with separate laws are integrated together
    functions: Sequence[Function | None] | None = None

    @abstractmethod
    def at(self, rows: Rows) -> Moments:
        """E_w f and Cov_w(h, f) for features in units, at n rows."""

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        moments = self.at(design.rows).take(0)
        return replace(moments, gamma=moments.gamma * aligned(design.undivided, moments.gamma))

    def shares_tables(self, family: ProductFamily | None) -> bool:
        """Whether all rows of the family are computed from tables of its cells, made once."""
        return family is not None and family.by_cell

    def holds(self, laws: int) -> bool:  # noqa: ARG002 - without tables none is too large
        """Whether tables of this number of laws, of all columns together, are small enough."""
        return True

    # laws of columns that keep a row's value, nodes t times columns, that are tabulated together
    laws_at_once = 1 << 12

    def account_seconds(self, family: ProductFamily) -> float:
        """About the seconds that contributions at a row take: next to none where rows share their laws."""
        return 0.0 if family.by_cell else 1e-3 * len(family.marginals)

    def rows_at_once(self, family: ProductFamily) -> int:
        """Return the number of rows that `at` takes together."""
        if self.shares_tables(family):
            return _ROWS_BY_CELL
        if self.functions is None:
            return 1
        return rows_at_once(self.integrals(family))

    def integrals(self, family: ProductFamily) -> int:
        """Return the number of integrals of a row: functions times pieces of laws, times parts of both."""
        pairs = zip(self.functions or (), family.marginals, strict=True)
        return max(1, sum(_pieces(law) * _integrals(f) for f, law in pairs if f is not None))

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> RowBlocks:
        """Features and moments at n rows, computed once for each design; raises if a row is refused."""
        del predictions, workers  # nothing is asked, and all cores are used
        for at, some in rows.parts:
            distinct, place = some.distinct
            with progress(len(distinct)) as on_progress:
                features, moments = explain_rows(self, distinct, on_progress)
            if len(place) > 1 and some.by_cell:
                features, moments = features.select(place), moments.take(place)
            yield at, features, moments


class CombinedExpectation(ProductExpectation):
    """Moments of intercept + Σ_i weights[i] · part_i: expectations are linear in f."""

    def __init__(self, parts: Sequence[Any], weights: Floats, intercept: Floats) -> None:
        self.parts, self.weights, self.intercept = parts, weights, intercept
        self.error_bound = max(getattr(part, "error_bound", 0.0) for part in parts)
        self.needs_densities = any(getattr(part, "needs_densities", False) for part in parts)
        each = [getattr(part, "functions", None) for part in parts]
        self.functions = None if None in each else each[0]

    def shares_tables(self, family: ProductFamily | None) -> bool:
        return all(part.shares_tables(family) for part in self.parts)

    def holds(self, laws: int) -> bool:
        return all(part.holds(laws) for part in self.parts)

    def account_seconds(self, family: ProductFamily) -> float:
        return sum(float(part.account_seconds(family)) for part in self.parts)

    def moments(self, design: Any, row: Floats | None = None) -> Moments:
        return self._add_up([part.moments(design, row) for part in self.parts])

    def at(self, rows: Rows) -> Moments:
        return self._add_up([part.at(rows) for part in self.parts], (len(rows),))

    def integrals(self, family: ProductFamily) -> int:
        return max(int(part.integrals(family)) for part in self.parts)

    def _add_up(self, parts: Sequence[Moments], designs: tuple[int, ...] = ()) -> Moments:
        mean = self.intercept + sum(w * m.mean for w, m in zip(self.weights, parts, strict=True))
        # one part after the other, whatever the shape: `np.sum` adds a single column in another order
        gamma = reduce(np.add, [w * m.gamma for w, m in zip(self.weights, parts, strict=True)])
        return Moments.exact(np.asarray(mean), np.asarray(gamma), designs=designs)


class CachedExpectation(ProductExpectation):
    """The same moments, computed once for each pattern of cells, whatever the call."""

    def __init__(self, expectation: ProductExpectation) -> None:
        self._expectation, self._cache = expectation, MomentCache()
        self.functions = expectation.functions

    def shares_tables(self, family: ProductFamily | None) -> bool:
        return self._expectation.shares_tables(family)

    def integrals(self, family: ProductFamily) -> int:
        return self._expectation.integrals(family)

    def at(self, rows: Rows) -> Moments:
        if not rows.by_cell:
            return self._expectation.at(rows)
        return self._cache.get(rows.cells, lambda new: self._expectation.at(rows.take(new)))


def explain_rows(
    expectation: ProductExpectation, rows: Rows, on_progress: Callable[[int], object] = lambda _: None
) -> tuple[FeatureTable, Moments]:
    """Return features and moments at n rows of a family, block by block."""
    assert rows.family is not None  # noqa: S101 - rows that stand alone need no blocks
    features, moments = [], []
    for block in rows.blocks(expectation.rows_at_once(rows.family)):
        moments.append(expectation.at(block))
        features.append(block.features)
        on_progress(len(block))
    joined = features[0] if len(features) == 1 else FeatureTable.merged(features, np.concatenate)
    return joined, concatenate_moments(moments)


def _pieces(law: Marginal) -> int:
    """Return the number of pieces of a law; a row needs no sum over the tuples of a group, but its own."""
    return 1 if isinstance(law.cells, TupleCells) else law.owners.size


def _integrals(function: Function) -> int:
    """Return the number of integrals over one piece of a law: quadrature runs from break to break."""
    match function:
        case Stacked():
            return sum(map(_integrals, function.families))
        case Filled():
            return _integrals(function.function)
        case Shape() | SmoothFunctions():
            return len(function(np.zeros(1))) * (1 + len(function.breaks))
    return len(function(np.zeros(1)))


def admitted(
    positions: Ints, compute: Callable[[Ints], T], error: Exception | None = None
) -> tuple[list[tuple[Ints, T]], dict[int, str]]:
    """Return what ``compute`` gives, in parts of the positions, and why it refuses the others.

    It refuses many if it refuses one. ``error`` is what it raised of all of them already.
    """
    if error is None:
        try:
            return ([(positions, compute(positions))] if positions.size else []), {}
        except REFUSED as raised:
            error = raised
    if positions.size == 1:
        return [], {int(positions[0]): str(error)}
    half = positions.size // 2
    (first, refused), (second, others) = (
        admitted(part, compute) for part in (positions[:half], positions[half:])
    )
    return first + second, refused | others
