"""The ridge fit of a finite sample, as the ``lime`` package makes it, in expectation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

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
        ``alpha`` of the ridge, or one a feature (d,) where features are uncorrelated; ``lime`` uses 1, for
        slopes per standard deviation.
    samples
        n, the instance's own row included.

    References
    ----------
    ``lime`` 0.2.0.1, ``lime_base.py``; MATHEMATICS: section 2, "Finite n with ridge".
    """
    full = least_squares(design, moments)
    drawn = (samples - 1) * np.exp(np.asarray(design.log_weight))[..., None]
    share = drawn[..., 0] / (drawn[..., 0] + 1.0)
    shrink, inverse = partial(_shrinkage, drawn, penalty), partial(_inverse, drawn, penalty)
    coef = design.spectral(shrink, full.coef)
    # The instance adds to S share · step stepᵀ, its distance from the mean: Sherman and Morrison.
    step = design.departure
    moved = design.spectral(inverse, step)
    away = prediction - moments.mean - weighted_sum(step, coef)
    strength = share / (1.0 + share * (step * moved).sum(axis=-1))
    coef = coef + aligned(moved, coef) * np.expand_dims(aligned(strength, away) * away, step.ndim - 1)
    mean_feature = (drawn * design.inclusion + design.at_instance) / (drawn + 1.0)
    total = aligned(drawn[..., 0], moments.mean)
    mean_value = (total * moments.mean + prediction) / (total + 1.0)
    return replace(
        full,
        intercept=np.asarray(mean_value - weighted_sum(mean_feature, coef)),
        coef=coef,
        standard_errors=full.standard_errors * aligned(design.largest(shrink), coef),
        fidelity=np.full(moments.mean.shape, np.nan),
        shares=np.full(coef.shape, np.nan),
    )


def _inverse(drawn: Floats, penalty: float | Floats, variance: Floats) -> Floats:
    """(drawn · Σ + penalty)⁻¹, 0 where nothing varies and nothing is penalised."""
    total = drawn * variance + penalty
    return np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)


def _shrinkage(drawn: Floats, penalty: float | Floats, variance: Floats) -> Floats:
    """(drawn · Σ + penalty)⁻¹ · drawn · Σ."""
    return drawn * variance * _inverse(drawn, penalty, variance)
