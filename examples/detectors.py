"""Explain a detector's box, or the area of a segmentation's class: ``python examples/detectors.py``.

A detector returns boxes and a segmentation a label a pixel, and neither is a number that coefficients could
add up to. A score makes a number of one of them, and superpixels explain the score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import limes


def box_score(model: Callable[[Any], Any], box: Sequence[float], label: int) -> Callable[[Any], np.ndarray]:
    """How surely a detector finds one object: max over its detections of score · IoU with the object's box.

    ``model`` maps images to mappings with "boxes" (m, 4), "scores" (m,) and "labels" (m,).
    """
    corners = np.asarray(box, dtype=float)

    def area(boxes: np.ndarray) -> np.ndarray:
        return np.clip(boxes[..., 2:] - boxes[..., :2], 0.0, None).prod(axis=-1)

    def score(detections: Any) -> float:
        boxes = np.asarray(detections["boxes"], dtype=float).reshape(-1, 4)
        shared = area(
            np.hstack([np.maximum(boxes[:, :2], corners[:2]), np.minimum(boxes[:, 2:], corners[2:])])
        )
        overlap = shared / (area(boxes) + area(corners) - shared)
        same = np.asarray(detections["labels"]) == label
        return float((np.asarray(detections["scores"]) * overlap)[same].max(initial=0.0))

    return lambda images: np.array([score(detections) for detections in model(images)])


def mask_area(model: Callable[[Any], Any], label: int) -> Callable[[Any], np.ndarray]:
    """The share of pixels that a segmentation (n, H, W) gives to a class."""
    return lambda images: (np.asarray(model(images)) == label).mean(axis=(1, 2))


def main() -> None:
    """Explain a detector that finds a cat (1) in the upper half, the surer the brighter that half is."""
    image = np.random.default_rng(0).integers(50, 200, (8, 8, 3)).astype(np.uint8)
    quarters = np.kron([[0, 1], [2, 3]], np.ones((4, 4), dtype=int))

    def detector(images: Any) -> list[dict[str, Any]]:
        return [
            {"boxes": [[0, 0, 8, 4]], "scores": [each[:4].mean() / 255], "labels": [1]} for each in images
        ]

    def bright(images: Any) -> np.ndarray:
        return np.asarray(images).mean(axis=3) > 100

    for score in (box_score(detector, (0, 0, 8, 4), label=1), mask_area(bright, label=1)):
        print(limes.ImageExplainer(score, segments=quarters, fill=0)(image))


if __name__ == "__main__":
    main()
