"""Images as the input of models: as they are, flattened, or preprocessed for networks.

A callable gets batches of the user's images. An estimator that was fitted on n columns gets rows of n
numbers. Networks get float32 with channels first, minus a mean and over a scale, by a :class:`Preprocess`.
All of it is done once to the image and once to its fill, never to a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from limes.exceptions import InputError
from limes.models._calling.outputs import ONNX_TYPES
from limes.models._framing import FITS, RESAMPLINGS, Framing
from limes.models._identity import qualified_name
from limes.models._images import Compose, Composer, SwitchedImage, TensorComposer
from limes.models._pictures import pixels_of

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
        for name, choices in (
            ("channels", CHANNELS),
            ("order", ORDERS),
            ("fit", FITS),
            ("resample", tuple(RESAMPLINGS)),
        ):
            if getattr(self, name) not in choices:
                raise InputError(f"{name}={getattr(self, name)!r} is not one of {list(choices)}")
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

    def framing(self, photo: Any) -> Framing:
        """Return which part of a ``photo`` (H, W) or (H, W, C) is explained, and at what size."""
        shape = photo.shape[:2]
        # without a size the image is scaled by the share alone
        size = self.size or tuple(max(1, round(self.share * side)) for side in shape)
        return Framing.of(shape, size, self.fit, inner=self.share, resample=self.resample)


def _height_width(size: Any) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, int | np.integer) else tuple(size)
    whole = all(isinstance(side, int | np.integer) and not isinstance(side, bool) for side in sides)
    if len(sides) != 2 or not whole or min(sides) < 1:
        raise InputError(f"size must be a whole number of pixels, or (height, width), got {size!r}")
    return int(sides[0]), int(sides[1])


# -- composers by class of model ---------------------------------------------------------------------------


def composer_of(model: Any, image: SwitchedImage, preprocess: Preprocess | None) -> Compose:
    """The composer of a model's input at rows z, by the class of the model or a base of it.

    Raises
    ------
    InputError
        If the model does not accept the image; the message has the reason.
    """
    make = _composer_maker(model)
    if make is not None:
        return make(model, image, preprocess)
    if columns(model) is not None:
        return _flat(model, image, preprocess)
    return _arrays(image, preprocess)


def is_network(model: Any) -> bool:
    """Return whether a model is known to be a neural network."""
    return _composer_maker(model) is not None


def columns(model: Any) -> int | None:
    """Number of columns that an estimator was fitted on; None if the model is no estimator."""
    count = getattr(model, "n_features_in_", None)
    return None if count is None else int(count)


def _arrays(image: SwitchedImage, preprocess: Preprocess | None) -> Composer:
    if preprocess is None:
        return Composer(image.shown, image.fill, image.labels)
    return Composer(
        preprocess(image.shown),
        preprocess(image.fill),
        image.labels,
        channels_first=preprocess.channels == "first",
    )


def flat(image: SwitchedImage, preprocess: Preprocess | None) -> SwitchedImage:
    """An image as one row (1, numbers) for an estimator, with the superpixel of each number."""
    shown, fill = image.shown, image.fill
    labels = np.broadcast_to(image.labels[..., None], (*image.labels.shape, shown.size // image.labels.size))
    if preprocess is not None:
        shown, fill = preprocess(shown), preprocess(fill)
        labels = labels if preprocess.channels == "last" else np.moveaxis(labels, -1, 0)
    row = (1, -1)
    return SwitchedImage(
        np.asarray(shown, dtype=np.float64).reshape(row),
        np.asarray(fill, dtype=np.float64).reshape(row),
        np.ascontiguousarray(labels).reshape(row),
    )


def _flat(model: Any, image: SwitchedImage, preprocess: Preprocess | None) -> Compose:
    if columns(model) != image.shown.size:
        raise InputError(
            f"{type(model).__name__} was fitted on {columns(model)} numbers, and the image has "
            f"{' x '.join(map(str, image.shown.shape))} = {image.shown.size}: pass images of the size and "
            "channels that it was fitted on"
        )
    row = flat(image, preprocess)
    return Composer(row.shown[0], row.fill[0], row.labels[0])


def _session_composer(session: Any, image: SwitchedImage, preprocess: Preprocess | None) -> Compose:
    entries = session.get_inputs()
    if len(entries) != 1:
        raise InputError(f"the ONNX model has {len(entries)} inputs; pass a callable on images instead")
    shape, dtype = entries[0].shape, np.dtype(ONNX_TYPES.get(entries[0].type, np.float32)).name
    if preprocess is None:
        preprocess = Preprocess(channels=layout(shape), dtype=dtype)
    compose = _arrays(image, replace(preprocess, dtype=dtype))
    _check_shape(shape, preprocess(image.shown).shape)
    return compose


def layout(shape: Any) -> str:
    """The axis of a network's channels, "first" or "last", from the shape of its input."""
    last = len(shape) == 4 and shape[-1] in (1, 3, 4) and shape[1] not in (1, 3, 4)
    return "last" if last else "first"


def _check_shape(expected: Any, shape: tuple[int, ...]) -> None:
    """Refuse an image that an ONNX model does not accept; sizes that are not fixed are texts or None."""
    fixed = [side if isinstance(side, int) else None for side in expected[1:]]
    if len(fixed) == len(shape) and all(e is None or e == s for e, s in zip(fixed, shape, strict=True)):
        return
    raise InputError(
        f"the network takes images of shape {tuple(expected[1:])}, and gets {shape}: pass its height and "
        "width as Preprocess(size=...), and the axis of channels as Preprocess(channels=...); an image "
        "with transparency loses it by image[..., :3]"
    )


def _module_composer(module: Any, image: SwitchedImage, preprocess: Preprocess | None) -> Compose:
    torch = import_module("torch")
    preprocess = preprocess or Preprocess()
    weight = next(module.parameters(), None)
    return TensorComposer(
        torch,
        preprocess(image.shown),
        preprocess(image.fill),
        image.labels,
        channels_first=preprocess.channels == "first",
        like=torch.zeros(0) if weight is None else weight,
    )


_MakeComposer = Callable[[Any, SwitchedImage, Preprocess | None], Compose]
_KINDS: Mapping[str, _MakeComposer] = {
    "torch.Module": _module_composer,
    "onnxruntime.InferenceSession": _session_composer,
}


def _composer_maker(model: Any) -> _MakeComposer | None:
    """The composer of a network, by its class or a base of it."""
    makers = (_KINDS.get(qualified_name(kind)) for kind in type(model).__mro__)
    return next((make for make in makers if make is not None), None)
