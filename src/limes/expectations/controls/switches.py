r"""Kernel control of switches, for models of texts and images that can only be asked.

k(z, c) = exp(-Σ_j w_j 1[z_j ≠ c_j]): rows are alike where they differ in few features that matter. How much
one matters is told by a first linear fit, w_j ∝ |β_j|^p. The mean of w, then p, and the penalty are those of
the least leave-one-out error. A kernel is a product over switches, whose expectation is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes.designs.exchangeable import ExchangeableDesign
from limes.expectations.controls.control import Fitted, Known, Zero
from limes.expectations.controls.kernel_ridge import PENALTIES, left_out, solved, spread
from limes.expectations.controls.shrinkage import ridge_path
from limes.expectations.switches import switch_surrogates

# p, and means of w
_POWERS = (0.5, 0.0, 1.0)
_MEANS = (0.03, 0.1, 0.3)
_MOST_CENTERS = 256
# Rows on which power, rate and penalty are chosen
_MOST_CHOOSING = 72
_FEWEST_ROWS = 32


@dataclass(frozen=True, eq=False)
class _Kernels:
    centers: Floats
    rates: Floats
    intercept: Floats
    coef: Floats

    def predict(self, z: Floats) -> Floats:
        return np.asarray(self.intercept + np.exp(-_distances(z, self.centers, self.rates)) @ self.coef)

    def known(self, design: ExchangeableDesign) -> Known:
        far = np.exp(-self.rates)
        on, off = np.where(self.centers > 0, 1.0, far), np.where(self.centers > 0, far, 1.0)
        mean, beta = switch_surrogates(on, off, design)
        return Known.exactly(self.intercept + mean @ self.coef, beta.T @ self.coef)


def switch_kernels(design: ExchangeableDesign, z: Floats, f: Floats) -> Fitted:  # noqa: ARG001 - rows say all
    """Fit kernel ridge regression to answers f (n, k) at rows z (n, d) of 0 and 1."""
    if len(z) < _FEWEST_ROWS:
        return Zero(f.shape[1])
    intercept, scale = f.mean(axis=0), np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
    standard = (f - intercept) / scale
    rates, penalty = _chosen(z, standard)
    centers = z[spread(len(z), _MOST_CENTERS)]
    gram, own = (np.exp(-_distances(rows, centers, rates)) for rows in (z, centers))
    return _Kernels(centers, rates, intercept, solved(gram, own, penalty, standard) * scale)


def _chosen(z: Floats, standard: Floats) -> tuple[Floats, float]:
    """Rates w (d,) and penalty, by leave-one-out errors of some of the rows: first their mean, then p."""
    matter = np.abs(ridge_path(z, standard)[1]).mean(axis=1)
    some = spread(len(z), _MOST_CHOOSING)
    rows, answers = z[some], standard[some]

    def scored(rates: Floats) -> tuple[float, float]:
        errors = left_out(np.exp(-_distances(rows, rows, rates)), answers)
        return float(errors.min()), float(PENALTIES[np.argmin(errors)])

    middle = [_rates(matter, _POWERS[0], mean) for mean in _MEANS]
    scores = [scored(rates) for rates in middle]
    mean = _MEANS[int(np.argmin([score for score, _ in scores]))]
    other = [_rates(matter, power, mean) for power in _POWERS[1:]]
    found = [*zip(scores, middle, strict=True), *((scored(rates), rates) for rates in other)]
    (_, penalty), rates = min(found, key=lambda each: each[0][0])
    return rates, penalty


def _rates(matter: Floats, power: float, mean: float) -> Floats:
    each = matter**power
    return np.asarray(mean * each / (each.mean() or 1.0))


def _distances(z: Floats, centers: Floats, rates: Floats) -> Floats:
    """Σ_j w_j 1[z_j ≠ c_j], (n, m)."""
    differs = z @ (rates * (1.0 - 2.0 * centers)).T + centers @ rates
    return np.asarray(np.maximum(differs, 0.0))
