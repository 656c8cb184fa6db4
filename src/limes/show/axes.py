"""Axes to draw on: the user's, or those of a new figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return what was given, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    found: Any = plt.subplots(figsize=size, layout="constrained")[1]
    return found  # type: ignore[no-any-return]
