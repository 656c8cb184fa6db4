"""Counts of a part, which add up to those of a table.

Distinct explanations are counted by their hashes, uniform on [0, 1): if the K-th smallest of the distinct
hashes is u, there are about (K - 1) / u of them, with a relative standard error of 1 / √(K - 2); fewer than K
are counted exactly. So K numbers a part are enough for a table of any length. (A library's sketch, such as
datasketches, would be a dependency in place of ten lines.)

Source: Beyer et al., "On synopses for distinct-value estimation under multiset operations", 2007, section 4.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

from base64 import b85decode, b85encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limes._arrays import Floats

# K: distinct explanations that are counted exactly; beyond, the standard error is 1 / √K, 3 %
_COUNTED = 1024
_ALL = 2.0**64
# 2^64 over the golden ratio, odd: multiples of it are spread evenly
SPREAD = np.uint64(0x9E3779B97F4A7C15)

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Tally:
    """Number of rows, of errors, and the sum of |β| of each column over the rows without an error.

    Attributes
    ----------
    outputs : int
        Number of the model's outputs; 0 where no row has an explanation.
    smallest : str
        The smallest hashes of explanations, eight bytes each, in base 85.
    reason : str
        The first error; empty where all rows have an explanation.
    """

    rows: int
    errors: int
    outputs: int
    sizes: Mapping[str, float]
    smallest: str
    reason: str

    @classmethod
    def count(cls, lines: pa.Table, features: Sequence[str], rows: int) -> Tally:
        """Count the lines that `explain_frame` returns for ``rows`` rows."""
        good = lines.filter(lines["error"].is_null())
        reasons = lines["error"].drop_null()
        errors = len(reasons)  # such rows have one line each
        values = _values(good, features, rows - errors)
        sizes = np.abs(values).sum(axis=(0, 1)).tolist()
        outputs = values.shape[1]
        flat = values.reshape(rows - errors, outputs * len(features)) + 0.0  # -0.0 + 0.0 is 0.0
        hashes = _smallest(hashes_of_bits(flat.view(np.uint64)))
        by_name = dict(zip(features, sizes, strict=True))
        return cls(rows, errors, outputs, by_name, _packed(hashes), reasons[0].as_py() if errors else "")

    def __add__(self, other: Tally) -> Tally:
        """Return the tally of both together."""
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
        """Number of distinct explanations, and whether it is exact."""
        hashes = self._hashes
        if len(hashes) < _COUNTED:
            return len(hashes), True
        return round((_COUNTED - 1) * _ALL / float(hashes[-1])), False

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


def hashes_of_bits(bits: Hashes) -> Hashes:
    """Hash each row of 64-bit cells to 64 bits: a step of splitmix64 a cell."""
    hashes = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        hashes = (hashes ^ column) + SPREAD
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _smallest(hashes: Hashes) -> Hashes:
    return np.unique(hashes)[:_COUNTED]


def _packed(hashes: Hashes) -> str:
    return b85encode(hashes.astype("<u8").tobytes()).decode()
