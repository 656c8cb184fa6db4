"""Where the functions of one user column live together: on finitely many values, or on the line in pieces.

An encoder that refuses what it does not know leaves its column those values only that it knows; whatever
else reads the column is then looked at there. An encoder that lets unknown values pass is a step function
wherever something else reads the same column as a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from limes._arrays import Floats
from limes.functions import Function, Lookup, Step
from limes.models.folding.feature_maps import Column
from limes.models.folding.kinds import FeatureMap, Finite, Pieces
from limes.models.folding.values import numbers
from limes.models.read import CannotRead

_NAN = np.array([np.nan])


def on_common_domains(columns: Sequence[Column]) -> list[Column]:
    """The same columns, those of one source either all ``Finite`` over the same keys, or none."""
    sources: dict[int, list[FeatureMap]] = {}
    for column in columns:
        sources.setdefault(column.source, []).append(column.map)
    keys = {source: _common_keys(maps) for source, maps in sources.items()}
    closed = {source: any(_is_closed(m) for m in maps) for source, maps in sources.items()}
    return [
        replace(column, map=_moved(column.map, keys[column.source], closed=closed[column.source]))
        for column in columns
    ]


def _is_closed(track: FeatureMap) -> bool:
    return isinstance(track, Finite) and track.closed


def _common_keys(maps: Sequence[FeatureMap]) -> Floats | None:
    """The values of a source, None if it lives on the line."""
    closed = [track.keys for track in maps if isinstance(track, Finite) and track.closed]
    if closed:
        keys = reduce(np.intersect1d, closed)
        if keys.size == 0:
            raise CannotRead("two encoders of one column share no category: there is no value that both know")
        return keys
    found = [track.keys for track in maps if isinstance(track, Finite)]
    return reduce(np.union1d, found) if len(found) == len(maps) else None


def _moved(track: FeatureMap, keys: Floats | None, *, closed: bool) -> FeatureMap:
    if keys is None:
        return _in_pieces(track) if isinstance(track, Finite) else track
    if isinstance(track, Finite) and np.array_equal(track.keys, keys) and track.closed == closed:
        return track
    other = [np.nan] if closed or not isinstance(track, Finite) else numbers(track.values[-2:-1])
    return Finite(keys, np.concatenate([numbers(track(keys)), other, numbers(track(_NAN))]), closed)


def _in_pieces(track: Finite) -> Pieces:
    """Each key is a piece as narrow as a number."""
    cuts = np.unique(np.concatenate([np.nextafter(track.keys, -np.inf), track.keys]))
    return Pieces(cuts, numbers(track(np.append(cuts, np.inf))), float(numbers(track.values[-1:])[0]))


@dataclass(frozen=True, eq=False)
class Grid:
    """The places of one source that tell everything about functions that live on values or in pieces.

    ``places`` is (P,): the keys, and a stand-in (None among them) for any other value; or a point of each
    piece. A missing value comes last, at P.
    """

    ends: Floats
    maps: Sequence[FeatureMap]

    @classmethod
    def of(cls, maps: Sequence[FeatureMap]) -> Grid:
        """Of maps of one source, after ``on_common_domains``; none of them ``Monotone``."""
        first = maps[0]
        if isinstance(first, Finite):
            return cls(first.keys, maps)
        cuts = [track.cuts for track in maps if isinstance(track, Pieces)]
        return cls(np.unique(np.concatenate(cuts)), maps)

    def values(self, track: FeatureMap) -> Floats:
        """φ at every place, (P + 1,)."""
        if isinstance(track, Finite):
            return numbers(track.values)
        return numbers(track(np.concatenate([self.ends, [np.inf, np.nan]])))

    def function(self, table: Floats) -> Function:
        """The functions that have the values (m, P + 1) there."""
        first = self.maps[0]
        if not isinstance(first, Finite):
            return Step(self.ends, table[:, :-1], table[:, -1])
        other = np.full(len(table), np.nan) if first.closed else table[:, -2]
        return Lookup(self.ends, table[:, :-2], table[:, -1], other)
