"""Trees as boosting libraries store them, made into one Forest.

Every library keeps a tree as arrays of nodes with the root at 0. They differ in what a test means, and in
what a category is called: the model knows a category by its own number, the user's column may hold a text.
A reader says the first; ``codes_of`` says the second, and here both meet. A column that the library
numbers anew is split by sets of the user's codes, whatever the library tests there.

Sets name only what they know, and all else goes right. Where a library takes a category that it has never
seen for missing, and sends it left, the children of a split are swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models.forms.trees import Forest
from limes.models.reading import CannotRead, Schema

# bits of all category sets of one forest: 100 MB
_BITS = 100_000_000
# a category that is a number stands in tables of that length
_LARGEST_CATEGORY = 1_000_000


@dataclass(frozen=True, eq=False)
class BoosterTree:
    """One tree with its root at 0; nodes that nothing leads to are allowed.

    ``members`` has the categories, in the library's numbers, that go left of the nodes that split by
    category. Other nodes send x <= threshold left. ``value`` is (N,) or (N, k); children of leaves are -1.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Bools
    value: Floats
    members: Mapping[int, Ints] = field(default_factory=dict)


@contextmanager
def parsing(library: str) -> Iterator[None]:
    """Around the reading of a library's own description of a model: what is not understood is not read."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise CannotRead(
            f"{library}'s description of the model is damaged, or of a version that is not known "
            f"({type(error).__name__}: {error}); save the model again with a current version"
        ) from error


def refuse_labels(model: Any, method: str) -> None:
    """Classifiers have one answer that is a sum of trees."""
    if hasattr(model, "predict_proba") and method != "decision_function":
        raise CannotRead(
            f"{method} of {type(model).__name__} is not a sum of trees; its margin is read exactly with "
            "output='margin'"
        )


def column_name(schema: Schema | None, j: int) -> str:
    """How messages call a column."""
    return f"column {j}" if schema is None else f"column {schema.names[j]!r}"


def codes_of(known: Sequence[Any], schema: Schema | None, j: int) -> Floats:
    """The library's number of each code that column j may hold, (L,), NaN where it has none.

    ``known`` has the model's own categories in the order of their numbers.

    Raises
    ------
    CannotRead
        If the column holds numbers itself, and these are no codes 0, 1, 2, ...
    """
    number = {value: float(i) for i, value in enumerate(known) if value == value and value is not None}
    levels = () if schema is None else schema.levels[j]
    if levels:
        return np.array([number.get(level, np.nan) for level in levels])
    for value in number:
        whole = isinstance(value, int | float | np.number | np.bool_) and float(value).is_integer()
        if not (whole and 0 <= value <= _LARGEST_CATEGORY):
            raise CannotRead(
                f"{column_name(schema, j)} has the category {value!r}; only texts and whole numbers "
                f"from 0 to {_LARGEST_CATEGORY} are read: store them as texts, and fit again"
            )
    codes = np.full(int(max(number, default=0)) + 1, np.nan)
    for value, i in number.items():
        codes[int(value)] = i
    return codes


@dataclass(frozen=True, eq=False)
class CategoryCodes:
    """What the user's columns are called, and hold, where the model has its own numbers.

    Attributes
    ----------
    schema
        The user's columns.
    codes
        ``codes_of`` every column that the library numbers anew.
    unseen_is_missing
        Whether the library takes a category that training did not know for missing; else it is one of those
        that are in no set.
    """

    schema: Schema | None
    codes: Mapping[int, Floats] = field(default_factory=dict)
    unseen_is_missing: bool = True

    def check(self, split: Ints, size: int) -> None:
        """Refuse columns, of those that are split, that are not known."""
        levels = ((),) * size if self.schema is None else self.schema.levels
        if len(levels) != size:
            raise CannotRead(f"the model was fitted on {size} columns, the background has {len(levels)}")
        if split.size and split[-1] >= size:
            raise CannotRead(f"the model tests column {split[-1]}, but says that it has {size}")
        for j in split.tolist():
            if levels[j] and j not in self.codes:
                raise CannotRead(
                    f"{column_name(self.schema, j)} holds texts, and the model does not say by which numbers "
                    "it knows them: fit it on whole numbers from 0"
                )


def join_trees(
    trees: Sequence[BoosterTree], categories: CategoryCodes, *, intercept: Floats, size: int
) -> Forest:
    """One forest over ``size`` columns.

    Raises
    ------
    CannotRead
        If the model splits a column of texts without knowing the texts, or has too many categories.
    """
    nodes, roots = _joined(trees)
    order, first = _reachable(nodes, roots)
    place = np.full(nodes.feature.size + 1, -1)  # its last entry is the place of "no child"
    place[order] = np.arange(order.size)
    feature = nodes.feature[order]
    categories.check(np.unique(feature[feature >= 0]), size)
    set_of, sets, swapped = _sets(nodes, order, categories)
    left, right = place[nodes.left[order]], place[nodes.right[order]]
    return Forest(
        feature=feature,
        threshold=np.where((feature < 0) | (set_of >= 0), 0.0, nodes.threshold[order]),
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=nodes.missing_left[order] ^ swapped,
        value=nodes.value[order],
        roots=first,
        intercept=np.asarray(intercept, dtype=np.float64),
        size=size,
        set_of=set_of,
        sets=sets,
    )


def _joined(trees: Sequence[BoosterTree]) -> tuple[BoosterTree, Ints]:
    """All trees in common arrays, and where each starts."""
    starts = np.cumsum([0, *(t.feature.size for t in trees)])[:-1]
    pairs = list(zip(trees, starts.tolist(), strict=True))
    left = np.concatenate([np.where(t.left >= 0, t.left + start, -1) for t, start in pairs])
    joined = BoosterTree(
        feature=np.where(left >= 0, np.concatenate([t.feature for t in trees]), -1),
        threshold=np.concatenate([t.threshold for t in trees]),
        left=left,
        right=np.concatenate([np.where(t.right >= 0, t.right + start, -1) for t, start in pairs]),
        missing_left=np.concatenate([t.missing_left for t in trees]),
        value=np.concatenate([t.value for t in trees]),
        members={start + node: found for t, start in pairs for node, found in t.members.items()},
    )
    return joined, starts


def _reachable(nodes: BoosterTree, roots: Ints) -> tuple[Ints, Ints]:
    """Nodes that a row can meet, tree by tree and parents first, and the places of the roots among them."""
    levels, owners = [roots], [np.arange(roots.size)]
    count = roots.size
    while levels[-1].size:
        inner = nodes.feature[levels[-1]] >= 0
        parents, owner = levels[-1][inner], owners[-1][inner]
        levels.append(np.concatenate([nodes.left[parents], nodes.right[parents]]))
        owners.append(np.concatenate([owner, owner]))
        count += levels[-1].size
        if count > nodes.feature.size:
            raise CannotRead("the model's own description of its trees is damaged: a node has two parents")
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return np.concatenate(levels)[order], np.searchsorted(owner[order], np.arange(roots.size))


def _sets(nodes: BoosterTree, order: Ints, categories: CategoryCodes) -> tuple[Ints, Bools, Bools]:
    """Which set a node splits by, the sets, and whether its children are swapped."""
    renamed = np.isin(nodes.feature[order], list(categories.codes))
    by_member = np.isin(order, list(nodes.members)) & (nodes.feature[order] >= 0)
    places = np.flatnonzero(renamed | by_member)
    set_of = np.full(order.size, -1)
    set_of[places] = np.arange(places.size)
    # what no set can name goes right: where it goes left, the children trade places
    swapped = renamed & nodes.missing_left[order] & categories.unseen_is_missing
    rows = [_goes_left(nodes, int(node), categories) for node in order[places]]
    width = max((row.size for row in rows), default=0)
    if width * len(rows) > _BITS:
        raise CannotRead(
            f"the model splits {len(rows)} times by category, and numbers categories up to {width - 1}: "
            "number them from 0 without gaps, and fit again"
        )
    sets = np.zeros((len(rows), width), dtype=np.bool_)
    for i, row in enumerate(rows):
        sets[i, : row.size] = row ^ swapped[places[i]]
    return set_of, sets, swapped


def _goes_left(nodes: BoosterTree, node: int, categories: CategoryCodes) -> Bools:
    """Which of the user's codes a node sends left, (L,)."""
    codes, members = categories.codes.get(int(nodes.feature[node])), nodes.members.get(node)
    if codes is None:
        assert members is not None  # noqa: S101 - only such nodes are asked for
        if members.max(initial=0) > _LARGEST_CATEGORY:
            raise CannotRead(f"the model knows the category {members.max()}: number categories from 0")
        row = np.zeros(int(members.max(initial=-1)) + 1, dtype=np.bool_)
        row[members] = True
        return row
    found = codes <= nodes.threshold[node] if members is None else np.isin(codes, members)
    unseen = nodes.missing_left[node] and categories.unseen_is_missing
    return np.asarray(np.where(np.isnan(codes), unseen, found), dtype=np.bool_)
