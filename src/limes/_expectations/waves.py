"""Exponentials e^{z f(x)} of a function of one column, with real or complex z: what products are made of.

Where f is constant between breaks an integral is a sum over the pieces. Elsewhere all exponentials share the
points of a quadrature that resolves the fastest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Ints
from limes._functions import Density, Function, texture
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Marginal
from limes.exceptions import ModelError
from limes.models.forms._links import Complexes

_TINY = 1e-250


@dataclass(frozen=True, eq=False)
class Waves:
    """e^{z_n f(x) - offset_n} for N nodes z, f = loading · functions; loading (m,), offsets (N,).

    The first ``equidistant`` nodes are a constant step apart, and have one offset.
    """

    function: Function
    loading: Floats
    nodes: Complexes
    offsets: Floats
    equidistant: int = 0

    def __call__(self, x: Floats) -> Complexes:
        return self.of(self.loading @ self.function(x))

    def of(self, value: Floats) -> Complexes:
        """The exponentials of values of f, (n,) -> (N, n)."""
        count = max(self.equidistant, 1)
        waves = np.empty((self.nodes.size, value.size), dtype=np.complex128)
        if not self.nodes.size:
            return waves
        waves[0] = np.exp(self.nodes[0] * value - self.offsets[0])
        if count > 1:
            ratio, filled = np.exp((self.nodes[1] - self.nodes[0]) * value), 1
            while filled < count:
                more = min(filled, count - filled)
                np.multiply(waves[:more], ratio, out=waves[filled : filled + more])
                ratio, filled = ratio * ratio, filled + more
        waves[count:] = np.exp(np.multiply.outer(self.nodes[count:], value) - self.offsets[count:, None])
        return waves

    def integrate(self, density: Density) -> Complexes:
        """Integrate against P measures -> (N, P)."""
        return WaveBundle((self,)).integrate(density)

    def fastest(self, value: Floats) -> Floats:
        """The exponentials that turn and grow fastest, as real functions, (n,) -> (m, n)."""
        if not self.nodes.size:
            return np.zeros((0, value.size))
        extremes = {
            int(pick(part)) for part in (self.nodes.real, self.nodes.imag) for pick in (np.argmin, np.argmax)
        }
        chosen = sorted(extremes)
        waves = np.exp(np.multiply.outer(self.nodes[chosen], value) - self.offsets[chosen, None])
        # below a float64 nothing has digits: there is nothing to resolve
        return np.concatenate([waves.real, waves.imag]) + _TINY

    @property
    def speed(self) -> float:
        """The largest |z| times the size of the loading."""
        return float(np.abs(self.nodes).max(initial=0.0) * np.abs(self.loading).max())


@dataclass(frozen=True, eq=False)
class WaveBundle:
    """Waves of several loadings of the same functions, one after the other: they share their quadrature."""

    waves: tuple[Waves, ...]

    @property
    def function(self) -> Function:
        """The functions."""
        return self.waves[0].function

    def __call__(self, x: Floats) -> Complexes:
        values = self.function(x)
        return np.concatenate([waves.of(waves.loading @ values) for waves in self.waves])

    def integrate(self, density: Density) -> Complexes:
        """Integrate against P measures -> (N, P)."""
        breaks, constant, panels = texture(self.function)
        whole = self.function.integrate(density)  # raises where a lookup meets a density
        if constant:
            ends = np.concatenate([[-np.inf], breaks, [np.inf]])
            return np.asarray(self(ends[1:]) @ density.interval(ends[:-1], ends[1:]))
        if not any(waves.nodes.size for waves in self.waves):
            return np.zeros((0, whole.shape[1]), dtype=np.complex128)
        piece, x, weight = density.points(self._fastest, breaks, panels)
        values = self.function(x)
        first = np.searchsorted(piece, np.arange(whole.shape[1] + 1))

        def sums(waves: Waves) -> Complexes:
            terms = waves.of(waves.loading @ values) * weight
            added = np.add.reduceat(terms, np.minimum(first[:-1], piece.size - 1), axis=1)
            return np.where(first[:-1] < first[1:], added, 0.0)

        return np.concatenate([sums(waves) for waves in self.waves])

    def _fastest(self, x: Floats) -> Floats:
        values, waves = self.function(x), self.waves
        if len(values) == 1:
            # of one function the steepest loading is the fastest
            waves = (max(waves, key=lambda each: each.speed),)
        return np.concatenate([each.fastest(each.loading @ values) for each in waves])


@dataclass(frozen=True, eq=False)
class PlaneWaves:
    """e^{level(x) - offset + i (t₁ a(x) + t₂ b(x))} at N nodes (t₁, t₂) of a grid, where a law is.

    Attributes
    ----------
    function
        m functions of the column.
    loading
        (m, 3): level, a and b as sums of these.
    heights
        t₁ and t₂, (K₁,) and (K₂,).
    first, second
        Positions of each node's heights, (N,).
    offset
        Approximately the largest level.
    """

    function: Function
    loading: Floats
    heights: tuple[Floats, Floats]
    first: Ints
    second: Ints
    offset: float

    def __call__(self, x: Floats) -> Complexes:
        along, across = self._factors(x, *self.heights)
        return np.asarray(along[self.first] * across[self.second])

    def integrate(self, density: Density) -> Complexes:
        """Integrate against P measures -> (N, P): the grid is a product of two matrices."""
        breaks, constant, panels = texture(self.function)
        count = self.function.integrate(density).shape[1]  # raises where a lookup meets a density
        if constant:
            ends = np.concatenate([[-np.inf], breaks, [np.inf]])
            points, weights = [ends[1:]] * count, list(density.interval(ends[:-1], ends[1:]).T)
        else:
            piece, x, weight = density.points(self._fastest, breaks, panels)
            ends = np.searchsorted(piece, np.arange(1, count))
            points, weights = np.split(x, ends), np.split(weight, ends)
        sums = [self._sums(x, weight) for x, weight in zip(points, weights, strict=True)]
        return np.stack(sums, axis=1)

    def _sums(self, x: Floats, weight: Floats) -> Complexes:
        along, across = self._factors(x, *self.heights)
        return np.asarray(((along * weight) @ across.T)[self.first, self.second])

    def _factors(self, x: Floats, first: Floats, second: Floats) -> tuple[Complexes, Complexes]:
        """The waves of a, with the level, and those of b, (K₁, n) and (K₂, n)."""
        level, a, b = self.loading.T @ self.function(x)
        along = np.exp(1j * np.multiply.outer(first, a) + (level - self.offset))
        return along, np.exp(1j * np.multiply.outer(second, b))

    def _fastest(self, x: Floats) -> Floats:
        """The waves at the corners of the hexagon that the nodes fill, as real functions."""
        high = self.heights[0].max()
        along, across = self._factors(x, np.array([high, high, 0.0]), np.array([0.0, -high, high]))
        waves = along * across
        return np.concatenate([waves.real, waves.imag]) + _TINY


def extent(marginal: Marginal, function: Function, loading: Floats) -> tuple[Floats, Floats]:
    """The least and largest values of loading (m, K) times functions in the law's support, slightly widened.

    Raises
    ------
    ModelError
        If a value is not finite somewhere.
    """
    values = np.concatenate([loading.T @ function(x) for x in _support(marginal, function)], axis=1)
    if not np.isfinite(values).all():
        raise ModelError("the margin has no finite value somewhere under the background's law")
    lower, upper = values.min(axis=1), values.max(axis=1)
    # a curve may rise higher between two points
    slack = 0.01 * (upper - lower)
    return lower - slack, upper + slack


def _support(marginal: Marginal, function: Function) -> list[Floats]:
    breaks, constant, panels = texture(function)
    points = []
    for measure in marginal.measures:
        if not isinstance(measure, GaussianPieces):
            points.append(measure.value[measure.weight > 0])
        elif constant:
            ends = np.concatenate([[-np.inf], breaks, [np.inf]])
            points.append(ends[1:][(measure.interval(ends[:-1], ends[1:]) > 0).any(axis=1)])
        else:
            _, inside, _ = measure.points(function, breaks, panels)
            points += [inside, *(measure.anchor + measure.scale * side for side in measure.reach)]
    return points
