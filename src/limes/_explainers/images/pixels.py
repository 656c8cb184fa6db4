"""Images as users pass them, as files hold them, and as an explanation stores them.

Grey, RGB or RGBA, whole numbers or fractions; anything else is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes._checks import require
from limes._explanation.json import labels_to_data_url, to_data_url
from limes.exceptions import InputError
from limes.models._calling.networks import Preprocess, layout
from limes.models._framing import Framing
from limes.models._images import SwitchedImage
from limes.models._pictures import pixels_of

_CHANNELS = (1, 3, 4)
# Shares above 1 that interpolation leaves
_BRIGHTEST_SHARE = 2.0


def checked_image(image: Any) -> Any:
    """Return the image as an array (H, W) or (H, W, C) of the user's own numbers, C = 1, 3 or 4.

    Pictures of PIL are read by their mode, as :func:`limes.models._pictures.pixels_of` does.

    Raises
    ------
    InputError
        If it is no such array, has no pixels, or a pixel is not finite: names the pixel.
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
    """Return a warning about a photograph of another range than the preprocessing is for, or "".

    Raises
    ------
    InputError
        If floats from 0 to 1 meet a preprocessing for 0 to 255: says how to convert them.
    """
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


def as_list(images: Any) -> list[Any] | None:
    """Return several images as a list, None if it is one image."""
    if isinstance(images, list | tuple) and any(np.ndim(image) >= 2 for image in images):
        return list(images)
    return list(images) if isinstance(images, np.ndarray) and images.ndim == 4 else None


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


def image_picture(image: SwitchedImage, conditions: tuple[str, ...]) -> dict[str, Any]:
    """Return what ``show`` draws from: the image, its superpixels, and each condition's superpixel."""
    return {
        "image": to_data_url(np.rint(255 * rgb(image.shown)).astype(np.uint8), lossless=False),
        "labels": labels_to_data_url(image.labels),
        "superpixels": {condition: j for j, condition in enumerate(conditions)},
    }


@dataclass(frozen=True, eq=False)
class Photograph:
    """A user's image, the part of it that is explained, and that part with its superpixels."""

    photo: Any
    framing: Framing
    image: SwitchedImage

    @property
    def changes(self) -> Bools:
        """Whether switching a superpixel off changes a pixel, (d,)."""
        return self.image.changes

    def only(self, kept: Bools) -> Photograph:
        """Return the photograph with these superpixels; the others are always shown."""
        return replace(self, image=self.image.only(kept))


# The longest side of a photograph that an explanation stores beside the part that is explained
_LONGEST_SIDE = 512


def photo_picture(photograph: Photograph) -> dict[str, Any]:
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


def image_fingerprint(image: SwitchedImage) -> tuple[int, ...]:
    """Return whole numbers that identify an image, its fill and superpixels: keys, and seeds of streams."""
    digest = blake2b(image.shown.tobytes() + image.fill.tobytes() + image.labels.tobytes(), digest_size=16)
    return tuple(int(part) for part in np.frombuffer(digest.digest(), dtype=np.uint32))


def read_image(path: Path) -> Any:
    """Return an image file as an array: grey (H, W), or RGB (H, W, 3), upright.

    Raises
    ------
    InputError
        If the file does not exist, or is no image.
    """
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
    """Return an ONNX Runtime session, on the CPU.

    Raises
    ------
    InputError
        If the file is no ONNX model.
    """
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
