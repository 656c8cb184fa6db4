"""Robustness against the worst possible models; sample sizes against repeated fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limes
import strategies
from effort import examples
from internals import BinCells
from limes.designs import ProductDesign
from limes.exceptions import InputError
from limes.models import forms
from limes.theory import clt_samples, measured_errors, robustness, theorem_samples
from oracle import EXACT


@settings(max_examples=examples(60))
@given(strategies.designs(sizes=(1, 2, 3)), strategies.rngs)
def test_no_model_moves_an_explanation_farther(stated, rng):
    """Random trees; |f| is no more than the largest leaf."""
    design = stated.design()
    bound = robustness(design)
    tree = strategies.random_tree(rng, strategies.cuts(rng, stated, 3), 3)
    surrogate = limes.limit(design, strategies.as_forest([tree], stated.size))
    largest = max(abs(node[-1]) for node in tree if node[0] < 0) * (1 + EXACT)
    assert (np.abs(surrogate.coef) <= bound.coef * largest).all()
    assert abs(surrogate.intercept) <= bound.intercept * largest
    assert np.hypot(surrogate.intercept, np.linalg.norm(surrogate.coef)) <= bound.norm * largest


@pytest.mark.parametrize("bandwidth", [0.5, np.inf])
def test_the_bound_of_a_coefficient_is_reached(bandwidth):
    design = ProductDesign.from_bins(
        [[0, 1, 2]] * 2, [[0.5, 1.5]] * 2, [[0.3, 0.3]] * 2, [0.2, 0.2], bandwidth
    )
    sign = forms.Boxes([[-np.inf, -np.inf]], [[1.0, np.inf]], [2.0], intercept=-1.0)
    surrogate = limes.limit(design, sign)
    bound = robustness(design)
    assert surrogate.coef[0] == pytest.approx(bound.coef[0])
    assert bound.intercept == pytest.approx(1 + 2 * design.inclusion.sum())


def test_a_column_that_cannot_vary_cannot_move():
    design = ProductDesign.from_bins(
        [[0, 1], [0, 1, 2]], [[0.5], [0.5, 1.5]], [[0.3], [0.3, 0.3]], [0.2, 0.2], 1.0
    )
    assert robustness(design).coef.tolist() == [0.0, 2.0]


# -- sample sizes -------------------------------------------------------------------------------------------


def lime_rows(rng, n):
    """Three columns of four bins, LIME's weights at ν = 0.9, a model that the surrogate cannot say."""
    bins = rng.integers(4, size=(n, 3))
    z = (bins == 0).astype(float)
    f = np.where(bins[:, 0] + bins[:, 1] > 3, 1.0, -1.0) + 0.5 * z[:, 2] * bins[:, 1]
    return z, f, np.exp(-(3 - z.sum(axis=1)) / (2 * 0.9**2))


def fitted(z, f, weights):
    root = np.sqrt(weights)[:, None]
    design = np.column_stack([np.ones(len(z)), z])
    return np.linalg.lstsq(design * root, f * root[:, 0], rcond=None)[0]


def test_measured_errors_are_the_spread_of_repeated_fits():
    rng = np.random.default_rng(0)
    fits, errors = [], []
    for _ in range(400):
        rows = lime_rows(rng, 800)
        fits.append(fitted(*rows)[1:])
        errors.append(measured_errors(*rows))
    spread = np.std(fits, axis=0, ddof=1)
    # a standard deviation from 400 fits is known to 3.5 %
    assert np.allclose(np.mean(errors, axis=0), spread, rtol=0.15)


def test_the_sample_size_of_the_central_limit_theorem_is_enough_and_not_much_too_large():
    rng, tolerance = np.random.default_rng(1), 0.1
    n = clt_samples(measured_errors(*lime_rows(rng, 1000)), 1000, tolerance, confidence=0.9)
    exact = fitted(*every_row())[1:]
    far = np.array([np.abs(fitted(*lime_rows(rng, n))[1:] - exact).max() for _ in range(300)])
    share = (far <= tolerance).mean()
    assert 0.85 < share < 0.99
    # the theorem's number is an envelope, and a far one
    assert theorem_samples(tolerance, size=3, bins=4, bandwidth=0.9, bound=2.5, risk=0.1) > 1e6 * n


def every_row():
    """All 64 rows of bins, each once: the limit."""
    bins = np.array(np.meshgrid(*[np.arange(4)] * 3)).reshape(3, -1).T
    z = (bins == 0).astype(float)
    f = np.where(bins[:, 0] + bins[:, 1] > 3, 1.0, -1.0) + 0.5 * z[:, 2] * bins[:, 1]
    return z, f, np.exp(-(3 - z.sum(axis=1)) / (2 * 0.9**2))


@settings(max_examples=examples(50))
@given(st.integers(1, 30), st.integers(2, 20), st.floats(0.3, 100.0))
def test_the_theorem_asks_for_more_where_it_is_harder(size, bins, bandwidth):
    n_samples = theorem_samples(0.1, size=size, bins=bins, bandwidth=bandwidth, bound=1.0)
    for change in ({"size": size + 1}, {"bins": bins + 1}, {"bandwidth": 0.9 * bandwidth}):
        harder = {"size": size, "bins": bins, "bandwidth": bandwidth} | change
        assert theorem_samples(0.1, bound=1.0, **harder) >= n_samples * (1 - 1e-9)
    half = theorem_samples(0.05, size=size, bins=bins, bandwidth=bandwidth, bound=1.0)
    assert half == pytest.approx(4 * n_samples, rel=1e-6)


def test_a_bandwidth_without_weight_needs_infinitely_many():
    assert theorem_samples(0.1, size=10, bins=4, bandwidth=0.01, bound=1.0) == np.inf


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerance": 2.0}, "between 0 and bound"),
        ({"risk": 1.0}, "risk"),
        ({"bins": 1}, "bins"),
        ({"bandwidth": 0.0}, "bandwidth"),
    ],
)
def test_theorem_refuses(change, message):
    options = {"tolerance": 0.1, "size": 2, "bins": 4, "bandwidth": 1.0, "bound": 1.0} | change
    with pytest.raises(InputError, match=message):
        theorem_samples(options.pop("tolerance"), **options)


def test_slopes_have_no_bound():
    from internals import EuclideanWeights, GaussianPieces, ProductFamily, marginal

    ends = np.array([-np.inf, np.inf])
    law = GaussianPieces.truncated_normal(np.zeros(1), np.ones(1), ends[:1], ends[1:], weight=np.ones(1))
    column = marginal(BinCells(ends), np.ones(1), [(law, np.zeros(1, dtype=int))])
    family = ProductFamily((column,), EuclideanWeights(1.0), slopes=np.array([True]))
    with pytest.raises(InputError, match="slopes"):
        robustness(family.at(np.array([0.3])))


def test_measured_errors_refuse():
    with pytest.raises(InputError, match="does not vary"):
        measured_errors(np.ones((10, 1)), np.arange(10.0))
    with pytest.raises(InputError, match="rows"):
        measured_errors(np.ones((10, 1)), np.arange(9.0))
    with pytest.raises(InputError, match="finite"):
        clt_samples([np.nan], 10, 0.1)
    with pytest.raises(InputError, match="confidence"):
        clt_samples([0.1], 10, 0.1, confidence=1.0)
