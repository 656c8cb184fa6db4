"""Answers brought into [-1, 1], where the bounds of sparse explanations hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError

# An answer at the end of the scale may pass it by so much
ROUNDING = 1e-9


@dataclass(frozen=True)
class Scale:
    """Answers from low to high become -1 to 1; one that was only seen, not given, may be left later."""

    low: float
    high: float
    given: bool = True

    @classmethod
    def of(cls, *answers: Floats) -> Scale:
        """No change for answers in [-1, 1], else the range that was seen."""
        low = min(float(part.min()) for part in answers)
        high = max(float(part.max()) for part in answers)
        if low >= -1.0 and high <= 1.0:
            return cls(-1.0, 1.0, given=False)
        return cls(low, high, given=False) if low < high else cls(low - 1.0, low + 1.0, given=False)

    @property
    def middle(self) -> float:
        """What becomes 0."""
        return 0.5 * (self.low + self.high)

    @property
    def half(self) -> float:
        """What becomes a step of 1."""
        return 0.5 * (self.high - self.low)

    def inward(self, answers: Floats) -> Floats:
        """Scale answers.

        Raises
        ------
        InputError
            If one lies outside a scale that was given.
        """
        scaled = (answers - self.middle) / self.half
        if self.given and np.abs(scaled).max() > 1.0 + ROUNDING:
            worst = float(answers[np.argmax(np.abs(scaled))])
            raise InputError(
                f"the model answers {worst:g}, outside scale=({self.low:g}, {self.high:g}): widen it, or use "
                "scale='auto'"
            )
        return np.asarray(np.clip(scaled, -1.0, 1.0) if self.given else scaled)
