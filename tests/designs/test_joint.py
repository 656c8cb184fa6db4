"""The joint law: weights and moments of the background's own rows, against plain sums over them."""

import numpy as np
import pytest

from internals import BinWeights, JointFamily, ProductFamily, binned, categorical
from oracle import EXACT


def family(n=300, bandwidth=1.3, seed=0):
    """Four columns: a category that repeats a number's half, and a column that never changes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rows = np.column_stack([x, x + 0.5 * rng.normal(size=n), x > 0, np.ones(n)]).astype(float)
    edges = [np.quantile(rows[:, j], [0, 0.25, 0.5, 0.75, 1]) for j in (0, 1)]
    marginals = (*(binned(rows[:, j], edges[j]) for j in (0, 1)), *(categorical(rows[:, j]) for j in (2, 3)))
    return JointFamily(ProductFamily(marginals, BinWeights(bandwidth)), rows)


@pytest.mark.parametrize("bandwidth", [0.4, 1.3, np.inf])
def test_moments_are_plain_weighted_sums(bandwidth):
    joint = family(bandwidth=bandwidth)
    row = joint.rows[5]
    cells = joint.cells(joint.rows)
    z = (cells == cells[5]).astype(float)
    raw = np.array([np.exp(-(4 - kept) / (2 * bandwidth**2)) for kept in z.sum(axis=1)])
    w = raw / raw.sum()
    design = joint.at(row)
    alpha = sum(w[i] * z[i] for i in range(len(z)))
    sigma = sum(w[i] * np.outer(z[i] - alpha, z[i] - alpha) for i in range(len(z)))
    np.testing.assert_allclose(design.inclusion, alpha, rtol=EXACT)
    np.testing.assert_allclose(design.sigma, sigma, rtol=EXACT, atol=1e-15)
    assert design.log_weight == pytest.approx(np.log(raw.mean()), rel=EXACT)
    assert joint.around(cells[5]).effective == pytest.approx(raw.sum() ** 2 / (raw**2).sum(), rel=EXACT)


def test_a_narrow_bandwidth_counts_the_nearest_rows_alone():
    joint = family(bandwidth=1e-3)
    rows = joint.around(np.array([0, 3, 1, 0]))  # no row has these cells
    changed = 4 - rows.z.sum(axis=1)
    assert changed.min() > 0
    np.testing.assert_array_equal(rows.weights > 0, changed == changed.min())
    assert np.isfinite(rows.log_weight)


def test_solve_is_the_pseudoinverse_and_gamma_its_inverse_where_features_vary():
    design = family().at(family().rows[0])
    values = np.random.default_rng(1).normal(size=(4, 2))
    np.testing.assert_allclose(design.solve(values), np.linalg.pinv(design.sigma) @ values, atol=1e-10)
    coef = design.solve(values)
    np.testing.assert_allclose(design.solve(design.gamma(coef)), coef, atol=1e-10)
    assert coef[3].tolist() == [0.0, 0.0]
    assert not design.collinear.any()


def test_columns_that_change_together_are_collinear():
    joint = family()
    rows = joint.rows.copy()
    rows[:, 3] = rows[:, 2]
    marginals = (*joint.marginals[:3], joint.marginals[2])
    twice = JointFamily(ProductFamily(marginals, BinWeights(1.0)), rows)
    design = twice.at(rows[0])
    assert design.collinear.tolist() == [False, False, True, True]
    coef = design.solve(design.gamma(np.array([1.0, 2.0, 3.0, 1.0])))
    np.testing.assert_allclose(coef, [1.0, 2.0, 2.0, 2.0], rtol=EXACT)


def test_functions_of_the_matrix():
    design = family().at(family().rows[0])
    shifted = design.spectral(lambda sizes: 1.0 / (sizes + 2.0), np.ones(4))
    np.testing.assert_allclose(shifted, np.linalg.solve(design.sigma + 2.0 * np.eye(4), np.ones(4)))
    largest = design.largest(lambda sizes: sizes)
    assert largest[:3] == pytest.approx([np.linalg.eigvalsh(design.sigma)[-1]] * 3)
    assert largest[3] == 0.0
