"""Moments E_w f and Γ of a model, with standard errors: all that a surrogate is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes.designs._features import InUnits

# Size of a cache of moments, in bytes, and of a dictionary's entry beside its key
_CACHE_BYTES = 128 << 20
_ENTRY_BYTES = 150
# Distance from 1 of the sum of two probabilities in single precision
_COMPLEMENT = 1e-6


class _Arrays:
    """A dataclass of arrays whose first axis, if there are several designs, is the design."""

    def take(self, rows: Ints) -> Self:
        """Return the designs at ``rows``, which may repeat."""

        def picked(value: Any) -> Any:
            if value is None:
                return None
            return value[rows] if isinstance(value, np.ndarray) else value.take(rows)

        names = (f.name for f in fields(self))  # type: ignore[arg-type]
        return type(self)(**{name: picked(getattr(self, name)) for name in names})

    def at(self, row: int) -> Self:
        """Return one design."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return type(self)(
            **{k: v[row, ...] if isinstance(v, np.ndarray) else v and v.at(row) for k, v in values.items()}
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        values = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return sum(value.nbytes for value in values if value is not None)


@dataclass(frozen=True, eq=False)
class SampleStatistics(_Arrays):
    """Statistics of a sample beyond its moments.

    Attributes
    ----------
    surrogate_errors
        Standard errors of the surrogate at the instance, () or (k,).
    fidelity_errors, share_errors
        Standard errors of R², () or (k,), and of the features' shares of it, (d,) or (d, k).
    excess
        The largest error of a coefficient in units of the tolerance, or of the default accuracy.
    control
        Name of the control variate.
    noise
        What errors of the coefficients add to β_j Γ_j in expectation, (d,) or (d, k).
    unlike
        Number of rows whose answer differs from the most frequent one, () or (k,).
    carriers
        Effective number of independent rows behind a coefficient's error, the median over features,
        () or (k,); infinite where the residuals are 0.
    effective
        Effective number of rows that count for the explained one, (Σ w)² / Σ w².
    collinear
        (d,) features that change together, so that their coefficients are not determined.
    answers
        () of one array: the model's answers (m, ...) to the rows, in the order of their draws.
    """

    surrogate_errors: Floats
    fidelity_errors: Floats
    share_errors: Floats
    excess: Floats
    control: Objects
    noise: Floats
    unlike: Ints
    carriers: Floats
    effective: Floats
    collinear: Bools
    answers: Objects

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
            carriers=np.full(each, np.inf),
            effective=np.full(n, np.inf),
            collinear=np.zeros(columns[:2], dtype=np.bool_),
            answers=np.array([boxed(np.empty(0))] * n, dtype=object),
        )


@dataclass(frozen=True, eq=False)
class Moments(_Arrays):
    """Expectations of f under w; a last axis for k outputs, a first one for n designs.

    Attributes
    ----------
    mean
        E_w f, () or (k,).
    gamma
        Centred Γ_j = Cov_w(h_j, f), (d,) or (d, k).
    coef_errors
        Standard errors of β = Σ⁻¹Γ, same shape; 0 where exact. Standard errors of Γ would not be enough: its
        entries are correlated where features are.
    variance
        Var_w f, () or (k,); NaN where it was not computed.
    calls
        Number of rows that the model was called with for this row alone.
    shared
        Number of rows of the pool of answers that this row shares with others.
    unlike
        Number of rows whose answer differs from the most frequent one, () or (k,), where all rows of a design
        were enumerated; else None.
    converged
        Whether errors are within the tolerance, or the default accuracy, by answers that differ.
    cut_short
        Whether sampling ended early, as the model failed or the user stopped it.
    sampled
        Statistics of the sample; None where exact.
    """

    mean: Floats
    gamma: Floats
    coef_errors: Floats
    variance: Floats
    calls: Ints = field(default_factory=lambda: np.zeros((), dtype=np.int64))
    converged: Bools = field(default_factory=lambda: np.ones((), dtype=np.bool_))
    cut_short: Bools = field(default_factory=lambda: np.zeros((), dtype=np.bool_))
    sampled: SampleStatistics | None = None
    shared: Ints = field(default_factory=lambda: np.zeros((), dtype=np.int64))
    unlike: Ints | None = None

    @classmethod
    def exact(cls, mean: Floats, gamma: Floats, *, designs: tuple[int, ...] = ()) -> Moments:
        """Moments without error, of one design or of ``designs`` = (n,) of them."""
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
    """Moments of n designs from those of each."""
    stacked: Moments = _merged(moments, np.stack)
    return stacked


def concatenate_moments(moments: Sequence[Moments]) -> Moments:
    """Moments of all designs from those of several groups of designs."""
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


def are_complements(answers: Floats) -> bool:
    """Return whether answers (n, k) are probabilities of two classes: one is 1 less the other."""
    if answers.shape[1] != 2:
        return False
    return bool((np.abs(answers.sum(axis=1) - 1.0) <= _COMPLEMENT).all())


def with_complement(moments: Moments) -> Moments:
    """Moments of 1 - f and f, from those of f, whose arrays have an axis of one output."""
    sampled = moments.sampled

    def twice(values: Any) -> Any:
        return np.concatenate([values, values], axis=-1)

    if sampled is not None:
        names = ("surrogate_errors", "fidelity_errors", "share_errors", "noise", "unlike", "carriers")
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
    """Exact moments by pattern of cells.

    Under bin weights a row's cells decide its moments, and patterns of cells repeat in long tables: the cost
    depends on the number of distinct patterns, not of rows. This is valid only if a pattern's moments do not
    depend, to the last bit, on the patterns computed with it.
    """

    def __init__(self) -> None:
        # replaced as a whole: threads may compute a pattern twice, but never see a partial update
        self._entries: tuple[Mapping[bytes, int], Moments | None] = ({}, None)

    def moments(self, patterns: Ints, compute: Callable[[Ints], Moments]) -> Moments:
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


class RowMoments(NamedTuple):
    """Features of n rows' designs, and moments of those rows that were finished before an error, if any.

    ``finished`` (m,) are their positions; ``moments`` is None if m = 0.
    """

    features: InUnits
    finished: Ints
    moments: Moments | None
    error: BaseException | None = None

    @classmethod
    def of_each(
        cls, features: InUnits, results: Sequence[Moments | None], error: BaseException | None
    ) -> RowMoments:
        """Join what was computed row by row, None of rows that are not finished."""
        finished = {i: moments for i, moments in enumerate(results) if moments is not None}
        moments = stack_moments(list(finished.values())) if finished else None
        return cls(features, np.array([*finished], dtype=np.int64), moments, error)


class ExactMoments(Protocol):
    """An exact expectation: moments of one model under any design of one kind."""

    @property
    def method(self) -> Literal["exact"]:
        """Always "exact"."""
        ...

    def moments(self, design: Any, row: Floats | None = None) -> Moments:
        """E_w f and Γ under the design."""
        ...


def boxed(array: Floats) -> Objects:
    """Return an array () that holds an array, so that arrays of different lengths can be stacked."""
    box = np.empty((), dtype=object)
    box[()] = array
    return box
