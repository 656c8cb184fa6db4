r"""What the ``lime`` package would print: a ridge fit on 5,000 weighted rows shrinks its coefficients.

In expectation b_j ≈ β_j · nCv_j / (nCv_j + 1), C = E[π], v_j = α_j (1 - α_j): next to nothing is lost at
ordinary bandwidths, next to everything at narrow ones, where all rows together weigh less than the penalty.

References
----------
``surrogates/ridge.py``; Garreau & von Luxburg 2022, section 2.3 and figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes.designs.features import weighted_sum
from limes.diagnostics.facts import Facts
from limes.diagnostics.finding import Finding, Measure
from limes.diagnostics.scene import Scene
from limes.expectations.moments import Moments
from limes.surrogates.linear import LIME_SAMPLES, ridge

# Of the largest coefficient
_DIFFERS = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Shrinkage:
    """Coefficients (d,) without a penalty, and those of ``lime``; the weight of its rows in all."""

    facts: Facts
    limit: Floats
    lime: Floats
    weight: float
    bandwidth: float

    @property
    def difference(self) -> float:
        """Largest difference of the two, of the largest coefficient."""
        largest = np.abs(self.limit).max(initial=0.0)
        return float(np.abs(self.lime - self.limit).max(initial=0.0) / largest) if largest > 0 else 0.0

    def measures(self) -> Iterator[Measure]:
        """The difference."""
        yield Measure(
            name="ridge shrinkage",
            value=self.difference,
            error=0.0,
            remark=f"of the largest coefficient: what lime's fit on {LIME_SAMPLES:,} rows is off its limit",
        )

    def findings(self) -> Iterator[Finding]:
        """Coefficients that ``lime`` would not print."""
        if not self.difference >= _DIFFERS or np.abs(self.limit).max(initial=0.0) <= self.facts.rounding:
            return
        j = int(np.abs(self.lime - self.limit).argmax())
        yield Finding(
            kind="shrinkage",
            severity="note",
            features=(self.facts.names[j],),
            number=float(self.lime[j]),
            error=0.0,
            unit=f"coefficient that lime prints, in expectation, from {LIME_SAMPLES:,} rows",
            sentence=(
                f"For {self.facts.names[j]} lime would print {self.lime[j]:+.3g} where the limit is "
                f"{self.limit[j]:+.3g}: at ν = {self.bandwidth:.3g} its {LIME_SAMPLES:,} rows weigh "
                f"{self.weight:.3g} in all, and its ridge penalty of 1 pulls what they say towards 0."
            ),
            advice="Compare with lime at ridge=1 only, or widen the bandwidth.",
        )


def shrinkages(scene: Scene) -> list[Shrinkage]:
    """What ``lime`` would print for each row."""
    return [_shrinkage(scene, i, facts) for i, facts in enumerate(scene.facts)]


def _shrinkage(scene: Scene, i: int, facts: Facts) -> Shrinkage:
    design, limit = scene.here[i], np.nan_to_num(scene.limits[i].value)
    sample = scene.samples[i]
    mean = facts.intercept + float(weighted_sum(design.inclusion, facts.values))
    if scene.ridge > 0:
        mean = float(sample.mean(sample.weights(scene.bandwidth)).value)
    moments = Moments.exact(np.array(mean), design.gamma(limit))
    fitted = ridge(design, moments, np.array(facts.prediction), penalty=scene.penalty)
    return Shrinkage(
        facts=facts,
        limit=limit,
        lime=fitted.coef,
        weight=float((LIME_SAMPLES - 1) * np.exp(design.log_weight)) + 1.0,
        bandwidth=scene.bandwidth,
    )
