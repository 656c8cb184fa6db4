"""Margin control: the sum behind a link function, where it can be read.

A probability is a link of a margin (logistic, softmax), and the margin of a linear model or of boosted trees
is read exactly. A linear function of the margins, and an additive model of what it leaves, follow the
probability as far as the link is straight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from limes._arrays import Floats
from limes.expectations.controls.additive import additive
from limes.expectations.controls.control import Control, Fitted, Known
from limes.expectations.controls.shrinkage import ridge_path
from limes.expectations.moments import Moments


class ExactMoments(Protocol):
    """An exact expectation of the margins."""

    def moments(self, design: Any) -> Moments:
        """Moments under one design."""
        ...


@dataclass(frozen=True, eq=False)
class _Margin:
    margins: Callable[[Floats], Floats]
    moments: Callable[[Any], Moments]
    intercept: Floats
    coef: Floats
    rest: Fitted

    def predict(self, x: Floats) -> Floats:
        return self.intercept + _columns(self.margins(x)) @ self.coef + self.rest.predict(x)

    def known(self, design: Any) -> Known:
        moments, rest = self.moments(design), self.rest.known(design)
        mean = self.intercept + np.atleast_1d(moments.mean) @ self.coef + rest.mean
        return Known(mean, design.solve(_columns(moments.gamma)) @ self.coef + rest.coef, rest.errors)


def margin(predict: Callable[[Floats], Floats], known: ExactMoments, rest: Control = additive) -> Control:
    """The control that margins (n,) or (n, m) make, given their exact expectation; ``rest`` follows them."""
    # one design is explained with several fits
    exact = lru_cache(maxsize=1)(known.moments)

    def control(design: Any, x: Floats, f: Floats) -> Fitted:
        columns = _columns(predict(x))
        intercept, coef = ridge_path(columns, f)
        left = rest(design, x, f - intercept - columns @ coef)
        return _Margin(predict, exact, intercept, coef, left)

    return control


def _columns(values: Floats) -> Floats:
    return values.reshape(len(values), -1)
