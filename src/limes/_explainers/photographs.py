"""Photographs as people bring them: files, pictures of PIL, arrays, and the channels that a network takes."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._checks import require
from limes._warnings import sentence
from limes.exceptions import InputError
from limes.models._calling.hugging_face import Estimator
from limes.models._images import PLANES, Preprocess, is_path, pixels_of, upright


def read_photograph(path: str | PathLike[str]) -> Any:
    """Read an image file as an upright picture of PIL."""
    pil = require("PIL.Image", "images from files", package="pillow")
    try:
        with pil.open(path) as opened:
            opened.load()
            return upright(opened)
    except pil.DecompressionBombError as error:
        problem = f"{error}: pass a smaller copy, or, if you trust the file, an array"
    except pil.UnidentifiedImageError:
        problem = "it is no image file that PIL reads: pass an array (height, width, channels)"
    except FileNotFoundError:
        problem = "there is no such file"
    except (OSError, SyntaxError, ValueError) as error:
        problem = f"{error}: copy or download it again, or pass an array of what can be read"
    raise InputError(f"{fspath(path)} could not be read as an image: {problem}")


def with_channels(image: Any, wanted: int | None) -> tuple[Any, str]:
    """The image in the channels that a network takes, if known, and a remark on what was lost, or ""."""
    has = image.shape[2] if image.ndim == 3 else 1
    if wanted is None or has == wanted:
        return image, ""
    if wanted == 3 and has == 1:
        return np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2), ""
    if wanted == 3 and has == 4:
        return _on_white(image)
    advice = "image.convert('L') of PIL" if wanted == 1 else f"an image of {wanted} channels"
    raise InputError(
        f"the network takes images of {wanted} channel{'' if wanted == 1 else 's'}, and this one has {has}: "
        f"pass {advice}"
    )


def _on_white(image: Any) -> tuple[Any, str]:
    kind = image.dtype
    white = {"b": 1, "f": 1.0 if image.max() <= 1 else 255.0}.get(kind.kind) or np.iinfo(kind).max
    opaque = np.clip(image[..., 3:] / white, 0.0, 1.0)
    if (opaque == 1).all():
        return np.ascontiguousarray(image[..., :3]), ""
    colours = image[..., :3] * opaque + white * (1.0 - opaque)
    colours = colours if kind.kind == "f" else np.rint(colours)
    share = float((opaque < 1).mean())
    return colours.astype(kind), (
        f"the image is transparent in {max(share, 0.001):.1%} of its pixels, and the network takes no "
        "transparency: it is shown on white; for another colour pass an image without transparency"
    )


# Shares above 1 that interpolation leaves
_BRIGHTEST_SHARE = 2.0


def checked_image(image: Any) -> Any:
    """The image as an array (H, W) or (H, W, C) of the user's own numbers, C = 1, 3 or 4."""
    pixels = pixels_of(read_photograph(image) if is_path(image) else image)
    if pixels.dtype.kind not in "biuf" or pixels.dtype.itemsize > 8:
        got = f"{type(image).__name__} of {pixels.dtype}"
        raise InputError(f"an image is an array of numbers, got {got}: convert it by .astype(float)")
    if pixels.ndim not in (2, 3):
        expected = "(height, width) or (height, width, channels)"
        raise InputError(f"an image is {expected}, got {pixels.shape}: reshape it")
    if pixels.ndim == 3 and pixels.shape[2] not in PLANES:
        first = pixels.shape[0] in PLANES
        advice = (
            "move them there: np.moveaxis(image, 0, -1)"
            if first
            else "choose three, or pass several images as a list"
        )
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


def range_remark(photo: Any, preprocess: Preprocess | None, model: Any = None) -> str:
    """A warning about a photograph of another range than the network is for, or "".

    The range is that of ``preprocess``, or of the image processor of a ``model`` of transformers.
    """
    low, high = float(photo.min()), float(photo.max())
    if preprocess is None:
        # the processor refuses what is beyond its range
        is_dark = isinstance(model, Estimator) and photo.dtype == np.uint16 and 0 < high < _DARK * _WHITE_16
        return f"{_DEEP.format(high)}; {_cure(photo, 255)}" if is_dark else ""
    white, gets = preprocess.white, _numbers(*preprocess.ends(low, high, photo.dtype))
    passed = f"Preprocess(mean={preprocess.mean}, scale={preprocess.scale})"
    if white is None:
        return _remark_without_white(preprocess, photo, f"{passed} makes of it {gets} for the network")
    passed += f" is for 0 to {white}"
    if photo.dtype.kind == "f" and white == 255 and low >= 0 and 0 < high <= 1:
        raise InputError(
            f"the image has floats from {low:.3g} to {high:.3g}, and {passed}: pass 255 * image, or mean and "
            "scale over 255"
        )
    factor = preprocess.bytes_per_unit(photo.dtype)
    darkest, brightest = float(low * factor), float(high * factor)
    is_dark = 0 < max(-darkest, brightest) < _DARK * white
    is_above = brightest > (white if white > 1 else _BRIGHTEST_SHARE)
    if is_dark or is_above or darkest < -_DARK * white:
        what = _DEEP.format(high) if is_dark and factor < 1 else "it is nearly black" if is_dark else ""
        expected = _numbers(*preprocess.ends(0.0, float(white / factor), photo.dtype))
        ends = {"dtype": photo.dtype, "low": low, "high": high, "cure": _cure(photo, white)}
        why = f"{what and ': '}{what}"
        return sentence(
            "input", "another range", passed=passed, gets=gets, expected=expected, why=why, **ends
        )
    if factor == 1:
        return ""
    multiple = (
        f"{factor.numerator}" if factor.denominator == 1 else f"{factor.numerator}/{factor.denominator}"
    )
    cure = f"; {_cure(photo, white)}" if high < _FOURTEEN_BITS and factor < 1 else ""
    return sentence("input", "multiplied", dtype=photo.dtype, passed=passed, factor=multiple, cure=cure)


# A photograph whose largest number is below this share of white is of another white, or nearly black
_DARK = 0.1
_WHITE_16, _FOURTEEN_BITS = 65535, 1 << 14
_DEEP = "of 16 bits 65535 is white, and the brightest pixel is {:.0f}, so that it is nearly black"
# Numbers that are normalised already are seldom larger
_NORMALISED = 10.0
# What a network gets if mean and scale fit the image: numbers that differ by more, and are no larger
_NARROW, _FAR = 0.05, 500.0


def _numbers(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}"


def _remark_without_white(preprocess: Preprocess, photo: Any, passed: str) -> str:
    """A warning where nothing but mean and scale tell the range; none where these change nothing."""
    low, high = preprocess.ends(float(photo.min()), float(photo.max()), photo.dtype)
    is_plain = not np.any(preprocess.mean) and bool((np.asarray(preprocess.scale) == 1).all())
    is_usual = high - low >= _NARROW and max(-low, high) <= _FAR
    if is_plain or is_usual or photo.min() == photo.max():
        return ""
    return f"{passed}, where about -1 to 1 is usual: pass an image of the range that mean and scale are for"


def _cure(photo: Any, white: int) -> str:
    """Get what to pass in place of a photograph of another range than 0 to ``white``, by the range it has."""
    low, high, is_bytes = float(photo.min()), float(photo.max()), white > 1
    largest = max(-low, high)
    if low < 0 and largest <= 1:
        return f"if -1 is black and 1 white, pass {'127.5 * (image + 1)' if is_bytes else '(image + 1) / 2'}"
    if photo.dtype == np.int8 and low < 0:
        shifted = "image.astype('int16') + 128" if is_bytes else "(image + 128.0) / 255"
        return f"if -128 is black and 127 white, pass {shifted}"
    if low < 0:
        also = "; if it is normalised already, leave mean and scale out" if largest <= _NORMALISED else ""
        return f"pass numbers from 0, where it is black, to {white}{also}"
    if high <= 1:
        return "if 1 is white, pass 255 * image" if is_bytes else "pass the image divided by its white"
    if high <= 255 and not is_bytes:
        return "if 255 is white, pass image / 255, or mean and scale times 255"
    if high <= 255 and photo.dtype == np.uint16:
        return "if 255 is white, pass image.astype('uint8')"
    if high <= 255 and photo.dtype.kind == "f":
        return f"pass numbers from 0 to {white}"
    bits = int(high).bit_length()
    scaled = f"image * (255 / {2**bits - 1})" if is_bytes else f"image / {2**bits - 1}"
    return f"if it has {bits} bits, of which {2**bits - 1} is white, pass {scaled}, numbers from 0 to {white}"


def unit(image: Any) -> Floats:
    """Pixels between 0 and 1: whole numbers over their largest, floats as they are or over 255."""
    pixels = np.nan_to_num(np.asarray(image, dtype=np.float64))
    kind = np.asarray(image).dtype
    if kind.kind in "iu" and kind.itemsize <= 2:  # bytes as 64 bits never reach the largest
        return np.clip(pixels / np.iinfo(kind).max, 0.0, 1.0)
    low, high = pixels.min(), pixels.max()
    if low < 0:
        return (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)
    if high <= 1:
        return pixels
    return pixels / 255.0 if high <= 255 else pixels / high


def rgb(image: Any) -> Floats:
    """The image as people see it, (H, W, 3) between 0 and 1; transparent pixels are grey."""
    pixels = unit(image)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.shape[2] < 3:
        return np.repeat(pixels[..., :1], 3, axis=2)
    if pixels.shape[2] != 4:  # five and more, which the drop-in for lime takes
        return pixels[..., :3]
    opaque = pixels[..., 3:]
    return pixels[..., :3] * opaque + 0.5 * (1.0 - opaque)


def as_bytes(image: Any) -> Any:
    return np.rint(255 * rgb(image)).astype(np.uint8)
