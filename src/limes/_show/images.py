"""The image of an explanation with the coefficients of its superpixels: masks, overlays, cutouts, boundaries.

The provenance of an image's explanation holds the image and the pixels of each condition. Pictures are arrays
of uint8, which HTML and matplotlib show: one, side by side for several outputs, or many images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import check_choice, is_count
from limes._explanation.json import MAX_PIXELS, from_data_url, labels_from_data_url
from limes._explanation.selection import by_size
from limes._explanation.view import output_position, with_outputs
from limes._explanation.wording import number, shorten
from limes.exceptions import InputError
from limes.models._images import Framing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes._arrays import Bools, Floats, Ints
    from limes._explanation import Explanation

SIGNS = ("+", "-", "both")
KINDS = ("overlay", "cutout", "boundaries", "original")
_RAISES, _LOWERS = np.array([200, 68, 60.0]), np.array([59, 111, 182.0])
_PAPER, _LINE = np.array([244, 245, 247.0]), np.array([255, 255, 255.0])
_STRONGEST = 0.8  # of the colour of the largest coefficient
_ROUNDING = 1e-9  # smaller shares of the largest coefficient are 0
_INCHES = 3.1  # of one picture
# How much paler the image is outside of the explained part
_OUTSIDE = 0.6
OF = ("explained", "image")


@dataclass(frozen=True, eq=False)
class ImageView:
    """An image, its superpixels, and the coefficient of each for one output.

    Attributes
    ----------
    image
        (H, W, 3) uint8.
    labels
        (H, W) superpixel of each pixel; -1 outside of what is explained.
    values, errors
        (d,) coefficients and standard errors, nan for superpixels that are not in the explanation.
    largest
        Size of the largest coefficient of the explanation, which has full colour; others of its features may
        be no superpixels.
    """

    image: Any
    labels: Ints
    values: Floats
    errors: Floats
    largest: float

    @classmethod
    def of_output(
        cls, explanation: Explanation, output: int, row: int = 0, *, whole: bool = False
    ) -> ImageView | None:
        """Return the view of one output, by position; None if the explanation is not of an image.

        ``whole`` shows the whole photograph, where a part of it is explained.
        """
        facts = explanation.provenance
        if not all(name in facts for name in ("image", "labels", "superpixels")):
            return None
        labels, image = labels_from_data_url(facts["labels"]), from_data_url(facts["image"])
        if labels.shape != image.shape[:2]:
            raise InputError(
                f"the image of this explanation is damaged: it has {image.shape[:2]} pixels, its superpixels "
                f"have {labels.shape}"
            )
        values, errors = np.full((2, int(labels.max()) + 1), np.nan)
        coef, error = (
            with_outputs(numbers, explanation)[row, :, output]
            for numbers in (explanation.values, explanation.standard_errors)
        )
        for condition, *numbers in zip(
            explanation.conditions[row], coef.tolist(), error.tolist(), strict=True
        ):
            if condition in facts["superpixels"]:
                place = facts["superpixels"][condition]
                values[place], errors[place] = numbers
        if whole and "photo" in facts:
            image = from_data_url(facts["photo"])
            labels = framing_of(facts).labels_on(labels, image.shape[:2], -1)
        largest = float(np.abs(np.nan_to_num(coef)).max(initial=0.0))
        return cls(image[..., :3], labels, values, errors, largest)

    def top(self, k: int, sign: str) -> Ints:
        """Positions of the k largest coefficients of a sign, "+", "-" or "both", largest first."""
        if not is_count(k):
            raise InputError(f"top={k!r}: pass the number of superpixels, 1 or more")
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
        edges = np.zeros(self.labels.shape, dtype=np.bool_)
        edges[:-1] |= self.labels[1:] != self.labels[:-1]
        edges[:, :-1] |= self.labels[:, 1:] != self.labels[:, :-1]
        return edges

    def tint(self, largest: float | None = None) -> tuple[Floats, Floats]:
        """Colour (d, 3) of each superpixel and its strength (d,), 1 at the largest size of a coefficient."""
        values = np.nan_to_num(self.values)
        most = largest or self.largest
        strength = np.minimum(np.abs(values) / most, 1.0) if most > 0 else np.zeros(values.size)
        return np.where((values > 0)[:, None], _RAISES, _LOWERS), strength

    def opacity(self, largest: float | None = None) -> Floats:
        return _STRONGEST * self.tint(largest)[1]

    def overlay(self, largest: float | None = None) -> Any:
        """The image in grey, its superpixels in the colours of their coefficients."""
        colour, _ = self.tint(largest)
        grey = np.repeat(self.image.mean(axis=2, keepdims=True), 3, axis=2)
        inside = (self.labels >= 0)[..., None]
        share = inside * self.opacity(largest)[self.labels][..., None]
        lined = np.where(self.edges[..., None], _mixed(grey, _LINE, 0.2), grey)
        lined = np.where(inside, lined, _mixed(lined, _PAPER, _OUTSIDE))
        return _pixels(_mixed(lined, colour[self.labels], share))

    def middles(self, superpixels: Ints) -> list[tuple[float, float]]:
        """Row and column of each superpixel's pixel nearest to the mean of all its pixels."""
        middles = []
        for j in superpixels.tolist():
            places = np.argwhere(self.labels == j)
            if len(places):
                near = places[np.argmin(((places - places.mean(axis=0)) ** 2).sum(axis=1))]
                middles.append((float(near[0]), float(near[1])))
        return middles

    def cutout(self, k: int = 5, sign: str = "+") -> Any:
        """The top superpixels alone, on a plain background."""
        return _pixels(np.where(self.mask(k, sign)[..., None], self.image, _PAPER))

    def boundaries(self, k: int = 5, sign: str = "both") -> Any:
        """The image with the outlines of all superpixels, and of the top ones in their colour."""
        colour, _ = self.tint()
        image = np.where(self.edges[..., None], _mixed(self.image, _LINE, 0.45), self.image)
        for j in reversed(self.top(k, sign).tolist()):
            image = np.where(_outline(self.labels == j)[..., None], colour[j], image)
        return _pixels(image)

    def picture(self, kind: str, k: int, sign: str, largest: float | None = None) -> Any:
        """The picture of a kind in `KINDS`; ``largest`` is the coefficient of full colour."""
        match kind:
            case "overlay":
                return self.overlay(largest)
            case "cutout":
                return self.cutout(k, sign)
            case "boundaries":
                return self.boundaries(k, sign)
            case "original":
                return self.image
        raise InputError(f"kind={kind!r} is not one of {list(KINDS)}")


def _mixed(image: Any, colour: Any, share: Any) -> Any:
    return (1.0 - share) * image + share * colour


def _outline(inside: Bools, width: int = 2) -> Bools:
    """Return the pixels of a region at most `width` from its border."""
    from scipy.ndimage import binary_erosion

    return np.asarray(inside & ~binary_erosion(inside, iterations=width, border_value=0))


def _pixels(image: Any) -> Any:
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def image_view(explanation: Explanation, output: int, *, whole: bool = False) -> ImageView:
    """Return the view of one output, by position, of an explanation of an image."""
    view = ImageView.of_output(explanation, output, whole=whole)
    if view is None:
        raise InputError("There is no image here; explanations of limes.ImageExplainer have one")
    return view


def framing_of(facts: Mapping[str, Any]) -> Framing:
    """Return the framing: the part of its photograph that an explanation covers."""
    try:
        photo, box, size = (
            tuple(int(side) for side in facts["frame"][key]) for key in ("photo", "box", "size")
        )
        valid = len(photo) == len(size) == 2 and len(box) == 4 and min(*photo, *size, *box[2:]) > 0
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the frame of this explanation is damaged: {error}") from error
    if not valid or photo[0] * photo[1] > MAX_PIXELS:
        raise InputError("the frame of this explanation is damaged")
    return Framing((photo[0], photo[1]), (box[0], box[1], box[2], box[3]), (size[0], size[1]))


def mask(explanation: Explanation, output: str | int | None, top: int, sign: str, of: str) -> Bools:
    """Return the pixels of the top superpixels, (H, W); see `Explanation.mask`."""
    view = _main_view(explanation, output)
    return np.asarray(np.isin(_labels_of(explanation, view, of), view.top(top, sign)))


def heatmap(explanation: Explanation, output: str | int | None, of: str) -> Floats:
    """Return each pixel's coefficient, (H, W); see `Explanation.heatmap`."""
    view = _main_view(explanation, output)
    labels = _labels_of(explanation, view, of)
    return np.where(labels >= 0, view.values[labels], np.nan)


def _main_view(explanation: Explanation, output: str | int | None) -> ImageView:
    return image_view(explanation, output_position(explanation, output))


def _labels_of(explanation: Explanation, view: ImageView, of: str) -> Ints:
    """Return the superpixel of each pixel, of the explained image or of the one that was passed."""
    if check_choice("of", of, OF) == "explained" or "photo" not in explanation.provenance:
        return view.labels
    framing = framing_of(explanation.provenance)
    return framing.labels_on(view.labels, framing.photo, -1)


def draw_image(
    ax: Axes,
    explanation: Explanation,
    output: int,
    *,
    kind: str,
    top: int,
    sign: str,
    largest: float | None = None,
    title: bool = True,
) -> Axes:
    """Draw one output of one image on empty axes."""
    view = image_view(explanation, output, whole=True)
    ax.imshow(view.picture(kind, top, sign, largest), interpolation="nearest")
    ax.set_axis_off()
    if kind != "original":
        _number(ax, view, view.top(top, sign))
    if title:
        prediction = float(with_outputs(explanation.predictions, explanation)[0, output])
        name = shorten(explanation.output_names[output], 34)
        ax.set_title(f"{name}\n{number(prediction, 3)}", fontsize=10, parse_math=False)
    return ax


def side_by_side(
    explanation: Explanation, outputs: Sequence[int], *, kind: str, top: int, sign: str
) -> Figure:
    """Draw the image, and beside it one picture an output, all with the same scale of colours."""
    from matplotlib import pyplot as plt

    shape = image_view(explanation, 0, whole=True).labels.shape
    wide = _INCHES * (len(outputs) + 1)
    figure, axes = plt.subplots(
        1,
        len(outputs) + 1,
        figsize=(wide, _INCHES * shape[0] / shape[1] + 1.5),
        layout="constrained",
        squeeze=False,
    )
    _original(axes[0, 0], explanation)
    largest = _largest(explanation, outputs)
    for ax, output in zip(axes[0, 1:], outputs, strict=True):
        draw_image(ax, explanation, output, kind=kind, top=top, sign=sign, largest=largest)
    if kind == "overlay":
        _colour_bar(figure, list(axes[0]), largest)
    return figure


def _colour_bar(figure: Figure, axes: list[Axes], largest: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    ends = [tuple(colour / 255) for colour in (_LOWERS, _PAPER, _RAISES)]
    scale = ScalarMappable(Normalize(-largest, largest), LinearSegmentedColormap.from_list("signed", ends))
    bar = figure.colorbar(scale, ax=axes, location="bottom", fraction=0.05, aspect=50, pad=0.02)
    bar.set_label("coefficient of a superpixel", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)


def _number(ax: Axes, view: ImageView, superpixels: Ints) -> None:
    from matplotlib.patheffects import withStroke

    for (row, column), j in zip(view.middles(superpixels), superpixels.tolist(), strict=True):
        ax.text(
            column,
            row,
            str(j),
            color="white",
            fontsize=8,
            ha="center",
            va="center",
            path_effects=[withStroke(linewidth=2, foreground="black")],
        )


def gallery(
    explanations: Sequence[Explanation],
    *,
    kinds: Sequence[str] = ("original", "overlay", "cutout"),
    top: int = 5,
    sign: str = "+",
) -> Figure:
    """Draw several images on one figure: a row each, for its output with the largest prediction.

    Parameters
    ----------
    explanations
        Explanations of images.
    kinds
        Pictures of a row: "original", "overlay", "cutout", "boundaries".
    top, sign
        Number and sign of the superpixels that are cut out or outlined.

    Raises
    ------
    InputError
        If there are no explanations, or one is not of an image.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> images = [np.zeros((4, 4, 3)), np.ones((4, 4, 3))]
    >>> left = np.repeat([[0, 0, 1, 1]], 4, axis=0)
    >>> explainer = limes.ImageExplainer(lambda batch: batch.mean(axis=(1, 2, 3)), segments=left, fill=0.5)
    >>> len(limes.gallery(explainer(images), kinds=["original", "overlay"]).axes) >= 4
    True
    """
    from matplotlib import pyplot as plt

    if not len(explanations):
        raise InputError("There is nothing to draw: pass one explanation or more")
    figure, axes = plt.subplots(
        len(explanations),
        len(kinds),
        figsize=(_INCHES * len(kinds), (_INCHES + 0.5) * len(explanations) + 0.3),
        layout="constrained",
        squeeze=False,
    )
    for row, explanation in zip(axes, explanations, strict=True):
        output = int(np.argmax(with_outputs(explanation.predictions, explanation)[0]))
        for k, (ax, kind) in enumerate(zip(row, kinds, strict=True)):
            draw_image(ax, explanation, output, kind=kind, top=top, sign=sign, title=k == 0)
    return figure


def _original(ax: Axes, explanation: Explanation) -> None:
    ax.imshow(image_view(explanation, 0, whole=True).image, interpolation="nearest")
    ax.set_axis_off()
    ax.set_title(f"image\n({explanation.method})", fontsize=10)


def _largest(explanation: Explanation, outputs: Sequence[int]) -> float:
    values: Any = with_outputs(explanation.values, explanation)[0][:, list(outputs)]
    return float(np.abs(np.nan_to_num(values)).max(initial=0.0))


# -- in a page -----------------------------------------------------------------------------------------------

# Longest side of the labels that are drawn; larger ones are thinned, for example to every second pixel
_LONGEST = 256
# Steps along an edge of a pixel by its direction: right, down, left, up; (rows, columns)
_STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))
_LETTERS = "hvhv"


@dataclass(frozen=True)
class Outlines:
    """Paths of labels (h, w) by label, in a coordinate system of ``width`` by ``height``.

    ``name`` is equal only for equal labels, so that pages may share a document.
    """

    name: str
    width: int
    height: int
    paths: dict[int, str]

    @classmethod
    def of(cls, labels: Ints) -> Outlines:
        """Trace the labels of 0 and above."""
        step = -(-max(labels.shape) // _LONGEST)
        drawn = np.ascontiguousarray(labels[::step, ::step])
        digest = blake2b(drawn.tobytes(), digest_size=5).hexdigest()
        return cls(f"lx{digest}", drawn.shape[1], drawn.shape[0], dict(_paths(drawn)))


def _paths(labels: Ints) -> Iterator[tuple[int, str]]:
    """Yield each label and its path."""
    edges: dict[int, dict[tuple[int, int], list[int]]] = {}
    framed = np.pad(labels, 1, constant_values=-1)
    inner = framed[1:-1, 1:-1]
    # with the label to the right of an edge: its upper edges run right, those on its right run down, ...
    beside = framed[:-2, 1:-1], framed[1:-1, 2:], framed[2:, 1:-1], framed[1:-1, :-2]
    starts = (0, 0), (0, 1), (1, 1), (1, 0)
    for direction, (other, (down, across)) in enumerate(zip(beside, starts, strict=True)):
        rows, columns = np.nonzero((inner != other) & (inner >= 0))
        places = zip((rows + down).tolist(), (columns + across).tolist(), strict=True)
        for label, place in zip(inner[rows, columns].tolist(), places, strict=True):
            edges.setdefault(label, {}).setdefault(place, []).append(direction)
    for label in sorted(edges):
        yield label, "".join(_loops(edges[label]))


def _loops(edges: dict[tuple[int, int], list[int]]) -> Iterator[str]:
    """Join edges to closed loops; each starts at a corner."""
    while edges:
        start = place = min(edges)
        runs: list[list[int]] = []
        while place in edges:
            direction = edges[place].pop()
            if not edges[place]:
                del edges[place]
            if runs and runs[-1][0] == direction:
                runs[-1][1] += 1
            else:
                runs.append([direction, 1])
            place = place[0] + _STEPS[direction][0], place[1] + _STEPS[direction][1]
        # the last run, up to the start, is what closing the path draws
        steps = (f"{_LETTERS[d]}{length * sum(_STEPS[d])}" for d, length in runs[:-1])
        yield f"M{start[1]} {start[0]}{''.join(steps)}z"
