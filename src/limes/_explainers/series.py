"""Explain series, whose segments of time or bands of frequencies are shown or hidden.

A segmentation is a function (values (T, C), count) -> labels (T,) that do not decrease; a fill is a function
(values (T, C), labels (T,)) -> numbers (T, C).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Never, TypeAlias, Unpack

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects, fingerprint
from limes._checks import check_choice, check_count, refuse_in_call
from limes._explainers.backgrounds import check_hide, mean_over, several, split_rows
from limes._explainers.masked import InputModel, MaskedExplainer, MaskedInput
from limes._explainers.options import MaskedKeywords, complete, takes
from limes._explanation.wording import count as counted
from limes._warnings import sentence
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError, ModelError
from limes.models._images import CHANNELS as LAYOUTS
from limes.models._images import Switched, changed, columns
from limes.models.forms._base import Form, Linear
from limes.models.forms._linked import Linked
from limes.models.forms._presence import Switches

# Recordings have fewer channels as a rule, and series more steps
_MANY_CHANNELS = 24


@takes(MaskedKeywords, max_calls=1100, batch_size=256)
class SeriesExplainer(MaskedExplainer["SplitSeries"]):
    r"""Explain predictions on time series, by segments of time or bands of frequencies.

    The surrogate g = β₀ + Σ_j β_j z_j minimises E_w (f - g)², with z_j = 1 if segment j is shown, 0 if it is
    hidden. Perturbed series hide s of the d segments: s is uniform on 1, ..., d, then the segments are
    uniform. They are weighted towards the series by exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A callable (or anything with ``predict``) that takes a batch of series and returns (n,) or (n, k); a
        ``torch.nn.Module``; or a fitted estimator, which gets series flattened to rows, and is read if it can
        be.
    segments
        "equal": of equal length. "changepoint": segments that vary least, Ward's clusters of neighbouring
        steps. "frequency": bands of equally many frequencies, which add up to the series. Whole numbers, one
        a step; or a callable series (T, C) -> such numbers.
    count
        Largest number of segments or bands. Up to 10 are exact for any model, which is called on all 2^10
        series.
    fill
        What replaces a hidden segment: the "mean" of the series, or where the segment is level with it, a
        standard deviation more; a "line" from the value before it to the one after it; "noise" of the series'
        mean and spread, drawn once; numbers: one, one a channel, or one a step; or a callable (series,
        labels) -> such numbers. A segment that is the same when it is hidden has a NaN coefficient, with a
        warning. "background mean" is the mean of the ``background``, step by step.
    hide
        "fill": a hidden segment shows its fill. "background": each perturbed series shows, in all hidden
        segments, one series of the ``background``, drawn at random, with as many steps and channels as the
        explained one. The mean over the background is then explained: exactly where the 2^d subsets with
        all series are at most ``max_calls``; elsewhere errors include the draw.
    background
        Several series, as a list or (n, T, C); an array (n, T), or a table, is n series of one channel.
    channels
        "together": a segment is hidden in all channels at once. "apart": in each channel separately.
    layout
        What the model takes. "last": (n, T, C). "first": (n, C, T), as models of torch, sktime and aeon do;
        series are passed as (T, C) all the same. None: "last", and a series of fewer steps than channels is
        refused, as it is most likely (C, T), or several series (n, T): "last" confirms it.
    bandwidth
        ν > 0, infinity allowed.
    output, top, labels, link
        As for :class:`limes.ImageExplainer`.
    ridge, method, tolerance, max_calls, control, rng, batch_size, retry, contributions, threshold
        As for :class:`limes.TextExplainer`.

    Raises
    ------
    InputError
        If an option is not usable.

    References
    ----------
    The law of hidden segments is that of words in Mardaoui & Garreau, "An Analysis of LIME for Text Data",
    2021, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> def late_rise(series):
    ...     return series[:, 6:].mean(axis=1) - series[:, :6].mean(axis=1)
    >>> explanation = limes.SeriesExplainer(late_rise, count=4, fill=0.0)(np.arange(12.0))
    >>> explanation.method, explanation.feature_names
    ('exact', ('0 to 2', '3 to 5', '6 to 8', '9 to 11'))
    >>> explanation.coefficients.values[0].round(6).tolist()
    [-0.5, -2.0, 3.5, 5.0]
    """

    _kind = "series"
    _several = "series"
    _features = "segments"
    _feature = "segment"
    _hidden = "hidden"
    _meaning = "change of the surrogate when the segment is shown against when it is hidden"
    _advice = "use another fill, or fewer bands"
    _design = staticmethod(ExchangeableDesign.word_deletions)

    def __init__(
        self,
        model: Any,
        *,
        segments: Any = "equal",
        count: int = 10,
        fill: Any = "mean",
        hide: str = "fill",
        background: Any = None,
        channels: str = "together",
        layout: str | None = None,
        bandwidth: float = BANDWIDTH,
        ridge: float = 0.0,
        **options: Unpack[MaskedKeywords],
    ) -> None:
        chosen = complete(SeriesExplainer, options)
        self._part = SeriesPart(
            segments=segments,
            count=count,
            fill=fill,
            hide=hide,
            background=background,
            channels=channels,
            layout=layout,
        )
        self._model = InputModel.of(model, chosen)
        super().__init__(
            model,
            self._part.parse,
            chosen,
            bandwidth,
            ridge,
            segments=segments,
            fill=fill if hide == "fill" else f"drawn from {len(self._part.items)} series",
            channels=channels,
        )

    def __call__(self, series: Any, *, progress: bool = True, workers: int = 1, **unknown: Never) -> Any:
        """Explain one series, or each of several.

        Parameters
        ----------
        series
            (T,), (T, C), a pandas Series, or a frame with a column a channel, gives an explanation of one
            row; a list of them, or (n, T, C), a list of explanations, as does (n, T) for an estimator that
            was fitted on T columns. Lengths may differ where the model allows it.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Series that are explained at the same time, each in its own thread.

        Raises
        ------
        InputError
            If it is no series, or none that the model takes: says which.
        ModelError
            If the model fails; its ``partial`` has the explanations of the series before.
        NotReadableError
            If ``method="exact"``, the model cannot be read, and there are too many segments to ask about all.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        if unknown:
            refuse_in_call(unknown, SeriesExplainer)
        several = _as_list(series, columns(self._model.model))
        try:
            return self._explain(series, several, progress=progress, workers=workers)
        except ModelError as error:
            if self._part.layout is None and _convolves(self._model.model):
                error.args = (f"{error}; {_CONVOLUTIONS}",)
            raise

    def _remarks(self, item: SplitSeries) -> tuple[str, ...]:
        steps, channels = item.series.values.shape
        warnings = [] if len(item.names) > 1 else [sentence("input", "one segment")]
        warnings += [item.series.remark] if item.series.remark else []
        if channels > _MANY_CHANNELS and self._part.layout is None:
            warnings.append(sentence("input", "channels", steps=steps, channels=channels))
        return tuple(warnings)


# What networks of torch do with series that other models take as they are
_CONVOLUTIONS = (
    "its convolutions take (n, channels, steps), and series are passed as (n, steps, channels), or (n, "
    "steps) without an axis of channels: pass layout='first', and a series of one channel as (steps, 1)"
)


def _convolves(model: Any) -> bool:
    return any(type(part).__name__ == "Conv1d" for part in getattr(model, "modules", list)())


def _as_list(series: Any, fitted_on: int | None) -> list[Any] | None:
    """Return several series as a list, None if it is one; ``fitted_on`` columns was the estimator fitted."""
    if getattr(series, "shape", ())[1:] == (fitted_on,):
        rows = series.iloc if hasattr(series, "iloc") else np.asarray(series)
        return [rows[i] for i in range(len(series))]
    if isinstance(series, list | tuple) and any(np.ndim(one) >= 1 for one in series):
        return list(series)
    return list(series) if isinstance(series, np.ndarray) and series.ndim == 3 else None


Segment: TypeAlias = Callable[[Floats, int], Ints]
Fill: TypeAlias = Callable[[Floats, Ints], Floats]

FREQUENCY, BACKGROUND_MEAN = "frequency", "background mean"
CHANNELS = ("together", "apart")


@dataclass(frozen=True, kw_only=True)
class SeriesPart:
    """A series, whose segments or bands are features; the model gets an array (n, T) or (n, T, C).

    Parameters
    ----------
    segments, count, fill, hide, background, channels, layout
        As for :class:`limes.SeriesExplainer`.

    Raises
    ------
    InputError
        If an option is not usable.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> part = limes.SeriesPart(count=2, fill=0.0)
    >>> part.parse([1.0, 2.0, 3.0, 4.0]).compose(np.array([[0.0, 1.0]]))
    array([[0., 0., 3., 4.]])
    """

    segments: Any = "equal"
    count: int = 10
    fill: Any = "mean"
    hide: str = "fill"
    background: Any = None
    channels: str = "together"
    layout: str | None = None

    def __post_init__(self) -> None:
        check_choice("channels", self.channels, CHANNELS)
        check_hide(self.hide, self.background, self.fill, usual="mean", also=(BACKGROUND_MEAN,))
        if self.layout is not None:
            check_choice("layout", self.layout, LAYOUTS)
        check_count("count", self.count)
        if self._in_bands and not (
            isinstance(self.fill, str) and self.fill == "mean" and self.hide == "fill"
        ):
            raise InputError(
                "fill= and hide= have no effect on bands of frequencies, which are removed: leave them out"
            )
        if not self._uses_mean:
            filler(self.fill)
        shapes = {item.shape for item in self.items}
        if len(shapes) > 1:
            raise InputError(f"the series of the background have different shapes: {sorted(shapes)}")
        if not self._in_bands:
            segmenter(self.segments)

    @cached_property
    def items(self) -> list[Floats]:
        """The series of the background, (T, C) each."""
        if self.background is None:
            return []
        items = []
        for i, one in enumerate(several(self.background, (2, 3), "series")):
            try:
                items.append(Series.parse(one, self.layout).values)
            except InputError as error:
                raise InputError(f"background, series {i}: {error}") from None
        return items

    @property
    def _uses_mean(self) -> bool:
        return isinstance(self.fill, str) and self.fill == BACKGROUND_MEAN

    @property
    def _in_bands(self) -> bool:
        return isinstance(self.segments, str) and self.segments == FREQUENCY

    def parse(self, raw: Any) -> SplitSeries:
        """Take a series, ``raw``, apart.

        Raises
        ------
        InputError
            If it is no series; if channels are to be separate features, and it has no axis of channels.
        """
        series = Series.parse(raw, self.layout)
        values, apart, first = series.values, self.channels == "apart", self.layout == "first"
        if apart and not series.channels:
            raise InputError("channels='apart' needs a series (T, channels), or a frame")
        if self._in_bands:
            return Bands.split(series, self.count, apart=apart, first=first)
        labels = segmenter(self.segments)(values, self.count)
        if self.items and self.items[0].shape != values.shape:
            raise InputError(
                f"the series has shape {values.shape}, and those of the background have "
                f"{self.items[0].shape}, (steps, channels): pass series of one length"
            )
        if self.hide == "background":
            fill = np.stack(self.items) if len(self.items) > 1 else self.items[0]
        elif self._uses_mean:
            fill = np.mean(self.items, axis=0)
        else:
            fill = filler(self.fill)(values, labels)
        channels = np.arange(values.shape[1]) if apart else np.zeros(values.shape[1], dtype=np.int64)
        labels_of_numbers = labels[:, None] + channels * (labels.max() + 1)
        return Segments(series, first, values, fill, labels_of_numbers)


@dataclass(frozen=True, eq=False)
class Series:
    values: Floats  # (T, C)
    single: bool  # whether the user's series has no axis of channels
    ticks: tuple[str, ...]  # names of the steps; their positions where the user has none
    axis: str  # what they are named by
    channels: tuple[str, ...]  # names of the channels; () where there is one without a name
    remark: str = ""  # on an index that names no steps

    @classmethod
    def parse(cls, raw: Any, layout: str | None = None) -> Series:
        """Take an array (T,) or (T, C), a pandas Series or a frame with a column a channel."""
        if isinstance(raw, np.ma.MaskedArray) and np.ma.is_masked(raw):
            raise InputError("the series has masked steps: pass series.filled(...) with values for them")
        values = np.asarray(raw)
        if values.dtype.kind not in "biuf":
            raise InputError(
                f"a series is numbers, (T,) or (T, channels); got {values.dtype}: {_numbers_of(raw, values)}"
            )
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
        ticks, axis, remark = _steps_of(raw, len(table))
        labels = getattr(raw, "columns", None)
        channels = [str(name) for name in (range(table.shape[1]) if labels is None else labels)]
        if len({*channels}) < len(channels):
            channels = [f"{name} ({j})" for j, name in enumerate(channels)]
        return cls(
            table,
            single=values.ndim == 1,
            ticks=ticks,
            axis=axis,
            channels=() if values.ndim == 1 else tuple(channels),
            remark=remark,
        )


def _numbers_of(raw: Any, values: Any) -> str:
    """Return what to pass in place of a series of other objects than numbers."""
    if isinstance(raw, Mapping):
        return "pass numpy.column_stack(list(series.values())), a column a channel"
    first: Any = values.ravel()[0] if values.size else None
    if not np.ndim(first):
        return "convert them, such as by numpy.array(series, dtype=float)"
    if values.ndim == 2:  # sktime's nested frames
        return (
            "its cells are series themselves, a row a case: pass [numpy.column_stack(list(row)) for row in "
            "frame.to_numpy()]"
        )
    return "its entries are series themselves: pass list(series)"


def _steps_of(raw: Any, count: int) -> tuple[tuple[str, ...], str, str]:
    """Names of the steps, and of their axis: those of the index of pandas, or positions; and a remark."""
    index, positions = getattr(raw, "index", None), tuple(map(str, range(count)))
    if index is None or callable(index):
        return positions, "step", ""
    index = _one_level(index)
    if not index.is_unique:
        _refuse_stack(index)
        again = index[index.duplicated()][0]
        return positions, "step", f"the index has {str(again)!r} several times: steps are named by position"
    remark = ""
    if not (index.is_monotonic_increasing or index.is_monotonic_decreasing) and index.dtype.kind in "iufMm":
        remark = sentence("input", "index")
    names = [str(name) for name in index]
    for end in (" 00:00:00", ":00"):  # days have no time of the day, nor minutes seconds
        if all(_TIME.fullmatch(name) and name.endswith(end) for name in names):
            names = [name.removesuffix(end) for name in names]
            break
    axis = getattr(index, "name", None)
    return tuple(names), "" if axis is None else str(axis), remark


def _one_level(index: Any) -> Any:
    """The index of the steps of one series; refuse one that has several series below each other."""
    names = [level for level in range(index.nlevels) if index.get_level_values(level).nunique() > 1]
    if index.nlevels == 1 or len(names) < 2:  # a case of a panel has one value in the other levels
        return index.get_level_values(names[0] if names else index.nlevels - 1)
    outer = names[0] if len(names) == 2 else names[:-1]
    sizes = " and ".join(str(index.get_level_values(level).nunique()) for level in names)
    raise InputError(
        f"the index has {len(names)} levels, of {sizes} values, as a stack of several series has: pass a "
        f"list, [one.droplevel({outer}) for _, one in series.groupby(level={outer})], or one series with one "
        "level"
    )


def _refuse_stack(index: Any) -> None:
    """Raise if the same steps begin again, as in a table with several series below each other."""
    starts = np.flatnonzero(index == index[0])
    parts = [index[i:end] for i, end in pairwise([*starts.tolist(), len(index)])]
    longest = max(parts, key=len)
    is_several = len(parts) > 1 and len(longest) > 1 and longest.is_unique
    if is_several and all(part.equals(longest[: len(part)]) for part in parts):
        raise InputError(
            f"the index begins again {len(parts) - 1} times, as in a stack of several series: pass a list, "
            f"numpy.split(numpy.asarray(series), {starts[1:].tolist()}), or one series with an index that "
            "does not repeat"
        )


# A point in time as pandas writes it
_TIME = re.compile(r"\d+-\d\d-\d\d \d\d:\d\d:\d\d")


def _turned(steps: int, channels: int, layout: str | None) -> str:
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


# (channel, start, end) of the steps of a segment, in each channel
Spans: TypeAlias = list[tuple[int, int, int]]


@dataclass(frozen=True, eq=False)
class SplitSeries(MaskedInput):
    series: Series
    first: bool  # whether the model gets channels before steps

    @abstractmethod
    def batch(self, z: Floats) -> Floats:
        """Series (n, T, C) at rows z (n, d)."""

    @property
    def spans(self) -> list[Spans] | None:
        """The steps of each part, (d,); None where each is in all steps."""
        return None

    @property
    def data(self) -> Objects:
        steps, spans = len(self.series.ticks), self.spans
        lengths = [steps] * self.size if spans is None else [sum(e - s for _, s, e in p) for p in spans]
        return np.array([counted(length, "step") for length in lengths], dtype=object)

    @property
    def key(self) -> bytes:
        return blake2b(self.series.values.tobytes() + repr(self.names).encode(), digest_size=16).digest()

    @property
    def picture(self) -> Mapping[str, Any]:
        if self.spans is None:
            return {}
        return {
            "series": {
                "values": self.series.values.T.tolist(),
                "ticks": list(self.series.ticks),
                "channels": list(self.series.channels),
                "axis": self.series.axis,
            },
            "stretches": dict(
                zip(self.conditions, [[list(s) for s in part] for part in self.spans], strict=True)
            ),
        }

    def compose(self, z: Floats) -> Any:
        """Series at rows z (n, d) for a function or a network, (n, T), (n, T, C) or (n, C, T)."""
        return np.ascontiguousarray(self._in_axes_of_model(self.batch(z)))

    def composer(self, model: Any) -> Callable[[Floats], Any]:
        wanted, numbers = columns(model), self.series.values.size
        if wanted is None:
            return self.compose
        if wanted != numbers:
            raise InputError(
                f"{type(model).__name__} was fitted on {wanted} numbers, and the series has {numbers}: pass "
                "series of the length and channels that it was fitted on"
            )
        return lambda z: self.compose(z).reshape(len(z), -1)

    def _in_axes_of_model(self, batch: Any) -> Any:
        """Arrays (..., T, C) in the axes that the model takes."""
        if self.series.single:
            return batch[..., 0]
        return np.swapaxes(batch, -1, -2) if self.first else batch


@dataclass(frozen=True, eq=False)
class Segments(Switched, SplitSeries):
    """Steps (T, C) that are shown, or replaced by their fill, with labels (T, C)."""

    def batch(self, z: Floats) -> Floats:
        z, items = split_rows(z, self.draws)
        return np.asarray(np.where(z[:, self.labels] > 0, self.shown, self.fills[items]))

    def over(self, read: Callable[[], Form]) -> Form:
        shown, labels, *fills = (
            self._in_axes_of_model(array).ravel() for array in (self.shown, self.labels, *self.fills)
        )
        return mean_over(read(), [Switches(shown, fill, labels) for fill in fills])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(_name(self.series, spans, self.labels.shape[1]) for spans in self.spans)

    @cached_property
    def spans(self) -> list[Spans]:
        spans: list[Spans] = [[] for _ in range(self.size)]
        for channel, labels in enumerate(self.labels.T):
            starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(labels)], strict=True):
                spans[labels[start]].append((channel, start, end))
        return spans


def _name(series: Series, spans: Spans, channels: int) -> str:
    _, start, end = spans[0]
    first, last = series.ticks[start], series.ticks[end - 1]
    steps = first if first == last else f"{first} to {last}"
    if len({channel for channel, _, _ in spans}) == channels:
        return steps
    return f"{series.channels[spans[0][0]]}, {steps}"


@dataclass(frozen=True, eq=False)
class Bands(SplitSeries):
    """Bands of frequencies that are added to the series' mean, or left out."""

    mean: Floats  # (T, C)
    bands: Floats  # (d, T, C)
    edges: tuple[int, ...]  # where bands begin and end, in multiples of 1/T
    apart: (
        bool  # whether bands are hidden in each channel by itself: all channels of the first band come first
    )

    @classmethod
    def split(cls, series: Series, count: int, *, apart: bool, first: bool) -> Bands:
        """Split a series into at most ``count`` bands.

        They hold equally many frequencies, as near as possible, and add up with the mean to the series.
        """
        values = series.values
        frequencies = len(values) // 2
        count = max(1, min(count, frequencies))
        # among the frequencies 0, 1/T, 2/T, ..., of which the first is the mean
        edges = [1 + frequencies * band // count for band in range(count + 1)]
        spectrum = np.fft.rfft(values, axis=0)
        bands = np.zeros((count, *values.shape))
        for band, (low, high) in zip(bands, pairwise(edges), strict=True):
            part = np.zeros_like(spectrum)
            part[low:high] = spectrum[low:high]
            band[:] = np.fft.irfft(part, n=len(values), axis=0)
        if apart:
            bands = (bands[:, None] * np.eye(values.shape[1])[:, None]).reshape(-1, *values.shape)
        mean = np.broadcast_to(values.mean(axis=0), values.shape)
        return cls(series, first, mean, bands, tuple(edges), apart)

    @property
    def size(self) -> int:
        return len(self.bands)

    @property
    def changes(self) -> Bools:
        shown = self.series.values
        one = np.zeros(len(shown), dtype=np.int64)
        return np.array([changed(shown, shown - band, one)[0] for band in self.bands])

    def only(self, kept: Bools) -> Bands:
        return replace(self, bands=self.bands[kept])

    def batch(self, z: Floats) -> Floats:
        batch = np.broadcast_to(self.mean, (len(z), *self.mean.shape)).copy()
        # one by one, as sums by BLAS round by the number of rows
        for shown, band in zip(z.T > 0, self.bands, strict=True):
            batch[shown] += band
        batch[(z > 0).all(axis=1)] = self.series.values  # without roundings
        return batch

    def over(self, read: Callable[[], Form]) -> Form:
        form = read()
        if isinstance(form, Linked):
            return replace(form, margin=self.over(lambda: form.margin))
        if not isinstance(form, Linear):
            raise InputError(f"a {type(form).__name__} is read over segments, but not over frequency bands")
        mean = self._in_axes_of_model(self.mean).ravel()
        bands = self._in_axes_of_model(self.bands).reshape(self.size, -1)
        return Linear(bands @ form.coef, form.intercept + mean @ form.coef)

    @property
    def names(self) -> tuple[str, ...]:
        steps, channels = len(self.series.ticks), self.series.channels
        names = [
            f"{first / steps:.3g}{'' if first == end - 1 else f' to {(end - 1) / steps:.3g}'} cycles a step"
            for first, end in pairwise(self.edges)
        ]
        return tuple(
            [f"{channel}, {name}" for name in names for channel in channels] if self.apart else names
        )


# -- by name -------------------------------------------------------------------------------------------------


def segmenter(segments: Any) -> Segment:
    if isinstance(segments, str):
        return _SEGMENTATIONS[check_choice("segments", segments, tuple(_SEGMENTATIONS))]
    if callable(segments):
        return partial(_labels_of, segments)
    return partial(_same_labels, segments)


def _labels_of(segments: Callable[[Floats], Any], values: Floats, count: int) -> Ints:  # noqa: ARG001
    return checked_labels(segments(values), len(values))


def _same_labels(segments: Any, values: Floats, count: int) -> Ints:  # noqa: ARG001
    return checked_labels(segments, len(values))


def checked_labels(labels: Any, steps: int) -> Ints:
    """Whole numbers, one a step, as labels from 0 to d - 1."""
    array = np.asarray(labels)
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and (array == np.rint(array)).all())
    if array.shape == () and whole:
        raise InputError(f"segments={labels!r} is a number: pass it as count={labels!r}")
    if array.shape != (steps,) or not whole:
        raise InputError(
            f"segments must be one of {[*_SEGMENTATIONS, FREQUENCY]}, a callable series -> labels, or a "
            f"whole number a step; got {array.dtype} of shape {array.shape} for {steps} steps"
        )
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _equal(values: Floats, count: int) -> Ints:
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


def filler(fill: Any) -> Fill:
    if isinstance(fill, str):
        return _FILLS[check_choice("fill", fill, tuple(_FILLS))]
    if callable(fill):
        return partial(_filled, fill)
    return partial(_same_fill, fill)


def _filled(fill: Fill, values: Floats, labels: Ints) -> Floats:
    return _shaped(fill(values, labels), values)


def _same_fill(fill: Any, values: Floats, labels: Ints) -> Floats:  # noqa: ARG001
    return _shaped(fill, values)


def _shaped(fill: Any, values: Floats) -> Floats:
    numbers = np.asarray(fill)
    if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
        raise InputError(f"fill must be one of {list(_FILLS)}, finite numbers, or a callable; got {fill!r}")
    steps, channels = values.shape
    if numbers.shape == (steps,) and steps == channels > 1:
        raise InputError(
            f"fill has {steps} numbers, and the series has {steps} steps and {steps} channels: pass an array "
            f"of shape ({steps}, 1) for one a step, or (1, {steps}) for one a channel"
        )
    if numbers.shape == (steps,):
        numbers = numbers[:, None]
    if numbers.shape not in ((), (channels,), (1, channels), (steps, 1), values.shape):
        raise InputError(
            f"fill has shape {numbers.shape}: it must be one number, one a channel ({channels}), or "
            f"one a step ({steps})"
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
