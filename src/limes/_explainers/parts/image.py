"""Images, whose superpixels are shown or filled: pixels, segmentations, fills, and the part of an input.

An image is grey, RGB or RGBA, of whole numbers or fractions; anything else is refused. A segmentation, chosen
by name, by labels or as a callable, is a function of an RGB image (H, W, 3) of numbers between 0 and 1. A
fill is a function (image, labels) -> an image of the same shape and type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects, first_of_each
from limes._checks import check_choice, check_count, require, unknown_option
from limes._explanation.json import labels_to_data_url, to_data_url
from limes.exceptions import InputError
from limes.models._images import Framing, MaskedImage, Preprocess, changed, layout, pixels_of


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

    def parse(self, raw: Any) -> Photograph:
        """Segment an image, ``raw``."""
        return Photograph.parse(raw, segmenter(self.segments, self.segment_options), filler(self.fill))


@dataclass(frozen=True, eq=False)
class Photograph:
    """A user's image, the part of it that is explained, and that part with its superpixels."""

    photo: Any
    framing: Framing
    image: MaskedImage

    @classmethod
    def parse(
        cls, raw: Any, segment: Segment, fill: Fill, preprocess: Preprocess | None = None
    ) -> Photograph:
        """Take an image apart; without ``preprocess`` all of it is explained, at its size."""
        photo = checked_image(raw)
        range_remark(photo, preprocess)  # refuses before the model is asked
        framing = (preprocess or Preprocess()).framing(photo)
        pixels = framing.apply(photo)
        labels = superpixels(segment, pixels)
        return cls(photo, framing, MaskedImage(pixels, filled(fill, pixels, labels), labels))

    def with_fill(self, fill: Fill) -> Photograph:
        """Return the same photograph and superpixels with another fill."""
        image = self.image
        return replace(self, image=replace(image, fill=filled(fill, image.shown, image.labels)))

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
    def key(self) -> tuple[int, ...]:
        return image_fingerprint(self.image)

    @property
    def picture(self) -> Mapping[str, Any]:
        return image_picture(self.image, self.conditions) | _photo_picture(self)

    @property
    def changes(self) -> Bools:
        return self.image.changes

    def only(self, kept: Bools) -> Photograph:
        return replace(self, image=self.image.only(kept))

    def compose(self, z: Floats) -> Any:
        return self.image.images(z)


# -- pixels --------------------------------------------------------------------------------------------------

_CHANNELS = (1, 3, 4)
# Shares above 1 that interpolation leaves
_BRIGHTEST_SHARE = 2.0


def checked_image(image: Any) -> Any:
    """Return the image as an array (H, W) or (H, W, C) of the user's own numbers, C = 1, 3 or 4.

    Pictures of PIL are read by their mode, as :func:`limes.models._images.pixels_of` does.
    """
    pixels = pixels_of(image)
    if pixels.dtype.kind not in "biuf" or pixels.dtype.itemsize > 8:
        raise InputError(f"an image is an array of numbers, got {type(image).__name__} of {pixels.dtype}")
    if pixels.ndim not in (2, 3):
        raise InputError(f"an image is (height, width) or (height, width, channels), got {pixels.shape}")
    if pixels.ndim == 3 and pixels.shape[2] not in _CHANNELS:
        first = pixels.shape[0] in _CHANNELS
        advice = "move them there: np.moveaxis(image, 0, -1)" if first else "pass several images as a list"
        raise InputError(
            f"an image has 1, 3 or 4 channels, as its last axis; got shape {pixels.shape}: {advice}"
        )
    if pixels.size == 0:
        raise InputError(f"the image has no pixels: its shape is {pixels.shape}")
    if not np.isfinite(pixels).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(pixels))[0])
        raise InputError(
            f"the image has {pixels[where]} at row {where[0]}, column {where[1]}: every pixel must be finite"
        )
    return np.ascontiguousarray(pixels)


def range_remark(photo: Any, preprocess: Preprocess | None) -> str:
    """Return a warning about a photograph of another range than the preprocessing is for, or ""."""
    white = None if preprocess is None else preprocess.white
    if preprocess is None or white is None:
        return ""
    passed = f"Preprocess(mean={preprocess.mean}, scale={preprocess.scale}) is for 0 to {white}"
    low, high, factor = float(photo.min()), float(photo.max()), preprocess.bytes_per_unit(photo.dtype)
    if photo.dtype.kind == "f" and white == 255 and low >= 0 and 0 < high <= 1:
        raise InputError(
            f"the image has floats from {low:.3g} to {high:.3g}, and {passed}: pass 255 * image, or mean and "
            "scale over 255"
        )
    if factor < 1 and 0 < high <= 255:
        return (
            f"the image has 16 bits, of which 65535 is white, and its brightest pixel is {high:.0f}: it is "
            "nearly black; if its white is 255, pass image.astype('uint8')"
        )
    if factor != 1:
        return (
            f"the image has numbers of {photo.dtype}, and {passed}: they are multiplied by "
            f"{factor.numerator}{'' if factor.denominator == 1 else f'/{factor.denominator}'}"
        )
    if high > (white if white > 1 else _BRIGHTEST_SHARE):
        return f"the image has numbers up to {high:.6g}, and {passed}, as it seems: if so, pass " + (
            "image / 255, or mean and scale times 255" if white == 1 else f"numbers from 0 to {white}"
        )
    return ""


def unit(image: Any) -> Floats:
    """Return pixels between 0 and 1: whole numbers over their largest, floats as they are or over 255."""
    pixels = np.asarray(image, dtype=np.float64)
    kind = np.asarray(image).dtype
    if kind.kind in "iu":
        return np.clip(pixels / np.iinfo(kind).max, 0.0, 1.0)
    low, high = pixels.min(), pixels.max()
    if low < 0:
        return (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)
    if high <= 1:
        return pixels
    return pixels / 255.0 if high <= 255 else pixels / high


def rgb(image: Any) -> Floats:
    """Return the image as people see it, (H, W, 3) between 0 and 1; transparent pixels are grey."""
    pixels = unit(image)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.shape[2] == 1:
        return np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] == 3:
        return pixels
    opaque = pixels[..., 3:]
    return pixels[..., :3] * opaque + 0.5 * (1.0 - opaque)


# -- what explanations show ----------------------------------------------------------------------------------

MEANING = "change of the surrogate when the superpixel is shown against when it is filled"


def superpixel_names(size: int) -> tuple[str, ...]:
    """Return the names of d superpixels."""
    return tuple(f"superpixel {j}" for j in range(size))


def image_conditions(labels: Ints) -> tuple[str, ...]:
    """Return the condition of each superpixel, with the pixel in its middle, (row, column)."""
    count = np.bincount(labels.ravel())
    down, across = np.indices(labels.shape)
    rows, columns = (np.bincount(labels.ravel(), place.ravel()) / count for place in (down, across))
    return tuple(
        f"superpixel {j} at ({row:.0f}, {column:.0f}) shown"
        for j, (row, column) in enumerate(zip(rows, columns, strict=True))
    )


def image_areas(labels: Ints) -> Objects:
    """Return the size of each superpixel in pixels, (1, d)."""
    return np.array([[f"{count} px" for count in np.bincount(labels.ravel())]], dtype=object)


def image_picture(image: MaskedImage, conditions: tuple[str, ...]) -> dict[str, Any]:
    """Return what ``show`` draws from: the image, its superpixels, and each condition's superpixel."""
    return {
        "image": to_data_url(np.rint(255 * rgb(image.shown)).astype(np.uint8), lossless=False),
        "labels": labels_to_data_url(image.labels),
        "superpixels": {condition: j for j, condition in enumerate(conditions)},
    }


# The longest side of a photograph that an explanation stores beside the part that is explained
_LONGEST_SIDE = 512


def _photo_picture(photograph: Photograph) -> dict[str, Any]:
    """Return the whole photograph and where the explained part is; nothing if that is all of it."""
    framing = photograph.framing
    if framing.is_whole and framing.size == framing.photo:
        return {}
    share = min(1.0, _LONGEST_SIDE / max(framing.photo))
    shape = tuple(max(1, round(side * share)) for side in framing.photo)
    small = Framing.of(framing.photo, (shape[0], shape[1]), "squash").apply(
        np.rint(255 * rgb(photograph.photo)).astype(np.uint8)
    )
    return {
        "photo": to_data_url(small, lossless=False, largest_png=0),
        "frame": {"photo": list(framing.photo), "box": list(framing.box), "size": list(framing.size)},
    }


def image_fingerprint(image: MaskedImage) -> tuple[int, ...]:
    """Return whole numbers that identify an image, its fill and superpixels: keys, and seeds of streams."""
    digest = blake2b(image.shown.tobytes() + image.fill.tobytes() + image.labels.tobytes(), digest_size=16)
    return tuple(int(part) for part in np.frombuffer(digest.digest(), dtype=np.uint32))


# -- superpixels ---------------------------------------------------------------------------------------------

# the user's image -> labels (H, W)
Segment: TypeAlias = Callable[[Any], Any]


def segmenter(segments: Any, options: Mapping[str, Any] | None) -> Segment:
    """Return the option ``segments`` as a function from an image to labels."""
    if isinstance(segments, str):
        check_choice("segments", segments, tuple(_SEGMENTATIONS))
        segment = _SEGMENTATIONS[segments]
        _check_options(segments, segment, options or {})
        return lambda image: segment(rgb(image), **(options or {}))
    if options:
        raise InputError("segment_options go with a segmentation that is named, such as segments='slic'")
    if callable(segments):
        return lambda image: segments(image)
    labels = checked_labels(segments)
    return lambda image: labels  # noqa: ARG005 - the same for every image


def superpixels(segment: Segment, image: Any) -> Ints:
    """Return labels (H, W) from 0 to d - 1, each of which occurs."""
    labels = checked_labels(segment(image))
    if labels.shape != image.shape[:2]:
        raise InputError(
            f"the segments have shape {labels.shape}, the image is {image.shape[0]} x {image.shape[1]}: pass "
            "one label per pixel"
        )
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int64)


def checked_labels(labels: Any) -> Ints:
    """Return any whole numbers, one per pixel; they need not start at 0 or follow each other."""
    array = np.asarray(labels)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and (array == np.rint(array)).all())
    if array.ndim != 2 or not whole:
        raise InputError(
            f"segments must be one of {list(_SEGMENTATIONS)}, a callable image -> labels, or whole numbers "
            f"(H, W); got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def _check_options(name: str, segment: Segment, options: Mapping[str, Any]) -> None:
    names = list(inspect.signature(segment).parameters)[1:]
    for option in options:
        if option not in names:
            raise unknown_option(f"segments={name!r}", option, names)


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
    labels: Ints = _segmentation().quickshift(
        image, ratio=ratio, kernel_size=kernel_size, max_dist=max_dist, sigma=sigma, rng=seed
    )
    return labels


def slic(image: Floats, n_segments: int = 64, compactness: float = 10.0, sigma: float = 1.0) -> Ints:
    """K-means of colour and place."""
    labels: Ints = _segmentation().slic(
        image, n_segments=n_segments, compactness=compactness, sigma=sigma, start_label=0
    )
    return labels


def felzenszwalb(image: Floats, scale: float = 100.0, sigma: float = 0.5, min_size: int = 200) -> Ints:
    """Regions grown along a minimum spanning tree."""
    labels: Ints = _segmentation().felzenszwalb(image, scale=scale, sigma=sigma, min_size=min_size)
    return labels


def watershed(image: Floats, markers: int = 64, compactness: float = 0.001) -> Ints:
    """Basins of the gradient of lightness."""
    gradient = require("skimage.filters", "segments='watershed'").sobel(image.mean(axis=2))
    labels: Ints = _segmentation().watershed(gradient, markers=markers, compactness=compactness)
    return labels


def grid(image: Floats, rows: int = 8, columns: int = 8) -> Ints:
    """Rectangles of equal size."""
    cells = check_count("rows", rows), check_count("columns", columns)
    down, across = (np.arange(n) * k // n for n, k in zip(image.shape[:2], cells, strict=True))
    return np.asarray(down[:, None] * cells[1] + across)


_SEGMENTATIONS: Mapping[str, Callable[..., Ints]] = {
    function.__name__: function for function in (quickshift, slic, felzenszwalb, watershed, grid)
}


# (image (H, W) or (H, W, C), labels (H, W)) -> numbers of the image's shape
Fill: TypeAlias = Callable[[Any, Ints], Any]

# Of a blurred image: the standard deviation, as a share of the longer side
_BLUR = 0.05


def filler(fill: Any) -> Fill:
    """Return the option ``fill`` as a function."""
    if isinstance(fill, str):
        return _FILLS[check_choice("fill", fill, tuple(_FILLS))]
    if callable(fill):
        return lambda image, labels: fill(image, labels)
    constant = pixels_of(fill)
    if constant.dtype.kind not in "biuf" or not np.isfinite(constant).all():
        raise InputError(
            f"fill must be one of {list(_FILLS)}, a colour, an image, or a callable (image, labels) -> "
            f"image; got {fill!r}"
        )
    return lambda image, labels: constant  # noqa: ARG005 - the same for every image


def filled(fill: Fill, image: Any, labels: Ints) -> Any:
    """Return the image with every superpixel switched off, in the image's own shape and type."""
    pixels = np.asarray(fill(image, labels))
    channels = image.shape[2:] or (1,)
    colour = pixels.ndim == 0 or pixels.shape == channels
    if not colour and pixels.shape != image.shape:
        raise InputError(
            f"fill has shape {pixels.shape}: it must be one number, a colour of {channels[0]} numbers, or an "
            f"image of shape {image.shape}"
        )
    if pixels.dtype.kind not in "biuf" or not np.isfinite(pixels).all():
        raise InputError("fill has pixels that are not finite numbers")
    whole = np.broadcast_to(
        pixels if pixels.ndim == image.ndim or image.ndim == 3 else pixels.ravel()[0], image.shape
    )
    return _as(whole, image.dtype)


def _as(pixels: Any, kind: np.dtype[Any]) -> Any:
    """Round numbers to the image's type."""
    if kind.kind == "f":
        return pixels.astype(kind)
    limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return np.clip(np.rint(pixels), *limits).astype(kind)


# -- by name -------------------------------------------------------------------------------------------------


def _mean(image: Any, labels: Ints) -> Floats:
    """Fill every superpixel with its mean colour; one that is plain with the mean colour of the image.

    A plain superpixel is its own mean: it would not be hidden.
    """
    means, planes = mean_colours(image, labels), (labels.size, -1)
    numbers = np.asarray(image, dtype=np.float64).reshape(planes)
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
    """Blur the picture, so that only large shapes are left."""
    from scipy.ndimage import gaussian_filter

    sigma = _BLUR * max(image.shape[:2])
    return np.asarray(
        gaussian_filter(np.asarray(image, dtype=np.float64), (sigma, sigma, 0)[: image.ndim], mode="nearest")
    )


def _inpaint(image: Any, labels: Ints) -> Floats:
    """Continue the surroundings into each superpixel: Laplace's equation, with the pixels around as boundary.

    One sparse system serves all superpixels: neighbours in the same superpixel are both unknown, those in
    others are boundary values. A superpixel that is the whole image has no surroundings and shows its mean.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    if labels.max() == 0:
        return mean_colours(image, labels)
    planes = np.asarray(image, dtype=np.float64).reshape(labels.size, -1)
    first, second = _neighbours(labels.shape)
    inside = labels.ravel()[first] == labels.ravel()[second]
    degree = np.bincount(first, minlength=labels.size).astype(np.float64)
    boundary = np.zeros_like(planes)
    np.add.at(boundary, first[~inside], planes[second[~inside]])
    diagonal = np.arange(labels.size)
    matrix = coo_array(
        (
            np.concatenate([degree, np.full(int(inside.sum()), -1.0)]),
            (np.concatenate([diagonal, first[inside]]), np.concatenate([diagonal, second[inside]])),
        )
    )
    return np.asarray(splu(matrix.tocsc()).solve(boundary)).reshape(image.shape)


def _neighbours(shape: tuple[int, ...]) -> tuple[Ints, Ints]:
    """Return pairs of pixels that share an edge, both ways."""
    place = np.arange(shape[0] * shape[1]).reshape(shape)
    pairs = [(place[1:], place[:-1]), (place[:, 1:], place[:, :-1])]
    first = np.concatenate([a.ravel() for a, _ in pairs])
    second = np.concatenate([b.ravel() for _, b in pairs])
    return np.concatenate([first, second]), np.concatenate([second, first])


_FILLS: Mapping[str, Fill] = {"mean": _mean, "blur": _blur, "inpaint": _inpaint}


# -- files and models of the command line --------------------------------------------------------------------


def read_image(path: Path) -> Any:
    """Return an image file as an array: grey (H, W), or RGB (H, W, 3), upright."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            turned = ImageOps.exif_transpose(opened)
            pixels = pixels_of(turned)
            if pixels.ndim == 2 and turned.mode != "L":
                return np.repeat(pixels[..., None], 3, axis=2)
            return pixels[..., :3] if pixels.ndim == 3 else pixels  # without transparency
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path} could not be read as an image: {error}") from error


def session_of(path: Path) -> Any:
    """Return an ONNX Runtime session, on the CPU."""
    runtime = require("onnxruntime", "an ONNX model")
    try:
        return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(f"{path} could not be loaded: {type(error).__name__}: {error}") from error


def preprocess_of(session: Any, mean: float, scale: float) -> Preprocess:
    """Return layout and size from the model's input; pixels minus the mean, over the scale."""
    shape = session.get_inputs()[0].shape
    channels = layout(shape)
    sides = shape[2:] if channels == "first" else shape[1:3]
    fixed = len(sides) == 2 and all(isinstance(side, int) for side in sides)
    return Preprocess(mean=mean, scale=scale, channels=channels, size=tuple(sides) if fixed else None)
