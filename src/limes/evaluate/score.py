"""What a measure says of an explanation: a number a row, their mean, and how sure of it one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from limes._arrays import Floats

Better = Literal["higher", "lower"]


@dataclass(frozen=True, eq=False)
class Score:
    """One measure of explanations of n rows.

    Attributes
    ----------
    name
        Of the measure.
    rows
        (n,) its value for each row; NaN where it is not defined.
    better
        "higher" or "lower".
    """

    name: str
    rows: Floats
    better: Better

    @property
    def mean(self) -> float:
        """Over rows where it is defined; NaN if there are none."""
        known = self.rows[~np.isnan(self.rows)]
        return float(known.mean()) if known.size else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the mean over rows; NaN for fewer than two."""
        known = self.rows[~np.isnan(self.rows)]
        return float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")

    def __repr__(self) -> str:
        return f"<Score {self.name}: {self.mean:.4g} ± {self.error:.2g}, {self.better} is better>"
