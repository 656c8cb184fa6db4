"""Groups of features of several inputs, ``groups=`` of :class:`limes.CompositeExplainer`.

A group is one feature, which is shown or hidden as a whole: a part, several parts, or columns and words of
parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes._checks import check_choice, did_you_mean
from limes._explainers.backgrounds import split_rows
from limes._explainers.masked import InputPart, MaskedInput
from limes._explainers.tables.part import TablePart
from limes.exceptions import InputError
from limes.models.forms._base import Form

# A group of each part
PARTS = "part"
# The members of a group that its condition names; it counts more
_NAMED = 3


class InputOfParts(MaskedInput, Protocol):
    """An input whose features belong to parts."""

    @property
    def ends(self) -> Mapping[str, tuple[int, int]]:
        """The first feature of each part, and the one behind the last."""


@dataclass(frozen=True)
class InputGroups:
    """Names of groups, and names of the parts, or of the features ("part: feature"), of each."""

    members: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, parts: Mapping[str, InputPart], groups: Any) -> InputGroups | None:
        """Check the option ``groups``; None without groups."""
        if groups is None:
            return None
        if isinstance(groups, str):
            check_choice("groups", groups, (PARTS,))
            groups = {name: [name] for name in parts}
        if not isinstance(groups, Mapping) or not groups:
            raise InputError(
                f'groups={groups!r} must be "{PARTS}", or a mapping of names to lists of parts and features, '
                f"such as {{'all texts': {list(parts)[:2]}}}"
            )
        members = {name: _members(parts, name, its) for name, its in groups.items()}
        owner = dict[str, str]()
        for name, its in members.items():
            for member in its:
                if owner.setdefault(member, name) != name:
                    raise InputError(f"groups: {member!r} is in {owner[member]!r} and {name!r}: {_ONCE}")
        for member, name in owner.items():
            part, is_feature, _ = member.partition(": ")
            if is_feature and part in owner:
                raise InputError(
                    f"groups: {member!r} is in {name!r}, and all of {part!r} in {owner[part]!r}: {_ONCE}"
                )
        if len(members) == 1 and set(parts) <= set(owner):
            raise InputError(
                f"groups: {next(iter(members))!r} has all parts, and its contribution would be the whole "
                "difference: leave a part out, or make several groups"
            )
        return cls(members)

    def of_features(self, item: InputOfParts) -> tuple[tuple[str, ...], Ints]:
        """Names of groups and of features that stand alone, and the position there of each feature, (d,)."""
        groups = {member: name for name, its in self.members.items() for member in its}
        part_of = [part for part, (first, end) in item.ends.items() for _ in range(first, end)]
        places, named = list[tuple[bool, Any]](), item.names
        for j, (feature, part) in enumerate(zip(named, part_of, strict=True)):
            group = groups.get(part, groups.get(feature))
            places.append((False, j) if group is None else (True, group))
        positions = {place: i for i, place in enumerate(dict.fromkeys(places))}
        alone = {named[place] for is_group, place in positions if not is_group}
        if twice := next((name for is_group, name in positions if is_group and name in alone), None):
            raise InputError(
                f"groups: {twice!r} is also the name of a feature that is not in this group: give the group "
                "another name"
            )
        names = tuple(place if is_group else named[place] for is_group, place in positions)
        return names, np.array([positions[place] for place in places], dtype=np.int64)

    def grouped(self, item: InputOfParts) -> GroupedInput:
        """The input whose features are the groups, and the features that are in none."""
        return GroupedInput(item, *self.of_features(item))


_ONCE = "a feature is in one group at most"


def _members(parts: Mapping[str, InputPart], name: Any, members: Any) -> tuple[str, ...]:
    """The members of a group, which are parts, or features of parts."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"groups: {name!r} is no name of a group: pass a text that is not empty")
    where = f"groups: {name!r}"
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise InputError(f"{where} is {members!r}: pass a list of parts, or of features")
    its = tuple(members)
    if not its:
        raise InputError(f"{where} has no members: name at least one, or leave the group out")
    for member in its:
        _check_member(parts, where, member)
    if len({*its}) < len(its):
        raise InputError(
            f"{where} names {next(one for one in its if its.count(one) > 1)!r} twice: name it once"
        )
    return its


def _check_member(parts: Mapping[str, InputPart], where: str, member: Any) -> None:
    """Refuse what is no part, nor a feature that an input may have: texts have other words each time."""
    if member in parts:
        return
    part, _, feature = str(member).partition(": ")
    columns = {name: its.columns for name, its in parts.items() if isinstance(its, TablePart)}
    if part not in parts or not feature or feature not in columns.get(part, (feature,)):
        usable = [*parts, *(f"{name}: {column}" for name, its in columns.items() for column in its)]
        raise InputError(
            f"{where} has {member!r}, which is no part, nor a feature as 'part: feature'"
            f"{did_you_mean(str(member), usable)}; the parts are {list(parts)}"
        )


@dataclass(frozen=True, eq=False)
class GroupedInput(MaskedInput):
    """An input of several parts whose features are groups of its features."""

    item: InputOfParts
    groups: tuple[str, ...]
    of_features: Ints  # the group of each feature that can be hidden, (d,)

    @property
    def names(self) -> tuple[str, ...]:
        return self.groups

    @property
    def size(self) -> int:
        return int(self.of_features.max()) + 1

    @cached_property
    def _members(self) -> list[list[int]]:
        """Positions of the features of each group."""
        return [np.flatnonzero(self.of_features == g).tolist() for g in range(len(self.groups))]

    @property
    def conditions(self) -> tuple[str, ...]:
        every = self.item.conditions

        def condition(name: str, its: Sequence[int]) -> str:
            if len(its) > _NAMED:
                return f"{name}: all {len(its)} features"
            if len(its) == 1:
                return every[its[0]]
            # the part is named once, by the group
            parts, _, texts = zip(*(every[j].partition(": ") for j in its), strict=True)
            return f"{name}: {', '.join(texts if len({*parts}) == 1 else [every[j] for j in its])}"

        return tuple(map(condition, self.groups, self._members))

    @property
    def data(self) -> Objects:
        shown = np.array(self.conditions, dtype=object)
        for g, its in enumerate(self._members):
            if len(its) == 1:
                shown[g] = self.item.data[its[0]]
        return shown

    @property
    def key(self) -> Hashable:
        return self.item.key, self.of_features.tobytes()

    @property
    def changes(self) -> Bools:
        changes = self.item.changes
        return np.array([changes[its].any() for its in self._members], dtype=np.bool_)

    @property
    def picture(self) -> Mapping[str, Any]:
        """The parts whose features all stand alone, and their pictures."""
        is_alone = (np.bincount(self.of_features) == 1)[self.of_features]
        parts = {}
        for name, (first, end) in self.item.ends.items():
            if is_alone[first:end].all():
                start = int(self.of_features[first])
                parts[name] = [start, start + end - first]
        pictures = {name: its for name, its in self.item.picture.get("pictures", {}).items() if name in parts}
        return {"parts": parts} | ({"pictures": pictures} if pictures else {})

    def only(self, kept: Bools) -> GroupedInput:
        features = kept[self.of_features]
        of_features = (np.cumsum(kept) - 1)[self.of_features[features]]
        return replace(self, item=self.item.only(features), of_features=of_features)

    @property
    def draws(self) -> int:
        return self.item.draws

    def compose(self, z: Floats) -> Any:
        return self.item.compose(self._of_features(z))

    def composer(self, model: Any) -> Callable[[Floats], Any]:
        compose = self.item.composer(model)
        return lambda z: compose(self._of_features(z))

    def _of_features(self, z: Floats) -> Floats:
        """Rows of features (n, d) from rows of groups, with the item of a background where these have one."""
        rows, items = split_rows(z, self.draws)
        rows = rows[:, self.of_features]
        return rows if self.draws == 1 else np.column_stack([rows, items])

    def over(self, read: Callable[[], Form]) -> Form:
        return self.item.over(read)
