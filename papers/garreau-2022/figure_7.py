"""Figure 7: coefficients as functions of the bandwidth, the first four features."""

from __future__ import annotations

import numpy as np

from papers.common.drawn import Drawn, panels

from .bandwidths import BANDWIDTHS, paths
from .settings import wine

SHOWN = slice(0, 4)


def draw(runs: int) -> Drawn:
    """A panel a feature."""
    result, names = paths(runs), wine()[2]
    figure, axes = panels(4, width=10.0, height=2.8)
    for j, ax in enumerate(axes):
        result.draw(ax, j, names[j])
        ax.set_xlabel("ν", fontsize=9)
    axes[0].set_ylabel("coefficient", fontsize=9)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    third = result.limit[:, 2]
    at = int(np.flatnonzero(np.diff(np.sign(third)))[0])
    text = _TEXT.format(first=third[0], last=third[-1], low=BANDWIDTHS[at], high=BANDWIDTHS[at + 1])
    return Drawn(figure, result.numbers(SHOWN), text)


_TEXT = """**Claim.** Coefficients are 0 at ν = 0, settle as ν grows, and may change their sign in between,
as β₃ does; so take a large ν.

**Here.** β₃ changes its sign too, from {first:+.3f} to {last:+.3f} between ν = {low:.2f} and {high:.2f}.
Kernel ridge (width 5, penalty 1) on 400 rows of white wine, n = 1000, 100 runs, λ = 1; the dotted line is
0.75 √d.

**Mended.** What vanishes for small ν is the ridge's fit (dashed), because the weights of its rows vanish
against the penalty. The limit without a penalty (red) does not vanish: it
tends to another value."""
