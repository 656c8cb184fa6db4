"""The ridge fit of a finite sample, as the ``lime`` package makes it, in expectation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from limes._arrays import Floats
from limes.designs.features import Features, aligned, weighted_sum
from limes.expectations.moments import Moments
from limes.surrogates.least_squares import least_squares
from limes.surrogates.surrogate import Surrogate

# what the ``lime`` package draws by default
LIME_SAMPLES = 5000


def ridge(
    design: Features,
    moments: Moments,
    prediction: Floats,
    *,
    penalty: float | Floats = 1.0,
    samples: int = LIME_SAMPLES,
) -> Surrogate:
    r"""Fit b = (S + penalty·I)⁻¹ s, with an unpenalised intercept.

    S and s are the centred weighted sums that ``samples`` rows have in expectation: the instance itself,
    with weight 1, and samples - 1 rows drawn from the background's law, of total weight (samples - 1)·C, C
    = E[π]. For an ordinary bandwidth b_j ≈ β_j n C v_j / (n C v_j + penalty); for a narrow one the instance
    dominates and shrinks everything towards 0, which the unpenalised limit does not. It is a ratio of
    expected sums: where only a few rows share the instance's bins (n·C of order 1), the mean of ``lime``'s
    results differs from it.

    Parameters
    ----------
    prediction
        f(ξ), () or (k,).
    penalty
        ``alpha`` of the ridge, or one a feature (d,); ``lime`` uses 1, for slopes per standard deviation.
    samples
        n, the instance's own row included.

    References
    ----------
    ``lime`` 0.2.0.1, ``lime_base.py``; MATHEMATICS: section 2, "Finite n with ridge".
    """
    full = least_squares(design, moments)
    drawn = (samples - 1) * np.exp(np.asarray(design.log_weight))[..., None]
    share = drawn / (drawn + 1.0)
    # The instance adds a rank-one term to the diagonal S: its distance from the mean, shrunk.
    step = (design.at_instance - design.inclusion) * (design.variance > 0)
    diagonal = drawn * design.variance + penalty
    away = _per_feature(prediction - moments.mean, step)
    target = aligned(drawn, moments.gamma) * moments.gamma + aligned(share * step, moments.gamma) * away
    coef = _rank_one_solve(diagonal, share, step, target)
    coef = np.where(aligned(design.variance, coef) > 0, coef, 0.0)
    mean_feature = (drawn * design.inclusion + design.at_instance) / (drawn + 1.0)
    total = aligned(drawn[..., 0], moments.mean)
    mean_value = (total * moments.mean + prediction) / (total + 1.0)
    return replace(
        full,
        intercept=np.asarray(mean_value - weighted_sum(mean_feature, coef)),
        coef=coef,
        standard_errors=full.standard_errors * aligned(drawn * design.variance / diagonal, coef),
        fidelity=np.full(moments.mean.shape, np.nan),
    )


def _per_feature(values: Floats, features: Floats) -> Floats:
    """Values (..., *outputs) with an axis of length 1 for the features (..., d)."""
    return np.expand_dims(values, features.ndim - 1)


def _rank_one_solve(diagonal: Floats, share: Floats, step: Floats, target: Floats) -> Floats:
    """(diag + share · step stepᵀ)⁻¹ target, by Sherman and Morrison."""
    plain = target / aligned(diagonal, target)
    scaled = step / diagonal
    strength = share[..., 0] / (1.0 + share[..., 0] * (step * scaled).sum(axis=-1))
    along = weighted_sum(step, plain)
    correction = aligned(strength, along) * along
    return np.asarray(plain - aligned(scaled, target) * _per_feature(correction, step))
