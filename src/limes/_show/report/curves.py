r"""Coefficients of every row at other bandwidths, in little space: β(ν) for the slider of a report.

Curves over ν are smooth and alike. Divided by each row's largest coefficient, curves C (n d, G) on a grid of
G bandwidths lie near a space of few dimensions, spanned by the first eigenvectors V of CᵀC:

    β_ij(ν_g) ≈ scale_i · step · Σ_r c_ijr V_rg,    c = C Vᵀ / step, rounded to whole numbers.

Forests on 20 columns take six of 25 dimensions. Dimensions are added, and then the step is halved, until the
largest error is within ``TOLERANCE``, as a share of the row's largest coefficient at the same bandwidth.
"""

from __future__ import annotations

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
    from limes._explanation import Explanation

# Largest error of a curve, as a share of the row's largest coefficient at the same bandwidth
TOLERANCE = 5e-4
_COARSEST = 1.0 / 2048.0
# Rows whose coefficients at all bandwidths are computed together: tables of forests are made once a block
_BLOCK = 2000


@dataclass(frozen=True, eq=False)
class BandwidthCurves:
    """Curves of n rows, d features and k outputs, per standard deviation where features are slopes.

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
        for start in range(0, len(explanation), _BLOCK):
            rows = explanation[start : start + _BLOCK]
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
