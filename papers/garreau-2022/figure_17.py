"""Figure 17: another linear model in dimension 20."""

from __future__ import annotations

from papers.common.drawn import Drawn, panels

from .figure_8 import linear
from .settings import panel


def draw(runs: int) -> Drawn:
    """One panel."""
    result = linear(20, runs, seed=17)
    figure, (ax,) = panels()
    panel(ax, result, "linear f, d = 20")
    ax.legend(frameon=False, fontsize=8)
    return Drawn(figure, result.numbers(), _TEXT + result.agreement)


_TEXT = """**Claim.** Corollary 4 stays accurate in dimension 20.

**Here.** As claimed, with other coefficients than in Figure 8. """
