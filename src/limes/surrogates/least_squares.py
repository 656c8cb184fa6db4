"""β = Σ⁻¹Γ."""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats
from limes.designs.product import ProductDesign
from limes.expectations.moments import Moments
from limes.surrogates.surrogate import Surrogate


def least_squares(design: ProductDesign, moments: Moments) -> Surrogate:
    """Fit the surrogate that minimises E_w (f - g)²: what LIME converges to.

    coef = Σ⁻¹Γ (centred), intercept = E_w f - Σ_j α_j β_j.  Source: Garreau & von Luxburg 2022, Theorem 1.
    """
    coef = design.solve(moments.gamma)
    return Surrogate(
        intercept=np.asarray(moments.mean - design.inclusion @ coef),
        coef=coef,
        standard_errors=design.solve(moments.gamma_errors),
        fidelity=explained(coef, moments),
    )


def explained(coef: Floats, moments: Moments) -> Floats:
    """R² = Σ β_j Γ_j / Var_w f, at most 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (coef * moments.gamma).sum(axis=0) / moments.variance
    return np.where(moments.variance > 0, np.minimum(ratio, 1.0), np.nan)
