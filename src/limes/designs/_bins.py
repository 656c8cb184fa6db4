"""Edges at which a numeric column is cut into bins.

Quartiles, deciles, the thresholds of a small tree, edges from the user: all are the same thing, a
sorted list of inner edges ``q``. Bins are ``(q[b-1], q[b]]``, so that the bin of ``x`` is
``np.searchsorted(q, x, side="left")``. Missing values are ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Objects
from limes.exceptions import InputError

BinSpec: TypeAlias = str | int | Sequence[ArrayLike | None]

_DEFAULT = "quartile"
_TREE_DEPTH = 3  # at most eight bins, as lime's EntropyDiscretizer
_BLOCK = 1 << 21  # numbers whose quantiles are taken at once
_CLASSES = 20  # a target of floats with more distinct values than this is a quantity, not a class


def quantile_edges(x: Floats, count: int) -> Floats:
    """Inner edges of ``count`` bins of equal frequency as lime has them: percentiles, ties merged."""
    return np.unique(np.percentile(x[~np.isnan(x)], _ranks(count))).astype(np.float64)


def _ranks(count: int) -> list[float]:
    return [100 * i / count for i in range(1, count)]


def entropy_edges(x: Floats, target: ArrayLike, seed: int = 0) -> Floats:
    """Inner edges where a decision tree of depth 3 on this column alone would split, as lime has them.

    The median where the tree finds no split. The target (n,) has classes, or floats with more than 20
    distinct values (then a regression tree); the seed breaks ties.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    answers = np.asarray(target)
    values, codes = np.unique(answers, return_inverse=True)
    if answers.dtype.kind == "f" and values.size > _CLASSES:
        tree, response = DecisionTreeRegressor(max_depth=_TREE_DEPTH, random_state=seed), answers
    else:
        tree = DecisionTreeClassifier(criterion="entropy", max_depth=_TREE_DEPTH, random_state=seed)
        response = codes
    present = ~np.isnan(x)
    tree.fit(x[present, None], response[present])
    splits = tree.tree_.threshold[tree.tree_.children_left >= 0]
    return np.unique(splits if splits.size else np.median(x[present])).astype(np.float64)


# Bins of equal frequency that a strategy makes; None where it asks the target
STRATEGIES: dict[str, int | None] = {"quartile": 4, "decile": 10, "entropy": None}


def bin_edges(
    matrix: Floats,
    numeric: Bools | Sequence[bool],
    *,
    bins: BinSpec,
    target: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> list[Floats | None]:
    """Edges of every numeric column of a matrix (n, d), both ends included; None for the others.

    ``bins`` is a strategy ("entropy" needs the target (n,)), a number of bins of equal frequency, or a list
    of d arrays of edges as for `numpy.histogram`, None for quartiles. The ends are the user's, or the
    smallest and the largest background value. If the smallest value is itself the first inner edge, the first
    bin has width zero; a constant column ``c`` has the edges ``[c, c]``. Edges that do not increase, do not
    cover the background or leave a bin empty are refused.
    """
    cut = [bool(flag) for flag in numeric]
    labels = [repr(name) for name in names] if names else [str(j) for j in range(len(cut))]
    answers = None if target is None else _answers(target, len(matrix))
    user_edges = _user_edges(bins, cut, labels)
    count = _count(_DEFAULT if user_edges is not None else bins)
    if count is None and answers is None and any(cut):
        raise InputError('bins="entropy" needs the answers to split by: pass target=')
    values = np.asarray(matrix, dtype=np.float64)
    ends = np.array([np.fmin.reduce(values), np.fmax.reduce(values)])
    chosen = {j: each for j, each in enumerate(user_edges or ()) if each is not None}
    quantiles = _quantiles(values, [j for j in range(len(cut)) if cut[j] and j not in chosen], count)

    def edges(j: int) -> Floats | None:
        if not cut[j]:
            return None
        if np.isnan(ends[0, j]):
            raise InputError(f"column {labels[j]} holds no values to learn bins from: drop it")
        x = values[:, j]
        if j in chosen:
            return _checked(chosen[j], x[~np.isnan(x)], labels[j])
        if count is None:
            assert answers is not None  # noqa: S101 - as above
            return _closed(entropy_edges(x, answers), *ends[:, j])
        return _closed(quantiles[j] if j in quantiles else quantile_edges(x, count), *ends[:, j])

    return [edges(j) for j in range(len(cut))]


def _quantiles(values: Floats, columns: Sequence[int], count: int | None) -> dict[int, Floats]:
    """Inner edges of ``count`` bins of those columns that have distinct ones, and no missing value."""
    if count is None:
        return {}
    edges, step = dict[int, Floats](), 1 + _BLOCK // len(values)
    for start in range(0, len(columns), step):
        its = columns[start : start + step]
        each = np.percentile(values[:, its], _ranks(count), axis=0).T
        distinct = (each[:, 1:] > each[:, :-1]).all(axis=1) & ~np.isnan(each[:, 0])
        edges |= {j: inner for j, inner, usual in zip(its, each, distinct, strict=True) if usual}
    return edges


def _answers(target: ArrayLike, rows: int) -> Objects:
    answers: Objects = np.asarray(target)
    if answers.shape != (rows,):
        raise InputError(
            f"target has shape {answers.shape}, but the background has {rows} rows: "
            "pass one answer for each row"
        )
    missing = [i for i, value in enumerate(answers.tolist()) if value is None or value != value]
    if missing:
        raise InputError(f"target is missing in row {missing[0]}: drop such rows from it and the background")
    return answers


def _count(bins: Any) -> int | None:
    """The number of bins of equal frequency; None where the target decides."""
    if isinstance(bins, str):
        if bins not in STRATEGIES:
            near = difflib.get_close_matches(bins, STRATEGIES, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(
                f"bins={bins!r} is unknown: {hint}choose one of "
                f"{', '.join(map(repr, STRATEGIES))}, 'auto', a number of bins, a list of edges, or None for "
                "slopes"
            )
        return STRATEGIES[bins]
    if isinstance(bins, bool | np.bool_) or bins < 2:
        raise InputError(f"bins={bins!r}: a number of bins must be a whole number, 2 or more")
    return int(bins)


def _user_edges(bins: Any, cut: list[bool], labels: list[str]) -> list[Any] | None:
    """Return the edges in ``bins``, one entry a column; None where bins names a strategy."""
    if isinstance(bins, str | int | np.integer | np.bool_):
        return None
    if not isinstance(bins, list | tuple | np.ndarray):
        raise InputError(
            f"bins={bins!r} is neither a strategy nor edges: pass one of {', '.join(map(repr, STRATEGIES))}, "
            "a whole number of bins, or a list with the edges of each column"
        )
    if len(bins) != len(cut):
        raise InputError(
            f"bins lists edges for {len(bins)} columns, but the background has {len(cut)}: "
            "pass one array of edges, or None, for each column"
        )
    for edges, is_cut, label in zip(bins, cut, labels, strict=True):
        if edges is not None and not is_cut:
            raise InputError(f"bins has edges for column {label}, which is categorical: put None there")
    return list(bins)


def _checked(values: ArrayLike, x: Floats, label: str) -> Floats:
    """Return the user's edges as an array; raise if they do not cut x into bins with values."""
    where = f"the edges of column {label}"
    try:
        edges = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} are not numbers: {values!r}") from error
    if edges.ndim != 1 or edges.size < 2:
        raise InputError(f"{where} must be a list of two or more, both ends included: {values!r}")
    steps = edges[1:] > edges[:-1]  # False for NaN as well
    if not steps.all():
        at = int(np.argmin(steps))
        raise InputError(
            f"{where} must increase strictly, but {edges[at]:g} is followed by {edges[at + 1]:g}: "
            "sort them and drop repeats"
        )
    if x.min() < edges[0] or x.max() > edges[-1]:
        raise InputError(
            f"{where} run from {edges[0]:g} to {edges[-1]:g}, but its background values run from "
            f"{x.min():g} to {x.max():g}: widen the ends (-inf and inf are allowed)"
        )
    counts = _counts(edges[1:-1], x)
    if not counts.all():
        at = int(np.argmin(counts))
        raise InputError(
            f"no background value of column {label} lies in the bin {'[' if at == 0 else '('}"
            f"{edges[at]:g}, {edges[at + 1]:g}]: merge it with a bin beside it by dropping "
            "one of the two edges"
        )
    return edges


def _counts(inner: Floats, x: Floats) -> Any:
    return np.bincount(np.searchsorted(inner, x, side="left"), minlength=inner.size + 1)


def _closed(inner: Floats, least: float, largest: float) -> Floats:
    """Add both ends. A bin between them may be empty, as lime's are where values have a gap."""
    # where the last edge is the largest value nothing lies to its right
    kept = inner[:-1] if largest <= inner[-1] else inner
    return np.concatenate(([least], kept, [largest]))
