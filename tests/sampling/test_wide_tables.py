"""Tables of thousands of columns: controls and effects take bounded memory and time, as stated."""

import subprocess
import sys

import numpy as np
import pytest
from tests.effort import repeats

import limes
from internals import (
    ExplainedRows,
    ProductFamily,
    binned,
    categorical,
    control,
    least_squares_module,
    named_weights,
    pool_fit_module,
    weighted_rows,
    wide,
)
from limes.exceptions import InputError
from limes.models import forms

X = np.random.default_rng(0).normal(size=(200, 12))


def product(x):
    return x[:, 0] * x[:, 1]


@pytest.fixture
def small_controls(monkeypatch):
    """As many columns as these are too many for a control with a gram matrix."""
    monkeypatch.setattr(control, "_MOST_NUMBERS", 1000)


@pytest.mark.parametrize(
    "options",
    [
        {"max_calls": 1024},
        {"max_calls": 1024, "bins": None},
        {"max_calls": 256, "weights": "euclidean"},
        {"max_calls": 512},
    ],
)
@pytest.mark.usefixtures("small_controls")
def test_controls_that_are_too_large_are_left_out(options):
    explanation = limes.TabularExplainer(product, X, rng=0, **options)(X[:2])
    assert not {"additive", "network"} & set(explanation.coefficients.controls)
    assert np.isfinite(explanation.coefficients.standard_errors).all()
    assert (explanation.coefficients.standard_errors[:, :2] > 0).all()


@pytest.mark.parametrize("name", ["additive", "network"])
@pytest.mark.parametrize("options", [{"max_calls": 1024}, {"max_calls": 1024, "weights": "euclidean"}])
@pytest.mark.usefixtures("small_controls")
def test_a_control_that_the_user_names_is_an_error(name, options):
    explainer = limes.TabularExplainer(product, X, control=name, **options)
    with pytest.raises(InputError, match=rf"control='{name}' is too large for 12 columns.*control='none'"):
        explainer(X[:1])


def test_effects_that_are_too_large_are_refused_and_the_page_shows_coefficients(monkeypatch):
    explanation = limes.TabularExplainer(product, X, max_calls=1024, rng=0)(X[:1])
    monkeypatch.setattr(weighted_rows, "_MOST_NUMBERS", 1000)
    with pytest.raises(InputError, match=r"effects of 37 cells on [\d,]+ rows take more than"):
        _ = explanation.effects[0].values
    assert "x0" in explanation.to_html()


def test_effects_of_more_cells_than_rows_are_refused():
    wide = np.random.default_rng(0).normal(size=(200, 60))
    few = {"max_calls": 128, "contributions": False, "rng": 0}
    explanation = limes.TabularExplainer(product, wide, weights="euclidean", **few)(wide[:1])
    with pytest.raises(InputError, match=r"cells cannot be estimated from \d+ rows: raise max_calls"):
        _ = explanation.additive_fidelity


@pytest.mark.parametrize("columns", repeats([1000, 2000], [1000]))
def test_a_thousand_columns_are_explained_in_three_gigabytes(columns):
    """The normal equations of all effects and slopes would take 4 GB at 1,000 columns, and 16 GB at 2,000."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import numpy as np, limes
X = np.random.default_rng(0).normal(size=(200, {columns}))
calls = 4 * {columns} + 200
options = {{"max_calls": 1 << calls.bit_length() - 1, "contributions": False}}
explainer = limes.TabularExplainer(lambda X: X[:, 0] * X[:, 1], X, **options)
explanation = explainer(X[:1], progress=False)
assert np.isfinite(explanation.coefficients.standard_errors).all()
print(explanation.coefficients.controls[0], explanation.converged)
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.split()[0] == "additive"


def test_fewer_draws_than_columns_estimate_each_coefficient_by_itself():
    wide = np.random.default_rng(0).normal(size=(50, 1000))
    explainer = limes.TabularExplainer(product, wide, bins=None, max_calls=512, control="none")
    explanation = explainer(wide[:1], progress=False)
    assert explanation.method == "sampled"
    assert np.isfinite(explanation.coefficients.standard_errors).all()


# -- coefficients that a pool fits by themselves ------------------------------------------------------------


@pytest.fixture
def separate(monkeypatch):
    """As many columns as these are fitted by themselves."""
    for module in (least_squares_module, pool_fit_module):
        monkeypatch.setattr(module, "SEPARATE", 4)


def steps(x):
    """Jumps, a product, a slope, and columns that do nothing."""
    return 1.0 * (x[:, 0] > 0.3) + (x[:, 1] > 0) * (x[:, 2] > -0.5) + 0.2 * x[:, 3]


STEPS = forms.Boxes(
    np.array([[0.3, *[-np.inf] * 5], [-np.inf, 0.0, -0.5, *[-np.inf] * 3]]),
    np.inf * np.ones((2, 6)),
    np.ones(2),
)
LINE = forms.Linear(np.array([0.0, 0.0, 0.0, 0.2, 0.0, 0.0]))


def truth_of(explainer, row):
    design = explainer.design(row)
    return limes.limit(design, STEPS).coef + limes.limit(design, LINE).coef


@pytest.fixture
def few_functions(monkeypatch):
    """As many columns as these are too many for each to have effects of cells: two of them have."""
    monkeypatch.setattr(wide, "_MOST_FUNCTIONS", 10)
    monkeypatch.setattr(wide, "_CHOSEN", 16)


@pytest.mark.parametrize("control", ["none", "additive", "network", "auto"])
@pytest.mark.parametrize("bandwidth", repeats([1.0, 1.8], [1.0]))
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.usefixtures("separate")
def test_coefficients_fitted_by_themselves_have_intervals_that_cover(request, control, bandwidth, is_wide):
    if is_wide:
        request.getfixturevalue("few_functions")
    x, inside, ratio = X[:, :6], [], []
    for seed in range(repeats(60, 25)):
        options = {"max_calls": 1104, "control": control, "bandwidth": bandwidth, "rng": seed}
        explainer = limes.TabularExplainer(steps, x, contributions=False, **options)
        explanation = explainer(x[:3], progress=False)
        assert explanation.shared_calls.tolist() == [1042] * 3
        error = explanation.coefficients.values - np.array([truth_of(explainer, row) for row in x[:3]])
        inside.append(np.abs(error) <= 1.96 * explanation.coefficients.standard_errors)
        ratio.append([(error**2).mean(), (explanation.coefficients.standard_errors**2).mean()])
    assert np.mean(inside) >= 0.93
    squares, claimed = np.mean(ratio, axis=0)
    assert squares < claimed < 3.5 * squares


@pytest.mark.usefixtures("separate")
def test_a_coefficient_by_itself_is_the_mean_of_weighted_answers():
    x, batches = X[:, :6], []

    def model(x):
        batches.append(x)
        return steps(x)

    explainer = limes.TabularExplainer(model, x, max_calls=1104, control="none", contributions=False)
    explanation, design = explainer(x[:1], progress=False), explainer.design(x[0])
    (rows,) = (batch for batch in batches if len(batch) == 1024)
    z = design.family.cells(rows) == design.cells
    w = design.family.weights.ratio ** (~z).sum(axis=1) / np.exp(design.log_weight)
    f = steps(rows)
    f -= w @ f / w.sum()
    coef = (z - design.inclusion).T @ (w * f) / (len(f) * design.variance)
    assert explanation.coefficients.values[0] == pytest.approx(coef, rel=1e-9)
    expected = (design.variance @ coef**2) / (w @ f**2 / w.sum())
    assert explanation.fidelity[0] == pytest.approx(expected, abs=0.02)


# -- controls of wide tables --------------------------------------------------------------------------------


def drawn(d=12, n=1024, seed=0):
    """A background's law, with a category among its columns, and rows of it in their cells."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(400, d - 1)) ** 3
    laws = [binned(x, np.quantile(x, [0, 0.25, 0.5, 0.75, 1])) for x in numbers.T]
    family = ProductFamily((*laws, categorical(rng.integers(3, size=400) * 1.0)), named_weights("bins", 2.0))
    return family, *family.draw(rng.random((n, d)))


def test_ridge_without_rows_solves_the_normal_equations_of_the_others(monkeypatch):
    monkeypatch.setattr(wide, "_ENOUGH", 1e-6)
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(80), rng.normal(size=(80, 9))]).astype(np.float32)
    targets, parts = rng.normal(size=(80, 2)), [slice(0, 10), slice(40, 70)]
    coefs = wide.ridge_without(features, targets, parts, [0.1, 2.0])
    for part, penalty, coef in zip(parts, [0.1, 2.0], coefs, strict=True):
        seen, f = np.delete(features, part, axis=0).astype(float), np.delete(targets, part, axis=0)
        ridge = np.diag(np.concatenate([[0.0], np.full(9, penalty * len(seen))]))
        assert coef == pytest.approx(np.linalg.solve(seen.T @ seen + ridge, seen.T @ f), abs=1e-4)


def test_columns_that_do_nothing_are_hardly_ever_chosen():
    chosen = np.zeros(12)
    for seed in range(40):
        family, x, cells = drawn(seed=seed)
        f = np.random.default_rng(seed).normal(size=(len(x), 1)) + 0.5 * (cells[:, :1] == 1)
        chosen += wide.strongest(family.marginals, cells, f)
    assert chosen[0] == 40
    assert chosen[1:].sum() <= 40


def test_values_of_a_control_do_not_depend_on_the_answers_they_are_subtracted_from(monkeypatch):
    monkeypatch.setattr(wide, "_PENALTIES", (0.01,))
    family, x, cells = drawn()
    f = np.column_stack([x[:, 0] > 0, x[:, 1] * (cells[:, 11] == 2)]) * 1.0
    values, _ = wide.wide_additive(family, x, cells, f, 8)
    for sequence in range(8):
        rows, other = slice(sequence * 128, (sequence + 1) * 128), f.copy()
        other[rows] = np.random.default_rng(1).normal(size=(128, 2)) * 100
        again, _ = wide.wide_additive(family, x, cells, other, 8)
        assert again[rows] == pytest.approx(values[rows], abs=1e-5)


def test_a_sum_of_columns_is_followed():
    family, x, cells = drawn()
    slopes = np.concatenate([np.linspace(-1.0, 1.0, 11), [0.0]])
    f = (x @ slopes + 2.0 * (cells[:, 11] == 1))[:, None]
    values, control = wide.wide_additive(family, x, cells, f, 8)
    assert (f - values).var() < 1e-3 * f.var()
    design = family.at(x[0])
    around = control.around(ExplainedRows(family, design.cells[None]))
    truth = limes.limit(design, forms.Linear(slopes)).coef
    assert around.coef[0, :11, 0] == pytest.approx(truth[:11], abs=0.03 * np.abs(truth).max())
    assert not around.errors.any()


@pytest.mark.parametrize("name", ["slopes", "cells"])
def test_effects_are_means_of_the_functions_in_cells(name):
    family, x, cells = drawn(n=1 << 16)
    laws, at = (family.marginals, np.arange(12)) if name == "slopes" else (family.marginals[1::5], [1, 6, 11])
    x, cells = x[:, at], cells[:, at]
    units = wide.slopes_of_columns(laws, x) if name == "slopes" else wide.functions_of_cells(laws, cells)
    coef = np.random.default_rng(0).normal(size=(units.size, 2))
    values, effects = units(x, cells) @ coef, units.effects(coef)
    total = sum(np.exp(law.log_mass) @ its for law, its in zip(laws, effects, strict=True))
    assert values.mean(axis=0) == pytest.approx(coef[0] + total, abs=0.05)
    for law, its, cell in zip(laws, effects, cells.T, strict=True):
        means = np.stack([values[cell == b].mean(axis=0) for b in range(law.cells.count)])
        assert means - values.mean(axis=0) == pytest.approx(its - np.exp(law.log_mass) @ its, abs=0.1)
