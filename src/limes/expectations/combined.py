"""Expectations are linear in f: those of a combination are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from limes._arrays import Floats
from limes.expectations.moments import Moments


class ExactMoments(Protocol):
    """An exact expectation under one kind of design."""

    @property
    def method(self) -> Literal["exact"]:
        """How moments are had."""
        ...

    def moments(self, design: Any, row: Floats | None = None) -> Moments:
        """E_w f and Γ under the design."""
        ...


@dataclass(frozen=True)
class CombinedExpectation:
    """Moments of intercept + Σ_i weights[i] · part_i."""

    parts: Sequence[ExactMoments]
    weights: Floats
    intercept: Floats

    @property
    def method(self) -> Literal["exact"]:
        """How moments are had."""
        return "exact"

    def moments(self, design: Any, row: Floats | None = None) -> Moments:
        """E_w f and Cov_w(h, f), exactly."""
        found = [part.moments(design, row) for part in self.parts]
        mean = self.intercept + sum(w * m.mean for w, m in zip(self.weights, found, strict=True))
        gamma = np.sum([w * m.gamma for w, m in zip(self.weights, found, strict=True)], axis=0)
        return Moments.exact(np.asarray(mean), np.asarray(gamma))
