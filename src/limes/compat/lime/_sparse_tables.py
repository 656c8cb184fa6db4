"""Sparse tables: only what a row holds is perturbed, each value by a normal of its column; zeros stay zeros.

A column's mean and deviation are of all training rows, its zeros among them, as lime has them. Features are
values in standard deviations. There is no limit: engine "lime" answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.compat.lime._call import Call, Kind
from limes.compat.lime._sampling import SAMPLINGS
from limes.compat.lime._tables import TableDomainMapper, column_names, in_units, only_sampled
from limes.compat.lime.lime_base import LocalFit
from limes.exceptions import InputError


def is_sparse(table: Any) -> bool:
    """Whether a table is one of scipy's sparse ones."""
    return hasattr(table, "tocsr")


@dataclass(frozen=True, eq=False)
class SparseTraining:
    """Columns' names, means and standard deviations (d,), 1 where a column does not vary."""

    names: list[str]
    mean: Floats
    scale: Floats
    # as of a table whose columns are all numbers, without bins
    discretizer: None = None
    categorical: list[int] = field(default_factory=list)
    values: dict[int, Any] = field(default_factory=dict)
    frequencies: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def fit(cls, training_data: Any, names: Sequence[str] | None, categorical: Any) -> SparseTraining:
        """Learn from a sparse table of finite numbers, without categories."""
        rows = training_data.tocsr().astype(np.float64)
        checked = column_names(names, rows.shape[1])
        if categorical is not None and len(categorical):
            raise InputError("sparse tables hold numbers only: pass training_data.toarray() for categories")
        if not np.isfinite(rows.data).all():
            raise InputError(
                "sparse training data must be finite: impute them, or pass training_data.toarray()"
            )
        mean = np.asarray(rows.mean(axis=0)).ravel()
        variance = np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - mean**2
        return cls(checked, mean, np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0))

    @property
    def origin(self) -> Floats:
        """Means (d,), as of a table without bins."""
        return self.mean

    @property
    def unit(self) -> Floats:
        """Standard deviations (d,)."""
        return self.scale

    def encode(self, data_row: Any) -> Any:
        """The user's sparse row as (1, d); raise InputError if it is dense, several rows, or all zeros."""
        if not is_sparse(data_row):
            raise InputError("training_data is sparse, data_row is not: pass a row such as training_data[0]")
        row = data_row.reshape(1, -1).tocsr()
        if row.shape[1] != len(self.names) or (len(data_row.shape) > 1 and data_row.shape[0] != 1):
            raise InputError(
                f"data_row has shape {data_row.shape}, expected one row of {len(self.names)} columns"
            )
        if not row.nnz:
            raise InputError("data_row holds no value other than 0: there is nothing to change in it")
        return row

    def mapper(self, row: Any) -> TableDomainMapper:
        """Names for the result."""
        values = [f"{x:.2f}" for x in row.data]
        return TableDomainMapper(self.names, values, row, [], feature_indexes=row.indices)


@dataclass(frozen=True, eq=False)
class SparseKind(Kind):
    """Sparse tables; ``around`` is whether lime's normals are centred on the instance."""

    metric = "euclidean"
    bandwidth = None

    training: SparseTraining
    mode: str
    around: bool

    def with_seed(self, seed: int) -> SparseKind:  # noqa: ARG002 - there is no limit of sparse tables
        return self

    def only_sampled(self, call: Call) -> dict[str, bool]:
        return {**only_sampled(call, len(self.training.names), self.around), "sparse tables": True}

    def fingerprint(self, call: Call) -> Sequence[int]:
        columns, values = _held(call.instance)
        return (*columns.tolist(), *values.view(np.uint32).tolist())

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        from scipy.special import ndtri

        columns, held = _held(call.instance)
        scale = self.training.scale[columns]
        levels = SAMPLINGS[call.sampling](call.num_samples - 1, len(columns), rng)
        centre = held if self.around else self.training.mean[columns]
        values = np.vstack([held, centre + scale * ndtri(levels)])
        count, width = values.shape
        places = np.tile(columns, count), np.arange(0, count * width + 1, width)
        rows = type(call.instance)((values.ravel(), *places), shape=(count, call.instance.shape[1]))
        return values / scale, rows

    def ask(self, call: Call, rows: Any) -> Floats:
        return np.asarray(call.predict(rows))

    def describe(self, call: Call, provenance: Mapping[str, Any]) -> dict[str, Any]:
        names = tuple(self.training.names)
        return {
            "feature_names": names,
            "conditions": (names,),
            "data": call.instance.toarray(),
            "provenance": provenance,
        }

    def place_features(self, call: Call, fits: dict[int, LocalFit]) -> dict[int, LocalFit]:
        columns, _ = _held(call.instance)
        return {k: replace(fit, features=columns[fit.features]) for k, fit in fits.items()}

    def in_input_units(self, fit: LocalFit) -> LocalFit:
        return in_units(fit, self.training.scale, np.zeros(len(self.training.names)))


def _held(row: Any) -> tuple[Ints, Floats]:
    """Columns and values (m,) of a sparse row, without stored zeros."""
    kept = row.copy()
    kept.eliminate_zeros()
    return np.asarray(kept.indices, dtype=np.int64), np.asarray(kept.data, dtype=np.float64)
