"""Control variates of a pool: fitted to some of its sequences, and subtracted from the others.

So h does not depend on the rows that it is subtracted from, and the estimate stays unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from limes._arrays import Floats, power_of_two
from limes._expectations.controls import Control
from limes._expectations.controls.control import ControlMoments, share_left
from limes._expectations.controls.network import Units, fit_network, units_for
from limes._expectations.controls.tables import additive_out_of_sequence
from limes._expectations.explained import ExplainedRows
from limes._expectations.pool import SEQUENCES, PoolRows
from limes._expectations.simulated import MOST_SIMULATED, CellParts, SimulatedControl, SimulatedLaw
from limes.designs._product import ProductDesign, ProductFamily

# Parts of a pool, whole sequences each: an ordinary control is fitted to the other parts
_FOLDS = 2
# A more laborious control is preferred if its variance is below this multiple of the cheaper one's
_WORTH = 0.95
# Assumed variance of a mean over simulated rows, in units of that over as many independent rows
_EVEN = 0.5
# Share of a control's residual variance that simulated rows may add; fewest and most of them for each
# predicted row, which costs about twenty times as much
_ADDED = 0.1
# Sizes of answers between which their squares are numbers of single precision
_SMALLEST, _LARGEST = 1e-18, 1e18
_FEWEST_TIMES, _MOST_TIMES = 1, 8


class _OfOne(Protocol):
    def moments(self, design: ProductDesign) -> ControlMoments:
        """E_w h and its coefficients β under the design."""
        ...


@runtime_checkable
class _OfMany(Protocol):
    def many(self, rows: ExplainedRows) -> ControlMoments:
        """E_w h and β around many rows, whose axis comes first."""
        ...


# The part of a fitted control that a row needs
ControlExpectation: TypeAlias = _OfOne | _OfMany


def moments_around(control: ControlExpectation, rows: ExplainedRows) -> ControlMoments:
    """Moments of a control around n rows: E_w h (n, k), β (n, d, k), errors (n, 1 + d, k)."""
    if isinstance(control, _OfMany):
        return control.many(rows)
    each = [control.moments(design) for design in rows.designs()]
    return ControlMoments(*(np.stack(arrays) for arrays in zip(*each, strict=True)))


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A control, fitted without each part of a pool's rows in turn.

    Attributes
    ----------
    values
        h (n, k) at every row, by the fit without it.
    expectations
        Expectations of the fits, one for each equal part of the rows; or one, of the mean of all fits.
    simulated
        Variance of the simulated expectation, relative to that of the mean of h over the rows; 0 if exact.
    """

    values: Floats
    expectations: Sequence[ControlExpectation]
    simulated: float = 0.0

    def share(self, f: Floats) -> float:
        """Share of the variance of answers f (n, k) that is left, averaged over outputs that vary."""
        return share_left((f - self.values).var(axis=0) + self.simulated * self.values.var(axis=0), f)


# (law, rows of a pool, answers (n, k)) -> a control of the answers
CrossFitting: TypeAlias = Callable[[SimulatedLaw, PoolRows, Floats], CrossFit]


def in_folds(control: Control) -> CrossFitting:
    """Return a cross-fitting that fits a control without each fold in turn."""

    def fit(law: SimulatedLaw, rows: PoolRows, f: Floats) -> CrossFit:
        part, design = np.arange(len(f)) * _FOLDS // len(f), _anywhere(law.family)
        fits = [control(design, rows.x[part != k], f[part != k]) for k in range(_FOLDS)]
        values = [fit.predict(rows.x[part == k]) for k, fit in enumerate(fits)]
        return CrossFit(np.concatenate(values), fits)

    return fit


def additive(law: SimulatedLaw, rows: PoolRows, f: Floats) -> CrossFit:
    """Fit an additive model without each sequence in turn."""
    values, mean = additive_out_of_sequence(_anywhere(law.family), rows.x, rows.cells, f, SEQUENCES)
    return CrossFit(values, [mean])


def network(law: SimulatedLaw, rows: PoolRows, f: Floats) -> CrossFit:
    """Fit a network without each sequence in turn, and simulate its expectation."""
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
    rest = _variance(CellParts.of(law.family, rows.x, rows.cells, values).rest)
    times = _EVEN * rest / max(_ADDED * _variance(f - values), np.finfo(np.float64).tiny)
    steps = np.ceil(np.log2(np.clip(times, _FEWEST_TIMES, _MOST_TIMES)))
    return min(len(f) << int(steps), MOST_SIMULATED)


def _variance(values: Floats) -> float:
    return float(values.var(axis=0).sum())


def _anywhere(family: ProductFamily) -> ProductDesign:
    """A design of the family: under bin weights a control is fitted to laws that all instances share."""
    return replace(family.of_cells(np.zeros(len(family.marginals), dtype=np.int64)), family=None, cells=None)


# Controls that are made for the many rows of a pool
SHARED: Mapping[str, CrossFitting] = {"additive": additive, "network": network}


def least_left(shares: Mapping[str, float]) -> str:
    """Name of the control that leaves the least variance, unless a cheaper one is nearly as good."""
    name, *others = shares
    for candidate in others:
        if shares[candidate] < _WORTH * shares[name]:
            name = candidate
    return name
