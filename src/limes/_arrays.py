"""Arrays of every stage: their types and checks, sums in one order, random streams and points, R².

A stream depends on the user's seed and on the row alone, not on its position in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache, reduce
from hashlib import blake2b
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes.exceptions import InputError

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
# cells of values, or bytes that tell them apart
CellNumbers: TypeAlias = NDArray[np.integer[Any]]
# positions in compiled loops
Places: TypeAlias = NDArray[np.uint32]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Objects: TypeAlias = NDArray[Any]
# of any precision
Reals: TypeAlias = NDArray[np.floating[Any]]


class EqualByValue:
    """A dataclass with ``eq=False`` whose equality takes numbers that are unknown, NaN, for one value.

    That of dataclasses depends on the version of Python: up to 3.12 a NaN equals itself as an object, from
    3.13 on it equals nothing.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(_without_nan(getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]


def _without_nan(value: Any) -> Any:
    """A value with a text in the place of each NaN, also within tuples and mappings."""
    if isinstance(value, tuple):
        return tuple(map(_without_nan, value))
    if isinstance(value, dict):
        return {key: _without_nan(its) for key, its in value.items()}
    return "NaN" if isinstance(value, float) and value != value else value


EXACT = 2.0**53  # beyond it float64 cannot tell neighbouring whole numbers apart


def is_wide(value: Any) -> bool:
    """Whether a value is a whole number that float64 may not tell from its neighbours."""
    return isinstance(value, Integral) and abs(int(value)) >= EXACT


def distinct_rows(codes: Ints) -> tuple[Ints, Ints]:
    """Distinct rows of a matrix of small codes >= 0, and the place among them of each row."""
    if len(codes) == 1:
        return codes, np.zeros(1, dtype=np.int64)
    sizes = codes.max(axis=0, initial=0) + 1
    if np.log2(sizes.astype(np.float64)).sum() >= 62:
        rows, place = np.unique(codes, axis=0, return_inverse=True)
        return rows, place.reshape(-1)
    # one number a row, in base of the sizes, sorts ten times faster than rows do
    number = codes @ np.concatenate([[1], np.cumprod(sizes[:-1])])
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    return codes[first], place


def distinct_flags(flags: Bools) -> tuple[Ints, Ints]:
    """The first of each distinct row of a matrix of flags, in ascending order, and the place of each row."""
    # packed into bytes they sort a hundred times faster than as rows, in the same order
    packed = np.ascontiguousarray(np.packbits(flags, axis=1))
    if not packed.shape[1]:
        return np.zeros(min(len(flags), 1), dtype=np.int64), np.zeros(len(flags), dtype=np.int64)
    texts = packed.view(f"S{packed.shape[1]}").ravel()
    _, first, place = np.unique(texts, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def first_of_each(place: Ints, count: int) -> Ints:
    first = np.zeros(count, dtype=np.int64)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return first


def stacked_rows(rows: Sequence[Any]) -> Any:
    """``np.stack``, which takes several times as long as an index where there is one row."""
    return np.asarray(rows[0])[None] if len(rows) == 1 else np.stack(rows)


def aligned(features: Floats, values: Floats) -> Floats:
    """Append axes to features (..., d) for the outputs of values (..., d, *outputs)."""
    return features.reshape((*features.shape, *(1,) * (values.ndim - features.ndim)))


def weighted_sum(features: Floats, values: Floats) -> Floats:
    """Σ_j features_j values_j, (..., d) and (..., d, *outputs) -> (..., *outputs)."""
    return np.asarray((aligned(features, values) * values).sum(axis=features.ndim - 1))


# Fewer numbers than these are added up one after the other by NumPy; rows from which on columns are added up
_IN_TURN, _MANY_ROWS = 8, 512


def times(x: Floats, coef: Floats) -> Floats:
    """Products x @ coef, (n, m) and (m, ...) -> (n, ...), the same to the last bit for any number of rows."""
    # each row is added up by itself and in one order; BLAS takes another for few rows, or for the last ones
    columns = coef.reshape(len(coef), prod(coef.shape[1:])).T
    if 0 < x.shape[1] < _IN_TURN and len(x) >= _MANY_ROWS:
        # to the same bits, and twice as fast as sums of a few numbers each
        sums = [reduce(np.add, [its * c for its, c in zip(x.T, column, strict=True)]) for column in columns]
    else:
        rows = np.ascontiguousarray(x)
        sums = [(rows * column).sum(axis=1) for column in columns]
    return np.column_stack(sums).reshape(len(x), *coef.shape[1:])


def power_of_two(x: Floats) -> Floats:
    """The largest power of two that is no larger than x > 0, elementwise; 1 where x is 0 or infinite."""
    x = np.asarray(x, dtype=np.float64)
    regular = (x > 0) & np.isfinite(x)
    return np.ldexp(1.0, np.where(regular, np.frexp(x)[1] - 1, 0))


# Sizes of numbers whose squares and sums are far from the ends of float64
ORDINARY = 1e-100, 1e100


def mean_and_std(x: Floats) -> tuple[float, float]:
    """Mean and standard deviation of finite numbers (n,) of any size, without over- or underflow."""
    # of ordinary numbers to the last bit what x.mean() and x.std() are
    unit = _unit(x)
    mean = float((x / unit).mean() * unit)
    away = x - mean
    unit = _unit(away)
    return mean, float(np.sqrt(((away / unit) ** 2).mean()) * unit)


def _unit(x: Floats) -> float:
    """Return 1 for ordinary numbers, else the largest one's power of two, which takes longer."""
    size = np.abs(x).max()
    return 1.0 if ORDINARY[0] < size < ORDINARY[1] else float(power_of_two(size))


def column_stds(x: Floats) -> Floats:
    """Standard deviation of the finite numbers of each column, (n, d) -> (d,); 0 for columns without any."""
    finite = [column[np.isfinite(column)] for column in x.T]
    return np.array([mean_and_std(column)[1] if column.size else 0.0 for column in finite])


def fingerprint(row: Floats) -> int:
    canonical = np.where(np.isnan(row), np.nan, row + 0.0)  # one NaN, one zero
    return int.from_bytes(blake2b(canonical.tobytes(), digest_size=16).digest(), "little")


def streams(seed: int, key: int, count: int) -> list[np.random.SeedSequence]:
    """Independent streams for a row of this fingerprint."""
    return np.random.SeedSequence([seed, key]).spawn(count)


def padded(cells: int) -> int:
    """Return the length of a compiled look-up table of n cells: up to 16 fit registers of four."""
    return -(-cells // 4) * 4 if cells <= 16 else cells


# -- Sobol' points -------------------------------------------------------------------------------------------

# Direction numbers exist for this many dimensions; further columns make all points independent numbers
SOBOL_DIMENSIONS = 21_201
# Binary digits of points
_BITS = 30
# scipy's direction numbers, beside scipy.stats
_TABLE = "_sobol_direction_numbers.npz"


def sobol_points(d: int, streams: Sequence[np.random.SeedSequence]) -> SobolPoints | IndependentPoints:
    """Return random Sobol' sequences in d dimensions, one a stream; independent points beyond them."""
    make = IndependentPoints if d > SOBOL_DIMENSIONS else SobolPoints
    return make(d, [np.random.default_rng(stream) for stream in streams])


class SobolPoints:
    """Sequences that share a random matrix; each has a separate random digital shift.

    Given the matrix, they are independent of each other, and every point is uniform. Some pairs of dimensions
    depend strongly on each other in the first few hundred points, whatever the matrix; every sequence
    therefore assigns its dimensions to the columns in a random order.
    """

    def __init__(self, d: int, rngs: Sequence[np.random.Generator]) -> None:
        self._digits = sobol_digits(d, rngs[0])
        self._shifts = [rng.integers(1 << _BITS, size=d) for rng in rngs]
        self._orders = [rng.permutation(d) for rng in rngs]

    def random(self, n: int) -> Floats:
        """Draw the next n points of every sequence, (sequences · n, d), sequence by sequence."""
        digits = self._digits(n)
        points = np.empty((len(self._shifts), *digits.shape))
        for sequence, order, shift in zip(points, self._orders, self._shifts, strict=True):
            sequence[:] = digits[:, order] ^ shift
        points /= 1 << _BITS
        return points.reshape(-1, digits.shape[1])


class IndependentPoints:
    """Independent points in any number of dimensions."""

    def __init__(self, d: int, rngs: Sequence[np.random.Generator]) -> None:
        self._d, self._rngs = d, rngs

    def random(self, n: int) -> Floats:
        """Draw the next n points of every stream, (streams · n, d), stream by stream."""
        return np.concatenate([rng.random((n, self._d)) for rng in self._rngs])


def sobol_digits(d: int, rng: np.random.Generator) -> Callable[[int], Ints]:
    """The next n points (n, d) of scipy's scrambled Sobol' sequence, as whole numbers of 30 binary digits."""
    # scipy.stats takes longer to import than many a row to explain: its table is enough
    import scipy

    table = Path(scipy.__file__).parent / "stats" / _TABLE
    if table.exists():
        return _ScrambledSobol(d, rng, table)
    from scipy.stats.qmc import Sobol

    sequence = Sobol(d, scramble=True, bits=_BITS, rng=rng)
    return lambda n: (sequence.random(n) * (1 << _BITS)).astype(np.int64)


class _ScrambledSobol:
    """Point i + 1 is point i with v_c flipped, c the number of ones at the end of i.

    That is the order of Antonov & Saleev (1979).
    """

    def __init__(self, d: int, rng: np.random.Generator, table: Path) -> None:
        (rng,) = rng.spawn(1)  # as scipy does
        powers = np.uint32(1) << np.arange(_BITS, dtype=np.uint32)
        self._next = rng.integers(2, size=(d, _BITS), dtype=np.uint32) @ powers
        # a scrambled digit is the digit itself, and a random sum of those before it (Matoušek 1998)
        matrix = np.tril(rng.integers(2, size=(d, _BITS, _BITS), dtype=np.uint32), -1)
        plain, self._steps = _direction_numbers(d, table), np.zeros((_BITS, d), dtype=np.uint32)
        for digit, power in enumerate(powers[::-1]):
            summed = power | matrix[:, digit] @ powers[::-1]
            self._steps |= power * _parity(plain & summed)
        self._count = 0

    def __call__(self, n: int) -> Ints:
        each = self._count + np.arange(n)
        ones = np.log2((each + 1) & ~each).astype(np.int64)
        points = np.concatenate([self._next[None], self._steps[ones]])
        np.bitwise_xor.accumulate(points, axis=0, out=points)
        self._next, self._count = points[-1], self._count + n
        return points[:-1].astype(np.int64)


def _parity(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    for shift in (16, 8, 4, 2, 1):
        x = x ^ (x >> np.uint32(shift))
    return x & np.uint32(1)


@lru_cache(maxsize=4)
def _direction_numbers(d: int, table: Path) -> NDArray[np.uint32]:
    """The steps v of every dimension, (30, d), by the recurrence of Joe & Kuo (2008) and their table."""
    polynomials, first = (its[:d].astype(np.uint32) for its in _joe_kuo(table))
    v, degrees = np.ones((_BITS, d), dtype=np.uint32), np.frexp(polynomials)[1] - 1
    for m in range(1, int(degrees.max()) + 1):
        its = np.flatnonzero(degrees == m)
        terms = [(polynomials[its] >> np.uint32(m - k)) & np.uint32(1) for k in range(1, m + 1)]
        for j in range(_BITS):
            if j < m:
                v[j, its] = first[its, j]
                continue
            new = v[j - m, its]
            for k, term in enumerate(terms, 1):
                new ^= (term * v[j - k, its]) << np.uint32(k)
            v[j, its] = new
    return v << np.arange(_BITS - 1, -1, -1, dtype=np.uint32)[:, None]


@lru_cache(maxsize=1)
def _joe_kuo(table: Path) -> tuple[Ints, Ints]:
    """Primitive polynomials (21201,), and first numbers (21201, 18) of the recurrence."""
    with np.load(table) as numbers:
        return numbers["poly"], numbers["vinit"]


# -- judgements: when a number is rounding, a model constant, R² known, and answers probabilities ------------
#
# One rule for every explainer, measure and drawing; ``tools/house_rules.py`` lets no other file define one.
# Answers 0.1, 0.1, 0.1 have a variance of 1e-34, and whatever is divided by it is noise. So
#
#     f is constant        if sd(f) <= 1e-12 · size of f,
#     R² = explained / Var f,    at most 1, and 1 where f is constant: there is nothing that is not explained.


# Relative rounding of a model's answers, and of means over rows: sums of a few thousand terms in float64
ROUNDING = 1e-12
# A smaller difference of two such numbers, as a share of the largest answer, is rounding
DIFFERENCE_ROUNDING = 1e-9


def is_constant(variance: Any, size: Any) -> Bools:
    """Whether a variance is rounding of numbers of this size; False where the variance is not known."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)) <= ROUNDING * np.abs(size))


def r_squared(explained: Any, variance: Any, size: Any, rest_error: Any = 0.0) -> tuple[Floats, Floats]:
    """R² and its standard error, ``rest_error`` being that of ``variance`` - ``explained``; NaN stays NaN."""
    constant = is_constant(variance, size)
    safe = np.where(constant, 1.0, variance)
    return (
        np.where(constant, 1.0, np.minimum(explained / safe, 1.0)),
        np.where(constant, 0.0, np.abs(explained / safe) * (rest_error / safe)),
    )


# -- probabilities: one rule for every explainer, control and drawing ----------------------------------------
#
# Answers are probabilities of classes if all of them, of all rows of a call, lie within 0 and 1, and each row
# adds up to 1. Services round to a few digits, and networks to few bits: k numbers that were rounded to units
# u add up to 1 within k u / 2. One row says little: it may add up to 1 by chance, or miss it by its rounding.


# What probabilities, and their sums, may be off in single precision
SUM_ROUNDING = 1e-6
# Units that answers may be rounded to, the coarsest first: decimals, and what bytes and floats hold below 1
_UNITS = (1e-1, 1e-2, 1 / 255, 2.0**-8, 1e-3, 2.0**-11, 1e-4, 1e-5, 1e-6, 2.0**-24)
# Significant bits of float types with these units
_BITS_OF = {2.0**-8: 8, 2.0**-11: 11, 2.0**-24: 24}


def are_probabilities(answers: Floats, *, add_up: bool = True) -> bool:
    """Whether all answers of a call, (n,) or (n, k), lie within 0 and 1, and rows of several add up to 1.

    Pass ``add_up=False`` for answers that make no such claim: of some classes, or of labels that do not
    exclude each other.
    """
    answers = np.asarray(answers)
    if not ((answers >= -SUM_ROUNDING) & (answers <= 1.0 + SUM_ROUNDING)).all():
        return False
    count = answers.shape[-1] if answers.ndim > 1 else 1
    return not add_up or count == 1 or _adds_up(answers)


def _adds_up(answers: Floats) -> bool:
    """Whether every row (n, k) adds up to 1, within what rounding to the last digit seen leaves."""
    off = float(np.abs(answers.sum(axis=-1) - 1.0).max(initial=0.0))
    return off <= SUM_ROUNDING or off <= sum_tolerance(answers)


def sum_tolerance(answers: Floats) -> float:
    """Return what probabilities (n, k) that were rounded to their last digit may miss a sum of 1 by."""
    return float(answers.shape[-1] / 2 * last_digit(answers)) + SUM_ROUNDING


def are_complements(answers: Floats) -> bool:
    """Whether of two answers a row, (n, 2), one is 1 less the other, so that it need not be computed.

    False of rounded answers: 1 less the second would not be the model's own first.
    """
    if answers.shape[1] != 2:
        return False
    return bool((np.abs(answers.sum(axis=1) - 1.0) <= SUM_ROUNDING).all())


def last_digit(answers: Floats) -> float:
    """The unit that numbers within 0 and 1 were all rounded to; 0 if none shows, and of whole numbers."""
    values = np.ravel(answers)
    if (values == np.rint(values)).all():
        return 0.0
    return next((unit for unit in _UNITS if _are_rounded(values, unit)), 0.0)


def _are_rounded(values: Floats, unit: float) -> bool:
    if unit in _BITS_OF:
        significand = np.ldexp(np.frexp(values)[0], _BITS_OF[unit])
        return bool((significand == np.rint(significand)).all())
    # decimals may themselves be stored in single precision
    return bool((np.abs(values / unit - np.rint(values / unit)) * unit <= 2.0**-24).all())


def float_array(name: str, values: Any, *ndims: int) -> Floats:
    """Return the values as float64, with one of the given numbers of dimensions; NaN is allowed."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numbers, in rows of equal length; {error}") from None
    if array.ndim not in ndims:
        raise InputError(
            f"{name} must have {' or '.join(map(str, ndims))} dimensions, got shape {array.shape}"
        )
    return array


def finite_array(name: str, values: Any, *ndims: int) -> Floats:
    """Return the values as finite float64, with one of the given numbers of dimensions."""
    array = float_array(name, values, *ndims)
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite; got {array[~np.isfinite(array)][0]}")
    return array


def check_rows(x: ArrayLike, columns: int, *, more: bool = False) -> Floats:
    """Return rows (n, d) as float64; they must have d ``columns``, or ``more``."""
    rows = float_array("x", x, 2)
    if rows.shape[1] < columns or (rows.shape[1] > columns and not more):
        least = " or more" if more else ""
        raise InputError(f"rows must be (n, {columns}{least}), a column a feature; got shape {rows.shape}")
    return rows
