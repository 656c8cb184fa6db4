"""Combinations of forms, and their parts: values and exact limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limes
import oracle
import slopes
import strategies
from effort import examples
from internals import (
    Atoms,
    GaussianPieces,
    Lookup,
    Power,
    Step,
    Sum,
    SumOfProducts,
    combine,
    map_outputs,
    on_columns,
)
from limes.exceptions import InputError
from limes.models import forms
from oracle import EXACT, ROUNDING

OUTPUTS = st.sampled_from([(), (1,), (3,)])
KINDS = ("Boxes", "Forest", "GaussianKernels", "Linear", "Quadratic", "Reduced", "ReducedProducts")


def random_form(kind, rng, d, outputs=()):
    make = {
        "Boxes": lambda: strategies.random_boxes(rng, [np.arange(-2.0, 3.0)] * d, 4, outputs),
        "Forest": lambda: random_forest(rng, d, outputs),
        "GaussianKernels": lambda: forms.GaussianKernels(
            rng.normal(size=(4, d)), rng.normal(size=(4, *outputs)), 1.3, rng.normal(size=outputs)
        ),
        "Linear": lambda: forms.Linear(rng.normal(size=(d, *outputs)), rng.normal(size=outputs)),
        "Quadratic": lambda: forms.Quadratic(
            rng.normal(size=(d, d, *outputs)), rng.normal(size=(d, *outputs)), rng.normal(size=outputs)
        ),
        "Reduced": lambda: random_steps(rng, d, outputs),
        "ReducedProducts": lambda: random_tables(rng, d, outputs),
    }
    return make[kind]()


def random_forest(rng, d, outputs):
    trees = [strategies.random_tree(rng, [np.arange(-2.0, 3.0)] * d, 3, outputs) for _ in range(2)]
    return strategies.as_forest(trees, d, outputs)


def step(rng, m, cuts=(-1.0, 0.5)):
    return Step(np.array(cuts), rng.normal(size=(m, len(cuts) + 1)), rng.normal(size=m))


def random_steps(rng, d, outputs):
    loadings = tuple(rng.normal(size=(2, *outputs)) for _ in range(d))
    functions = tuple(step(rng, 2) if j != 1 else None for j in range(d))
    return forms.Reduced(Sum(functions, loadings, rng.normal(size=outputs)))


def random_tables(rng, d, outputs):
    functions = tuple(step(rng, 3) for _ in range(d))
    return forms.Reduced(SumOfProducts(functions, rng.normal(size=(3, *outputs)), rng.normal(size=outputs)))


def rows(rng, d, n=200):
    x = rng.choice([-2.0, -1.0, 0.5, 1.0, *rng.normal(size=9)], (n, d))
    return np.where(rng.random((n, d)) < 0.3, np.nextafter(x, -np.inf), x)


# -- sums, maps, columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
def test_outputs_are_mapped(kind, outputs):
    rng = np.random.default_rng(0)
    form, x = random_form(kind, rng, 2, outputs), rows(rng, 2)
    for new in ((), (2,)):
        matrix = rng.normal(size=(*outputs, *new))
        expected = np.tensordot(form.predict(x), matrix, axes=len(outputs))
        result = map_outputs(form, matrix)
        assert type(result) is type(form)
        assert result.predict(x).shape == expected.shape
        assert oracle.error(result.predict(x), expected) < ROUNDING
        nested = map_outputs(forms.Combination([form, form], [2.0, -0.5], rng.normal(size=outputs)), matrix)
        assert nested.predict(x).shape == expected.shape


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_forms_read_other_columns(kind, outputs):
    rng = np.random.default_rng(1)
    form, x = random_form(kind, rng, 3, outputs), rows(rng, 5)
    result = on_columns(form, [4, 0, 2], 5)
    assert result.size == 5
    assert oracle.error(result.predict(x), form.predict(x[:, [4, 0, 2]])) < ROUNDING
    both = forms.Combination([form, form], [2.0, -0.5], np.ones(outputs))
    assert oracle.error(on_columns(both, [4, 0, 2], 5).predict(x), both.predict(x[:, [4, 0, 2]])) < ROUNDING


@pytest.mark.parametrize("kind", ["Forest", "GaussianKernels", "Linear", "Quadratic"])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_forms_read_a_column_twice(kind, outputs):
    rng = np.random.default_rng(2)
    form, x = random_form(kind, rng, 4, outputs), rows(rng, 3)
    columns = [1, 0, 1, 1]
    result = on_columns(form, columns, 3)
    assert oracle.error(result.predict(x), form.predict(x[:, columns])) < ROUNDING
    assert oracle.error(result.reduce().predict(x), form.predict(x[:, columns])) < ROUNDING


@pytest.mark.parametrize("kind", ["Boxes", "Reduced"])
def test_others_cannot_read_a_column_twice(kind):
    with pytest.raises(InputError, match="twice"):
        on_columns(random_form(kind, np.random.default_rng(0), 2), [0, 0], 2)


@settings(max_examples=examples(60))
@given(strategies.rngs, st.lists(st.sampled_from(KINDS), min_size=1, max_size=6), OUTPUTS)
def test_sums(rng, kinds, outputs):
    parts, weights = [random_form(kind, rng, 2, outputs) for kind in kinds], rng.normal(size=len(kinds))
    constant, x = rng.normal(size=outputs), rows(rng, 2)
    expected = constant + sum(w * part.predict(x) for w, part in zip(weights, parts, strict=True))
    plain = forms.Combination(parts, weights, constant)
    nested = combine([plain, parts[0]], [1.0, 2.0])
    assert oracle.error(plain.predict(x), expected) < ROUNDING
    assert oracle.error(combine(parts, weights, intercept=constant).predict(x), expected) < ROUNDING
    assert oracle.error(nested.predict(x), expected + 2 * parts[0].predict(x)) < ROUNDING
    if outputs == (3,):
        assert oracle.error(nested.select([2, 0]).predict(x), nested.predict(x)[:, [2, 0]]) < ROUNDING
        assert oracle.error(nested.select(1).predict(x), nested.predict(x)[:, 1]) < ROUNDING


@pytest.mark.parametrize("kind", ["Forest", "GaussianKernels", "Linear", "Quadratic"])
def test_a_sum_of_one_kind_is_one_form(kind):
    rng = np.random.default_rng(0)
    parts = [random_form(kind, rng, 2) for _ in range(5)]
    whole = combine(parts, np.full(5, 0.2), intercept=3.0)
    assert type(whole).__name__ == kind
    mixed = combine([*parts, forms.Boxes([[0.0, 0.0]], [[1.0, 1.0]], [1.0])])
    assert isinstance(mixed, forms.Combination)
    assert len(mixed.parts) == 2


def test_kernels_of_several_scales_stay_apart():
    scales = [1.0, 2.0, [1.0, 1.0], [1.0, 3.0]]
    whole = combine([forms.GaussianKernels([[0.0, 0.0]], [1.0], scale) for scale in scales])
    assert len(whole.parts) == 3


def test_a_column_split_both_ways_needs_two_forests():
    by_threshold = random_forest(np.random.default_rng(0), 1, ())
    by_set = forms.Forest(
        feature=np.array([0, -1, -1]),
        threshold=np.zeros(3),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        missing_left=np.zeros(3, dtype=bool),
        value=np.array([0.0, 1.0, 2.0]),
        roots=np.array([0]),
        intercept=np.zeros(()),
        size=1,
        set_of=np.array([0, -1, -1]),
        sets=np.array([[True, False, True]]),
    )
    whole, x = combine([by_threshold, by_set]), np.array([[0.0], [1.0], [2.0], [np.nan]])
    assert isinstance(whole, forms.Combination)
    assert np.allclose(whole.predict(x), by_threshold.predict(x) + by_set.predict(x))


def test_user_made_forms_can_be_added():
    additive = forms.Additive([np.sin, None], intercept=1.0)
    product = forms.Multiplicative([np.cos, np.exp])
    x = np.random.default_rng(0).normal(size=(9, 2))
    whole = combine([additive, product], [2.0, 3.0])
    assert np.allclose(whole.predict(x), 2 * additive.predict(x) + 3 * product.predict(x), rtol=ROUNDING)
    assert np.allclose(on_columns(product, [1, 0], 2).predict(x), product.predict(x[:, ::-1]))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: forms.Combination([], []), "as many weights"),
        (lambda: forms.Combination([forms.Linear([1.0])], [1.0, 2.0]), "as many weights"),
        (lambda: combine([forms.Linear([1.0]), forms.Linear([1.0, 2.0])]), "same columns"),
        (lambda: combine([forms.Linear([1.0]), forms.Linear([[1.0, 2.0]])]), "same outputs"),
        (lambda: combine([forms.BlackBox(np.sin, "why")]), "BlackBox"),
        (lambda: forms.GaussianKernels([[0.0, 1.0]], [1.0], [1.0]), "one a column"),
        (lambda: forms.GaussianKernels([[0.0, 1.0]], [1.0], [1.0, -1.0]), "> 0"),
        (lambda: forms.GaussianKernels([[0.0, 1.0]], [1.0], [1.0, np.nan]), "> 0"),
        (lambda: forms.GaussianKernels([[0.0, 1.0]], [1.0], 1e-200), "not below"),
    ],
)
def test_forms_that_cannot_be_combined_are_refused(build, reason):
    with pytest.raises(InputError, match=reason):
        build()


# -- exact limits -----------------------------------------------------------------------------------------


@settings(max_examples=examples(12))
@given(strategies.designs(sizes=(1, 2), most_bins=2), strategies.rngs, OUTPUTS)
def test_limits(stated, rng, outputs):
    kinds = ["Forest", "Forest", "GaussianKernels", "Linear", "Quadratic", "Reduced", "ReducedProducts"]
    parts = [random_form(kind, rng, stated.size, outputs) for kind in kinds]
    form = combine(parts, rng.normal(size=7), intercept=rng.normal(size=outputs))
    breaks = [[-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]] * stated.size
    truth = oracle.truth(stated.columns(breaks, resolution=4.0), form.predict, stated.cells)
    surrogate = limes.limit(stated.design(), form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT


@settings(max_examples=examples(20))
@given(strategies.rngs, st.integers(1, 2), OUTPUTS)
def test_slopes(rng, d, outputs):
    design, columns = slopes.normal_columns(rng, d)
    parts = [random_form(k, rng, d, outputs) for k in ("Forest", "GaussianKernels", "Reduced", "Quadratic")]
    breaks = [[-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]] * d
    form = combine(parts)
    slopes.assert_slopes(design, form, form.predict, columns(breaks, resolution=2.0))


@settings(max_examples=examples(25))
@given(strategies.designs(sizes=(2,), most_bins=3), strategies.rngs, OUTPUTS)
def test_a_scale_a_column(stated, rng, outputs):
    scale = rng.choice([0.3, 1.0, 5.0, np.inf], 2)
    centers, coef = rng.normal(size=(3, 2)), rng.normal(size=(3, *outputs))
    form = forms.GaussianKernels(centers, coef, scale, rng.normal(size=outputs))

    def f(x):
        exponent = (((x[:, None, :] - centers) / scale) ** 2).sum(axis=2)
        return form.intercept + np.tensordot(np.exp(-exponent / 2), coef, axes=1)

    x = rng.normal(size=(50, 2))
    assert oracle.error(form.predict(x), f(x)) < ROUNDING
    assert oracle.error(form.reduce().predict(x), f(x)) < ROUNDING
    truth = oracle.truth(stated.columns(resolution=4 * scale.min()), f, stated.cells)
    surrogate = limes.limit(stated.design(), form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT


def test_a_scale_for_all_is_the_same_scale_for_each():
    rng = np.random.default_rng(0)
    centers, x = rng.normal(size=(4, 3)), rng.normal(size=(9, 3))
    one = forms.GaussianKernels(centers, np.ones(4), 0.7)
    each = forms.GaussianKernels(centers, np.ones(4), [0.7] * 3)
    assert np.array_equal(one.predict(x), each.predict(x))
    assert one.scale == 0.7


# -- bricks -----------------------------------------------------------------------------------------------


def test_steps_belong_to_the_bin_below_their_cut():
    brick = Step(np.array([0.0, 2.0]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([7.0, 8.0]))
    x = np.array([-np.inf, -0.0, 0.0, np.nextafter(0, 1), 2.0, np.nextafter(2, 3), np.inf, np.nan])
    assert brick(x).tolist() == [[1, 1, 1, 2, 2, 3, 3, 7], [4, 4, 4, 5, 5, 6, 6, 8]]
    assert Step(np.zeros(0), np.array([[4.0]]), np.array([5.0]))(x[-2:]).tolist() == [[4, 5]]


def test_lookups():
    brick = Lookup(np.array([-1.0, 0.5, 3.0]), np.array([[1.0, 2.0, 3.0]]), np.array([4.0]), np.array([5.0]))
    x = np.array([-1.0, 0.5, 3.0, 2.0, 9.0, -9.0, np.inf, np.nan])
    assert brick(x).tolist() == [[1, 2, 3, 5, 5, 5, 5, 4]]
    nothing = Lookup(np.zeros(0), np.zeros((1, 0)), np.array([4.0]), np.array([5.0]))
    assert nothing(x).tolist() == [[5] * 7 + [4]]
    with pytest.raises(InputError, match="categorical="):
        brick.integrate(GaussianPieces.truncated_normal(*np.ones((4, 1)), weight=np.ones(1)))


@pytest.mark.parametrize("std", [1e-3, 0.7, 30.0, np.inf])
@pytest.mark.parametrize("mean", [-50.0, 0.3, 1000.0])
def test_moments_of_pieces(mean, std):
    """∫ xᵏ and ∫ (x - origin) xᵏ, against the grid."""
    lower, upper = np.array([-1.0, 2.0]), np.array([0.5, 7.0])
    pieces = GaussianPieces.truncated_normal(
        np.full(2, mean), np.full(2, std), lower, upper, weight=np.array([0.25, 2.0])
    )
    power, origin = Power(np.array([2, 0, 1])), np.array([0.1, 4.0])
    for piece in range(2):
        x, log_mass = oracle.cell_points(mean, std, lower[piece], upper[piece])
        law = np.exp(log_mass - oracle.log_sum(log_mass)) * pieces.weight[piece]
        expected = np.array([law @ x**2, law.sum(), law @ x])
        assert oracle.error(pieces.expect(power)[:, piece], expected) < 1e-11
        centred = np.array([law @ ((x - origin[piece]) * x**k) for k in (2, 0, 1)])
        size = float(np.abs(law * (x - origin[piece])).sum()) * 49
        result = pieces.centred(origin).expect(power)[:, piece]
        assert np.abs(result - centred).max() < 1e-11 * size


def test_powers_of_atoms():
    atoms = Atoms(np.array([2.0, -3.0]), np.array([0.5, 1.0]))
    assert atoms.expect(Power(np.array([0, 1, 2]))).tolist() == [[0.5, 1.0], [1.0, -3.0], [2.0, 9.0]]
