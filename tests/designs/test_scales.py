"""Columns of any size, from p-values of 1e-300 to 1e300, have the explanations of ordinary units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

import limes
import oracle
from effort import crossed, examples, repeats
from internals import (
    GaussianPieces,
    ProductFamily,
    binned,
    column_stds,
    mean_and_std,
    named_weights,
    power_of_two,
    unbinned,
)
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT

RNG = np.random.default_rng(0)
X = RNG.normal([0.5, 0.0, -1.0], 1.0, (300, 3))
ROWS = X[:3]
EXPONENTS = repeats((-300, -200, -154, -20, 20, 154, 200, 299), (-300, -154, 20, 299))
PIECES = {
    "ordinary": (0.3, 1.2, -1.0, 2.0),
    "whole line": (0.3, 1.2, -np.inf, np.inf),
    "40 sigma out": (0.0, 1.0, 40.0, 41.0),
    "sliver": (0.5, 1.0, 0.5, 0.5 + 1e-9),
    "flat": (0.3, np.inf, -1.0, 2.0),
    "needle": (0.3, 1e-6, -1.0, 2.0),
}
OPTIONS = {
    **{
        f"{law}, {weights}": {"law": law, "weights": weights}
        for law in ("truncnorm", "uniform", "empirical")
        for weights in ("bins", "euclidean")
    },
    **{f"slopes, {law}": {"bins": None, "law": law} for law in ("truncnorm", "uniform", "empirical")},
    "slopes, ridge": {"bins": None, "ridge": 1.0},
    "slopes, narrow": {"bins": None, "bandwidth": 0.01},
    "euclidean, narrow": {"weights": "euclidean", "bandwidth": 0.01},
}


def piece(case, factor):
    arguments = [np.array([v * factor]) for v in case]
    return GaussianPieces.truncated_normal(*arguments, weight=np.ones(1))


@settings(deadline=None, max_examples=examples(60))
@given(st.sampled_from(sorted(PIECES)), st.floats(-299.0, 299.0))
def test_a_piece_in_other_units(name, exponent):
    factor = 10.0**exponent
    plain, scaled = piece(PIECES[name], 1.0), piece(PIECES[name], factor)
    cuts, origin = np.array([[0.1, 40.2], [0.9, 40.7]]), np.array([0.2])
    # a sliver's edges are themselves rounded to 1e-7 of its width
    tolerance = 1e-6 if name == "sliver" else EXACT
    pairs = [
        (plain.interval(*cuts), scaled.interval(*(cuts * factor))),
        (plain.mean, scaled.mean / factor),
        (plain.identity(), scaled.identity() / factor),
        (plain.times(0.7, 2.0)[1], scaled.times(0.7 * factor, 2.0, factor)[1]),
        (plain.times(0.7, 2.0)[0].mean, scaled.times(0.7 * factor, 2.0, factor)[0].mean / factor),
        (
            plain.centred(origin).interval(*cuts),
            scaled.centred(origin * factor, factor).interval(*(cuts * factor)),
        ),
        (plain.centred(origin).identity(), scaled.centred(origin * factor, factor).identity() / factor),
        (
            plain.quadrature(np.sin, ()),
            scaled.quadrature(lambda x: np.sin(x / factor), ()),
        ),
        (
            plain.centred(origin).quadrature(np.sin, ()),
            scaled.centred(origin * factor, factor).quadrature(lambda x: np.sin(x / factor), ()),
        ),
        (
            plain.quantile(np.zeros(3, dtype=int), np.array([0.1, 0.5, 0.9])),
            scaled.quantile(np.zeros(3, dtype=int), np.array([0.1, 0.5, 0.9])) / factor,
        ),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * np.abs(one).max())


def explained(form, factor, options):
    """Coefficients in units of the column, intercepts, and surrogates at the rows."""
    factors = np.array([factor, 1.0, 1.0])
    explainer = limes.TabularExplainer(form(factor), X * factors, **options)
    explanation = explainer(ROWS * factors, progress=False)
    assert explanation.method == "exact"
    per_unit = explanation.coefficients.values * (factors if options.get("bins", 4) is None else 1.0)
    return np.concatenate(
        [
            per_unit.ravel(),
            explanation.coefficients.intercepts,
            explanation.coefficients.surrogate_predictions,
        ]
    )


def tree(factor):
    """One whose thresholds float32 does not spoil: HistGradientBoosting's are float64."""
    target = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 0]
    options = {"max_iter": 5, "max_leaf_nodes": 6, "early_stopping": False, "random_state": 0}
    return HistGradientBoostingRegressor(**options).fit(X * [factor, 1.0, 1.0], target)


def line(factor):
    from sklearn.linear_model import LinearRegression

    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = np.array([2.0 / factor, -1.0, 0.5]), 3.0, 3
    return model


@pytest.mark.parametrize(("form", "options"), crossed([tree, line], OPTIONS.values()))
def test_an_explanation_in_other_units(form, options):
    """A column times 1e150 gave 0.2867, times 1e300 0.2691; a column of p-values gave NaN everywhere."""
    expected = explained(form, 1.0, options)
    for exponent in EXPONENTS:
        result = explained(form, 10.0**exponent, options)
        assert oracle.error(result, expected) < EXACT, exponent


@settings(deadline=None, max_examples=examples(25))
@given(
    st.floats(-150.0, 150.0),
    st.sampled_from(["truncnorm", "uniform", "empirical"]),
    st.sampled_from(["bins", "euclidean", "slopes"]),
    st.sampled_from([1.0, 1e8]),
)
def test_kernels_in_other_units(exponent, law, kind, size):
    """Also where large coefficients nearly cancel: by no more than the roundings of either."""
    factor = 10.0**exponent
    centers, coef = np.array([[0.2, 0.1, 0.0], [-0.5, 0.3, 1.0]]), np.array([size, 1.0 - size])

    def coefs(factor):
        factors = np.array([factor, 1.0, 1.0])
        slopes = kind == "slopes"
        laws = tuple(
            unbinned(x, law=law) if slopes else binned(x, np.percentile(x, [0, 25, 50, 100]), law=law)
            for x in (X * factors).T
        )
        family = ProductFamily(
            laws,
            named_weights("bins" if kind == "bins" else "euclidean", 1.0),
            slopes=np.ones(3, dtype=bool) if slopes else None,
            scales=column_stds(X * factors),
        )
        form = forms.GaussianKernels(centers * factors, coef, factors)
        surrogate = limes.limit(family.at(ROWS[0] * factors), form)
        return np.append(surrogate.coef * (factors if slopes else 1.0), surrogate.intercept)

    assert np.abs(coefs(factor) - coefs(1.0)).max() < EXACT * np.abs(coefs(1.0)).max() + 1e-14 * size


def test_p_values_of_any_size():
    """The leaf values of a stump, met with the probabilities that the background's own logarithms say."""
    p = 10.0 ** -RNG.uniform(0, 300, 400)
    model = DecisionTreeRegressor(max_depth=1).fit(p[:, None] * 0, np.ones(400))  # never splits
    boosted = HistGradientBoostingRegressor(max_iter=20, early_stopping=False).fit(
        np.column_stack([p, X[:, 0].repeat(2)[:400]]), np.log10(p)
    )
    table = np.column_stack([p, X[:, 0].repeat(2)[:400]])
    for options in OPTIONS.values():
        explanation = limes.TabularExplainer(boosted, table, **options)(table[:2], progress=False)
        assert np.isfinite(explanation.coefficients.values).all()
        assert np.isfinite(explanation.coefficients.intercepts).all()
    # with the values themselves as law, the coefficient is a difference of two means of predictions
    explanation = limes.TabularExplainer(boosted, table, law="empirical", bandwidth=np.inf)(
        table[:1], progress=False
    )
    edges = np.percentile(p, [25, 50, 75])
    inside = np.searchsorted(edges, p) == np.searchsorted(edges, p[0])
    grid = np.array([[boosted.predict(np.column_stack([np.full(400, v), table[:, 1]])).mean()] for v in p])
    expected = grid[inside].mean() - grid[~inside].mean()
    assert abs(explanation.coefficients.values[0, 0] - expected) < EXACT * abs(expected)
    assert limes.TabularExplainer(model, p[:, None])([[p[0]]]).coefficients.values[0, 0] == 0.0


@pytest.mark.parametrize("wide", [1.0, 1e10, 1e30, 1e100, 1e200])
def test_a_flat_law_far_wider_than_the_weight(wide):
    """Edges 1e30 times wider than the weights gave coefficients 6 % off: the peak was a small difference."""
    law = binned(np.array([-3.0, -1.0, 0.5, 2.0]), np.array([-4.0 * wide, 0.0, 4.0 * wide]), law="uniform")
    x, width = 0.3, 0.4
    design = ProductFamily((law,), named_weights("euclidean", width)).at(np.array([x]))
    result = limes.limit(design, forms.Boxes([[-0.5]], [[0.7]], [1.0])).coef[0]
    below = norm.cdf(-x / width)
    right = (norm.cdf((0.7 - x) / width) - below) / norm.sf(-x / width)
    left = (below - norm.cdf((-0.5 - x) / width)) / below
    assert abs(result - (right - left)) < EXACT * abs(right - left)


@pytest.mark.parametrize("factor", [1e-9, 1e8])
def test_sampled_slopes_of_columns_of_very_different_size(factor):
    """A column of 1e8 made all other sampled slopes 0, with errors of 1e-21."""
    factors = np.array([factor, 1.0, 1.0])
    model = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(
        X * factors, X[:, 0] + X[:, 1] * X[:, 2]
    )
    exact = limes.TabularExplainer(model, X * factors, bins=None)(ROWS * factors, progress=False)
    options = {"method": "sampled", "control": "none", "bins": None}
    for seed in range(repeats(3, 1)):
        sampled = limes.TabularExplainer(model, X * factors, rng=seed, **options)(
            ROWS * factors, progress=False
        )
        away = (
            sampled.coefficients.values - exact.coefficients.values
        ) / sampled.coefficients.standard_errors
        assert np.abs(away).max() < oracle.Z_LIMIT
        assert (sampled.coefficients.standard_errors * factors < 0.1).all()
        diagnosed = limes.diagnose(sampled)
        assert diagnosed is not None


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.floats(-1e10, 1e10), min_size=2, max_size=20), st.integers(-900, 900))
def test_means_and_deviations(values, exponent):
    x = np.ldexp(np.array(values), exponent)
    mean, std = mean_and_std(x)
    exact, least = x.astype(np.longdouble), 2.0**-1073
    assert abs(mean - exact.mean()) <= 1e-14 * np.abs(exact).max() + least
    assert abs(std - exact.std()) <= 1e-13 * np.abs(exact).max() + least


def test_ordinary_deviations_are_numpy_s_to_the_last_bit():
    x = np.array([RNG.lognormal(size=500) * size for size in (1.0, 1e5, 1e-7, 1e20)]).T + 3.0
    assert column_stds(x).tolist() == [c.copy().std() for c in x.T]
    assert [mean_and_std(c)[0] for c in x.T] == [c.copy().mean() for c in x.T]
    assert column_stds(np.array([[np.nan, 1.0], [np.nan, np.inf]])).tolist() == [0.0, 0.0]


def test_powers_of_two():
    numbers = np.array([1.0, 1.5, 2.0, 0.3, 5e-324, 1.7e308, 0.0, np.inf])
    assert power_of_two(numbers).tolist() == [1.0, 1.0, 2.0, 0.25, 5e-324, 2.0**1023, 1.0, 1.0]


def test_numbers_beyond_float64_are_an_error_that_names_the_column():
    """A slope of 1e310 is no number: it is refused, and so is an intercept."""
    table = X * [1e-305, 1.0, 1.0]
    model = HistGradientBoostingRegressor(max_iter=5).fit(table, 1e10 * X[:, 0])
    with pytest.raises(ModelError, match="coefficient of feature 'x0' is no finite number"):
        limes.TabularExplainer(model, table, bins=None)(table[:1])
    design = ProductFamily((unbinned(X[:, 0]),), named_weights("bins", 1.0)).at(X[0, :1])
    with pytest.raises(ModelError, match="no finite number"):
        limes.limit(design, forms.Linear([1.7e308], 1.7e308))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_subnormal_columns_and_the_very_largest(options):
    """1e-310 has 13 digits left, and they all count; a slope of 1e310 and values near 1.8e308 are refused."""
    if options.get("bins", 4) is None and "bandwidth" not in options:
        with pytest.raises(ModelError, match="'x0'"):
            explained(tree, 1e-312, options)
    elif "bins" not in options:
        expected, result = explained(tree, 1.0, options), explained(tree, 1e-310, options)
        assert oracle.error(result, expected) < EXACT
    with pytest.raises(InputError, match=r"column 'x0' holds .* divide the column"):
        limes.TabularExplainer(lambda rows: rows[:, 1], X * [4e307, 1.0, 1.0], **options)
