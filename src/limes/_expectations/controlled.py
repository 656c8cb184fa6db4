"""A pool of answers with a control, at each stage of its growth.

Control variates h are fitted once a stage (``crossfit.py``); the one that leaves the least variance on rows
that it has not seen is chosen. Where quick controls leave much variance in the largest pool, a slower control
is fitted to that pool, once, unless the pool is so small that more model calls would take less time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._expectations.controls import TooLargeError, too_large
from limes._expectations.crossfit import SHARED, ControlExpectation, CrossFit, in_folds, least_left
from limes._expectations.estimate import check_squares
from limes._expectations.explained import by_column
from limes._expectations.moments import are_complements
from limes._expectations.pool import SEQUENCES, Pool, PoolRows
from limes._expectations.sampling import Sampling
from limes._expectations.simulated import SimulatedLaw
from limes._expectations.weighted import PoolSample
from limes._threads import Locked
from limes.designs._product import ProductFamily

# Controls that "auto" tries: quick ones at every size of the pool; the thorough ones, which take about a
# second, only on the largest pool, if that has this many rows and some row still misses its tolerance
_QUICK = ("additive", "margin", "network")
_THOROUGH = (*_QUICK, "tree")
_FEWEST_THOROUGH = 8192
# A control that leaves this multiple of the best one's variance in the smallest pool is not fitted to others
_CLOSE = 1.5
# Thorough controls, which take a second, are fitted if quick ones leave more than this share of the variance
_WORTH_A_SECOND = 0.25


@dataclass(frozen=True)
class Stage:
    """A pool of one size, and the names of the controls that are tried on it.

    Attributes
    ----------
    before
        The preceding stage; this one runs only if that one left more than a quarter of the variance.
    """

    size: int
    controls: tuple[str, ...]
    before: Stage | None = None


def _stages(sizes: Sequence[int], available: Collection[str]) -> list[Stage]:
    """Stages in their order: growing pools with quick controls, at last thorough ones."""
    if len(available) == 1:
        return [Stage(size, tuple(available)) for size in sizes]
    quick, thorough = (tuple(n for n in names if n in available) for names in (_QUICK, _THOROUGH))
    growing = [Stage(size, quick) for size in sizes]
    largest = [stage for stage in growing[-1:] if stage.size >= _FEWEST_THOROUGH]
    return [*growing, *(Stage(stage.size, thorough, before=stage) for stage in largest)]


@dataclass(frozen=True, eq=False)
class ControlledPool:
    """Rows of a pool, sequence by sequence, with a control variate.

    Where answers are two probabilities, only the second is computed: the first is 1 less the second.

    Attributes
    ----------
    rows
        Cells, answers f and residuals f - h, where h was fitted to other sequences.
    shape
        Shape of one computed answer, () or (k,).
    complement
        Whether answers are two probabilities.
    control
        Name of the control.
    shares
        Shares of the answers' variance that each of the tried controls leaves.
    expectations
        Expectations of the control's fits, one for each equal part of the rows.
    """

    rows: PoolSample
    shape: tuple[int, ...]
    complement: bool
    control: str
    shares: Mapping[str, float]
    expectations: Sequence[ControlExpectation]

    def outputs(self, predictions: Floats) -> Floats:
        """Return the computed outputs of predictions (n, k)."""
        return predictions[:, 1:] if self.complement else predictions


class ControlledPools(Locked):
    """A pool with the control of each stage, which is fitted once."""

    def __init__(self, pool: Pool, family: ProductFamily, sampling: Sampling, sizes: Sequence[int]) -> None:
        self.stages = _stages(sizes, sampling.controls)
        self._pool = pool
        self._law = SimulatedLaw(family, sampling.seed)
        self._controls = sampling.controls
        self._pools: dict[Stage, ControlledPool] = {}
        self._fits: dict[tuple[int, str], CrossFit] = {}
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        # not pickled: controls fitted again to the same answers give the same result
        return {**super().__getstate__(), "_pools": {}, "_fits": {}}

    def at(self, stage: Stage) -> ControlledPool:
        """Return the pool, grown to the size of a stage, with the stage's control."""
        with self._lock:
            if stage not in self._pools:
                self._pools[stage] = self._controlled(stage)
            return self._pools[stage]

    def is_worthwhile(self, stage: Stage) -> bool:
        """Return whether a stage's controls suit its pool, by the variance that quick ones leave.

        On the largest pool either quick or thorough controls are tried, never both.
        """
        quick = self.stages[-1].before
        if quick is None or stage.size < quick.size:
            return True
        pool = self.at(quick)
        return (pool.shares[pool.control] > _WORTH_A_SECOND) == (stage != quick)

    def _controlled(self, stage: Stage) -> ControlledPool:
        """Choose the control of a stage by the variance that its fits leave on unseen rows."""
        rows = self._pool.rows(stage.size)
        f = rows.answers.reshape(len(rows.answers), -1)
        check_squares(f)
        shape, complement = rows.answers.shape[1:], are_complements(f)
        if complement:
            f, shape = np.ascontiguousarray(f[:, 1:]), (1,)
        fits, names = {}, self._candidates(stage)
        for name in names:
            with suppress(TooLargeError):
                fits[name] = self._fit(name, stage.size, rows, f)
        if len(fits) < len(names):
            if "none" not in self._controls:
                raise too_large(self._controls, rows.x.shape[1])
            fits = {"none": self._fit("none", stage.size, rows, f), **fits}
        shares = {name: fit.share(f) for name, fit in fits.items()}
        name = least_left(shares)
        fit = fits[name]
        sample = PoolSample(by_column(rows.cells), f, f - fit.values, SEQUENCES)
        return ControlledPool(sample, shape, complement, name, shares, fit.expectations)

    def _fit(self, name: str, size: int, rows: PoolRows, f: Floats) -> CrossFit:
        """Return a control that is fitted to the pool of one size, once."""
        if (size, name) not in self._fits:
            fitting = SHARED.get(name) or in_folds(self._controls[name])
            self._fits[size, name] = fitting(self._law, rows, f)
        return self._fits[size, name]

    def _candidates(self, stage: Stage) -> list[str]:
        """Controls of a stage, except those that left much more than the best on the smallest pool."""
        if stage == self.stages[0]:
            return list(stage.controls)
        shares = self._pools[self.stages[0]].shares  # every row begins at the first stage
        most = _CLOSE * min(shares.values())
        return [name for name in stage.controls if shares.get(name, most) <= most]
