"""Sparse tables: only what a row holds is perturbed, each value by a normal of its column; zeros stay zeros.

A column's mean and deviation are of all training rows, its zeros among them, as lime has them. Features are
values in standard deviations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.compat.lime.lime_base import LimeBase
from limes.compat.lime.surrogates import Surrogates
from limes.compat.lime.tables.law import SAMPLINGS, Neighbourhood, fitted
from limes.compat.lime.tables.training import Request
from limes.compat.lime.tables.words import TableDomainMapper
from limes.exceptions import InputError

__all__ = ["SparseEngine", "SparseTraining", "is_sparse"]


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
    discretizer = None
    unlimited = ("sparse tables",)

    @classmethod
    def of(cls, training_data: Any, names: Sequence[str] | None, categorical: Any) -> SparseTraining:
        """Learn from a sparse table.

        Raises
        ------
        InputError
            A number of names that does not fit, categories, or values that are not finite.
        """
        rows = training_data.tocsr().astype(np.float64)
        known = [str(name) for name in (range(rows.shape[1]) if names is None else names)]
        if len(known) != rows.shape[1]:
            raise InputError(
                f"feature_names has {len(known)} names, but training_data has {rows.shape[1]} columns"
            )
        if categorical is not None and len(categorical):
            raise InputError("sparse tables hold numbers only: give training_data.toarray() for categories")
        if not np.isfinite(rows.data).all():
            raise InputError(
                "sparse training data must be finite: impute them, or give training_data.toarray()"
            )
        mean = np.asarray(rows.mean(axis=0)).ravel()
        variance = np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - mean**2
        return cls(known, mean, np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0))

    @property
    def categorical(self) -> list[int]:
        """None of the columns."""
        return []

    @property
    def values(self) -> dict[int, Any]:
        """Of no column."""
        return {}

    frequencies = values

    def encode(self, data_row: Any) -> Any:
        """One sparse row (1, d) of the user's kind.

        Raises
        ------
        InputError
            A dense row, several rows, or one without values.
        """
        if not is_sparse(data_row):
            raise InputError("training_data is sparse, data_row is not: give a row such as training_data[0]")
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
class SparseEngine:
    """Answers requests as lime does: draw rows, ask, fit."""

    training: SparseTraining
    base: LimeBase
    selection: str
    seed: int
    mode: str
    around: bool
    provenance: Mapping[str, Any]

    def __call__(self, request: Request) -> Surrogates:
        """Surrogates of a row, from ``request.samples`` rows."""
        row = request.row.copy()
        row.eliminate_zeros()
        columns = np.asarray(row.indices, dtype=np.int64)
        values = self._values(row, columns, request)
        features = values / self.training.scale[columns]
        near = Neighbourhood(features, values)
        names = tuple(self.training.names)
        return fitted(
            request,
            self.base,
            self.selection,
            features,
            request.answers(_rows(row, values)),
            near.distances(request.metric),
            columns=columns,
            mode=self.mode,
            feature_names=names,
            conditions=(names,),
            data=row.toarray(),
            provenance=self.provenance,
            units=(self.training.scale, np.zeros(len(names))),
        )

    def _values(self, row: Any, columns: Ints, request: Request) -> Floats:
        from scipy.special import ndtri

        own = np.asarray(row.data, dtype=np.float64)
        centre = own if self.around else self.training.mean[columns]
        rng = np.random.default_rng([self.seed, *columns.tolist(), *own.view(np.uint32).tolist()])
        levels = SAMPLINGS[request.sampling](request.samples - 1, len(columns), rng)
        return np.vstack([own, centre + self.training.scale[columns] * ndtri(levels)])


def _rows(row: Any, values: Floats) -> Any:
    """Sparse rows of the kind of ``row``, with these values (n, m) where it has values."""
    count, width = values.shape
    places = np.tile(row.indices, count), np.arange(0, count * width + 1, width)
    return type(row)((values.ravel(), *places), shape=(count, row.shape[1]))
