r"""Moments of a control whose expectation has no closed form: on rows that the model does not predict.

A control predicts rows of the background's law at next to no cost, so that many times as many can be drawn as
the model predicts. Each explained row uses them with the weights w ∝ t^#changed, as in a pool
(``weighted.py``):

    E_w h = E_w u + Σ_i w_i r_i / n,    β = β(u) + Σ_i w_i r_i (z_i - α) / (n v),    r = h - u,

where u are effects of cells and slopes inside them, whose moments are exact. Even sequences of rows are
independent of each other; the standard error follows from their differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import CellNumbers, Floats, streams
from limes._expectations.controls.control import ControlMoments
from limes._expectations.explained import CellCodes, CellMoments, ExplainedRows, by_column, cell_codes
from limes._expectations.pool import SEQUENCES
from limes._expectations.residual import student_factors
from limes.designs._product import ProductFamily, sobol_points

# Keys of the streams of these rows, which differ from those of the pool, and of their values
_KEY, _KEY_OF_VALUES = 0x73696D75, 0x73747261
# Largest number of rows of one control
MOST_SIMULATED = 1 << 16
# Number of values of a column
_STRATA = 1 << 12


class SimulatedRows(NamedTuple):
    """Rows of the background's law: x and cells (n, d), sequence by sequence."""

    x: Floats
    cells: CellCodes


class SimulatedLaw:
    """A background's law from which rows are drawn for controls.

    A column takes one of 2^12 values, one drawn from each of as many strata of its law; the first digits of
    a Sobol' point choose the value. Every row follows the law.
    """

    def __init__(self, family: ProductFamily, seed: int) -> None:
        self.family = family
        self.seed = seed

    def __getstate__(self) -> dict[str, Any]:
        return {"family": self.family, "seed": self.seed}

    def rows(self, count: int) -> SimulatedRows:
        """Draw rows, equally many of every sequence."""
        x, cells = self._strata
        d = x.shape[1]
        points = sobol_points(d, streams(self.seed, _KEY, SEQUENCES)).random(count // SEQUENCES)
        strata, columns = (points * _STRATA).astype(np.int64), np.arange(d)
        return SimulatedRows(x[strata, columns], cells[strata, columns])

    @cached_property
    def _strata(self) -> SimulatedRows:
        """The values of every column, and their cells, (strata, d)."""
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, _KEY_OF_VALUES]))
        places = rng.random((_STRATA, len(self.family.marginals)))
        x, cells = self.family.draw((np.arange(_STRATA)[:, None] + places) / _STRATA)
        return SimulatedRows(x, cell_codes(self.family, cells))


class CellParts(NamedTuple):
    """Values (n, k) as a constant (k,), effects (cells, k) of each column, slopes inside cells, and the rest.

    Slopes have no moments under bin weights, and are left out.
    """

    constant: Floats
    effects: list[Floats]
    rest: Floats

    @classmethod
    def of(cls, family: ProductFamily, x: Floats, cells: CellCodes, values: Floats) -> CellParts:
        """Split values at rows x with these cells (n, d): as columns are independent, by means."""
        constant = values.mean(axis=0)
        centred, effects = values - constant, []
        rest = centred.copy()
        for law, its, cell in zip(family.marginals, x.T, cells.T, strict=True):
            count = np.maximum(np.bincount(cell, minlength=law.cells.count), 1)[:, None]
            effects.append(_sums(cell, centred, len(count)) / count)
            step = law.standardized(its, cell)[:, None]
            slopes = _sums(cell, step * centred, len(count)) / count
            rest -= effects[-1][cell]
            rest -= slopes[cell] * step
        return cls(constant, effects, rest)


@dataclass(frozen=True, eq=False)
class SimulatedControl:
    """A control as effects of cells, whose moments are exact, and the rest of it at simulated rows.

    Attributes
    ----------
    cells
        Cells of the simulated rows, (d, n).
    constant
        (k,).
    effects
        Effects of the cells of each column.
    rest
        Values less constant, effects and slopes, (n, k).
    """

    cells: CellCodes
    constant: Floats
    effects: CellMoments
    rest: Floats

    @classmethod
    def of(cls, family: ProductFamily, x: Floats, cells: CellCodes, values: Floats) -> SimulatedControl:
        """Return the control with values (n, k) at rows x with these cells (n, d)."""
        parts = CellParts.of(family, x, cells, values)
        return cls(by_column(cells), parts.constant, CellMoments.of(family, parts.effects), parts.rest)

    def many(self, rows: ExplainedRows) -> ControlMoments:
        """E_w h and β of the effects, and of the rest by weighted means, whose standard errors are given."""
        sums = rows.sums(self.cells, self.rest, SEQUENCES) * (SEQUENCES / len(self.rest))
        v, alpha = (a[:, None, :, None] for a in (rows.features.variance, rows.features.inclusion))
        total, inside = sums[:, :, :1], sums[:, :, 1:]
        contrasts = np.divide(inside - alpha * total, v, out=np.zeros_like(inside), where=v > 0)
        sums = np.concatenate([total, contrasts], axis=2)
        errors = sums.std(axis=1, ddof=1) / np.sqrt(SEQUENCES) * student_factors(np.array(SEQUENCES - 1))
        mean, coef = self.effects.at(rows.cells)
        simulated = sums.mean(axis=1)
        return ControlMoments(self.constant + mean + simulated[:, 0], coef + simulated[:, 1:], errors)


def _sums(cell: CellNumbers, values: Floats, count: int) -> Floats:
    """Sums of values (n, k) over the rows in each cell, (cells, k)."""
    return np.stack([np.bincount(cell, column, minlength=count) for column in values.T], axis=1)
