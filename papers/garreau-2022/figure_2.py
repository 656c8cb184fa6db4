"""Figure 2: how perturbed rows are drawn."""

from __future__ import annotations

import numpy as np
from scipy import stats
from sklearn.datasets import load_wine

from papers.common.boxes import MEDIAN, THEORY
from papers.common.drawn import INK, Drawn, panels
from papers.common.tabular import TabularLime

ROW = 5


def draw(runs: int) -> Drawn:  # noqa: ARG001 - nothing is repeated
    """Values, bins, and the density that rows are drawn from."""
    bunch = load_wine(as_frame=True)
    x = bunch.data["total_phenols"].to_numpy()
    lime = TabularLime.learnt(x[:, None])
    edges, means, stds = lime.edges[0], lime.means[0], lime.stds[0]
    law = lime.design(x[[ROW]]).coordinates[0].marginal
    figure, axes = panels(3, height=2.8)
    for ax, title in zip(
        axes, ("training values and ξ", "bins, means ± deviations", "law of new rows"), strict=True
    ):
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("total phenols", fontsize=9)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_yticks([])
        for edge in edges:
            ax.axvline(edge, color="0.8", linewidth=0.8)
        ax.plot([x[ROW]], [0], "x", color=INK, markersize=8, mew=1.8, clip_on=False, zorder=5)
    axes[0].hist(x, bins=30, color="#b8c4d6")
    place = np.arange(1, 5)
    axes[1].errorbar(means, place, xerr=stds, fmt="o", color=THEORY, markersize=4, capsize=3)
    axes[1].set_ylim(0, 5)
    grid, density = _density(edges, means, stds)
    axes[2].plot(grid, density, color=THEORY, linewidth=1.2)
    axes[2].plot(law.means, np.full(4, 0.03), "o", color=MEDIAN, markersize=4, clip_on=False)
    axes[2].set_ylim(0)
    numbers = {"edges": edges, "means": means, "stds": stds, "means of the law": law.means}
    return Drawn(figure, numbers, _TEXT)


def _density(edges: np.ndarray, means: np.ndarray, stds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A quarter a bin of a normal law cut to it; NaN breaks the line at edges."""
    grid, height = [], []
    for lower, upper, mean, std in zip(edges, edges[1:], means, stds, strict=False):
        t = np.linspace(lower, upper, 200)
        cut = stats.truncnorm((lower - mean) / std, (upper - mean) / std, mean, std)
        grid += [*t, np.nan]
        height += [*(cut.pdf(t) / 4), np.nan]
    return np.array(grid), np.array(height)


_TEXT = """**Claim.** LIME cuts a column at its quartiles, and draws from normal laws cut to the bins, with
the mean and deviation of each bin; their means μ̃ (blue) are not those parameters (red).

**Here.** The same column (total phenols of scikit-learn's wine table), our instance: row 5, in the fourth
bin as in the paper. Half of all rows drawn lie in the two middle quarters, whatever ξ is."""
