"""The column that a name refers to: the name as it is given, then its text, then a position.

Tables name columns by texts, numbers, dates, truth values or tuples, and explanations by the texts of these.
So a column is called by its own name, by the text of it, or by a whole number that is its position. A whole
number that names one column and is the position of another refers to neither: it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

import numpy as np

from limes._checks import did_you_mean, listed
from limes.exceptions import InputError

Value = TypeVar("Value")


class AmbiguousNameError(InputError):
    """A name refers to several columns."""


def text_of(name: Any) -> str:
    """The text of a name; numpy's numbers are written as Python's."""
    return str(_plain(name))


def _plain(name: Any) -> Any:
    if type(name) is tuple:  # of several levels
        return tuple(map(_plain, name))
    is_number = isinstance(name, np.generic) and not isinstance(name, np.datetime64 | np.timedelta64)
    return name.item() if is_number else name


def is_whole(wanted: Any) -> TypeGuard[int]:
    return isinstance(wanted, int | np.integer) and not isinstance(wanted, bool)


def names_of_frame(frame: Any) -> Iterable[Any]:
    """Names of the columns of a frame of pandas, polars or pyarrow, which may share names."""
    names: Iterable[Any] = getattr(frame, "column_names", None) or frame.columns
    return names


def refuse_repeats(names: Iterable[Any]) -> None:
    """Raise InputError if two columns have one name, or names of one text."""
    texts: dict[str, list[Any]] = {}
    for name in names:
        texts.setdefault(text_of(name), []).append(name)
    repeated = [text for text, same in texts.items() if len(same) > 1]
    if repeated:
        kinds = dict.fromkeys(type(name).__name__ for name in texts[repeated[0]])
        why = f", as {' and '.join(kinds)}" if len(kinds) > 1 else ""
        raise InputError(f"columns share a name: {listed(repeated)}{why}. Rename them")


class Names:
    """The names of columns, and where each is.

    Without ``by_text``, which is for words and rows, whole numbers are positions, and masks are no names.
    """

    def __init__(self, names: Iterable[Any], *, by_text: bool = True) -> None:
        self.names = tuple(names)
        self._by_text = by_text
        self._labels: dict[tuple[bool, Any], list[int]] = {}
        self._texts: dict[str, list[int]] = {}
        for j, name in enumerate(self.names):
            if self._is_name(name):
                self._labels.setdefault(_key(name), []).append(j)
                self._texts.setdefault(text_of(name), []).append(j)

    def __len__(self) -> int:
        return len(self.names)

    def _is_name(self, name: Any) -> bool:
        return self._by_text or not isinstance(name, int | np.integer | np.bool_)

    @property
    def texts(self) -> list[str]:
        """Texts of what is a name, in order."""
        return [text_of(name) for name in self.names if self._is_name(name)]

    def called(self, wanted: Any) -> list[int]:
        """Positions of the columns of this name: as it is given, or else by its text."""
        if not isinstance(wanted, Hashable):
            return []
        if not self._is_name(wanted):
            return []
        try:
            same = self._labels.get(_key(wanted))
        except TypeError:  # a tuple of lists
            return []
        return same or self._texts.get(text_of(wanted), [])

    def positions(self, wanted: Any) -> list[int]:
        """Positions that a name or a position refers to, none if there is no such column."""
        size, positions = len(self), self.called(wanted)
        if not is_whole(wanted) or not -size <= wanted < size:
            return positions
        position = int(wanted) % size
        if positions not in ([], [position]):
            other = text_of(self.names[position])
            raise AmbiguousNameError(
                f"{wanted!r} names one column and is the position of another: pass a text, "
                f"{text_of(wanted)!r} for the one of this name, or {other!r} for the one at this position"
            )
        return [position]

    def pieces(self, wanted: Any) -> list[Any]:
        """One name, or the names and positions of a list: a tuple may be either."""
        if isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable):
            return [wanted]
        if not self.called(wanted):
            return [*wanted]
        parts = [*wanted]
        if all(self.called(part) for part in parts):
            raise AmbiguousNameError(
                f"{wanted!r} is the name of a column, and its parts are names of others: pass a list, "
                f"[{wanted!r}] or {parts!r}"
            )
        return [wanted]

    def chosen(self, option: str, wanted: Any) -> set[int]:
        """Positions of the columns that an option names; none for None, which is no name by itself."""
        if wanted is None:
            return set()
        return {self.one(f"{option}=", piece) for piece in self.pieces(wanted)}

    def one(self, where: str, wanted: Any) -> int:
        """Position of the column of this name; ``where`` begins a message, "hold="."""
        try:
            positions = self.positions(wanted)
        except AmbiguousNameError as error:
            raise AmbiguousNameError(f"{where}{error}") from None
        if not positions:
            texts = [*map(text_of, self.names)]
            raise InputError(
                f"{where}{wanted!r} is not a column{did_you_mean(wanted, texts)}: pass names or positions "
                f"among {listed(texts)}"
            )
        return positions[0]

    def by_position(self, option: str, values: Mapping[Any, Value]) -> dict[int, Value]:
        """The values of a mapping by the positions of the columns that its keys name."""
        chosen: dict[int, Value] = {}
        for name, value in values.items():
            position = self.one(f"{option}: ", name)
            if position in chosen:
                text = text_of(self.names[position])
                raise InputError(f"{option} names the column {text!r} twice: name it once")
            chosen[position] = value
        return chosen


def _key(name: Any) -> tuple[bool, Any]:
    """True and 1 are equal, and different names."""
    hash(name)
    return isinstance(name, bool | np.bool_), name


def place_of_each(
    names: Sequence[Any], wanted: Sequence[Any], fold: Callable[[str], str] = str
) -> list[int] | None:
    """The position of each wanted name among ``names``, if both are the same names; else None."""
    if len(names) != len(wanted):
        return None
    place = {fold(text_of(name)): j for j, name in enumerate(names)}
    order = [place.get(fold(text_of(name)), -1) for name in wanted]
    return order if Counter(order) == Counter(range(len(names))) else None
