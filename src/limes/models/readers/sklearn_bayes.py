"""Naive Bayes on counts: the joint log-likelihood is linear in them.

Multinomial: log P(class, x) = log prior + Σ_j x_j log P(word j | class). The complement variant has weights
of its own, and a prior only where there is one class. With two classes the margin is the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.additive import Linear
from limes.models.read import CannotRead
from limes.models.schema import Schema


@dataclass(frozen=True, eq=False)
class LogOdds:
    """A naive Bayes classifier that has a margin: log-odds of two classes, log-likelihoods of several."""

    model: Any

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.model.classes_

    def predict(self, X: Any) -> Any:
        """The classifier's own answer."""
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """The classifier's own answer."""
        return self.model.predict_proba(X)

    def decision_function(self, X: Any) -> Floats:
        """Joint log-likelihoods (n, k) of k classes, or the difference (n,) of two."""
        return _margin(np.asarray(self.model.predict_joint_log_proba(X)))


def log_odds(model: LogOdds, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """feature_log_prob_ (k, d), class_log_prior_ (k,)."""
    if method != "decision_function":
        raise CannotRead(
            f"the probabilities of {type(model.model).__name__} are not a sum of effects; "
            "its log-odds are read exactly with output='margin'"
        )
    own = model.model
    # the prior, in the words of the classifier itself: what it says of a row of zeros
    nothing = np.asarray(own.predict_joint_log_proba(np.zeros((1, own.n_features_in_))))
    return Linear(_margin(np.asarray(own.feature_log_prob_).T), _margin(nothing)[0])


def _margin(likelihoods: Floats) -> Floats:
    return likelihoods[:, 1] - likelihoods[:, 0] if likelihoods.shape[1] == 2 else likelihoods
