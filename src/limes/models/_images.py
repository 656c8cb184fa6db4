"""Inputs whose parts are shown or hidden, number by number: images by superpixels, series by segments.

A perturbed input is a choice between the input and its fill: x(z) shows the input where z = 1 and the fill
where z = 0. A part that looks the same hidden as shown is no feature: the model is never asked without it, so
that nothing is known of its effect. It is left out of the design, as words of ``ignore=`` are: the other
coefficients are those of the same input without this feature, and its own is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from limes._arrays import Bools, Floats, Ints

# z (n, d) -> a batch of n images, as the model's input
Compose = Callable[[Floats], Any]

# Rounding error of a fill that is computed, such as a blur of a plain patch, by a channel's largest number
_ROUNDING = 1e-12


def changed(shown: Any, hidden: Any, labels: Ints) -> Bools:
    """Return which parts 0, ..., d - 1 change any number when they are hidden, (d,).

    ``labels`` (n,) or (n, C) says to which part the numbers of ``shown`` (n, C) belong.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models._images import changed
    >>> shown, hidden = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [0.0], [3.0]])
    >>> changed(shown, hidden, np.array([0, 0, 1])).tolist()
    [True, False]
    """
    before, after = (np.asarray(numbers, dtype=np.float64) for numbers in (shown, hidden))
    # units differ between channels
    size = np.maximum(np.abs(before).max(axis=0), np.abs(after).max(axis=0))
    with np.errstate(over="ignore"):
        differs = np.abs(before - after) > _ROUNDING * size
    if labels.ndim == 1:
        differs = differs.any(axis=1)
    return np.bincount(labels[differs], minlength=int(labels.max()) + 1) > 0


@dataclass(frozen=True, eq=False)
class Switched:
    """An array of d parts, each of which is shown or filled.

    Attributes
    ----------
    shown, fill
        The array where every part is shown, and where none is, of the same shape and type.
    labels
        The part 0, ..., d - 1 of each number; or of each pixel, whose channels are the last axis.
    """

    shown: Any
    fill: Any
    labels: Ints

    @property
    def size(self) -> int:
        """Number of parts d."""
        return int(self.labels.max()) + 1

    @cached_property
    def changes(self) -> Bools:
        """Whether hiding a part changes a number, (d,)."""
        return changed(self.shown, self.fill, self.labels)

    def only(self, kept: Bools) -> Self:
        """Return the array with these parts; the others are always shown."""
        channels = (1,) * (self.shown.ndim - self.labels.ndim)
        always = (~kept)[self.labels].reshape(*self.labels.shape, *channels)
        places = np.where(kept, np.cumsum(kept) - 1, 0)
        return replace(self, fill=np.where(always, self.shown, self.fill), labels=places[self.labels])


class MaskedImage(Switched):
    """An image (H, W) or (H, W, C) of d superpixels, with labels (H, W).

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models._images import MaskedImage
    >>> image, labels = np.array([[1, 2, 3]]), np.array([[0, 0, 1]])
    >>> MaskedImage(image, np.zeros_like(image), labels).images(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[[1, 2, 0]],
    <BLANKLINE>
           [[0, 0, 3]]])
    """

    @cached_property
    def changes(self) -> Bools:
        """Whether switching a superpixel off changes a pixel, (d,)."""
        pixels = (self.labels.size, -1)
        return changed(self.shown.reshape(pixels), self.fill.reshape(pixels), self.labels.ravel())

    def images(self, z: Floats) -> Any:
        """The perturbed images of rows z (n, d): (n, H, W) or (n, H, W, C)."""
        return Composer(self.shown, self.fill, self.labels)(z)


class Composer:
    """Batches of images in one buffer: each call overwrites the previous result.

    A choice between two numbers is a choice between their bits, fill ^ (mask & (shown ^ fill)), with a mask
    of ones or zeros a pixel: the same for every type of numbers, and without rounding.

    Parameters
    ----------
    shown, fill
        The model's input: (H, W), (H, W, C), or (C, H, W) if ``channels_first``.
    labels
        (H, W) superpixel of each pixel.
    """

    def __init__(self, shown: Any, fill: Any, labels: Ints, *, channels_first: bool = False) -> None:
        self._shape, self._dtype = shown.shape, shown.dtype
        self._bits = np.dtype(f"u{shown.dtype.itemsize}")
        inner = 1 if channels_first else shown.size // labels.size
        # stretches of pixels of one superpixel, in numbers where channels come last
        starts = np.flatnonzero(np.diff(labels.ravel(), prepend=-1))
        self._runs, self._lengths = labels.ravel()[starts], inner * np.diff(starts, append=labels.size)
        planes = (-1, inner * labels.size)
        self._fill = np.ascontiguousarray(fill).view(self._bits).reshape(planes)
        self._difference = self._fill ^ np.ascontiguousarray(shown).view(self._bits).reshape(planes)
        self._batch = np.empty((0, *self._shape), self._dtype)

    def __call__(self, z: Floats) -> Any:
        """Images (n, ...) at rows z (n, d)."""
        if len(z) > len(self._batch):
            self._batch = np.empty((len(z), *self._shape), self._dtype)
        batch = self._batch[: len(z)]
        masks = np.where(z > 0, ~self._bits.type(0), self._bits.type(0))
        # image by image: the arrays of one stay in the processor's cache
        for row, image in zip(masks, batch.view(self._bits).reshape(len(z), *self._fill.shape), strict=True):
            mask = np.repeat(row[self._runs], self._lengths)
            np.bitwise_and(mask, self._difference, out=image)
            np.bitwise_xor(image, self._fill, out=image)
        return batch


class TensorComposer:
    """A :class:`Composer` with torch, on the model's device.

    Parameters
    ----------
    shown, fill
        The network's input: (C, H, W), or (H, W, C) if not ``channels_first``.
    labels
        (H, W) superpixel of each pixel.
    like
        A tensor of the device and type of the network.
    """

    def __init__(
        self, torch: Any, shown: Any, fill: Any, labels: Ints, *, channels_first: bool, like: Any
    ) -> None:
        self._torch = torch
        self._shown, self._fill = (
            torch.as_tensor(a).to(device=like.device, dtype=like.dtype) for a in (shown, fill)
        )
        self._labels = torch.as_tensor(labels).to(like.device)
        self._axis = 1 if channels_first else -1
        self._batch = self._shown.new_empty((0, *shown.shape))

    def __call__(self, z: Floats) -> Any:
        """Images (n, ...) at rows z (n, d), a tensor."""
        torch = self._torch
        if len(z) > len(self._batch):
            self._batch = self._shown.new_empty((len(z), *self._shown.shape))
        on = torch.as_tensor(z > 0).to(self._labels.device)[:, self._labels].unsqueeze(self._axis)
        return torch.where(on, self._shown, self._fill, out=self._batch[: len(z)])
