"""How time grows with rows, trees and depth, and memory with rows: limes alone."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import limes
from benchmarks.speed.cases import california, friedman

DOCS = Path(__file__).parent.parent / "results"


def measure() -> dict:
    """All three, as lists of [size, seconds]."""
    X, y = friedman()
    by_nodes = []
    for trees, depth in ((25, 6), (25, 10), (50, 10), (100, 10), (100, 12), (100, 14), (100, 18)):
        model = RandomForestRegressor(trees, max_depth=depth, random_state=0, n_jobs=2).fit(X, y)
        explainer = limes.TabularExplainer(model.set_params(n_jobs=1), X)
        nodes = sum(member.tree_.node_count for member in model.estimators_)
        by_nodes.append([nodes, _median(explainer, X[:1000])])
    return {"nodes": by_nodes, "rows": _rows(), "rows_of_nodes": 1000}


def _rows() -> list[list[float]]:
    """California-like rows: the table's own, moved a little."""
    X, y = california()
    model = RandomForestRegressor(100, max_depth=10, random_state=0, n_jobs=2).fit(X, y).set_params(n_jobs=1)
    explainer = limes.TabularExplainer(model, X)
    rng = np.random.default_rng(0)
    many = X[rng.integers(len(X), size=1_000_000)] * (1 + 0.02 * rng.normal(size=(1_000_000, X.shape[1])))
    explainer(many[:1000])
    before = _peak()
    found = []
    for rows in (1_000, 10_000, 100_000, 1_000_000):
        start = time.perf_counter()
        explainer(many[:rows], progress=False)
        found.append([rows, time.perf_counter() - start, _peak() - before])
    return found


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _median(explainer, rows) -> float:
    explainer(rows[:100])
    times = []
    for _ in range(3):
        start = time.perf_counter()
        explainer(rows, progress=False)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def draw(result: dict) -> None:
    """Two panels, logarithmic, with a line of slope 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    panels = (
        (axes[0], result["nodes"], "nodes of the forest, 1,000 rows"),
        (axes[1], result["rows"], "rows"),
    )
    for ax, points, label in panels:
        size, seconds = np.array([p[:2] for p in points]).T
        ax.loglog(size, seconds, "o-", color="#2a7ab9", label="limes")
        ax.loglog(size, seconds[-1] * size / size[-1], "--", color="#777777", label="linear")
        ax.set_xlabel(label)
        ax.set_ylabel("seconds")
        ax.grid(visible=True, which="major", alpha=0.3)
        ax.legend(frameon=False)
    figure.savefig(DOCS / "scaling.png", dpi=110)


def table(result: dict) -> str:
    """Markdown."""
    lines = ["| rows | seconds | MB more at the peak |", "|---|---|---|"]
    lines += [f"| {rows:,} | {seconds:.3g} | {memory:.0f} |" for rows, seconds, memory in result["rows"]]
    return "\n".join(lines)
