"""How time grows with rows, trees and depth, and memory with rows: limes alone."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import limes
from benchmarks import readme
from benchmarks.progress import say
from benchmarks.speed import memory
from benchmarks.speed.cases import friedman

FORESTS = ((25, 6), (25, 10), (50, 10), (100, 10), (100, 12), (100, 14), (100, 18))
ROWS_OF_FORESTS = 1000
ROWS = (1_000, 10_000, 100_000, 1_000_000)
# What a million rows may take above the model and themselves.
ALLOWED_MB = 1024


def measure(rows_of: Path) -> dict:
    """Forests of growing size in this process; rows by the case in the file, each count in a fresh one."""
    result: dict = {"forests": [_forest(trees, depth) for trees, depth in FORESTS], "rows": []}
    for count in ROWS:
        say(f"growth: {count:,} rows")
        result["rows"].append(memory.fresh(memory.rows, rows_of, count))
    return result


def _forest(trees: int, depth: int) -> dict:
    say(f"growth: {trees} trees of depth {depth}")
    X, y = friedman()
    model = RandomForestRegressor(trees, max_depth=depth, random_state=0, n_jobs=2).fit(X, y)
    explainer = limes.TabularExplainer(model.set_params(n_jobs=1), X)
    nodes = sum(member.tree_.node_count for member in model.estimators_)
    return {
        "trees": trees,
        "depth": depth,
        "nodes": nodes,
        "seconds": _median(explainer, X[:ROWS_OF_FORESTS]),
    }


def _median(explainer: limes.TabularExplainer, rows: np.ndarray) -> float:
    explainer(rows[:100], progress=False)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        explainer(rows, progress=False)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def draw(growth: dict) -> None:
    """Two panels, logarithmic, each with a line of slope 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), constrained_layout=True)
    forests, rows = growth["forests"], growth["rows"]
    _panel(
        left, [(f["nodes"], f["seconds"]) for f in forests], f"nodes of the forest ({ROWS_OF_FORESTS:,} rows)"
    )
    for forest in forests:
        left.annotate(
            f"{forest['trees']} x {forest['depth']}",
            (forest["nodes"], forest["seconds"]),
            xytext=(-6, 5),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="#444444",
        )
    _panel(right, [(r["rows"], r["seconds"]) for r in rows], "rows (random forest, 100 trees of depth 10)")
    left.margins(x=0.2, y=0.1)
    left.set_title("trees x depth", fontsize=10)
    right.set_title("rows", fontsize=10)
    figure.savefig(readme.RESULTS / "scaling.png", dpi=110)


def _panel(ax, points, label) -> None:
    size, seconds = np.array(points).T
    ax.loglog(size, seconds, "o-", color="#2a7ab9", label="limes")
    ax.loglog(size, seconds[-1] * size / size[-1], "--", color="#777777", label="linear")
    ax.set_xlabel(label)
    ax.set_ylabel("seconds")
    ax.grid(visible=True, which="major", alpha=0.3)
    ax.legend(frameon=False, loc="lower right")


def text(growth: dict) -> str:
    """Markdown."""
    lines = [
        "| rows | seconds | input MB | MB more, peak | MB more, with the explanation |",
        "|---|---|---|---|---|",
    ]
    for r in growth["rows"]:
        megabytes = f"{r['input_mb']:.0f} | {r['peak_mb']:.0f} | {r['held_mb']:.0f}"
        lines.append(f"| {r['rows']:,} | {r['seconds']:.3g} | {megabytes} |")
    most = growth["rows"][-1]
    verdict = "within" if most["peak_mb"] < ALLOWED_MB else "**above**"
    lines += [
        "",
        f"{most['rows']:,} rows: {most['peak_mb']:.0f} MB, {verdict} the {ALLOWED_MB} MB that we allow.",
    ]
    return "\n".join(lines)
