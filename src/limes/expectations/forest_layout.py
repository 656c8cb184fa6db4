"""A forest as the compiled passes want it: its splits depth first, and what is known below every edge."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes._arrays import Bools, Floats, Ints, Places
from limes._threads import WORKERS
from limes.functions import Function, Interval, Members
from limes.models.forms.trees import Forest

# A single row is shared among threads where a forest has so many splits that this pays.
_WORTH_SHARING = 25_000
_Ends: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Layout:
    """A forest laid out for ``forest_kernels``.

    Attributes
    ----------
    columns
        Number of columns d.
    constant
        (k,) sum of the trees that are one leaf.
    functions
        Of each column the indicators that its edges are differences of; None where no split reads it.
    ranks
        (d,) number of the last threshold's indicator of each column.
    edges
        (column, same, lower, upper, missing, above, is_left), each (N,): see ``forest_kernels``.
    splits
        (column, parent, side, leaves): of S splits their column, the split above, the side of it they lie
        on, (S,) each; and the values of their two children, (S, 2, k), 0 where a child is no leaf.
    depth, has_leaf
        (S,) of the splits; whether any child is a leaf.
    runs
        First splits of trees and the end of the last one, in runs of about equal size, one a thread.
    """

    columns: int
    constant: Floats
    functions: tuple[Function | None, ...]
    ranks: Ints
    edges: tuple[Ints, Ints, Ints, Ints, Bools, Ints, Bools]
    splits: tuple[Places, Places, Places, Floats]
    depth: Places
    has_leaf: Bools
    runs: tuple[_Ends, ...]

    @property
    def outputs(self) -> int:
        """Number of outputs k."""
        return self.constant.size

    @classmethod
    def of(cls, form: Forest) -> Layout:
        """Lay a forest out."""
        node, parent, depth, column, is_left, same = kernels().preorder(
            form.feature, form.left, form.right, form.roots
        )
        upper_node = np.where(parent >= 0, node[parent], 0)
        functions, ranks, rank = _thresholds(form)
        lower, upper, missing = kernels().intervals(
            column, same, is_left, rank[upper_node], form.missing_left[upper_node], ranks
        )
        for j in np.unique(form.feature[form.set_of >= 0]):
            of_column = np.flatnonzero(column == j)
            functions[j], which = _category_sets(form, int(j), node[of_column])
            lower[of_column], upper[of_column], missing[of_column] = 0, 1 + which, False
            ranks[j] = 1 + which.max()
        is_leaf = form.feature[node] < 0
        number = np.cumsum(~is_leaf) - 1
        above = np.where(parent >= 0, number[parent], 0)
        value = form.value[node].reshape(node.size, -1)
        split, alone = np.flatnonzero(~is_leaf), is_leaf & (parent < 0)
        leaves = np.zeros((split.size, 2, value.shape[1]))
        leaf = np.flatnonzero(is_leaf & ~alone)
        leaves[above[leaf], 1 - is_left[leaf]] = value[leaf]
        has_leaf = np.zeros(split.size, dtype=np.bool_)
        has_leaf[above[leaf]] = True
        return cls(
            columns=form.size,
            constant=value[alone].sum(axis=0),
            functions=tuple(functions),
            ranks=ranks,
            edges=(column, same, lower, upper, missing, above, is_left),
            splits=(
                form.feature[node[split]].astype(np.uint32),
                above[split].astype(np.uint32),
                (1 - is_left[split]).astype(np.uint32),
                leaves,
            ),
            depth=depth[split].astype(np.uint32),
            has_leaf=has_leaf,
            runs=_runs(np.flatnonzero(parent[split] < 0), split.size),
        )


def kernels() -> ModuleType:
    """Compiled code is loaded, and numba with it, when a forest is explained."""
    from limes.expectations import forest_kernels

    return forest_kernels


def _runs(roots: Ints, size: int) -> tuple[_Ends, ...]:
    ends = np.append(roots, size)
    count = min(WORKERS, roots.size) if size > _WORTH_SHARING else 1
    wanted = np.linspace(0, size, count + 1)[1:-1]
    cuts = np.unique([0, *np.searchsorted(ends, wanted), roots.size])
    return tuple(ends[first : last + 1].astype(np.uint64) for first, last in pairwise(cuts))


def one_run(runs: tuple[_Ends, ...]) -> tuple[_Ends, ...]:
    """All trees in one run, so that sums over them do not depend on the number of cores."""
    return (np.unique(np.concatenate(runs)),) if runs else ()


def _thresholds(form: Forest) -> tuple[list[Function | None], Ints, Ints]:
    """Of each column 0, 1[x <= t] for its thresholds t ascending, 1[x not missing], 1[x missing].

    Returns these functions, the rank of the last threshold plus one, and every inner node's rank among them.
    """
    functions: list[Function | None] = []
    ranks, rank = np.zeros(form.size, dtype=np.int64), np.zeros(form.feature.size, dtype=np.int64)
    for j in range(form.size):
        nodes = np.flatnonzero(form.feature == j)
        if not nodes.size:
            functions.append(None)
            continue
        cuts, place = np.unique(form.threshold[nodes], return_inverse=True)
        rank[nodes], ranks[j] = place + 1, cuts.size + 1
        upper = np.concatenate([[-np.inf], cuts, [np.inf, -np.inf]])
        only_missing = np.arange(upper.size) == upper.size - 1
        functions.append(Interval(np.full(upper.size, -np.inf), upper, only_missing))
    return functions, ranks, rank


def _category_sets(form: Forest, column: int, nodes: Ints) -> tuple[Function, Ints]:
    """The distinct sets known below the given nodes, between two empty ones, and which one each knows."""
    allowed, missing = form.reaching(column)
    known = np.column_stack([allowed[nodes], missing[nodes]])
    distinct, which = np.unique(known, axis=0, return_inverse=True)
    rows = np.pad(distinct, ((1, 1), (0, 0)))
    return Members(rows[:, :-2], rows[:, -1], other=rows[:, -2]), which.reshape(-1)
