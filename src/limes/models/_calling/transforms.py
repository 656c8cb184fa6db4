"""Preprocessing of other libraries as a `Preprocess`, read off by attributes; nothing is imported or called.

torchvision's presets (``weights.transforms()``), compositions of its transforms, and image processors of
transformers all resize, crop, scale and normalise: :class:`_Steps`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes.exceptions import InputError
from limes.models._calling.networks import Preprocess
from limes.models._framing import RESAMPLINGS

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
        """Return the steps as a `Preprocess`.

        Raises
        ------
        InputError
            If the size of the result is not fixed, or the middle has other proportions.
        """
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
    """Return another library's preprocessing as a `Preprocess`; None for objects of any other kind.

    Raises
    ------
    InputError
        If it does something else than to resize, crop, scale and normalise.
    """
    if isinstance(transform, Preprocess):
        return transform
    for names, read in _READERS:
        if all(hasattr(transform, name) for name in names):
            steps: _Steps = read(transform)
            return steps.preprocess()
    return None


def _preset(transform: Any) -> _Steps:
    """Read for example ``torchvision.models.ResNet50_Weights.DEFAULT.transforms()``."""
    resize, crop = _resized(transform.resize_size), _height_width(transform.crop_size)
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
                steps = replace(steps, crop=_height_width(step.size))
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
    """Read an image processor of transformers."""
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


def _height_width(size: Any) -> tuple[int, int]:
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
