"""Images as the input of models: as they are, flattened, or preprocessed for networks.

A callable gets batches of the user's images. An estimator that was fitted on n columns gets rows of n
numbers. Networks get float32 with channels first, minus a mean and over a scale, by a :class:`Preprocess`.
All of it is done once to the image and once to its fill, never to a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from limes.exceptions import InputError
from limes.models._calling.methods import ONNX_TYPES
from limes.models._identity import qualified_name
from limes.models._images import Compose, Composer, MaskedImage, TensorComposer
from limes.models._pictures import FITS, RESAMPLINGS, Framing, pixels_of

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


def composer_of(model: Any, image: MaskedImage, preprocess: Preprocess | None) -> Compose:
    """The composer of a model's input at rows z, by the class of the model or a base of it."""
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


def _arrays(image: MaskedImage, preprocess: Preprocess | None) -> Composer:
    if preprocess is None:
        return Composer(image.shown, image.fill, image.labels)
    return Composer(
        preprocess(image.shown),
        preprocess(image.fill),
        image.labels,
        channels_first=preprocess.channels == "first",
    )


def flat(image: MaskedImage, preprocess: Preprocess | None) -> MaskedImage:
    """An image as one row (1, numbers) for an estimator, with the superpixel of each number."""
    shown, fill = image.shown, image.fill
    labels = np.broadcast_to(image.labels[..., None], (*image.labels.shape, shown.size // image.labels.size))
    if preprocess is not None:
        shown, fill = preprocess(shown), preprocess(fill)
        labels = labels if preprocess.channels == "last" else np.moveaxis(labels, -1, 0)
    row = (1, -1)
    return MaskedImage(
        np.asarray(shown, dtype=np.float64).reshape(row),
        np.asarray(fill, dtype=np.float64).reshape(row),
        np.ascontiguousarray(labels).reshape(row),
    )


def _flat(model: Any, image: MaskedImage, preprocess: Preprocess | None) -> Compose:
    if columns(model) != image.shown.size:
        raise InputError(
            f"{type(model).__name__} was fitted on {columns(model)} numbers, and the image has "
            f"{' x '.join(map(str, image.shown.shape))} = {image.shown.size}: pass images of the size and "
            "channels that it was fitted on"
        )
    row = flat(image, preprocess)
    return Composer(row.shown[0], row.fill[0], row.labels[0])


def _session_composer(session: Any, image: MaskedImage, preprocess: Preprocess | None) -> Compose:
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


def _module_composer(module: Any, image: MaskedImage, preprocess: Preprocess | None) -> Compose:
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


@dataclass(frozen=True)
class _Steps:
    """Steps that are applied to an image, in this order.

    Attributes
    ----------
    resize
        Length of the shorter side, or height and width.
    crop
        Height and width of the middle part that is kept.
    factor
        Factor of the pixels.
    mean, std
        Numbers that are subtracted, and numbers to divide by after that.
    """

    resize: int | tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    factor: float = 1.0
    mean: Any = 0.0
    std: Any = 1.0
    resample: str = "bilinear"

    def preprocess(self) -> Preprocess:
        """Return the steps as a `Preprocess`."""
        whole = isinstance(self.resize, tuple)
        before = self.resize if isinstance(self.resize, tuple) else (self.resize, self.resize)
        size = self.crop or (self.resize if whole else None)
        shares: set[float] = {1.0} if size == self.resize else set()
        if isinstance(size, tuple) and self.resize:
            shares = {after / side for after, side in zip(size, before, strict=True) if side}
        if len(shares) != 1 or max(shares) > 1:
            raise InputError(
                f"preprocess resizes to {self.resize} and crops {self.crop}: limes reads fixed sizes in "
                "the proportions of the crop; pass limes.Preprocess, or preprocess inside the model"
            )
        fit, share = "squash" if whole else "crop", shares.pop()
        mean, scale = np.asarray(self.mean) / self.factor, np.asarray(self.std) / self.factor
        return Preprocess(
            mean=mean.tolist(), scale=scale.tolist(), size=size, fit=fit, share=share, resample=self.resample
        )


def preprocess_like(transform: Any) -> Preprocess | None:
    """Return another library's preprocessing as a `Preprocess`; None for objects of any other kind."""
    if isinstance(transform, Preprocess):
        return transform
    for names, read in _READERS:
        if all(hasattr(transform, name) for name in names):
            steps: _Steps = read(transform)
            return steps.preprocess()
    return None


def _preset(transform: Any) -> _Steps:
    """Read for example ``torchvision.models.ResNet50_Weights.DEFAULT.transforms()``."""
    resize, crop = _resized(transform.resize_size), _height_and_width(transform.crop_size)
    resample = _resampling(transform.interpolation)
    return _Steps(resize, crop, 1 / 255, _list(transform.mean), _list(transform.std), resample)


def _composition(transform: Any) -> _Steps:
    """Read ``torchvision.transforms.Compose([Resize(256), CenterCrop(224), ToTensor(), Normalize(...)])``."""
    steps = _Steps()
    for step in transform.transforms:
        match name := type(step).__name__:
            case "Resize" if steps.crop is not None:
                raise InputError(
                    "preprocess crops before it resizes, which limes does not read: pass limes.Preprocess, "
                    "or preprocess inside the model"
                )
            case "Resize":
                resample = _resampling(step.interpolation)
                steps = replace(steps, resize=_resized(step.size), resample=resample)
            case "CenterCrop":
                steps = replace(steps, crop=_height_and_width(step.size))
            case "Normalize":
                steps = replace(steps, mean=_list(step.mean), std=_list(step.std))
            case _ if name in _TO_SHARES or (name == "ToDtype" and step.scale):
                steps = replace(steps, factor=1 / 255)
            case _ if name not in _UNCHANGED:
                raise InputError(
                    f"preprocess has the transform {name}, which limes does not read: pass "
                    "limes.Preprocess, or preprocess inside the model"
                )
    return steps


def _processor(transform: Any) -> _Steps:
    steps = _Steps(factor=float(transform.rescale_factor) if transform.do_rescale else 1.0)
    if transform.do_normalize:
        steps = replace(steps, mean=_list(transform.image_mean), std=_list(transform.image_std))
    if not transform.do_resize:
        return steps
    sides, crop = dict(transform.size), None
    if getattr(transform, "do_center_crop", None):
        crop = _sides(transform.crop_size)
    if "shortest_edge" in sides:
        resize: Any = int(sides["shortest_edge"])
        share = getattr(transform, "crop_pct", None)
        if share and crop is None:
            # ConvNeXT: small sizes are this share of what is resized, large ones are the whole squashed
            square = resize, resize
            resize, crop = (int(resize / share), square) if resize < _CONVNEXT_WHOLE else (square, None)
    else:
        resize = _sides(sides)
    return replace(steps, resize=resize, crop=crop, resample=_resampling(transform.resample))


# Attributes by which a kind of preprocessing is recognised, and its reader
_READERS = (
    (("resize_size", "crop_size", "mean", "std", "interpolation"), _preset),
    (("image_mean", "image_std", "do_rescale", "do_resize", "size"), _processor),
    (("transforms",), _composition),
)


def _sides(sides: Any) -> tuple[int, int]:
    named = sides if isinstance(sides, Mapping) else dict(sides)
    return int(named["height"]), int(named["width"])


def _resized(size: Any) -> int | tuple[int, int]:
    """Return one number for the shorter side, or height and width."""
    numbers = [int(side) for side in size] if isinstance(size, Iterable) else [int(size)]
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _height_and_width(size: Any) -> tuple[int, int]:
    sides = _resized(size)
    return (sides, sides) if isinstance(sides, int) else sides


def _list(numbers: Any) -> list[float]:
    return [float(number) for number in numbers]


def _resampling(kind: Any) -> str:
    """Return the name of PIL's number, or of torchvision's enumeration."""
    name = str(getattr(kind, "value", kind)).lower()
    names = {str(number): one for one, number in RESAMPLINGS.items()} | {one: one for one in RESAMPLINGS}
    if name not in names:
        raise InputError(f"preprocess resizes by {kind!r}: limes resizes by {sorted(RESAMPLINGS)}")
    return names[name]
