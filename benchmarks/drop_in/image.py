"""An image at lime's defaults, 224 x 224 and 1,000 samples, with a model that takes next to no time.

Both segment with quickshift first; the time without segmentation is reported too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.drop_in.turns import in_turn
from benchmarks.progress import say

SIDE = 224
LEAST = 10.0
GOALS = {"image, engine lime: times less outside the model": LEAST}


def measure() -> dict[str, float]:
    """Seconds a call, and how many times ``lime``'s they are."""
    say("drop-in: image")
    image = photograph()
    result = in_turn(corners, {name: way(image) for name, way in _WAYS.items()})
    segments = in_turn(corners, {name: way(image) for name, way in _SEGMENTATIONS.items()})
    figures = {"image, superpixels": float(_count(image))}
    for name, cost in result.items():
        figures[f"image, {name}: s"] = cost.total
        figures[f"image, {name}: s outside the model"] = cost.outside
    for name, cost in segments.items():
        figures[f"image, {name}: s of segmentation"] = cost.total
    theirs, their_segments = result["lime"].outside, segments["lime"].total
    for name in ("engine lime", "engine limit"):
        ours, our_segments = result[name].outside, segments["limes"].total
        figures[f"image, {name}: times less outside the model"] = theirs / ours
        figures[f"image, {name}: times less outside model and segmentation"] = (theirs - their_segments) / (
            ours - our_segments
        )
    return figures


def photograph() -> Any:
    """The middle of a photograph that scikit-learn ships."""
    from PIL import Image
    from sklearn.datasets import load_sample_image

    china = load_sample_image("china.jpg")
    margin = (china.shape[1] - china.shape[0]) // 2
    square = Image.fromarray(china[:, margin : margin + china.shape[0]])
    return np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def corners(images: Any) -> Any:
    """Mean brightness of some pixels, as two probabilities."""
    share = np.asarray(images)[:, ::32, ::32].mean(axis=(1, 2, 3)) / 255.0
    return np.column_stack([1.0 - share, share])


def _lime(image: Any) -> Any:
    from lime.lime_image import LimeImageExplainer

    return lambda model: LimeImageExplainer(random_state=0).explain_instance(image, model)


def _limes(engine: str) -> Any:
    from limes.compat.lime.lime_image import LimeImageExplainer

    return lambda image: (
        lambda model: LimeImageExplainer(random_state=0, engine=engine).explain_instance(image, model)
    )


def _their_segments(image: Any) -> Any:
    from lime.wrappers.scikit_image import SegmentationAlgorithm

    segment = SegmentationAlgorithm("quickshift", kernel_size=4, max_dist=200, ratio=0.2, random_seed=0)
    return lambda model: segment(image)  # noqa: ARG005 - asks no model


def _own_segments(image: Any) -> Any:
    from limes.compat.lime.lime_image import default_segmentation

    segment = default_segmentation()
    return lambda model: segment(image)  # noqa: ARG005


def _count(image: Any) -> int:
    from limes.compat.lime.lime_image import default_segmentation

    return len(np.unique(default_segmentation()(image)))


_WAYS = {"lime": _lime, "engine lime": _limes("lime"), "engine limit": _limes("limit")}
_SEGMENTATIONS = {"lime": _their_segments, "limes": _own_segments}
