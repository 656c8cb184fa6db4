"""Least squares on a pool's rows: against plain least squares of the whole matrix, with errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, t
from tests import oracle

from internals import (
    AnswerStatistics,
    CellMoments,
    ControlMoments,
    ExplainedRows,
    NormalEquations,
    PoolSample,
    ProductFamily,
    binned,
    categorical,
    cell_codes,
    least_squares_of_pool,
    named_weights,
)

D, ROWS, SEQUENCES = 6, 2048, 8
EXACT = 1e-9
UNSEEN = (3 / 1.96) ** 2


def family(bandwidth=1.2):
    rng = np.random.default_rng(0)
    laws = [binned(x, np.quantile(x, [0, 0.25, 0.5, 0.75, 1])) for x in rng.normal(size=(D - 2, 300))]
    laws += [
        categorical(rng.choice([0.0, 1.0, 2.0], 300, p=[0.7, 0.2, 0.1])),
        categorical(np.repeat([0.0, 1.0], [1199, 1])),
    ]
    return ProductFamily(tuple(laws), named_weights("bins", bandwidth))


def drawn(laws, outputs, parts):
    """A pool of a noisy function, and moments of controls."""
    rng = np.random.default_rng(1)
    x, cells = laws.draw(rng.random((ROWS, D)))
    f = np.stack([np.sin(x[:, 0] + k) * x[:, 1] + (x[:, 4] == 1) for k in range(outputs)], axis=1)
    residuals = f - 0.5 * x[:, :1] + 0.1 * rng.normal(size=f.shape)
    instances = laws.cells(x[:5])
    shapes = (5, outputs), (5, D, outputs), (5, 1 + D, outputs)
    controls = [ControlMoments(*(rng.normal(size=shape) / 50 for shape in shapes)) for _ in range(parts)]
    sample = PoolSample(np.ascontiguousarray(cell_codes(laws, cells).T), f, residuals, SEQUENCES)
    return sample, ExplainedRows(laws, instances), controls


class PlainFit:
    """Least squares around one explained row with all influences, and the sandwich estimator's parts."""

    def __init__(self, sample, design, controls):
        n, (f, r) = len(sample.answers), (sample.answers, sample.residuals)
        z = (design.cells == sample.cells.T).astype(float)
        w = design.family.weights.ratio ** (D - z.sum(axis=1)) / np.exp(design.log_weight)
        sizes = [(w[side].sum() ** 2 / (w[side] ** 2).sum()) if side.any() else 0.0 for side in sides(z)]
        self.support = np.minimum(*np.reshape(sizes, (2, D)))
        self.used = (design.variance > 0) & (self.support >= 5)
        alpha, v = design.inclusion[self.used], design.variance[self.used]
        a = np.column_stack([np.ones(n), z[:, self.used] - alpha])
        place = np.arange(n) * len(controls) // n
        linear = [np.vstack([c.mean, c.coef[self.used]]) for c in controls]
        y = r + np.stack([a[i] @ linear[place[i]] for i in range(n)])
        root = np.sqrt(w)[:, None]
        self.coef = np.linalg.lstsq(root * a, root * y, rcond=None)[0]
        plain = f - a @ np.linalg.lstsq(root * a, root * f, rcond=None)[0]
        share = w / n
        self.influence = (share[:, None] * a / np.concatenate([[1.0], v])).T
        leverage = share * (a**2 / np.concatenate([[1.0], v])).sum(axis=1)
        self.errors = (y - a @ self.coef) / np.sqrt(np.maximum(1 - leverage, 0.01))[:, None]
        self.other = plain
        squares = (f - a @ self.coef) ** 2
        self.variance = (self.coef[1:] ** 2 * v[:, None]).sum(axis=0) + share @ squares / share.sum()
        self.explained = (self.coef[1:] ** 2 * v[:, None]).sum(axis=0)
        self.change = (
            2 * share[:, None] * self.errors * (a[:, 1:] @ self.coef[1:]),
            share[:, None] * (squares - share @ squares / share.sum()),
        )
        self.simulated = np.sqrt(
            sum(np.vstack([c.errors[:1], c.errors[1:][self.used]]) ** 2 for c in controls)
        )
        self.simulated /= len(controls)

    def parts(self):
        """Sums over rows of squares and fourth powers, and between sequences: (1 + m, k) each."""
        moved = self.influence[:, :, None] * self.errors
        of_sequences = moved.reshape(len(moved), SEQUENCES, -1, moved.shape[2]).sum(axis=2)
        between = of_sequences.var(axis=1) * SEQUENCES**2 / (SEQUENCES - 1)
        return (moved**2).sum(axis=1), (moved**4).sum(axis=1), between

    def seen(self):
        """Variances of the coefficients by the rows of the sample, (1 + m, k), and their effective number."""
        within, fourth, between = self.parts()
        effective, ratio = within**2 / fourth, between / within
        pooled, freedom = ratio.mean(), (SEQUENCES - 1) * len(within)
        caution = max(1.5, 1 / (chi2.ppf(0.1, freedom) / freedom))
        reduction = max(min(1.0, caution * pooled), pooled)
        factor = np.maximum(reduction, reduction + (1 - reduction) * np.minimum(1, (16 / effective) ** 2))
        surprising = ratio > chi2.ppf(0.99, SEQUENCES - 1) / (SEQUENCES - 1)
        factor = np.where(surprising, np.maximum(factor, ratio), factor)
        return factor * within, effective

    def coef_errors(self):
        """As least_squares.py tells, for answers that nearly all differ."""
        seen, effective = self.seen()
        variance = seen * (1 + UNSEEN / effective)
        student = t.ppf(0.975, self.support[self.used] - 1) / 1.959963984540054
        return np.hypot(np.sqrt(variance[1:]) * student[:, None], self.simulated[1:])


def sides(z):
    return [z[:, j] == inside for inside in (1, 0) for j in range(D)]


@pytest.mark.parametrize(("outputs", "parts"), [(1, 1), (2, 2)])
def test_fits_are_plain_weighted_least_squares(outputs, parts):
    laws = family()
    sample, rows, controls = drawn(laws, outputs, parts)
    support = NormalEquations.of(sample, rows, 1).support
    assert support.unidentified.any()
    # a column that is not fitted has the control's coefficient
    controls = [its._replace(coef=its.coef * support.used[..., None]) for its in controls]
    fits = least_squares_of_pool(sample, rows, controls, None)
    for i, design in enumerate(rows.designs()):
        its = [ControlMoments(*(array[i] for array in control)) for control in controls]
        plain = PlainFit(sample, design, its)
        used = plain.used
        assert np.array_equal(support.used[i], used)
        assert oracle.error(np.vstack([fits.mean[i], fits.coef[i][used]]), plain.coef) < EXACT
        assert oracle.error(fits.coef_errors[i][used], plain.coef_errors()) < EXACT
        assert oracle.error(fits.variance[i], plain.variance) < EXACT
        fidelity, (explained, rest) = plain.explained / plain.variance, plain.change
        change = (explained - fidelity * (explained + rest)) / plain.variance
        length = 2 * plain.coef[1:] * design.variance[used, None] * plain.simulated[1:] / plain.variance
        noise = design.variance[used, None] * (plain.seen()[0] + plain.simulated**2)[1:]
        assert oracle.error(fits.noise[i][used], noise) < EXACT
        second = 2 * ((noise / plain.variance) ** 2).sum(axis=0)
        error = np.sqrt((change**2).sum(axis=0) + (length**2).sum(axis=0) + second)
        assert oracle.error(fits.fidelity_errors[i], error) < EXACT


def test_a_row_has_the_bits_that_it_has_alone():
    sample, rows, controls = drawn(family(), 2, 2)
    fits = least_squares_of_pool(sample, rows, controls, None)
    for i in range(len(rows)):
        one = [ControlMoments(*(array[i : i + 1] for array in control)) for control in controls]
        alone = least_squares_of_pool(sample, ExplainedRows(rows.family, rows.cells[i : i + 1]), one, None)
        assert np.array_equal(alone.mean[0], fits.mean[i])
        assert np.array_equal(alone.coef[0], fits.coef[i])
        assert np.array_equal(alone.coef_errors[0], fits.coef_errors[i])


@pytest.mark.parametrize("bandwidth", [0.3, 1.5, np.inf])
def test_effects_of_cells_have_the_moments_of_any_function(bandwidth):
    laws = family(bandwidth)
    rng = np.random.default_rng(3)
    effects = [rng.normal(size=(law.cells.count, 2)) for law in laws.marginals]
    table = CellMoments.of(laws, effects)
    for j, column in enumerate(laws.columns):
        for b in range(column.size):
            coordinate = column.select(np.array([b]))
            (mean,), (contrast,) = coordinate.mixed(coordinate.basis_of_cells(effects[j].T))
            assert oracle.error(table.mean[j, b], mean) < EXACT
            if coordinate.feature_moments.variance > 0:
                assert oracle.error(table.contrast[j, b], contrast) < EXACT


def test_typical_influences_are_mean_squares_over_the_rows():
    sample, rows, controls = drawn(family(), 1, 1)
    normal = NormalEquations.of(sample, rows, 1)
    whole, inside, outside = normal.typical()
    for i, design in enumerate(rows.designs()):
        plain = PlainFit(sample, design, [ControlMoments(*(array[i] for array in controls[0]))])
        z = rows.cells[i] == sample.cells.T
        np.testing.assert_allclose(whole[i], (plain.influence[0] ** 2).mean(), rtol=EXACT)
        for m, j in enumerate(np.flatnonzero(plain.used), start=1):
            for typical, side in ((inside, z[:, j]), (outside, ~z[:, j])):
                np.testing.assert_allclose(typical[i, j], (plain.influence[m, side] ** 2).mean(), rtol=EXACT)


def test_answers_of_0_and_1_are_probabilities_too():
    f = np.array([[0.0, 0.2, -0.1, 0.3], [0.0, 1.0, 0.2, 1.2], [0.4, 0.5, 0.3, 0.7]])
    statistics = AnswerStatistics.from_rows(f)
    assert statistics.probable.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(statistics.reach_around(None)[:2], 1.0)
    np.testing.assert_array_equal(statistics.reach_around(np.array([0.0, 1.0, 0.0, 0.0]))[:2], 1.0)
    assert (statistics.reach_around(None)[2:] < 1.0).all()
