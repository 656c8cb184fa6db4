"""The network control: unbiased, with an honest simulation error, and better where a model is smooth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from tests.sampling.test_pool import D, background, explain, family, pooled

import limes
import oracle
from effort import repeats
from internals import (
    SEQUENCES,
    ExplainedRows,
    Pool,
    ProductFamily,
    Sampling,
    SimulatedControl,
    SimulatedLaw,
    Units,
    additive,
    binned,
    categorical,
    named_weights,
    network,
)


def smooth(x):
    """A probability behind a link, with interactions."""
    t = x / 8.0
    return 1.0 / (1.0 + np.exp(-3.0 * np.sin(2.0 * t[:, 0] + t[:, 1]) - 4.0 * t[:, 2] * t[:, 3] + t[:, 4]))


def truth(laws, rows, bits=17):
    """By weighted least squares of many more rows, without any control."""
    from scipy.stats.qmc import Sobol

    x, cells = laws.draw(Sobol(D, rng=7).random(1 << bits))
    f, coef = smooth(x), []
    for row in rows:
        design = laws.at(row)
        z = (cells == design.cells).astype(float)
        w = laws.weights.ratio ** (D - z.sum(axis=1))
        a = np.column_stack([np.ones(len(z)), z])
        coef.append(np.linalg.solve(a.T @ (w[:, None] * a), a.T @ (w * f))[1:])
    return np.array(coef)


@pytest.mark.parametrize("bandwidth", repeats([0.25, 0.75], [0.75]))
def test_intervals_cover_and_errors_fall(bandwidth):
    laws, rows = family(bandwidth * np.sqrt(D)), background()[:3]
    exact = truth(laws, rows)
    squares, inside = {}, []
    for control in ("additive", "network"):
        result = [
            explain(pooled(smooth, laws, 1024, seed=seed, control=control), laws, rows)[0]
            for seed in range(12)
        ]
        coef = np.array([[fit.coef for fit in fits] for fits in result])
        errors = np.array([[fit.standard_errors for fit in fits] for fits in result])
        squares[control] = ((coef - exact) ** 2).mean()
        inside.append((np.abs(coef - exact) <= 1.96 * errors).mean())
    assert squares["network"] < 0.4 * squares["additive"]
    assert min(inside) >= 0.93


@pytest.mark.parametrize("control", [additive, network])
def test_no_row_is_subtracted_from_by_a_fit_that_has_seen_it(control):
    laws = family(1.5)
    pool = Pool(laws, smooth, Sampling(4096, seed=0))
    pool.grow(1024, on_progress=lambda count: None)
    rows = pool.rows(1024)
    f = rows.answers[:, None]
    other = f.copy()
    other[-128:] *= 0.999  # answers of the last sequence: so little that penalty and link are the same
    one, two = (control(SimulatedLaw(laws, 0), rows, answers).values for answers in (f, other))
    # a network's values have single precision
    assert two[-128:] == pytest.approx(one[-128:], abs=1e-6)
    assert np.abs(two[:-128] - one[:-128]).max() > 1e-4


def mixed_family():
    """A column of numbers, some of them missing, and one of words."""
    rng = np.random.default_rng(0)
    number, word = rng.gamma(2.0, size=500), rng.integers(3, size=500).astype(float)
    number[:40] = np.nan
    laws = binned(number, np.nanquantile(number, [0, 0.3, 0.6, 1])), categorical(word)
    return ProductFamily(laws, named_weights("bins", 1.0))


@pytest.mark.parametrize("outputs", [3, 40])
def test_sums_of_units_are_values_times_coefficients(outputs):
    laws = mixed_family()
    rng = np.random.default_rng(4)
    x, cells = laws.draw(rng.random((300, 2)))
    units = Units.of(laws.marginals, x, cells, 16, 0)
    target = (np.nan_to_num(x[:, 0]) * x[:, 1])[:, None]
    units = units.with_products(x, cells, np.ones((300, 1)), target)
    assert len(units.pairs)
    coef = rng.normal(size=(units.size, outputs))
    expected = units(x, cells).astype(np.float64) @ coef
    np.testing.assert_allclose(units.sums(x, cells, coef), expected, rtol=1e-5, atol=1e-5)


def test_products_are_those_of_columns_that_interact():
    laws = family(1.5)
    rng = np.random.default_rng(5)
    x, cells = laws.draw(rng.random((2048, D)))
    units = Units.of(laws.marginals, x, cells, 16, 0)
    noise = rng.normal(size=(2048, 1))
    additive = np.sin(x[:, :1] / 4.0) + 0.1 * noise

    def pairs(target):
        return [tuple(pair) for pair in units.with_products(x, cells, np.ones((2048, 1)), target).pairs]

    step = x - x.mean(axis=0)
    assert len(pairs(additive)) <= 2
    both = pairs(additive + 0.02 * (step[:, 1] * step[:, 3] + step[:, 0] * step[:, 4])[:, None])
    assert {(1, 3), (0, 4)} <= set(both)
    assert len(both) <= 4


def test_simulated_rows_follow_the_law():
    laws = mixed_family()
    rows = SimulatedLaw(laws, 0).rows(1 << 15)
    assert np.array_equal(laws.cells(rows.x), rows.cells)
    for j, law in enumerate(laws.marginals):
        share = np.bincount(rows.cells[:, j], minlength=law.cells.count) / len(rows.cells)
        assert share == pytest.approx(np.exp(law.log_mass), abs=2e-4)
        for cell in range(law.cells.count):
            inside = rows.x[rows.cells[:, j] == cell, j]
            if np.isfinite(inside).all():
                assert inside.mean() == pytest.approx(law.means[cell], abs=2e-3)


def test_a_simulated_control_is_split_into_effects_slopes_and_the_rest():
    """For several outputs at once, with numbers that are missing: by each cell's own rows."""
    laws = mixed_family()
    x, cells = laws.draw(np.random.default_rng(6).random((400, 2)))
    values = np.column_stack([np.nan_to_num(x[:, 0]) ** 2 * (1 + x[:, 1]), x[:, 1], np.cos(x[:, 1])])
    control = SimulatedControl.of(laws, x, cells, values)
    rest = values - values.mean(axis=0)
    centred = rest.copy()
    for law, its, cell in zip(laws.marginals, x.T, cells.T, strict=True):
        step = law.standardized(its, cell)
        for one in np.unique(cell):
            inside = cell == one
            slope = (step[inside, None] * centred[inside]).mean(axis=0)
            rest[inside] -= centred[inside].mean(axis=0) + slope * step[inside, None]
    assert oracle.error(control.rest, rest) < oracle.EXACT


def test_errors_of_simulated_moments_are_those_of_means_of_sequences():
    """For weighted means in each sequence by itself: 95 % by Student's quantile."""
    laws, rows = family(1.5), background()[:3]
    simulated = SimulatedLaw(laws, 0).rows(1 << 10)
    control = SimulatedControl.of(laws, simulated.x, simulated.cells, smooth(simulated.x)[:, None])
    explained = ExplainedRows(laws, laws.cells(rows))
    errors = control.around(explained)[2]
    for design, error in zip(explained.designs(), errors, strict=True):
        z = (simulated.cells == design.cells).astype(float)
        w = laws.weights.ratio ** (D - z.sum(axis=1)) / np.exp(design.log_weight)
        influence = np.column_stack([np.ones(len(z)), (z - design.inclusion) / design.variance])
        terms = w[:, None] * influence * control.rest
        means = terms.reshape(SEQUENCES, -1, 1 + D).mean(axis=1)
        spread = means.std(axis=0, ddof=1) / np.sqrt(SEQUENCES)
        expected = spread * student.ppf(0.975, SEQUENCES - 1) / norm.ppf(0.975)
        assert oracle.error(error[:, 0], expected) < oracle.EXACT


def test_the_expectation_of_an_additive_control_is_that_of_the_mean_of_its_fits():
    """The reference is a weighted least-squares fit to the control's values at many rows of the law."""
    laws, rows = family(1.5), background()[:3]
    pool = Pool(laws, smooth, Sampling(4096, seed=0))
    pool.grow(1024, on_progress=lambda count: None)
    answered = pool.rows(1024)
    [control] = additive(SimulatedLaw(laws, 0), answered, answered.answers[:, None]).fits
    x, cells = laws.draw(np.random.default_rng(3).random((1 << 17, D)))
    h = control.predict(x)[:, 0]
    moments = control.around(ExplainedRows(laws, laws.cells(rows)))
    for row, coef in zip(rows, moments.coef[..., 0], strict=True):
        design = laws.at(row)
        z = (cells == design.cells).astype(float)
        w = laws.weights.ratio ** (D - z.sum(axis=1))
        a = np.column_stack([np.ones(len(z)), z])
        normal = np.linalg.inv(a.T @ (w[:, None] * a))
        fit = normal @ (a.T @ (w * h))
        scores = a * (w * (h - a @ fit))[:, None]
        errors = np.sqrt(np.diag(normal @ (scores.T @ scores) @ normal))
        assert (np.abs(fit[1:] - coef) < 4 * errors[1:]).all()


def test_cells_that_no_row_hits_are_left_out():
    """Divided by their standard deviations of 1e-40, their functions overflowed single precision."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(-1, 1, 223), rng.normal(size=223)])
    explainer = limes.TabularExplainer(
        lambda x: 1 / (1 + np.exp(-2 * x[:, 0] * x[:, 1])),
        table,
        law="uniform",
        weights="euclidean",
        bandwidth=0.1,
        control="network",
        max_calls=1024,
    )
    explanation = explainer([[-2.98, -0.89]])
    assert explanation.coefficients.controls == ("network",)
    assert np.isfinite(explanation.coefficients.values).all()
