r"""Logistic control of switches, for probabilities: models whose log odds are linear.

    h_k(z) = σ(b_k + a_k · z),    σ the logistic function.

b and a follow by ridge regression of the answers' log odds (``odds.py``). Linear classifiers of words are of
this form, and other models are near it. Its expectation is exact, by quadrature (``linked_words.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes._expectations.controls.control import ControlMoments, FittedControl, SequenceRidge, ZeroControl
from limes._expectations.controls.odds import are_probabilities, log_odds, roots_of_weights
from limes._expectations.linked_words import LinkedWordsExpectation
from limes._expectations.moments import are_complements
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Linear
from limes.models.forms._linked import Linked

_FEWEST_ROWS = 32
# Penalties in units of the rows' weights: the one that predicts one part of the rows best is chosen
_PENALTIES = (1e-7, 1e-5, 1e-4, 1e-3, 1e-2)
_PARTS = 3


@dataclass(frozen=True, eq=False)
class _LogisticControl:
    form: Linked
    exact: ControlMoments

    def predict(self, z: Floats) -> Floats:
        return self.form.predict(z)

    def moments(self, design: ExchangeableDesign) -> ControlMoments:  # noqa: ARG002 - the design of the fit
        return self.exact


def logistic_control(design: ExchangeableDesign, z: Floats, f: Floats) -> FittedControl:
    """Fit log odds of probabilities f (n, k) at rows z (n, d) of 0 and 1.

    There is no control for other answers, nor for too many features for the quadrature.
    """
    count = len(z) // _PARTS * _PARTS
    if count < _FEWEST_ROWS or not are_probabilities(f):
        return ZeroControl(f.shape[1])
    complement = are_complements(f)
    p = f[:count, 1:] if complement else f[:count]
    intercept, coef = _fit(z[:count] - design.inclusion, p)
    margin = Linear(coef, intercept - design.inclusion @ coef)
    both = (np.array([[-1.0, 1.0]]), np.array([1.0, 0.0])) if complement else ()
    form = Linked(margin, "logistic", *both)
    try:
        moments = LinkedWordsExpectation(form).moments(design)
    except (InputError, ModelError):
        return ZeroControl(f.shape[1])
    return _LogisticControl(form, ControlMoments.exact(moments.mean, design.solve(moments.gamma)))


def _fit(centred: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Intercept (k,) and coefficients (d, k) of the log odds of p (n, k)."""
    root = roots_of_weights(p)
    features = root * np.column_stack([np.ones(len(p)), centred])
    targets = root * log_odds(p)
    ridge, first = SequenceRidge.of(features, targets, _PARTS), slice(len(p) // _PARTS)

    def misses(penalty: float) -> float:
        return float(((targets[first] - features[first] @ ridge.without(0, penalty)) ** 2).sum())

    intercept, *coef = ridge.of_all(min(_PENALTIES, key=misses))
    return intercept, np.array(coef)
