r"""Control variates of a pool: fitted to some of its sequences, and subtracted from the others.

So a control g does not depend on the rows that it is subtracted from, and the estimate stays unbiased.

A control whose expectation has no closed form is simulated. It predicts rows of the background's law at next
to no cost, so that many times as many can be drawn as the model predicts. Each explained row uses them with
the weights w ∝ t^#changed, as in a pool (``pool_fit.py``):

    E_w g = E_w u + Σ_i w_i r_i / n,    β = β(u) + Σ_i w_i r_i (z_i - α) / (n v),    r = g - u,

where u are effects of cells and slopes inside them, whose moments are exact. Even sequences of rows are
independent of each other; the standard error follows from their differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Floats, power_of_two, sobol_points, streams
from limes._sampling.controls import Control, FittedControl
from limes._sampling.controls.control import share_left
from limes._sampling.controls.tables import Units, additive_out_of_sequence, fit_network, units_for
from limes._sampling.controls.wide import EffectsOfCells, is_wide, wide_additive
from limes._sampling.least_squares import ControlMoments, error_of_mean
from limes._sampling.pool import SEQUENCES, PoolRows
from limes._sampling.pool_fit import CellCodes, CellMoments, ExplainedRows, cell_codes
from limes.designs._product import ProductDesign, ProductFamily

# Parts of a pool, whole sequences each: an ordinary control is fitted to the other parts
_FOLDS = 2
# Assumed variance of a mean over simulated rows, in units of that over as many independent rows
_EVEN = 0.5
# Share of a control's residual variance that simulated rows may add; fewest and most of them for each
# predicted row, which costs about twenty times as much
_ADDED = 0.1
# Sizes of answers between which their squares are numbers of single precision
_SMALLEST, _LARGEST = 1e-18, 1e18
_FEWEST_TIMES, _MOST_TIMES = 1, 8
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


@dataclass(frozen=True)
class SimulatedLaw:
    """A background's law from which rows are drawn for controls.

    A column takes one of 2^12 values, one drawn from each of as many strata of its law; the first digits of
    a Sobol' point choose the value. Every row follows the law.
    """

    family: ProductFamily
    seed: int

    def __getstate__(self) -> dict[str, Any]:
        return {"family": self.family, "seed": self.seed}

    def rows(self, count: int) -> SimulatedRows:
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


@dataclass(frozen=True, eq=False)
class SimulatedControl:
    """A control as effects of cells, whose moments are exact, and the rest of it at simulated rows."""

    cells: CellCodes  # of the simulated rows, (d, n)
    constant: Floats  # (k,)
    effects: CellMoments
    rest: Floats  # values less constant, effects and slopes, (n, k)

    @classmethod
    def of(cls, family: ProductFamily, x: Floats, cells: CellCodes, values: Floats) -> SimulatedControl:
        """Split values (n, k) at rows x with these cells (n, d): as columns are independent, by means.

        Slopes inside cells have no moments under bin weights, and are left out.
        """
        from scipy.sparse import csr_array

        constant = values.mean(axis=0)
        centred, effects = values - constant, []
        rest, starts = centred.copy(), 2 * np.arange(len(x) + 1)
        for law, its, cell in zip(family.marginals, x.T, cells.T, strict=True):
            size = law.cells.count
            count = np.maximum(np.bincount(cell, minlength=size), 1)[:, None]
            # a row has its cell's effect and slope: one pass takes all outputs
            columns = np.column_stack([cell, cell.astype(np.int64) + size]).ravel()
            steps = np.column_stack([np.ones(len(x)), law.standardized(its, cell)]).ravel()
            functions = csr_array((steps, columns, starts), shape=(len(x), 2 * size))
            coef = functions.T @ centred / np.concatenate([count, count])
            effects.append(coef[:size])
            rest -= functions @ coef
        return cls(np.ascontiguousarray(cells.T), constant, CellMoments.of(family, effects), rest)

    def around(self, rows: ExplainedRows) -> ControlMoments:
        sums = rows.sums(self.cells, self.rest, SEQUENCES) * (SEQUENCES / len(self.rest))
        v, alpha = (a[:, None, :, None] for a in (rows.features.variance, rows.features.inclusion))
        total, inside = sums[:, :, :1], sums[:, :, 1:]
        contrasts = np.divide(inside - alpha * total, v, out=np.zeros_like(inside), where=v > 0)
        sums = np.concatenate([total, contrasts], axis=2)
        mean, coef = self.effects.at(rows.cells)
        simulated = sums.mean(axis=1)
        return ControlMoments(
            self.constant + mean + simulated[:, 0], coef + simulated[:, 1:], error_of_mean(sums)
        )


# -- fits without some of the sequences ----------------------------------------------------------------------


# The part of a control that explained rows need
PoolControl: TypeAlias = FittedControl | SimulatedControl | EffectsOfCells


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A control, fitted without each part of a pool's rows in turn."""

    values: Floats  # g (n, k) at every row, by the fit without it
    # The fits, one for each equal part of the rows; or one, the mean of all fits
    fits: Sequence[PoolControl]
    # Variance of the simulated expectation, relative to that of the mean of g over the rows; 0 if exact
    simulated: float = 0.0

    def share(self, f: Floats) -> float:
        return share_left((f - self.values).var(axis=0) + self.simulated * self.values.var(axis=0), f)


# (law, rows of a pool, answers (n, k)) -> a control of the answers
CrossFitting: TypeAlias = Callable[[SimulatedLaw, PoolRows, Floats], CrossFit]


def in_folds(control: Control) -> CrossFitting:
    def fit(law: SimulatedLaw, rows: PoolRows, f: Floats) -> CrossFit:
        part, design = np.arange(len(f)) * _FOLDS // len(f), anywhere(law.family)
        fits = [control(design, rows.x[part != k], f[part != k]) for k in range(_FOLDS)]
        values = [fit.predict(rows.x[part == k]) for k, fit in enumerate(fits)]
        return CrossFit(np.concatenate(values), fits)

    return fit


def additive(law: SimulatedLaw, rows: PoolRows, f: Floats) -> CrossFit:
    if is_wide(law.family.marginals, len(f)):
        of_wide = wide_additive(law.family, rows.x, rows.cells, f, SEQUENCES)
        return CrossFit(of_wide[0], [of_wide[1]])
    values, mean = additive_out_of_sequence(anywhere(law.family), rows.x, rows.cells, f, SEQUENCES)
    return CrossFit(values, [mean])


def network(law: SimulatedLaw, rows: PoolRows, f: Floats) -> CrossFit:
    units = Units.of(law.family.marginals, rows.x, rows.cells, units_for(len(f)), law.seed)
    size = float(np.abs(f).max())
    # it is fitted in single precision, which has no squares of larger and smaller answers
    unit = 1.0 if size == 0.0 or _SMALLEST < size < _LARGEST else float(power_of_two(np.array(size)))
    values, fit = fit_network(units, rows.x, rows.cells, f / unit, SEQUENCES)
    values = values * unit
    simulated = law.rows(_simulated(law, rows, values, f))
    mean = SimulatedControl.of(law.family, *simulated, fit.mean(*simulated) * unit)
    # effects of cells are exact: the rest alone is simulated
    share = _variance(mean.rest) / max(_variance(values), np.finfo(np.float64).tiny)
    return CrossFit(values, [mean], simulated=_EVEN * share * len(f) / len(simulated.x))


def _simulated(law: SimulatedLaw, rows: PoolRows, values: Floats, f: Floats) -> int:
    """Number of rows that add a small share to the variance that a control with these values leaves."""
    rest = _variance(SimulatedControl.of(law.family, rows.x, rows.cells, values).rest)
    times = _EVEN * rest / max(_ADDED * _variance(f - values), np.finfo(np.float64).tiny)
    steps = np.ceil(np.log2(np.clip(times, _FEWEST_TIMES, _MOST_TIMES)))
    # Sobol' points are even by powers of two
    return min((1 << (len(f) - 1).bit_length()) << int(steps), MOST_SIMULATED)


def _variance(values: Floats) -> float:
    return float(values.var(axis=0).sum())


def anywhere(family: ProductFamily) -> ProductDesign:
    """A design of the family: under bin weights a control is fitted to laws that all instances share."""
    return replace(family.of_cells(np.zeros(len(family.marginals), dtype=np.int64)), family=None, cells=None)


# Controls that are made for the many rows of a pool
SHARED: Mapping[str, CrossFitting] = {"additive": additive, "network": network}
