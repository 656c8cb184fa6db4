"""The scale that a control is fitted on: log odds of probabilities, other answers as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Reals

# Probabilities are clipped to this distance from 0 and 1 before their logarithms are taken
_NEAREST = 1e-6
# Answers of one row that add up to 1 this closely are all probabilities of a classifier
_ADDS_UP = 1e-6


@dataclass(frozen=True, eq=False)
class Scale:
    """A transform of answers (n, k), and its inverse."""

    transform: Callable[[Floats], Floats]
    inverse: Callable[[Reals], Reals]

    @classmethod
    def from_answers(cls, f: Floats) -> Scale:
        """Log odds of probabilities; of all classes together, logarithms less their mean."""
        from scipy.special import expit, logit, softmax

        if not are_probabilities(f):
            return cls(np.asarray, np.asarray)
        if f.shape[1] > 1 and (np.abs(f.sum(axis=1) - 1.0) <= _ADDS_UP).all():
            return cls(_centred_logarithms, lambda values: np.asarray(softmax(values, axis=1)))
        return cls(lambda p: np.asarray(logit(_clipped(p))), lambda values: np.asarray(expit(values)))


def are_probabilities(f: Floats) -> bool:
    """Whether all answers lie in [0, 1]."""
    return bool(((f >= 0) & (f <= 1)).all())


def _centred_logarithms(p: Floats) -> Floats:
    logarithms = np.log(_clipped(p))
    return np.asarray(logarithms - logarithms.mean(axis=1, keepdims=True))


def _clipped(p: Floats) -> Floats:
    return np.clip(p, _NEAREST, 1.0 - _NEAREST)
