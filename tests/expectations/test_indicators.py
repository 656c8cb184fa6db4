"""Sums over a pool's indicators: the compiled ones against the plain ones, which are products of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests import oracle

from limes._expectations.indicators import indicators


@dataclass(frozen=True, eq=False)
class PlainIndicators:
    """The sums as products of the matrix z, (n, d)."""

    z: np.ndarray

    @property
    def kept(self):
        return np.asarray(self.z.sum(axis=1), dtype=np.int64)

    def sums(self, values, parts=1):
        split = self._parts(values, parts)
        return self._parts(self.z, parts).transpose(0, 2, 1) @ split, split.sum(axis=1, keepdims=True)

    def products(self, coef):
        return self.z @ coef

    def gram(self, weights, parts=1):
        return self.sums(weights[:, None] * self.z, parts)[0]

    @staticmethod
    def _parts(rows, parts):
        return rows.reshape(parts, len(rows) // parts, rows.shape[1])


@pytest.mark.parametrize("d", [1, 23, 100])
@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
def test_compiled_sums_are_the_plain_ones(d, kind):
    rng = np.random.default_rng(d)
    cells = rng.choice(4, p=[0.7, 0.1, 0.1, 0.1], size=(64, d)).astype(kind)
    instance = rng.integers(4, size=d)
    z = (cells == instance).astype(np.float64)
    plain, compiled = PlainIndicators(z), indicators(cells, instance, z.mean(axis=0))
    assert compiled.usual.any() or d == 1
    values, coef, weights = rng.normal(size=(64, 3)), rng.normal(size=(d, 2)), rng.random(64)
    assert np.array_equal(compiled.kept, plain.kept)
    assert oracle.error(compiled.products(coef), plain.products(coef)) < oracle.EXACT
    for parts in (1, 4):
        for found, expected in zip(compiled.sums(values, parts), plain.sums(values, parts), strict=True):
            assert oracle.error(found, expected) < oracle.EXACT
        assert oracle.error(compiled.gram(weights, parts), plain.gram(weights, parts)) < oracle.EXACT


def test_plain_sums_are_their_definition():
    z = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    plain = PlainIndicators(z)
    assert plain.kept.tolist() == [1, 2, 1, 0]
    inside, total = plain.sums(np.array([[1.0], [2.0], [4.0], [8.0]]), 2)
    assert inside.tolist() == [[[3.0], [2.0]], [[0.0], [4.0]]]
    assert total.tolist() == [[[3.0]], [[12.0]]]
    assert plain.products(np.array([[3.0], [5.0]])).tolist() == [[3.0], [8.0], [5.0], [0.0]]
    assert plain.gram(np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [[[3.0, 2.0], [2.0, 6.0]]]
