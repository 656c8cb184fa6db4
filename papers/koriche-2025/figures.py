"""The paper's pictures: errors by sparsity and spread (Figures 2 to 7), gaps over time (Figure 8)."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
from markdown import table
from run import SPARSITIES, SPREADS
from sets import label

METHODS = {"iht": "IHT", "lime": "LIME", "optimum": "optimum (MIP)"}
COLORS = {"iht": "#1f77b4", "lime": "#ff7f0e", "optimum": "#2ca02c"}
AXES = {"k": ("k", list(SPARSITIES)), "spread": ("σ", SPREADS)}
_COLUMNS = 4


def means(records):
    """One record a set: mean and standard deviation over instances at each k and σ."""
    by_set = defaultdict(list)
    for record in records:
        by_set[record["set"]].append(record)
    return [
        {"set": file, "instances": len(rows), **{axis: _curves(rows, axis) for axis in AXES}}
        for file, rows in by_set.items()
    ]


def _curves(rows, axis):
    curves = {}
    for method in METHODS:
        values = np.array([[point[method] for point in row[axis]] for row in rows])
        curves[method] = {
            "mean": np.round(np.nanmean(values, axis=0), 5).tolist(),
            "std": np.round(np.nanstd(values, axis=0), 5).tolist(),
        }
    proved = np.array([[point["proved"] for point in row[axis]] for row in rows], dtype=float)
    return {**curves, "proved": np.nanmean(proved, axis=0).tolist()}


def sweeps(sets, folder):
    """Draw Figures 2 to 7, a panel a set; return their text."""
    if not sets:
        return []
    for axis in AXES:
        _sweep(sets, axis, folder / f"rmse-by-{axis}.png")
    proved = np.mean([one[axis]["proved"] for one in sets for axis in AXES])
    least, most = (end(one["instances"] for one in sets) for end in (min, max))
    instances = f"{least} to {most}" if least < most else least
    return [
        f"""## Figures 2 to 7: errors by sparsity and by spread

In-sample RMSE under the literal law: means over {instances} instances a set (20 in the paper), without
instances with |f(x)| > k, since a network may answer outside [-1, 1]. Samples are those of an earlier run.
Figures 2, 4 and 5 are by k at σ = 1; 3, 6 and 7 by σ at k = 7. {proved:.1%} of the optima are proved. At
small k LIME may lie below the optimum: its w need not satisfy w·x = f(x). The shapes are as published:
errors of the optimum and IHT fall with k, LIME's do not. In addition, errors rise as σ falls under the
literal law, because rows lie further away.

![errors by k](rmse-by-k.png)

![errors by σ](rmse-by-spread.png)"""
    ]


def _sweep(sets, axis, path):
    import matplotlib.pyplot as plt

    title, places = AXES[axis]
    rows = -(-len(sets) // _COLUMNS)
    figure, panels = plt.subplots(
        rows, _COLUMNS, figsize=(3.3 * _COLUMNS, 2.5 * rows), squeeze=False, layout="constrained"
    )
    for ax in panels.flat[len(sets) :]:
        ax.set_axis_off()
    for ax, one in zip(panels.flat, sets, strict=False):
        for method, name in METHODS.items():
            mean, std = (np.array(one[axis][method][key]) for key in ("mean", "std"))
            ax.plot(places, mean, marker="o", markersize=3, label=name, color=COLORS[method])
            ax.fill_between(places, mean - std, mean + std, alpha=0.15, linewidth=0, color=COLORS[method])
        ax.set_title(label(one["set"]), fontsize=8)
        ax.set(xlabel=title, ylim=(0, None))
    for ax in panels[:, 0]:
        ax.set_ylabel("RMSE")
    panels[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def solvers(folder):
    """Return what ``solvers.py`` measured, if it was run: a table of first instances, and Figure 8."""
    path = folder / "solvers.json"
    if not path.exists():
        return []
    measured = json.loads(path.read_text())
    lines = [
        [label(one["set"]), one["law"], one["literals"]]
        + [_end(one["solvers"].get(name), one["solvers"]["limes"]) for name in SOLVERS]
        for one in measured["instances"]
        if one["instance"] == 0
    ]
    limit = measured["limit"]
    text = f"""Seconds of one thread until the optimum was proved, or the gap after {limit:g} s, and the
objective divided by limes's where it differs. All solvers have the same instances; limes was run again
after its search changed (`solvers.py`; Gurobi's free licence allows quadratic problems of up to 200
variables: 100 literals).

{table(["set", "law", "literals", *SOLVERS], lines)}"""
    _paths([one for one in measured["instances"] if one["law"] == "count"], folder)
    return [
        f"## Table 4 beside other solvers\n\n{text}",
        """## Figure 8: the search over time

Each line is an instance under the count law: the best explanation found (full) and the lower bound (dotted)
of Gurobi and of limes. As published, good explanations are found early, and the bound takes most of the time.

![search over time](search.png)""",
    ]


SOLVERS = ("limes", "SCIP", "Gurobi")


def _end(solver, ours):
    if solver is None:
        return "–"
    ratio = solver["objective"] / ours["objective"]
    other = "" if abs(ratio - 1.0) < 1e-4 else f", {ratio:.3f} ×"
    if solver["proved"]:
        return f"{solver['seconds']:.3g} s{other}"
    gap = (solver["objective"] - max(solver["lower"], 0.0)) / solver["objective"]
    return f"gap {gap:.1%}{other}"


def _paths(instances, folder):
    """Figure 8: best objective and lower bound over time, a panel a set, of the sets with most literals."""
    import matplotlib.pyplot as plt

    files = sorted({one["set"]: one["literals"] for one in instances}.items(), key=lambda item: item[1])
    files = [file for file, size in files if size <= _GUROBI][-_COLUMNS:]
    figure, panels = plt.subplots(
        1, len(files), figsize=(3.3 * len(files), 3.0), squeeze=False, layout="constrained"
    )
    for ax, file in zip(panels[0], files, strict=True):
        for one in instances:
            for name, color in {"limes": "#2ca02c", "Gurobi": "#9467bd"}.items():
                if one["set"] == file and name in one["solvers"]:
                    seconds, lower, best = np.array(one["solvers"][name]["path"]).T
                    seconds, first = np.maximum(seconds, 1e-3), one["instance"] == 0
                    ax.step(seconds, np.sqrt(best), where="post", color=color, label=name if first else None)
                    ax.step(seconds, np.sqrt(lower), where="post", color=color, linestyle=":")
        ax.set(xscale="log", xlabel="seconds", ylim=(0, None))
        ax.set_title(label(file), fontsize=8)
    panels[0, 0].set_ylabel("RMSE")
    panels[0, -1].legend(frameon=False, fontsize=8)
    figure.savefig(folder / "search.png", dpi=90)
    plt.close(figure)


# Literals of the largest set that Gurobi's free licence takes
_GUROBI = 100
