"""Figure 18: a tree in dimension 20."""

from __future__ import annotations

from papers.common.drawn import Drawn, panels

from .figure_12 import TARGETS, tree
from .settings import panel


def draw(runs: int) -> Drawn:
    """One panel."""
    result = tree(20, TARGETS["Σ xⱼ"], runs, seed=18)
    figure, (ax,) = panels()
    panel(ax, result, "tree fitted on Σ xⱼ, d = 20")
    ax.legend(frameon=False, fontsize=8)
    return Drawn(figure, result.numbers(), _TEXT + result.agreement)


_TEXT = """**Claim.** Corollary 7 stays accurate in dimension 20.

**Here.** As claimed, on the tree of Figure 12 in dimension 20. """
