"""Forms over columns and groups of columns, whose values are codes of tuples (``limes/_tuples.py``).

A product of functions of the columns of a group is one function of its tuples, a sum of such functions is
another, and the tests of a tree along a path leave a box of tuples. So every form keeps its structure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints, check_rows, distinct_flags
from limes._functions import (
    BoxesOfTuples,
    Function,
    FunctionsOfMembers,
    Interval,
    Members,
    MemberSets,
    ProductOfMembers,
)
from limes._tuples import ColumnGroups
from limes.exceptions import InputError
from limes.models.forms._base import Form, Reducible, Sum, SumOfProducts
from limes.models.forms._trees import Forest

# Entries of the sets of a forest's tests of tuples, at most
_LARGEST_SETS = 1 << 28
# Positions of nodes -> distinct sets of values that reach them, between two empty ones, and each node's set
SetsAt: TypeAlias = Callable[[Ints], tuple[Function, Ints]]


def grouped_terms(terms: Sum | SumOfProducts, grouping: ColumnGroups) -> Sum | SumOfProducts:
    """The same sum, or sum of products, of functions of columns and groups."""
    functions, loadings = list[Function | None](), list[Floats]()
    for its, tuples in zip(grouping.members, grouping.tuples, strict=True):
        of_members = tuple(terms.functions[j] for j in its)
        read = [j for j in its if terms.functions[j] is not None]
        if isinstance(terms, Sum):
            loadings.append(np.concatenate([terms.loadings[j] for j in read or its[:1]]))
        if tuples is None or not read:
            functions.append(of_members[0])
        elif isinstance(terms, Sum):
            functions.append(FunctionsOfMembers(tuples, of_members))
        else:
            functions.append(ProductOfMembers(tuples, of_members))
    if isinstance(terms, Sum):
        return Sum(tuple(functions), tuple(loadings), terms.intercept)
    return SumOfProducts(tuple(functions), terms.coef, terms.intercept)


@dataclass(frozen=True, eq=False)
class ForestOfTuples(Reducible):
    """A forest over columns (d,), as one over columns and groups of them."""

    forest: Forest
    grouping: ColumnGroups

    def __post_init__(self) -> None:
        self._freeze(intercept=self.forest.intercept, size=self.grouping.size)

    @cached_property
    def feature(self) -> Ints:
        """The column or group that each node tests, (N,); -1 at leaves."""
        tested = self.forest.feature
        return np.where(tested >= 0, self.grouping.place[tested], -1)

    @property
    def roots(self) -> Ints:
        return self.forest.roots

    def sets_of(self, by_category: Mapping[int, SetsAt]) -> dict[int, SetsAt]:
        """The sets that reach nodes, of each group that is tested, and of columns by category."""
        place, tuples = self.grouping.place, self.grouping.tuples
        alone = {int(place[c]): sets for c, sets in by_category.items() if tuples[place[c]] is None}
        tested = np.unique(self.feature[self.feature >= 0]).tolist()
        return {**alone, **{g: partial(self.reaching, g) for g in tested if tuples[g] is not None}}

    def predict(self, x: Floats) -> Floats:
        return self.forest.predict(self.grouping.decode(check_rows(x, self.size)))

    def reduce(self) -> SumOfProducts:
        terms = grouped_terms(self.forest.reduce(), self.grouping)
        assert isinstance(terms, SumOfProducts)  # noqa: S101 - as those of a forest are
        return terms

    def map_outputs(self, change: Callable[[Floats], Any]) -> ForestOfTuples:
        return replace(self, forest=self.forest.map_outputs(change))

    def by_sets(self, new: Mapping[int, Floats]) -> Forest:
        """The same over columns of categories, which are codes; an InputError if its sets are too large.

        ``new`` are codes of further tuples of groups, which follow those of the background.
        """
        forest, place, tuples = self.forest, self.grouping.place, self.grouping.tuples
        of_group = np.array([its is not None for its in tuples])
        nodes = np.flatnonzero((self.feature >= 0) & of_group[self.feature])
        first, which = self.distinct_tests(nodes)
        sizes = {g: its.size + len(new.get(g, ())) for g, its in enumerate(tuples) if its is not None}
        width = max([forest.sets.shape[1], *sizes.values()])
        if first.size * width > _LARGEST_SETS:
            raise InputError(f"{first.size:,} tests of groups of {width:,} combinations are too many to list")
        sets = np.zeros((first.size, width), dtype=np.bool_)
        for row, node in zip(sets, nodes[first].tolist(), strict=True):
            column = int(forest.feature[node])
            group = int(place[column])
            its = tuples[group]
            assert its is not None  # noqa: S101 - the node tests a group
            codes = np.concatenate([np.arange(float(its.size)), new.get(group, np.zeros(0))])
            x = its.decode(codes)[:, int(np.searchsorted(self.grouping.members[group], column))]
            row[: x.size] = np.where(np.isnan(x), forest.missing_left[node], _goes_left(forest, node, x))
        set_of = forest.set_of.copy()
        set_of[nodes] = len(forest.sets) + which
        of_columns = np.pad(forest.sets, ((0, 0), (0, width - forest.sets.shape[1])))
        every = np.concatenate([of_columns, sets])
        return replace(forest, feature=self.feature, size=self.size, set_of=set_of, sets=every)

    def distinct_tests(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Positions of nodes whose tests differ, and the place among these of each node's test."""
        forest = self.forest
        tests = forest.feature, forest.set_of, forest.threshold, forest.missing_left
        keys = np.stack([each[nodes].astype(np.float64) for each in tests], axis=1)
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    def reaching(self, group: int, nodes: Ints) -> tuple[BoxesOfTuples, Ints]:
        """Distinct sets of a ``group``'s tuples that reach nodes, between two empty ones; each node's set."""
        forest, tuples = self.forest, self.grouping.tuples[group]
        assert tuples is not None  # noqa: S101 - a column that stands alone has no tuples
        keys, makers = list[Floats](), list[_Bounds | _Sets | None]()
        for column in self.grouping.members[group].tolist():
            tests = forest.feature == column
            if not tests.any():
                makers.append(None)
            elif (forest.set_of[tests] >= 0).any():
                allowed, missing, of_code = forest.reaching(column)
                flags = np.column_stack([allowed[nodes], missing[nodes]])
                keys.append(distinct_flags(flags)[1].astype(np.float64))
                makers.append(_Sets(flags, of_code))
            else:
                bounds = np.stack([each[nodes] * 1.0 for each in forest.interval(column)], axis=1)
                keys += [*bounds.T]
                makers.append(_Bounds(bounds))
        _, first, which = np.unique(np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True)
        members = tuple(None if make is None else MemberSets(make(first)) for make in makers)
        return BoxesOfTuples(tuples, members, first.size + 2), which.reshape(-1)


def _goes_left(forest: Forest, node: int, x: Floats) -> Bools:
    """Whether a node sends numbers x (n,), or categories of these codes, left."""
    if forest.set_of[node] < 0:
        return np.asarray(x <= forest.threshold[node])
    return np.isin(x, np.flatnonzero(forest.sets[forest.set_of[node]]))


@dataclass(frozen=True, eq=False)
class _Bounds:
    """The interval of a column that reaches each node: its two ends, and whether a missing value does."""

    ends: Floats  # (nodes, 3)

    def __call__(self, some: Ints) -> Interval:
        lower, upper, missing = np.pad(self.ends[some], ((1, 1), (0, 0))).T
        # no number lies in an interval that ends before it begins
        lower[[0, -1]], upper[[0, -1]] = np.inf, -np.inf
        return Interval(lower, upper, missing > 0.0)


@dataclass(frozen=True, eq=False)
class _Sets:
    """The groups of categories that reach each node, other values, and whether a missing one does."""

    flags: Bools  # (nodes, groups + 2)
    group: Ints

    def __call__(self, some: Ints) -> Members:
        rows = np.pad(self.flags[some], ((1, 1), (0, 0)))
        return Members(rows[:, :-2], rows[:, -1], rows[:, -2], self.group)


@dataclass(frozen=True, eq=False)
class OverTuples:
    """Any form over columns and groups: its answers are known, and no expectation of it."""

    form: Form
    grouping: ColumnGroups

    @property
    def size(self) -> int:
        return self.grouping.size

    def predict(self, x: Floats) -> Floats:
        return self.form.predict(self.grouping.decode(x))

    def select(self, outputs: int | list[int]) -> OverTuples:
        return replace(self, form=self.form.select(outputs))
