"""What a search by branch and bound is about, and its nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from limes._arrays import Floats, Ints
from limes.surrogates.on_support import summing_to
from limes.surrogates.sparse import Sample

# Objectives are compared up to this share of the mean of f²: sums of a few thousand terms are no more exact
_ROUNDING = 1e-12
# Adding a multiple of the squared constraint changes nothing where it holds, and keeps the matrix positive
# where literals depend on each other; a small one leaves them nearly uncorrelated
_LIFT = 1e-3


@dataclass(frozen=True, eq=False)
class Task:
    """F(u) = u'Hu - 2b·u + c over Σu = y, and when to stop."""

    gram: Floats
    moments: Floats
    square: float
    target: float
    tolerance: float

    @classmethod
    def of(cls, problem: Sample, tolerance: float) -> Task:
        lift = _LIFT * float(np.diag(problem.gram).mean()) or 1.0
        return cls(
            gram=problem.gram + lift,
            moments=problem.moments + lift * problem.target,
            square=problem.square + lift * problem.target**2,
            target=problem.target,
            tolerance=tolerance,
        )

    def enough(self, best: float) -> float:
        """What a bound has to reach for its node to be of no interest."""
        return best * (1.0 - self.tolerance) - _ROUNDING * self.square

    def value(self, support: Ints) -> tuple[float, float]:
        """Objective on a support, and its multiplier η."""
        part = self.gram[np.ix_(support, support)]
        u, eta = summing_to(self.target, part, self.moments[support])
        return float(u @ part @ u - 2.0 * (self.moments[support] @ u)) + self.square, eta


@dataclass(frozen=True, eq=False)
class Node:
    """Literals swept in, those still free (with their Schur complement), and a bound of all beneath."""

    chosen: tuple[int, ...]
    slots: int
    free: Ints
    gram: Floats
    moments: Floats
    ones: Floats
    swept: Floats
    eta: float
    bound: float
    floor: float = 0.0
    shares: Floats | None = None

    def picked(self, places: Ints) -> Node:
        """The node with these of its free literals alone, in this order."""
        return replace(
            self,
            free=self.free[places],
            gram=kernels().picked(self.gram, places),
            moments=self.moments[places],
            ones=self.ones[places],
            shares=None if self.shares is None else self.shares[places],
        )

    def child(self, place: int, bound: float) -> Node:
        """Take one free literal in, and leave those before it out."""
        gram, moments, ones, swept = kernels().swept_in(self.gram, self.moments, self.ones, self.swept, place)
        return Node(
            chosen=(*self.chosen, int(self.free[place])),
            slots=self.slots - 1,
            free=self.free[place + 1 :],
            gram=gram,
            moments=moments,
            ones=ones,
            swept=swept,
            eta=self.eta,
            bound=bound,
        )

    def bound_from(self, place: int) -> float:
        """Bound of all children from this place on; shares descend."""
        assert self.shares is not None  # noqa: S101 - only tightened nodes have children
        return max(self.bound, self.floor - float(self.shares[place : place + self.slots].sum()))


def kernels() -> ModuleType:
    """Compiled code is loaded, and numba with it, when a search begins."""
    from limes.surrogates import pairwise

    return pairwise
