"""Moments: all that a surrogate needs to know of the model, and how sure of it one is."""

from __future__ import annotations

from dataclasses import dataclass

from limes._arrays import Floats


@dataclass(frozen=True, eq=False)
class Moments:
    """Expectations of f under a design's weighted law w; trailing axis for k outputs.

    Attributes
    ----------
    mean
        E_w f, () or (k,).
    gamma
        Centred Γ_j = Cov_w(h_j, f), (d,) or (d, k).
    gamma_errors
        Standard errors of gamma, same shape; 0 where exact.
    variance
        Var_w f, () or (k,); NaN where it was not computed.
    calls
        Rows that the model was asked for.
    converged
        Whether the accuracy that was asked for has been reached.
    """

    mean: Floats
    gamma: Floats
    gamma_errors: Floats
    variance: Floats
    calls: int = 0
    converged: bool = True
