r"""Numbers of a report as text: typed arrays, one after another, deflated, in base64.

=============== ============================================================================================
numbers         float32, seven digits; float64 where float32's range holds not all of an array
codes           the smallest of uint8, uint16 and uint32
curves          whole numbers, int16 or int32, times a step and a basis: see `BandwidthCurves`
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats
from limes._bars import progress_bar
from limes._diagnostics.bandwidth import placed_grid
from limes._diagnostics.source import ExactSource
from limes._explanation.view import slope_deviations
from limes._threads import one_blas_thread
from limes.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes._explanation import Explanation

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


# -- coefficients at other bandwidths ------------------------------------------------------------------------

# Largest error of a curve, as a share of the row's largest coefficient at the same bandwidth
TOLERANCE = 5e-4
_COARSEST = 1.0 / 2048.0
# Rows whose coefficients at all bandwidths are computed together: tables of forests are made once a block
_ROWS = 2000


@dataclass(frozen=True, eq=False)
class BandwidthCurves:
    r"""Coefficients of n rows, d features and k outputs at other bandwidths, in little space.

    Curves over ν are smooth and alike. Divided by each row's largest coefficient, curves C (n d, G) on a grid
    of G bandwidths lie near a space of few dimensions, spanned by the first eigenvectors V of CᵀC:

        β_ij(ν_g) ≈ scale_i · step · Σ_r c_ijr V_rg,    c = C Vᵀ / step, rounded to whole numbers.

    Forests on 20 columns take six of 25 dimensions. Dimensions are added, and then the step is halved, until
    the largest error is within ``TOLERANCE``, as a share of the row's largest coefficient at the same
    bandwidth.

    Features that are slopes count per standard deviation.

    Attributes
    ----------
    bandwidths, current
        Bandwidths (G,), and the position of the explainer's.
    basis : (r, G)
    step
    weights : (n, d, k, r)
        Whole numbers of steps.
    scales : (n, k)
    error
        Largest error, as a share of the row's largest coefficient at the same bandwidth.
    """

    bandwidths: Floats
    current: int
    basis: Floats
    step: float
    weights: Floats
    scales: Floats
    error: float

    @classmethod
    def fitted(cls, bandwidths: Floats, current: int, values: Floats) -> BandwidthCurves:
        """Compress values (n, d, k, G) with as few dimensions as the tolerance allows."""
        scales = np.abs(values).max(axis=(1, 3), initial=0.0)
        scale = np.where(scales > 0, scales, 1.0)
        shares = values / scale[:, None, :, None]
        flat = shares.reshape(-1, len(bandwidths))
        vectors = np.linalg.eigh(flat.T @ flat)[1][:, ::-1].T
        # the largest coefficient of a row at a bandwidth, by which its errors are judged
        largest = np.abs(shares).max(axis=1, initial=0.0)
        unit = np.where(largest > _NOTHING, largest, 1.0)

        def error(weights: Floats, basis: Floats) -> float:
            miss = np.abs(weights @ basis - shares).max(axis=1, initial=0.0)
            return float((miss / unit).max(initial=0.0))

        rank = 1
        while rank < len(vectors) and error(shares @ vectors[:rank].T, vectors[:rank]) > TOLERANCE / 2:
            rank += 1
        basis, step = vectors[:rank], _COARSEST
        exact = shares @ basis.T
        while error(step * np.rint(exact / step), basis) > TOLERANCE:
            step /= 2
        steps = np.rint(exact / step)
        return cls(bandwidths, current, basis, step, steps, scales, error(step * steps, basis))


# Where all coefficients of a row are below this share of its largest at any bandwidth, that judges errors
_NOTHING = 1e-3


@one_blas_thread()
def bandwidth_curves(
    explanation: Explanation, outputs: list[int], *, progress: bool
) -> BandwidthCurves | str:
    """Return the curves of all rows and some outputs, or why they are missing, as a sentence.

    The model is not called: only explanations of models that were read have curves.
    """
    explainer = explanation.explainer
    if explanation.certificates:
        return "A rule has no bandwidth."
    if explainer is None or not hasattr(explainer, "diagnostic_context"):
        return "Its bandwidth cannot be moved: it comes from a file, or its explainer has no bandwidth."
    if explanation.method != "exact":
        return "Its bandwidth cannot be moved: the model was sampled, not read."
    if explanation.provenance.get("ridge"):
        return "Its bandwidth cannot be moved: the surrogate has a ridge penalty."
    try:
        return _curves(explanation, outputs, progress=progress)
    except InputError as error:
        return f"Its bandwidth cannot be moved: {error}"


def _curves(explanation: Explanation, outputs: list[int], *, progress: bool) -> BandwidthCurves | str:
    bandwidths, current = placed_grid(float(explanation.provenance["bandwidth"]))
    blocks: list[Floats] = []
    with progress_bar(len(explanation), "bandwidths", unit="rows", shown=progress) as bar:
        for start in range(0, len(explanation), _ROWS):
            rows = explanation[start : start + _ROWS]
            columns = []
            for output in outputs:
                context = _context(rows, output)
                if not isinstance(context.source, ExactSource):
                    return (
                        "Its bandwidth cannot be moved: other bandwidths would need more calls of the model."
                    )
                paths = context.source.path(context, bandwidths)
                columns.append(np.stack([path.value.T for path in paths]))  # (n, d, G)
            blocks.append(np.stack(columns, axis=2))
            bar.update(len(rows))
    deviations = slope_deviations(explanation)
    values = np.concatenate(blocks) * deviations[:, None, None]
    if not np.isfinite(values).all():
        return "Its bandwidth cannot be moved: some coefficients are not finite at other bandwidths."
    return BandwidthCurves.fitted(bandwidths, current, values)


def _context(rows: Explanation, output: int) -> Any:
    return rows.explainer.diagnostic_context(rows, output=np.full(len(rows), output), calls=None)
