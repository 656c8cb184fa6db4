"""What is counted while rows are explained: a part's share of the summary, put together by adding up.

Distinct explanations are counted by their hashes, uniform on [0, 1): if the K-th smallest of the distinct
ones is u, there are about (K - 1) / u, to a relative standard error of 1 / √(K - 2); if there are fewer, that
many. So K numbers a part are enough for a table of any length.

Source: Beyer et al., "On synopses for distinct-value estimation under multiset operations", 2007, section 4.
"""

from __future__ import annotations

from base64 import b85decode, b85encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limes._arrays import Floats

# Distinct explanations that are counted one by one; beyond, their number is known to 1 / √K, 3 %
_KEPT = 1024
_ALL = 2.0**64

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Tally:
    """Of some rows: how many, how many with an error, and of the others the sum of |β| of each column.

    Attributes
    ----------
    outputs : int
        Of the model; 0 where no row has an explanation.
    smallest : str
        The smallest hashes of explanations, eight bytes each, in base 85.
    reason : str
        The first error; empty where there is none.
    """

    rows: int
    errors: int
    outputs: int
    sizes: Mapping[str, float]
    smallest: str
    reason: str

    @classmethod
    def of(cls, found: pa.Table, features: Sequence[str], rows: int) -> Tally:
        """Count what `explain_frame` found of so many rows."""
        good = found.filter(found["error"].is_null())
        wrong = found["error"].drop_null()
        errors = len(wrong)  # such rows have one line each
        values = _values(good, features, rows - errors)
        sizes = np.abs(values).sum(axis=(0, 1)).tolist()
        outputs = values.shape[1]
        hashes = _smallest(_hashes(values.reshape(rows - errors, outputs * len(features))))
        by_name = dict(zip(features, sizes, strict=True))
        return cls(rows, errors, outputs, by_name, _packed(hashes), wrong[0].as_py() if errors else "")

    def __add__(self, other: Tally) -> Tally:
        """Of both."""
        sizes = {
            name: self.sizes.get(name, 0.0) + other.sizes.get(name, 0.0)
            for name in {**self.sizes, **other.sizes}
        }
        return Tally(
            self.rows + other.rows,
            self.errors + other.errors,
            max(self.outputs, other.outputs),
            sizes,
            _packed(_smallest(np.concatenate([self._hashes, other._hashes]))),
            self.reason or other.reason,
        )

    @property
    def mean_sizes(self) -> dict[str, float]:
        """Mean |β| of each column, over rows with an explanation and outputs."""
        count = max(1, (self.rows - self.errors) * self.outputs)
        return {name: size / count for name, size in self.sizes.items()}

    @property
    def distinct(self) -> tuple[int, bool]:
        """How many explanations differ, and whether that is exact."""
        kept = self._hashes
        if len(kept) < _KEPT:
            return len(kept), True
        return round((_KEPT - 1) * _ALL / float(kept[-1])), False

    @cached_property
    def _hashes(self) -> Hashes:
        return np.frombuffer(b85decode(self.smallest), "<u8")


NOTHING = Tally(0, 0, 0, {}, "", "")


def _values(good: pa.Table, features: Sequence[str], rows: int) -> Floats:
    """Coefficients (rows, outputs, columns) of lines in either layout."""
    if "feature" in good.column_names:
        flat: Floats = good["value"].to_numpy()
    else:
        flat = np.column_stack([good[f"value_{name}"].to_numpy() for name in features])
    outputs = flat.size // max(1, rows * len(features))
    return flat.reshape(rows, outputs, len(features))


def _hashes(values: Floats) -> Hashes:
    """64 bits of each row: a step of splitmix64 a number."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    found = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        found = (found ^ column) + np.uint64(0x9E3779B97F4A7C15)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found ^= found >> np.uint64(31)
    return found


def _smallest(hashes: Hashes) -> Hashes:
    return np.unique(hashes)[:_KEPT]


def _packed(hashes: Hashes) -> str:
    return b85encode(hashes.astype("<u8").tobytes()).decode()
