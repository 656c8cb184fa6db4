"""Predictions behind margins: a link of two classes, a softmax of three, other curves by their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models._algebra import combine
from limes.models._calling.outputs import kind_of
from limes.models._reading import CannotRead, Reader, Schema, only_margin, refuse_all_but_margin
from limes.models.forms._base import Form
from limes.models.forms._linked import Linked, Softmax
from limes.models.forms._links import LINKS
from limes.models.forms._planes import CLASSES


def logistic_of(margin: Form) -> Linked:
    """The probabilities of two classes, 1 - σ(margin) and σ(margin)."""
    return Linked(margin, "logistic", np.array([[-1.0, 1.0]]), np.array([1.0, 0.0]))


def with_probabilities(
    terms: str,
    *,
    where: Callable[[Any], bool] = lambda model: True,  # noqa: ARG005
    scale: Callable[[Any], float] = lambda model: 1.0,  # noqa: ARG005
) -> Callable[[Reader], Reader]:
    """Extend a reader of margins, sums of ``terms``, to probabilities of two and three classes.

    These are the logistic of the margin, and the softmax of three; all else of a classifier is refused.
    ``where`` returns whether a model's probability is the logistic of the margin. ``scale`` returns the
    factor of three margins before the softmax; 0 where probabilities are another function of them.
    """

    def extended(reader: Reader) -> Reader:
        @wraps(reader)
        def read(model: Any, method: str, schema: Schema | None) -> Form:
            classes = len(getattr(model, "classes_", ())) if method == "predict_proba" else 0
            if not ((classes == 2 and where(model)) or (classes == CLASSES and scale(model))):
                if kind_of(model) == "classifier":
                    refuse_all_but_margin(model, method, terms)
                return reader(model, method, schema)
            try:
                margin = reader(model, "decision_function", schema)
                if classes == 2:
                    return logistic_of(margin)
                factor = scale(model)
                return Softmax(margin if factor == 1.0 else combine([margin], [factor]))
            except InputError as error:
                raise CannotRead(f"{only_margin(model, method, terms)} ({error})") from error

        return read

    return extended


# -- curves that libraries put behind a sum, recognised by their values ------------------------------------
#
# The margin's form with the curve behind it gives the model's answers, even where their expectation has no
# closed form: a softmax of many classes, the logistic of boosted trees. Which curve a model has depends on
# its class, objective and options: it is the one that gives the model's own answers at many rows.

Curve = Callable[[Floats], Floats]


def _two_classes(margins: Floats, factor: float = 1.0) -> Floats:
    """Probabilities of both classes, the logistic of a multiple of one margin."""
    return np.stack([expit(-factor * margins), expit(factor * margins)], axis=1)


def _softmax(margins: Floats) -> Floats:
    return np.asarray(softmax(margins, axis=1))


def _flat_softmax(margins: Floats) -> Floats:
    """AdaBoost's softmax, of margins over the number of other classes."""
    return _softmax(margins / max(margins.shape[1] - 1, 1))


def _one_against_the_rest(margins: Floats) -> Floats:
    """A logistic a class, over their sum."""
    values = expit(margins)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


_OF_EACH: tuple[Curve, ...] = (LINKS["logistic"].function, LINKS["exp"].function)
# Curves of margins (n,) and (n, K), by their number of axes, in the order in which they are tried
_RESPONSES: Mapping[int, tuple[Curve, ...]] = {
    # twice the margin in boosting of the exponential loss
    1: (_two_classes, *_OF_EACH, partial(_two_classes, factor=2.0)),
    2: (_softmax, *_OF_EACH, _one_against_the_rest, _flat_softmax),
}


def matching_curve(margins: Floats, answers: Floats, pick: Curve, allowed: float) -> Curve | None:
    """The curve margins -> answers that gives the model's answers at the same rows; None without one."""
    # pick selects the outputs that are explained among all predictions; answers may differ by allowed
    for curve in _RESPONSES[margins.ndim]:
        try:
            picked = pick(curve(margins))
        except IndexError:  # another number of classes
            continue
        if picked.shape == answers.shape and (np.abs(picked - answers) <= allowed).all():
            return partial(_picked, curve, pick)  # unlike a closure it can be pickled
    return None


def _picked(curve: Curve, pick: Curve, margins: Floats) -> Floats:
    return pick(curve(margins))
