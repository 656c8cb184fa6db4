"""The explained text or image: its words or superpixels in the colours of their numbers.

These are coefficients, or contributions in their place. The provenance of an explanation holds the input, and
where the feature of each condition is in it: spans of a text, stretches of steps of a series' channels
(``series.py``), pixels of an image. Terminals, pages and matplotlib draw the pieces, lanes and arrays that
are made here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING
from limes._checks import check_choice, did_you_mean, is_count
from limes._explanation.attribution import changed
from limes._explanation.fit import leading
from limes._explanation.json import MAX_PIXELS, from_data_url, labels_from_data_url
from limes._explanation.selection import by_size
from limes._explanation.view import in_contributions, output_position, with_outputs
from limes._explanation.wording import number, shorten
from limes._show.axes import LOWERS, RAISES, axes_or_new, sign_colour
from limes.exceptions import InputError
from limes.models._images import Framing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch

    from limes._arrays import Bools, Floats, Ints
    from limes._explanation import Explanation

# Words and segments whose coefficients are a smaller share of the largest are not coloured
FAINTEST = 0.04


def largest_size(values: Any) -> float:
    """Return the largest size among the numbers that are finite."""
    return float(np.abs(np.nan_to_num(values, posinf=0.0, neginf=0.0)).max(initial=0.0))


def of_output(explanation: Explanation, row: int, output: int) -> tuple[list[float], list[float]]:
    """Return coefficients and errors of one row and output."""
    values, errors = (
        with_outputs(numbers, explanation)[row, :, output].tolist()
        for numbers in (explanation.coefficients.values, explanation.coefficients.standard_errors)
    )
    return values, errors


def drawn_parts(explanation: Explanation) -> list[tuple[str, Explanation]]:
    """Return the explanation once for each of its inputs that has a picture, with that picture alone.

    They go by the names of the parts; one input has the name "".
    """
    facts = explanation.provenance
    pictures = facts.get("pictures")
    if pictures is None:
        return [("", explanation)]
    if not (isinstance(pictures, dict) and all(isinstance(one, dict) for one in pictures.values())):
        raise InputError("the pictures of this explanation are damaged: they are no texts, series or images")
    rest = {name: fact for name, fact in facts.items() if name != "pictures"}
    return [(str(name), changed(explanation, provenance=rest | one)) for name, one in pictures.items()]


def part_of(explanation: Explanation, part: str | None, fact: str) -> Explanation:
    """Return the explanation with the picture of a part, by name; of the first that has the fact if None."""
    parts = drawn_parts(explanation)
    if part is None:
        return next((one for _, one in parts if fact in one.provenance), explanation)
    names = [name for name, _ in parts if name]
    if part not in names:
        raise InputError(
            f"part={part!r} is not one of the parts with a picture, {names}{did_you_mean(part, names)}"
        )
    return parts[names.index(part)][1]


# -- texts ---------------------------------------------------------------------------------------------------

_COLUMNS = 84
_MOST_LINES = 60
_WIDTH = 0.602  # of a character, in units of the font's size


@dataclass(frozen=True)
class Piece:
    """A part of a text: a word, or what stands between words."""

    text: str
    value: float = float("nan")  # coefficient of the word
    error: float = float("nan")
    strength: float = 0.0  # its size as a share of the largest, 0 where it is not coloured
    feature: int = -1  # position of the coefficient

    @property
    def is_known(self) -> bool:
        return bool(np.isfinite(self.value))


def pieces(explanation: Explanation, row: int, output: int) -> tuple[Piece, ...]:
    """Return the text in pieces, () if the explanation is not of a text."""
    text, spans = explanation.provenance.get("text"), explanation.provenance.get("spans")
    if not (isinstance(text, str) and isinstance(spans, dict)):
        return ()
    # line ends stay, other control characters become spaces: texts are data, never commands
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    values, errors = of_output(explanation, row, output)
    words = sorted(
        (start, end, feature)
        for feature, condition in enumerate(explanation.conditions[row])
        for start, end in spans.get(condition, ())
    )
    largest = largest_size(values)
    cut: list[Piece] = []
    position = 0
    for start, end, j in words:
        if position < start:
            cut.append(Piece(text[position:start]))
        share = abs(values[j]) / largest if largest and np.isfinite(values[j]) else 0.0
        cut.append(Piece(text[start:end], values[j], errors[j], share if share >= FAINTEST else 0.0, j))
        position = end
    return (*cut, Piece(text[position:])) if position < len(text) else tuple(cut)


def shortened(text: tuple[Piece, ...], longest: int) -> tuple[Piece, ...]:
    """Return the first pieces of a text that is too long."""
    room = longest
    for i, piece in enumerate(text):
        if len(piece.text) > room:
            return (*text[:i], Piece("…"))
        room -= len(piece.text)
    return text


def _runs_on_grid(pieces: tuple[Piece, ...]) -> list[tuple[int, int, Piece, str]]:
    """Return line, column, piece and text of every run of characters, wrapped between runs."""
    grid: list[tuple[int, int, Piece, str]] = []
    line = column = 0
    for piece in pieces:
        for run in re.findall(rf"\n|[^\S\n]{{1,{_COLUMNS}}}|\S{{1,{_COLUMNS}}}", piece.text):
            if run == "\n" or (column and column + len(run) > _COLUMNS):
                line, column = line + 1, 0
            if run != "\n" and not (run.isspace() and column == 0):
                grid.append((line, column, piece, run))
                column += len(run)
    return grid


def draw_text(ax: Axes | None, pieces: tuple[Piece, ...]) -> Axes:
    from matplotlib.patches import Rectangle

    runs = _runs_on_grid(pieces)
    lines = runs[-1][0] + 1
    if lines > _MOST_LINES:
        drawn, lines = [run for run in runs if run[0] < _MOST_LINES], _MOST_LINES + 1
        runs = [*drawn, (_MOST_LINES, 0, Piece("…"), "…")]
    if ax is None:
        ax = axes_or_new(None, (8.5, 1.0 + 0.24 * lines))
        ax.figure.canvas.draw()  # the layout decides how wide characters are
    ax.set_xlim(0, _COLUMNS)
    ax.set_ylim(lines, 0)
    ax.set_axis_off()
    inner = ax.get_window_extent()
    slant = (inner.width / _COLUMNS) / (inner.height / lines)  # of a character: its width in lines
    for line, column, piece, run in runs:
        # add_patch would search each curve of the outlines for its extremes, to set limits that are set
        if piece.strength:
            colour, shade = sign_colour(piece.value), 0.85 * piece.strength
            ax.add_artist(
                Rectangle((column, line + 0.06), len(run), 0.88, color=colour, alpha=shade, linewidth=0)
            )
        if not run.isspace():
            ax.add_artist(_outlined(run, column, line + 0.68, slant))
    return ax


def _outlined(run: str, column: int, base: float, slant: float) -> PathPatch:
    """Return the characters as outlines, which are as wide as the grid at any resolution."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    drawable = "".join(c if ord(c) in _glyphs() else "□" for c in run)
    font = FontProperties(family="monospace")
    text = drawable.replace("$", r"\$")  # else matplotlib typesets what stands between two as mathematics
    path = TextPath((0, 0), text, size=1 / _WIDTH, prop=font)
    outline = path.transformed(Affine2D().scale(1, -slant).translate(column, base))
    return PathPatch(outline, color="#1d2430", linewidth=0, label=run)


@cache
def _glyphs() -> frozenset[int]:
    """Return the characters of matplotlib's monospace font."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("monospace")).get_charmap())


# -- images --------------------------------------------------------------------------------------------------

SIGNS = ("+", "-", "both")
KINDS = ("overlay", "cutout", "boundaries", "original")
_RAISES, _LOWERS = (np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)], float) for c in (RAISES, LOWERS))
_PAPER, _LINE = np.array([244, 245, 247.0]), np.array([255, 255, 255.0])
_STRONGEST = 0.8  # of the colour of the largest coefficient
_INCHES = 3.1  # of one picture
_OUTSIDE = 0.6  # how much paler the image is outside of the explained part


@dataclass(frozen=True, eq=False)
class ImageView:
    """An image, its superpixels, and the coefficient of each for one output."""

    image: Any  # (H, W, 3) uint8
    labels: Ints  # (H, W) superpixel of each pixel; -1 outside of what is explained
    values: Floats  # (d,), nan for superpixels that are not in the explanation
    errors: Floats  # (d,)
    largest: float  # size of the explanation's largest coefficient, maybe of another feature: full colour

    @classmethod
    def of_output(
        cls, explanation: Explanation, output: int, row: int = 0, *, whole: bool = False
    ) -> ImageView | None:
        """Return the view of one output, None if there is no image; ``whole`` shows the whole photograph."""
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
        numbers = of_output(explanation, row, output)
        for condition, value, error in zip(explanation.conditions[row], *numbers, strict=True):
            if condition in facts["superpixels"]:
                place = facts["superpixels"][condition]
                if not 0 <= place < len(values):
                    raise InputError(
                        f"the image of this explanation is damaged: it has no superpixel {place}"
                    )
                values[place], errors[place] = value, error
        if whole and "photo" in facts:
            image = from_data_url(facts["photo"])
            labels = framing_of(facts).labels_on(labels, image.shape[:2], -1)
        return cls(image[..., :3], labels, values, errors, largest_size(numbers[0]))

    def top(self, k: int, sign: str) -> Ints:
        """Positions of the k largest coefficients of a sign, "+", "-" or "both", largest first."""
        if not is_count(k):
            raise InputError(f"top={k!r}: pass the number of superpixels, 1 or more")
        if sign not in SIGNS:
            raise InputError(f"sign={sign!r} is not one of {list(SIGNS)}")
        values = np.nan_to_num(self.values)
        sizes = {"+": values, "-": -values, "both": np.abs(values)}[sign]
        least = DIFFERENCE_ROUNDING * np.abs(values).max(initial=0.0)
        return np.asarray([j for j in by_size(sizes) if sizes[j] > least][:k], dtype=np.int64)

    @cached_property
    def edges(self) -> Bools:
        """(H, W), true at pixels whose right or lower neighbour is of another superpixel."""
        edges = np.zeros(self.labels.shape, dtype=np.bool_)
        edges[:-1] |= self.labels[1:] != self.labels[:-1]
        edges[:, :-1] |= self.labels[:, 1:] != self.labels[:, :-1]
        return edges

    @property
    def colours(self) -> Floats:
        """(d, 3)."""
        return np.where((np.nan_to_num(self.values) > 0)[:, None], _RAISES, _LOWERS)

    def opacity(self, largest: float | None = None) -> Floats:
        """(d,) of the colours, full at the largest size of a coefficient."""
        most = largest or self.largest
        sizes = np.abs(np.nan_to_num(self.values))
        return _STRONGEST * (np.minimum(sizes / most, 1.0) if most > 0 else np.zeros(sizes.size))

    def overlay(self, largest: float | None = None) -> Any:
        """The image in grey, its superpixels in the colours of their coefficients."""
        grey = np.repeat(self.image.mean(axis=2, keepdims=True), 3, axis=2)
        inside = (self.labels >= 0)[..., None]
        share = inside * self.opacity(largest)[self.labels][..., None]
        lined = np.where(self.edges[..., None], _mixed(grey, _LINE, 0.2), grey)
        lined = np.where(inside, lined, _mixed(lined, _PAPER, _OUTSIDE))
        return _pixels(_mixed(lined, self.colours[self.labels], share))

    def middles(self, superpixels: Ints) -> list[tuple[float, float]]:
        """Row and column of each superpixel's pixel nearest to the mean of all its pixels."""
        middles = []
        for j in superpixels.tolist():
            places = np.argwhere(self.labels == j)
            if len(places):
                near = places[np.argmin(((places - places.mean(axis=0)) ** 2).sum(axis=1))]
                middles.append((float(near[0]), float(near[1])))
        return middles

    def boundaries(self, k: int, sign: str) -> Any:
        """The image with the outlines of all superpixels, and of the top ones in their colour."""
        from scipy.ndimage import binary_erosion

        image = np.where(self.edges[..., None], _mixed(self.image, _LINE, 0.45), self.image)
        for j in reversed(self.top(k, sign).tolist()):
            inside = self.labels == j
            outline = inside & ~binary_erosion(inside, iterations=2, border_value=0)
            image = np.where(outline[..., None], self.colours[j], image)
        return _pixels(image)

    def picture(self, kind: str, k: int, sign: str, largest: float | None = None) -> Any:
        """The picture of a kind in `KINDS`; ``largest`` is the coefficient of full colour."""
        match kind:
            case "overlay":
                return self.overlay(largest)
            case "cutout":  # the top superpixels alone, on a plain background
                return _pixels(
                    np.where(np.isin(self.labels, self.top(k, sign))[..., None], self.image, _PAPER)
                )
            case "boundaries":
                return self.boundaries(k, sign)
            case "original":
                return self.image
        raise InputError(f"kind={kind!r} is not one of {list(KINDS)}")


def _mixed(image: Any, colour: Any, share: Any) -> Any:
    return (1.0 - share) * image + share * colour


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


def mask(
    explanation: Explanation, output: str | int | None, top: int, sign: str, of: str, part: str | None
) -> Bools:
    explanation = part_of(_shown_first(explanation), part, "image")
    view = image_view(explanation, output_position(explanation, output))
    return np.asarray(np.isin(_labels_on(explanation, view, of), view.top(top, sign)))


def heatmap(explanation: Explanation, output: str | int | None, of: str, part: str | None) -> Floats:
    explanation = part_of(_shown_first(explanation), part, "image")
    view = image_view(explanation, output_position(explanation, output))
    labels = _labels_on(explanation, view, of)
    return np.where(labels >= 0, view.values[labels], np.nan)


def _shown_first(explanation: Explanation) -> Explanation:
    """The explanation with what pictures draw: contributions, if it can have them."""
    return in_contributions(explanation) if leading(explanation) == "contributions" else explanation


def _labels_on(explanation: Explanation, view: ImageView, of: str) -> Ints:
    """Return the superpixel of each pixel, of the explained image or of the one that was passed."""
    if check_choice("of", of, ("explained", "image")) == "explained" or "photo" not in explanation.provenance:
        return view.labels
    facts, framing = explanation.provenance, framing_of(explanation.provenance)
    labels = framing.labels_on(view.labels, framing.photo, -1)
    if "photo_labels" not in facts:
        return labels
    whole = labels_from_data_url(facts["photo_labels"])
    if whole.shape != labels.shape:
        raise InputError("the segments of this explanation are damaged: they are not of its photograph")
    return np.where((labels >= 0) & (whole < view.values.size), whole, -1)


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
    from matplotlib.patheffects import withStroke

    view = image_view(explanation, output, whole=True)
    ax.imshow(view.picture(kind, top, sign, largest), interpolation="nearest")
    ax.set_axis_off()
    if kind != "original":
        superpixels = view.top(top, sign)
        outline = [withStroke(linewidth=2, foreground="black")]
        for (row, column), j in zip(view.middles(superpixels), superpixels.tolist(), strict=True):
            ax.text(
                column, row, str(j), color="white", fontsize=8, ha="center", va="center", path_effects=outline
            )
    if title:
        prediction = float(with_outputs(explanation.predictions, explanation)[0, output])
        name = shorten(explanation.output_names[output], 34)
        ax.set_title(f"{name}\n{number(prediction, 3)}", fontsize=10, parse_math=False)
    return ax


def _grid(rows: int, columns: int, height: float) -> tuple[Figure, Any]:
    """Return a figure of this height, and its axes (rows, columns)."""
    from matplotlib import pyplot as plt

    size = (_INCHES * columns, height)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def side_by_side(
    explanation: Explanation, outputs: Sequence[int], *, of: str, kind: str, top: int, sign: str
) -> Figure:
    """Draw the image, and beside it one picture an output, all with the same scale of colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    view = image_view(explanation, 0, whole=True)
    height, width = view.labels.shape
    figure, ((first, *others),) = _grid(1, len(outputs) + 1, _INCHES * height / width + 1.5)
    first.imshow(view.image, interpolation="nearest")
    first.set_axis_off()
    first.set_title(f"image\n({explanation.method})", fontsize=10)
    largest = largest_size(with_outputs(explanation.coefficients.values, explanation)[0][:, list(outputs)])
    for ax, output in zip(others, outputs, strict=True):
        draw_image(ax, explanation, output, kind=kind, top=top, sign=sign, largest=largest)
    if kind == "overlay":
        ends = [tuple(colour / 255) for colour in (_LOWERS, _PAPER, _RAISES)]
        colours = LinearSegmentedColormap.from_list("signed", ends)
        scale = ScalarMappable(Normalize(-largest, largest), colours)
        bar = figure.colorbar(
            scale, ax=[first, *others], location="bottom", fraction=0.05, aspect=50, pad=0.02
        )
        bar.set_label(f"{of[:-1]} of a superpixel", fontsize=9)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)
    return figure


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
    if not len(explanations):
        raise InputError("There is nothing to draw: pass one explanation or more")
    figure, axes = _grid(len(explanations), len(kinds), (_INCHES + 0.5) * len(explanations) + 0.3)
    for row, explanation in zip(axes, explanations, strict=True):
        output = int(np.argmax(with_outputs(explanation.predictions, explanation)[0]))
        for k, (ax, kind) in enumerate(zip(row, kinds, strict=True)):
            draw_image(ax, explanation, output, kind=kind, top=top, sign=sign, title=k == 0)
    return figure


# -- outlines of superpixels in a page -----------------------------------------------------------------------

# Longest side of the labels that are drawn; larger ones are thinned, for example to every second pixel
_LONGEST = 256
# Steps along an edge of a pixel by its direction: right, down, left, up; (rows, columns)
_STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))
_LETTERS = "hvhv"


@dataclass(frozen=True)
class Outlines:
    """Paths of labels (h, w) by label, in a coordinate system of ``width`` by ``height``."""

    name: str  # equal only for equal labels, so that pages may share a document
    width: int
    height: int
    paths: dict[int, str]

    @classmethod
    def of(cls, labels: Ints) -> Outlines:
        step = -(-max(labels.shape) // _LONGEST)
        drawn = np.ascontiguousarray(labels[::step, ::step])
        digest = blake2b(drawn.tobytes(), digest_size=5).hexdigest()
        return cls(f"lx{digest}", drawn.shape[1], drawn.shape[0], _paths(drawn))


def _paths(labels: Ints) -> dict[int, str]:
    """Trace the labels of 0 and above."""
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
    return {label: "".join(_loops(edges[label])) for label in sorted(edges)}


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
