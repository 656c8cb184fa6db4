"""Features that are the same hidden as shown: their place among the others, and their warning.

What is explained is the design without them (``models/_hidden.py``). In the explanation they have a NaN
coefficient with an infinite error, as an effect has that no row informs, and no part of R².
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes._diagnostics.finding import enumerate_names
from limes._explanation.fit import Fit, RowEffects, RowFits, RowPair

# What a feature has that the fit leaves out
_ABSENT = {"values": np.nan, "standard_errors": np.inf, "shares": 0.0, "share_errors": 0.0}
# Features that a warning names
_MOST_NAMED = 5


def explained(changes: Bools) -> Bools:
    """Return the features that the design has: those that hiding changes, or one where none does.

    A design needs a feature. The model is the same with and without that one, so that it changes no number.
    """
    return changes if changes.any() else np.arange(changes.size) == 0


def among_all(fields: Mapping[str, Any], changes: Bools) -> dict[str, Any]:
    """Return fields of an explanation of some features as those of all, (1, d) or (1, d, k)."""
    merged, places = {**fields}, np.flatnonzero(explained(changes))
    for name, absent in _ABSENT.items():
        if fields.get(name) is not None:
            numbers = np.asarray(fields[name])
            merged[name] = np.full((1, changes.size, *numbers.shape[2:]), absent)
            merged[name][:, places] = numbers
            merged[name][:, ~changes] = absent
    merged["fit"] = Fit.of(partial(FitsAmongAll, fields["fit"].make, changes), merged["values"].shape)
    return merged


def identification_warning(names: Sequence[str], changes: Bools, advice: str) -> tuple[str, ...]:
    """Warn of features that are the same hidden as shown."""
    same = [names[j] for j in np.flatnonzero(~changes).tolist()]
    if not same:
        return ()
    one = len(same) == 1
    return (
        f"{enumerate_names(same, _MOST_NAMED)}: the input stays the same when "
        f"{'this feature is' if one else 'these features are'} hidden, so that the "
        f"{'coefficient is' if one else 'coefficients are'} unknown; {advice}",
    )


class FitsAmongAll:
    """The fit of some features, ``make()``, by the positions of all; the others have NaN effects."""

    def __init__(self, make: Callable[[], RowFits], changes: Bools) -> None:
        self._fits, self._changes = make(), changes
        self._places = np.flatnonzero(explained(changes))

    @property
    def has_curves(self) -> bool:
        return self._fits.has_curves

    @property
    def is_quick(self) -> bool:
        return self._fits.is_quick

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        return self._fits.fidelities(rows)

    def additive(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        return self._fits.additive(rows)

    def effects(self, rows: Sequence[int]) -> Callable[[int], RowEffects]:
        effects = self._fits.effects(rows)
        return lambda place: self._among_all(effects(place))

    def _among_all(self, some: RowEffects) -> RowEffects:
        place = {int(j): i for i, j in enumerate(self._places)}
        values, errors, masses, current = [], [], [], []
        shares = np.zeros((self._changes.size, some.shares.shape[1]))
        for j, changes in enumerate(self._changes.tolist()):
            i = place.get(j, 0)
            values.append(some.values[i] if changes else np.full_like(some.values[i], np.nan))
            errors.append(some.errors[i] if changes else np.full_like(some.errors[i], np.inf))
            masses.append(some.masses[i] if changes else np.array([0.0, 1.0]))
            current.append(some.current[i])
            shares[j] = some.shares[i] if changes else 0.0
        return RowEffects(values, errors, masses, current, shares, some.additive, some.additive_errors)

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> list[RowPair]:
        place = {int(j): i for i, j in enumerate(self._places) if self._changes[j]}
        some = self._fits.pairs(row, output, top, [place[j] for j in columns if j in place])
        return [pair._replace(columns=self._pair(*pair.columns)) for pair in some]

    def _pair(self, first: int, second: int) -> tuple[int, int]:
        return int(self._places[first]), int(self._places[second])

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:
        """Return the cells in words, which are the same for all features."""
        del column
        return self._fits.cell_texts(row, 0)
