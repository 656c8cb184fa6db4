"""Groups of columns of a table, ``groups=``: the table whose columns are groups, and their laws.

A group is one column, whose values are tuples (``limes/_tuples.py``). A `GroupedTable` encodes rows as codes
of tuples, and decodes codes to the columns that the model takes, so that whatever explains columns explains
groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Objects
from limes._checks import listed
from limes._explainers.tables.columns import TableColumn, encode
from limes._explainers.tables.dummies import Dummies, find_dummies
from limes._explainers.tables.table import EncodedRows, Table
from limes._explainers.verified_form import VerifiedForm
from limes._tuples import ColumnGroups, Tuples
from limes.designs._marginals import Marginal, TupleCells
from limes.designs._tuples import law_of_tuples
from limes.exceptions import InputError
from limes.models._algebra import grouped

# What joins the conditions of the columns of a group
_AND = ", "


@dataclass(frozen=True)
class Groups:
    """Names of groups, and the positions of the columns of each, two or more."""

    names: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, table: Table, groups: Any) -> Groups | None:
        """Check the option ``groups``; None without groups."""
        if groups is None:
            return None
        if not isinstance(groups, Mapping):
            raise InputError(
                f"groups={groups!r} must be a mapping of names to lists of columns, such as "
                '{"payment history": ["PAY_0", "PAY_2"]}'
            )
        members = {name: _members(table, name, columns) for name, columns in groups.items()}
        owner = dict[int, str]()
        for name, its in members.items():
            for j in its:
                if owner.setdefault(j, name) != name:
                    raise InputError(
                        f"groups: column {table.names[j]!r} is in {owner[j]!r} and {name!r}: a column is in "
                        "one group at most"
                    )
            if name in table.names and table.names.index(name) not in its:
                raise InputError(
                    f"groups: {name!r} is also the name of a column that is not in this group: give the "
                    "group another name"
                )
        if len(members) == 1 and len(owner) == len(table.columns):
            raise InputError(
                f"groups: {next(iter(members))!r} has all columns, and its contribution would be the whole "
                "difference: leave a column out, or make several groups"
            )
        return cls(tuple(members), tuple(members.values())) if members else None

    def of_columns(self, table: Table) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
        """Names and columns of groups and of columns that stand alone, in the order of first columns."""
        grouped = {j for its in self.members for j in its}
        alone = [(table.names[j], (j,)) for j in range(len(table.columns)) if j not in grouped]
        both = sorted([*zip(self.names, self.members, strict=True), *alone], key=lambda each: each[1][0])
        names, members = zip(*both, strict=True)
        return tuple(names), tuple(members)

    def by_name(self, names: Sequence[str]) -> dict[str, list[str]]:
        """The columns of each group by their names."""
        return {name: [names[j] for j in its] for name, its in zip(self.names, self.members, strict=True)}

    def held(self, table: Table, hold: Sequence[str]) -> tuple[str, ...]:
        """The names ``hold`` of columns as those of groups: a group is kept as a whole."""
        names, held = dict[str, None](), {table.names.index(name) for name in hold}
        for name, its in zip(*self.of_columns(table), strict=True):
            kept = held.intersection(its)
            if kept and len(kept) < len(its):
                lacking = listed([table.names[j] for j in its if j not in held])
                raise InputError(
                    f"hold= names {table.names[min(kept)]!r}, and its group {name!r} is kept or changed as a "
                    f"whole: hold {lacking} as well, or take the column out of the group"
                )
            names |= {name: None} if kept else {}
        if len(names) == len(self.of_columns(table)[0]):
            raise InputError("hold= names every column, and nothing is left to change: leave one out")
        return tuple(names)


# Categories that a row without any of them names
_NAMED = 3


def _members(table: Table, name: Any, columns: Any) -> tuple[int, ...]:
    """Positions of the columns of a group."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"groups: {name!r} is no name of a group: pass a text that is not empty")
    where = f"groups: {name!r}"
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        raise InputError(f"{where} is {columns!r}: pass a list of columns")
    its = [table.keys.one(f"{where}: ", column) for column in columns]
    if not its:
        raise InputError(f"{where} has no columns: name at least one, or leave the group out")
    if len({*its}) < len(its):
        twice = next(table.names[j] for j in its if its.count(j) > 1)
        raise InputError(f"{where} names the column {twice!r} twice: name it once")
    return tuple(sorted(its))


@dataclass(frozen=True, eq=False)
class GroupColumn(TableColumn):
    """A group of columns as one, whose values in the matrix are codes of tuples."""

    columns: tuple[TableColumn, ...] = ()
    tuples: Tuples = None  # type: ignore[assignment]  # a field after those with defaults

    @classmethod
    def named(cls, name: str, columns: Sequence[TableColumn], tuples: Tuples) -> GroupColumn:
        return cls(name, True, (), False, np.dtype(object), False, columns=tuple(columns), tuples=tuples)

    @property
    def points(self) -> Floats:
        return np.arange(float(self.tuples.size))

    @property
    def has_odd_codes(self) -> bool:
        return False

    @cached_property
    def dummies(self) -> list[Dummies]:
        """Sets of columns of which at most one is 1: their texts name that one, or none of them."""
        names = [column.name for column in self.columns]
        return find_dummies(names, self.tuples.background, with_parts=True, are_chosen=True)

    def values_of(self, cells: Floats) -> list[Any]:
        return [*self.originals(np.unique(cells))]

    def originals(self, values: Floats) -> Objects:
        """Texts of tuples."""
        if values.size == 1:  # a row online: nothing repeats
            return self._texts(values)
        codes, place = np.unique(values, return_inverse=True)
        return np.asarray(self._texts(codes)[place.reshape(-1)])

    def _texts(self, values: Floats) -> Objects:
        decoded = self.tuples.decode(values)
        parts = [
            [f"{column.name} {_written(value)}" for value in column.originals(x).tolist()]
            for column, x in zip(self.columns, decoded.T, strict=True)
        ]
        texts = np.empty(values.size, dtype=object)
        rows = zip(*parts, strict=True)
        if self.dummies:
            texts[:] = [self.joined(row, ones) for row, ones in zip(rows, decoded == 1.0, strict=True)]
        else:
            texts[:] = [*map(_AND.join, rows)]
        return texts

    def joined(self, texts: Sequence[str], ones: Bools) -> str:
        """The texts of the columns as one; of dummies only which of them ``is 1``, if one is, or none."""
        left_out, names = set[int](), dict[int, str]()
        for its in self.dummies:
            active = [i for i, j in enumerate(its.members) if ones[j]]
            is_whole = len(its.members) == len(self.columns)
            categories = its.categories if is_whole else [self.columns[j].name for j in its.members]
            if len(active) == 1:
                names[its.members[active[0]]] = categories[active[0]]
            elif not active and not its.is_whole:  # the category that was dropped
                more = ", ..." if len(categories) > _NAMED else ""
                names[its.members[0]] = f"none of {', '.join(categories[:_NAMED])}{more}"
            else:
                continue
            left_out |= {*its.members}
        kept = [names.get(j, text) for j, text in enumerate(texts) if j in names or j not in left_out]
        return _AND.join(kept)

    def codes_of(self, texts: Sequence[Any]) -> Floats:
        """Codes of tuples by their texts; an InputError names a text of none."""
        codes = np.arange(float(self.tuples.count))
        places = dict(zip(self.originals(codes).tolist(), codes.tolist(), strict=True))
        unknown = [text for text in texts if text not in places]
        if unknown:
            raise InputError(
                f"group {self.name!r}: {unknown[0]!r} is of no row that was explained: explain the rows again"
            )
        return np.array([places[text] for text in texts])


def _written(value: Any) -> str:
    """A value of a column in a text: enough digits to tell measurements apart, without float64's noise."""
    if value is None:
        return "missing"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class GroupedTable(Table):
    """A table some of whose columns are groups of columns of another."""

    source: Table = None  # type: ignore[assignment]  # a field after those with defaults
    grouping: ColumnGroups = None  # type: ignore[assignment]

    @classmethod
    def of(cls, source: Table, groups: Groups) -> GroupedTable:
        names, members = groups.of_columns(source)
        grouping = ColumnGroups.of(members, source.matrix)
        columns = [
            replace(source.columns[its[0]], name=name)
            if tuples is None
            else GroupColumn.named(name, [source.columns[j] for j in its], tuples)
            for name, its, tuples in zip(names, members, grouping.tuples, strict=True)
        ]
        matrix = grouping.encode(source.matrix)
        matrix.setflags(write=False)
        return cls(
            tuple(columns), matrix, source.converter, None, source.remark, source=source, grouping=grouping
        )

    @property
    def ungrouped(self) -> Table:
        return self.source

    def encode(self, X: Any) -> Floats:
        return self.grouping.encode(self.source.encode(X))

    def encode_rows(self, X: Any, errors: str) -> EncodedRows:
        if self._is_data(X):
            matrix = self._encoded_data(X)
            return EncodedRows(matrix, np.arange(len(matrix)), {})
        rows = self.source.encode_rows(X, errors)
        return rows._replace(matrix=self.grouping.encode(rows.matrix))

    def _is_data(self, X: Any) -> bool:
        """Whether rows are an explanation's ``data``, in which a group has the text of its tuple."""
        is_array = isinstance(X, np.ndarray) and X.dtype == np.dtype(object) and X.ndim == 2
        return is_array and X.shape[1] == len(self.columns) < len(self.source.columns)

    def _encoded_data(self, data: Objects) -> Floats:
        return np.stack(
            [
                column.codes_of(its.tolist()) if isinstance(column, GroupColumn) else encode(column, its)
                for column, its in zip(self.columns, data.T, strict=True)
            ],
            axis=1,
        )

    def decode(self, matrix: Floats) -> Any:
        return self.source.decode(self.grouping.decode(np.asarray(matrix, dtype=np.float64)))

    def advice(self, matrix: Floats) -> str:
        return self.source.advice(self.grouping.decode(matrix))

    def originals(self, matrix: Floats) -> Objects:
        pairs = zip(self.columns, np.asarray(matrix, dtype=np.float64).T, strict=True)
        cells = np.empty(matrix.shape, dtype=object)
        for j, (column, values) in enumerate(pairs):
            cells[:, j] = column.originals(values)
        return cells

    @cached_property
    def is_plain(self) -> bool:
        return False

    def laws(self, laws: Sequence[Marginal]) -> tuple[Marginal, ...]:
        """Laws of columns and groups, from those of all columns (d,)."""
        pairs = zip(self.grouping.members, self.grouping.tuples, strict=True)
        return tuple(
            laws[its[0]] if tuples is None else law_of_tuples(tuples, [laws[j].cells for j in its])
            for its, tuples in pairs
        )

    def verified(self, verified: VerifiedForm) -> VerifiedForm:
        """Return what was read of a model over the columns, over columns and groups."""
        form, margin = (
            None if each is None else grouped(each, self.grouping)
            for each in (verified.form, verified.margin)
        )
        return replace(verified, form=form, margin=margin)

    @property
    def groups(self) -> Mapping[int, GroupColumn]:
        return {j: column for j, column in enumerate(self.columns) if isinstance(column, GroupColumn)}

    def plain(self, matrix: Floats) -> Floats:
        return self.grouping.decode(matrix)

    def encoded(self, plain: Floats) -> Floats:
        return self.grouping.encode(plain)

    def lend(self, plain: Floats) -> AbstractContextManager[Floats]:
        return self.grouping.lend(plain)

    def by_column(self, entries: Any) -> Any:
        """For columns that stand alone; None for groups."""
        if not isinstance(entries, list | tuple):
            return entries
        return [entries[its[0]] if its.size == 1 else None for its in self.grouping.members]

    def texts(self, texts: Sequence[Objects], laws: Sequence[Marginal]) -> list[Objects]:
        """The cells of columns and groups in words, from those of all columns (d,)."""
        return [
            _texts_of(column, law.cells, [texts[j] for j in its])
            if isinstance(column, GroupColumn) and isinstance(law.cells, TupleCells)
            else texts[its[0]]
            for column, law, its in zip(self.columns, laws, self.grouping.members, strict=True)
        ]


def _texts_of(group: GroupColumn, cells: TupleCells, texts: Sequence[Objects]) -> Objects:
    """The cells of a group in words."""
    ones = [law.locate(np.ones(1))[0] for law in cells.columns]
    joined = [
        group.joined([str(text[b]) for text, b in zip(texts, its, strict=True)], np.array(its) == ones)
        for its in cells.combinations.tolist()
    ]
    of_dummies = len(group.dummies) == 1 and len(group.dummies[0].members) == len(group.columns)
    named = [f"{group.name} = {text}" for text in joined] if of_dummies else joined
    return np.array([*named, f"{group.name}: a combination that the background lacks"], dtype=object)
