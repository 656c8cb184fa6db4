"""Figure 20: coefficients as functions of the bandwidth, the other features."""

from __future__ import annotations

from papers.common.drawn import Drawn, panels

from .bandwidths import paths
from .settings import wine

SHOWN = slice(4, 11)


def draw(runs: int) -> Drawn:
    """A panel a feature."""
    result, names = paths(runs), wine()[2]
    figure, axes = panels(7, width=12.5, height=2.8)
    for ax, j in zip(axes, range(4, 11), strict=True):
        result.draw(ax, j, names[j])
        ax.set_xlabel("ν", fontsize=9)
    axes[0].set_ylabel("coefficient", fontsize=9)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    return Drawn(figure, result.numbers(SHOWN), _TEXT)


_TEXT = """**Claim.** The other features behave as those of Figure 7.

**Here.** As claimed, with Figure 7's settings and its correction: red does not go to 0 on the left."""
