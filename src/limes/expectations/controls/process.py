r"""Gaussian process control of switches, for models whose answers take longer than a fit.

Answers, probabilities by their log odds, are followed by the mean of a Gaussian process (``relevance.py``):

    h(z) = σ(mean + Σ_i a_i k(z, c_i)),    σ the logistic function for probabilities, else nothing.

Its expectation is simulated with rows of the design, many times as many as the model was asked for: they cost
a product of matrices. The errors of that are known, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Reals
from limes._streams import fingerprint
from limes.designs.exchangeable import ExchangeableDesign
from limes.expectations.controls.control import Fitted, Known, Zero
from limes.expectations.controls.kernel_ridge import solved, spread
from limes.expectations.controls.relevance import Covariance, learnt

_MOST_CENTERS = 1024
# Rows that the covariance is learnt from
_MOST_LEARNING = 256
_FEWEST_ROWS = 32
# Rows of one control's simulation, and of a block of it
_SIMULATED, _BLOCK = 16_384, 2_048
# Log odds of probabilities nearer to 0 or 1 are of no interest
_NEAREST = 1e-6


@dataclass(frozen=True, eq=False)
class _Scale:
    """Where answers are smooth, and the way back."""

    there: Callable[[Floats], Floats]
    back: Callable[[Reals], Reals]

    @classmethod
    def of(cls, f: Floats) -> _Scale:
        from scipy.special import expit, logit

        if ((f >= 0) & (f <= 1)).all():
            return cls(lambda p: logit(np.clip(p, _NEAREST, 1 - _NEAREST)), expit)
        return cls(np.asarray, np.asarray)


@dataclass(frozen=True, eq=False)
class _Process:
    covariance: Covariance
    centers: Floats
    coef: Floats
    mean: Floats
    scale: _Scale
    stream: int

    def predict(self, x: Floats) -> Floats:
        return np.asarray(self._values(x), dtype=np.float64)

    def _values(self, z: Reals) -> Reals:
        """(n, k), computed in the precision of z."""
        centers, coef, mean = (known.astype(z.dtype) for known in (self.centers, self.coef, self.mean))
        return self.scale.back(mean + self.covariance.between(z, centers) @ coef)

    def known(self, design: ExchangeableDesign) -> Known:
        streams = np.random.SeedSequence(self.stream).spawn(_SIMULATED // _BLOCK)
        blocks = [design.sample(_BLOCK, stream)[0].astype(np.float32) for stream in streams]
        return simulated(blocks, [self._values(z) for z in blocks], design.inclusion)


def gaussian_process(design: ExchangeableDesign, z: Floats, f: Floats) -> Fitted:  # noqa: ARG001 - rows say all
    """Fit a Gaussian process to answers f (n, k) at rows z (n, d) of 0 and 1."""
    scale = _Scale.of(f)
    values = scale.there(f)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    varies = deviation > 0
    if len(z) < _FEWEST_ROWS or not varies.any():
        return Zero(f.shape[1])
    standard = (values - mean) / np.where(varies, deviation, 1.0)
    some = spread(len(z), _MOST_LEARNING)
    covariance = learnt(z[some], standard[some][:, varies])
    centers = z[spread(len(z), _MOST_CENTERS)]
    gram, own = (np.asarray(covariance.between(rows, centers), dtype=np.float64) for rows in (z, centers))
    coef = solved(gram, own, covariance.noise, standard) * deviation
    return _Process(covariance, centers, coef, mean, scale, fingerprint(z))


def simulated(features: Sequence[Reals], values: Sequence[Reals], center: Floats) -> Known:
    """Least squares of values (n, k) on centred features (n, d), and its errors; both come in blocks."""
    d, outputs = features[0].shape[1], values[0].shape[1]
    gram, gamma = np.zeros((1 + d, 1 + d)), np.zeros((1 + d, outputs))
    for h, f in zip(features, values, strict=True):
        x = _regressors(h, center)
        gram += x.T @ x
        gamma += x.T @ f
    inverse = np.linalg.pinv(gram, hermitian=True)
    coef, squares = inverse @ gamma, np.zeros((1 + d, outputs))
    for h, f in zip(features, values, strict=True):
        x = _regressors(h, center)
        squares += ((x @ inverse) ** 2).T @ (f - x @ coef) ** 2
    return Known(coef[0], coef[1:], np.sqrt(squares))


def _regressors(h: Reals, center: Floats) -> Floats:
    return np.column_stack([np.ones(len(h)), h - center])
