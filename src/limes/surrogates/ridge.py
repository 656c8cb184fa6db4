"""The ridge fit of a finite sample, as the ``lime`` package makes it, in expectation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from limes._arrays import Floats
from limes.designs.product import ProductDesign
from limes.expectations.moments import Moments
from limes.surrogates.least_squares import least_squares
from limes.surrogates.surrogate import Surrogate

# what the ``lime`` package draws by default
LIME_SAMPLES = 5000


def ridge(
    design: ProductDesign,
    moments: Moments,
    prediction: Floats,
    *,
    penalty: float = 1.0,
    samples: int = LIME_SAMPLES,
) -> Surrogate:
    r"""Fit b = (S + penalty·I)⁻¹ s, with an unpenalised intercept.

    S and s are the centred weighted sums that ``samples`` rows have in expectation: the instance itself, with
    weight 1, and samples - 1 rows drawn from the background's law, of total weight (samples - 1)·C, C = E[π].
    For an ordinary bandwidth b_j ≈ β_j n C v_j / (n C v_j + penalty); for a narrow one the instance dominates
    and shrinks everything towards 0, which the unpenalised limit does not.

    Parameters
    ----------
    prediction
        f(ξ), () or (k,).
    penalty
        ``alpha`` of the ridge; ``lime`` uses 1.
    samples
        n, the instance's own row included.

    References
    ----------
    ``lime`` 0.2.0.1, ``lime_base.py``; MATHEMATICS: section 2, "Finite n with ridge".
    """
    full = least_squares(design, moments)
    drawn = (samples - 1) * np.exp(design.log_weight)
    # The instance adds a rank-one term to the diagonal S: its distance from the mean, shrunk.
    step = (design.at_instance - design.inclusion) * (design.variance > 0)
    share = drawn / (drawn + 1.0)
    diagonal = drawn * design.variance + penalty
    target = drawn * moments.gamma + share * np.multiply.outer(step, prediction - moments.mean)
    coef = _rank_one_solve(diagonal, share, step, target)
    coef[design.variance == 0] = 0.0
    mean_feature = (drawn * design.inclusion + design.at_instance) / (drawn + 1.0)
    mean_value = (drawn * moments.mean + prediction) / (drawn + 1.0)
    shrunk = np.divide(drawn * design.variance, diagonal)
    errors = full.standard_errors * shrunk.reshape(-1, *(1,) * (coef.ndim - 1))
    return replace(
        full,
        intercept=np.asarray(mean_value - mean_feature @ coef),
        coef=coef,
        standard_errors=errors,
        fidelity=np.full(moments.mean.shape, np.nan),
    )


def _rank_one_solve(diagonal: Floats, share: float, step: Floats, target: Floats) -> Floats:
    """(diag + share · step stepᵀ)⁻¹ target, by Sherman and Morrison."""
    columns = (-1, *(1,) * (target.ndim - 1))
    plain = target / diagonal.reshape(columns)
    scaled = step / diagonal
    correction = share * (step @ plain) / (1.0 + share * (step @ scaled))
    return np.asarray(plain - np.multiply.outer(scaled, correction))
