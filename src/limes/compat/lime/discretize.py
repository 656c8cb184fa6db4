"""lime's discretizers: inner edges q cut a column into bins (q[b-1], q[b]]; inside one, a truncated normal.

Subclasses define where to cut (:meth:`BaseDiscretizer.bins`); names, and means, deviations and bounds of bins
follow. A bin without width has one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice
from limes.compat.lime.exceptions import warn_or_raise
from limes.designs import BinStatistics
from limes.designs._bins import entropy_edges, quantile_edges
from limes.exceptions import InputError

# lime adds it to every deviation, so that none is 0
_LEAST_STD = 1e-11

__all__ = [
    "BaseDiscretizer",
    "DecileDiscretizer",
    "EntropyDiscretizer",
    "QuartileDiscretizer",
    "StatsDiscretizer",
    "make_discretizer",
]


def _named(name: str, edges: Floats) -> list[str]:
    between = [f"{low:.2f} < {name} <= {high:.2f}" for low, high in pairwise(edges)]
    return [f"{name} <= {edges[0]:.2f}", *between, f"{name} > {edges[-1]:.2f}"]


class BaseDiscretizer:
    """Bins of the columns that are not categorical.

    Parameters
    ----------
    data : (n, d)
    categorical_features : positions
        Columns that are not cut.
    feature_names : d names
    labels : (n,)
        Classes or numbers that entropy bins separate.
    random_state : int, RandomState or None
        Of :meth:`undiscretize`.
    data_stats : mapping
        "means", "stds", "mins" and "maxs" of each column's bins, instead of those of ``data``.
    """

    def __init__(
        self,
        data: Any,
        categorical_features: Sequence[int],
        feature_names: Sequence[str],
        labels: Any = None,
        random_state: Any = None,
        data_stats: Mapping[str, Any] | None = None,
    ) -> None:
        from sklearn.utils import check_random_state

        categorical = set(categorical_features)
        self.to_discretize = [j for j in range(data.shape[1]) if j not in categorical]
        self.data_stats = data_stats
        self.random_state = check_random_state(random_state)
        edges = list(self.bins(data, labels))
        if len(edges) != len(self.to_discretize):
            warn_or_raise(
                f"{type(self).__name__}.bins has edges of {len(edges)} columns, of {len(self.to_discretize)}",
                "return those of each column of to_discretize",
                "they are taken in order, and columns without edges are not cut, as in lime",
            )
        self._edges: dict[int, Floats] = {
            j: np.unique(np.asarray(q, dtype=np.float64))
            for j, q in zip(self.to_discretize, edges, strict=False)
            if q is not None
        }
        self.names = {j: _named(str(feature_names[j]), q) for j, q in self._edges.items()}
        self.lambdas: dict[int, Callable[[Any], Any]] = {
            j: partial(np.searchsorted, q) for j, q in self._edges.items()
        }
        statistics: Mapping[str, Any] = data_stats or {"means": {}, "stds": {}, "mins": {}, "maxs": {}}
        self.means, self.stds = statistics["means"], statistics["stds"]
        self.mins, self.maxs = statistics["mins"], statistics["maxs"]
        if not data_stats:
            for j, q in self._edges.items():
                self._learn(j, q, np.asarray(data[:, j], dtype=np.float64))

    def _learn(self, j: int, edges: Floats, x: Floats) -> None:
        cells = np.searchsorted(edges, x)
        inside = [x[cells == b] for b in range(len(edges) + 1)]
        self.means[j] = [float(v.mean()) if v.size else 0.0 for v in inside]
        self.stds[j] = [(float(v.std()) if v.size else 0.0) + _LEAST_STD for v in inside]
        self.mins[j] = [float(x.min()), *edges.tolist()]
        self.maxs[j] = [*edges.tolist(), float(x.max())]

    def statistics(self, feature: int, cells: Sequence[float], frequencies: Floats) -> BinStatistics | None:
        """A column's bins as limes takes them, ``cells`` having these frequencies.

        None where bins do not meet at their edges, or a subclass draws in its own way, or there are no edges.
        """
        overridden = self.undraws or type(self).drawn is not BaseDiscretizer.drawn
        if overridden or feature not in self._edges:
            return None
        edges = self._edges[feature]
        lower, upper, means, stds = self._statistics(feature)
        if not (np.array_equal(lower[1:], edges) and np.array_equal(upper[:-1], edges)):
            return None
        mass = np.zeros(len(edges) + 1)
        mass[np.asarray(cells, dtype=int)] = frequencies
        ends = min(lower[0], edges[0]), max(upper[-1], edges[-1])
        narrow = np.where(stds > _LEAST_STD, stds, 0.0)
        return BinStatistics([ends[0], *edges, ends[1]], means, narrow, mass)

    def _statistics(self, feature: int) -> Iterator[Floats]:
        for statistic in (self.mins, self.maxs, self.means, self.stds):
            yield np.array(statistic[feature], dtype=np.float64)

    @property
    def undraws(self) -> bool:
        """Whether a subclass draws values by lime's methods, and not by `drawn`."""
        draws = ("undiscretize", "get_undiscretize_values")
        return any(getattr(type(self), name) is not getattr(BaseDiscretizer, name) for name in draws)

    def has_bins(self, feature: int) -> bool:
        """Whether a column has bins to draw from; statistics may have them where it has no edges."""
        return feature in self.lambdas or (feature in self.to_discretize and feature in self.means)

    def seeded(self, rng: np.random.Generator) -> BaseDiscretizer:
        """The same, with another random state: what it draws depends on ``rng`` alone."""
        twin = copy(self)
        twin.random_state = np.random.RandomState(rng.integers(2**32))
        return twin

    def bins(self, data: Any, labels: Any) -> Sequence[Any]:
        """Inner edges of each column of ``to_discretize``; None for one that is not to be cut."""
        raise NotImplementedError(
            "a discretizer must have a method bins(data, labels): the edges of each column"
        )

    def discretize(self, data: Any) -> Any:
        """Replace values by the number of their bin, in a row (d,) or rows (n, d)."""
        cells = data.copy()
        for j, cell in self.lambdas.items():
            cells[..., j] = cell(data[..., j])
        return cells

    def undiscretize(self, data: Any) -> Any:
        """Draw a value from each bin, of a row (d,) or rows (n, d) of bins."""
        values = data.copy()
        for j in filter(self.has_bins, range(data.shape[-1])):
            drawn = self.get_undiscretize_values(j, np.atleast_1d(data[..., j]).astype(int))
            values[..., j] = drawn if data.ndim > 1 else drawn[0]
        return values

    def get_undiscretize_values(self, feature: int, values: Ints) -> Floats:
        """Draw a value from each of a column's bins (n,)."""
        return self.drawn(feature, values, self.random_state.uniform(size=len(values)))

    def drawn(self, feature: int, cells: Ints, levels: Floats) -> Floats:
        """Values at the levels (n,) in (0, 1) of the laws of bins (n,); a subclass may have other laws."""
        from scipy.special import ndtr, ndtri

        low, high, mean, std = self._statistics(feature)
        below, above = ndtr((low - mean) / std), ndtr((high - mean) / std)
        inside = ndtri(below[cells] + levels * (above - below)[cells])
        values = np.where((low < high)[cells], mean[cells] + std[cells] * inside, low[cells])
        # a level of 0 or 1 has no finite quantile, and rounding may leave the bin
        return np.clip(values, low[cells], high[cells])


class QuartileDiscretizer(BaseDiscretizer):
    """Four bins of equal frequency; equal edges are merged."""

    def bins(self, data: Any, labels: Any) -> Sequence[Any]:  # noqa: ARG002 - lime's signature
        return [quantile_edges(np.asarray(data[:, j], dtype=np.float64), 4) for j in self.to_discretize]


class DecileDiscretizer(BaseDiscretizer):
    """Ten bins of equal frequency; equal edges are merged."""

    def bins(self, data: Any, labels: Any) -> Sequence[Any]:  # noqa: ARG002 - lime's signature
        return [quantile_edges(np.asarray(data[:, j], dtype=np.float64), 10) for j in self.to_discretize]


class EntropyDiscretizer(BaseDiscretizer):
    """At most eight bins, where a small tree that knows the labels would split."""

    def bins(self, data: Any, labels: Any) -> Sequence[Any]:
        if labels is None:
            raise InputError("entropy bins need the training data's labels: pass labels (training_labels)")
        return [entropy_edges(np.asarray(data[:, j], dtype=np.float64), labels) for j in self.to_discretize]


class StatsDiscretizer(BaseDiscretizer):
    """The user's bins and statistics: ``data_stats["bins"]`` has each column's inner edges."""

    def bins(self, data: Any, labels: Any) -> Sequence[Any]:  # noqa: ARG002 - lime's signature
        edges = (self.data_stats or {}).get("bins") or {}
        missing = [j for j in self.to_discretize if j not in edges]
        if missing:
            warn_or_raise(
                f"training_data_stats['bins'] has no edges for column {missing[0]}",
                "pass a list of them",
                "its feature is 1 at the row alone, as in lime",
            )
        return [edges.get(j) for j in self.to_discretize]


_BY_NAME: dict[str, type[BaseDiscretizer]] = {
    "quartile": QuartileDiscretizer,
    "decile": DecileDiscretizer,
    "entropy": EntropyDiscretizer,
}


def make_discretizer(kind: Any, stats: Mapping[str, Any] | None, *arguments: Any) -> BaseDiscretizer:
    """Return the user's discretizer, or make one by its name, or of statistics, with other arguments."""
    if stats:
        return StatsDiscretizer(*(*arguments, stats))
    if isinstance(kind, BaseDiscretizer):
        return kind
    if hasattr(kind, "undiscretize"):
        raise InputError(
            f"discretizer is a {type(kind).__module__}.{type(kind).__name__}: pass one of "
            "limes.compat.lime.discretize"
        )
    return _BY_NAME[check_choice("discretizer", kind, tuple(_BY_NAME))](*arguments)
