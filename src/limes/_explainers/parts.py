"""Kinds of inputs that are taken apart: a text, an image, a series, a row of a table.

A part has a splitter, which makes features of an input, and a filler, which says what stands where a feature
is hidden. :class:`limes.CompositeExplainer` explains models of several of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Objects, fingerprint
from limes._checks import check_choice, check_count
from limes._explainers.images.pixels import (
    checked_image,
    image_areas,
    image_conditions,
    image_fingerprint,
    image_picture,
    superpixel_names,
)
from limes._explainers.images.superpixels import filled, filler, segmenter, superpixels
from limes._explainers.tables.table import Table
from limes._explainers.texts.bound_model import (
    check_bag,
    check_mask,
    parse_text,
    splitter,
    word_conditions,
    word_spans,
)
from limes._explainers.time_series import segments as time_segments
from limes._explainers.time_series.series import Series, SplitSeries, Splitter
from limes._explanation.fields import is_missing
from limes._explanation.wording import number
from limes.exceptions import InputError
from limes.models._calling.networks import CHANNELS as LAYOUTS
from limes.models._documents import Document
from limes.models._images import SwitchedImage

CHANNELS = ("together", "apart")


class InputPiece(Protocol):
    """One input of a kind, taken apart into d features."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, (d,)."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What holds of the explained input, (d,)."""

    @property
    def data(self) -> Objects:
        """What is shown beside each feature, (d,)."""

    @property
    def key(self) -> Hashable:
        """What tells inputs apart."""

    @property
    def picture(self) -> Mapping[str, Any]:
        """What pictures are drawn from; empty where nothing is drawn."""

    @property
    def changes(self) -> Bools:
        """Whether hiding a feature changes the input, (d,)."""

    def compose(self, z: Floats) -> Any:
        """Return a batch of n inputs at rows z (n, d): 1 shows a feature, 0 hides it."""


class InputPart(Protocol):
    """A kind of input."""

    def parse(self, raw: Any) -> InputPiece:
        """Take an input apart.

        Raises
        ------
        InputError
            If it is no such input.
        """


# -- texts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TextPart:
    r"""A text, whose words are features; the model gets a list of texts.

    Parameters
    ----------
    split
        As for :class:`limes.TextExplainer`.
    bag
        True: a word is one feature, wherever it stands, and words are the same if they are spelt alike.
        False: every place is a feature.
    mask
        A text in the place of a word that is deleted; None leaves its place empty.

    Raises
    ------
    InputError
        If one of them is not usable.

    Examples
    --------
    >>> import limes
    >>> limes.TextPart().parse("good food").compose([[1, 0]])
    ['good ']
    """

    split: Any = r"\W+"
    bag: bool = True
    mask: str | None = None

    def __post_init__(self) -> None:
        splitter(self.split)
        check_bag(self.bag)
        check_mask(self.mask, None)

    def parse(self, raw: Any) -> InputPiece:
        """Split a text, ``raw``, into words."""
        return _TextPiece(parse_text(raw, splitter(self.split), bag=bool(self.bag), mask=self.mask or ""))


@dataclass(frozen=True)
class _TextPiece:
    document: Document

    @property
    def names(self) -> tuple[str, ...]:
        return self.document.names

    @property
    def conditions(self) -> tuple[str, ...]:
        return word_conditions(self.document)

    @property
    def data(self) -> Objects:
        return self.document.counts.astype(object)

    @property
    def key(self) -> Hashable:
        return self.document.text

    @property
    def picture(self) -> Mapping[str, Any]:
        spans = dict(zip(self.conditions, word_spans(self.document), strict=True))
        return {"text": self.document.text, "spans": spans}

    @property
    def changes(self) -> Bools:
        return self.document.changes

    def compose(self, z: Floats) -> list[str]:
        return self.document.texts(z)


# -- images --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ImagePart:
    """An image, whose superpixels are features; the model gets an array (n, H, W) or (n, H, W, C).

    Parameters
    ----------
    segments, segment_options, fill
        As for :class:`limes.ImageExplainer`.

    Raises
    ------
    InputError
        If an option is not usable.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> part = limes.ImagePart(segments=[[0, 1]], fill=0)
    >>> part.parse(np.array([[7, 9]])).compose(np.array([[0.0, 1.0]]))
    array([[[0, 9]]])
    """

    segments: Any = "quickshift"
    segment_options: Mapping[str, Any] | None = None
    fill: Any = "mean"

    def __post_init__(self) -> None:
        segmenter(self.segments, self.segment_options)
        filler(self.fill)

    def parse(self, raw: Any) -> InputPiece:
        """Segment an image, ``raw``."""
        pixels = checked_image(raw)
        labels = superpixels(segmenter(self.segments, self.segment_options), pixels)
        return _ImagePiece(SwitchedImage(pixels, filled(filler(self.fill), pixels, labels), labels))


@dataclass(frozen=True)
class _ImagePiece:
    image: SwitchedImage

    @property
    def names(self) -> tuple[str, ...]:
        return superpixel_names(self.image.size)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        return image_conditions(self.image.labels)

    @property
    def data(self) -> Objects:
        return np.asarray(image_areas(self.image.labels)[0])

    @property
    def key(self) -> Hashable:
        return image_fingerprint(self.image)

    @property
    def picture(self) -> Mapping[str, Any]:
        return image_picture(self.image, self.conditions)

    @property
    def changes(self) -> Bools:
        return self.image.changes

    def compose(self, z: Floats) -> Any:
        return self.image.images(z)


# -- series --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SeriesPart:
    """A series, whose segments or bands are features; the model gets an array (n, T) or (n, T, C).

    Parameters
    ----------
    segments, count, fill, channels, layout
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
    channels: str = "together"
    layout: str | None = None

    def __post_init__(self) -> None:
        check_choice("channels", self.channels, CHANNELS)
        if self.layout is not None:
            check_choice("layout", self.layout, LAYOUTS)
        check_count("count", self.count)
        if self._in_bands and not (isinstance(self.fill, str) and self.fill == "mean"):
            raise InputError(
                "fill goes with segments of time: a band of frequencies that is hidden is left out"
            )
        time_segments.filler(self.fill)
        if not self._in_bands:
            time_segments.segmenter(self.segments)

    @property
    def _in_bands(self) -> bool:
        return isinstance(self.segments, str) and self.segments == time_segments.FREQUENCY

    def parse(self, raw: Any) -> SplitSeries:
        """Take a series, ``raw``, apart."""
        split = Splitter(
            segment=None if self._in_bands else time_segments.segmenter(self.segments),
            count=self.count,
            fill=time_segments.filler(self.fill),
            apart=self.channels == "apart",
        )
        return replace(split(Series.parse(raw, self.layout)), first=self.layout == "first")


# -- rows of tables ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """A row of a table, whose columns are features; the model gets a table like the background.

    A hidden column takes its typical value: the median of numbers, the most frequent of all others. Where the
    row has this value itself, it takes the typical one of the background's other values.

    Parameters
    ----------
    background
        Any table; typical values are learnt from it.
    categorical
        As for :class:`limes.TabularExplainer`.

    Raises
    ------
    InputError
        If the background is no table.

    Examples
    --------
    >>> import pandas as pd
    >>> import limes
    >>> part = limes.TablePart(background=pd.DataFrame({"age": [30, 40, 50], "city": ["x", "x", "y"]}))
    >>> part.parse({"age": 60, "city": "y"}).compose([[1, 0]])
       age city
    0   60    x
    """

    background: Any
    categorical: Any = None
    _table: Table = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_table", Table.fit(self.background, categorical=self.categorical))

    @cached_property
    def typical(self) -> Floats:
        """What hidden columns show, encoded, (columns,)."""
        return np.array([self._typical(column, j) for j, column in enumerate(self._table.matrix.T)])

    @cached_property
    def others(self) -> Floats:
        """What they show where the row has the typical value; that value itself where there is no other."""
        others = [
            column[~_same(column, typical)]
            for column, typical in zip(self._table.matrix.T, self.typical, strict=True)
        ]
        return np.array(
            [self._typical(c, j) if c.size else self.typical[j] for j, c in enumerate(others)],
            dtype=np.float64,
        )

    def _typical(self, values: Floats, column: int) -> float:
        return _median(values) if self._table.numeric[column] else _most_frequent(values)

    def parse(self, raw: Any) -> InputPiece:
        """Take one row, ``raw``, apart into its columns.

        Raises
        ------
        InputError
            If it is not one row of such a table.
        """
        rows = self._table.encode(raw)
        if len(rows) != 1:
            raise InputError(f"a part is one row of a table, got {len(rows)}")
        hidden = np.where(_same(rows[0], self.typical), self.others, self.typical)
        return _TablePiece(self._table, rows[0], hidden)


def _same(values: Floats, other: Any) -> Bools:
    """Return where two encoded values are the same, as two missing ones are."""
    return np.asarray((values == other) | (np.isnan(values) & np.isnan(other)))


def _median(values: Floats) -> float:
    """Return the middle value that occurs: whole numbers stay whole."""
    present = values[~np.isnan(values)]
    return float(np.quantile(present, 0.5, method="lower")) if present.size else float("nan")


def _most_frequent(values: Floats) -> float:
    levels, counts = np.unique(values, return_counts=True, equal_nan=True)
    return float(levels[np.argmax(counts)])


@dataclass(frozen=True, eq=False)
class _TablePiece:
    table: Table
    row: Floats
    hidden: Floats

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        values = self.table.originals(np.stack([self.row, self.hidden])).T
        return tuple(
            f"{name} = {_short(value)}" + (f", not {_short(hidden)}" if changes else "")
            for name, (value, hidden), changes in zip(self.names, values, self.changes.tolist(), strict=True)
        )

    @property
    def data(self) -> Objects:
        return np.asarray(self.table.originals(self.row[None])[0])

    @property
    def key(self) -> Hashable:
        return fingerprint(self.row)

    @property
    def picture(self) -> Mapping[str, Any]:
        return {}

    @property
    def changes(self) -> Bools:
        return ~_same(self.row, self.hidden)

    def compose(self, z: Floats) -> Any:
        return self.table.decode(np.where(np.asarray(z) > 0, self.row, self.hidden))


def _short(value: Any) -> str:
    if is_missing(value):
        return "missing"
    return number(value) if isinstance(value, float) else str(value)
