r"""What the ``lime`` package would print in a row's place, by a ridge fit to 5,000 weighted rows.

Effective sample size: n_eff / n = E[π]² / E[π²], and π² is the weight of the bandwidth ν/√2, so that both are
computed without a sample. limes draws from the weighted law itself and wastes no rows.

Shrinkage: in expectation b_j ≈ β_j · nCv_j / (nCv_j + 1), C = E[π], v_j = α_j (1 - α_j): hardly any at
ordinary bandwidths, and almost to 0 at narrow ones, where all rows together weigh less than the penalty.

References
----------
``surrogates/_linear.py``; Garreau & von Luxburg 2022, section 2.3 and figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats
from limes._diagnostics.context import DiagnosticContext
from limes._diagnostics.finding import ROWS, SHRUNK, Finding, Measure, RowOutput
from limes._expectations.moments import Moments
from limes.designs._product import weighted_sum
from limes.surrogates._linear import LIME_SAMPLES, ridge


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleSize:
    """Share of weighted rows that count, and mean share of the row's conditions that hold in one of them."""

    row: RowOutput
    share: float
    locality: float
    bandwidth: float

    @property
    def effective(self) -> float:
        return LIME_SAMPLES * self.share

    def measures(self) -> Iterator[Measure]:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Shrinkage:
    """Coefficients (d,) without a penalty, those of ``lime``, and the total weight of its rows."""

    row: RowOutput
    limit: Floats
    lime: Floats
    weight: float
    bandwidth: float

    @property
    def difference(self) -> float:
        """Largest difference of the two, as a share of the largest coefficient."""
        largest = np.abs(self.limit).max(initial=0.0)
        return float(np.abs(self.lime - self.limit).max(initial=0.0) / largest) if largest > 0 else 0.0

    def measures(self) -> Iterator[Measure]:
        yield Measure(
            name="ridge shrinkage",
            value=self.difference,
            error=0.0,
            remark=f"of the largest coefficient: what lime's fit on {LIME_SAMPLES:,} rows is off its limit",
        )

    def findings(self) -> Iterator[Finding]:
        if not self.difference >= SHRUNK or np.abs(self.limit).max(initial=0.0) <= self.row.rounding:
            return
        j = int(np.abs(self.lime - self.limit).argmax())
        yield Finding(
            kind="shrinkage",
            severity="note",
            features=(self.row.names[j],),
            number=float(self.lime[j]),
            error=0.0,
            unit=f"coefficient that lime prints, in expectation, from {LIME_SAMPLES:,} rows",
            sentence=(
                f"For {self.row.names[j]} lime would print {self.lime[j]:+.3g} where the limit is "
                f"{self.limit[j]:+.3g}: at ν = {self.bandwidth:.3g} its {LIME_SAMPLES:,} rows weigh "
                f"{self.weight:.3g} in all, and its ridge penalty of 1 pulls coefficients towards 0."
            ),
            advice="Compare with lime at ridge=1 only, or widen the bandwidth.",
        )


def shrinkages(context: DiagnosticContext) -> list[Shrinkage]:
    """Return the coefficients that ``lime`` would print for each row."""
    return [_shrinkage(context, i, row) for i, row in enumerate(context.row_outputs)]


def _shrinkage(context: DiagnosticContext, i: int, row: RowOutput) -> Shrinkage:
    design, limit = context.row_designs[i], np.nan_to_num(context.limits[i].value)
    sample = context.samples[i]
    mean = row.intercept + float(weighted_sum(design.inclusion, row.values))
    if context.ridge > 0:
        mean = float(sample.mean(sample.weights(context.bandwidth)).value)
    moments = Moments.exact(np.array(mean), design.gamma(limit))
    fitted = ridge(design, moments, np.array(row.prediction), penalty=context.penalty)
    return Shrinkage(
        row=row,
        limit=limit,
        lime=fitted.coef,
        weight=float((LIME_SAMPLES - 1) * np.exp(design.log_weight)) + 1.0,
        bandwidth=context.bandwidth,
    )
