"""One series as users pass it, and its parts: segments of time, or bands of frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes._explainers.time_series.segments import Fill, Segment, band_edges, bands_of
from limes._explanation.wording import count as counted
from limes.exceptions import InputError
from limes.models._algebra import over_switches
from limes.models._calling.networks import columns
from limes.models._hidden import changed, relabelled
from limes.models.forms._base import Form
from limes.models.forms._linked import Linked
from limes.models.forms._presence import Switches
from limes.models.forms._reducible import Linear


@dataclass(frozen=True, eq=False)
class Series:
    """A series of T steps and C channels.

    Attributes
    ----------
    values
        (T, C).
    single
        Whether the user's series has no axis of channels.
    ticks
        What the steps are called, T texts; their positions where the user has no names.
    channels
        What the channels are called; () where there is one without a name.
    """

    values: Floats
    single: bool
    ticks: tuple[str, ...]
    channels: tuple[str, ...]

    @classmethod
    def parse(cls, raw: Any, layout: str | None = None) -> Series:
        """Take an array (T,) or (T, C), a pandas Series or a frame with a column a channel.

        Raises
        ------
        InputError
            If it is something else, is empty, or has a number that is not finite: says where. If it has fewer
            steps than channels, unless the ``layout`` "last" was passed: says what else it may be.
        """
        values = np.asarray(raw)
        if values.dtype.kind not in "biuf":
            raise InputError(f"a series is numbers, (T,) or (T, channels); got {values.dtype}")
        if values.ndim not in (1, 2) or not values.size:
            raise InputError(
                f"a series is (T,) or (T, channels), got shape {values.shape}; pass several series as a list"
            )
        table = values.astype(np.float64).reshape(len(values), -1)
        if table.shape[0] < table.shape[1] and layout != "last":
            raise InputError(_turned(*table.shape, layout))
        if not np.isfinite(table).all():
            step, channel = (int(i) for i in np.argwhere(~np.isfinite(table))[0])
            raise InputError(
                f"the series has {table[step, channel]} at step {step}, channel {channel}: fill gaps first"
            )
        index = getattr(raw, "index", None)
        names = range(len(table)) if index is None or callable(index) else index
        labels = getattr(raw, "columns", None)
        channels = range(table.shape[1]) if labels is None else labels
        return cls(
            table,
            single=values.ndim == 1,
            ticks=tuple(str(name) for name in names),
            channels=() if values.ndim == 1 else tuple(str(name) for name in channels),
        )

    def laid_out(self, batch: Any, *, first: bool) -> Any:
        """Return arrays (..., T, C) in the user's axes, channels before steps if ``first``."""
        if self.single:
            return batch[..., 0]
        return np.swapaxes(batch, -1, -2) if first else batch


def _turned(steps: int, channels: int, layout: str | None) -> str:
    """Return what a series of fewer steps than channels may be, and how to pass it."""
    shape = f"the series has shape ({steps}, {channels}), which is (steps, channels): "
    if layout == "first":
        return (
            f"{shape}pass series.T if it is (channels, steps); layout='first' is how the model gets it, and "
            "series are passed as (steps, channels)"
        )
    rows = "series[0] if it is one" if steps == 1 else f"list(numpy.asarray(series)) if it is {steps} series"
    return (
        f"{shape}pass series.T if it is (channels, steps), and layout='first' if the model takes (n, "
        f"channels, steps); {rows} of {channels} steps; or layout='last' if it has more channels than steps"
    )


class Parts(Protocol):
    """What the parts of a series are, and what is left where they are hidden."""

    @property
    def size(self) -> int:
        """Number of parts d."""

    @property
    def changes(self) -> Bools:
        """Whether hiding a part changes the series, (d,)."""

    def only(self, kept: Bools) -> Parts:
        """Return these parts; the others are always shown. Their names are those of all parts."""

    def batch(self, z: Floats) -> Floats:
        """Return the series (n, T, C) at rows z (n, d) of parts that are shown."""

    def over(self, form: Form, lay_out: Any) -> Form:
        """Return a form over the numbers of a series, in the order of ``lay_out``, as one over its parts."""

    def names(self, series: Series) -> tuple[str, ...]:
        """Return what the parts are called."""

    def spans(self) -> list[list[tuple[int, int, int]]] | None:
        """Return (channel, start, end) of the steps of each part; None if a part is not some steps."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Steps that are shown, or replaced by their fill.

    Attributes
    ----------
    shown, fill
        (T, C).
    labels
        (T, C) segment 0, ..., d - 1 of each number.
    """

    shown: Floats
    fill: Floats
    labels: Ints

    @property
    def size(self) -> int:
        """Number of segments d."""
        return int(self.labels.max()) + 1

    @property
    def changes(self) -> Bools:
        """Whether hiding a segment changes the series."""
        return changed(self.shown, self.fill, self.labels)

    def only(self, kept: Bools) -> Segments:
        """Return these segments; the others are always shown."""
        fill = np.where(kept[self.labels], self.fill, self.shown)
        return Segments(self.shown, fill, relabelled(self.labels, kept))

    def batch(self, z: Floats) -> Floats:
        """Return the series at rows z."""
        return np.where(z[:, self.labels] > 0, self.shown, self.fill)

    def over(self, form: Form, lay_out: Any) -> Form:
        """Return the form over segments."""
        shown, fill, labels = (lay_out(array).ravel() for array in (self.shown, self.fill, self.labels))
        return over_switches(form, Switches(shown, fill, labels))

    def names(self, series: Series) -> tuple[str, ...]:
        """Name each segment by its first and last step, and its channel where channels differ."""
        return tuple(_name(series, spans, self.labels.shape[1]) for spans in self.spans())

    def spans(self) -> list[list[tuple[int, int, int]]]:
        """Return the stretches of each segment in each channel."""
        spans: list[list[tuple[int, int, int]]] = [[] for _ in range(self.size)]
        for channel, labels in enumerate(self.labels.T):
            starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(labels)], strict=True):
                spans[labels[start]].append((channel, start, end))
        return spans


def _name(series: Series, spans: Sequence[tuple[int, int, int]], channels: int) -> str:
    _, start, end = spans[0]
    first, last = series.ticks[start], series.ticks[end - 1]
    steps = first if first == last else f"{first} to {last}"
    if len({channel for channel, _, _ in spans}) == channels:
        return steps
    return f"{series.channels[spans[0][0]]}, {steps}"


@dataclass(frozen=True, eq=False)
class Bands:
    """Bands of frequencies that are added to the series' mean, or left out.

    Attributes
    ----------
    shown, mean
        (T, C) the series, and its mean.
    bands
        (d, T, C).
    edges
        Where bands begin and end, in multiples of 1/T.
    apart
        Whether bands are hidden in each channel by itself: first all channels of the first band.
    """

    shown: Floats
    mean: Floats
    bands: Floats
    edges: tuple[int, ...]
    apart: bool

    @classmethod
    def split(cls, values: Floats, count: int, *, apart: bool) -> Bands:
        """Split a series (T, C) into at most this many bands."""
        mean, bands = bands_of(values, count)
        if apart:
            bands = (bands[:, None] * np.eye(values.shape[1])[:, None]).reshape(-1, *values.shape)
        return cls(values, mean, bands, tuple(band_edges(len(values), count)), apart)

    @property
    def size(self) -> int:
        """Number of bands d."""
        return len(self.bands)

    @property
    def changes(self) -> Bools:
        """Whether leaving a band out changes the series: not where it has no energy."""
        one = np.zeros(len(self.shown), dtype=np.int64)
        return np.array([changed(self.shown, self.shown - band, one)[0] for band in self.bands])

    def only(self, kept: Bools) -> Bands:
        """Return these bands; the others, which add nothing, are always there."""
        return replace(self, bands=self.bands[kept])

    def batch(self, z: Floats) -> Floats:
        """Return the series at rows z; the whole one without roundings."""
        batch = self.mean + np.tensordot(z, self.bands, axes=1)
        batch[(z > 0).all(axis=1)] = self.shown
        return np.asarray(batch)

    def over(self, form: Form, lay_out: Any) -> Form:
        """Return a linear form, or one behind a link, over bands.

        Raises
        ------
        InputError
            If it is no such form: bands share all steps.
        """
        if isinstance(form, Linked):
            return replace(form, margin=self.over(form.margin, lay_out))
        if not isinstance(form, Linear):
            raise InputError(f"a {type(form).__name__} is read over segments, but not over frequency bands")
        mean, bands = lay_out(self.mean).ravel(), lay_out(self.bands).reshape(self.size, -1)
        return Linear(bands @ form.coef, form.intercept + mean @ form.coef)

    def names(self, series: Series) -> tuple[str, ...]:
        """Name each band by its frequencies, in cycles a step."""
        steps = len(series.ticks)
        ends = [(start, end - 1) for start, end in zip(self.edges[:-1], self.edges[1:], strict=True)]
        names = [
            f"{first / steps:.3g}{'' if first == last else f' to {last / steps:.3g}'} cycles a step"
            for first, last in ends
        ]
        if not self.apart:
            return tuple(names)
        return tuple(f"{channel}, {name}" for name in names for channel in series.channels)

    def spans(self) -> None:
        """Return None: a band is in all steps."""


@dataclass(frozen=True, eq=False)
class SplitSeries:
    """A series with its parts, a `InputPiece` of composite models.

    Examples
    --------
    >>> import numpy as np
    >>> from limes import SeriesPart
    >>> split = SeriesPart(count=2).parse([1.0, 3.0, 4.0, 4.0])
    >>> split.parts.batch(np.array([[1.0, 0.0]])).ravel()
    array([1., 3., 3., 3.])
    """

    series: Series
    parts: Parts
    first: bool = False

    @property
    def changes(self) -> Bools:
        """Whether hiding a part changes the series, (d,)."""
        return self.parts.changes

    def only(self, kept: Bools) -> SplitSeries:
        """Return the series with these parts; the others are always shown."""
        return replace(self, parts=self.parts.only(kept))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the parts are called."""
        return self.parts.names(self.series)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What holds of the explained series: its parts are shown."""
        return tuple(f"{name} shown" for name in self.names)

    @property
    def data(self) -> Objects:
        """How long the parts are, (d,)."""
        steps, spans = len(self.series.ticks), self.parts.spans()
        lengths = [steps] * self.parts.size if spans is None else [sum(e - s for _, s, e in p) for p in spans]
        return np.array([counted(length, "step") for length in lengths], dtype=object)

    @property
    def key(self) -> bytes:
        """What tells series apart."""
        return blake2b(self.series.values.tobytes() + repr(self.names).encode(), digest_size=16).digest()

    @property
    def picture(self) -> Mapping[str, Any]:
        """What pictures are drawn from: the series, and the steps of each condition."""
        spans = self.parts.spans()
        if spans is None:
            return {}
        return {
            "series": {
                "values": self.series.values.T.tolist(),
                "ticks": list(self.series.ticks),
                "channels": list(self.series.channels),
            },
            "stretches": dict(zip(self.conditions, [[list(s) for s in part] for part in spans], strict=True)),
        }

    def compose(self, z: Floats) -> Any:
        """Return series as the user passes them, at rows z (n, d)."""
        return SeriesInputs(self, first=self.first, flat=False).compose(z)


@dataclass(frozen=True)
class Splitter:
    """Takes a series apart.

    Attributes
    ----------
    segment
        None for bands of frequencies.
    count
        How many parts at most.
    fill
        What hidden segments are replaced by.
    apart
        Whether the channels of a segment, or band, are separate features.
    """

    segment: Segment | None
    count: int
    fill: Fill
    apart: bool

    def __call__(self, series: Series) -> SplitSeries:
        """Return the series with its parts.

        Raises
        ------
        InputError
            If channels are to be separate features, and the series has no axis of channels.
        """
        values = series.values
        if self.apart and not series.channels:
            raise InputError("channels='apart' needs a series (T, channels), or a frame")
        if self.segment is None:
            return SplitSeries(series, Bands.split(values, self.count, apart=self.apart))
        labels = self.segment(values, self.count)
        fill = self.fill(values, labels)
        channels = np.arange(values.shape[1]) if self.apart else np.zeros(values.shape[1], dtype=np.int64)
        return SplitSeries(series, Segments(values, fill, labels[:, None] + channels * (labels.max() + 1)))


@dataclass(frozen=True, eq=False)
class SeriesInputs:
    """A series as the input of a model: see :class:`SwitchedInputs`.

    A function, or a network, takes batches (n, T), (n, T, C) or (n, C, T); an estimator rows of numbers.
    """

    split: SplitSeries
    first: bool
    flat: bool
    parts: ClassVar[str] = "segments"

    @classmethod
    def of_model(cls, model: Any, split: SplitSeries, *, first: bool) -> SeriesInputs:
        """Return the inputs that a class of models takes.

        Raises
        ------
        InputError
            If an estimator was fitted on another number of columns.
        """
        wanted, numbers = columns(model), split.series.values.size
        if wanted is not None and wanted != numbers:
            raise InputError(
                f"{type(model).__name__} was fitted on {wanted} numbers, and the series has {numbers}: pass "
                "series of the length and channels that it was fitted on"
            )
        return cls(split, first, wanted is not None)

    @property
    def size(self) -> int:
        """Number of parts d."""
        return self.split.parts.size

    def compose(self, z: Floats) -> Any:
        """Return the batch at rows z."""
        batch = np.ascontiguousarray(self._laid_out(self.split.parts.batch(z)))
        return batch.reshape(len(z), -1) if self.flat else batch

    def over(self, form: Form) -> Form:
        """Return the form of an estimator over the parts."""
        return self.split.parts.over(form, self._laid_out)

    def _laid_out(self, batch: Any) -> Any:
        return self.split.series.laid_out(batch, first=self.first)
