r"""Rows around a row: which features are kept, and what the others become.

    removal    each feature is kept with a probability, the others take the values of one background row: what
               SHAP's values are about;
    bins       rows of LIME's own weighted law, where a feature is kept as long as it stays in the row's bin.

An explanation Σ φ_j z_j is judged by how well it tells f on such rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from limes._arrays import Floats
from limes.designs.bins import bin_edges
from limes.designs.columns import binned, categorical
from limes.designs.product import ProductFamily
from limes.designs.weights import BinWeights
from limes.evaluate.task import Task
from limes.exceptions import InputError


class Neighbourhood(Protocol):
    """Draws rows x (m, d) and features kept z (m, d) around a row of a task."""

    def draw(self, task: Task, i: int, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Around row i."""
        ...


@dataclass(frozen=True)
class Removal:
    """Each feature is kept with probability ``kept``; those that are not come from one background row."""

    kept: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.kept < 1:
            raise InputError(f"kept={self.kept!r} must be a probability between 0 and 1")

    def draw(self, task: Task, i: int, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Around row i."""
        z = rng.random((count, task.rows.shape[1])) < self.kept
        others = task.table.matrix[rng.integers(len(task.table.matrix), size=count)]
        return np.where(z, task.rows[i], others), z.astype(np.float64)


class Bins:
    """LIME's own neighbourhood: quartile bins, truncated normals, weights exp(-#changed/(2ν²)).

    Parameters
    ----------
    task
        Whose background bins are learnt from.
    bandwidth
        ν; 0.75 √d if not given.
    """

    def __init__(self, task: Task, bandwidth: float | None = None) -> None:
        table = task.table
        edges = bin_edges(table.matrix, table.numeric, bins="quartile", names=table.names)
        laws = tuple(
            categorical(x) if cut is None else binned(x, cut)
            for x, cut in zip(table.matrix.T, edges, strict=True)
        )
        width = 0.75 * np.sqrt(len(laws)) if bandwidth is None else bandwidth
        self._family = ProductFamily(laws, BinWeights(width))

    def draw(self, task: Task, i: int, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Around row i."""
        return self._family.at(task.rows[i]).draw(rng.random((count, task.rows.shape[1])))
