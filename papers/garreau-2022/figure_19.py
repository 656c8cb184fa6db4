"""Figure 19: another Gaussian kernel in dimension 20."""

from __future__ import annotations

from papers.common.drawn import Drawn, panels

from .figure_14 import kernel
from .settings import panel


def draw(runs: int) -> Drawn:
    """One panel."""
    result = kernel(20, runs, seed=19)
    figure, (ax,) = panels()
    panel(ax, result, "Gaussian kernel, d = 20")
    ax.legend(frameon=False, fontsize=8)
    return Drawn(figure, result.numbers(), _TEXT + result.agreement)


_TEXT = """**Claim.** Proposition 8 stays accurate in dimension 20, γ = 10.

**Here.** As claimed, with another ζ and ξ than in Figure 14. """
