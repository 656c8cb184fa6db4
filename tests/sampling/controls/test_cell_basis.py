"""Functions of cells: their values one by one, and their moments under the background's law."""

from __future__ import annotations

import numpy as np
import pytest

from internals import CellBasis, ProductFamily, binned, categorical, named_weights
from oracle import EXACT


def family():
    rng = np.random.default_rng(0)
    number, word = 1e3 * rng.gamma(2.0, size=500), rng.integers(3, size=500).astype(float)
    number[:40] = np.nan
    laws = binned(number, np.nanquantile(number, [0, 0.3, 0.6, 1])), categorical(word)
    return ProductFamily(laws, named_weights("bins", 1.0))


def test_values_are_effects_and_slopes_of_the_cells():
    laws = family()
    x, cells = laws.draw(np.random.default_rng(1).random((256, 2)))
    cells[:5, 1] = 0
    few = cells.copy()
    few[:, 1] = np.where(np.arange(256) < 5, 2, 1)  # five rows have the last word, none the first
    basis = CellBasis.of(laws.marginals, few)
    number, word = basis.columns
    assert (number.size, word.size) == (4 + 3, 1)  # a missing number has no slope, a rare word no effect
    values = basis(x, cells)
    law = laws.marginals[0]
    for row, cell, its in zip(x, cells, values, strict=True):
        slope = np.zeros(3)
        if np.isfinite(row[0]):
            slope[cell[0]] = (row[0] - law.means[cell[0]]) / law.spreads[cell[0]]
        expected = [*np.eye(4)[cell[0]], *slope, float(cell[1] == 1)]
        np.testing.assert_allclose(its, expected, rtol=EXACT)


def test_statistics_are_those_of_many_rows():
    laws = family()
    x, cells = laws.draw(np.random.default_rng(2).random((1 << 18, 2)))
    basis = CellBasis.of(laws.marginals, cells)
    values, (mean, spread) = basis(x, cells), basis.statistics
    assert values.mean(axis=0) == pytest.approx(mean, abs=5e-3)
    assert values.std(axis=0) == pytest.approx(spread, rel=1e-2)


def test_sums_are_values_times_coefficients():
    laws = family()
    rng = np.random.default_rng(3)
    x, cells = laws.draw(rng.random((300, 2)))
    basis = CellBasis.of(laws.marginals, cells)
    coef = rng.normal(size=(int(basis.ends[-1]), 3))
    np.testing.assert_allclose(basis.sums(x, cells, coef), basis(x, cells) @ coef, rtol=EXACT, atol=EXACT)
