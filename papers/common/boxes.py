"""Boxes of repeated runs, crosses of theory, and rings of the exact value, as the papers draw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from papers.common.drawn import INK

_BOX, _MEDIAN, _THEORY, _EXACT = INK, "#2f6db5", "#c8321e", "#1a8a4a"


def boxes(
    ax: Any,
    names: Sequence[str],
    runs: np.ndarray,
    *,
    theory: np.ndarray | None = None,
    exact: np.ndarray | None = None,
    theory_label: str = "theory",
) -> None:
    """Draw coefficients (runs, d) of repeated runs, a box a name, and what they should be, (d,) each."""
    place = np.arange(1, len(names) + 1)
    line = {"color": _BOX, "linewidth": 0.8}
    ax.axhline(0, color="#b8bec8", linewidth=0.7, zorder=0)
    ax.boxplot(
        runs,
        positions=place,
        widths=0.55,
        boxprops=line,
        whiskerprops=line,
        capprops=line,
        medianprops={"color": _MEDIAN, "linewidth": 1.2},
        flierprops={"marker": ".", "markersize": 2.5, "markeredgecolor": "#8a94a3"},
    )
    if theory is not None:
        ax.plot(place, theory, "x", color=_THEORY, markersize=6, mew=1.4, label=theory_label, zorder=4)
    if exact is not None:
        ring = {"markerfacecolor": "none", "markeredgecolor": _EXACT, "mew": 1.2, "markersize": 9}
        ax.plot(place, exact, "o", label="exact (limes)", zorder=3, **ring)
    ax.set_xlim(0.3, len(names) + 0.7)
    ax.set_xticks(
        place, names, rotation=90 if len(names) > 8 else 40, ha="center" if len(names) > 8 else "right"
    )
    ax.tick_params(length=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(y=0.08)
