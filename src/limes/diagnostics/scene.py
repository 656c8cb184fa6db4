"""What diagnostics may ask of an explainer: its designs at any bandwidth, and its model.

A scene is about n rows and one output of each. Tables (``table_scene.py``) and things whose features are
removed (``subset_scene.py``) differ in how a neighbourhood is drawn; where the numbers come from, the read
model or a sample, is the source's business (``source.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.diagnostics.facts import Facts
from limes.diagnostics.sample import Estimate, Sample, kernel
from limes.diagnostics.source import SPREAD, Source, source_of
from limes.pipeline import Expectation


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene(ABC):
    """Rows (n, d) of one explainer.

    Attributes
    ----------
    output
        (n,) position of each row's output among the model's.
    predict
        (m, d) -> (m,) or (m, k), the model's answers.
    bandwidth, ridge
        Of the explainer.
    budget
        Rows of each neighbourhood that the model is asked about; None for what the source needs.
    """

    facts: tuple[Facts, ...]
    rows: Floats
    output: Ints
    predict: Callable[[Floats], Floats]
    expectation: Expectation
    bandwidth: float
    ridge: float
    budget: int | None
    seed: int

    @abstractmethod
    def designs(self, bandwidth: float) -> Sequence[Any]:
        """The design at each row, for a bandwidth."""

    @abstractmethod
    def draw(self, design: Any, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Rows x and features h of a design, (count, d) both."""

    @abstractmethod
    def squared(self, i: int, x: Floats) -> Floats:
        """D of rows x from row i, (m,): π = exp(-D / (2ν²))."""

    @abstractmethod
    def states(self, i: int) -> Sample | None:
        """All rows that there are around row i, asked; None where they are too many."""

    @abstractmethod
    def kept(self, i: int) -> float:
        """Share of the row's conditions that hold in a weighted row, on average; NaN where there are none."""

    @property
    @abstractmethod
    def penalty(self) -> float | Floats:
        """The ridge penalty of ``lime``'s own fit, a number or one a feature."""

    @cached_property
    def here(self) -> Sequence[Any]:
        """The design at each row, at the explainer's bandwidth."""
        return self.designs(self.bandwidth)

    @cached_property
    def source(self) -> Source:
        """Where numbers come from: the read model, or a sample."""
        return source_of(self.expectation)

    @cached_property
    def limits(self) -> Sequence[Estimate]:
        """Coefficients (d,) of each row without a penalty, whatever the explainer's is."""
        if self.ridge > 0:
            found = self.source.path(self, np.array([self.bandwidth]))
            return [Estimate(e.value[0], e.error[0]) for e in found]
        return [Estimate(facts.values, facts.errors) for facts in self.facts]

    def paths(self) -> Sequence[Any]:
        """The bandwidth path of each row."""
        from limes.diagnostics.bandwidth import paths  # which is about scenes

        return paths(self)

    @property
    def calls(self) -> int:
        """Rows of a sample."""
        return self.source.calls if self.budget is None else self.budget

    def __len__(self) -> int:
        return len(self.rows)

    def answers(self, i: int, x: Floats) -> Floats:
        """The model's answers (m,) at rows x, for the output of row i."""
        return np.asarray(self.predict(x).reshape(len(x), -1)[:, self.output[i]])

    def rng(self, i: int, purpose: int) -> np.random.Generator:
        """A stream that depends on seed, row and purpose only."""
        values = np.nan_to_num(self.rows[i]) + 0.0  # one zero
        return np.random.default_rng([self.seed, purpose, *values.view(np.uint64).tolist()])

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """A sample around each row."""
        return tuple(self.states(i) or self._sample(i, self.source.spread) for i in range(len(self)))

    @cached_property
    def wide_samples(self) -> tuple[Sample, ...]:
        """A sample around each row that serves other bandwidths as well."""
        if self.source.spread == SPREAD:
            return self.samples
        return tuple(self.states(i) or self._sample(i, SPREAD) for i in range(len(self)))

    def _sample(self, i: int, spread: Sequence[float]) -> Sample:
        bandwidths = [self.bandwidth * factor for factor in spread]
        designs = [self.designs(bandwidth)[i] for bandwidth in bandwidths]
        rng = self.rng(i, 0)
        drawn = [self.draw(design, -(-self.calls // len(designs)), rng) for design in designs]
        x, h = (np.concatenate(part) for part in zip(*drawn, strict=True))
        squared = self.squared(i, x)
        each = [
            kernel(squared, bandwidth) - design.log_weight
            for bandwidth, design in zip(bandwidths, designs, strict=True)
        ]
        log_mixture = np.logaddexp.reduce(each) - np.log(len(each))
        return Sample(x, h, self.answers(i, x), squared, log_mixture)
