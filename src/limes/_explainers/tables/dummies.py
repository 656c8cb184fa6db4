"""Columns that someone made of one column of categories: exactly one of them is 1 in every row.

Drawn one by one, such columns make rows that cannot be: of two categories at once, or of none. As a group
they are one column again. Where a category was dropped, or some values were missing, at most one is 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from limes._arrays import Bools, Floats
from limes._warnings import RowWarning

# Signs that separate a column's name from a category
_SEPARATORS = re.compile(r"[_=.:\s\[(-]+")
# Rows with two of some columns that are expected by chance, and of which none occurs if at most one is ever 1
_BY_CHANCE = 10.0
# Most columns in a row of the table that are tried together without a common beginning of their names
_MOST = 256


@dataclass(frozen=True)
class Dummies:
    """Columns of which exactly one is 1 in every row, or at most one."""

    name: str  # what their names begin with; "" without a common beginning
    members: tuple[int, ...]
    categories: tuple[str, ...]  # what their names end with
    is_whole: bool = True  # whether one is always 1


def find_dummies(
    names: Sequence[str], matrix: Floats, *, with_parts: bool = False, are_chosen: bool = False
) -> list[Dummies]:
    """The sets of dummies among columns (n, d), by the beginnings of their names, or else side by side.

    ``with_parts`` also those that begin alike and of which at most one is 1. Of columns that ``are_chosen``
    as a group it does not matter whether that may be by chance.
    """
    binary = np.flatnonzero(((matrix == 0.0) | (matrix == 1.0)).all(axis=0)).tolist()
    ones = {j: matrix[:, j] == 1.0 for j in binary}
    by_beginning = dict[str, list[int]]()
    for j in binary:
        for sign in _SEPARATORS.finditer(names[j], 1):
            by_beginning.setdefault(names[j][: sign.start()], []).append(j)
    of_names, named = list[Dummies](), set[int]()
    for beginning in sorted(by_beginning, key=len):
        its = [j for j in by_beginning[beginning] if j not in named]
        if sum(bool(ones[j].any()) for j in its) > 1 and _is_partition([ones[j] for j in its]):
            of_names.append(_named(beginning, its, names))
            named |= {*its}
    for beginning in sorted(by_beginning, key=len) if with_parts else ():
        its = [j for j in by_beginning[beginning] if j not in named and ones[j].any()]
        if len(its) > 1 and _exclude_each_other([ones[j] for j in its], are_chosen=are_chosen):
            of_names.append(replace(_named(beginning, its, names), is_whole=False))
            named |= {*its}
    unnamed = [j for j in binary if j not in named and ones[j].any()]
    others = [_named("", its, names) for its in _runs(unnamed, ones)]
    return sorted([*of_names, *others], key=lambda dummies: dummies.members)


def warnings_of_dummies(names: Sequence[str], matrix: Floats) -> tuple[RowWarning, ...]:
    """A warning about dummies among columns (n, d) that stand alone: it names the groups that these are."""
    sets = find_dummies(names, matrix, with_parts=True)
    if not sets:
        return ()
    groups = dict[str, list[str]]()
    for dummies in sets:
        name = dummies.name or "category"
        if name in groups:
            name = f"{name} {len(groups) + 1}"
        groups[name] = [names[j] for j in dummies.members]
    first = next(iter(groups.values()))
    kind = "several" if len(sets) > 1 else "" if sets[0].is_whole else "part"
    return (RowWarning.of("dummies", kind, first=first[0], last=first[-1], count=len(sets), option=groups),)


def _named(beginning: str, members: Sequence[int], names: Sequence[str]) -> Dummies:
    first, last = (choose(names[j] for j in members) for choose in (min, max))
    common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    # the longest beginning that all have: "marital_status" of "marital_status_single"
    longest = max((common[: sign.start()] for sign in _SEPARATORS.finditer(common, 1)), key=len, default="")
    beginning = longest if beginning else ""
    ends = (names[j][len(beginning) :].strip("_=.:-[]() ") or names[j] for j in members)
    return Dummies(beginning, tuple(members), tuple(ends))


def _is_partition(ones: Sequence[Bools]) -> bool:
    """Whether exactly one of some flags (n,) is set everywhere."""
    return bool((np.sum(ones, axis=0) == 1).all())


def _exclude_each_other(ones: Sequence[Bools], *, are_chosen: bool) -> bool:
    """Whether two flags (n,) are never set together, which is not by chance."""
    shares = np.array([its.mean() for its in ones])
    pairs = (shares.sum() ** 2 - (shares**2).sum()) / 2.0
    is_by_chance = not are_chosen and len(ones[0]) * pairs < _BY_CHANCE
    return bool((np.sum(ones, axis=0) <= 1).all()) and not is_by_chance


def _runs(columns: Sequence[int], ones: dict[int, Bools]) -> list[list[int]]:
    """Runs of neighbouring columns of which exactly one is 1."""
    runs, place = list[list[int]](), 0
    while place < len(columns):
        end = _end_of_run(columns[place : place + _MOST], ones)
        runs += [list(columns[place : place + end])] if end else []
        place += end or 1
    return runs


def _end_of_run(columns: Sequence[int], ones: dict[int, Bools]) -> int:
    """The number of first columns of which exactly one is 1; 0 without such a number."""
    covered = np.zeros_like(ones[columns[0]])
    for count, j in enumerate(columns, start=1):
        if j != columns[0] + count - 1 or (covered & ones[j]).any():
            return 0
        covered = covered | ones[j]
        if covered.all():
            return count if count > 1 else 0
    return 0
