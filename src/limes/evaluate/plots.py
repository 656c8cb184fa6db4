"""Deletion and insertion curves as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from limes.evaluate.faithfulness import Curves


def plot_curves(curves: Mapping[str, Curves], *, ax: Any = None) -> Any:
    """Draw the mean curves of explainers, deletion as lines and insertion dashed; return the axes.

    Parameters
    ----------
    curves
        Explainer -> its curves.
    ax
        Matplotlib axes; new ones if not given.

    Examples
    --------
    >>> flat = Curves(np.zeros((1, 3)), np.ones((1, 3)))
    >>> plot_curves({"limes": flat}).get_xlabel()
    'features removed, or put back'
    """
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6.4, 3.6), layout="constrained").subplots()
    for i, (name, found) in enumerate(curves.items()):
        steps = np.arange(found.deletion.shape[1])
        ax.plot(steps, found.deletion.mean(axis=0), color=f"C{i}", label=f"{name}, deletion")
        ax.plot(steps, found.insertion.mean(axis=0), "--", color=f"C{i}", label=f"{name}, insertion")
    ax.set_xlabel("features removed, or put back")
    ax.set_ylabel("mean answer, standard deviations")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return ax
