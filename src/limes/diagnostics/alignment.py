r"""Alignment: a coefficient may come from far away, where the model is flat around the instance.

Weights count changed columns, not how far a row lies. A bump of the model that shares a cell with the
instance in column j lifts the average over z_j = 1, although next to the instance nothing happens. Told apart
by leaving the instance's box with one column only:

    β_j(0) = E[f | all z = 1] - E[f | z_j = 0, all others 1]     (the limit ν → 0),

and by the spread of the model inside the box.

References
----------
Garreau & von Luxburg 2022, section 4.2, figures 11, 13 and 15.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes.diagnostics.facts import Facts
from limes.diagnostics.finding import SURE, Finding, Measure
from limes.diagnostics.sample import Estimate
from limes.diagnostics.source import INSIDE, boxed
from limes.diagnostics.table_scene import TableScene

# Of the largest coefficient: those that people look at
_LARGE = 0.2
# Of the coefficient: what leaving the box by this column alone may change, to be called nothing
_NOTHING = 0.1
# Standard deviation in the box, of the one under w
_FLAT = 0.1
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Alignment:
    """Coefficients (d,), those that remain as ν → 0, and how much the model varies inside the box."""

    facts: Facts
    alone: Estimate
    inside: float
    around: float

    @property
    def flatness(self) -> float:
        """Standard deviation in the box, of the one under w."""
        return self.inside / self.around if self.around > 0 else 0.0

    def artifacts(self) -> list[int]:
        """Features with a large coefficient and nothing near the instance to explain it."""
        size = np.abs(self.facts.values)
        large = (size >= _LARGE * size.max(initial=0.0)) & (size > SURE * self.facts.errors)
        large &= size > self.facts.rounding
        nothing = np.abs(self.alone.value) + SURE * self.alone.error <= _NOTHING * size
        if self.flatness > _FLAT:
            return []
        return np.flatnonzero(large & nothing).tolist()

    def _told(self, j: int) -> float:
        """What is left of coefficient j; 0 where that is a rounding."""
        left = float(self.alone.value[j])
        return left if abs(left) > _ROUNDING * abs(float(self.facts.values[j])) else -0.0

    def measures(self) -> Iterator[Measure]:
        """How flat the model is in the box."""
        yield Measure(
            name="spread in the box",
            value=self.flatness,
            # of a standard deviation of so many rows, if they were normal
            error=self.flatness / np.sqrt(2 * INSIDE),
            remark="of the model's standard deviation is left where every condition of the row holds",
        )

    def findings(self) -> Iterator[Finding]:
        """One finding a feature."""
        for j in self.artifacts():
            yield Finding(
                kind="alignment",
                severity="warning",
                features=(self.facts.names[j],),
                number=self._told(j),
                error=float(self.alone.error[j]),
                unit="change of the model when this column alone leaves its cell",
                sentence=(
                    f"“{self.facts.conditions[j]}” has the coefficient {self.facts.values[j]:+.3g}, but the "
                    "model is flat around the row, and leaving this cell alone changes it by "
                    f"{-self._told(j):.2g}: the coefficient comes from elsewhere, where other "
                    "conditions fail too."
                ),
                advice='Take a narrower bandwidth, or weights="euclidean", to see what happens near the row.',
            )


def alignments(scene: TableScene) -> list[Alignment]:
    """What is left of each row's coefficients near the row."""
    return [_alignment(scene, i, facts) for i, facts in enumerate(scene.facts)]


def _alignment(scene: TableScene, i: int, facts: Facts) -> Alignment:
    sample = scene.samples[i]
    around = float(np.sqrt(sample.variance(sample.weights(scene.bandwidth)).value))
    alone = scene.source.alone(scene, i)
    # a slope has no cell to leave: it is never an artifact of this kind
    error = np.where(scene.binned, alone.error, np.inf)
    inside = float(boxed(scene, i)[1].std())
    return Alignment(facts=facts, alone=Estimate(alone.value, error), inside=inside, around=around)
