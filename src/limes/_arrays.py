"""Arrays of every stage: their types and checks, sums in one order, random streams of rows, R².

A stream depends on the user's seed and on the row alone, not on its position in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from math import prod
from numbers import Integral
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
Objects: TypeAlias = NDArray[Any]
# of any precision
Reals: TypeAlias = NDArray[np.floating[Any]]

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


def times(x: Floats, coef: Floats) -> Floats:
    """Products x @ coef, (n, m) and (m, ...) -> (n, ...), the same to the last bit for any number of rows."""
    # each row is added up by itself and in one order; BLAS takes another for few rows, or for the last ones
    rows = np.ascontiguousarray(x)
    columns = [(rows * column).sum(axis=1) for column in coef.reshape(len(coef), prod(coef.shape[1:])).T]
    return np.column_stack(columns).reshape(len(rows), *coef.shape[1:])


def power_of_two(x: Floats) -> Floats:
    """The largest power of two that is no larger than x > 0, elementwise; 1 where x is 0 or infinite."""
    x = np.asarray(x, dtype=np.float64)
    regular = (x > 0) & np.isfinite(x)
    return np.ldexp(1.0, np.where(regular, np.frexp(x)[1] - 1, 0))


def mean_and_std(x: Floats) -> tuple[float, float]:
    """Mean and standard deviation of finite numbers (n,) of any size, without over- or underflow."""
    # of ordinary numbers to the last bit what x.mean() and x.std() are
    size = power_of_two(np.abs(x).max())
    mean = float((x / size).mean() * size)
    away = x - mean
    unit = power_of_two(np.abs(away).max())
    return mean, float(np.sqrt(((away / unit) ** 2).mean()) * unit)


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


# -- R², and when a model counts as constant: one rule for every explainer, measure and drawing ------------
#
# Answers 0.1, 0.1, 0.1 have a variance of 1e-34, and whatever is divided by it is noise. So
#
#     f is constant        if sd(f) <= 1e-12 · size of f,
#     R² = explained / Var f,    at most 1, and 1 where f is constant: there is nothing that is not explained.


# Relative rounding of a model's answers: sums of a few thousand terms in float64
ROUNDING = 1e-12


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
