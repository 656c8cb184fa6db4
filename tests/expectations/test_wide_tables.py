"""Tables of thousands of columns: what the controls and the effects take is bounded, and said."""

import subprocess
import sys

import numpy as np
import pytest
from tests.effort import repeats

import limes
from internals import control, weighted_rows
from limes.exceptions import InputError

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
    assert not {"additive", "network"} & set(explanation.controls)
    assert np.isfinite(explanation.standard_errors).all()
    assert (explanation.standard_errors[:, :2] > 0).all()


@pytest.mark.parametrize("name", ["additive", "network"])
@pytest.mark.parametrize("options", [{"max_calls": 1024}, {"max_calls": 256, "weights": "euclidean"}])
@pytest.mark.usefixtures("small_controls")
def test_a_control_that_the_user_names_is_an_error(name, options):
    explainer = limes.TabularExplainer(product, X, control=name, **options)
    with pytest.raises(InputError, match=rf"control='{name}' is too large for 12 columns.*control='none'"):
        explainer(X[:1])


def test_effects_that_are_too_large_are_refused_and_the_page_shows_coefficients(monkeypatch):
    explanation = limes.TabularExplainer(product, X, max_calls=1024, rng=0)(X[:1])
    monkeypatch.setattr(weighted_rows, "_MOST_NUMBERS", 1000)
    with pytest.raises(InputError, match=r"effects of 37 cells on 1,024 rows take more than"):
        _ = explanation.effects[0].values
    assert "x0" in explanation.to_html()


def test_effects_of_more_cells_than_rows_are_refused():
    wide = np.random.default_rng(0).normal(size=(200, 60))
    explanation = limes.TabularExplainer(product, wide, max_calls=128, weights="euclidean", rng=0)(wide[:1])
    with pytest.raises(InputError, match="cells cannot be estimated from 128 rows: raise max_calls"):
        _ = explanation.additive_fidelity


@pytest.mark.parametrize("columns", repeats([1000, 2000], [1000]))
def test_a_thousand_columns_are_explained_in_three_gigabytes(columns):
    """The normal equations of an additive model took 4 GB at 1,000 columns, and 16 GB at 2,000."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import numpy as np, limes
X = np.random.default_rng(0).normal(size=(200, {columns}))
calls = 4 * {columns} + 200
explainer = limes.TabularExplainer(lambda X: X[:, 0] * X[:, 1], X, max_calls=1 << calls.bit_length() - 1)
explanation = explainer(X[:1], progress=False)
assert np.isfinite(explanation.standard_errors).all()
print(explanation.controls[0], explanation.converged)
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.split()[0] not in ("additive", "network")


def test_a_budget_that_is_too_small_for_the_columns_says_what_is_enough():
    wide = np.random.default_rng(0).normal(size=(50, 3000))
    with pytest.raises(InputError, match="max_calls=4096 is too few to fit 3000 coefficients; use at least"):
        limes.TabularExplainer(product, wide, bins=None)(wide[:1])
