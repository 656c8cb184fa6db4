"""Quadratic forms: values, exact limits, scikit-learn's polynomial features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures

import limes
import oracle
import slopes
import strategies
from effort import examples
from internals import ProductFamily, binned, from_polynomial_features, named_weights
from limes.designs import ProductDesign
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT, ROUNDING

OUTPUTS = st.sampled_from([(), (1,), (3,)])


def random_quadratic(rng, d, outputs=()):
    return forms.Quadratic(
        rng.normal(size=(d, d, *outputs)), rng.normal(size=(d, *outputs)), rng.normal(size=outputs)
    )


def term_by_term(form):
    def f(x):
        total = np.zeros((len(x), *form.intercept.shape)) + form.intercept
        for j in range(form.size):
            total += np.multiply.outer(x[:, j], form.coef[j])
            for k in range(form.size):
                total += np.multiply.outer(x[:, j] * x[:, k], form.matrix[j, k])
        return total

    return f


@settings(max_examples=examples(30))
@given(strategies.rngs, st.integers(1, 5), OUTPUTS)
def test_values(rng, d, outputs):
    form, x = random_quadratic(rng, d, outputs), rng.normal(size=(50, d))
    expected = term_by_term(form)(x)
    assert oracle.error(form.predict(x), expected) < ROUNDING
    assert oracle.error(form.reduce().predict(x), expected) < ROUNDING


@settings(max_examples=examples(50))
@given(strategies.designs(sizes=(1, 2), most_bins=3), strategies.rngs, OUTPUTS)
def test_limit(stated, rng, outputs):
    form = random_quadratic(rng, stated.size, outputs)
    truth = oracle.truth(stated.columns(), term_by_term(form), stated.cells)
    surrogate = limes.limit(stated.design(), form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT


@settings(max_examples=examples(20))
@given(strategies.rngs, st.integers(1, 2), OUTPUTS)
def test_slopes(rng, d, outputs):
    design, columns = slopes.normal_columns(rng, d)
    form = random_quadratic(rng, d, outputs)
    slopes.assert_slopes(design, form, term_by_term(form), columns())


def test_the_slope_of_a_square_is_twice_the_mean():
    """A normal law: Cov(x, x²) = 2 m Var x."""
    design, columns = slopes.normal_columns(np.random.default_rng(3), 1)
    surrogate = limes.limit(design, forms.Quadratic([[1.0]], [0.0]))
    mean = columns()[0].law() @ columns()[0].x
    assert surrogate.coef[0] == pytest.approx(2 * float(mean), rel=EXACT)


def test_products_of_columns_that_do_not_vary_with_each_other():
    """E[x_1 | z_0] = E x_1: β_0 of x_0 x_1 is the linear β_0 times the mean of x_1."""
    rng = np.random.default_rng(0)
    edges, means, stds, _ = strategies.stated_bins(rng, 3, points=False)
    design = ProductDesign.from_bins([edges] * 2, [means] * 2, [stds] * 2, edges[1:3], 0.7)
    product = limes.limit(design, forms.Quadratic([[0.0, 1.0], [0.0, 0.0]], [0.0, 0.0])).coef
    first = limes.limit(design, forms.Linear([1.0, 0.0]))
    second = limes.limit(design, forms.Linear([0.0, 1.0]))
    mean = second.intercept + second.coef[1] * design.inclusion[1]
    assert product[0] == pytest.approx(first.coef[0] * mean, rel=EXACT)


@settings(max_examples=examples(20))
@given(strategies.rngs, OUTPUTS)
def test_after_a_scaler(rng, outputs):
    form, x = random_quadratic(rng, 3, outputs), rng.normal(size=(20, 3))
    scale, shift = rng.normal(size=3), rng.normal(size=3)
    result = form.affine(scale, shift).predict(x)
    assert oracle.error(result, form.predict(scale * x + shift)) < ROUNDING
    assert oracle.error(form.affine(2.0, -1.0).predict(x), form.predict(2 * x - 1)) < ROUNDING


def test_select():
    form = random_quadratic(np.random.default_rng(1), 2, (3,))
    x = np.random.default_rng(2).normal(size=(9, 2))
    assert np.allclose(form.select(1).predict(x), form.predict(x)[:, 1], rtol=ROUNDING)
    assert np.allclose(form.select([2, 0]).predict(x), form.predict(x)[:, [2, 0]], rtol=ROUNDING)


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
@pytest.mark.parametrize("degree", [1, 2, (2, 2)])
@pytest.mark.parametrize("targets", [(), (2,)])
def test_polynomial_features(interaction_only, include_bias, degree, targets):
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(80, 4)), 3 * rng.normal(size=(1000, 4))
    features = PolynomialFeatures(degree, interaction_only=interaction_only, include_bias=include_bias)
    model = LinearRegression().fit(features.fit_transform(X), rng.normal(size=(80, *targets)))
    form = from_polynomial_features(features.powers_, model.coef_.T, model.intercept_)
    assert oracle.error(form.predict(rows), model.predict(features.transform(rows))) < ROUNDING


def test_without_terms_it_is_a_constant():
    form = from_polynomial_features(np.zeros((1, 2)), [4.0], 1.0)
    assert form.predict(np.ones((3, 2))).tolist() == [5.0] * 3
    design, _ = slopes.normal_columns(np.random.default_rng(0), 2)
    surrogate = limes.limit(design, form)
    assert surrogate.intercept == 5.0
    assert not surrogate.coef.any()


def test_a_missing_value_has_no_square():
    X = np.array([[1.0, 2.0], [3.0, np.nan], [0.5, 4.0]])
    marginals = binned(X[:, 0], np.array([0.0, 1.0, 4.0])), binned(X[:, 1], np.array([1.0, 3.0, 5.0]))
    design = ProductFamily(marginals, named_weights("bins", 1.0)).at(X[0])
    with pytest.raises(ModelError, match="column 1"):
        limes.limit(design, forms.Quadratic(np.eye(2), np.zeros(2)))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: forms.Quadratic(np.eye(2), [1.0]), "disagree"),
        (lambda: forms.Quadratic(np.full((1, 1), np.nan), [1.0]), "finite"),
        (lambda: from_polynomial_features([[3]], [1.0]), "at most 2"),
        (lambda: from_polynomial_features([[1, 1, 1]], [1.0]), "at most 2"),
        (lambda: from_polynomial_features([[0.5]], [1.0]), "whole"),
        (lambda: from_polynomial_features([[-1]], [1.0]), "whole"),
        (lambda: from_polynomial_features([[1]], [1.0, 2.0]), "as many coef"),
    ],
)
def test_forms_that_are_not_quadratic(build, reason):
    with pytest.raises(InputError, match=reason):
        build()
