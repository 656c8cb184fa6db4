"""Control variates: what each offers, none at all, and one that is used only where it pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats
from limes._expectations.controls.ridge import ridge_path
from limes.designs._features import Features

# Every fourth row is held out from the control and from the linear fit that it is compared with
_HELD_OUT = 4
# Largest residual variance of a control that is used, as a share of the linear fit's
_WORTH = 0.9
# A linear fit to a linear function leaves about this share of its variance, for its penalty
_LINEAR = 1e-6


class ControlMoments(NamedTuple):
    """Moments of a control under a design.

    Attributes
    ----------
    mean, coef
        E_w h (k,) and β(h) (d, k).
    errors
        Standard errors of both, mean first, (1 + d, k): 0 where they are exact.
    """

    mean: Floats
    coef: Floats
    errors: Floats

    @classmethod
    def exact(cls, mean: Floats, coef: Floats) -> ControlMoments:
        """Moments without error."""
        return cls(mean, coef, np.zeros((1 + len(coef), coef.shape[1])))

    def linear(self, design: Features, h: Floats, used: Bools) -> Floats:
        """The mean, and the part that is linear in the features (n, d) that are used: (n, k)."""
        return np.asarray(self.mean + (h[:, used] - design.inclusion[used]) @ self.coef[used])


class FittedControl(Protocol):
    """A readable model h of k outputs."""

    def predict(self, x: Floats) -> Floats:
        """Values (n, k) at rows (n, d)."""
        ...

    def moments(self, design: Any) -> ControlMoments:
        """E_w h and its coefficients β under the design."""
        ...


# (design, rows x (n, d), answers f (n, k)) -> a model of f. Controls of columns need a ProductDesign, those
# of switches an ExchangeableDesign, and `no_control` takes any.
Control: TypeAlias = Callable[[Any, Floats, Floats], FittedControl]


@dataclass(frozen=True)
class ZeroControl:
    """h = 0."""

    outputs: int

    def predict(self, x: Floats) -> Floats:
        return np.zeros((len(x), self.outputs))

    def moments(self, design: Any) -> ControlMoments:
        return ControlMoments.exact(np.zeros(self.outputs), np.zeros((design.size, self.outputs)))


def no_control(design: Any, x: Floats, f: Floats) -> FittedControl:  # noqa: ARG001 - h is constant
    """Return h = 0."""
    return ZeroControl(f.shape[1])


def if_better_than_linear(control: Control) -> Control:
    """Use a control only where it predicts held-out rows better than a linear fit does.

    Least squares of the residual takes the linear part of f away in any case, so that a control that predicts
    hardly better adds its own noise and nothing else. The first fit to n rows decides for all fits to n rows:
    with a control on some folds only, their residuals would not have the same slopes. The result is therefore
    the control of one explanation, not to be shared between calls.
    """
    used: dict[int, bool] = {}

    def fit(design: Any, x: Floats, f: Floats) -> FittedControl:
        if len(x) not in used:
            used[len(x)] = _is_better(control, design, x, f)
        return control(design, x, f) if used[len(x)] else ZeroControl(f.shape[1])

    return fit


def _is_better(control: Control, design: Any, x: Floats, f: Floats) -> bool:
    out = np.arange(len(x)) % _HELD_OUT == 0
    intercept, coef = ridge_path(x[~out], f[~out])
    linear = (f[out] - intercept - x[out] @ coef).var(axis=0).sum()
    residual = (f[out] - control(design, x[~out], f[~out]).predict(x[out])).var(axis=0).sum()
    return bool(residual < _WORTH * linear and linear > _LINEAR * f.var(axis=0).sum())
