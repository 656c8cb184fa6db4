r"""Effective sample size: how many of ``lime``'s 5,000 weighted rows count.

    n_eff / n = E[π]² / E[π²],

and π² is the weight of the bandwidth ν/√2, so that both are computed without a sample. limes draws from the
weighted law itself and wastes no rows, unlike methods that weigh them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._diagnostics.context import DiagnosticContext
from limes._diagnostics.finding import Finding, Measure, RowOutput
from limes._diagnostics.thresholds import ROWS
from limes.surrogates._linear import LIME_SAMPLES


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleSize:
    """Share of weighted rows that count, and mean share of the row's conditions that hold in one of them."""

    row: RowOutput
    share: float
    locality: float
    bandwidth: float

    @property
    def effective(self) -> float:
        """Effective number of ``lime``'s rows."""
        return LIME_SAMPLES * self.share

    def measures(self) -> Iterator[Measure]:
        """Yield the effective sample size, and how local the neighbourhood is."""
        yield Measure(
            name="effective sample",
            value=self.share,
            error=0.0,
            remark=f"of weighted rows count: {self.effective:,.0f} of lime's {LIME_SAMPLES:,}",
        )
        if np.isfinite(self.locality):
            yield Measure(
                name="locality",
                value=self.locality,
                error=0.0,
                remark="of the row's conditions hold in a weighted row, on average",
            )

    def findings(self) -> Iterator[Finding]:
        """Yield a finding if the rows are too few for the number of coefficients."""
        needed = ROWS * (len(self.row.names) + 1)
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
                f"count, for {len(self.row.names)} coefficients and an intercept."
            ),
            advice=(
                f"A fit to weighted rows, as lime makes it, needs some {needed / self.share:.1g} of them; "
                "limes draws from the weighted law and does not."
            ),
        )


def sample_sizes(context: DiagnosticContext) -> list[SampleSize]:
    """Return the effective sample size of each row."""
    squares = context.designs(context.bandwidth / np.sqrt(2.0))
    return [
        SampleSize(
            row=row,
            share=float(np.exp(2 * design.log_weight - square.log_weight)),
            locality=context.locality(i),
            bandwidth=context.bandwidth,
        )
        for i, (row, design, square) in enumerate(
            zip(context.row_outputs, context.row_designs, squares, strict=True)
        )
    ]
