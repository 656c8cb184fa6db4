"""Where walks begin: rows of the law w around a row, in groups, and the orders in which columns change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.designs._joint import OccurringRows
from limes.designs._marginals import Atoms
from limes.designs._product import ProductDesign

# Slices of a column's law that have a value in a table
_SLICES = 1 << 11


class Omitted(NamedTuple):
    """Rows of a background that were left out, at random, by which means over the others vary."""

    share: float  # of the background
    effective: float  # number of the others
    base: Floats  # variance of the mean of f, (k,)


class Starts(Protocol):
    """The law w that walks begin at."""

    @property
    def omitted(self) -> Omitted | None:
        """Rows that w has beside those that walks begin at."""
        ...

    @property
    def mean(self) -> Floats | None:
        """E_w f (k,), if it is known."""
        ...

    def varies(self, row: Floats) -> Bools:
        """Which columns of z may differ from the explained row's, (d,)."""
        ...

    def drawing(self, size: int, most: int) -> StartSampler:
        """Return what draws rows for groups of ``size`` pairs, of at most ``most`` pairs in all."""
        ...


class DrawnStarts(NamedTuple):
    """Rows z (W, d), and, if they are known, f(z) (W, k) and control variates of mean 0 (W, q).

    The first k controls are the outputs. Rows of a background have their places in it.
    """

    z: Floats
    answers: Floats | None = None
    controls: Floats | None = None
    places: Ints | None = None


class Passes(NamedTuple):
    """Walks that begin at all rows of a background, one pass over it after the other."""

    pairs: int  # of a pass
    # weights are no multiples of a pair: the variance of how often rows are met in a pass, added up
    uneven: float


class StartSampler(NamedTuple):
    draw: Callable[[np.random.Generator, int], DrawnStarts]  # the next rows, of n groups
    passes: Passes | None = None


@dataclass(frozen=True, eq=False)
class ProductStarts:
    """Rows of independent columns."""

    design: ProductDesign
    mean: Floats | None = None

    omitted: ClassVar[None] = None

    def drawing(self, size: int, most: int) -> StartSampler:
        del most  # rows are never all met
        return StartSampler(partial(self._draw, size))

    def _draw(self, size: int, rng: np.random.Generator, groups: int) -> DrawnStarts:
        levels = in_slices(rng, groups, size, self.design.size)
        return DrawnStarts(self.design.draw(levels.reshape(-1, self.design.size))[0])

    def varies(self, row: Floats) -> Bools:
        laws = zip(self.design.laws, row, strict=True)
        return np.array([not all(_is_at(measure, value) for measure in law.measures) for law, value in laws])


@dataclass(frozen=True, eq=False)
class TabulatedStarts:
    """The same from a table (S, d) of values: each column has one in each of S slices of its law.

    Every value follows its law, and many rows take less time. Where the table lies in the slices moves the
    share of values below a threshold by at most half of 1 / S.
    """

    values: Floats
    changing: Bools
    mean: Floats | None

    omitted: ClassVar[None] = None

    @classmethod
    def of(cls, starts: Starts, row: Floats, rng: np.random.Generator) -> Starts:
        if not isinstance(starts, ProductStarts):
            return starts
        d = starts.design.size
        levels = (np.arange(_SLICES)[:, None] + rng.random((_SLICES, d))) / _SLICES
        return cls(starts.design.draw(levels)[0], starts.varies(row), starts.mean)

    def drawing(self, size: int, most: int) -> StartSampler:
        del most
        return StartSampler(partial(self._draw, size))

    def _draw(self, size: int, rng: np.random.Generator, groups: int) -> DrawnStarts:
        d = self.values.shape[1]
        slices = (in_slices(rng, groups, size, d).reshape(-1, d) * _SLICES).astype(np.int64)
        return DrawnStarts(self.values[slices, np.arange(d)])

    def varies(self, row: Floats) -> Bools:
        del row  # that of the table
        return self.changing


def _is_at(measure: Any, value: float) -> bool:
    """Whether a measure has no other point than this value."""
    return isinstance(measure, Atoms) and bool(same(measure.value, np.array(value)).all())


def same(x: Floats, y: Floats) -> Bools:
    """Whether values are equal, or both missing."""
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


@dataclass(frozen=True, eq=False)
class OccurringStarts:
    """Rows of a background with weights, whose answers are known: in the order of these, a slice each."""

    background: Floats  # (N, d)
    answers: Floats  # (N, k)
    around: OccurringRows
    left_out: float = 0.0  # share of the background that these are a part of

    mean: ClassVar[None] = None  # the controls have it

    @property
    def omitted(self) -> Omitted | None:
        if not self.left_out:
            return None
        w, count = self.around.weights, len(self.answers)
        away = w[:, None] * (self.answers - w @ self.answers)
        variance = (away**2).sum(axis=0) * count / max(count - 1, 1)
        return Omitted(self.left_out, self.around.effective, self.left_out * variance)

    @cached_property
    def _controls(self) -> Floats:
        """Answers and columns in units of their deviations, with mean 0, (N, k + d)."""
        numbers, weights = np.column_stack([self.answers, self.background]), self.around.weights
        present = ~np.isnan(numbers)
        mass = weights @ present
        mean = np.divide(
            weights @ np.where(present, numbers, 0.0), mass, out=np.zeros_like(mass), where=mass > 0
        )
        # what is missing is the mean, which moves no mean
        centred = np.where(present, numbers - mean, 0.0)
        deviation = np.sqrt(weights @ centred**2)
        return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))

    def drawing(self, size: int, most: int) -> StartSampler:
        """Draw without replacement: passes over the background, or one that is as long as all walks."""
        weights = self.around.weights / self.around.weights.sum()
        a_pass = size * -(-int(np.count_nonzero(weights)) // size)
        passes = None
        if most >= a_pass:
            share = a_pass * weights % 1.0
            passes = Passes(a_pass, float((share * (1.0 - share)).sum()))
        slices = np.arange(a_pass if passes else size * max(1, most // size)).reshape(size, -1)
        waiting: list[Floats] = []

        def draw(rng: np.random.Generator, groups: int) -> DrawnStarts:
            while len(waiting) < groups:
                # a group has a slice of each part of the background, and a pass has all slices
                within = rng.random() if passes else rng.random(slices.shape)
                waiting.extend(((rng.permuted(slices, axis=1) + within) / slices.size).T)
            levels = np.concatenate(waiting[:groups])
            del waiting[:groups]
            return self._at(levels)

        return StartSampler(draw, passes)

    def _at(self, levels: Floats) -> DrawnStarts:
        # any fixed order is unbiased; the last output is the positive one of two classes
        order = np.argsort(self.answers[:, -1], kind="stable")
        below = np.cumsum(self.around.weights[order])
        # a row without weight ends where it begins, and no level lies there
        places = np.searchsorted(below, levels * below[-1], side="right")
        chosen = order[np.minimum(places, np.flatnonzero(self.around.weights[order])[-1])]
        return DrawnStarts(self.background[chosen], self.answers[chosen], self._controls[chosen], chosen)

    def varies(self, row: Floats) -> Bools:
        return np.asarray(~same(self.background, row).all(axis=0))


def in_slices(rng: np.random.Generator, groups: int, size: int, d: int) -> Floats:
    """Points (groups, size, d) of the unit cube: each column has one in each of ``size`` equal slices."""
    slices = np.broadcast_to(np.arange(size)[:, None], (groups, size, d))
    return np.asarray((rng.permuted(slices, axis=1) + rng.random(slices.shape)) / size)


def latin_orders(rng: np.random.Generator, groups: int, size: int, d: int) -> Ints:
    """Random orders of d columns (groups · size, d); in a group of up to d no column has a place twice."""
    names, turns, shifts = (rng.permuted(np.tile(np.arange(d), (groups, 1)), axis=1) for _ in range(3))
    shifts = shifts[:, np.arange(size) % d]
    square = (shifts[:, :, None] + turns[:, None, :]) % d
    return np.take_along_axis(names[:, None, :], square, axis=2).reshape(-1, d)
