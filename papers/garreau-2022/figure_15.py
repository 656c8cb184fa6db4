"""Figure 15: explanations of a narrow Gaussian kernel."""

from __future__ import annotations

import numpy as np

from limes.models import forms
from papers.common.boxes import THEORY
from papers.common.drawn import Drawn, panels

from .arrows import draw_arrows
from .settings import uniform

CENTERS = ((3.0, 5.0), (-7.0, -1.0))


def draw(runs: int) -> Drawn:  # noqa: ARG001 - the limits themselves
    """A kernel a panel."""
    _, lime = uniform(2, bins=10, seed=15)
    figure, axes = panels(2, height=4.0)
    numbers = {}
    for i, (ax, center) in enumerate(zip(axes, CENTERS, strict=True)):
        form = forms.GaussianKernels([center], [1.0], 1.0)
        numbers[f"arrows {i + 1}"] = draw_arrows(ax, lime, form)
        turn = np.linspace(0, 2 * np.pi, 100)
        ax.plot(center[0] + np.cos(turn), center[1] + np.sin(turn), color=THEORY, linewidth=1.4)
    return Drawn(figure, numbers, _TEXT)


_TEXT = """**Claim.** Explanations of a Gaussian kernel (γ = 1, d = 2, p = 10) are very small far from its
centre ζ, except where ξ_j falls into the bin of ζ_j.

**Here.** As claimed; circles have radius γ around ζ, arrows are (β₁, β₂) at the centres of cells."""
