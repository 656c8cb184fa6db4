"""Figure 8: linear models in dimensions 10 and 20 at LIME's defaults."""

from __future__ import annotations

import numpy as np

from limes.models import forms
from papers.common.drawn import Drawn, panels
from papers.common.tabular import Compared, TabularLime

from .settings import panel


def draw(runs: int) -> Drawn:
    """A panel a dimension."""
    figure, axes = panels(2)
    numbers, agreements = {}, []
    for ax, d in zip(axes, (10, 20), strict=True):
        result = linear(d, runs, seed=d)
        panel(ax, result, f"linear f, d = {d}")
        numbers |= result.numbers(f", d = {d}")
        agreements.append(f"d = {d}: {result.agreement}")
    axes[0].legend(frameon=False, fontsize=8)
    return Drawn(figure, numbers, _TEXT + " ".join(agreements))


def linear(d: int, runs: int, *, seed: int) -> Compared:
    """Arbitrary coefficients, an instance and a training set of the normal law."""
    rng = np.random.default_rng(seed)
    train, slopes, instance = rng.normal(size=(1000, d)), rng.normal(size=d), rng.normal(size=d)
    return TabularLime.learnt(train).compared(
        forms.Linear(slopes, 0.0), lambda x: x @ slopes, instance, runs=runs, seed=seed
    )


_TEXT = """**Claim.** For a linear model, Corollary 4: β_j is λ_j times the mean of x_j in ξ's bin less the
mean of its means in the other bins. 100 runs at the defaults (n = 5000, ν = 0.75 √d, λ = 1) lie around it.

**Here.** As claimed. Coefficients, instance and 1,000 training rows are normal(0, 1); the paper says that
they are arbitrary. """
