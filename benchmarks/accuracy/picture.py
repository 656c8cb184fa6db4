"""Error against calls, each control by itself, and ``lime``."""

from __future__ import annotations

from typing import Any

from benchmarks import readme

_COLORS = {
    "lime": "#c0392b",
    "none": "#999999",
    "additive": "#e69f00",
    "tree": "#009e73",
    "kernel": "#2a7ab9",
    "margin": "#8e44ad",
    "auto": "#000000",
}


def draw(cases: list[dict]) -> None:
    """Panels of the cases in which controls were measured by themselves; logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    drawn = [case for case in cases if case["controls"]]
    rows = -(-len(drawn) // 3)
    figure, axes = plt.subplots(
        rows, 3, figsize=(10.5, 3.3 * rows), squeeze=False, sharex=True, constrained_layout=True
    )
    for ax, case in zip(axes.flat, drawn, strict=False):
        _panel(ax, case)
    for ax in axes.flat[len(drawn) :]:
        ax.set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("model calls")
    for ax in axes[:, 0]:
        ax.set_ylabel("squared error of all coefficients")
    handles = {label: h for ax in axes.flat for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    order = [name for name in ("lime", *_CONTROLS, "limes, auto") if name in handles]
    figure.legend(
        [handles[n] for n in order], order, ncols=len(order), loc="outside upper center", frameon=False
    )
    figure.savefig(readme.RESULTS / "accuracy.png", dpi=110)


_CONTROLS = ("none", "additive", "tree", "kernel", "margin")


def _panel(ax: Any, case: dict) -> None:
    calls = [int(n) for n in case["calls"]]
    lime = [result["mse"]["lime"] for result in case["calls"].values()]
    auto = [result["mse"]["limes"] for result in case["calls"].values()]
    ax.loglog(calls, lime, "s-", color=_COLORS["lime"], label="lime")
    for control, errors in case["controls"].items():
        ax.loglog(calls, list(errors.values()), ".-", color=_COLORS[control], label=control, lw=1.2)
    ax.loglog(calls, auto, "o", color=_COLORS["auto"], mfc="none", ms=8, label="limes, auto", ls="none")
    ax.set_title(f"{case['case']}, ν = {case['bandwidth']}√d", fontsize=10)
    ax.set_xticks(calls, [f"{n:,}" for n in calls])
    ax.minorticks_off()
    ax.grid(visible=True, which="major", alpha=0.3)
