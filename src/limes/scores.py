"""Single numbers of structured answers, which explainers of images can explain: detections and segmentations.

A detector returns boxes, a segmentation a label a pixel: neither is a number that coefficients could add up
to. A score makes one of them, for one object of the image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats
from limes.exceptions import InputError

__all__ = ["Box", "MaskArea"]


@dataclass(frozen=True, kw_only=True)
class Box:
    r"""How surely a detector finds one object: max over its detections of score · IoU with the object's box.

    IoU is the area of the intersection over that of the union. Detections of other labels do not count.

    Parameters
    ----------
    model
        A callable on a batch of images that returns for each a mapping with "boxes" (m, 4), each (left, top,
        right, bottom), "scores" (m,) and "labels" (m,), as torchvision's detectors do.
    box
        The object's (left, top, right, bottom), in the same pixels.
    label
        Its label; None takes detections of any.

    Raises
    ------
    InputError
        If the box has no area.

    Examples
    --------
    >>> import limes
    >>> def detector(images):
    ...     return [{"boxes": [[0, 0, 4, 2]], "scores": [0.5], "labels": [3]} for _ in images]
    >>> limes.scores.Box(model=detector, box=(0, 0, 4, 4), label=3)([None, None])
    array([0.25, 0.25])
    """

    model: Any
    box: Sequence[float]
    label: Any = None

    def __post_init__(self) -> None:
        corners = np.asarray(self.box, dtype=np.float64)
        if corners.shape != (4,) or not (corners[2:] > corners[:2]).all():
            raise InputError(f"box must be (left, top, right, bottom) with an area, got {self.box!r}")

    def __call__(self, images: Any) -> Floats:
        """Return the score of each of the ``images``, (n,); 0 where nothing is detected.

        Raises
        ------
        InputError
            If a detection has no boxes, scores or labels, or of different lengths.
        """
        return np.array([self._of(detections) for detections in self.model(images)])

    def _of(self, detections: Any) -> float:
        if not isinstance(detections, Mapping) or not {"boxes", "scores", "labels"} <= detections.keys():
            raise InputError(
                "the detector must return a mapping with boxes, scores and labels for each image"
            )
        boxes = _numbers(detections["boxes"]).reshape(-1, 4)
        scores, labels = _numbers(detections["scores"]).ravel(), np.ravel(np.asarray(detections["labels"]))
        if not len(boxes) == scores.size == labels.size:
            raise InputError(f"there are {len(boxes)} boxes, {scores.size} scores and {labels.size} labels")
        same = np.ones(labels.size, dtype=np.bool_) if self.label is None else labels == self.label
        return float((scores * _overlaps(boxes, _numbers(self.box)))[same].max(initial=0.0))


def _overlaps(boxes: Floats, box: Floats) -> Floats:
    """Return IoU of boxes (m, 4) with one, (m,)."""
    sides = np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2])
    shared = np.maximum(sides, 0.0).prod(axis=1)
    areas = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0).prod(axis=1)
    return np.asarray(shared / (areas + (box[2:] - box[:2]).prod() - shared))


@dataclass(frozen=True, kw_only=True)
class MaskArea:
    """How much of a region a segmentation gives to a class: a share of pixels, or a mean probability.

    Parameters
    ----------
    model
        A callable on a batch of images that returns labels (n, H, W), or probabilities (n, classes, H, W).
    label
        The class: a label, or its position among the classes.
    region
        (H, W), true in the pixels that count; all unless given.

    Raises
    ------
    InputError
        If the region has no pixel.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> def segments(images):
    ...     return np.array([[[7, 7], [7, 0]] for _ in images])
    >>> limes.scores.MaskArea(model=segments, label=7)([None])
    array([0.75])
    """

    model: Any
    label: int
    region: ArrayLike | None = None
    _pixels: Bools | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.region is None:
            return
        pixels = np.asarray(self.region, dtype=np.bool_)
        if pixels.ndim != 2 or not pixels.any():
            raise InputError(f"region must be (H, W) with a true pixel, got shape {pixels.shape}")
        object.__setattr__(self, "_pixels", pixels)

    def __call__(self, images: Any) -> Floats:
        """Return the share, or the mean probability, of each of the ``images``, (n,).

        Raises
        ------
        InputError
            If the answers are of another shape, or have no such class.
        """
        answers = _numbers(self.model(images))
        if answers.ndim == 4 and 0 <= self.label < answers.shape[1]:
            of_class = answers[:, self.label]
        elif answers.ndim == 3:
            of_class = (answers == self.label).astype(np.float64)
        else:
            raise InputError(
                f"the segmentation must return labels (n, H, W), or probabilities (n, classes, H, W) of more "
                f"than {self.label} classes; got shape {answers.shape}"
            )
        if self._pixels is None:
            return np.asarray(of_class.mean(axis=(1, 2)))
        if self._pixels.shape != of_class.shape[1:]:
            raise InputError(f"region is {self._pixels.shape}, the segmentation {of_class.shape[1:]}")
        return np.asarray(of_class[:, self._pixels].mean(axis=1))


def _numbers(values: Any) -> Floats:
    """Return numbers of arrays, lists or tensors, wherever these are."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)
