r"""The linear surrogate: β from Γ and Σ, and its ridge variant.

``least_squares`` is what LIME converges to, ``ridge`` what the ``lime`` package returns for n rows, in
expectation. Both take one design or a table of n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from limes._arrays import Floats, aligned, is_constant, weighted_sum
from limes._expectations.moments import Moments
from limes.designs._product import Features
from limes.exceptions import ModelError

__all__ = ["Surrogate", "least_squares", "ridge"]

# Features that a message lists
_MOST_NAMES = 5
# Rows that the ``lime`` package draws by default
LIME_SAMPLES = 5000


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
        Standard errors of coef, same shape; 0 where exact.
    fidelity
        R² of g under w, () or (k,): 1 where f does not vary, NaN where Var_w f was not computed.
    shares
        Share of R² of each feature, b_j (2 Γ_j - (Σb)_j) / Var_w f, same shape as coef, which is
        β_j Γ_j / Var_w f without a ridge; they add up to R². NaN where Var_w f is 0 or was not computed.

    Examples
    --------
    >>> import limes
    >>> from limes.designs import ExchangeableDesign
    >>> from limes.models import forms
    >>> surrogate = limes.limit(ExchangeableDesign.word_deletions(2, 0.25), forms.Linear([1.0, -2.0], 0.5))
    >>> round(float(surrogate.intercept), 9), surrogate.coef
    (0.5, array([ 1., -2.]))
    """

    intercept: Floats
    coef: Floats
    standard_errors: Floats
    fidelity: Floats
    shares: Floats

    def per(self, units: Floats) -> Surrogate:
        """Divide coefficients by the ``units`` (d,) of their features: from h_j / unit_j to h_j."""
        with np.errstate(over="ignore"):
            return replace(
                self,
                coef=self.coef / aligned(units, self.coef),
                standard_errors=self.standard_errors / aligned(units, self.standard_errors),
            )


def check_finite(surrogate: Surrogate, *, axis: int, names: Sequence[str] = ()) -> None:
    """Raise unless coefficients and intercepts are finite; ``axis`` is that of the features."""
    finite = np.isfinite(surrogate.coef)
    if finite.all() and np.isfinite(surrogate.intercept).all():
        return
    others = tuple(i for i in range(finite.ndim) if i != axis)
    positions = np.flatnonzero(~finite.all(axis=others)).tolist()
    features = ", ".join(repr(names[j]) if names else str(j) for j in positions[:_MOST_NAMES])
    what = f"the coefficient of feature {features} is" if positions else "the surrogate's intercept is"
    raise ModelError(
        f"{what} no finite number: the model's answers, or their change per unit of the feature, are beyond "
        "what a float64 can hold (1.8e308); rescale the column, or the model's output"
    )


def least_squares(design: Features, moments: Moments) -> Surrogate:
    """Fit the surrogate that minimises E_w (f - g)², the limit of LIME.

    coef = Σ⁻¹Γ (centred), intercept = E_w f - Σ_j α_j β_j.

    Parameters
    ----------
    design
        One design, or a table of n.
    moments
        Moments of f under the design, or under each design of the table (one more leading axis).

    References
    ----------
    Garreau & von Luxburg 2022, Theorem 1.

    Examples
    --------
    >>> import limes
    >>> from limes.designs import ExchangeableDesign
    >>> from limes.models import forms
    >>> limes.limit(ExchangeableDesign.word_deletions(2, 0.25), forms.Linear([1.0, -2.0])).coef  # fits by it
    array([ 1., -2.])
    """
    coef = design.solve(moments.gamma)
    axis = design.inclusion.ndim - 1
    with np.errstate(over="ignore"):
        shares = _shares(coef * moments.gamma, moments, axis=axis)
    return Surrogate(
        intercept=np.asarray(moments.mean - weighted_sum(design.inclusion, coef)),
        coef=coef,
        standard_errors=moments.coef_errors,
        fidelity=_fidelity(shares, moments, axis=axis),
        shares=shares,
    )


def _shares(explained: Floats, moments: Moments, *, axis: int) -> Floats:
    """Return what each feature explains, in units of Var_w f; NaN where the variance is unknown or zero."""
    if moments.sampled is not None:
        # a square of an estimate is too large by the estimate's variance, in expectation
        explained = explained - moments.sampled.noise
    variance = np.expand_dims(
        np.where(is_constant(moments.variance, moments.mean), np.nan, moments.variance), axis
    )
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(explained / variance)


def _fidelity(shares: Floats, moments: Moments, *, axis: int) -> Floats:
    """R², the sum of the shares; 1 where there is nothing to explain."""
    total = np.minimum(shares.sum(axis=axis), 1.0)
    if moments.sampled is not None:
        total = np.maximum(total, 0.0)
    return np.where(is_constant(moments.variance, moments.mean), 1.0, total)


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
    dominates and shrinks everything towards 0, which the unpenalised limit does not. The fit is a ratio of
    expected sums: where only a few rows share the instance's bins (n·C of order 1), the mean of ``lime``'s
    results differs from it.

    Parameters
    ----------
    design, moments
        See :func:`least_squares`.
    prediction
        f(ξ), () or (k,).
    penalty
        ``alpha`` of the ridge, or an array (d,), one a feature, where features are uncorrelated; ``lime``
        uses 1, for slopes per standard deviation.
    samples
        n, including the instance's row.

    References
    ----------
    ``lime`` 0.2.0.1, ``lime_base.py``.

    Examples
    --------
    >>> import limes
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> explain = [limes.TabularExplainer(lambda X: X[:, 0], X, bins=2, ridge=r, rng=0) for r in (0.0, 100.0)]
    >>> limit, shrunk = (float(abs(one([[0.0]]).coefficients.values[0, 0])) for one in explain)
    >>> shrunk < limit
    True
    """
    full = least_squares(design, moments)
    drawn = (samples - 1) * np.exp(np.asarray(design.log_weight))[..., None]
    share = drawn[..., 0] / (drawn[..., 0] + 1.0)
    shrink, inverse = partial(_shrinkage, drawn, penalty), partial(_inverse, drawn, penalty)
    coef = design.spectral(shrink, full.coef)
    # The instance adds share · step stepᵀ to S, with step its distance from the mean: Sherman and Morrison.
    step = design.departure
    moved = design.spectral(inverse, step)
    away = prediction - moments.mean - weighted_sum(step, coef)
    strength = share / (1.0 + share * (step * moved).sum(axis=-1))
    coef = coef + aligned(moved, coef) * np.expand_dims(aligned(strength, away) * away, step.ndim - 1)
    mean_feature = (drawn * design.inclusion + design.at_instance) / (drawn + 1.0)
    total = aligned(drawn[..., 0], moments.mean)
    mean_value = (total * moments.mean + prediction) / (total + 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        explained = coef * (2.0 * moments.gamma - design.gamma(coef))
    shares = _shares(explained, moments, axis=step.ndim - 1)
    return replace(
        full,
        intercept=np.asarray(mean_value - weighted_sum(mean_feature, coef)),
        coef=coef,
        standard_errors=full.standard_errors * aligned(design.largest(shrink), coef),
        fidelity=_fidelity(shares, moments, axis=step.ndim - 1),
        shares=shares,
    )


def _inverse(drawn: Floats, penalty: float | Floats, variance: Floats) -> Floats:
    """(drawn · Σ + penalty)⁻¹, 0 where nothing varies and nothing is penalised."""
    total = drawn * variance + penalty
    return np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)


def _shrinkage(drawn: Floats, penalty: float | Floats, variance: Floats) -> Floats:
    """(drawn · Σ + penalty)⁻¹ · drawn · Σ."""
    return drawn * variance * _inverse(drawn, penalty, variance)
