"""β = Σ⁻¹Γ."""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats
from limes.designs.features import Features, weighted_sum
from limes.expectations.moments import Moments
from limes.surrogates.surrogate import Surrogate


def least_squares(design: Features, moments: Moments) -> Surrogate:
    """Fit the surrogate that minimises E_w (f - g)²: what LIME converges to.

    coef = Σ⁻¹Γ (centred), intercept = E_w f - Σ_j α_j β_j.

    Parameters
    ----------
    design
        One design, or a table of n.
    moments
        Of f under it, or under each of them (one more leading axis).

    References
    ----------
    Garreau & von Luxburg 2022, Theorem 1.
    """
    coef = design.solve(moments.gamma)
    axis = design.inclusion.ndim - 1
    shares = _shares(coef, moments, axis=axis)
    return Surrogate(
        intercept=np.asarray(moments.mean - weighted_sum(design.inclusion, coef)),
        coef=coef,
        standard_errors=moments.coef_errors,
        fidelity=np.minimum(shares.sum(axis=axis), 1.0),
        shares=shares,
    )


def _shares(coef: Floats, moments: Moments, *, axis: int) -> Floats:
    """β_j Γ_j / Var_w f, which add up to R²; NaN where the variance is not known or zero."""
    variance = np.expand_dims(moments.variance, axis)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(variance > 0, coef * moments.gamma / variance, np.nan)
