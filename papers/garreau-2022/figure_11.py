"""Figure 11: explanations of the indicator of a rectangle."""

from __future__ import annotations

from matplotlib.patches import Rectangle

from limes.models import forms
from papers.common.boxes import THEORY
from papers.common.drawn import Drawn, panels

from .arrows import draw_arrows
from .settings import uniform

BOXES = (((-3.5, 6.0), (-1.5, 9.0)), ((6.0, -4.0), (9.0, -1.0)))


def draw(runs: int) -> Drawn:  # noqa: ARG001 - the limits themselves
    """A rectangle a panel."""
    _, lime = uniform(2, seed=11)
    figure, axes = panels(2, height=4.0)
    numbers = {}
    for i, (ax, (lower, upper)) in enumerate(zip(axes, BOXES, strict=True)):
        numbers[f"arrows {i + 1}"] = draw_arrows(ax, lime, forms.Boxes([lower], [upper], [1.0]))
        width, height = upper[0] - lower[0], upper[1] - lower[1]
        ax.add_patch(Rectangle(lower, width, height, fill=False, edgecolor=THEORY, linewidth=1.6))
    return Drawn(figure, numbers, _TEXT)


_TEXT = """**Claim.** Of the indicator of a rectangle (red) explanations are small far from it, except where
ξ is aligned with it along an axis: there one coefficient stays large, though f is flat.

**Here.** As claimed, by Proposition 6; arrows are (β₁, β₂) at the centre of each cell, p = 4, default ν,
uniform training rows on [-10, 10]²; the longest is scaled to a cell. The proposition needs the rectangle
inside one cell; `limes.limit` does not."""
