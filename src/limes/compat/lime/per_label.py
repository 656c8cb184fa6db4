"""Numbers that every label of an explanation has one of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limes.compat.lime.exceptions import LimeError

__all__ = ["PerLabel", "UnknownLabelError"]


class UnknownLabelError(LimeError, KeyError):
    """A label that was not explained."""

    def __str__(self) -> str:
        return str(self.args[0])


class PerLabel(float):
    """A number of the label explained last, as lime has it; ``[label]`` is any label's.

    ``[0]`` is the number itself where no label 0 was explained, as lime's arrays of one number have it.

    Examples
    --------
    >>> score = PerLabel({1: 0.25, 2: 0.5})
    >>> float(score), score[1], score[0]
    (0.5, 0.25, 0.5)
    """

    def __new__(cls, values: Mapping[int, float]) -> PerLabel:
        return super().__new__(cls, list(values.values())[-1])

    def __init__(self, values: Mapping[int, float]) -> None:
        self.by_label = dict(values)

    def __getitem__(self, label: int) -> float:
        if label not in self.by_label and label == 0:
            return float(self)
        return self.by_label[label]

    def __reduce__(self) -> tuple[Any, ...]:
        return PerLabel, (self.by_label,)
