"""The laws of a table's columns, learnt from it: bins of numbers, categories."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from limes._arrays import Floats
from limes.designs.bins import bin_edges
from limes.designs.columns import binned, categorical, unbinned
from limes.designs.marginals import Marginal
from limes.exceptions import InputError
from limes.explainers.columns import Column
from limes.explainers.table import Table


def learnt_laws(table: Table, bins: Any, target: ArrayLike | None, law: str) -> tuple[Marginal, ...]:
    """One law a column; ``bins`` None for numbers without bins.

    Raises
    ------
    InputError
        If a column cannot be learnt: says which.
    """
    edges: list[Floats | None] = [None] * table.matrix.shape[1]
    if bins is not None:
        edges = bin_edges(table.matrix, table.numeric, bins=bins, target=target, names=table.names)
    columns = zip(table.columns, table.matrix.T, edges, strict=True)
    return tuple(_learnt(column, x, cut, law) for column, x, cut in columns)


def _learnt(column: Column, x: Floats, edges: Floats | None, law: str) -> Marginal:
    try:
        if column.categorical:
            return categorical(x)
        return unbinned(x, law=law) if edges is None else binned(x, edges, law=law)
    except InputError as error:
        raise InputError(f"column {column.name!r} {error}") from None
