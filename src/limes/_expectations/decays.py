r"""The decay of a column's characteristic functions: it decides how many terms the series of a kink needs.

For a density p with total variation V(p), jumps that add up to J, and derivative p' between them,

    |∫ p e^{iτx} dx| <= min(∫ p, V(p) / τ, J / τ + V(p') / τ²).

A column's law is a mixture of truncated normals, whose jumps partly cancel where two cells meet, and of
atoms, which do not decay: their mass A is added. A normal column without bins has e^{-τ²σ²/2}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from limes._arrays import Floats
from limes._functions import Function, Identity, Polynomial
from limes.designs._coordinates import Coordinate, IndicatorCoordinate, SlopeCoordinate
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Marginal
from limes.designs._partial_slopes import PartialSlopeCoordinate

Bound = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Envelope:
    """Bounds of |mean(e^{iτx})| and of |contrast(e^{iτx})| that do not rise with τ > 0.

    ``steepest`` bounds the contrast of any function that lies in [-1, 1].
    """

    mean: Bound
    contrast: Bound
    steepest: float


def envelope(variants: Sequence[Coordinate]) -> Envelope:
    """Bounds that hold for all variants of a column."""
    each = [_of_coordinate(coordinate) for coordinate in variants]
    return Envelope(
        _largest([e.mean for e in each]),
        _largest([e.contrast for e in each]),
        max(e.steepest for e in each),
    )


def joint_decay(envelopes: Sequence[Envelope], slopes: Floats) -> Bound:
    """Bound of |E e^{itS}| and its contrasts, for S = Σ_j slopes[j] x_j + any function where a slope is 0."""
    steepest = max([1.0, *(e.steepest for e in envelopes)])
    read = [(e, abs(float(s))) for e, s in zip(envelopes, slopes, strict=True) if s]

    def bound(t: Floats) -> Floats:
        means = [e.mean(slope * t) for e, slope in read]
        after = [np.ones(t.shape)]
        for mean in reversed(means[1:]):
            after.append(after[-1] * mean)
        before, worst = np.ones(t.shape), steepest * np.prod([np.ones(t.shape), *means], axis=0)
        for (e, slope), mean, rest in zip(read, means, reversed(after), strict=False):
            worst = np.maximum(worst, before * rest * e.contrast(slope * t))
            before = before * mean
        return np.asarray(worst)

    return bound


def slope_of(function: Function, loading: Floats) -> Floats:
    """Slopes (K,) of loading (m, K) times functions that are lines; 0 where they are not lines: no decay."""
    if isinstance(function, Identity):
        return np.asarray(loading[0])
    if isinstance(function, Polynomial) and not function.coefficients[:, 2].any():
        return np.asarray(function.coefficients[:, 1] @ loading)
    return np.zeros(loading.shape[1])


def _largest(bounds: Sequence[Bound]) -> Bound:
    return lambda tau: np.max([bound(tau) for bound in bounds], axis=0)


def _of_coordinate(coordinate: Coordinate) -> Envelope:
    if isinstance(coordinate, SlopeCoordinate):
        return _of_slope(coordinate)
    if isinstance(coordinate, PartialSlopeCoordinate):
        numbers = _of_slope(coordinate.present)
        return replace(numbers, mean=_mixture(coordinate.marginal, coordinate.probability))
    assert isinstance(coordinate, IndicatorCoordinate)  # noqa: S101 - there is no other kind
    law, inside = coordinate.marginal, np.zeros(coordinate.elsewhere.size)
    inside[coordinate.cell] = 1.0
    kept, changed = _mixture(law, inside), _mixture(law, coordinate.elsewhere)
    return Envelope(_mixture(law, coordinate.probability), lambda tau: kept(tau) + changed(tau), 2.0)


def _of_slope(coordinate: SlopeCoordinate) -> Envelope:
    length = coordinate.unit / coordinate.divisor
    steepest = 1.0 / (np.sqrt(coordinate.scatter) * length) if coordinate.scatter > 0 else 0.0
    (measure, *others) = coordinate.marginal.measures
    if others or not isinstance(measure, GaussianPieces) or not _is_normal(measure):
        whole = _mixture(coordinate.marginal, coordinate.probability)
        return Envelope(whole, lambda tau: np.full(tau.shape, steepest), steepest)
    deviation = float(np.sqrt(coordinate.scatter) * coordinate.unit)

    def mean(tau: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * (deviation * tau) ** 2))

    def contrast(tau: Floats) -> Floats:
        # Cov(x, e^{iτx}) = iτσ² e^{-τ²σ²/2}, which is largest at τ = 1/σ
        turns = np.maximum(deviation * tau, 1.0)
        return np.asarray(steepest * turns * np.exp(-0.5 * turns**2))

    return Envelope(mean, contrast, steepest)


def _is_normal(pieces: GaussianPieces) -> bool:
    return pieces.weight.size == 1 and bool(np.isinf(pieces.lower).all() and np.isinf(pieces.upper).all())


def _mixture(law: Marginal, probability: Floats) -> Bound:
    """The bound of the law whose cells have these probabilities."""
    atoms, first = 0.0, 0
    variation, jumps, bends = 0.0, 0.0, 0.0
    for measure in law.measures:
        weight = measure.weight * probability[law.owners[first : first + measure.weight.size]]
        first += measure.weight.size
        if isinstance(measure, GaussianPieces):
            of_density, of_jumps = _variation(measure, weight, _density(measure))
            of_slope, of_bends = _variation(measure, weight, _steepness(measure))
            variation += of_density + of_jumps
            jumps, bends = jumps + of_jumps, bends + of_slope + of_bends
        else:
            atoms += float(weight.sum())
    whole = float(probability.sum())

    def bound(tau: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            once, twice = variation / tau, (jumps + bends / tau) / tau
        return np.minimum(atoms + np.fmin(once, twice), whole)

    return bound


def _density(pieces: GaussianPieces) -> Floats:
    """The density at the lower end, where it turns, and at the upper end, (3, P)."""
    ends = pieces.steps(pieces.lower), pieces.steps(pieces.upper)
    values = [_height(pieces, t)[0] for t in (ends[0], np.zeros_like(ends[0]), ends[1])]
    return np.stack(values) / (pieces.area * pieces.scale)


def _steepness(pieces: GaussianPieces) -> Floats:
    """The derivative at the same places, turns being one deviation from the untruncated peak, (4, P)."""
    ends = pieces.steps(pieces.lower), pieces.steps(pieces.upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = [(side * np.sqrt(pieces.precision) - pieces.slope) / pieces.precision for side in (-1.0, 1.0)]
    inside = [np.clip(np.where(pieces.precision > 0, t, ends[0]), *ends) for t in turns]
    values = [np.multiply(*_height(pieces, t)) for t in (ends[0], *inside, ends[1])]
    return np.stack(values) / (pieces.area * pieces.scale) / pieces.scale


def _height(pieces: GaussianPieces, t: Floats) -> tuple[Floats, Floats]:
    """exp(-slope t - precision t²/2) and its logarithmic derivative at steps t; 0 at infinity."""
    at = np.where(np.isfinite(t), t, 0.0)
    height = np.exp(-at * (pieces.slope + 0.5 * pieces.precision * at))
    return np.where(np.isfinite(t), height, 0.0), -(pieces.slope + pieces.precision * at)


def _variation(pieces: GaussianPieces, weight: Floats, turns: Floats) -> tuple[float, float]:
    """Variation inside the pieces, and net jumps at their ends, of the sum with these weights."""
    values = weight * turns
    ends, place = np.unique(np.concatenate([pieces.lower, pieces.upper]), return_inverse=True)
    jumps = np.bincount(place, np.concatenate([values[0], -values[-1]]), minlength=ends.size)
    return float(np.abs(np.diff(values, axis=0)).sum()), float(np.abs(jumps).sum())
