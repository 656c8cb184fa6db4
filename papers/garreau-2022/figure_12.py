"""Figure 12: trees of depth three."""

from __future__ import annotations

import numpy as np

from papers.common.drawn import Drawn, panels
from papers.common.tabular import Compared

from .settings import cart, panel, uniform

D = 10
TARGETS = {"Σ xⱼ": lambda x: x.sum(axis=1), "Σ xⱼ²": lambda x: (x**2).sum(axis=1)}


def draw(runs: int) -> Drawn:
    """A tree a panel."""
    figure, axes = panels(2)
    numbers, agreements = {}, []
    for ax, (name, target) in zip(axes, TARGETS.items(), strict=True):
        result = tree(D, target, runs, seed=12)
        panel(ax, result, f"tree fitted on {name}")
        numbers |= result.numbers(f", {name}")
        agreements.append(f"{name}: {result.agreement}")
    axes[0].legend(frameon=False, fontsize=8)
    return Drawn(figure, numbers, _TEXT + " ".join(agreements))


def tree(d: int, target, runs: int, *, seed: int) -> Compared:
    """A CART tree of depth 3 on uniform rows."""
    train, lime = uniform(d, seed=seed)
    model, form = cart(train, target(train))
    instance = np.random.default_rng(seed).uniform(-10, 10, size=d)
    return lime.compared(form, model.predict, instance, runs=runs, seed=seed)


_TEXT = """**Claim.** Theory (Corollary 7) gives what LIME says of CART trees of depth 3 fitted on Σ xⱼ and
on Σ xⱼ², uniform rows on [-10, 10]^d.

**Here.** As claimed: d = 10, 1,000 training rows, a uniform ξ. The tree is read off scikit-learn's. """
