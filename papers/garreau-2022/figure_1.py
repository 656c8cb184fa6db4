"""Figure 1: what LIME shows, once."""

from __future__ import annotations

import numpy as np

from papers.common.drawn import Drawn, panels

from .figure_4 import explained, lime_runs

GREEN, RED = "#1a8a4a", "#c8321e"


def draw(runs: int) -> Drawn:  # noqa: ARG001 - one run is what the figure shows
    """One run of ``lime`` beside the exact explanation."""
    explanation = explained()
    once = lime_runs(1)[0]
    figure, axes = panels(2, height=4.2)
    titles = ("one run of lime, n = 5000", "its limit (limes, exact)")
    order = np.argsort(np.abs(explanation.coefficients.values[0]))
    for ax, values, title in zip(axes, (once, explanation.coefficients.values[0]), titles, strict=True):
        ax.barh(range(len(order)), values[order], color=np.where(values[order] > 0, GREEN, RED))
        ax.axvline(0, color="0.5", linewidth=0.7)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("coefficient", fontsize=9)
        ax.tick_params(labelsize=8, length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
    axes[0].set_yticks(range(len(order)), [explanation.conditions[0][j] for j in order])
    axes[1].set_yticks([])
    axes[1].sharex(axes[0])
    return Drawn(figure, {"exact": explanation.coefficients.values[0]}, _TEXT)


_TEXT = """**Claim.** LIME explains a random forest on the Boston housing table by bars, one a bin: a low
`lstat` (share of poorer people) speaks for a high price.

**Here.** The same table and kind of model (100 trees, our instance); left `lime` 0.2.0.1 itself, once,
right what its runs converge to. The sign and the size of the large bars agree; the small ones are noise on
the left."""
