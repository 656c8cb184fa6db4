"""A background table as numbers, and tables of its kind from numbers, by plain definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

Array = Any  # numpy arrays and tables


@dataclass(frozen=True)
class Background:
    """The table X as a matrix (n, d) of numbers, places among levels, and NaN.

    Attributes
    ----------
    matrix
        Numbers; of columns of texts the place among their levels.
    categorical
        (d,) whether a column's values are categories.
    levels
        Of each column the texts in their order; () where values are numbers.
    like
        The table itself.
    """

    matrix: Array
    categorical: tuple[bool, ...]
    levels: tuple[tuple[Any, ...], ...]
    like: Any

    def table(self, matrix: Array) -> Any:
        """Rows (m, d) as a table of the same kind and dtypes."""
        if isinstance(self.like, np.ndarray):
            return np.asarray(matrix, dtype=float)
        result = {}
        for j, name in enumerate(self.like.columns):
            result[name] = self._cells(j, matrix[:, j])
        return pd.DataFrame(result)

    def row(self, values: Array) -> list[Any]:
        """One row as a list of the user's own values, None for missing texts."""
        cells = []
        for j, value in enumerate(np.asarray(values, dtype=float)):
            if self.levels[j]:
                cells.append(None if np.isnan(value) else self.levels[j][int(value)])
            else:
                cells.append(float(value))
        return cells

    def _cells(self, j: int, values: Array) -> Any:
        dtype = self.like.dtypes.iloc[j]
        if not self.levels[j]:
            whole = dtype.kind in "iu" and bool((values == np.floor(values)).all())
            return values.astype(dtype if whole or dtype.kind == "f" else float)
        texts = np.array([*self.levels[j], None], dtype=object)
        cells = texts[np.where(np.isnan(values), len(self.levels[j]), values).astype(int)]
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.Categorical(cells, dtype=dtype)
        return pd.Series(cells, dtype=dtype)


def background_of(table: Any, categorical: tuple[int, ...] = ()) -> Background:
    """Take a table apart; columns of texts and categories are categorical, and those that are named."""
    if isinstance(table, np.ndarray):
        d = table.shape[1]
        return Background(table.astype(float), tuple(j in categorical for j in range(d)), ((),) * d, table)
    columns, kinds, levels = [], [], []
    for j, name in enumerate(table.columns):
        of_column = _levels(table[name])
        kinds.append(bool(of_column) or j in categorical)
        levels.append(of_column)
        columns.append(_numbers(table[name], of_column))
    return Background(np.column_stack(columns), tuple(kinds), tuple(levels), table)


def _levels(series: Any) -> tuple[Any, ...]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        present = set(series.dropna())
        return tuple(level for level in series.cat.categories if level in present)
    if series.dtype.kind in "iuf":
        return ()
    return tuple(sorted(set(series.dropna())))


def _numbers(series: Any, levels: tuple[Any, ...]) -> Array:
    if not levels:
        return series.to_numpy(dtype=float)
    place = {level: float(i) for i, level in enumerate(levels)}
    return np.array([place.get(value, np.nan) for value in series.astype(object)])
