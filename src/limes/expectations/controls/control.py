"""What every control variate offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from limes._arrays import Floats


class Fitted(Protocol):
    """A readable model of k outputs."""

    def predict(self, x: Floats) -> Floats:
        """Values (n, k) at rows (n, d)."""
        ...

    def exact(self, design: Any) -> tuple[Floats, Floats]:
        """E_w h (k,) and its coefficients β (d, k) under the design."""
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

    def exact(self, design: Any) -> tuple[Floats, Floats]:
        return np.zeros(self.outputs), np.zeros((design.size, self.outputs))


def none(design: Any, x: Floats, f: Floats) -> Fitted:  # noqa: ARG001 - it looks at nothing
    """No control."""
    return Zero(f.shape[1])
