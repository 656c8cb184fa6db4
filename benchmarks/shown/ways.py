"""captum's Lime over features that are kept or removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def captum_lime(
    masked: Callable[[Any], Any], size: int, calls: int, seed: int, *, linear: bool = False
) -> Any:
    """Coefficients (d,): by its default, a lasso of penalty 0.01, or least squares."""
    import torch
    from captum._utils.models.linear_model import SkLearnLasso, SkLearnLinearRegression
    from captum.attr import Lime

    torch.manual_seed(seed)
    model = SkLearnLinearRegression() if linear else SkLearnLasso(alpha=0.01)
    explainer = Lime(
        lambda z: torch.as_tensor(np.asarray(masked(z.numpy() > 0.5))), interpretable_model=model
    )
    found = explainer.attribute(
        torch.ones(1, size), baselines=torch.zeros(1, size), n_samples=calls, perturbations_per_eval=50
    )
    return found[0].detach().numpy().astype(float)
