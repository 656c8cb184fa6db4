"""The local linear model that stands in for f around one instance."""

from __future__ import annotations

from dataclasses import dataclass

from limes._arrays import Floats


@dataclass(frozen=True, eq=False)
class Surrogate:
    """g(x) = intercept + Σ_j coef[j] h_j(x), with h_j = z_j, or x_j for slopes.

    Attributes
    ----------
    intercept
        () or (k,).
    coef
        β, (d,) or (d, k).
    standard_errors
        Of coef, same shape; 0 where exact.
    fidelity
        R² of g under w, () or (k,); NaN where Var_w f was not computed.
    shares
        What each feature has of it, β_j Γ_j / Var_w f, same shape as coef; they add up to R².
    """

    intercept: Floats
    coef: Floats
    standard_errors: Floats
    fidelity: Floats
    shares: Floats
