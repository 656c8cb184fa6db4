"""Photographs: how fast the answer falls as pixels are hidden, and rises as they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np

import limes
from benchmarks.images.networks import SMALL, Network, lime_coefficients
from benchmarks.levels.texts import CALLS, CHECKS, STEPS
from benchmarks.progress import say

# As they are sorted in the folder of photographs
PHOTOGRAPHS = (
    *("astronaut", "bird", "cat", "chelsea_cat", "china_palace"),
    *("coffee", "flower", "grace_hopper", "parrot", "raccoon"),
)
# Standard deviation of the blur that pixels are inserted into, as a share of the side
BLUR = 1 / 14


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


def by_limes(of: Explained) -> Any:
    explainer = limes.ImageExplainer(
        of.session,
        preprocess=of.network.preprocess,
        labels=of.network.labels,
        link="softmax",
        hierarchy=True,
        fill=of.blurred,
        top=1,
        max_calls=CALLS - CHECKS,
        rng=0,
    )
    explanation = explainer(of.image, progress=False)
    heat = explanation.heatmap()
    # what a rectangle has for each of its pixels: there are larger and smaller ones
    _, place, pixels = np.unique(_rectangles(explanation), return_inverse=True, return_counts=True)
    return heat / pixels[place].reshape(heat.shape)


def _rectangles(explanation: limes.Explanation) -> Any:
    from limes._explanation.json import labels_from_data_url

    return labels_from_data_url(explanation.provenance["labels"])


def by_lime(of: Explained) -> Any:
    segments = np.unique(of.network.segments(of.image), return_inverse=True)[1].reshape(of.image.shape[:2])
    coef = lime_coefficients(of.network, of.session, of.image, of.label, CALLS, 0)
    return (coef / np.bincount(segments.ravel()))[segments]


def by_shap(of: Explained) -> Any:
    """shap's Partition, which hides by the same blur."""
    import shap

    masker = shap.maskers.Image(of.blurred)
    result = shap.Explainer(lambda images: of.ask(np.asarray(images, dtype=np.float64)), masker)(
        of.image[None], max_evals=CALLS, batch_size=50, silent=True
    )
    return result.values[0].reshape(*of.image.shape, -1).sum(axis=(2, 3))


METHODS = {"limes": by_limes, "lime": by_lime, "shap Partition": by_shap}


def measure() -> dict:
    areas: dict[str, list] = {method: [] for method in METHODS}
    for photograph in PHOTOGRAPHS:
        say(f"{SMALL.name}: {photograph}")
        explained = Explained(SMALL, photograph)
        for method, explain in METHODS.items():
            areas[method].append(explained.areas(explain(explained)))
    return {"model": SMALL.name, "photographs": list(PHOTOGRAPHS), "areas": areas}
