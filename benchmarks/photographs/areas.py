"""Photographs: how fast the answer falls as pixels are hidden, and rises as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import limes
from benchmarks.images.networks import Network, lime_coefficients
from benchmarks.progress import say

# As they are sorted in the folder of photographs
PHOTOGRAPHS = (
    *("astronaut", "bird", "cat", "chelsea_cat", "china_palace"),
    *("coffee", "flower", "grace_hopper", "parrot", "raccoon"),
)
# Standard deviation of the blur that pixels are inserted into, as a share of the side
BLUR = 1 / 14
# Points of the curves
STEPS = 33


class Explained:
    """A photograph, and the probability of its likeliest class by a network."""

    def __init__(self, network: Network, photograph: str) -> None:
        from scipy.ndimage import gaussian_filter

        self.network, self.session = network, network.session()
        self.image = network.image(photograph)
        self._probabilities = network.probabilities(self.session)
        self.label = int(np.argmax(self._probabilities(self.image[None])[0]))
        sigma = BLUR * self.image.shape[0]
        self.blurred = np.stack([gaussian_filter(self.image[..., c], sigma) for c in range(3)], axis=-1)

    def ask(self, images: Any) -> Any:
        parts = (self._probabilities(images[i : i + 32]) for i in range(0, len(images), 32))
        return np.concatenate(list(parts))[:, self.label]

    def areas(self, heat: Any) -> tuple[float, float]:
        """Areas under the curves of deletion, to the mean colour, and of insertion, into the blur."""
        order = np.lexsort((np.random.default_rng(0).random(heat.size), -heat.ravel()))
        rank = np.empty(heat.size, dtype=np.int64)
        rank[order] = np.arange(heat.size)
        shares = np.linspace(0.0, 1.0, STEPS)
        first = (rank.reshape(heat.shape) < shares[:, None, None] * heat.size)[..., None]
        mean = np.broadcast_to(self.image.mean(axis=(0, 1)), self.image.shape)
        curves = np.where(first, mean, self.image), np.where(first, self.image, self.blurred)
        return tuple(float(np.trapezoid(self.ask(curve), shares)) for curve in curves)


def by_limes(of: Explained, calls: int, seed: int) -> Any:
    explainer = limes.ImageExplainer(
        of.session,
        preprocess=of.network.preprocess,
        labels=of.network.labels,
        link="softmax",
        hierarchy=True,
        fill=of.blurred,
        top=1,
        max_calls=calls,
        rng=seed,
    )
    explanation = explainer(of.image, progress=False)
    if explanation.model_calls > calls:
        raise ValueError(f"{explanation.model_calls} calls for {calls}")
    heat = explanation.heatmap()
    # what a rectangle has for each of its pixels: there are larger and smaller ones
    _, place, pixels = np.unique(_rectangles(explanation), return_inverse=True, return_counts=True)
    return heat / pixels[place].reshape(heat.shape)


def _rectangles(explanation: limes.Explanation) -> Any:
    from limes._explanation.json import labels_from_data_url

    return labels_from_data_url(explanation.provenance["labels"])


def by_lime(of: Explained, calls: int, seed: int) -> Any:
    segments = np.unique(of.network.segments(of.image), return_inverse=True)[1].reshape(of.image.shape[:2])
    coef = lime_coefficients(of.network, of.session, of.image, of.label, calls, seed)
    return (coef / np.bincount(segments.ravel()))[segments]


def by_shap(of: Explained, calls: int, seed: int) -> Any:  # noqa: ARG001 - it draws nothing
    """shap's Partition, which hides by the same blur."""
    import shap

    masker = shap.maskers.Image(of.blurred)
    result = shap.Explainer(lambda images: of.ask(np.asarray(images, dtype=np.float64)), masker)(
        of.image[None], max_evals=calls, batch_size=50, silent=True
    )
    return result.values[0].reshape(*of.image.shape, -1).sum(axis=(2, 3))


METHODS = {"limes": by_limes, "lime": by_lime, "shap Partition": by_shap}
# Partition draws nothing
SEEDS = {"limes": (0, 1), "lime": (0, 1), "shap Partition": (0,)}


def measure(network: Network, calls: int, methods: Sequence[str] = tuple(METHODS)) -> dict:
    """Areas of each method, (seeds, photographs, 2)."""
    areas: dict[str, list] = {method: [[] for _ in SEEDS[method]] for method in methods}
    for photograph in PHOTOGRAPHS:
        explained = Explained(network, photograph)
        for method in methods:
            say(f"{network.name}, {calls} calls: {photograph} by {method}")
            for seed, its in zip(SEEDS[method], areas[method], strict=True):
                its.append(explained.areas(METHODS[method](explained, calls, seed)))
    return {"model": network.name, "calls": calls, "photographs": list(PHOTOGRAPHS), "areas": areas}
