"""A text or an image, and the neighbourhoods that removing its features makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes.designs.exchangeable import ExchangeableDesign
from limes.diagnostics.sample import Sample, kernel
from limes.diagnostics.scene import Scene


@dataclass(frozen=True, kw_only=True, eq=False)
class SubsetScene(Scene):
    """One thing with d features: rows are (1, d), all ones.

    ``make`` gives the design for a bandwidth.
    """

    make: Callable[[float], ExchangeableDesign]

    def designs(self, bandwidth: float) -> list[ExchangeableDesign]:
        """The design, alone."""
        return [self.make(bandwidth)]

    def draw(self, design: ExchangeableDesign, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Subsets, spread more evenly than independent ones."""
        return design.sample(count, np.random.SeedSequence(int(rng.integers(2**63))))

    def squared(self, i: int, x: Floats) -> Floats:  # noqa: ARG002 - there is one
        """Squared cosine distance from (1, ..., 1)."""
        return np.asarray((1.0 - np.sqrt(x.mean(axis=1))) ** 2)

    def kept(self, i: int) -> float:
        """Features that are not removed."""
        return float(self.here[i].inclusion.mean())

    def states(self, i: int) -> Sample | None:
        """All subsets where they are no more than a sample would be."""
        known = self.here[i].states(self.calls)
        if known is None:
            return None
        z, probability, _ = known
        kept = probability > 0
        z, squared = z[kept], self.squared(i, z[kept])
        # the law of the subsets before it was tilted, as the density of a mixture of all of them
        log_law = np.log(probability[kept]) - kernel(squared, self.bandwidth)
        return Sample(z, z, self.answers(i, z), squared, -log_law, noise=0.0)

    @property
    def penalty(self) -> float:
        """``lime`` penalises all alike."""
        return 1.0
