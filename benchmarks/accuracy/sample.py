"""One explanation, and what it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.cases import Clock


@dataclass(frozen=True)
class Sample:
    """Coefficients (d,), seconds outside the model, and what else is known of it."""

    coef: np.ndarray
    seconds: float
    control: str = ""


def outside(clock: Clock, explain: Callable[[], tuple[np.ndarray, str]]) -> Sample:
    """Explain; seconds are those of this process, on all its threads, less the model's."""
    inside, start = clock.seconds, time.process_time()
    coef, control = explain()
    return Sample(coef, time.process_time() - start - (clock.seconds - inside), control)
