"""Where a rising function passes a level: the last float64 before it does, found by halving.

Halving goes over the numbers themselves in their order, 64 steps from end to end, and asks the function as it
is computed; so it ends at the very number, whatever was rounded on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models.read import CannotRead

_LARGEST = float(np.finfo(np.float64).max)
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
# Beside a cut so many neighbouring numbers are looked at, and the outer ones must be as expected.
_NEAR, _MARGIN = 48, 16

# (x, levels) -> whether x still lies before the passage of its level
Passed = Callable[[Floats, Floats], Bools]


def passages(
    before: Passed, levels: Floats, *, start: float = -np.inf, trembling: bool = False
) -> tuple[Floats, dict[int, Floats]]:
    """The last x before each level is passed; ±inf where it never is, or always was.

    Parameters
    ----------
    before
        (x, levels) -> bools: True for small x and False for large.
    levels
        (m,).
    start
        The smallest x.
    trembling
        Logarithms, powers and ranks are computed to a last digit that need not rise with x: look at the
        neighbours of each cut.

    Returns
    -------
    cuts, ragged
        (m,); and for levels that are passed back and forth, by place, all cuts: an odd number.

    Raises
    ------
    CannotRead
        If a level is passed back and forth further than a few last digits.
    """
    levels = np.asarray(levels, dtype=np.float64)
    first = _key_of(np.full(levels.shape, max(start, -_LARGEST)))
    last = _key_of(np.full(levels.shape, _LARGEST))
    none, all_ = ~before(_float_of(first), levels), before(_float_of(last), levels)
    low, high = first, last
    while (low + 1 < high).any():
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, without overflow
        here = before(_float_of(middle), levels)
        low, high = np.where(here, middle, low), np.where(here, high, middle)
    cuts = np.where(all_, np.inf, np.where(none, -np.inf, _float_of(low)))
    inside = np.flatnonzero(~none & ~all_ & (low > first + _NEAR) & (low < last - _NEAR))
    if not trembling or inside.size == 0:
        return cuts, {}
    return cuts, _ragged(before, inside, low[inside], levels[inside])


def _ragged(before: Passed, places: Ints, low: Ints, levels: Floats) -> dict[int, Floats]:
    """Look at the neighbours of cuts, one by one."""
    window = np.arange(-_NEAR, _NEAR + 1)
    keys = low[:, None] + window
    found = before(_float_of(keys.reshape(-1)), np.repeat(levels, window.size)).reshape(keys.shape)
    odd = np.flatnonzero((found != (window <= 0)).any(axis=1))
    if odd.size and (found[odd, -_MARGIN:].any() or not found[odd, :_MARGIN].all()):
        raise CannotRead("it is not monotone; use StandardScaler, or no scaler at all, in front of trees")
    turns = {int(i): np.flatnonzero(found[i, 1:] != found[i, :-1]) for i in odd}
    return {int(places[i]): _float_of(keys[i, at]) for i, at in turns.items()}


def _key_of(x: Floats) -> Ints:
    """Whole numbers in the order of the floats, neighbours one apart."""
    bits = np.asarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & _MAGNITUDE))


def _float_of(key: Ints) -> Floats:
    magnitude = np.abs(key).view(np.float64)
    return np.where(key >= 0, magnitude, -magnitude)
