"""Boxes of repeated runs, crosses of theory, and rings of the exact value, as the papers draw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from papers.common.drawn import INK

MEDIAN, THEORY, EXACT, FAINT = "#2f6db5", "#c8321e", "#1a8a4a", "#b8bec8"


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
    spread(ax, runs, np.arange(len(names)), width=0.55)
    crosses_and_rings(ax, np.arange(len(names)), theory=theory, exact=exact, theory_label=theory_label)
    named(ax, names)


def spread(
    ax: Any, runs: np.ndarray, place: np.ndarray, *, width: float, colour: str = INK, label: str = ""
) -> None:
    """Boxes alone, (runs, d), at places (d,)."""
    line = {"color": colour, "linewidth": 0.8}
    ax.boxplot(
        runs,
        positions=place,
        widths=width,
        manage_ticks=False,
        boxprops=line,
        whiskerprops=line,
        capprops=line,
        medianprops={"color": MEDIAN if colour == INK else colour, "linewidth": 1.2},
        flierprops={"marker": ".", "markersize": 2.5, "markeredgecolor": colour, "alpha": 0.5},
    )
    if label:
        ax.plot([], [], color=colour, linewidth=2.0, label=label)


def crosses_and_rings(
    ax: Any,
    place: np.ndarray,
    *,
    theory: np.ndarray | None = None,
    exact: np.ndarray | None = None,
    theory_label: str = "theory",
    exact_label: str = "exact (limes)",
) -> None:
    """Return what boxes at these places should show, (d,) each."""
    if theory is not None:
        ax.plot(place, theory, "x", color=THEORY, markersize=6, mew=1.4, label=theory_label, zorder=4)
    if exact is not None:
        ring = {"markerfacecolor": "none", "markeredgecolor": EXACT, "mew": 1.2, "markersize": 9}
        ax.plot(place, exact, "o", label=exact_label, zorder=3, **ring)


def named(ax: Any, names: Sequence[str]) -> None:
    """Write names at 0, 1, ... and draw the line of zero."""
    many = len(names) > 8
    ax.axhline(0, color=FAINT, linewidth=0.7, zorder=0)
    ax.set_xlim(-0.7, len(names) - 0.3)
    ax.set_xticks(range(len(names)), names, rotation=90 if many else 30, ha="center" if many else "right")
    ax.tick_params(length=0, labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
