"""What every control variate offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats
from limes.designs.features import Features


class Known(NamedTuple):
    """What is known of a control under a design.

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
    def exactly(cls, mean: Floats, coef: Floats) -> Known:
        """Known without error."""
        return cls(mean, coef, np.zeros((1 + len(coef), coef.shape[1])))

    def linear(self, design: Features, h: Floats, used: Bools) -> Floats:
        """The mean, and the part that is linear in the features (n, d) that are used: (n, k)."""
        return np.asarray(self.mean + (h[:, used] - design.inclusion[used]) @ self.coef[used])


class Fitted(Protocol):
    """A readable model of k outputs."""

    def predict(self, x: Floats) -> Floats:
        """Values (n, k) at rows (n, d)."""
        ...

    def known(self, design: Any) -> Known:
        """E_w h and its coefficients β under the design."""
        ...


# (design, rows x (n, d), answers f (n, k)) -> a model of f. A control says itself for which kind of design it
# is made: those of columns need a ProductDesign, others take any.
Control: TypeAlias = Callable[[Any, Floats, Floats], Fitted]


@dataclass(frozen=True)
class Zero:
    """h = 0."""

    outputs: int

    def predict(self, x: Floats) -> Floats:
        return np.zeros((len(x), self.outputs))

    def known(self, design: Any) -> Known:
        return Known.exactly(np.zeros(self.outputs), np.zeros((design.size, self.outputs)))


def none(design: Any, x: Floats, f: Floats) -> Fitted:  # noqa: ARG001 - it looks at nothing
    """No control."""
    return Zero(f.shape[1])
