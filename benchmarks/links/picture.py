"""Error against nodes and against time."""

from __future__ import annotations

from typing import Any

from benchmarks import readme

_COLORS = {"quadrature": "#2a7ab9", "sampled": "#c0392b"}


def draw(curve: dict[str, list[dict[str, float]]]) -> None:
    """Two panels, logarithmic; the stated bound of the quadrature is dashed."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, constrained_layout=True)
    _panel(axes[0], curve, "nodes", "evaluations: nodes, or rows drawn")
    _panel(axes[1], curve, "ms", "milliseconds of processor")
    axes[0].set_ylabel("error of an averaged probability")
    axes[1].legend(frameon=False, loc="center right")
    figure.savefig(readme.RESULTS / "links.png", dpi=110)


def _panel(ax: Any, curve: dict[str, list[dict[str, float]]], by: str, label: str) -> None:
    for way, points in curve.items():
        x = [point[by] for point in points]
        ax.plot(x, [point["error"] for point in points], "o-", ms=3.5, color=_COLORS[way], label=way)
        if "bound" in points[0]:
            bounds = [point["bound"] for point in points]
            ax.plot(x, bounds, "--", lw=1, color=_COLORS[way], label="its stated bound")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(label)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
