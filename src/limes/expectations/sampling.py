"""How a black box may be asked, and what the sampler needs of a design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from limes._arrays import Floats, Ints
from limes.designs.features import Features
from limes.expectations.controls import CONTROLS, Control
from limes.models.calling.caller import Retry


@dataclass(frozen=True)
class Tolerance:
    """The largest standard error that a coefficient may have.

    ``size`` is in the output's units, or, if ``relative``, a share of the largest coefficient of its output.
    """

    size: float
    relative: bool = False

    def excess(self, coef: Floats, errors: Floats) -> float:
        """Largest error in units of what is allowed; at most 1 where all are met."""
        allowed = self.size * (
            np.abs(coef).max(axis=0, initial=0.0) if self.relative else np.ones(coef.shape[1])
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(errors > 0, errors / allowed, 0.0)
        return float(ratio.max(initial=0.0))


@dataclass(frozen=True)
class Sampling:
    """How a black box may be asked.

    Attributes
    ----------
    max_calls
        Rows that the model may be asked for, per explained row.
    tolerance
        Stop as soon as it is met; None spends the budget.
    seed
        Same seed and same row, same result.
    controls
        Candidates by name, in the order of their labour; the first is kept unless a later one pays.
    batch_size
        Rows handed to the model at once.
    retry
        See :data:`limes.models.calling.caller.Retry`.
    """

    max_calls: int
    tolerance: Tolerance | None = None
    seed: int = 0
    controls: Mapping[str, Control] = field(default_factory=lambda: CONTROLS)
    batch_size: int = 4096
    retry: Retry | None = None


class Rows(Protocol):
    """Several independent sequences of rows of w."""

    def draw(self, rows: int) -> tuple[Floats, Floats, Ints]:
        """Take the next rows of every sequence: x and h, sequence by sequence.

        The third value is the number of each row's group: rows of one group depend on each other, rows of
        different groups do not, but for what evens out a sequence as a whole.
        """
        ...


class SampledDesign(Features, Protocol):
    """What the sampler needs of a design."""

    @property
    def size(self) -> int:
        """Number of features d."""
        ...

    @property
    def units(self) -> Floats:
        """What coefficients are divided by in the end, (d,): 1 but for slopes."""
        ...

    def sampler(self, streams: Sequence[np.random.SeedSequence]) -> Rows:
        """Rows of w, all of the same weight, a sequence a stream."""
        ...

    def states(self, most: int) -> tuple[Floats, Floats, Floats] | None:
        """All m rows x there are, their probabilities under w, and W (d, m) with β = W f.

        None if they are more than ``most``.
        """
        ...
