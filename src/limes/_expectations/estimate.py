r"""From a sample to moments: a control variate is subtracted, and the rest is fitted by least squares.

On each of the sample's sequences a control variate h, fitted to the others, is subtracted, except for
its linear part L:

    β = least squares of f - (h - L) on the features,    L = E_w h + β(h) · (features - E_w features).

h - L has no coefficients: subtracting it only reduces the variance. Errors come from the residuals, and
from how the sequences differ (``residual.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.controls import FittedControl, TooLargeError, too_large
from limes._expectations.controls.control import share_left
from limes._expectations.moments import Moments, SampleStatistics, boxed
from limes._expectations.residual import Clusters, FeatureSupport, ResidualFit
from limes._expectations.rule_of_three import count_unlike
from limes._expectations.sampling import SampledDesign, Sampling
from limes.exceptions import ModelError

# Number of sequences
SEQUENCES = 4
# A more laborious control is preferred if its residual variance is below this multiple of the cheaper one's
_WORTH = 0.95
# Answers have sums of squares that are numbers if the largest lies between these
_LARGEST, _SMALLEST = 1e150, 1e-150


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows x and features h (n, d), answers f (n, ...), and the cluster and the sequence of each row."""

    x: Floats
    h: Floats
    f: Floats
    cluster: Ints
    sequence: Ints
    is_last: bool

    @classmethod
    def concatenate(cls, parts: list[Sample]) -> Sample:
        """Join growing parts; the last one states whether the budget is used up."""
        names = ("x", "h", "f", "cluster", "sequence")
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**arrays, is_last=parts[-1].is_last)


def estimate(
    design: SampledDesign, sample: Sample, sampling: Sampling, prediction: Floats | None, calls: int
) -> Moments:
    """E_w f and Γ with standard errors, given the model's prediction at the instance if there is one.

    Raises
    ------
    ModelError
        If answers are so large that standard errors would overflow.
    """
    f = sample.f.reshape(len(sample.f), -1)
    check_squares(f)
    name, controls = _choose_control(design, sample, f, sampling)
    moments = [control.moments(design) for control in controls]
    support = FeatureSupport.from_rows(sample.h, design.variance == 0)
    residuals = f.copy()
    for k, (control, its) in enumerate(zip(controls, moments, strict=True)):
        rows = sample.sequence == k
        linear = its.linear(design, sample.h[rows], support.used)
        residuals[rows] -= control.predict(sample.x[rows]) - linear
    # the controls' simulations are independent, and each has the weight of one sequence
    simulated = np.sqrt(np.sum([its.errors**2 for its in moments], axis=0)) / len(moments)
    fit = ResidualFit.fit(
        sample.h,
        design.inclusion,
        residuals,
        Clusters(sample.cluster, sample.sequence),
        answers=f,
        prediction=None if prediction is None else prediction.reshape(-1),
        support=support,
        simulated=simulated,
    )
    coef = fit.coef[1:].copy()
    coef[support.unidentified] = np.mean([its.coef[support.unidentified] for its in moments], axis=0)
    return _moments(design, sample, sampling, fit, name, coef, calls)


def _choose_control(
    design: SampledDesign, sample: Sample, f: Floats, sampling: Sampling
) -> tuple[str, list[FittedControl]]:
    """Choose a control by its residuals on the first sequence, and fit it without each sequence in turn."""
    controls = sampling.controls
    others = sample.sequence != 0
    first = {}
    for name, fit in controls.items():
        with suppress(TooLargeError):
            first[name] = fit(design, sample.x[others], f[others])
    if not first:
        raise too_large(controls, design.size)
    name = best_control(first, sample.x[~others], f[~others])
    rest = (sample.sequence != k for k in range(1, SEQUENCES))
    return name, [first[name], *(controls[name](design, sample.x[rows], f[rows]) for rows in rest)]


def best_control(controls: Mapping[str, FittedControl], x: Floats, f: Floats) -> str:
    """Name of the control that leaves the least of answers f (n, k) at unseen rows, cheapest first."""
    name, *others = controls
    if others:
        shares = {
            candidate: share_left((f - control.predict(x)).var(axis=0), f)
            for candidate, control in controls.items()
        }
        for candidate in others:
            if shares[candidate] < _WORTH * shares[name]:
                name = candidate
    return name


def _moments(
    design: SampledDesign,
    sample: Sample,
    sampling: Sampling,
    fit: ResidualFit,
    control: str,
    coef: Floats,
    calls: int,
) -> Moments:
    shape = sample.f.shape[1:]
    f = sample.f.reshape(len(sample.f), -1)
    units = design.units[:, None]  # a tolerance is one of coefficients per x itself
    with np.errstate(over="ignore"):  # coefficients that no float64 can hold are refused later
        excess = sampling.accuracy.excess(coef / units, fit.coef_errors / units)
    quality = fit.quality(design, sample.h, coef, f)
    return Moments(
        mean=fit.coef[0].reshape(shape),
        gamma=design.gamma(coef).reshape(design.size, *shape),
        coef_errors=fit.coef_errors.reshape(design.size, *shape),
        variance=quality.variance.reshape(shape),
        calls=np.array(calls),
        converged=np.array(excess <= 1.0 and fit.answers_differ),
        sampled=SampleStatistics(
            surrogate_errors=quality.surrogate_errors.reshape(shape),
            fidelity_errors=quality.fidelity_errors.reshape(shape),
            share_errors=quality.share_errors.reshape(design.size, *shape),
            excess=np.array(excess),
            control=np.array(control, dtype="U16"),
            noise=quality.noise.reshape(design.size, *shape),
            unlike=fit.rare.n_unlike.reshape(shape),
            carriers=fit.carriers.reshape(shape),
            effective=np.array(float(len(f))),  # all rows weigh alike
            collinear=np.zeros(design.size, dtype=np.bool_),
            answers=boxed(sample.f),
        ),
    )


def enumerate_states(
    design: SampledDesign, answers: Floats, probability: Floats, weights: Floats, calls: int
) -> Moments:
    """Moments from the answers (n, ...) at all states of a design: exact for any model."""
    f = answers.reshape(len(answers), -1)
    mean = probability @ f
    centred = f - mean
    gamma = design.gamma(weights @ centred)
    shape = answers.shape[1:]
    exact = Moments.exact(mean.reshape(shape), gamma.reshape(design.size, *shape))
    with np.errstate(over="ignore", invalid="ignore"):
        variance = (probability @ centred**2).reshape(shape)
    finite = np.where(np.isfinite(variance), variance, np.nan)
    unlike = count_unlike(f).reshape(shape)
    return replace(exact, variance=finite, calls=np.array(calls), unlike=unlike)


def check_squares(f: Floats) -> None:
    """Raise ModelError, naming the largest answer, if squares of answers overflow, or all underflow."""
    largest = np.abs(f).max(initial=0.0)
    if 0.0 < largest < _SMALLEST:
        raise ModelError(
            f"the model's answers reach only {largest:.3g}: their squares are below a float64, so that no "
            "standard errors can be given; explain the answers times a constant, or their logarithm"
        )
    if largest > _LARGEST:
        raise ModelError(
            f"the model's answers reach {largest:.3g}: their squares are beyond a float64, so that "
            "no standard errors can be given; explain the answers divided by a constant, or their logarithm"
        )
