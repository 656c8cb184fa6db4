"""Controls: exact parts are right, variance falls, and error bars with each control cover."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import limes
import oracle
import strategies
from effort import crossed, repeats
from internals import (
    CONTROLS,
    ForestExpectation,
    MarginControl,
    SampledExpectation,
    Sampling,
    binned,
    categorical,
    control,
    named_weights,
    unbinned,
)
from limes.designs import ProductFamily
from limes.models import forms
from limes.surrogates import least_squares

N = 400
KINDS = ("bins", "euclidean", "slopes")


def family(kind, d=4, bandwidth=1.2, *, odd=True):
    """Numbers, and if ``odd`` one column of categories and one with missing values."""
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=N) for _ in range(d)]
    marginals = [
        unbinned(x) if kind == "slopes" else binned(x, np.percentile(x, [0, 25, 50, 75, 100]))
        for x in columns
    ]
    slopes = np.full(d, kind == "slopes")
    if odd:
        holed = np.where(rng.random(N) < 0.2, np.nan, columns[1])
        marginals[0] = categorical(rng.choice([0.0, 1.0, 2.0, np.nan], N))
        marginals[1] = binned(holed, np.nanpercentile(holed, [0, 30, 100]))
        slopes[:2] = False
    smooth = "euclidean" if kind == "slopes" else kind
    return ProductFamily(
        tuple(marginals), named_weights(smooth, bandwidth), slopes=slopes if slopes.any() else None
    )


def odd_row(d=4):
    return np.array([1.0, np.nan, *np.linspace(-0.5, 0.7, d - 2)])


def answers(x):
    """Two outputs, neither additive."""
    filled = np.nan_to_num(x, nan=0.3)
    return np.stack(
        [np.sin(filled[:, 2]) * filled[:, 3] + (filled[:, 0] == 1), np.tanh(filled.sum(axis=1))], axis=1
    )


@cache
def odd_design(kind):
    return family(kind).at(odd_row())


@cache
def fitted(name, kind):
    """A control of one design, and what all tests of it look at."""
    design = odd_design(kind)
    x, _ = design.draw(np.random.default_rng(1).random((250, design.size)))
    return CONTROLS[name](design, x, answers(x))


@cache
def fresh(kind):
    """Tilted rows, and the operator of least squares on their features."""
    design = odd_design(kind)
    x, h = design.draw(np.random.default_rng(2).random((repeats(100_000, 30_000), 4)))
    a = np.column_stack([np.ones(len(h)), h - design.inclusion])
    return x, a, np.linalg.inv(a.T @ a)


@pytest.mark.parametrize(("kind", "name"), crossed(KINDS, CONTROLS))
def test_moments_of_a_control_are_those_of_its_predictions(name, kind):
    """β(h) and E_w h against tilted rows, in their standard errors."""
    control = fitted(name, kind)
    mean, coef, simulated = control.expectation(odd_design(kind))
    assert coef.shape == (4, 2)
    x, a, inverse = fresh(kind)
    y = control.predict(x)
    solution = inverse @ (a.T @ y)
    squares = ((y - a @ solution) ** 2).mean(axis=0)
    errors = np.hypot(np.sqrt(np.diag(inverse)[:, None] * squares) * 1.2, simulated)
    assert (np.abs(solution - np.vstack([mean, coef])) <= oracle.Z_LIMIT * errors + 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "share"), [("additive", 0.75), ("tree", 0.75), ("kernel", 0.6)])
def test_controls_take_variance_away_from_rows_they_have_not_seen(name, share, kind):
    x, _ = odd_design(kind).draw(np.random.default_rng(3).random((2000, 4)))
    y = answers(x)
    assert ((y - fitted(name, kind).predict(x)).var(axis=0) < share * y.var(axis=0)).all()


@pytest.mark.parametrize("name", CONTROLS)
def test_a_constant_model_and_a_handful_of_rows_are_no_trouble(name):
    design = family("bins").at(odd_row())
    x, _ = design.draw(np.random.default_rng(1).random((12, 4)))
    for values in (np.ones((12, 1)), answers(x)):
        control = CONTROLS[name](design, x, values)
        assert np.isfinite(control.predict(x)).all()
        assert all(np.isfinite(part).all() for part in control.expectation(design))


@pytest.mark.parametrize("name", CONTROLS)
def test_many_answers_that_are_all_the_same_have_no_effect(name):
    design = odd_design("bins")
    x, _ = design.draw(np.random.default_rng(1).random((250, 4)))
    _, coef, _ = CONTROLS[name](design, x, np.full((250, 2), 3.0)).expectation(design)
    assert np.abs(coef).max() < oracle.ROUNDING


def test_columns_that_do_not_vary_are_not_looked_at():
    x = np.random.default_rng(0).normal(size=N)
    laws = (binned(np.full(N, 7.0), np.array([7.0, 7.0])), binned(x, np.percentile(x, [0, 50, 100])))
    design = ProductFamily(laws, named_weights("bins", 1.0)).at(np.array([7.0, 0.1]))
    rows, _ = design.draw(np.random.default_rng(1).random((200, 2)))
    for fit in CONTROLS.values():
        _, coef, _ = fit(design, rows, np.sin(rows[:, 1:])).expectation(design)
        assert np.abs(coef[0]).max() < oracle.ROUNDING


@pytest.mark.parametrize("name", CONTROLS)
def test_columns_that_are_missing_in_all_rows_are_no_trouble(name):
    rng = np.random.default_rng(0)
    x = np.where(rng.random(N) < 0.5, np.nan, rng.normal(size=N))
    laws = tuple(binned(column, np.array([-3.0, 0.0, 3.0])) for column in (x, rng.normal(size=N)))
    design = ProductFamily(laws, named_weights("bins", 1.0)).at(np.array([np.nan, 0.1]))
    rows, _ = design.draw(np.random.default_rng(1).random((200, 2)))
    rows[:, 0] = np.nan
    control = CONTROLS[name](design, rows, np.sin(rows[:, 1:]))
    assert np.isfinite(control.predict(rows)).all()
    assert all(np.isfinite(part).all() for part in control.expectation(design))


def test_the_margin_behind_a_probability():
    design = family("bins", odd=False).at(np.array([0.3, -0.2, 0.8, -1.0]))
    form = strategies.as_forest(
        [strategies.random_tree(np.random.default_rng(s), [np.linspace(-1, 1, 5)] * 4, 5) for s in range(5)],
        4,
    )
    control = MarginControl(form.predict, ForestExpectation(form))
    x, _ = design.draw(np.random.default_rng(1).random((2000, 4)))
    probability = 1 / (1 + np.exp(-0.3 * form.predict(x)))
    result = control(design, x[:1000], probability[:1000, None])
    remaining = (probability - result.predict(x)[:, 0])[1000:].var()
    plain = CONTROLS["additive"](design, x[:1000], probability[:1000, None])
    assert remaining < 0.3 * (probability - plain.predict(x)[:, 0])[1000:].var()
    # its exact part is the margin's, scaled, and what an additive model adds
    linear = MarginControl(form.predict, ForestExpectation(form))(
        design, x, 2.0 * form.predict(x)[:, None] + 1.0
    )
    mean, coef, _ = linear.expectation(design)
    truth = limes.limit(design, form)
    assert coef[:, 0] == pytest.approx(2 * truth.coef, rel=1e-4, abs=1e-4)
    assert mean[0] == pytest.approx(
        2 * (truth.intercept + design.inclusion @ truth.coef) + 1, rel=1e-4, abs=1e-4
    )


# -- error bars: 95 % intervals contain the truth in 93 % at least, and are not twice too wide -------------


def smooth(d):
    return forms.GaussianKernels(
        np.stack([np.full(d, 0.4), np.full(d, -0.8), np.linspace(-1, 1, d)]),
        [2.0, -1.0, 1.5],
        0.6 * np.sqrt(d),
        0.3,
    )


def rough(d):
    places = [np.array([-1.0, -0.4, 0.1, 0.8])] * d
    rng = np.random.default_rng(4)
    return strategies.as_forest([strategies.random_tree(rng, places, 5) for _ in range(8)], d)


def remembered(control):
    """The control, whose fit to the same rows of the same design is made once."""
    fits = {}

    def fit(design, x, f):
        key = design, x.tobytes(), f.tobytes()
        if key not in fits:
            fits[key] = control(design, x, f)
        return fits[key]

    return fit


# for tests that fit the same laborious controls to the same rows
REMEMBERED = {name: remembered(control) for name, control in CONTROLS.items()}


@cache
def problem(kind, make, d):
    """A design, its row, a form, and the truth: E_w f, then coefficients."""
    row, form = np.linspace(-1.2, 1.2, d), make(d)
    design = family(kind, d, 0.75 * np.sqrt(d), odd=False).at(row)
    limit = limes.limit(design, form)
    return design, row, form, np.append(limit.intercept + design.inclusion @ limit.coef, limit.coef)


def repeated(kind, make, d, calls, control, seeds, controls=CONTROLS):
    """Means and coefficients (seeds, 1 + d), standard errors of these (seeds, d), and the truth (1 + d,)."""
    design, row, form, truth = problem(kind, make, d)
    candidates = controls if control == "auto" else {control: controls[control]}
    values, errors = [], []
    for seed in range(seeds):
        moments = SampledExpectation(form.predict, Sampling(calls, None, seed, candidates)).moments(
            design, row
        )
        values.append(np.append(moments.mean, least_squares(design, moments).coef))
        errors.append(moments.coef_errors)
    return np.stack(values), np.stack(errors), truth


def check_error_bars(values, errors, truth):
    """A few seeds may fall short, or vary too little, by two standard errors. 400 seeds may not."""
    coef = values[:, 1:]
    inside = np.abs(coef - truth[1:]) <= 1.96 * errors
    chance = 0.0 if len(inside) >= 400 else 2.0 * inside.mean(axis=1).std(ddof=1) / np.sqrt(len(inside))
    assert inside.mean() >= 0.93 - chance, inside.mean(axis=0)
    ratio = errors.mean(axis=0) / coef.std(axis=0, ddof=1)
    few = 0.0 if len(inside) >= 400 else np.sqrt(2.0 / (ratio.size * (len(inside) - 1)))
    assert np.median(ratio) <= 2 * (1 + few), ratio


SIZES = repeats([(5, 256, 150), (5, 1024, 40), (30, 256, 16)], [(5, 256, 12), (5, 1024, 6), (30, 256, 4)])


@pytest.mark.parametrize(
    ("kind", "make", "control", "size"), crossed(KINDS, [smooth, rough], ["none", "additive"], SIZES)
)
def test_error_bars(kind, make, control, size):
    d, calls, seeds = size
    check_error_bars(*repeated(kind, make, d, calls, control, seeds))


@pytest.mark.parametrize("make", repeats([smooth, rough], [rough]))
@pytest.mark.parametrize("control", ["tree", "kernel", "auto"])
@pytest.mark.parametrize(("d", "seeds"), repeats([(5, 12), (30, 8)], [(5, 5)]))
def test_error_bars_of_laborious_controls(make, control, d, seeds):
    """Few seeds, as trees and kernels take their time; "auto" finds them fitted."""
    check_error_bars(*repeated("bins", make, d, 256, control, seeds, REMEMBERED))


@pytest.mark.coverage
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [smooth, rough])
@pytest.mark.parametrize("control", [*CONTROLS, "auto"])
@pytest.mark.parametrize("d", [5, 30])
def test_error_bars_over_400_seeds(kind, make, control, d):
    """The whole promise; it takes an hour, see ``make test-coverage``."""
    check_error_bars(*repeated(kind, make, d, 256, control, 400))


@pytest.mark.parametrize("name", CONTROLS)
def test_exact_parts_do_not_move_what_is_estimated(name):
    """Right on average with every control: mean over seeds in its own standard errors."""
    values, _, truth = repeated("bins", rough, 5, 256, name, repeats(12, 6), REMEMBERED)
    z = (values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))
    assert np.abs(z).max() < oracle.Z_LIMIT, z


@pytest.mark.parametrize(("n", "p"), [(60, 20), (60, 60), (60, 61), (40, 200)])
def test_a_ridge_of_more_columns_than_rows_is_that_of_the_normal_equations(n, p):
    rng = np.random.default_rng(n + p)
    x, y = rng.normal(size=(n, p)) * rng.lognormal(size=p) + 3.0, rng.normal(size=(n, 2))
    x[:, 1], y[:, 0] = 5.0, x[:, 0] - x[:, 2] + 0.1 * y[:, 0]
    intercepts, coef = control.ridge_path(x, y)
    live = x.std(axis=0) > 0
    standard = (x[:, live] - x[:, live].mean(axis=0)) / x[:, live].std(axis=0)
    gram = standard.T @ standard / n
    for k in range(2):
        rest = y[:, k] - y[:, k].mean()
        fits, scores = [], []
        for penalty in control.PENALTIES:
            inverse = np.linalg.inv(gram + penalty * np.eye(len(gram)))
            fits.append(inverse @ standard.T @ rest / n)
            freedom = np.trace(inverse @ gram) + 1.0
            squares = ((rest - standard @ fits[-1]) ** 2).mean()
            scores.append(squares / max(1.0 - freedom / n, 0.05) ** 2)
        best = fits[int(np.argmin(scores))] / x[:, live].std(axis=0)
        np.testing.assert_allclose(coef[live, k], best, rtol=1e-6, atol=1e-8)
        assert coef[~live, k].max(initial=0.0) == 0.0
        np.testing.assert_allclose(intercepts[k], y[:, k].mean() - x.mean(axis=0) @ coef[:, k], rtol=1e-9)
