"""Trees as boosting libraries store them, made into one Forest.

Every library stores a tree as arrays of nodes with the root at 0. They differ in the meaning of a test, and
in the numbers of categories: the model has its own, and the user's column may hold texts. Readers translate
the tests, ``codes_of`` the categories, and ``join_trees`` joins both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Floats, Ints
from limes.models._reading import CannotRead, Schema
from limes.models.forms._trees import Forest, concatenated, joined_covers

# bits of all category sets of one forest: 100 MB
_BITS = 100_000_000
# tables of categories that are numbers have this length
_LARGEST_CATEGORY = 1_000_000


@dataclass(frozen=True, eq=False)
class BoosterTree:
    """One tree with its root at 0; nodes that send x <= threshold left, or the categories of their set."""

    feature: Ints  # (N,); what it is at a leaf is ignored
    threshold: Floats
    left: Ints  # -1 at leaves; unreachable nodes are allowed
    right: Ints
    missing_left: Bools
    value: Floats  # (N,) or (N, k)
    # the categories, in the library's numbers, that a node sends left
    members: Mapping[int, Ints] = field(default_factory=dict)
    covers: Floats = field(default_factory=lambda: np.zeros(0))  # (N,), or () and the reason
    no_covers: str = ""


@contextmanager
def parsing(library: str) -> Iterator[None]:
    """Raise CannotRead where a library's description of a model cannot be parsed."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise CannotRead(
            f"{library}'s description of the model is damaged, or of an unknown version "
            f"({type(error).__name__}: {error}); save the model again with a current version"
        ) from error


def refuse_link(model: Any, objective: str) -> Never:
    """Refuse predictions that are a function of the sum of trees."""
    raise CannotRead(
        f"{type(model).__name__} with objective {objective!r} does not predict the sum of its trees, but a "
        "function of it; the sum is read exactly with output='margin'"
    )


def of_output(value: Floats, output: int, outputs: int) -> Floats:
    """The values (N,) or (N, k) of a tree that adds to one of the outputs."""
    return value if outputs == 1 else np.outer(value, np.eye(outputs)[output])


def column_name(schema: Schema | None, j: int) -> str:
    """The name of a column in messages."""
    return f"column {j}" if schema is None else f"column {schema.names[j]!r}"


def codes_of(categories: Sequence[Any], schema: Schema | None, j: int) -> Floats:
    """The library's number of each code that column j may hold, (L,), NaN if it has no number."""
    # ``categories`` are the model's, in the order of their numbers.
    number = {value: float(i) for i, value in enumerate(categories) if value == value and value is not None}
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


def bits_of(words: Any) -> Bools:
    """Bit b of word w is set if category 32 w + b is in the set: (S, W) -> (S, 32 W)."""
    octets = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little").astype(np.bool_)


def join_trees(
    trees: Sequence[BoosterTree],
    schema: Schema | None,
    codes: Mapping[int, Floats],
    *,
    intercept: ArrayLike,
    size: int,
    unseen_is_missing: bool = True,
) -> Forest:
    """One forest over ``size`` columns; one output has no axis.

    ``codes`` has `codes_of` every column that the library renumbers. Such a column is split by sets of the
    user's codes, whatever the library tests there. ``unseen_is_missing`` if the library treats a category
    that is not in the training data as missing; otherwise such a category is in no set.
    """
    nodes, roots = _joined(trees)
    order, first = _reachable(nodes, roots)
    position = np.full(nodes.feature.size + 1, -1)  # its last entry is the position of "no child"
    position[order] = np.arange(order.size)
    feature = nodes.feature[order]
    _check_columns(np.unique(feature[feature >= 0]), size, schema, codes)
    set_of, sets, swapped = _sets(nodes, order, codes, unseen_is_missing)
    left, right = position[nodes.left[order]], position[nodes.right[order]]
    start = np.asarray(intercept, dtype=np.float64)
    covers = {"covers": nodes.covers[order]} if nodes.covers.size else {"no_covers": nodes.no_covers}
    return Forest(
        feature=feature,
        threshold=np.where((feature < 0) | (set_of >= 0), 0.0, nodes.threshold[order]),
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=nodes.missing_left[order] ^ swapped,
        value=nodes.value[order],
        roots=first,
        intercept=start.reshape(()) if start.size == 1 else start,
        size=size,
        set_of=set_of,
        sets=sets,
        **covers,
    )


def _check_columns(split: Ints, size: int, schema: Schema | None, codes: Mapping[int, Floats]) -> None:
    levels = ((),) * size if schema is None else schema.levels
    if len(levels) != size:
        raise CannotRead(f"the model was fitted on {size} columns, the background has {len(levels)}")
    if split.size and split[-1] >= size:
        raise CannotRead(f"the model tests column {split[-1]}, but claims to have {size}")
    for j in split.tolist():
        if levels[j] and j not in codes:
            raise CannotRead(
                f"{column_name(schema, j)} holds texts, and the model does not store their "
                "numbers: fit it on whole numbers from 0"
            )


def _joined(trees: Sequence[BoosterTree]) -> tuple[BoosterTree, Ints]:
    starts = np.cumsum([0, *(t.feature.size for t in trees)])[:-1]
    arrays = concatenated(trees, {"left": starts, "right": starts})
    arrays["feature"] = np.where(arrays["left"] >= 0, arrays["feature"], -1)
    pairs = zip(trees, starts.tolist(), strict=True)
    members = {start + node: members for t, start in pairs for node, members in t.members.items()}
    return BoosterTree(**arrays, **joined_covers(trees), members=members), starts


def _reachable(nodes: BoosterTree, roots: Ints) -> tuple[Ints, Ints]:
    """Nodes that a row can reach, tree by tree and parents first, and the positions of the roots there."""
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


def _sets(
    nodes: BoosterTree, order: Ints, codes: Mapping[int, Floats], unseen_is_missing: bool
) -> tuple[Ints, Bools, Bools]:
    renumbered = np.isin(nodes.feature[order], list(codes))
    by_member = np.isin(order, list(nodes.members)) & (nodes.feature[order] >= 0)
    positions = np.flatnonzero(renumbered | by_member)
    set_of = np.full(order.size, -1)
    set_of[positions] = np.arange(positions.size)
    # values that no set can hold go right: where they go left, the children are swapped
    swapped = renumbered & nodes.missing_left[order] & unseen_is_missing
    rows = [_goes_left(nodes, int(node), codes, unseen_is_missing) for node in order[positions]]
    width = max((row.size for row in rows), default=0)
    if width * len(rows) > _BITS:
        raise CannotRead(
            f"the model splits {len(rows)} times by category, and numbers categories up to {width - 1}: "
            "number them from 0 without gaps, and fit again"
        )
    sets = np.zeros((len(rows), width), dtype=np.bool_)
    for i, row in enumerate(rows):
        sets[i, : row.size] = row ^ swapped[positions[i]]
    return set_of, sets, swapped


def _goes_left(nodes: BoosterTree, node: int, codes: Mapping[int, Floats], unseen_is_missing: bool) -> Bools:
    """Which of the user's codes a node sends left, (L,)."""
    column, members = int(nodes.feature[node]), nodes.members.get(node)
    if members is not None and column not in codes:
        if members.max(initial=0) > _LARGEST_CATEGORY:
            raise CannotRead(f"the model has the category {members.max()}: number categories from 0")
        return np.isin(np.arange(members.max(initial=-1) + 1), members)
    code = codes[column]
    left = code <= nodes.threshold[node] if members is None else np.isin(code, members)
    unseen = nodes.missing_left[node] and unseen_is_missing
    return np.asarray(np.where(np.isnan(code), unseen, left), dtype=np.bool_)
