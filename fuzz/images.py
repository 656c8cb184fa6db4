"""One case of images: all 2^d pictures, put together by hand and given to the model as rows of pixels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

import limes
from fuzz.answers import answers_of
from fuzz.script import Setup
from fuzz.switched import SwitchedTrial, compare_known, subsets
from fuzz.verdict import SKIPPED, Verdict

Array = Any
_LARGEST = 8


@dataclass(frozen=True)
class ImageOptions:
    """Options of ``ImageExplainer``: labels of pixels, and what is shown where a superpixel is off."""

    segments: Any
    fill: Any = "mean"
    bandwidth: float = 0.25
    output: Any = None

    def keywords(self, names: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Keyword arguments that differ from the library's defaults."""
        result = {"segments": self.segments}
        for key in ("fill", "bandwidth", "output"):
            value = getattr(self, key)
            if not isinstance(value, str | float | int | type(None)) or value != getattr(ImageOptions, key):
                result[key] = value
        return result


@dataclass(frozen=True)
class ImageCase:
    """A model fitted on rows of pixels; ``shape`` (H, W) or (H, W, C) and type of the images."""

    reader: str
    setup: Setup
    outputs: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: str

    def run(self) -> ImageTrial:
        """Run the case's script."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ImageTrial(self, self.setup.run()["model"])

    def options(self, rng: Any, trial: ImageTrial) -> ImageOptions:  # noqa: ARG002
        """A set of options."""
        colour: Any = 7 if len(self.shape) == 2 else [10, 0, 200][: self.shape[2]]
        fill = ["mean", "mean", "blur", "inpaint", colour, 0][rng.integers(6)]
        return ImageOptions(
            segments=_labels(rng, self.shape[:2]).tolist(),
            fill=fill,
            bandwidth=[0.25, 0.25, 0.05, 0.1, 0.5, 1.0, np.inf][rng.integers(7)],
            output=self.outputs[rng.integers(len(self.outputs))],
        )

    def rows(self, rng: Any, trial: ImageTrial, count: int) -> list[Array]:  # noqa: ARG002
        """Images."""
        result = []
        for _ in range(count):
            image = rng.integers(0, 256, self.shape)
            if rng.random() < 0.2:
                image = image // 100 * 100
            result.append(image.astype(self.dtype) if self.dtype == "uint8" else image / 255.0)
        return result


def _labels(rng: Any, shape: tuple[int, ...]) -> Array:
    """Whole numbers, one a pixel: rectangles, or any; at times one alone, or with gaps between them."""
    kind = int(rng.integers(4))
    height, width = shape
    if kind == 0:
        return np.zeros(shape, dtype=int)
    if kind == 1:
        rows, columns = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        return (np.arange(height) * rows // height)[:, None] * columns + np.arange(width) * columns // width
    result = rng.integers(0, int(rng.integers(2, _LARGEST + 1)), shape)
    return 3 * result - 2 if kind == 2 else result


class ImageTrial(SwitchedTrial):
    """A model that was fitted."""

    def explainer(self, options: ImageOptions, **more: Any) -> Any:
        """Return what is under test."""
        keywords = options.keywords()
        return limes.ImageExplainer(
            self.model, **{**keywords, "segments": np.array(keywords["segments"])}, **more
        )

    def compared(self, image: Array, explanation: Any, options: ImageOptions) -> Verdict:
        """Hold one image's explanation against the oracle."""
        labels = np.unique(np.array(options.segments), return_inverse=True)[1].reshape(image.shape[:2])
        d = int(labels.max()) + 1
        if d > _LARGEST + 1:
            return Verdict(SKIPPED)
        off = _unrounded(image, labels, options.fill)
        if image.dtype.kind != "f":
            if (np.abs(off - np.floor(off) - 0.5) < 1e-9).any():
                return Verdict(SKIPPED)  # a tie: either neighbour is a correct rounding
            off = np.clip(np.rint(off), 0, 255).astype(image.dtype)
        kept = subsets(d)[:, labels]
        if image.ndim == 3:
            kept = kept[..., None]
        pictures = np.where(kept, image, off).reshape(len(kept), -1)
        answers = answers_of(self.model, options.output, pictures)
        f = answers.ask(pictures)
        apart = np.abs(image.astype(float) - off) > 1e-12 * np.maximum(np.abs(image).max(), np.abs(off).max())
        same = np.array([not apart[labels == label].any() for label in range(d)])
        verdict = compare_known(
            explanation, f, same, options.bandwidth, "images", slope=answers.slope, level=answers.level
        )
        if verdict.fault and image.dtype.kind == "f" and self._ties(answers.ask, kept, image, off, f):
            return Verdict(SKIPPED)
        return verdict

    def _ties(self, ask: Any, kept: Array, image: Array, off: Array, f: Array) -> bool:
        """Whether a rounding of the fill changes an answer: a colour then lies on a threshold of a tree."""
        moved = [off * (1.0 + side) for side in (1e-14, -1e-14)]
        pictures = [np.where(kept, image, other).reshape(len(kept), -1) for other in moved]
        return any(np.abs(ask(rows) - f).max() > 1e-9 * np.abs(f).max() for rows in pictures)


def _unrounded(image: Array, labels: Array, fill: Any) -> Array:
    """Return what is shown where superpixels are off, before it is rounded to what the image's type has."""
    planes = image.astype(float).reshape(*labels.shape, -1)
    if not isinstance(fill, str):
        off = np.broadcast_to(np.asarray(fill, dtype=float), planes.shape).copy()
    elif fill == "mean":
        off = np.empty(planes.shape)
        for label in np.unique(labels):
            inside = planes[labels == label]
            plain = (inside == inside[0]).all()
            off[labels == label] = planes.mean(axis=(0, 1)) if plain else inside.mean(axis=0)
    elif fill == "blur":
        sigma = 0.05 * max(labels.shape)
        off = gaussian_filter(planes, (sigma, sigma, 0), mode="nearest")
    else:
        off = _inpainted(planes, labels)
    return off.reshape(image.shape)


def _inpainted(planes: Array, labels: Array) -> Array:
    """Each superpixel by Laplace's equation: a pixel is the mean of those beside it."""
    if labels.max() == 0:
        return np.broadcast_to(planes.mean(axis=(0, 1)), planes.shape).copy()
    off = np.empty(planes.shape)
    for label in np.unique(labels):
        inside = np.argwhere(labels == label)
        place = {tuple(p): i for i, p in enumerate(inside.tolist())}
        matrix, right = np.zeros((len(inside), len(inside))), np.zeros((len(inside), planes.shape[2]))
        for (y, x), i in place.items():
            for other in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if not (0 <= other[0] < labels.shape[0] and 0 <= other[1] < labels.shape[1]):
                    continue
                matrix[i, i] += 1
                if other in place:
                    matrix[i, place[other]] -= 1
                else:
                    right[i] += planes[other]
        off[labels == label] = np.linalg.solve(matrix, right)
    return off
