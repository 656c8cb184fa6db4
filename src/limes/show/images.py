"""The image of an explanation, and what its superpixels say: masks, overlays, cutouts, boundaries.

Explanations of images say in their provenance what the image is, and which pixels belong to each condition.
Pictures are arrays of uint8; plots and HTML show them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import is_count
from limes.exceptions import InputError
from limes.show.png import decoded, decoded_labels
from limes.show.view import by_size, with_outputs

if TYPE_CHECKING:
    from limes._arrays import Bools, Floats, Ints
    from limes.explanation import Explanation

SIGNS = ("+", "-", "both")
_RAISES, _LOWERS = np.array([43, 123, 186.0]), np.array([224, 123, 33.0])
_PAPER, _LINE = np.array([244, 245, 247.0]), np.array([255, 255, 255.0])
_STRONGEST = 0.8  # of the colour of the largest coefficient
_ROUNDING = 1e-9  # smaller shares of the largest coefficient are 0


@dataclass(frozen=True, eq=False)
class ImageView:
    """An image, its superpixels, and the coefficient of each for one output.

    Attributes
    ----------
    image
        (H, W, 3) uint8.
    labels
        (H, W) superpixel of each pixel.
    values
        (d,) coefficients, nan of superpixels that the explanation leaves out.
    """

    image: Any
    labels: Ints
    values: Floats

    @classmethod
    def of(cls, explanation: Explanation, output: int, row: int = 0) -> ImageView | None:
        """Look at one output, by position; None if the explanation is not of an image."""
        facts = explanation.provenance
        if not all(name in facts for name in ("image", "labels", "superpixels")):
            return None
        labels = decoded_labels(facts["labels"])
        values = np.full(int(labels.max()) + 1, np.nan)
        found = with_outputs(explanation.values, explanation)[row, :, output]
        for condition, value in zip(explanation.conditions[row], found.tolist(), strict=True):
            values[facts["superpixels"][condition]] = value
        return cls(decoded(facts["image"])[..., :3], labels, values)

    def top(self, k: int, sign: str) -> Ints:
        """Positions of the k largest coefficients of a sign, "+", "-" or "both", largest first.

        Raises
        ------
        InputError
            If k or the sign is none.
        """
        if not is_count(k):
            raise InputError(f"top={k!r}: give the number of superpixels, 1 or more")
        if sign not in SIGNS:
            raise InputError(f"sign={sign!r} is not one of {list(SIGNS)}")
        values = np.nan_to_num(self.values)
        sizes = {"+": values, "-": -values, "both": np.abs(values)}[sign]
        least = _ROUNDING * np.abs(values).max(initial=0.0)
        return np.asarray([j for j in by_size(sizes) if sizes[j] > least][:k], dtype=np.int64)

    def mask(self, k: int = 5, sign: str = "+") -> Bools:
        """(H, W), true in the superpixels of the k largest coefficients of a sign."""
        return np.asarray(np.isin(self.labels, self.top(k, sign)))

    @cached_property
    def edges(self) -> Bools:
        """(H, W), true at pixels whose right or lower neighbour is of another superpixel."""
        found = np.zeros(self.labels.shape, dtype=np.bool_)
        found[:-1] |= self.labels[1:] != self.labels[:-1]
        found[:, :-1] |= self.labels[:, 1:] != self.labels[:, :-1]
        return found

    def tint(self, largest: float | None = None) -> tuple[Floats, Floats]:
        """Colour (d, 3) of each superpixel and its strength (d,), 1 at the largest size of a coefficient."""
        values = np.nan_to_num(self.values)
        most = largest or float(np.abs(values).max(initial=0.0))
        strength = np.minimum(np.abs(values) / most, 1.0) if most > 0 else np.zeros(values.size)
        return np.where((values > 0)[:, None], _RAISES, _LOWERS), strength

    def overlay(self, largest: float | None = None) -> Any:
        """The image in grey, its superpixels in the colours of their coefficients."""
        colour, strength = self.tint(largest)
        grey = np.repeat(self.image.mean(axis=2, keepdims=True), 3, axis=2)
        share = (_STRONGEST * strength)[self.labels][..., None]
        lined = np.where(self.edges[..., None], _mixed(grey, _LINE, 0.2), grey)
        return _pixels(_mixed(lined, colour[self.labels], share))

    def glass(self) -> Any:
        """The colours of the superpixels alone, (H, W, 4), transparent where they are weak."""
        colour, strength = self.tint()
        share = np.where(self.edges, 0.35, (_STRONGEST * strength)[self.labels])
        shade = np.where(self.edges[..., None], _LINE, colour[self.labels])
        return _pixels(np.concatenate([shade, 255 * share[..., None]], axis=-1))

    def cutout(self, k: int = 5, sign: str = "+") -> Any:
        """The top superpixels alone, on plain paper."""
        return _pixels(np.where(self.mask(k, sign)[..., None], self.image, _PAPER))

    def boundaries(self, k: int = 5, sign: str = "both") -> Any:
        """The image with the outlines of all superpixels, and of the top ones in their colour."""
        colour, _ = self.tint()
        image = np.where(self.edges[..., None], _mixed(self.image, _LINE, 0.45), self.image)
        for j in reversed(self.top(k, sign).tolist()):
            image = np.where(_outline(self.labels == j)[..., None], colour[j], image)
        return _pixels(image)


def _mixed(image: Any, colour: Any, share: Any) -> Any:
    return (1.0 - share) * image + share * colour


def _outline(inside: Bools, width: int = 2) -> Bools:
    """Pixels of a region that are at most so far from its border."""
    from scipy.ndimage import binary_erosion

    return np.asarray(inside & ~binary_erosion(inside, iterations=width, border_value=0))


def _pixels(image: Any) -> Any:
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


# (view, k, sign, the coefficient of full colour or None) -> pixels
Draw = Callable[[ImageView, int, str, float | None], Any]
KINDS: Mapping[str, Draw] = {
    "overlay": lambda view, k, sign, largest: view.overlay(largest),  # noqa: ARG005
    "cutout": lambda view, k, sign, largest: view.cutout(k, sign),  # noqa: ARG005
    "boundaries": lambda view, k, sign, largest: view.boundaries(k, sign),  # noqa: ARG005
    "original": lambda view, k, sign, largest: view.image,  # noqa: ARG005
}


def view(explanation: Explanation, output: int) -> ImageView:
    """Look at one output of an explanation of an image.

    Raises
    ------
    InputError
        If it is of none.
    """
    found = ImageView.of(explanation, output)
    if found is None:
        raise InputError("There is no image here; explanations of limes.ImageExplainer have one")
    return found
