r"""Logistic control of switches, for probabilities: a model whose log odds are linear.

    h(z) = link(m(z)),    m(z) = b + Aᵀz,    link: the softmax of all classes, or the logistic function of each.

A follows by ridge regression of the answers' log odds, with weights p (1 - p): where p is near 0 or 1, log
odds say little about p. Linear classifiers of words are of this form, others are near it.

Its expectation is simulated, on rows of the design that the model is not asked about. Of h only what differs
from a linear function l = c + Qᵀm is: β(l) = A Q is exact, and

    β(h) = A Q + Σ⁻¹ E[(z - α)(h - l)].

Blocks of rows are independent of each other; how far they differ is the standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, fingerprint
from limes._expectations.controls.control import ControlMoments, FittedControl, ZeroControl, ridge_path
from limes._expectations.controls.scale import Scale, are_probabilities
from limes._expectations.residual import student_factors
from limes.designs._exchangeable import ExchangeableDesign

_FEWEST_ROWS = 32
# Least weight of a row in the fit
_LEAST_WEIGHT = 1e-3
# Simulated rows: blocks, and numbers (rows x features) of all blocks, but this many times the fitted rows
_BLOCKS, _NUMBERS, _TIMES = 8, 1 << 19, 5


@dataclass(frozen=True, eq=False)
class _LogisticControl:
    """The link of a linear function of switches: b (k,), A (d, k), and the number of rows that are simulated."""

    intercept: Floats
    coef: Floats
    scale: Scale
    simulated: int
    stream: int

    def predict(self, z: Floats) -> Floats:
        return np.asarray(self.scale.inverse(self.intercept + z @ self.coef), dtype=np.float64)

    def moments(self, design: ExchangeableDesign) -> ControlMoments:
        streams = np.random.SeedSequence(self.stream).spawn(_BLOCKS)
        rows = [design.sample(self.simulated // _BLOCKS, stream)[0] for stream in streams]
        margins = [self.intercept + z @ self.coef for z in rows]
        values = np.concatenate([self.scale.inverse(m) for m in margins])
        line = np.column_stack([np.ones(len(values)), np.concatenate(margins)])
        slopes = np.linalg.pinv(line.T @ line, hermitian=True) @ (line.T @ values)
        rest = np.split(values - line @ slopes, _BLOCKS)
        centred = (z - design.inclusion for z in rows)
        gamma = np.stack([z.T @ r for z, r in zip(centred, rest, strict=True)]) / len(rest[0])
        coef = np.stack([self.coef @ slopes[1:] + design.solve(block) for block in gamma])
        at_mean = slopes[0] + (self.intercept + design.inclusion @ self.coef) @ slopes[1:]
        mean = np.stack([at_mean + block.mean(axis=0) for block in rest])
        both = np.concatenate([mean[:, None], coef], axis=1)
        errors = both.std(axis=0, ddof=1) / np.sqrt(_BLOCKS) * student_factors(np.array(_BLOCKS - 1))
        return ControlMoments(mean.mean(axis=0), coef.mean(axis=0), errors)


def logistic_control(design: ExchangeableDesign, z: Floats, f: Floats) -> FittedControl:
    """Fit log odds of probabilities f (n, k) at rows z (n, d) of 0 and 1; other answers get no control."""
    if len(z) < _FEWEST_ROWS or not are_probabilities(f):
        return ZeroControl(f.shape[1])
    scale = Scale.from_answers(f)
    values = scale.transform(f)
    weights = np.maximum((f * (1.0 - f)).mean(axis=1, keepdims=True), _LEAST_WEIGHT)
    weights /= weights.mean()
    center, mean = ((weights * columns).mean(axis=0) for columns in (z, values))
    root = np.sqrt(weights)
    _, coef = ridge_path(root * (z - center), root * (values - mean))
    simulated = max(_NUMBERS // design.size, _TIMES * len(z)) // _BLOCKS * _BLOCKS
    return _LogisticControl(mean - center @ coef, coef, scale, simulated, fingerprint(z))
