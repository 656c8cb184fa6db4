"""Figure 9: where the factor of a linear model's slope comes from."""

from __future__ import annotations

import numpy as np

from limes.models import forms
from papers.common.boxes import EXACT, MEDIAN, THEORY
from papers.common.drawn import INK, Drawn, panels

from .settings import uniform

# In a middle bin and in the last
INSTANCES = (1.5, 8.0)


def draw(runs: int) -> Drawn:  # noqa: ARG001 - nothing is repeated
    """Means of bins, ξ, and the average of the differences."""
    _, lime = uniform(1, seed=9)
    figure, axes = panels(2, height=2.2)
    numbers = {}
    for ax, x in zip(axes, INSTANCES, strict=True):
        instance = np.array([x])
        design = lime.design(instance)
        law, row_bin = design.coordinates[0].marginal, design.coordinates[0].cell[0]
        factor = lime.limit(forms.Linear([1.0], 0.0), instance).coef[0]
        assert np.isclose(factor, (law.means[row_bin] - law.means).sum() / 3, rtol=1e-9)
        for edge in lime.edges[0]:
            ax.axvline(edge, color="0.8", linewidth=0.8)
        ax.plot(law.means, np.zeros(4), "x", color=THEORY, markersize=8, mew=1.8)
        for b in set(range(4)) - {row_bin}:
            height = 0.3 + 0.25 * abs(b - row_bin)
            arrow = {"arrowstyle": "->", "color": EXACT}
            ax.annotate("", (law.means[row_bin], height), (law.means[b], height), arrowprops=arrow)
        ax.plot([x], [0], "o", color=INK, markersize=5)
        middle = (
            design.inclusion[0] * law.means[row_bin]
            + (1 - design.inclusion[0]) * np.delete(law.means, row_bin).mean()
        )
        ax.plot([middle], [0], "|", color=MEDIAN, markersize=14, mew=2)
        ax.set(ylim=(-0.4, 1.4), yticks=[])
        ax.tick_params(labelsize=8)
        ax.set_title(f"ξ = {x:g}: v = {factor:.2f}", fontsize=9)
        ax.spines[["top", "right", "left"]].set_visible(False)
        numbers[f"v at {x:g}"] = float(factor)
    return Drawn(figure, numbers, _TEXT)


_TEXT = """**Claim.** β_j = λ_j v_j, v_j the average difference (green arrows) between the mean of ξ's bin
and those of the others (red crosses; ξ is the dot, the weighted mean μ̃̃ the blue bar). In a middle bin v_j
is small, in an outer one large.

**Here.** As claimed: uniform rows on [-10, 10], p = 4."""
