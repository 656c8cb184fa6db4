"""The laws of a table's columns, learnt from it: bins of numbers, categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats
from limes.designs.bins import bin_edges
from limes.designs.columns import BinStatistics, binned, categorical, unbinned
from limes.designs.marginals import Marginal
from limes.exceptions import InputError
from limes.explainers.columns import Column
from limes.explainers.table import Table

# The tails of a normal law with values up to here end before the largest float64.
_LARGEST = 1e307


def learnt_laws(table: Table, bins: Any, target: ArrayLike | None, law: str) -> tuple[Marginal, ...]:
    """One law a column; ``bins`` None for numbers without bins.

    Raises
    ------
    InputError
        If a column cannot be learnt: says which.
    """
    _check_sizes(table)
    stated = _stated(bins)
    edges: list[Floats | None] = [None] * table.matrix.shape[1]
    if bins is not None:
        cut = [None if j in stated else given for j, given in enumerate(bins)] if stated else bins
        learnt = [bool(number) and j not in stated for j, number in enumerate(table.numeric)]
        edges = bin_edges(table.matrix, learnt, bins=cut, target=target, names=table.names)
    columns = zip(table.columns, table.matrix.T, [stated.get(j, e) for j, e in enumerate(edges)], strict=True)
    return tuple(_law(column, x, known, law) for column, x, known in columns)


def _check_sizes(table: Table) -> None:
    """Refuse columns whose values are so large that their differences are no finite numbers."""
    for column, x in zip(table.columns, table.matrix.T, strict=True):
        largest = np.nanmax(np.abs(x)) if not column.categorical else 0.0
        if largest > _LARGEST:
            raise InputError(
                f"column {column.name!r} holds {largest:.3g}: sums of values beyond {_LARGEST:g} are not "
                "finite; divide the column by a constant"
            )


def _stated(bins: Any) -> dict[int, BinStatistics]:
    """Statistics that are given, by position."""
    several = bins if isinstance(bins, list | tuple) else []
    return {j: given for j, given in enumerate(several) if isinstance(given, BinStatistics)}


def _law(column: Column, x: Floats, known: BinStatistics | Floats | None, law: str) -> Marginal:
    try:
        if isinstance(known, BinStatistics):
            return _of_statistics(column, x, known)
        if column.categorical:
            return categorical(x)
        return unbinned(x, law=law) if known is None else binned(x, known, law=law)
    except InputError as error:
        raise InputError(f"column {column.name!r} {error}") from None


def _of_statistics(column: Column, x: Floats, known: BinStatistics) -> Marginal:
    if column.categorical:
        raise InputError("is categorical, and has no bins to give statistics of: put None there")
    if np.isnan(x).any():
        raise InputError("has missing values, which statistics of bins do not tell of: give edges")
    return known.marginal()
