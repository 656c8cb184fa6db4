"""Photographs of the shared data and a small ImageNet classifier: coefficients of their superpixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import limes
from benchmarks.data import DATA
from benchmarks.shown.ways import of_both_classes, ways
from benchmarks.speed.cases import AbsentError

NAMES = ("bird", "cat", "coffee", "flower", "grace_hopper", "parrot")
MODEL, SIDE = "mobilenet_v1_025_128.onnx", 128
CALLS = 300


@dataclass(frozen=True, eq=False)
class Photograph:
    """A photograph as the network sees it, its superpixels, and the class of its largest answer."""

    pixels: Any
    session: Any

    @classmethod
    def all(cls) -> Iterator[Photograph]:
        from onnxruntime import InferenceSession
        from PIL import Image

        path = DATA / "models" / MODEL
        if not path.exists():
            raise AbsentError(f"{path} is not there; LIMES_DATA says where the data are")
        session = InferenceSession(str(path))
        for name in NAMES:
            photo = np.asarray(Image.open(DATA / "images" / f"{name}.jpg").convert("RGB"))
            yield cls(limes.Preprocess(size=SIDE).framing(photo).apply(photo), session)

    @cached_property
    def segments(self) -> Any:
        from skimage.segmentation import slic

        return slic(self.pixels, n_segments=40, compactness=10, start_label=0)

    @cached_property
    def fill(self) -> Any:
        """Each superpixel's mean colour."""
        filled = np.empty_like(self.pixels)
        for j in range(self.size):
            filled[self.segments == j] = np.rint(self.pixels[self.segments == j].mean(axis=0))
        return filled

    @property
    def size(self) -> int:
        return int(self.segments.max()) + 1

    @cached_property
    def top(self) -> int:
        return int(self._probabilities(self.pixels[None])[0].argmax())

    def ask(self, images: Any) -> Any:
        """Probability of the class (n,)."""
        return self._probabilities(images)[:, self.top]

    def masked(self, z: Any) -> Any:
        """Probability where superpixels of z (n, d) are shown."""
        shown = np.asarray(z, dtype=bool)[:, self.segments][..., None]
        return self.ask(np.where(shown, self.pixels, self.fill))

    def _probabilities(self, images: Any) -> Any:
        batch = (np.moveaxis(np.asarray(images, dtype=np.float32), -1, 1) - 128) / 128
        parts = [self.session.run(None, {"image": batch[i : i + 50]})[0] for i in range(0, len(batch), 50)]
        logits = np.concatenate(parts)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


def _limes(photo: Photograph, seed: int) -> Any:
    explainer = limes.ImageExplainer(
        photo.ask, segments=photo.segments, max_calls=CALLS, control="process", rng=seed
    )
    return explainer(photo.pixels, progress=False).coefficients.values[0]


def _lime(photo: Photograph, seed: int) -> Any:
    from lime.lime_image import LimeImageExplainer

    explanation = LimeImageExplainer(random_state=seed).explain_instance(
        photo.pixels,
        of_both_classes(photo),
        segmentation_fn=lambda _: photo.segments,
        num_samples=CALLS,
        batch_size=50,
    )
    coef = dict(explanation.local_exp[1])
    return np.array([coef.get(j, 0.0) for j in range(photo.size)])


def _partition(photo: Photograph, seed: int) -> Any:
    """shap's own order of squares; the values of a superpixel's pixels add up."""
    import shap

    np.random.seed(seed)  # noqa: NPY002 - what shap draws from
    masker = shap.maskers.Image(
        photo.pixels.mean(axis=(0, 1)) * np.ones_like(photo.pixels), photo.pixels.shape
    )
    explainer = shap.explainers.Partition(lambda images: photo.ask(images)[:, None], masker)
    result = explainer(photo.pixels[None].astype(float), max_evals=CALLS, batch_size=50, silent=True)
    pixels = np.asarray(result.values[0]).reshape(*photo.segments.shape, -1).sum(axis=2)
    return np.bincount(photo.segments.ravel(), pixels.ravel())


items = Photograph.all
WAYS = ways(_limes, _lime, _partition, CALLS)
