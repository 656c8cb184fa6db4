"""What lime learns from training data: bins or categories, how frequent they are, deviations, and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np

from limes._arrays import Floats, column_stds
from limes._checks import check_choice
from limes.compat.lime.answers import Answers
from limes.compat.lime.discretize import (
    BaseDiscretizer,
    DecileDiscretizer,
    EntropyDiscretizer,
    QuartileDiscretizer,
    StatsDiscretizer,
)
from limes.compat.lime.tables.words import TableDomainMapper
from limes.designs import BinStatistics
from limes.exceptions import InputError
from limes.explainers.tables.table import Table

DISCRETIZERS: dict[str, type[BaseDiscretizer]] = {
    "quartile": QuartileDiscretizer,
    "decile": DecileDiscretizer,
    "entropy": EntropyDiscretizer,
}
_STATS = ("means", "stds", "mins", "maxs", "feature_values", "feature_frequencies")
# Ways to draw that limes knows nothing of; ``drawn`` is the one to change
_DRAWS = ("undiscretize", "get_undiscretize_values")

__all__ = ["Request", "Training", "check_stats", "made_discretizer", "names_of"]


@dataclass(frozen=True, eq=False)
class Request:
    """One checked call of ``explain_instance``.

    Attributes
    ----------
    row : (d,), or (1, d) of a sparse table
    answers
    labels
        Of the model's answer (k,) at the row.
    features, samples, metric, regressor, sampling
        lime's options.
    """

    row: Any
    answers: Answers
    labels: Callable[[Floats], list[int]]
    features: int
    samples: int
    metric: Any
    regressor: Any
    sampling: str


@dataclass(frozen=True, eq=False)
class Training:
    """A table, its columns' names, bins (None where numbers are not cut) and categories' names.

    Attributes
    ----------
    cut
        What was asked for to cut numbers: a discretizer, its name, or None.
    stats : mapping
        Statistics that are given, where they are not to be learnt.
    """

    table: Table
    names: list[str]
    discretizer: BaseDiscretizer | None
    categories: Mapping[int, Sequence[Any]]
    cut: Any
    stats: Mapping[str, Any] | None

    @classmethod
    def of(
        cls,
        training_data: Any,
        *,
        names: Sequence[str] | None,
        categorical: Sequence[Any] | None,
        categories: Mapping[int, Sequence[Any]],
        cut: Any,
        labels: Any,
        stats: Mapping[str, Any] | None,
        random_state: Any,
    ) -> Training:
        """Learn from a table, or from its statistics.

        Raises
        ------
        InputError
            Data or an option that is not usable.
        """
        chosen = [] if categorical is None else list(categorical)
        if isinstance(cut, BaseDiscretizer) and not stats:
            # what it was made for is what it cuts
            chosen = [j for j in range(np.shape(training_data)[1]) if j not in cut.to_discretize]
        table = Table.fit(training_data, categorical=chosen or None)
        known = names_of(table, training_data, names)
        made = None if cut is None else made_discretizer(cut, table, known, labels, stats, random_state)
        return cls(table, known, made, categories, cut, stats)

    @cached_property
    def bins(self) -> str | list[BinStatistics | None] | None:
        """What limes is told of the bins: their name, or their statistics."""
        if self.discretizer is None or (isinstance(self.cut, str) and not self.stats):
            return None if self.discretizer is None else str(self.cut)
        told = self.discretizer.statistics
        return [
            told(j, self.values[j], self.frequencies[j]) if number else None
            for j, number in enumerate(self.table.numeric)
        ]

    @property
    def unlimited(self) -> list[str]:
        """What has no limit here, in words."""
        lost = isinstance(self.bins, list) and any(
            bins is None for bins, number in zip(self.bins, self.table.numeric, strict=True) if number
        )
        states = bool(self.stats) and not self.table.numeric.all()
        told = {
            "bins that do not meet, or draws of your own": lost,
            "training_data_stats of categories": states,
        }
        return [name for name, given in told.items() if given]

    @cached_property
    def mean(self) -> Floats:
        """Means (d,)."""
        return np.asarray(np.nanmean(self.table.matrix, axis=0))

    @cached_property
    def scale(self) -> Floats:
        """Standard deviations (d,), 1 for categories and columns that do not vary."""
        scale = column_stds(self.table.matrix)
        return np.where(self.table.numeric & (scale > 0), scale, 1.0)

    @cached_property
    def unit(self) -> Floats:
        """What a coefficient is a change by, (d,): a standard deviation where there are no bins, else 1."""
        return np.where(self.table.numeric & (self.discretizer is None), self.scale, 1.0)

    @cached_property
    def origin(self) -> Floats:
        """Where a feature is 0, (d,): at the mean of a number where there are no bins."""
        return np.where(self.table.numeric & (self.discretizer is None), self.mean, 0.0)

    @cached_property
    def categorical(self) -> list[int]:
        """Positions of the columns with bins or categories, all of them where numbers are cut."""
        d = len(self.names)
        return list(range(d)) if self.discretizer else np.flatnonzero(~self.table.numeric).tolist()

    @cached_property
    def values(self) -> dict[int, list[float]]:
        """Bins or categories that occur in each of these columns."""
        if self.stats:
            return {j: self.stats["feature_values"][j] for j in self.categorical}
        return {j: np.unique(self._cells[:, j]).tolist() for j in self.categorical}

    @cached_property
    def frequencies(self) -> dict[int, Floats]:
        """How frequent they are, adding up to 1."""
        if self.stats:
            counts = {j: np.asarray(self.stats["feature_frequencies"][j]) for j in self.categorical}
        else:
            counts = {j: np.unique(self._cells[:, j], return_counts=True)[1] for j in self.categorical}
        return {j: found / found.sum() for j, found in counts.items()}

    @cached_property
    def _cells(self) -> Floats:
        matrix = self.table.matrix
        return matrix if self.discretizer is None else np.asarray(self.discretizer.discretize(matrix))

    def encode(self, data_row: Any) -> Floats:
        """One row of the user's, (d,).

        Raises
        ------
        InputError
            Several rows, or one that does not fit the table.
        """
        rows = data_row[None] if isinstance(data_row, np.ndarray) and data_row.ndim == 1 else data_row
        found = self.table.encode(rows)
        if len(found) != 1:
            raise InputError(
                f"data_row has {len(found)} rows: explain_instance explains one, explain_instances many"
            )
        return np.asarray(found[0])

    def mapper(self, row: Floats) -> TableDomainMapper:
        """Names for the result."""
        pairs = zip(row.tolist(), self.table.numeric.tolist(), strict=True)
        values = [f"{x:.2f}" if number else "True" for x, number in pairs]
        scaled = np.ones(len(row)) if self.discretizer else row / self.scale
        return TableDomainMapper(self.names, values, scaled, self.categorical, self.conditions(row))

    def conditions(self, row: Floats) -> tuple[str, ...]:
        """What holds of each column at the row."""
        return tuple(self._condition(j, x) for j, x in enumerate(row.tolist()))

    def _condition(self, j: int, x: float) -> str:
        name = self.names[j]
        if isnan(x):
            return f"{name} is missing"
        if not self.table.numeric[j]:
            return f"{name}={self._category(j, x)}"
        if self.discretizer is None:
            return name
        return self.discretizer.names[j][int(self.discretizer.lambdas[j](x))]

    def _category(self, j: int, x: float) -> str:
        value = self.table.columns[j].originals(np.array([x]))[0]
        if isinstance(value, str) or j not in self.categories:
            return f"{value:g}" if isinstance(value, float) else str(value)
        try:
            return str(self.categories[j][int(value)])
        except (LookupError, ValueError):
            raise InputError(
                f"categorical_names[{j}] has no name for {value!r}, a category of {self.names[j]}"
            ) from None


def names_of(table: Table, training_data: Any, given: Sequence[str] | None) -> list[str]:
    """Columns' names: as given, or the dataframe's, or their positions."""
    d = len(table.names)
    if given is None:
        framed = hasattr(training_data, "columns")
        return [str(name) for name in (table.names if framed else range(d))]
    if len(given) != d:
        raise InputError(f"feature_names has {len(given)} names, but training_data has {d} columns")
    return [str(name) for name in given]


def check_stats(stats: Mapping[str, Any]) -> None:
    """Refuse statistics of training data that lack something.

    Raises
    ------
    InputError
        Says what.
    """
    missing = [key for key in _STATS if key not in stats]
    if missing:
        raise InputError(f"training_data_stats lacks {', '.join(missing)}")


def made_discretizer(
    kind: Any, table: Table, names: list[str], labels: Any, stats: Mapping[str, Any] | None, seed: Any
) -> BaseDiscretizer:
    """The user's own discretizer, or one by its name, or one that statistics make.

    Raises
    ------
    InputError
        An unknown name, statistics that lack something, or draws that limes would not use.
    """
    categorical = np.flatnonzero(~table.numeric).tolist()
    if stats:
        return StatsDiscretizer(table.matrix, categorical, names, labels, seed, data_stats=stats)
    if isinstance(kind, BaseDiscretizer):
        changed = [name for name in _DRAWS if getattr(type(kind), name) is not getattr(BaseDiscretizer, name)]
        if changed:
            raise InputError(
                f"{type(kind).__name__}.{changed[0]} is not used: override drawn(feature, cells, levels)"
            )
        return kind
    if hasattr(kind, "undiscretize"):
        raise InputError(
            f"discretizer is a {type(kind).__module__}.{type(kind).__name__}: give one of "
            "limes.compat.lime.discretize"
        )
    made = DISCRETIZERS[check_choice("discretizer", kind, tuple(DISCRETIZERS))]
    return made(table.matrix, categorical, names, labels, seed)
