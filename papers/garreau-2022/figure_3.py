"""Figure 3: what the ridge does to a linear model's coefficients."""

from __future__ import annotations

import numpy as np

from limes.models import forms
from papers.common.boxes import boxes
from papers.common.drawn import Drawn, panels
from papers.common.tabular import TabularLime

from .settings import numbered

D, NU, PENALTIES = 10, 10.0, (0.0, 1.0, 1000.0)


def draw(runs: int) -> Drawn:
    """A panel a penalty."""
    rng = np.random.default_rng(3)
    train, slopes, instance = rng.normal(size=(1000, D)), rng.normal(size=D), rng.normal(size=D)
    lime, form = TabularLime.learnt(train), forms.Linear(slopes, 0.0)
    figure, axes = panels(3)
    numbers, agreements = {}, []
    for ax, penalty in zip(axes, PENALTIES, strict=True):
        result = lime.compared(
            form, lambda x: x @ slopes, instance, bandwidth=NU, runs=runs, penalty=penalty, seed=3
        )
        boxes(ax, numbered(D), result.runs, theory=result.limit.coef)
        if penalty == PENALTIES[-1]:
            ax.plot(range(D), result.shrunk, "_", color="#1a8a4a", markersize=12, mew=1.6, label="shrunk")
            ax.legend(frameon=False, fontsize=8)
        ax.set_title(f"λ = {penalty:g}", fontsize=9)
        ax.sharey(axes[0])
        numbers |= result.numbers(f", λ = {penalty:g}") | {f"shrunk, λ = {penalty:g}": result.shrunk}
        agreements.append(f"λ = {penalty:g}: {result.agreement}")
    return Drawn(figure, numbers, _TEXT + " ".join(agreements))


_TEXT = """**Claim.** With LIME's penalty λ = 1 the ridge is indistinguishable from least squares; λ = 1000,
of the order of n, shrinks, and theory is then only an upper envelope.

**Here.** As claimed (n = 5000 and ν = 10 as printed; f, ξ and training rows are normal(0, 1), d = 10). And
it need not be an envelope only: what the ridge gives in expectation is β_j n C v_j/(n C v_j + λ), v_j = α_j
(1 - α_j) (green), with which runs are compared here. """
