"""Images of explanations as matplotlib pictures: one, side by side for several outputs, or many images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError
from limes.show.images import KINDS, view
from limes.show.view import with_outputs
from limes.show.wording import number, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes.explanation import Explanation

_INCHES = 3.1  # of one picture
_COLOURS = "blue superpixels raise the answer, orange ones lower it"


def draw(
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
    """Draw one output of one image on axes that are its own.

    Raises
    ------
    InputError
        If the explanation is not of an image, or there is no such kind of picture.
    """
    if kind not in KINDS:
        raise InputError(f"kind={kind!r} is not one of {list(KINDS)}")
    ax.imshow(KINDS[kind](view(explanation, output), top, sign, largest), interpolation="nearest")
    ax.set_axis_off()
    if title:
        prediction = float(with_outputs(explanation.predictions, explanation)[0, output])
        name = shorten(explanation.output_names[output], 34)
        ax.set_title(f"{name}\n{number(prediction, 3)}", fontsize=10, parse_math=False)
    return ax


def side_by_side(
    explanation: Explanation, outputs: Sequence[int], *, kind: str, top: int, sign: str
) -> Figure:
    """The image, and beside it one picture an output, all in the same scale of colours."""
    from matplotlib import pyplot as plt

    shape = view(explanation, 0).labels.shape
    wide = _INCHES * (len(outputs) + 1)
    figure, axes = plt.subplots(
        1,
        len(outputs) + 1,
        figsize=(wide, _INCHES * shape[0] / shape[1] + 0.8),
        layout="constrained",
        squeeze=False,
    )
    _original(axes[0, 0], explanation)
    largest = _largest(explanation, outputs)
    for ax, output in zip(axes[0, 1:], outputs, strict=True):
        draw(ax, explanation, output, kind=kind, top=top, sign=sign, largest=largest)
    figure.supxlabel(_COLOURS, fontsize=9)
    return figure


def gallery(
    explanations: Sequence[Explanation],
    *,
    kinds: Sequence[str] = ("original", "overlay", "cutout"),
    top: int = 5,
    sign: str = "+",
) -> Figure:
    """Several images on one figure: a row each, of its output with the largest prediction.

    Parameters
    ----------
    explanations
        Of images.
    kinds
        Pictures of a row: "original", "overlay", "cutout", "boundaries".
    top, sign
        Which superpixels are cut out or outlined.

    Raises
    ------
    InputError
        If there are none, or one is not of an image.
    """
    from matplotlib import pyplot as plt

    if not len(explanations):
        raise InputError("There is nothing to draw: give one explanation or more")
    figure, axes = plt.subplots(
        len(explanations),
        len(kinds),
        figsize=(_INCHES * len(kinds), (_INCHES + 0.5) * len(explanations) + 0.3),
        layout="constrained",
        squeeze=False,
    )
    for row, explanation in zip(axes, explanations, strict=True):
        output = int(np.argmax(with_outputs(explanation.predictions, explanation)[0]))
        for place, (ax, kind) in enumerate(zip(row, kinds, strict=True)):
            draw(ax, explanation, output, kind=kind, top=top, sign=sign, title=place == 0)
    figure.supxlabel(_COLOURS, fontsize=9)
    return figure


def _original(ax: Axes, explanation: Explanation) -> None:
    ax.imshow(view(explanation, 0).image, interpolation="nearest")
    ax.set_axis_off()
    ax.set_title(f"image\n({explanation.method})", fontsize=10)


def _largest(explanation: Explanation, outputs: Sequence[int]) -> float:
    values: Any = with_outputs(explanation.values, explanation)[0][:, list(outputs)]
    return float(np.abs(np.nan_to_num(values)).max(initial=0.0))
