"""Margin control: the sum behind a link function, where it can be read.

A probability is a link of a margin (logistic, softmax), and the margin of a linear model or of boosted trees
is read exactly. A linear function of the margins, and an additive model of its residuals, follow the
probability as far as the link is straight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._expectations.controls.additive import additive_control
from limes._expectations.controls.control import Control, ControlMoments, FittedControl
from limes._expectations.controls.ridge import ridge_path
from limes._expectations.moments import ExactMoments, Moments
from limes._lru import LRUCache


@dataclass(frozen=True, eq=False)
class _Margin:
    margins: Callable[[Floats], Floats]
    margin_moments: Callable[[Any], Moments]
    intercept: Floats
    coef: Floats
    rest: FittedControl

    def predict(self, x: Floats) -> Floats:
        return self.intercept + _columns(self.margins(x)) @ self.coef + self.rest.predict(x)

    def moments(self, design: Any) -> ControlMoments:
        moments, rest = self.margin_moments(design), self.rest.moments(design)
        mean = self.intercept + np.atleast_1d(moments.mean) @ self.coef + rest.mean
        return ControlMoments(
            mean, design.solve(_columns(moments.gamma)) @ self.coef + rest.coef, rest.errors
        )


class MarginControl:
    """A control of margins (n,) or (n, m) and their exact expectation; ``rest`` fits the residuals."""

    def __init__(
        self,
        predict: Callable[[Floats], Floats],
        expectation: ExactMoments,
        rest: Control = additive_control,
    ) -> None:
        self._predict = predict
        self._expectation = expectation
        self._rest = rest
        # the fits to all folds share one design
        self._computed: LRUCache[Any, Moments] = LRUCache(1)

    def __call__(self, design: Any, x: Floats, f: Floats) -> FittedControl:
        columns = _columns(self._predict(x))
        intercept, coef = ridge_path(columns, f)
        residuals = f - intercept - columns @ coef
        return _Margin(self._predict, self._moments, intercept, coef, self._rest(design, x, residuals))

    def _moments(self, design: Any) -> Moments:
        return self._computed.get(design, lambda: self._expectation.moments(design))


def _columns(values: Floats) -> Floats:
    return values.reshape(len(values), -1)
