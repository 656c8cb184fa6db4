r"""The fit of the surrogate: R² under the weights, and its error at the row itself.

    R² = (2 b·Γ - b·Σb) / Var_w f,      local error = f(ξ) - g(ξ).

R² is below 1 and the local error not 0 in general: binary features cannot follow the model inside a bin, and
weighted rows are not only near ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._diagnostics.context import DiagnosticContext, Estimate
from limes._diagnostics.finding import FAR, POOR, SEVERITIES, SURE, Finding, Measure, RowOutput, Severity


@dataclass(frozen=True, kw_only=True, eq=False)
class SurrogateFit:
    """R² and its standard error, the model's standard deviation under w, and shares (d,) of the variance.

    NaN if the model does not vary.
    """

    row: RowOutput
    fidelity: float
    fidelity_error: float
    deviation: float
    shares: Floats

    @property
    def local_error(self) -> float:
        return self.row.prediction - self.row.surrogate

    @property
    def distance(self) -> float:
        """Size of the local error in standard deviations of the model."""
        return abs(self.local_error) / self.deviation if self.deviation > 0 else 0.0

    def measures(self) -> Iterator[Measure]:
        if np.isfinite(self.fidelity):
            yield Measure(
                name="fidelity R²",
                value=self.fidelity,
                error=self.fidelity_error,
                remark="of the model's variance under the weights is the surrogate's",
            )
        yield Measure(
            name="local error",
            value=self.distance,
            error=self.row.surrogate_error / self.deviation if self.deviation > 0 else 0.0,
            remark=f"standard deviations of the model between it ({self.row.prediction:.4g}) and "
            f"the surrogate ({self.row.surrogate:.4g}) at the row",
        )
        if np.isfinite(self.shares).any():
            j = int(np.nanargmax(self.shares))
            yield Measure(
                name="largest share",
                value=float(self.shares[j]),
                error=0.0,
                remark=f"of the variance is explained by {self.row.names[j]}",
            )

    def findings(self) -> Iterator[Finding]:
        upper = self.fidelity + SURE * self.fidelity_error
        poor: Severity | None = next((s for s in SEVERITIES if upper < POOR[s]), None)
        if poor is not None:
            yield self._poor(poor)
        far: Severity | None = next((s for s in SEVERITIES if self.distance > FAR[s]), None)
        if far is not None:
            yield self._far(far)

    def _poor(self, severity: Severity) -> Finding:
        captured = max(self.fidelity, 0.0)
        return Finding(
            kind="fidelity",
            severity=severity,
            features=(),
            number=self.fidelity,
            error=self.fidelity_error,
            unit="R² of the surrogate under the weights",
            sentence=(
                f"The surrogate captures {captured:.0%} of how the model varies around the row; "
                f"the other {1 - captured:.0%} is in none of the coefficients."
            ),
            advice=(
                "Read coefficients as contrasts of averages, not as a description of the model: it combines "
                "features. A narrower bandwidth may fit better; limes.suggest_bandwidth compares them."
            ),
        )

    def _far(self, severity: Severity) -> Finding:
        return Finding(
            kind="local error",
            severity=severity,
            features=(),
            number=self.local_error,
            error=self.row.surrogate_error,
            unit="prediction - surrogate's prediction",
            sentence=(
                f"At the row itself the model predicts {self.row.prediction:.4g}, and the surrogate "
                f"{self.row.surrogate:.4g}. They differ by {self.distance:.1f} standard deviations "
                "of the model."
            ),
            advice="Do not derive this row's prediction from the coefficients; a narrower ν is nearer to it.",
        )


def fits(context: DiagnosticContext) -> list[SurrogateFit]:
    """Return fidelity and local error of each row."""
    return [_fit(context, i, row) for i, row in enumerate(context.row_outputs)]


def _fit(context: DiagnosticContext, i: int, row: RowOutput) -> SurrogateFit:
    sample = context.samples[i]
    variance = sample.variance(sample.weights(context.bandwidth))
    shares = _shares(context.row_designs[i], row.values, context.limits[i].value, variance)
    fidelity, error = row.fidelity, row.fidelity_error
    if not variance.value > 0:
        fidelity, error = np.nan, 0.0
    elif not np.isfinite(fidelity):
        fidelity = float(np.clip(shares.sum(), -1.0, 1.0))
        error = fidelity * float(variance.error / variance.value)
    else:
        # the explanation's R² is exact, or rests on more rows than this sample: shares add up to it
        total = float(shares.sum())
        shares = shares * (fidelity / total) if total > 0 else shares
    return SurrogateFit(
        row=row,
        fidelity=fidelity,
        fidelity_error=error,
        deviation=float(np.sqrt(variance.value)),
        shares=shares,
    )


def _shares(design: Any, coef: Floats, limit: Floats, variance: Estimate) -> Floats:
    """Return each feature's part of R², (d,); they sum to (2 b·Γ - b·Σb) / Var_w f."""
    if not variance.value > 0:
        return np.full(coef.size, np.nan)
    return np.asarray(coef * (2 * design.gamma(limit) - design.gamma(coef)) / variance.value)
