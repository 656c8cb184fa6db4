"""Weighted sums of forms: what votes, bags and stacks of readable models are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models.reductions import Form, outputs_intercept


@dataclass(frozen=True, eq=False)
class Combination:
    """f(x) = intercept + Σ_i weights[i] · parts[i](x).

    Parameters
    ----------
    parts
        Forms over the same columns with the same outputs.
    weights
        (T,), a number each.
    intercept
        A number, or one an output.

    Raises
    ------
    InputError
        If there are no parts, or as many weights as parts are not given, or columns differ.
    """

    parts: Sequence[Form]
    weights: Floats
    intercept: Floats = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        if not self.parts or weights.shape != (len(self.parts),):
            raise InputError(f"{len(self.parts)} parts need as many weights, got shape {weights.shape}")
        if len({part.size for part in self.parts}) != 1:
            raise InputError("parts of a combination must read the same columns")
        shape = self.parts[0].predict(np.zeros((1, self.parts[0].size))).shape[1:]
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "intercept", outputs_intercept(self.intercept, shape))

    @property
    def size(self) -> int:
        """Number of columns d."""
        return self.parts[0].size

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        values = [w * part.predict(x) for w, part in zip(self.weights, self.parts, strict=True)]
        return np.asarray(self.intercept + sum(values))

    def select(self, outputs: int | list[int]) -> Combination:
        """One or several outputs."""
        return Combination(
            tuple(part.select(outputs) for part in self.parts), self.weights, self.intercept[outputs]
        )
