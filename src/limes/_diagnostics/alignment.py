r"""Alignment: a coefficient may come from far away, where the model is flat around the instance.

Weights count changed columns, not how far a row lies. A bump of the model that shares a cell with the
instance in column j lifts the average over z_j = 1, although next to the instance nothing happens. This is
detected by leaving the instance's box with one column only:

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

from limes._diagnostics.context import Estimate, TableContext
from limes._diagnostics.finding import SURE, Finding, Measure, RowOutput
from limes._diagnostics.source import BOX_ROWS, box_rows

# Coefficients from this share of the largest one are checked
_LARGE = 0.2
# Share of the coefficient below which the effect of this column alone counts as 0
_NOTHING = 0.1
# Standard deviation in the box, as a share of the one under w
_FLAT = 0.1
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Alignment:
    """Limits of the coefficients as ν → 0, and the model's standard deviations in the box and under w."""

    row: RowOutput
    effects: Estimate
    inside: float
    around: float

    @property
    def flatness(self) -> float:
        """Standard deviation in the box, as a share of the one under w."""
        return self.inside / self.around if self.around > 0 else 0.0

    def artifacts(self) -> list[int]:
        """Return the features with a large coefficient that nothing near the instance explains."""
        size = np.abs(self.row.values)
        large = (size >= _LARGE * size.max(initial=0.0)) & (size > SURE * self.row.errors)
        large &= size > self.row.rounding
        nothing = np.abs(self.effects.value) + SURE * self.effects.error <= _NOTHING * size
        if self.flatness > _FLAT:
            return []
        return np.flatnonzero(large & nothing).tolist()

    def _effect(self, j: int) -> float:
        """Return the effect of column j alone, 0 if it is rounding."""
        effect = float(self.effects.value[j])
        return effect if abs(effect) > _ROUNDING * abs(float(self.row.values[j])) else -0.0

    def measures(self) -> Iterator[Measure]:
        yield Measure(
            name="spread in the box",
            value=self.flatness,
            # the standard error of a standard deviation of normal rows
            error=self.flatness / np.sqrt(2 * BOX_ROWS),
            remark="of the model's standard deviation is left where every condition of the row holds",
        )

    def findings(self) -> Iterator[Finding]:
        for j in self.artifacts():
            yield Finding(
                kind="alignment",
                severity="warning",
                features=(self.row.names[j],),
                number=self._effect(j),
                error=float(self.effects.error[j]),
                unit="change of the model when this column alone leaves its cell",
                sentence=(
                    f"“{self.row.conditions[j]}” has the coefficient {self.row.values[j]:+.3g}, but the "
                    "model is flat around the row, and leaving this cell alone changes it by "
                    f"{-self._effect(j):.2g}: the coefficient comes from elsewhere, where other "
                    "conditions fail too."
                ),
                advice='Use a narrower bandwidth, or weights="euclidean", to see what happens near the row.',
            )


def alignments(context: TableContext) -> list[Alignment]:
    """Return the alignment of each row."""
    return [_alignment(context, i, row) for i, row in enumerate(context.row_outputs)]


def _alignment(context: TableContext, i: int, row: RowOutput) -> Alignment:
    sample = context.samples[i]
    around = float(np.sqrt(sample.variance(sample.weights(context.bandwidth)).value))
    effects = context.source.single_column_effects(context, i)
    # a slope has no cell to leave: it is never an artifact of this kind
    error = np.where(context.binned, effects.error, np.inf)
    inside = float(box_rows(context, i)[1].std())
    return Alignment(row=row, effects=Estimate(effects.value, error), inside=inside, around=around)
