"""Images: as a person sees them, as a model takes them, and with parts hidden.

A palette's numbers, ink or hue are no brightness. A network sees a part of a photograph, which has a size for
the network, and a way back to the photograph. A callable gets batches of the user's images; an estimator that
was fitted on n columns gets rows of n numbers; networks get float32 with channels first, minus a mean and
over a scale, by a :class:`Preprocess`. All of it is done once to the image and once to its fill.

A perturbed input is a choice between the input and its fill: x(z) shows the input where z = 1 and the fill
where z = 0; images have superpixels, series segments. A part that looks the same hidden as shown is no
feature: the model is never asked without it, so that nothing is known of its effect. It is left out of the
design, as words of ``ignore=`` are: the other coefficients are those of the same input without this feature.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from os import PathLike
from typing import Any, Self

import numpy as np

from limes._arrays import ROUNDING, Bools, Floats, Ints
from limes._checks import check_choice, is_count
from limes.exceptions import InputError
from limes.models._calling.hugging_face import Estimator, as_bytes
from limes.models._calling.networks import ONNX_TYPES
from limes.models._identity import qualified_name
from limes.models.forms._presence import Switches

# PIL's modes whose numbers are brightness already: grey, colours, and colours with transparency
_AS_THEY_ARE = ("L", "RGB", "RGBA", "F")
# ... that are converted, and what to
_CONVERTED = {
    "1": "L",
    **dict.fromkeys(("RGBX", "CMYK", "YCbCr", "HSV"), "RGB"),
    **dict.fromkeys(("LA", "PA", "RGBa"), "RGBA"),
    "La": "LA",
}


def pixels_of(image: Any) -> Any:
    """A picture of PIL as an array (H, W) or (H, W, 3 or 4); anything else as numpy reads it."""
    pil = sys.modules.get("PIL.Image")
    if pil is None or not isinstance(image, pil.Image):
        if isinstance(image, np.ma.MaskedArray) and np.ma.is_masked(image):
            raise InputError("the image has masked pixels: pass image.filled(...) with what the model takes")
        return np.asarray(image)
    image = upright(image)
    mode = image.mode
    if mode in _AS_THEY_ARE:
        return np.asarray(image)
    if mode == "P":
        return np.asarray(image.convert("RGBA" if "transparency" in image.info else "RGB"))
    if mode in _CONVERTED:
        return pixels_of(image.convert(_CONVERTED[mode]))
    if mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16)
    if mode == "I":
        return _narrowed(np.asarray(image))
    raise InputError(
        f"the image has mode {mode!r} of PIL, whose colours limes does not know: pass numpy.asarray(image) "
        "if the model takes its numbers, or convert it with PIL.ImageCms"
    )


def upright(picture: Any) -> Any:
    """A picture of PIL as it is seen: cameras and phones store how it has to be turned."""
    try:
        picture.getexif()
    except (SyntaxError, struct.error):  # viewers show it as it is stored
        return picture
    return import_module("PIL.ImageOps").exif_transpose(picture)


# Channels of an image
PLANES = (1, 3, 4)


def several_of(images: Any) -> list[Any] | None:
    """Several images as a list, None if it is one image."""
    if isinstance(images, list | tuple) and all(isinstance(rows, list | tuple) for rows in images):
        try:
            images = np.array(images)
        except ValueError as error:
            raise InputError(f"the image is a list whose rows differ in length: {error}") from None
        # channels come last
        return [*images] if images.ndim == 3 and images.shape[-1] not in PLANES else several_of(images)
    if isinstance(images, list | tuple) and any(is_path(image) or np.ndim(image) >= 2 for image in images):
        return list(images)
    return list(images) if isinstance(images, np.ndarray) and images.ndim == 4 else None


def is_path(image: Any) -> bool:
    return isinstance(image, str | PathLike)


def _narrowed(pixels: Any) -> Any:
    """Whole numbers of 32 bits are PIL's 0 to 255, or 16 bits if some are larger."""
    low, high = int(pixels.min(initial=0)), int(pixels.max(initial=0))
    if low < 0 or high > np.iinfo(np.uint16).max:
        raise InputError(
            f"the image has mode 'I' of PIL and numbers from {low} to {high}, of which neither 255 nor 65535 "
            "is white: pass an array of the numbers that the model takes"
        )
    return pixels.astype(np.uint8 if high <= np.iinfo(np.uint8).max else np.uint16)


# Ways to resize, by PIL's numbers
RESAMPLINGS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
# How an image is brought to the size of a network
FITS = ("crop", "squash", "pad")


@dataclass(frozen=True)
class Framing:
    """A rectangle of a photograph, scaled to a size."""

    photo: tuple[int, int]  # height and width
    box: tuple[int, int, int, int]  # first row and column, height, width; beyond the photograph it is 0
    size: tuple[int, int]  # height and width to which the rectangle is scaled
    resample: str = "bicubic"

    @classmethod
    def of(
        cls,
        photo: tuple[int, int],
        size: tuple[int, int],
        fit: str,
        *,
        inner: float = 1.0,
        resample: str = "bicubic",
    ) -> Framing:
        """The largest middle part ("crop"), the whole ("squash"), or the whole with borders ("pad").

        ``inner`` is the share of the sides of the middle part, or of the whole, that is used.
        """
        height, width = photo
        down, across = height / size[0], width / size[1]
        if fit == "crop":
            down = across = min(down, across)
        if fit == "pad":
            down = across = max(down, across)
        else:
            down, across = inner * down, inner * across
        tall, wide = max(1, round(size[0] * down)), max(1, round(size[1] * across))
        return cls(photo, ((height - tall) // 2, (width - wide) // 2, tall, wide), size, resample)

    @property
    def is_whole(self) -> bool:
        return self.box == (0, 0, *self.photo)

    def apply(self, image: Any) -> Any:
        """The rectangle of an image (H, W) or (H, W, C) at its new size; the type stays."""
        row, column, tall, wide = self.box
        before, beside = max(-row, 0), max(-column, 0)
        part = image[max(row, 0) : row + tall, max(column, 0) : column + wide]
        margins = [(before, tall - before - len(part)), (beside, wide - beside - part.shape[1])]
        part = np.pad(part, margins + [(0, 0)] * (image.ndim - 2))
        return _resized(part, self.size, self.resample)

    def seen_of(self, labels: Ints) -> tuple[Ints, Bools]:
        """Labels (H, W) of the photograph at the pixels of what is seen, and which of these are inside."""
        places = []
        for first, length, size, whole in zip(self.box[:2], self.box[2:], self.size, self.photo, strict=True):
            middles = np.floor(first + (np.arange(size) + 0.5) * length / size).astype(np.int64)
            places.append((np.clip(middles, 0, whole - 1), (middles >= 0) & (middles < whole)))
        (down, is_down), (across, is_across) = places
        return labels[down[:, None], across], is_down[:, None] & is_across

    def labels_on(self, labels: Ints, shape: tuple[int, int], outside: int) -> Ints:
        """Labels (h, w) at the places of the photograph, which is shown in a shape of its proportions."""
        row, column, tall, wide = self.box
        places = []
        for first, length, whole, shown, size in (
            (row, tall, self.photo[0], shape[0], self.size[0]),
            (column, wide, self.photo[1], shape[1], self.size[1]),
        ):
            middles = (np.arange(shown) + 0.5) * whole / shown
            places.append(np.floor((middles - first) * size / length).astype(np.int64))
        down, across = places
        inside = ((down >= 0) & (down < self.size[0]))[:, None] & ((across >= 0) & (across < self.size[1]))
        near = labels[np.clip(down, 0, self.size[0] - 1)[:, None], np.clip(across, 0, self.size[1] - 1)]
        return np.where(inside, near, outside)


def _resized(image: Any, size: tuple[int, int], resample: str) -> Any:
    """Resize an image (H, W) or (H, W, C), clipped to its range."""
    from PIL import Image

    if image.shape[:2] == size:
        return image
    planes = image[..., None] if image.ndim == 2 else image
    # bytes as PIL rounds them; all other types without rounding in between
    kind = np.uint8 if image.dtype == np.uint8 else np.float32
    resized = [
        Image.fromarray(np.ascontiguousarray(planes[..., c], dtype=kind)).resize(
            size[::-1], Image.Resampling[resample.upper()]
        )
        for c in range(planes.shape[-1])
    ]
    pixels = np.stack([np.asarray(plane) for plane in resized], axis=-1)
    pixels = np.clip(pixels, image.min(), image.max())
    pixels = np.rint(pixels) if image.dtype.kind in "biu" else pixels
    return pixels.astype(image.dtype).reshape(*size, *image.shape[2:])


# z (n, d) -> a batch of n images, as the model's input
Compose = Callable[[Floats], Any]


def changed(shown: Any, hidden: Any, labels: Ints) -> Bools:
    """Whether hiding a part changes a number (n, C), (d,); ``labels`` (n,) or (n, C) are the parts."""
    before, after = (np.asarray(numbers, dtype=np.float64) for numbers in (shown, hidden))
    # units differ between channels
    size = np.maximum(np.abs(before).max(axis=0), np.abs(after).max(axis=0))
    with np.errstate(over="ignore"):
        differs = np.abs(before - after) > ROUNDING * size
    if labels.ndim == 1:
        differs = differs.any(axis=1)
    return np.bincount(labels[differs], minlength=int(labels.max()) + 1) > 0


class Switched(Switches):
    """An array of d parts, each of which is shown or filled; pixels have channels as their last axis.

    The fill has the array's shape, or is several of these, of which a perturbed array has one.
    """

    @property
    def draws(self) -> int:
        return len(self.fill) if self.fill.ndim > self.shown.ndim else 1

    @property
    def fills(self) -> Any:
        return self.fill if self.fill.ndim > self.shown.ndim else self.fill[None]

    @cached_property
    def changes(self) -> Bools:
        each = [changed(self.shown, fill, self.labels) for fill in self.fills]
        return np.asarray(np.any(each, axis=0))

    def only(self, kept: Bools) -> Self:
        """The array with these parts; the others are always shown."""
        channels = (1,) * (self.shown.ndim - self.labels.ndim)
        always = (~kept)[self.labels].reshape(*self.labels.shape, *channels)
        places = np.where(kept, np.cumsum(kept) - 1, 0)
        return replace(self, fill=np.where(always, self.shown, self.fill), labels=places[self.labels])


class MaskedImage(Switched):
    """An image (H, W) or (H, W, C) of d superpixels, with labels (H, W)."""

    @cached_property
    def changes(self) -> Bools:
        pixels = (self.labels.size, -1)
        shown, labels = self.shown.reshape(pixels), self.labels.ravel()
        each = [changed(shown, fill.reshape(pixels), labels) for fill in self.fills]
        return np.asarray(np.any(each, axis=0))

    def images(self, z: Floats) -> Any:
        return Composer(self.shown, self.fill, self.labels)(z)


class Composer:
    """Batches of images in one buffer: each call overwrites the previous result.

    The model's input is (H, W), (H, W, C), or (C, H, W) if ``channels_first``; ``labels`` are (H, W). Of
    several fills, (m, ...), the last column of z says which.
    """

    def __init__(self, shown: Any, fill: Any, labels: Ints, *, channels_first: bool = False) -> None:
        self._shape, self._dtype = shown.shape, shown.dtype
        # a choice between two numbers is one between their bits, fill ^ (mask & (shown ^ fill)), with a mask
        # of ones or zeros a pixel: the same for every type of numbers, and without rounding
        self._bits = np.dtype(f"u{shown.dtype.itemsize}")
        inner = 1 if channels_first else shown.size // labels.size
        # stretches of pixels of one superpixel, in numbers where channels come last
        starts = np.flatnonzero(np.diff(labels.ravel(), prepend=-1))
        self._runs, self._lengths = labels.ravel()[starts], inner * np.diff(starts, append=labels.size)
        self._several = fill.ndim > shown.ndim
        planes = (len(fill) if self._several else 1, -1, inner * labels.size)
        self._fills = np.ascontiguousarray(fill).view(self._bits).reshape(planes)
        self._differences = self._fills ^ np.ascontiguousarray(shown).view(self._bits).reshape(planes[1:])
        self._batch = np.empty((0, *self._shape), self._dtype)

    def __call__(self, z: Floats) -> Any:
        if len(z) > len(self._batch):
            self._batch = np.empty((len(z), *self._shape), self._dtype)
        batch = self._batch[: len(z)]
        items = z[:, -1].astype(np.int64).tolist() if self._several else [0] * len(z)
        masks = np.where(z > 0, ~self._bits.type(0), self._bits.type(0))
        images = batch.view(self._bits).reshape(len(z), *self._fills.shape[1:])
        # image by image: the arrays of one stay in the processor's cache
        for row, image, item in zip(masks, images, items, strict=True):
            mask = np.repeat(row[self._runs], self._lengths)
            np.bitwise_and(mask, self._differences[item], out=image)
            np.bitwise_xor(image, self._fills[item], out=image)
        return batch


class TensorComposer:
    """A :class:`Composer` with torch, on the device and in the type of the tensor ``like``."""

    def __init__(self, shown: Any, fill: Any, labels: Ints, *, channels_first: bool, like: Any) -> None:
        torch = self._torch = import_module("torch")
        self._shown, self._fill = (
            torch.as_tensor(a).to(device=like.device, dtype=like.dtype) for a in (shown, fill)
        )
        self._labels = torch.as_tensor(labels).to(like.device)
        self._several = fill.ndim > shown.ndim
        self._axis = 1 if channels_first else -1
        self._batch = self._shown.new_empty((0, *shown.shape))

    def __call__(self, z: Floats) -> Any:
        torch = self._torch
        if len(z) > len(self._batch):
            self._batch = self._shown.new_empty((len(z), *self._shown.shape))
        on = torch.as_tensor(z > 0).to(self._labels.device)[:, self._labels].unsqueeze(self._axis)
        fill = self._fill[torch.as_tensor(z[:, -1].astype(np.int64))] if self._several else self._fill
        return torch.where(on, self._shown, fill, out=self._batch[: len(z)])


# Mean or scale of a network for pixels of 0 to 255; CT windows and 16 bits have larger ones
_OF_BYTES = (16, 512)
# What white is in each type of pixels
_WHITE = {np.dtype(np.bool_): 1, np.dtype(np.uint16): 65535}

CHANNELS = ("first", "last")
ORDERS = ("rgb", "bgr")


@dataclass(frozen=True, kw_only=True)
class Preprocess:
    """The input of a network for an image: (pixels - mean) / scale, pixel by pixel.

    Where mean and scale are those of a network for bytes, of which 255 is white, booleans and pixels of 16
    bits are brought to it first: times 255, and over 257.

    Parameters
    ----------
    mean, scale
        Numbers, or one a channel, for pixels from 0 to 255, or from 0 to 1 where none is above 1.
    channels
        "first": (C, H, W), as torch and most ONNX files; "last": (H, W, C).
    order
        "rgb", or "bgr" for networks with blue first.
    size
        Height and width, or one number for both, to which the image is scaled before it is explained; None
        keeps its size.
    fit
        The way in which the image is fitted to ``size``: "crop", its largest middle part; "squash", the
        whole; "pad", the whole with black borders.
    share
        For "crop" and "squash": the share of the sides of that part that is used, such as 224 / 256 for
        networks that resize to 256 and crop 224.
    resample
        Interpolation of pixels: "bicubic", "bilinear", "nearest", "lanczos", "box" or "hamming".
    dtype
        Type of the array.

    Raises
    ------
    InputError
        If an option is not usable.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> limes.Preprocess(mean=127, scale=128)(np.full((2, 2, 3), 255)).shape
    (3, 2, 2)
    """

    mean: Any = 0.0
    scale: Any = 1.0
    channels: str = "first"
    order: str = "rgb"
    size: Any = None
    fit: str = "crop"
    share: float = 1.0
    resample: str = "bicubic"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name, choices in {
            "channels": CHANNELS,
            "order": ORDERS,
            "fit": FITS,
            "resample": [*RESAMPLINGS],
        }.items():
            check_choice(name, getattr(self, name), choices)
        for name in ("mean", "scale"):
            value = np.asarray(getattr(self, name))
            if value.dtype.kind not in "iuf" or value.ndim > 1 or not np.isfinite(value).all():
                raise InputError(f"{name} must be a number, or one a channel, got {getattr(self, name)!r}")
        if (np.asarray(self.scale) == 0).any():
            raise InputError("scale must not be 0: pixels are divided by it")
        if np.asarray(self.share).dtype.kind not in "iuf" or not 0 < self.share <= 1:
            raise InputError(f"share={self.share!r} must be above 0, and 1 at most")
        if self.size is not None:
            object.__setattr__(self, "size", _height_width(self.size))

    def __call__(self, image: Any) -> Any:
        """Convert an ``image`` (H, W) or (H, W, C) to the network's input.

        Raises
        ------
        InputError
            If mean or scale are of another number of channels.
        """
        pixels = pixels_of(image)
        factor = self.bytes_per_unit(pixels.dtype)
        pixels = pixels.astype(np.float64) * factor.numerator / factor.denominator
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
        for name in ("mean", "scale"):
            entries = np.size(getattr(self, name))
            if entries not in (1, pixels.shape[-1]):
                raise InputError(
                    f"{name} has {entries} entries, the image {pixels.shape[-1]} channels: pass one number, "
                    "or one a channel"
                )
        if self.order == "bgr":
            pixels = pixels[..., ::-1]
        scaled = ((pixels - self.mean) / self.scale).astype(self.dtype)
        return np.ascontiguousarray(scaled if self.channels == "last" else np.moveaxis(scaled, -1, 0))

    @property
    def white(self) -> int | None:
        """The brightest pixel that mean and scale are for, 255 or 1; None where they do not say."""
        numbers = np.abs(np.concatenate([np.ravel(self.mean), np.ravel(self.scale)]))
        if _OF_BYTES[0] <= numbers.max() <= _OF_BYTES[1]:
            return 255
        says_nothing = not np.any(self.mean) and (np.asarray(self.scale) == 1).all()
        return 1 if numbers.max() <= 1 and not says_nothing else None

    def bytes_per_unit(self, dtype: np.dtype[Any]) -> Fraction:
        """Return the factor of pixels of a ``dtype`` that makes white 255 for a network of bytes."""
        return Fraction(255, _WHITE.get(dtype.newbyteorder("="), 255)) if self.white == 255 else Fraction(1)

    def ends(self, low: float, high: float, dtype: np.dtype[Any]) -> tuple[float, float]:
        """Return the range of the network's numbers for pixels of a ``dtype`` from ``low`` to ``high``."""
        factor = float(self.bytes_per_unit(dtype))
        mean, scale = np.ravel(self.mean), np.ravel(self.scale)
        mean = mean if mean.size == scale.size else mean[:, None]
        numbers = [(end * factor - mean) / scale for end in (low, high)]
        return float(np.min(numbers)), float(np.max(numbers))

    def framing(self, photo: Any) -> Framing:
        """Return which part of a ``photo`` (H, W) or (H, W, C) is explained, and at what size."""
        shape = photo.shape[:2]
        # without a size the image is scaled by the share alone
        size = self.size or tuple(max(1, round(self.share * side)) for side in shape)
        return Framing.of(shape, size, self.fit, inner=self.share, resample=self.resample)


def _height_width(size: Any) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, int | np.integer) else tuple(size)
    if len(sides) != 2 or not all(is_count(side) for side in sides):
        raise InputError(f"size must be a whole number of pixels, or (height, width), got {size!r}")
    return int(sides[0]), int(sides[1])


# -- composers by class of model ---------------------------------------------------------------------------


def composer_of(model: Any, image: MaskedImage, preprocess: Preprocess | None) -> Compose:
    """The composer of a model's input at rows z, by the class of the model or a base of it."""
    make = _composer_maker(model)
    if make is not None:
        return make(model, image, preprocess)
    if columns(model) is not None:
        if columns(model) != image.shown.size:
            raise InputError(
                f"{type(model).__name__} was fitted on {columns(model)} numbers, and the image has "
                f"{' x '.join(map(str, image.shown.shape))} = {image.shown.size}: pass images of the size "
                "and channels that it was fitted on"
            )
        rows = [flat(image, preprocess, fill) for fill in image.fills]
        fills = rows[0].fill if image.draws == 1 else np.stack([row.fill for row in rows])
        return Composer(rows[0].shown, fills, rows[0].labels)
    if isinstance(model, Estimator) and preprocess is None:
        shown, fill = as_bytes(image.shown, image.fill)
        return Composer(shown, fill, image.labels)
    return _arrays(image, preprocess, Composer)


def channels_of(model: Any, preprocess: Preprocess | None) -> int | None:
    """Number of channels of the images that a network takes; None where neither it nor mean and scale say."""
    if isinstance(model, Estimator):
        return 3  # image processors of transformers get RGB
    if hasattr(model, "get_inputs"):
        shape = model.get_inputs()[0].shape
        if len(shape) == 4 and isinstance(count := shape[1 if layout(shape) == "first" else 3], int):
            return count
    if is_network(model) and hasattr(model, "modules"):
        counts = (getattr(part, "in_channels", None) for part in model.modules())
        if (count := next((n for n in counts if isinstance(n, int) and n > 0), None)) is not None:
            return count
    entries = 1 if preprocess is None else max(np.size(preprocess.mean), np.size(preprocess.scale))
    return entries if entries > 1 else None


def is_network(model: Any) -> bool:
    return _composer_maker(model) is not None


def columns(model: Any) -> int | None:
    """Number of columns that an estimator was fitted on; None if the model is no estimator."""
    count = getattr(model, "n_features_in_", None)
    return None if count is None else int(count)


def _arrays(image: MaskedImage, preprocess: Preprocess | None, make: Callable[..., Compose]) -> Compose:
    if preprocess is None:
        return make(image.shown, image.fill, image.labels)
    fills = [preprocess(fill) for fill in image.fills]
    fill = fills[0] if image.draws == 1 else np.stack(fills)
    return make(preprocess(image.shown), fill, image.labels, channels_first=preprocess.channels == "first")


def flat(image: MaskedImage, preprocess: Preprocess | None, fill: Any) -> Switches:
    """An image and its fill as rows of numbers for an estimator, with the superpixel of each number."""
    shown = image.shown
    labels = np.broadcast_to(image.labels[..., None], (*image.labels.shape, shown.size // image.labels.size))
    if preprocess is not None:
        shown, fill = preprocess(shown), preprocess(fill)
        labels = labels if preprocess.channels == "last" else np.moveaxis(labels, -1, 0)
    shown, fill = (np.asarray(pixels, dtype=np.float64).ravel() for pixels in (shown, fill))
    return Switches(shown, fill, labels.ravel())


def _session_composer(session: Any, image: MaskedImage, preprocess: Preprocess | None) -> Compose:
    entries = session.get_inputs()
    if len(entries) != 1:
        raise InputError(f"the ONNX model has {len(entries)} inputs; pass a callable on images instead")
    shape, dtype = entries[0].shape, np.dtype(ONNX_TYPES.get(entries[0].type, np.float32)).name
    if preprocess is None:
        preprocess = Preprocess(channels=layout(shape), dtype=dtype)
    compose = _arrays(image, replace(preprocess, dtype=dtype), Composer)
    _check_shape(shape, preprocess(image.shown).shape)
    return compose


def layout(shape: Any) -> str:
    """The axis of a network's channels, "first" or "last", from the shape of its input."""
    last = len(shape) == 4 and shape[-1] in (1, 3, 4) and shape[1] not in (1, 3, 4)
    return "last" if last else "first"


def _check_shape(expected: Any, shape: tuple[int, ...]) -> None:
    """Refuse an image that an ONNX model does not accept; sizes that are not fixed are texts or None."""
    fits = (not isinstance(side, int) or side == n for side, n in zip(expected[1:], shape, strict=False))
    if len(expected) == len(shape) + 1 and all(fits):
        return
    raise InputError(
        f"the network takes images of shape {tuple(expected[1:])}, got {shape}: pass its height and "
        "width as Preprocess(size=...), and the axis of channels as Preprocess(channels=...)"
    )


def _module_composer(module: Any, image: MaskedImage, preprocess: Preprocess | None) -> Compose:
    weight = next(module.parameters(), None)
    like = import_module("torch").zeros(0) if weight is None else weight
    return _arrays(image, preprocess or Preprocess(), partial(TensorComposer, like=like))


_MakeComposer = Callable[[Any, MaskedImage, Preprocess | None], Compose]
_KINDS: Mapping[str, _MakeComposer] = {
    "torch.Module": _module_composer,
    "onnxruntime.InferenceSession": _session_composer,
}


def _composer_maker(model: Any) -> _MakeComposer | None:
    makers = (_KINDS.get(qualified_name(kind)) for kind in type(model).__mro__)
    return next((make for make in makers if make is not None), None)


# -- preprocessing of other libraries --------------------------------------------------------------------
#
# Read off by attributes; nothing is imported or called. torchvision's presets (``weights.transforms()``),
# compositions of its transforms, and image processors of transformers all resize, crop, scale and normalise.


# Transforms of a composition that only turn bytes into shares of 255, and those that convert nothing
_TO_SHARES = ("ToTensor", "ConvertImageDtype")
_CONVNEXT_WHOLE = 384
_UNCHANGED = ("PILToTensor", "ToImage", "ToImageTensor", "ToDtype", "Identity")


def preprocess_like(transform: Any) -> Preprocess | None:
    """Another library's preprocessing; None for objects of any other kind."""
    if isinstance(transform, Preprocess):
        return transform
    for names, read in _READERS:
        if all(hasattr(transform, name) for name in names):
            return _of_steps(**read(transform))
    return None


def _of_steps(
    *,
    resize: int | tuple[int, int] | None = None,
    crop: tuple[int, int] | None = None,
    factor: float = 1.0,
    mean: Any = 0.0,
    std: Any = 1.0,
    resample: str = "bilinear",
) -> Preprocess:
    """Resize the shorter side, or height and width; crop the middle part; (factor · pixels - mean) / std."""
    whole = isinstance(resize, tuple)
    before = resize if isinstance(resize, tuple) else (resize, resize)
    size = crop or (resize if whole else None)
    shares: set[float] = {1.0} if size == resize else set()
    if isinstance(size, tuple) and resize:
        shares = {after / side for after, side in zip(size, before, strict=True) if side}
    if len(shares) != 1 or max(shares) > 1:
        raise InputError(
            f"preprocess resizes to {resize} and crops {crop}: limes reads fixed sizes in the proportions of "
            "the crop; pass limes.Preprocess, or preprocess inside the model"
        )
    fit, share = "squash" if whole else "crop", shares.pop()
    mean, scale = ((np.asarray(numbers, dtype=np.float64) / factor).tolist() for numbers in (mean, std))
    return Preprocess(mean=mean, scale=scale, size=size, fit=fit, share=share, resample=resample)


# What is read of another library's preprocessing: the arguments of _of_steps
_Steps = dict[str, Any]


def _preset(transform: Any) -> _Steps:
    """Read for example ``torchvision.models.ResNet50_Weights.DEFAULT.transforms()``."""
    return {
        "resize": _sides_of(transform.resize_size),
        "crop": _height_and_width(transform.crop_size),
        "factor": 1 / 255,
        "mean": transform.mean,
        "std": transform.std,
        "resample": _resampling(transform.interpolation),
    }


def _composition(transform: Any) -> _Steps:
    """Read ``torchvision.transforms.Compose([Resize(256), CenterCrop(224), ToTensor(), Normalize(...)])``."""
    steps: _Steps = {}
    for step in transform.transforms:
        match name := type(step).__name__:
            case "Resize" if "crop" in steps:
                raise InputError(
                    "preprocess crops before it resizes, which limes does not read: pass limes.Preprocess, "
                    "or preprocess inside the model"
                )
            case "Resize":
                steps |= {"resize": _sides_of(step.size), "resample": _resampling(step.interpolation)}
            case "CenterCrop":
                steps["crop"] = _height_and_width(step.size)
            case "Normalize":
                steps |= {"mean": step.mean, "std": step.std}
            case _ if name in _TO_SHARES or (name == "ToDtype" and step.scale):
                steps["factor"] = 1 / 255
            case _ if name not in _UNCHANGED:
                raise InputError(
                    f"preprocess has the transform {name}, which limes does not read: pass "
                    "limes.Preprocess, or preprocess inside the model"
                )
    return steps


def _processor(transform: Any) -> _Steps:
    steps: _Steps = {"factor": float(transform.rescale_factor) if transform.do_rescale else 1.0}
    if transform.do_normalize:
        steps |= {"mean": transform.image_mean, "std": transform.image_std}
    if not transform.do_resize:
        return steps
    sides, crop = dict(transform.size), None
    if getattr(transform, "do_center_crop", None):
        crop = _named_sides(transform.crop_size)
    if "shortest_edge" in sides:
        resize: Any = int(sides["shortest_edge"])
        share = getattr(transform, "crop_pct", None)
        if share and crop is None:
            # ConvNeXT: small sizes are this share of what is resized, large ones are the whole squashed
            square = resize, resize
            resize, crop = (int(resize / share), square) if resize < _CONVNEXT_WHOLE else (square, None)
    else:
        resize = _named_sides(sides)
    return steps | {"resize": resize, "crop": crop, "resample": _resampling(transform.resample)}


# Attributes by which a kind of preprocessing is recognised, and its reader
_READERS = (
    (("resize_size", "crop_size", "mean", "std", "interpolation"), _preset),
    (("image_mean", "image_std", "do_rescale", "do_resize", "size"), _processor),
    (("transforms",), _composition),
)


def _named_sides(sides: Any) -> tuple[int, int]:
    named = dict(sides)
    return int(named["height"]), int(named["width"])


def _sides_of(size: Any) -> int | tuple[int, int]:
    numbers = [int(side) for side in size] if isinstance(size, Iterable) else [int(size)]
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _height_and_width(size: Any) -> tuple[int, int]:
    sides = _sides_of(size)
    return (sides, sides) if isinstance(sides, int) else sides


def _resampling(kind: Any) -> str:
    name = str(getattr(kind, "value", kind)).lower()
    names = {str(number): one for one, number in RESAMPLINGS.items()} | {one: one for one in RESAMPLINGS}
    if name not in names:
        raise InputError(f"preprocess resizes by {kind!r}: limes resizes by {sorted(RESAMPLINGS)}")
    return names[name]
