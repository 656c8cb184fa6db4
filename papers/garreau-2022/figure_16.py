"""Figure 16: features that the model does not use."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from limes.models import forms
from papers.common.drawn import Drawn, panels

from .settings import panel, wine, wine_lime

USED, ROW, WIDTH = 5, 3, 5.0


def draw(runs: int) -> Drawn:
    """Kernel ridge on the first five of eleven features."""
    Z, target, names = wine()
    model = KernelRidge(kernel="rbf", gamma=0.5 / WIDTH**2, alpha=1.0).fit(Z[:400, :USED], target[:400])
    widths = np.append(np.full(USED, WIDTH), np.full(len(names) - USED, np.inf))
    form = forms.GaussianKernels(Z[:400] * (np.arange(len(names)) < USED), model.dual_coef_, widths)
    result = wine_lime().compared(form, lambda x: model.predict(x[:, :USED]), Z[ROW], runs=runs, seed=16)
    assert not result.limit.coef[USED:].any()
    figure, (ax,) = panels(height=3.8)
    panel(ax, result, "kernel ridge on the first five features", names)
    ax.axvline(USED - 0.5, color="0.5", linewidth=0.8, linestyle=":")
    ax.legend(frameon=False, fontsize=8)
    return Drawn(figure, result.numbers(), _TEXT + result.agreement)


_TEXT = """**Claim.** Features that the model does not use have coefficient 0 up to sampling noise
(Proposition 9): here the last six of white wine, kernel ridge of width 5.

**Here.** As claimed; the limit is exactly 0 there. 400 training rows, penalty 1. """
