"""Quadrature of one-dimensional functions against Gaussian pieces: Gauss-Legendre on panels that are halved.

All panels of all pieces are evaluated in one call of the function. A panel is done when its rule agrees with
the rule on its two halves; the others are replaced by their halves. A function that is smooth between its
breaks is done after two or three rounds, however many breaks there are; one that bends or jumps elsewhere
costs a round for each binary digit of the place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.exceptions import InputError

# Asked of each panel and demanded of the sum, relative to ∫ |function|: the second is one digit more than
# what is promised to users.
_ASKED, _DEMANDED = 1e-13, 1e-10
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
# Panels on each side of an anchor to begin with, rounds of halving, and panels before it gives up
_FIRST, _ROUNDS, _MOST_PANELS = 4, 60, 20_000
# Values of functions computed at once: 32 MB of float64
_BLOCK = 4_000_000


class Pieces(Protocol):
    """What is asked of ``GaussianPieces``; all arrays are (P,).

    In steps t = (x - anchor) / scale a density is weight / area · exp(-slope t - precision t² / 2), on its
    reach.
    """

    @property
    def anchor(self) -> Floats: ...
    @property
    def slope(self) -> Floats: ...
    @property
    def precision(self) -> Floats: ...
    @property
    def weight(self) -> Floats: ...
    @property
    def scale(self) -> Floats: ...
    @property
    def area(self) -> Floats: ...
    @property
    def reach(self) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True, eq=False)
class _Panels:
    """K intervals [start, end] in steps of their pieces, and the integrals over them, (m, K)."""

    piece: Ints
    start: Floats
    end: Floats
    value: Floats
    size: Floats

    def pick(self, chosen: Bools) -> _Panels:
        return _Panels(
            self.piece[chosen],
            self.start[chosen],
            self.end[chosen],
            self.value[:, chosen],
            self.size[:, chosen],
        )


def integrals(
    pieces: Pieces,
    shape: Callable[[Floats], Floats],
    breaks: Sequence[float] | Floats,
    centred: tuple[Floats, float] | None = None,
) -> Floats:
    """∫ shape(x) [(x - origin) / unit] d(piece), (m, P).

    Parameters
    ----------
    pieces
        P pieces.
    shape
        (n,) -> (n,) for one function, (m, n) for m.
    breaks
        Points where a function may jump or bend.
    centred
        (origin (P,), unit) where the factor in brackets is wanted.

    Raises
    ------
    InputError
        If a function is not finite somewhere, or could not be integrated.
    """
    rule = _Rule(pieces, shape, centred)
    pending = rule.panels(*_first_panels(pieces, np.asarray(breaks, dtype=np.float64)))
    count, looked_at = pieces.anchor.size, pending.piece.size
    value, size, error = (np.zeros((len(pending.value), count)) for _ in range(3))
    for _ in range(_ROUNDS):
        halves = rule.halves(pending)
        looked_at += halves.piece.size
        difference = np.abs(pending.value - _pairs(halves.value))
        whole = size + _by_piece(halves.piece, halves.size, count)
        done: Bools = np.asarray((difference <= _ASKED * whole[:, pending.piece]).all(axis=0))
        if looked_at > _MOST_PANELS + 8 * len(breaks) * count:
            done = np.ones_like(done)
        closed = halves.pick(np.repeat(done, 2))
        value += _by_piece(closed.piece, closed.value, count)
        size += _by_piece(closed.piece, closed.size, count)
        error += _by_piece(pending.piece[done], difference[:, done], count)
        pending = halves.pick(np.repeat(~done, 2))
        if pending.piece.size == 0:
            break
    value += _by_piece(pending.piece, pending.value, count)
    error += _by_piece(pending.piece, np.abs(pending.value), count)
    bad = np.flatnonzero((error > _DEMANDED * size).any(axis=0))
    if bad.size:
        raise InputError(
            f"a one-dimensional function could not be integrated to {_DEMANDED:g} {_where(pieces, bad[0])}; "
            "pass breaks= with the points where it jumps or bends"
        )
    return np.asarray(value * (pieces.weight / pieces.area))


@dataclass(frozen=True, eq=False)
class _Rule:
    """Gauss-Legendre sums of the functions times the density, which is 1 at the anchor."""

    pieces: Pieces
    shape: Callable[[Floats], Floats]
    centred: tuple[Floats, float] | None

    def panels(self, piece: Ints, start: Floats, end: Floats) -> _Panels:
        step, found = piece.size, []
        first = 0
        while first < piece.size:
            block = slice(first, first + step)
            found.append(self._sums(piece[block], start[block], end[block]))
            step = max(1, _BLOCK // (_NODES.size * len(found[0][0])))
            first = block.stop
        value, size = (np.concatenate(each, axis=1) for each in zip(*found, strict=True))
        return _Panels(piece, start, end, value, size)

    def halves(self, panels: _Panels) -> _Panels:
        """Both halves of every panel, side by side."""
        middle = 0.5 * (panels.start + panels.end)
        start, end = np.stack([panels.start, middle], axis=1), np.stack([middle, panels.end], axis=1)
        return self.panels(np.repeat(panels.piece, 2), start.ravel(), end.ravel())

    def _sums(self, piece: Ints, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        p = self.pieces
        half = 0.5 * (end - start)[:, None]
        t = start[:, None] + half * (1.0 + _NODES)
        factor = half * _NODE_WEIGHTS
        factor = factor * np.exp(-t * (p.slope[piece][:, None] + 0.5 * p.precision[piece][:, None] * t))
        if self.centred is not None:
            origin, unit = self.centred
            shift, length = (p.anchor - origin) / unit, p.scale / unit
            factor = factor * (t * length[piece][:, None] + shift[piece][:, None])
        x = p.anchor[piece][:, None] + p.scale[piece][:, None] * t
        values = np.asarray(self.shape(x.ravel()), dtype=np.float64).reshape(-1, *x.shape)
        terms = values * factor
        if not np.isfinite(terms).all():
            bad = piece[~np.isfinite(terms).all(axis=(0, 2))]
            raise InputError(f"a one-dimensional function is not finite somewhere {_where(p, bad[0])}")
        return terms.sum(axis=2), np.abs(terms).sum(axis=2)


def _first_panels(pieces: Pieces, breaks: Floats) -> tuple[Ints, Floats, Floats]:
    """Between the breaks inside each piece's reach, and at least so many on each side of its anchor."""
    left, right = (side[:, None] for side in pieces.reach)
    share = np.linspace(0.0, 1.0, _FIRST + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = (breaks[None, :] - pieces.anchor[:, None]) / pieces.scale[:, None]
    ends = np.concatenate([left * share, right * share, np.clip(inside, left, right)], axis=1)
    ends.sort(axis=1)
    piece, place = np.nonzero(ends[:, :-1] < ends[:, 1:])
    return piece, ends[piece, place], ends[piece, place + 1]


def _pairs(values: Floats) -> Floats:
    return np.asarray(values[:, 0::2] + values[:, 1::2])


def _by_piece(piece: Ints, values: Floats, count: int) -> Floats:
    """Sums over the panels of each piece: (m, K) -> (m, P)."""
    found = np.zeros((count, len(values)))
    np.add.at(found, piece, values.T)
    return found.T


def _where(pieces: Pieces, piece: int) -> str:
    start, end = (pieces.anchor[piece] + pieces.scale[piece] * side[piece] for side in pieces.reach)
    return f"on [{start:.6g}, {end:.6g}]"
