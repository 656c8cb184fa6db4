"""What lime learns from training data: bins or categories, how frequent they are, deviations, and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.answers import Answers
from limes.compat.lime.discretize import (
    BaseDiscretizer,
    DecileDiscretizer,
    EntropyDiscretizer,
    QuartileDiscretizer,
    StatsDiscretizer,
)
from limes.exceptions import InputError
from limes.explainers.options import check_choice
from limes.explainers.table import Table

DISCRETIZERS: dict[str, type[BaseDiscretizer]] = {
    "quartile": QuartileDiscretizer,
    "decile": DecileDiscretizer,
    "entropy": EntropyDiscretizer,
}
_STATS = ("means", "stds", "mins", "maxs", "feature_values", "feature_frequencies")

__all__ = ["Request", "Training", "frequencies_of", "made_discretizer", "names_of"]


@dataclass(frozen=True, eq=False)
class Request:
    """One checked call of ``explain_instance``: row (d,), the model's answer (k,), labels, lime's options."""

    row: Floats
    said: Floats
    answers: Answers
    labels: list[int]
    features: int
    samples: int
    metric: Any
    regressor: Any


@dataclass(frozen=True, eq=False)
class Training:
    """A table, its columns' names, bins (None where numbers are not cut) and categories' names."""

    table: Table
    names: list[str]
    discretizer: BaseDiscretizer | None
    categories: Mapping[int, Sequence[Any]]

    @cached_property
    def scale(self) -> Floats:
        """Standard deviations (d,), 1 for categories and columns that do not vary."""
        scale = np.nanstd(self.table.matrix, axis=0)
        return np.where(self.table.numeric & (scale > 0), scale, 1.0)

    @cached_property
    def unit(self) -> Floats:
        """What a coefficient is a change by, (d,): a standard deviation where there are no bins, else 1."""
        return np.where(self.table.numeric & (self.discretizer is None), self.scale, 1.0)

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """What holds of each column at the row."""
        return tuple(self._condition(j, float(x)) for j, x in enumerate(row))

    def _condition(self, j: int, x: float) -> str:
        name = self.names[j]
        if np.isnan(x):
            return f"{name} is missing"
        if not self.table.numeric[j]:
            return f"{name}={self._category(j, x)}"
        if self.discretizer is None:
            return name
        return self.discretizer.names[j][int(self.discretizer.lambdas[j](x))]

    def _category(self, j: int, x: float) -> str:
        if j in self.categories:
            return str(self.categories[j][int(x)])
        value = self.table.columns[j].originals(np.array([x]))[0]
        return f"{value:g}" if isinstance(value, float) else str(value)


def names_of(table: Table, training_data: Any, given: Sequence[str] | None) -> list[str]:
    """Columns' names: as given, or the dataframe's, or their positions."""
    d = len(table.names)
    if given is None:
        framed = hasattr(training_data, "columns")
        return [str(name) for name in (table.names if framed else range(d))]
    if len(given) != d:
        raise InputError(f"feature_names has {len(given)} names, but training_data has {d} columns")
    return [str(name) for name in given]


def made_discretizer(
    kind: Any, table: Table, names: list[str], labels: Any, stats: Mapping[str, Any] | None, seed: Any
) -> BaseDiscretizer:
    """The user's own discretizer, or one by its name, or one that statistics make."""
    categorical = np.flatnonzero(~table.numeric).tolist()
    if stats:
        missing = [key for key in _STATS if key not in stats]
        if missing:
            raise InputError(f"training_data_stats lacks {', '.join(missing)}")
        return StatsDiscretizer(table.matrix, categorical, names, labels, seed, data_stats=stats)
    if isinstance(kind, BaseDiscretizer):
        return kind
    made = DISCRETIZERS[check_choice("discretizer", kind, tuple(DISCRETIZERS))]
    return made(table.matrix, categorical, names, labels, seed)


def frequencies_of(
    training: Training, columns: Sequence[int], stats: Mapping[str, Any] | None
) -> tuple[dict[int, list[float]], dict[int, Floats]]:
    """Bins or categories of columns and how frequent they are, from statistics if given, else the data."""
    values: dict[int, list[float]] = {}
    shares: dict[int, Floats] = {}
    matrix = training.table.matrix
    cells = matrix if training.discretizer is None else training.discretizer.discretize(matrix)
    for j in columns:
        if stats:
            values[j], counts = stats["feature_values"][j], np.asarray(stats["feature_frequencies"][j])
        else:
            distinct, counts = np.unique(cells[:, j], return_counts=True)
            values[j] = distinct.tolist()
        shares[j] = counts / counts.sum()
    return values, shares
