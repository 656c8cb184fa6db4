r"""Kernel controls: Gaussian kernel regression of columns, and exponential kernels of switches.

*Columns*, for smooth models: a linear trend, and a kernel regression of its residuals with

    k(x, c) = ∏_j k_j:  exp(-(x_j - c_j)² / (2 s_j² γ² d)) for numbers, s_j their standard deviation under w;
                        1 or exp(-1 / (2 γ² d)) for the same or another category.

A missing number is near missing ones only. γ and the penalty are those of the least leave-one-out error.

*Switches*, for models of texts and images that cannot be read: k(z, c) = exp(-Σ_j w_j 1[z_j ≠ c_j]), so that
rows are alike where they differ in few features that matter. How much a feature matters is learnt by a linear
fit, w_j ∝ |β_j|^p. The mean of w, then p, and the penalty are those of the least leave-one-out error.

Both are sums of products of functions of one feature each, whose expectations are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats
from limes._expectations.controls.control import (
    PENALTIES,
    ControlMoments,
    FittedControl,
    ZeroControl,
    evenly_spread,
    fit_on_centers,
    leave_one_out_errors,
    ridge_path,
)
from limes._expectations.exact import ExactExpectation
from limes._expectations.words import switch_surrogates
from limes._functions import Bump, Filled, Function, Identity, Lookup
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._marginals import BinCells
from limes.designs._product import ProductDesign
from limes.models.forms._base import Reduced, Sum, SumOfProducts

_FEWEST_ROWS = 32
# Kernels of columns: candidates for γ, centres (fits take centres³, moments centres x columns), and rows on
# which γ and the penalty are chosen
_WIDTHS = (0.7, 1.0, 1.5, 2.5)
_MOST_CENTERS = 768
_MOST_CHOOSING = 400
# Kernels of switches: candidates for p and for the mean of w, centres, and rows on which they are chosen
_POWERS = (0.5, 0.0, 1.0)
_MEANS = (0.03, 0.1, 0.3)
_MOST_SWITCH_CENTERS = 256
_MOST_SWITCH_ROWS = 2048
_MOST_SWITCH_CHOOSING = 72
_SWITCH_BLOCK = _MOST_SWITCH_CENTERS


@dataclass(frozen=True, eq=False)
class _Space:
    """Distances between rows, over the columns that vary."""

    numeric: Bools
    category: Bools
    scale: Floats

    @classmethod
    def from_rows(cls, design: ProductDesign, x: Floats) -> _Space:
        bins = np.array([isinstance(c.marginal.cells, BinCells) for c in design.coordinates])
        scale = np.nanstd(np.where(np.isfinite(x).any(axis=0), x, 0.0), axis=0)
        varies = np.array([np.unique(column).size > 1 for column in x.T])
        return cls(bins & (scale > 0), ~bins & varies, np.where(scale > 0, scale, 1.0))

    @property
    def dimensions(self) -> int:
        return int(self.numeric.sum() + self.category.sum())

    def squares(self, x: Floats, centers: Floats) -> Floats:
        """Squared distances (n, m), infinite between a missing number and another one."""
        from scipy.spatial.distance import cdist

        a, b = (rows[:, self.numeric] / self.scale[self.numeric] for rows in (x, centers))
        finite, finite_center = np.isfinite(a), np.isfinite(b)
        squares = cdist(np.where(finite, a, 0.0), np.where(finite_center, b, 0.0), "sqeuclidean")
        if not (finite.all() and finite_center.all()):
            differ = cdist(finite.astype(np.float64), finite_center.astype(np.float64), "sqeuclidean") > 0
            squares[differ] = np.inf
        for j in np.flatnonzero(self.category):
            one, other = x[:, j, None], centers[None, :, j]
            squares += (one != other) & ~(np.isnan(one) & np.isnan(other))
        return np.asarray(squares)

    def functions(self, centers: Floats, width: float) -> tuple[Function | None, ...]:
        """The kernel's factors, one a column; see `squares`."""
        precision = 1.0 / (width**2 * self.dimensions)
        return tuple(self._factor(j, centers[:, j], precision) for j in range(centers.shape[1]))

    def _factor(self, j: int, centers: Floats, precision: float) -> Function | None:
        missing = np.isnan(centers)
        if self.numeric[j]:
            bump = Bump(np.where(missing, 0.0, centers), precision / self.scale[j] ** 2)
            return Filled(bump, (~missing).astype(np.float64), missing.astype(np.float64))
        if not self.category[j]:
            return None
        far = np.exp(-0.5 * precision)
        keys = np.unique(centers[~missing])
        values = np.where(centers[:, None] == keys, 1.0, far)
        return Lookup(keys, values, np.where(missing, 1.0, far), np.full(centers.size, far))


@dataclass(frozen=True, eq=False)
class _KernelControl:
    trend: Reduced
    bumps: Reduced

    def predict(self, x: Floats) -> Floats:
        return self.trend.predict(x) + self.bumps.predict(x)

    def moments(self, design: ProductDesign) -> ControlMoments:
        trend, bumps = (ExactExpectation(part).moments(design) for part in (self.trend, self.bumps))
        return ControlMoments.exact(trend.mean + bumps.mean, design.solve(trend.gamma + bumps.gamma))


def kernel_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    """Fit a linear trend, then kernel ridge regression of its residuals."""
    space = _Space.from_rows(design, x)
    if len(x) < _FEWEST_ROWS or space.dimensions == 0:
        return ZeroControl(f.shape[1])
    trend = _trend(space, x, f)
    residuals = f - trend.predict(x)
    centers = x[evenly_spread(len(x), _MOST_CENTERS)]
    some = evenly_spread(len(x), _MOST_CHOOSING)
    width, penalty = _choose_width(space, x[some], residuals[some])
    gram = _gram(space.squares(x, centers), width, space.dimensions)
    center_gram = _gram(space.squares(centers, centers), width, space.dimensions)
    coef = fit_on_centers([(gram, residuals)], center_gram, penalty)
    bumps = SumOfProducts(space.functions(centers, width), coef, np.zeros(f.shape[1]))
    return _KernelControl(trend, Reduced(bumps))


def _trend(space: _Space, x: Floats, f: Floats) -> Reduced:
    """Fit a linear function of the numbers that are never missing."""
    read = space.numeric & np.isfinite(x).all(axis=0)
    intercept, coef = ridge_path(np.where(read, x, 0.0), f)
    functions = tuple(Identity() if one else None for one in read)
    return Reduced(Sum(functions, tuple(coef[:, None]), intercept))


def _gram(squares: Floats, width: float, dimensions: int) -> Floats:
    return np.asarray(np.exp(squares * (-0.5 / (width**2 * dimensions))))


def _choose_width(space: _Space, x: Floats, f: Floats) -> tuple[float, float]:
    """Width and penalty with the least leave-one-out error, each output in units of its variance."""
    squares = space.squares(x, x)
    standard = f / np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
    scores = np.stack([leave_one_out_errors(_gram(squares, w, space.dimensions), standard) for w in _WIDTHS])
    width, penalty = np.unravel_index(np.argmin(scores), scores.shape)
    return _WIDTHS[width], float(PENALTIES[penalty])


@dataclass(frozen=True, eq=False)
class _SwitchControl:
    centers: Floats
    rates: Floats
    intercept: Floats
    coef: Floats

    def predict(self, z: Floats) -> Floats:
        grams = _switch_grams(z, self.centers, self.rates)
        return np.concatenate([self.intercept + gram @ self.coef for _, gram in grams])

    def moments(self, design: ExchangeableDesign) -> ControlMoments:
        far = np.exp(-self.rates)
        on, off = np.where(self.centers > 0, 1.0, far), np.where(self.centers > 0, far, 1.0)
        mean, beta = switch_surrogates(on, off, design)
        return ControlMoments.exact(self.intercept + mean @ self.coef, beta.T @ self.coef)


def switch_kernels(design: ExchangeableDesign, z: Floats, f: Floats) -> FittedControl:  # noqa: ARG001 - fits rows
    """Fit kernel ridge regression to answers f (n, k) at rows z (n, d) of 0 and 1."""
    if len(z) < _FEWEST_ROWS:
        return ZeroControl(f.shape[1])
    intercept, scale = f.mean(axis=0), np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
    standard = (f - intercept) / scale
    rates, penalty = _choose_rates(z, standard)
    centers = z[evenly_spread(len(z), _MOST_SWITCH_CENTERS)]
    (_, center_gram), *_ = _switch_grams(centers, centers, rates)
    fitted = evenly_spread(len(z), _MOST_SWITCH_ROWS)
    answers = standard[fitted]
    blocks = ((gram, answers[rows]) for rows, gram in _switch_grams(z[fitted], centers, rates))
    coef = fit_on_centers(blocks, center_gram, penalty) * scale
    return _SwitchControl(centers, rates, intercept, coef)


def _choose_rates(z: Floats, standard: Floats) -> tuple[Floats, float]:
    """Rates w (d,) and penalty, by leave-one-out errors of some of the rows: first their mean, then p."""
    importance = np.abs(ridge_path(z, standard)[1]).mean(axis=1)
    some = evenly_spread(len(z), _MOST_SWITCH_CHOOSING)
    rows, answers = z[some], standard[some]

    def score(rates: Floats) -> tuple[float, float]:
        (_, gram), *_ = _switch_grams(rows, rows, rates)
        errors = leave_one_out_errors(gram, answers)
        return float(errors.min()), float(PENALTIES[np.argmin(errors)])

    candidates = [(score(rates), rates) for rates in (_rates(importance, _POWERS[0], m) for m in _MEANS)]
    mean = _MEANS[int(np.argmin([error for (error, _), _ in candidates]))]
    others = [_rates(importance, power, mean) for power in _POWERS[1:]]
    candidates += [(score(rates), rates) for rates in others]
    (_, penalty), rates = min(candidates, key=lambda candidate: candidate[0][0])
    return rates, penalty


def _rates(importance: Floats, power: float, mean: float) -> Floats:
    rates = importance**power
    return np.asarray(mean * rates / (rates.mean() or 1.0))


def _switch_grams(z: Floats, centers: Floats, rates: Floats) -> Iterator[tuple[slice, Floats]]:
    """exp(-Σ_j w_j 1[z_j ≠ c_j]), (n, m), in blocks of rows that stay in the processor's cache."""
    slopes, start = (rates * (2.0 * centers - 1.0)).T, centers @ rates
    for first in range(0, len(z), _SWITCH_BLOCK):
        rows = slice(first, first + _SWITCH_BLOCK)
        exponent = z[rows] @ slopes
        exponent -= start
        np.minimum(exponent, 0.0, out=exponent)
        yield rows, np.exp(exponent, out=exponent)
