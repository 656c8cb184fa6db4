r"""Effective sample size: how many of ``lime``'s 5,000 weighted rows count.

    n_eff / n = E[π]² / E[π²],

and π² is the weight of the bandwidth ν/√2, so that both are known without a sample. limes draws from the
weighted law itself and wastes nothing; whoever weighs rows does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes.diagnostics.facts import Facts
from limes.diagnostics.finding import Finding, Measure
from limes.diagnostics.scene import Scene
from limes.surrogates.linear import LIME_SAMPLES

# Rows a coefficient, that least squares should have
_ENOUGH = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleSize:
    """Share of weighted rows that count, and share of the row's conditions that hold in one of them."""

    facts: Facts
    share: float
    kept: float
    bandwidth: float

    @property
    def effective(self) -> float:
        """Of ``lime``'s rows."""
        return LIME_SAMPLES * self.share

    def measures(self) -> Iterator[Measure]:
        """Effective sample size, and how local the neighbourhood is."""
        yield Measure(
            name="effective sample",
            value=self.share,
            error=0.0,
            remark=f"of weighted rows count: {self.effective:,.0f} of lime's {LIME_SAMPLES:,}",
        )
        if np.isfinite(self.kept):
            yield Measure(
                name="locality",
                value=self.kept,
                error=0.0,
                remark="of the row's conditions hold in a weighted row, on average",
            )

    def findings(self) -> Iterator[Finding]:
        """Too few rows for so many coefficients."""
        needed = _ENOUGH * (len(self.facts.names) + 1)
        if self.effective >= needed:
            return
        yield Finding(
            kind="sample size",
            severity="note",
            features=(),
            number=self.effective,
            error=0.0,
            unit=f"effective rows of {LIME_SAMPLES:,} weighted ones",
            sentence=(
                f"At ν = {self.bandwidth:.3g} only {self.effective:.2g} of {LIME_SAMPLES:,} weighted rows "
                f"count, for {len(self.facts.names)} coefficients and an intercept."
            ),
            advice=(
                f"A fit to weighted rows, as lime makes it, needs some {needed / self.share:.1g} of them; "
                "limes draws from the weighted law and does not."
            ),
        )


def sample_sizes(scene: Scene) -> list[SampleSize]:
    """Of each row."""
    squares = scene.designs(scene.bandwidth / np.sqrt(2.0))
    return [
        SampleSize(
            facts=facts,
            share=float(np.exp(2 * design.log_weight - square.log_weight)),
            kept=scene.kept(i),
            bandwidth=scene.bandwidth,
        )
        for i, (facts, design, square) in enumerate(zip(scene.facts, scene.here, squares, strict=True))
    ]
