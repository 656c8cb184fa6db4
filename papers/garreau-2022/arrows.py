"""Explanations (β₁, β₂) as arrows, one at the centre of each cell of a grid in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.common.drawn import INK
from papers.common.tabular import TabularLime


def centers(lime: TabularLime) -> np.ndarray:
    """Centres of all cells, (p², 2)."""
    middle = [0.5 * (e[:-1] + e[1:]) for e in lime.edges]
    return np.array(np.meshgrid(*middle)).reshape(2, -1).T


def fields(lime: TabularLime, form: Any) -> np.ndarray:
    """β at all centres, (p², 2)."""
    return np.array([lime.limit(form, place).coef for place in centers(lime)])


def draw_arrows(ax: Any, lime: TabularLime, form: Any) -> np.ndarray:
    """The grid and its arrows, the longest as long as a cell is wide."""
    place, arrow = centers(lime), fields(lime, form)
    for edge in lime.edges[0]:
        ax.axvline(edge, color="0.85", linewidth=0.8, zorder=0)
    for edge in lime.edges[1]:
        ax.axhline(edge, color="0.85", linewidth=0.8, zorder=0)
    longest = np.linalg.norm(arrow, axis=1).max()
    cell = 20 / (len(lime.edges[0]) - 1)
    shown = arrow / longest * cell * 0.8
    ax.quiver(*place.T, *shown.T, angles="xy", scale_units="xy", scale=1, color=INK, width=0.006)
    ax.set(xlim=(-10.5, 11.5), ylim=(-10.5, 11.5), aspect="equal")
    ax.tick_params(labelsize=8)
    ax.set_xlabel("x₁", fontsize=9)
    ax.set_ylabel("x₂", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    return arrow
