"""Effects of cells and of pairs of cells from weighted rows, against their definitions row by row."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from internals import JointEffects, Total, WeightedRows, largest_pairs, pair_estimate, r_squared


@pytest.fixture
def rows():
    """600 rows of two columns of three cells, their weights and two outputs."""
    rng = np.random.default_rng(7)
    cells = rng.integers(0, 3, (600, 2))
    cells[:, 1] = np.where(rng.random(600) < 0.4, cells[:, 0], cells[:, 1])
    weights = rng.random(600)
    f = np.stack([np.sin(cells @ [1.0, 2.0]), cells[:, 0] * cells[:, 1] * 0.5], axis=1)
    return cells, weights / weights.sum(), f + rng.normal(size=f.shape)


def test_a_pair_under_the_joint_law_is_the_mean_of_residuals_of_effects(rows):
    """The error of a weighted mean r̄ of fixed size: sqrt(Σ w² (r - r̄)²) / Σ w over the cell's rows."""
    cells, weights, f = rows
    indicators = np.concatenate([cells[:, [j]] == np.arange(3) for j in range(2)], axis=1)
    root = np.sqrt(weights)[:, None]
    x = np.column_stack([np.ones(len(f)), indicators])
    rest = f - x @ np.linalg.lstsq(root * x, root * f, rcond=None)[0]
    pair = JointEffects(cells, (3, 3), weights, f).pair(0, 1)
    for p, q in np.ndindex(3, 3):
        inside = (cells == (p, q)).all(axis=1)
        w, r = weights[inside][:, None], rest[inside]
        mean = (w * r).sum(axis=0) / w.sum()
        error = np.sqrt((w**2 * (r - mean) ** 2).sum(axis=0)) / w.sum()
        np.testing.assert_allclose(pair.values[p, q], mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(pair.errors[p, q], error, rtol=1e-9)
        assert pair.masses[p, q] == pytest.approx(w.sum(), rel=oracle.EXACT)


def test_a_pair_of_cells_without_an_error_adds_nothing_to_the_share(rows):
    """The share is Σ P_w(cell) (mean² - error²) / Var_w f over the cells with enough rows."""
    cells, weights, f = rows
    few = (cells == (2, 2)).all(axis=1)
    weights = np.where(few & (np.cumsum(few) > 4), 0.0, weights)
    weights = weights / weights.sum()
    f = f + 2.0 * (cells == 0).all(axis=1, keepdims=True)
    pair = JointEffects(cells, (3, 3), weights, f).pair(0, 1)
    errors = pair.errors[np.isfinite(pair.errors)].reshape(8, 2)
    assert np.isinf(pair.errors[2, 2]).all()
    squares = pair.values.reshape(9, 2)[:8] ** 2 - errors**2
    variance = weights @ (f - weights @ f) ** 2
    np.testing.assert_allclose(pair.share, pair.masses.ravel()[:8] @ squares / variance, rtol=oracle.EXACT)


def test_a_pair_of_cells_with_few_rows_is_unknown(rows):
    cells, weights, f = rows
    few = (cells == (2, 2)).all(axis=1)
    weights = np.where(few & (np.cumsum(few) > 4), 0.0, weights)
    drawn = WeightedRows(np.zeros((2, 600)), f, weights / weights.sum(), cells=cells.T)
    masses = (np.full(3, 1 / 3), np.full(3, 1 / 3))
    estimate = pair_estimate(drawn, f, masses, (0, 1), Total(np.ones(2), np.zeros(2)))
    raw = np.zeros((3, 3, 2))
    for p, q in np.ndindex(3, 3):
        inside = (cells == (p, q)).all(axis=1)
        if (p, q) != (2, 2):
            raw[p, q] = np.average(f[inside], axis=0, weights=weights[inside])
    alone = raw - raw.mean(axis=0) - raw.mean(axis=1)[:, None] + raw.mean(axis=(0, 1))
    alone[2, 2] = np.nan
    np.testing.assert_allclose(estimate.values, alone, rtol=1e-9, atol=1e-12)
    assert np.isinf(estimate.errors[2, 2]).all()
    assert np.isfinite(estimate.errors[:2]).all()
    # it may be as large as the answers' range, and moves the others and the share by as much
    assert (estimate.errors[1, 2] > np.ptp(f, axis=0) / 9).all()
    assert (estimate.share_error > np.ptp(f, axis=0) ** 2 / 9).all()


@pytest.mark.parametrize(("spread", "varies"), [(1e-8, True), (1e-3, False)])
def test_r_squared_is_1_where_f_varies_by_rounding_alone(spread, varies):
    """Answers near 1e12 are rounded to about 1e-4; those near 1 to 1e-16."""
    size = np.array([1.0 if varies else 1e12])
    variance = np.array([spread**2])
    value, error = r_squared(0.25 * variance, variance, size, 0.1 * variance)
    assert value[0] == pytest.approx(0.25 if varies else 1.0, rel=oracle.EXACT)
    assert error[0] == pytest.approx(0.025 if varies else 0.0, rel=oracle.EXACT)


def test_the_share_of_a_pair_is_corrected_for_noise_and_its_error_is_its_spread():
    """c z_0 z_1 less its sum of single features, beside noise: variances over repeated samples."""
    rng, c, m = np.random.default_rng(11), 0.7, 100
    masses = np.full((2, 2), 0.25)
    shares, errors = [], []
    for _ in range(2000):
        z = rng.integers(0, 2, (2, m)).astype(float)
        rest = c * (z[0] - 0.5) * (z[1] - 0.5) + rng.normal(scale=0.5, size=m)
        rows = WeightedRows(z, rest[:, None], np.full(m, 1 / m))
        (pair,) = largest_pairs(rows, rest, masses, 1, [0, 1], Total(np.ones(1), np.zeros(1)), exact=False)
        shares.append(pair.share[0])
        errors.append(pair.share_error[0])
    assert np.mean(shares) == pytest.approx(c**2 / 16, rel=0.05)
    # the pair's size stands in its own error, and is too large by noise
    assert np.std(shares) < np.sqrt(np.mean(np.square(errors))) < 1.2 * np.std(shares)
