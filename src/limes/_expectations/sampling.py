"""Options of sampling a black box, and the protocol of designs that can be sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from limes._arrays import Floats, Ints
from limes._bars import Progress
from limes._expectations.controls import CONTROLS, Control
from limes.designs._product import Features
from limes.models._calling.caller import Retry


@dataclass(frozen=True)
class Tolerance:
    """The largest standard error that a coefficient may have.

    ``size`` is in the output's units, or, if ``relative``, a share of the largest coefficient of its output.
    """

    size: float
    relative: bool = False

    def excess(self, coef: Floats, errors: Floats) -> Floats:
        """Largest error of coefficients (..., d, k) in units of the tolerance: at most 1 if all meet it."""
        largest = np.abs(coef).max(axis=-2, keepdims=True, initial=0.0) if self.relative else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(errors > 0, errors / (self.size * largest), 0.0)
        return np.asarray(ratio.max(axis=(-2, -1), initial=0.0))

    def __str__(self) -> str:
        return f"{100 * self.size:.3g}% of the largest coefficient" if self.relative else f"{self.size:.6g}"


# Accuracy that rows are judged by, and that a pool has to reach, where the user sets no tolerance. With it
# the squared error was a fifth of lime's or less in every case of benchmarks/black_boxes
DEFAULT_TOLERANCE = Tolerance(0.015, relative=True)


@dataclass(frozen=True)
class Sampling:
    """Options of sampling a black box.

    Attributes
    ----------
    max_calls
        Largest number of rows that the model is called with for one explained row alone.
    tolerance
        Sampling stops once it is met. With None a row alone uses its whole budget, and a pool has to reach
        1.5 % of a row's largest coefficient.
    seed
        Same seed and same row, same result.
    controls
        Candidates by name, cheapest first; a later one is used only where it leaves clearly less variance.
    batch_size
        Rows passed to the model at once.
    retry
        See :data:`limes.models._calling.caller.Retry`.
    max_shared
        Largest pool of answers that explained rows share; 0 for none.
    spread
        Largest difference of the model's answers to one input; 0 if it is a function.
    """

    max_calls: int
    tolerance: Tolerance | None = None
    seed: int = 0
    controls: Mapping[str, Control] = field(default_factory=lambda: CONTROLS)
    batch_size: int = 4096
    retry: Retry | None = None
    max_shared: int = 0
    spread: float = 0.0

    @property
    def is_function(self) -> bool:
        """Whether an input has one answer, so that it is asked once, and all inputs are enough."""
        return self.spread == 0.0

    def rows_a_call(self, sequence: int) -> int:
        """Return how many rows the model is called with, given the rows of one of the sample's sequences.

        What random answers have in common within a call must differ between sequences, which shows it.
        """
        return self.batch_size if self.is_function else min(self.batch_size, sequence)

    @property
    def accuracy(self) -> Tolerance:
        """The accuracy that rows are judged by: the tolerance, or the default one."""
        return DEFAULT_TOLERANCE if self.tolerance is None else self.tolerance


# Unit of progress bars for calls of the model
CALLS = "calls"


@runtime_checkable
class SharedAnswers(Protocol):
    """Answers of a model that are computed once and shared by all explained rows, whatever the law is."""

    @property
    def pool_calls(self) -> int:
        """Number of rows that have been predicted for all explained rows."""
        ...

    def fill(self, progress: Progress, *, workers: int = 1) -> None:
        """Compute all answers that are missing; finished ones are kept if the model fails."""
        ...


# Rows x and features h (n, d), and the number of each row's cluster (n,)
Draw: TypeAlias = tuple[Floats, Floats, Ints]


class Sampler(Protocol):
    """Several independent sequences of rows of w."""

    def draw(self, rows: int) -> Draw:
        """Draw the next ``rows`` rows of every sequence, sequence by sequence.

        Rows of one cluster depend on each other; rows of different clusters do not, apart from the evenness
        of a sequence as a whole.
        """
        ...


class SampledDesign(Features, Protocol):
    """A design that can be sampled."""

    @property
    def size(self) -> int:
        """Number of features d."""
        ...

    @property
    def units(self) -> Floats:
        """Units of the features, (d,), by which coefficients are divided in the end: 1 except for slopes."""
        ...

    def sampler(self, streams: Sequence[np.random.SeedSequence]) -> Sampler:
        """Return sequences of rows of w, all of the same weight, one from each stream."""
        ...

    def states(self, most: int) -> tuple[Floats, Floats, Floats] | None:
        """All states x (m, d), their probabilities under w (m,), and W (d, m) with β = W f.

        None if there are more than ``most``.
        """
        ...
