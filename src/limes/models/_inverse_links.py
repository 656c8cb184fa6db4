"""From margins to predictions: the curves that libraries put behind a sum, recognised by their values.

The margin's form with the curve behind it gives the model's answers, even where their expectation has no
closed form: a softmax of many classes, the logistic of boosted trees. Which curve a model has depends on its
class, objective and options: it is the one that gives the model's own answers at many rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, softmax

from limes._arrays import Floats
from limes.models.forms._links import LINKS

# Margins (n,) or (n, K) -> predictions (n,) or (n, classes); None where the curve does not apply
Curve = Callable[[Floats], Floats | None]


def _two_classes(margins: Floats, factor: float = 1.0) -> Floats | None:
    """Probabilities of both classes, the logistic of a multiple of one margin."""
    if margins.ndim == 2:
        return None
    return np.stack([expit(-factor * margins), expit(factor * margins)], axis=1)


def _softmax(margins: Floats) -> Floats | None:
    return np.asarray(softmax(margins, axis=1)) if margins.ndim == 2 else None


def _flat_softmax(margins: Floats) -> Floats | None:
    """AdaBoost's softmax, of margins over the number of other classes."""
    return np.asarray(softmax(margins / (margins.shape[1] - 1), axis=1)) if _several(margins) else None


def _one_against_the_rest(margins: Floats) -> Floats | None:
    """A logistic a class, over their sum."""
    if not _several(margins):
        return None
    values = expit(margins)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def _several(margins: Floats) -> bool:
    return margins.ndim == 2 and margins.shape[1] > 1


# In the order in which they are tried
_RESPONSES: tuple[Curve, ...] = (
    _two_classes,
    _softmax,
    LINKS["logistic"].function,
    LINKS["exp"].function,
    partial(_two_classes, factor=2.0),  # boosting of the exponential loss
    _one_against_the_rest,
    _flat_softmax,
)


def matching_curve(
    margins: Floats, answers: Floats, pick: Callable[[Floats], Floats], allowed: float
) -> Callable[[Floats], Floats] | None:
    """Return margins -> answers, the curve that gives the model's answers at the same rows; None without one.

    ``pick`` selects the outputs that are explained among all predictions; answers may differ by ``allowed``.
    """
    for curve in _RESPONSES:
        predictions = curve(margins)
        if predictions is None:
            continue
        try:
            picked = pick(predictions)
        except IndexError:  # another number of classes
            continue
        if picked.shape == answers.shape and (np.abs(picked - answers) <= allowed).all():
            return _Picked(curve, pick)
    return None


@dataclass(frozen=True)
class _Picked:
    """A curve and the outputs of it that are explained; unlike a closure it can be pickled."""

    curve: Curve
    pick: Callable[[Floats], Floats]

    def __call__(self, margins: Floats) -> Floats:
        predictions = self.curve(margins)
        assert predictions is not None  # noqa: S101 - it was defined at other rows
        return self.pick(predictions)
