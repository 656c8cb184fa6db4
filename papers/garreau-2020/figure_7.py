"""Figure 7: a bandwidth that switches a feature off."""

from __future__ import annotations

import numpy as np

from limes.theory import switch_off_bandwidth
from papers.common.boxes import boxes
from papers.common.drawn import Drawn, panels

from .two_features import INSTANCE, RUNS, SWITCH, D, compared


def draw(runs: int) -> Drawn:
    """Boxes at ν = 0.53."""
    result = compared(SWITCH, min(runs, RUNS))
    figure, (ax,) = panels(width=6.0)
    boxes(ax, [str(j + 1) for j in range(D)], result.runs, theory=result.limit.coef)
    ax.set(xlabel="feature", ylabel="coefficient")
    ax.set_title(f"f(x) = 10 x₁ - 10 x₂, ν = {SWITCH}", fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    width = switch_off_bandwidth(INSTANCE, mean=np.zeros(D), std=1.0)[1]
    text = _TEXT.format(width=width, first=result.limit.coef[0], second=abs(result.limit.coef[1]))
    return Drawn(figure, result.numbers() | {"switched off at": float(width)}, text + result.agreement)


_TEXT = """**Claim.** At ν = 0.53 the second feature is switched off, though f depends on it as much as on
the first, which keeps its coefficient.

**Here.** As claimed, with an instance chosen for it: Equation 4.1 gives ν = {width:.2f}, β₁ = {first:.2f}
and |β₂| < {second:.0e}. """
