"""Superpixels of an image, and what is shown where they are off.

A segmentation by name is a function of an RGB image (H, W, 3) of numbers between 0 and 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints, first_of_each
from limes._checks import check_choice, check_count, require, unknown_option
from limes._explainers.photographs import rgb
from limes._explanation.json import MAX_PIXELS
from limes._warnings import sentence
from limes.exceptions import InputError
from limes.models._images import Framing, changed, pixels_of

# -- superpixels ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Segmentation:
    """A function of an image to its superpixels, as users write them."""

    segment: Callable[[Any], Any]
    # whether it is asked about the photograph, or about the part of it that the network sees
    of_photo: bool = True


def always(value: Any, *_: Any) -> Any:
    """A value, whatever the image and its superpixels are."""
    return value


def _of_colours(segment: Callable[..., Ints], options: Mapping[str, Any], image: Any) -> Ints:
    return segment(rgb(image), **options)


def segmenter(segments: Any, options: Mapping[str, Any] | None) -> Segmentation:
    if isinstance(segments, str):
        check_choice("segments", segments, tuple(_SEGMENTATIONS))
        segment = _SEGMENTATIONS[segments]
        names = list(inspect.signature(segment).parameters)[1:]
        for option in options or {}:
            if option not in names:
                raise unknown_option(f"segments={segments!r}", option, names)
        return Segmentation(partial(_of_colours, segment, {**(options or {})}), of_photo=False)
    if options:
        raise InputError("segment_options go with a segmentation that is named, such as segments='slic'")
    if callable(segments):
        return Segmentation(segments)
    labels = checked_segments(segments)
    return Segmentation(partial(always, labels))


# Larger numbers of a user's superpixels are no names: superpixels are counted from 0 in their place
_LARGEST_NUMBER = 65_535
# Lost superpixels that a warning names
_MOST_NAMED = 8


@dataclass(frozen=True, eq=False)
class Superpixels:
    """The superpixels of what the network sees, and their numbers."""

    labels: Ints  # (h, w) from 0 to d - 1; d is a border around the photograph
    numbers: Ints  # (d,) the user's own, or 0 to d - 1
    lost: Ints  # numbers of segments that no pixel is left of
    of_photo: Ints | None = None  # (H, W) their numbers on the photograph, where they came with it

    @classmethod
    def of(cls, segmentation: Segmentation, photo: Any, pixels: Any, framing: Framing) -> Superpixels:
        """Segment a ``photo``, of which the network sees the ``pixels``."""
        labels, meant = _numbered(segmentation.segment(photo if segmentation.of_photo else pixels))
        if segmentation.of_photo and labels.shape == framing.photo:
            seen, inside = framing.seen_of(labels)
        elif labels.shape == framing.size:
            seen, inside = labels, np.ones(labels.shape, dtype=np.bool_)
        else:
            seen_size = " x ".join(map(str, framing.size))
            sizes = " x ".join(map(str, framing.photo))
            sizes += f", and {seen_size} where the network sees it" if framing.photo != framing.size else ""
            raise InputError(
                f"the segments have shape {labels.shape}, the image is {sizes}: pass one label per pixel"
            )
        numbers, places = np.unique(seen[inside], return_inverse=True)
        within = np.full(seen.shape, numbers.size)
        within[inside] = places.ravel()
        lost = np.setdiff1d(meant, numbers)
        is_named = numbers[0] >= 0 and numbers[-1] <= _LARGEST_NUMBER
        is_mapped = seen is not labels and framing.photo[0] * framing.photo[1] <= MAX_PIXELS
        named = numbers if is_named else np.arange(numbers.size)
        whole = None
        if is_mapped:
            place = np.minimum(np.searchsorted(numbers, labels), numbers.size - 1)
            whole = np.where(numbers[place] == labels, named[place], named[-1] + 1)
        return cls(within, named, lost, whole)

    @property
    def size(self) -> int:
        return self.numbers.size

    @property
    def drawn(self) -> Ints:
        """The number of each pixel (h, w), beyond the largest on a border."""
        return np.append(self.numbers, self.numbers[-1] + 1)[self.labels]

    @property
    def remark(self) -> str:
        """A warning of segments that no pixel is left of, or ""."""
        if not self.lost.size:
            return ""
        named = ", ".join(str(number) for number in self.lost[:_MOST_NAMED].tolist())
        more = f" and {self.lost.size - _MOST_NAMED} more" if self.lost.size > _MOST_NAMED else ""
        one = self.lost.size == 1
        height, width = self.labels.shape
        name = "lost segment" if one else "lost segments"
        return sentence("input", name, names=f"{named}{more}", height=height, width=width)


def checked_labels(labels: Any) -> Ints:
    """Any whole numbers, one per pixel; they need not start at 0 or follow each other."""
    array = np.asarray(labels)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and (array == np.rint(array)).all())
    if array.ndim != 2 or not whole:
        raise InputError(
            f"segments must be one of {list(_SEGMENTATIONS)}, a callable image -> labels, whole numbers "
            f"(H, W), or a list of masks (H, W); got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def checked_segments(segments: Any) -> Any:
    """Labels (H, W), or masks as a list; refuse what is neither."""
    masks = _masks_of(segments)
    if masks is None:
        return checked_labels(segments)
    _numbered(masks)
    return masks


def _numbered(segments: Any) -> tuple[Ints, Ints]:
    """Labels (H, W) of segments as users write them, and the numbers that ought to occur."""
    masks = _masks_of(segments)
    if masks is None:
        labels = checked_labels(segments)
        return labels, np.unique(labels)
    shapes = {mask.shape for mask in masks}
    if len(shapes) > 1 or len(masks[0].shape) != 2:
        raise InputError(f"masks must have one shape (height, width), got {sorted(shapes)}")
    m, sizes = len(masks), [int(mask.sum()) for mask in masks]
    labels = np.full(masks[0].shape, m)
    # a smaller mask lies on a larger one: parts on the whole
    for j in sorted(range(m), key=lambda j: (-sizes[j], j)):
        labels[masks[j]] = j
    rest = ~np.any(masks, axis=0)
    return labels, np.arange(m + int(rest.any()))


# What Segment Anything and pipelines of transformers call a mask, and a list of them
_MASK_NAMES, _LIST_NAME = ("segmentation", "mask"), "masks"


def _masks_of(segments: Any) -> list[Bools] | None:
    """Masks of a list, of an array (m, H, W), or as Segment Anything returns them; None for labels."""
    if isinstance(segments, Mapping) and _LIST_NAME in segments:
        segments = segments[_LIST_NAME]
    if isinstance(segments, Mapping):
        segments = [segments]
    if isinstance(segments, list | tuple) and segments:
        shape = (len(segments), *np.shape(segments[0]))
        of_dicts = any(isinstance(one, Mapping) for one in segments)
    else:
        shape, of_dicts = np.shape(segments), False
        shape = shape[:2] if shape[2:] == (1,) else shape  # labels with an axis of channels
    if not (of_dicts or len(shape) == 3 or (len(shape) == 4 and shape[1] == 1)):
        return None
    return [_mask(_named_mask(one, j), j) for j, one in enumerate(segments)]


def _named_mask(one: Any, j: int) -> Any:
    if not isinstance(one, Mapping):
        return one
    name = next((name for name in _MASK_NAMES if name in one), None)
    if name is None or isinstance(one[name], Mapping):
        raise InputError(
            f"mask {j} is a dict without an array (height, width) as its 'segmentation': of Segment Anything "
            "pass the masks of output_mode='binary_mask'"
        )
    return one[name]


def _mask(one: Any, j: int) -> Bools:
    mask = pixels_of(one)
    mask = mask[0] if mask.ndim == 3 and mask.shape[0] == 1 else mask
    levels = np.unique(mask).tolist() if mask.dtype.kind in "biuf" else []
    if mask.ndim != 2 or not (len(levels) == 1 or (len(levels) == 2 and 0 in levels)):
        raise InputError(
            f"mask {j} is no mask: pass booleans (height, width), or 0 and another number; got {mask.dtype} "
            f"of shape {mask.shape}"
        )
    return np.asarray(mask != 0)


# -- by name -------------------------------------------------------------------------------------------------

_segmentation = partial(require, "skimage.segmentation", "segments by name (but 'grid')")


def quickshift(
    image: Floats,
    kernel_size: float = 4.0,
    max_dist: float = 200.0,
    ratio: float = 0.2,
    sigma: float = 0.0,
    seed: int = 0,
) -> Ints:
    """Modes of colour and place, with the parameters of ``lime``; the seed breaks ties."""
    options = {"ratio": ratio, "kernel_size": kernel_size, "max_dist": max_dist, "sigma": sigma, "rng": seed}
    return np.asarray(_segmentation().quickshift(image, **options))


def slic(image: Floats, n_segments: int = 64, compactness: float = 10.0, sigma: float = 1.0) -> Ints:
    options = {"n_segments": n_segments, "compactness": compactness, "sigma": sigma}
    return np.asarray(_segmentation().slic(image, start_label=0, **options))


def felzenszwalb(image: Floats, scale: float = 100.0, sigma: float = 0.5, min_size: int = 200) -> Ints:
    return np.asarray(_segmentation().felzenszwalb(image, scale=scale, sigma=sigma, min_size=min_size))


def watershed(image: Floats, markers: int = 64, compactness: float = 0.001) -> Ints:
    """Basins of the gradient of lightness."""
    gradient = require("skimage.filters", "segments='watershed'").sobel(image.mean(axis=2))
    return np.asarray(_segmentation().watershed(gradient, markers=markers, compactness=compactness))


def grid(image: Floats, rows: int = 8, columns: int = 8) -> Ints:
    cells = check_count("rows", rows), check_count("columns", columns)
    down, across = (np.arange(n) * k // n for n, k in zip(image.shape[:2], cells, strict=True))
    return np.asarray(down[:, None] * cells[1] + across)


_SEGMENTATIONS: Mapping[str, Callable[..., Ints]] = {
    function.__name__: function for function in (quickshift, slic, felzenszwalb, watershed, grid)
}


# -- fills ---------------------------------------------------------------------------------------------------

# (image (H, W) or (H, W, C), labels (H, W)) -> numbers of the image's shape
Fill: TypeAlias = Callable[[Any, Ints], Any]

# Of a blurred image: the standard deviation, as a share of the longer side
_BLUR = 0.05


def filler(fill: Any) -> Fill:
    if isinstance(fill, str):
        return _FILLS[check_choice("fill", fill, tuple(_FILLS))]
    if callable(fill):
        return partial(_called, fill)
    constant = pixels_of(fill)
    if constant.dtype.kind not in "biuf" or not np.isfinite(constant).all():
        raise InputError(
            f"fill must be one of {list(_FILLS)}, a colour, an image, or a callable (image, labels) -> "
            f"image; got {fill!r}"
        )
    return partial(always, constant)


def _called(fill: Fill, image: Any, labels: Ints) -> Any:
    return fill(image, labels)


def filled(fill: Fill, image: Any, labels: Ints) -> Any:
    """The image with every superpixel switched off, in the image's own shape and type."""
    pixels = np.asarray(fill(image, labels))
    channels = image.shape[2:] or (1,)
    colour = pixels.shape in ((), (1,), channels)  # of one number: a grey
    if not colour and pixels.shape != image.shape:
        several = f". Several greys are {pixels[:, None].tolist()}" if 1 < pixels.size < 5 else ""
        raise InputError(
            f"fill has shape {pixels.shape}: it must be one number, a colour of {channels[0]} numbers, or an "
            f"image of shape {image.shape}{several if pixels.ndim == 1 else ''}"
        )
    if pixels.dtype.kind not in "biuf" or not np.isfinite(pixels).all():
        raise InputError("fill has pixels that are not finite numbers")
    whole = np.broadcast_to(
        pixels if pixels.ndim == image.ndim or image.ndim == 3 else pixels.ravel()[0], image.shape
    )
    kind = image.dtype
    if kind.kind == "f":
        return whole.astype(kind)
    low, high = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    rounded = np.rint(whole)
    if colour:
        _check_colour(pixels, rounded, kind, low, high)
    return np.clip(rounded, low, high).astype(kind)


def _check_colour(colour: Any, rounded: Floats, kind: np.dtype[Any], low: int, high: int) -> None:
    """Refuse a colour that pixels of a whole-numbered kind cannot have; ``rounded`` are such pixels."""
    outside = rounded[(rounded < low) | (rounded > high)]
    if outside.size:
        raise InputError(
            f"fill has {outside[0]:g}, and pixels of {kind} are from {low} to {high}: pass a colour in the "
            "image's own units"
        )
    share = colour.min() >= 0.0 and colour.max() <= 1.0 and (colour % 1.0).any()
    if share and kind.kind != "b":
        raise InputError(
            f"fill={colour.tolist()} is a share of 1, and pixels of {kind} are whole numbers up to {high}: "
            f"pass {high} * fill"
        )


def _mean(image: Any, labels: Ints) -> Floats:
    """Fill every superpixel with its mean colour; one that is plain with the mean colour of the image."""
    means, planes = mean_colours(image, labels), (labels.size, -1)
    numbers = np.asarray(image, dtype=np.float64).reshape(planes)
    # a plain superpixel is its own mean: it would not be hidden
    plain = ~changed(numbers, means.reshape(planes), labels.ravel())[labels.ravel()]
    return np.where(plain[:, None], numbers.mean(axis=0), means.reshape(planes)).reshape(image.shape)


def mean_colours(image: Any, labels: Ints) -> Floats:
    """Fill every superpixel with its mean colour."""
    place = labels.ravel()
    planes = np.asarray(image, dtype=np.float64).reshape(place.size, -1)
    count = np.bincount(place)
    means = np.stack([np.bincount(place, plane) / count for plane in planes.T], axis=1)
    # roundings of long sums would tell a large plain superpixel from its mean
    first = planes[first_of_each(place, count.size)]
    plain = np.bincount(place, (planes != first[place]).any(axis=1)) == 0
    means[plain] = first[plain]
    return means[place].reshape(image.shape)


def _blur(image: Any, labels: Ints) -> Floats:  # noqa: ARG001 - all alike
    from scipy.ndimage import gaussian_filter

    sigma = _BLUR * max(image.shape[:2])
    return np.asarray(
        gaussian_filter(np.asarray(image, dtype=np.float64), (sigma, sigma, 0)[: image.ndim], mode="nearest")
    )


def _inpaint(image: Any, labels: Ints) -> Floats:
    """Continue the surroundings into each superpixel by Laplace's equation, with these as boundary."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    if labels.max() == 0:  # without surroundings
        return mean_colours(image, labels)
    planes = np.asarray(image, dtype=np.float64).reshape(labels.size, -1)
    place = np.arange(labels.size).reshape(labels.shape)
    one = np.concatenate([place[1:].ravel(), place[:, 1:].ravel()])
    other = np.concatenate([place[:-1].ravel(), place[:, :-1].ravel()])
    # pairs of pixels that share an edge, both ways
    first, second = np.concatenate([one, other]), np.concatenate([other, one])
    # one sparse system: neighbours in the same superpixel are both unknown, others are boundary values
    inside = labels.ravel()[first] == labels.ravel()[second]
    degree = np.bincount(first, minlength=labels.size).astype(np.float64)
    boundary = np.zeros_like(planes)
    np.add.at(boundary, first[~inside], planes[second[~inside]])
    diagonal = np.arange(labels.size)
    values = np.concatenate([degree, np.full(int(inside.sum()), -1.0)])
    places = np.concatenate([diagonal, first[inside]]), np.concatenate([diagonal, second[inside]])
    matrix = coo_array((values, places))
    return np.asarray(splu(matrix.tocsc()).solve(boundary)).reshape(image.shape)


_FILLS: Mapping[str, Fill] = {"mean": _mean, "blur": _blur, "inpaint": _inpaint}
