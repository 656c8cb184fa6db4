"""Segments of a series, and what stands in their place where they are hidden.

A segmentation is a function (values (T, C), count) -> labels (T,) that do not decrease; a fill is a function
(values (T, C), labels (T,)) -> numbers (T, C).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints, fingerprint
from limes._checks import check_choice
from limes.exceptions import InputError
from limes.models._hidden import changed

Segment: TypeAlias = Callable[[Floats, int], Ints]
Fill: TypeAlias = Callable[[Floats, Ints], Floats]

FREQUENCY = "frequency"


def segmenter(segments: Any) -> Segment:
    """Return the option ``segments`` as a function from a series to labels.

    Raises
    ------
    InputError
        If it is neither a known name, nor labels, nor a callable.
    """
    if isinstance(segments, str):
        return _SEGMENTATIONS[check_choice("segments", segments, tuple(_SEGMENTATIONS))]
    if callable(segments):
        return lambda values, count: checked_labels(segments(values), len(values))  # noqa: ARG005
    return lambda values, count: checked_labels(segments, len(values))  # noqa: ARG005


def checked_labels(labels: Any, steps: int) -> Ints:
    """Return any whole numbers, one a step, as labels from 0 to d - 1.

    Raises
    ------
    InputError
        If they are no whole numbers, or not one a step.
    """
    array = np.asarray(labels)
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and (array == np.rint(array)).all())
    if array.shape != (steps,) or not whole:
        raise InputError(
            f"segments must be one of {[*_SEGMENTATIONS, FREQUENCY]}, a callable series -> labels, or a "
            f"whole number a step; got {array.dtype} of shape {array.shape} for {steps} steps"
        )
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _equal(values: Floats, count: int) -> Ints:
    """Segments of equal length, as near as possible."""
    steps = len(values)
    return np.asarray(np.arange(steps) * min(count, steps) // steps)


def _change_points(values: Floats, count: int) -> Ints:
    """Segments that vary least: Ward's clusters of neighbouring steps, in units of each channel's spread."""
    from scipy.sparse import diags_array
    from sklearn.cluster import AgglomerativeClustering

    steps = len(values)
    if count >= steps:
        return np.arange(steps)
    spread = values.std(axis=0)
    scaled = values / np.where(spread > 0, spread, 1.0)
    path = diags_array([np.ones(steps - 1)], offsets=[1], shape=(steps, steps)).tocsr()
    clusters = AgglomerativeClustering(min(count, steps), connectivity=path + path.T).fit_predict(scaled)
    # numbered in the order of time
    return np.cumsum(np.diff(clusters, prepend=clusters[0]) != 0)


_SEGMENTATIONS: Mapping[str, Segment] = {"equal": _equal, "changepoint": _change_points}


def bands_of(values: Floats, count: int) -> tuple[Floats, Floats]:
    """Split a series into bands of frequencies: its mean (T, C), and what each band adds, (d, T, C).

    The mean and the bands add up to the series. Bands hold equally many frequencies, as near as possible.
    """
    spectrum = np.fft.rfft(values, axis=0)
    spectrum[0] = 0.0
    edges = band_edges(len(values), count)
    bands = np.zeros((len(edges) - 1, *values.shape))
    for band, first, last in zip(bands, edges[:-1], edges[1:], strict=True):
        part = np.zeros_like(spectrum)
        part[first:last] = spectrum[first:last]
        band[:] = np.fft.irfft(part, n=len(values), axis=0)
    return np.broadcast_to(values.mean(axis=0), values.shape), bands


def band_edges(steps: int, count: int) -> list[int]:
    """Return where bands begin and end among the frequencies 0, 1/T, 2/T, ...; the first is left out."""
    frequencies = steps // 2
    bands = max(1, min(count, frequencies))
    return [1 + frequencies * band // bands for band in range(bands + 1)]


def filler(fill: Any) -> Fill:
    """Return the option ``fill`` as a function.

    Raises
    ------
    InputError
        If it is neither a known name, nor numbers, nor a callable.
    """
    if isinstance(fill, str):
        return _FILLS[check_choice("fill", fill, tuple(_FILLS))]
    if callable(fill):
        return lambda values, labels: _shaped(fill(values, labels), values)
    return lambda values, labels: _shaped(fill, values)  # noqa: ARG005 - the same for every segment


def _shaped(fill: Any, values: Floats) -> Floats:
    numbers = np.asarray(fill)
    if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
        raise InputError(f"fill must be one of {list(_FILLS)}, finite numbers, or a callable; got {fill!r}")
    if numbers.shape == values.shape[:1]:
        numbers = numbers[:, None]
    if numbers.shape not in ((), values.shape[1:], (len(values), 1), values.shape):
        raise InputError(
            f"fill has shape {numbers.shape}: it must be one number, one a channel ({values.shape[1]}), or "
            f"one a step ({len(values)})"
        )
    return np.broadcast_to(numbers, values.shape).astype(np.float64)


def _mean(values: Floats, labels: Ints) -> Floats:
    """The mean of each channel; a segment that is level with it is raised by the channel's deviation.

    At the mean such a segment would not be hidden.
    """
    fill = np.broadcast_to(values.mean(axis=0), values.shape).copy()
    for channel, numbers in enumerate(values.T):
        level = ~changed(numbers[:, None], fill[:, channel : channel + 1], labels)[labels]
        fill[level, channel] += numbers.std()
    return fill


def _line(values: Floats, labels: Ints) -> Floats:
    """A straight line from the value before a segment to the one behind it; level at the ends of a series."""
    line = np.empty_like(values)
    steps = len(values)
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1)).tolist()
    for start, end in pairwise([*starts, steps]):
        before, behind = max(start - 1, 0), min(end, steps - 1)
        first = values[before] if start else values[behind]
        last = values[behind] if end < steps else first
        share = np.arange(1, end - start + 1)[:, None] / (end - start + 1)
        line[start:end] = first + share * (last - first)
    return line


def _noise(values: Floats, labels: Ints) -> Floats:  # noqa: ARG001 - the same for every segment
    """Normal noise with the mean and the spread of each channel, drawn once a series from its own numbers."""
    rng = np.random.default_rng(fingerprint(values.ravel()))
    return np.asarray(values.mean(axis=0) + values.std(axis=0) * rng.standard_normal(values.shape))


_FILLS: Mapping[str, Fill] = {"mean": _mean, "line": _line, "noise": _noise}
