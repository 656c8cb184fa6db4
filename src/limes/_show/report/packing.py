r"""Numbers of a report as text: typed arrays, one after another, deflated, in base64.

=============== ============================================================================================
numbers         float32, seven digits; float64 where float32's range holds not all of an array
codes           the smallest of uint8, uint16 and uint32
curves          whole numbers, int16 or int32, times a step and a basis: ``limes/_show/report/curves.py``
shares          int16 times a step, and a scale for each row and output: x ≈ scale · step · integer, so that
                |x - x̂| ≤ scale · step / 2, with step = 1 / 4096 and scale the row's largest; -32768 is NaN
texts           each distinct one once, as JSON, and a code a place
=============== ============================================================================================

An array is stored in planes, all first bytes, all second ones, ...: neighbours are alike, and deflate takes
half. JSON holds a reference in its place, ``{"at": offset, "type": "f4", "size": count}``, offsets and counts
of little-endian numbers; ``templates/report/data.js`` reads them back.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEP = 1.0 / 4096.0
NOT_A_NUMBER = -32768
# Smaller or larger numbers than these are stored as float64
_SMALLEST, _LARGEST = 1e-30, 1e30
_LEVEL = 6  # 9 takes ten times as long for 1 %

Reference = dict[str, Any]


class Packer:
    """Collects arrays; ``text()`` returns them as the page stores them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: NDArray[Any], kind: str) -> Reference:
        """Store an array as numbers of a kind, such as "f4", "i2" or "u1", and return its reference."""
        numbers = np.ascontiguousarray(array, dtype=f"<{kind}").reshape(-1)
        planes = numbers.view(np.uint8).reshape(numbers.size, numbers.itemsize).T
        reference = {"at": self._size, "type": kind, "size": int(numbers.size)}
        self._parts.append(planes.tobytes())
        self._size += numbers.nbytes
        return reference

    def numbers(self, array: Any) -> Reference:
        """Store numbers, as float32 if their sizes allow it."""
        floats = np.asarray(array, dtype=np.float64)
        sizes = np.abs(floats[np.isfinite(floats) & (floats != 0)])
        narrow = bool(((sizes > _SMALLEST) & (sizes < _LARGEST)).all())
        return self.add(floats, "f4" if narrow else "f8")

    def codes(self, codes: Any) -> Reference:
        """Store whole numbers that are not negative."""
        integers = np.asarray(codes, dtype=np.int64)
        largest = int(integers.max(initial=0))
        return self.add(integers, "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4")

    def integers(self, integers: Floats) -> Reference:
        """Store whole numbers, as int16 if they are small."""
        return self.add(integers, "i2" if np.abs(integers).max(initial=0.0) < 2**15 else "i4")

    def shares(self, array: Floats, scale: Floats) -> Reference:
        """Store numbers as shares of a scale, which broadcasts to them; NaN stays NaN."""
        steps = quantised(array, scale)
        return self.add(np.where(np.isfinite(steps), steps, NOT_A_NUMBER), "i2")

    def coded(self, entries: Iterable[Hashable]) -> dict[str, Any]:
        """Store each distinct entry once, in the order of first appearance, and codes."""
        places: dict[Hashable, int] = {}
        codes = [places.setdefault(entry, len(places)) for entry in entries]
        return {"entries": list(places), "codes": self.codes(codes)}

    def coded_lists(self, lists: Sequence[Sequence[Hashable]]) -> dict[str, Any]:
        """Store a list of entries for each row."""
        return {
            **self.coded(entry for entries in lists for entry in entries),
            "counts": self.codes([len(entries) for entries in lists]),
        }

    def text(self) -> str:
        """Return all arrays in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), _LEVEL)).decode("ascii")


def quantised(array: Floats, scale: Floats) -> Floats:
    """Return array / (scale · STEP), rounded; a scale of 0 belongs to numbers that are 0."""
    return np.asarray(np.rint(array / np.where(scale > 0, scale, 1.0) / STEP))
