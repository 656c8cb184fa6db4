"""Figure 14: Gaussian kernels in dimensions 10 and 20."""

from __future__ import annotations

import numpy as np

from limes.models import forms
from papers.common.drawn import Drawn, panels
from papers.common.tabular import Compared

from .settings import panel, uniform

WIDTH = 10.0


def draw(runs: int) -> Drawn:
    """A panel a dimension."""
    figure, axes = panels(2)
    numbers, agreements = {}, []
    for ax, d in zip(axes, (10, 20), strict=True):
        result = kernel(d, runs, seed=d)
        panel(ax, result, f"Gaussian kernel, d = {d}")
        numbers |= result.numbers(f", d = {d}")
        agreements.append(f"d = {d}: {result.agreement}")
    axes[0].legend(frameon=False, fontsize=8)
    return Drawn(figure, numbers, _TEXT + " ".join(agreements))


def kernel(d: int, runs: int, *, seed: int) -> Compared:
    """exp(-‖x - ζ‖²/(2γ²)) on uniform rows, ζ and ξ uniform too."""
    _, lime = uniform(d, seed=seed)
    center, instance = np.random.default_rng(seed).uniform(-10, 10, size=(2, d))
    form = forms.GaussianKernels(center[None], [1.0], WIDTH)
    return lime.compared(form, form.predict, instance, runs=runs, seed=seed)


_TEXT = """**Claim.** Theory (Proposition 8 in Proposition 5) gives what LIME says of a Gaussian kernel, γ =
10.

**Here.** As claimed; uniform training rows, ζ and ξ on [-10, 10]^d are ours. """
