"""Calls in turn, and what of their time is the model's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDS = 5


class Watched:
    """A model that knows how long it was at work."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self.ask = ask
        self.seconds = 0.0

    def __call__(self, batch: Any) -> Any:
        start = time.perf_counter()
        answer = self.ask(batch)
        self.seconds += time.perf_counter() - start
        return answer


@dataclass(frozen=True)
class Cost:
    """Medians in seconds of a call: altogether, and outside the model."""

    total: float
    outside: float


def in_turn(
    ask: Callable[[Any], Any],
    ways: Mapping[str, Callable[[Callable[[Any], Any]], object]],
    rounds: int = ROUNDS,
) -> dict[str, Cost]:
    """Let each way explain the model, one after the other, round by round; the first round warms up."""
    spent = {name: np.empty((rounds + 1, 2)) for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            model, start = Watched(ask), time.perf_counter()
            way(model)
            total = time.perf_counter() - start
            spent[name][turn] = total, total - model.seconds
    return {name: Cost(*np.median(each[1:], axis=0).tolist()) for name, each in spent.items()}
