"""Cells in words: "bmi <= -0.54", "workclass = Private", "age is missing"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from limes._arrays import Floats
from limes.designs.marginals import BinCells, Marginal
from limes.explainers.columns import Column

_DIGITS = 3


def cell_texts(column: Column, marginal: Marginal) -> tuple[str, ...]:
    """One text a cell of the column's marginal."""
    cells = marginal.cells
    if isinstance(cells, BinCells):
        return (*_bin_texts(column.name, cells.edges), *[f"{column.name} is missing"] * cells.missing)
    levels = column.originals(cells.values)
    return tuple(
        f"{column.name} is missing" if level is None else f"{column.name} = {level}" for level in levels
    )


def _bin_texts(name: str, edges: Floats) -> list[str]:
    if edges.size == 2:
        return [f"{name} = {number_texts(edges[:1])[0]}" if edges[0] == edges[1] else name]
    inner = number_texts(edges[1:-1])
    between = [f"{low} < {name} <= {high}" for low, high in pairwise(inner)]
    return [f"{name} <= {inner[0]}", *between, f"{name} > {inner[-1]}"]


def number_texts(numbers: Floats | Sequence[float]) -> list[str]:
    """As few digits as tell the numbers apart, three at least."""
    distinct = np.unique(numbers).size
    texts: list[str] = []
    for digits in range(_DIGITS, 18):
        texts = [_plain(float(x), digits) for x in numbers]
        if len(set(texts)) == distinct:
            break
    return texts


def _plain(x: float, digits: int) -> str:
    """Without an exponent where a person would write none."""
    text = f"{x:.{digits}g}"
    if "e" in text and 1e-5 < abs(x) < 1e9:
        return np.format_float_positional(float(text), trim="-")
    return text
