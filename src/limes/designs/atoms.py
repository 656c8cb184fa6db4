"""Point masses: categories, zero-width bins, missing values, a bin's own training values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Ints
from limes.functions import Function


@dataclass(frozen=True, eq=False)
class Atoms:
    """P (possibly signed) point masses; NaN is a place like any other."""

    value: Floats
    weight: Floats

    def expect(self, function: Function) -> Floats:
        """∫ function d(atom), (m, P)."""
        return function(self.value) * self.weight

    def centred(self, origin: Floats, unit: float = 1.0) -> Atoms:
        """The signed measures (x - origin) / unit · d(atom)."""
        return Atoms(self.value, self.weight * ((self.value - origin) / unit))

    def quantile(self, piece: Ints, level: Floats) -> Floats:  # noqa: ARG002 - an atom has one place
        """The place of each given piece."""
        return np.asarray(self.value[piece])

    def times(self, center: float, precision: float, unit: float = 1.0) -> tuple[Atoms, Floats]:
        """Multiply by exp(-precision ((x - center) / unit)²/2): the atoms, and the log factor of each."""
        return self, -0.5 * precision * ((self.value - center) / unit) ** 2
