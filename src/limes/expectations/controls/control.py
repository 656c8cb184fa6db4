"""What every control variate offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from limes._arrays import Floats
from limes.designs.product import ProductDesign


class Fitted(Protocol):
    """A readable model of k outputs."""

    def predict(self, x: Floats) -> Floats:
        """Values (n, k) at rows (n, d)."""
        ...

    def exact(self, design: ProductDesign) -> tuple[Floats, Floats]:
        """E_w h (k,) and its coefficients β (d, k) under the design."""
        ...


# (design, rows x (n, d), answers f (n, k)) -> a model of f
Control: TypeAlias = Callable[[ProductDesign, Floats, Floats], Fitted]


@dataclass(frozen=True)
class Zero:
    """h = 0."""

    outputs: int

    def predict(self, x: Floats) -> Floats:
        return np.zeros((len(x), self.outputs))

    def exact(self, design: ProductDesign) -> tuple[Floats, Floats]:
        return np.zeros(self.outputs), np.zeros((design.size, self.outputs))


def none(design: ProductDesign, x: Floats, f: Floats) -> Fitted:  # noqa: ARG001 - it looks at nothing
    """No control."""
    return Zero(f.shape[1])
