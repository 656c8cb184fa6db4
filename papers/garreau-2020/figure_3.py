"""Figure 3: a training set, and its quartiles against those of its law."""

from __future__ import annotations

import numpy as np

from limes.theory import gaussian_bins
from papers.common.boxes import EXACT, THEORY
from papers.common.drawn import Drawn, panels

TRAINING = 500
INSTANCE = np.array([0.4, -0.9])


def draw(runs: int) -> Drawn:  # noqa: ARG001 - nothing is repeated
    """Points, lines of both kinds, and ξ."""
    train = np.random.default_rng(3).normal(size=(TRAINING, 2))
    edges, _, _ = gaussian_bins([0.0, 0.0], 1.0)
    seen = np.quantile(train, [0.25, 0.5, 0.75], axis=0)
    figure, (ax,) = panels(width=4.4, height=4.2)
    ax.plot(*train.T, ".", color="#8a94a3", markersize=3)
    for place in range(3):
        label = ("quantiles of the law", "of the 500 rows") if place == 0 else ("", "")
        ax.axvline(edges[0][place + 1], color=EXACT, linewidth=1.2, label=label[0])
        ax.axvline(seen[place, 0], color=EXACT, linewidth=1, linestyle="--", label=label[1])
        ax.axhline(edges[1][place + 1], color=EXACT, linewidth=1.2)
        ax.axhline(seen[place, 1], color=EXACT, linewidth=1, linestyle="--")
    ax.plot(*INSTANCE, "x", color=THEORY, markersize=9, mew=2, label="ξ")
    ax.legend(frameon=True, fontsize=8, loc="upper left")
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set(xlabel="x₁", ylabel="x₂", aspect="equal")
    apart = float(np.abs(seen - np.array([e[1:4] for e in edges]).T).max())
    numbers = {"of the law": np.array([e[1:4] for e in edges]), "of the rows": seen.T}
    return Drawn(figure, numbers, _TEXT + f"The farthest of the six lies {apart:.2f} from its place.")


_TEXT = """**Claim.** The quartiles of 500 rows of normal(0, 1) are very close to those of the law; it
matters only where ξ lies beside an edge.

**Here.** As claimed. """
