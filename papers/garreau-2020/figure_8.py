"""Figure 8: what the surrogate misses at the instance itself."""

from __future__ import annotations

import numpy as np
from scipy import stats

from limes.theory import smooth_limit
from papers.common.boxes import THEORY
from papers.common.drawn import Drawn, panels
from papers.common.expected import Sampled

from .two_features import COEF, INSTANCE, D, compared


def draw(runs: int) -> Drawn:
    """Histogram of 100 runs."""
    explanation = compared(1.0, runs)
    errors = explanation.intercepts + explanation.runs.sum(axis=1) - INSTANCE @ COEF
    limit = smooth_limit(COEF, 0.0, INSTANCE, mean=np.zeros(D), std=1.0, bandwidth=1.0).local_error
    z = (errors.mean() - limit) / stats.sem(errors)
    assert abs(z) < 4.5
    figure, (ax,) = panels(width=5.0, height=2.8)
    ax.hist(errors, bins=16, color="#b8c4d6", edgecolor="white")
    ax.axvline(limit, color=THEORY, linewidth=1.6, label="Corollary 3.1")
    ax.axvline(0, color="0.4", linewidth=0.8, linestyle=":")
    ax.set(xlabel="surrogate less f at ξ", ylabel="runs")
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    numbers = {"Corollary 3.1": limit, "runs": Sampled.of(errors[:, None])}
    return Drawn(figure, numbers, _TEXT.format(known=limit, z=abs(z)))


_TEXT = """**Claim.** The error of the surrogate at ξ concentrates around a value that is not 0 (Corollary
3.1).

**Here.** As claimed: {known:.2f}, and the mean of the runs lies {z:.1f} standard errors from it. The
setting is that of Figure 4."""
