"""Forms predict their formulas, keep the shapes of their outputs, and refuse invalid arguments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import strategies
from effort import examples
from internals import Bump, Identity, Interval, Shape
from limes.exceptions import InputError
from limes.models import forms

OUTPUTS = [(), (1,), (3,)]
X = np.random.default_rng(0).normal(size=(50, 2))


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_predictions_have_the_shape_of_the_outputs(outputs):
    rng = np.random.default_rng(1)
    coef, intercept = rng.normal(size=(2, *outputs)), rng.normal(size=outputs)
    linear = forms.Linear(coef, intercept)
    assert np.allclose(linear.predict(X), np.tensordot(X, coef, axes=1) + intercept, rtol=1e-14)
    assert np.allclose(linear.reduce().predict(X), linear.predict(X), rtol=oracle.ROUNDING)
    boxes = strategies.random_boxes(rng, [np.array([-0.5, 0.0, 0.7])] * 2, 4, outputs)
    assert np.allclose(boxes.predict(X), strategies.in_boxes(boxes)(X), rtol=0, atol=oracle.ROUNDING)
    kernels = forms.GaussianKernels(X[:3], rng.normal(size=(3, *outputs)), 0.7, intercept)
    assert np.allclose(kernels.predict(X), strategies.kernels(kernels)(X), rtol=0, atol=oracle.ROUNDING)
    for form in (linear, boxes, kernels):
        assert form.size == 2
        assert form.predict(X).shape == (50, *outputs)
        assert form.predict(X[:0]).shape == (0, *outputs)
        if outputs:
            assert np.allclose(form.select(0).predict(X), form.predict(X)[:, 0], rtol=0, atol=oracle.ROUNDING)
            several = [0] if outputs == (1,) else [2, 0]
            assert np.allclose(
                form.select(several).predict(X), form.predict(X)[:, several], rtol=0, atol=1e-13
            )


@settings(max_examples=examples(30))
@given(strategies.rngs, st.integers(1, 200))
def test_boxes_are_evaluated_block_by_block(rng, step):
    from internals import _base as module

    boxes = strategies.random_boxes(rng, [np.array([-0.5, 0.0, 0.7])] * 2, 4, (2,))
    whole, kept = boxes.predict(X), module._BLOCK
    module._BLOCK = step
    try:
        assert np.allclose(boxes.predict(X), whole, rtol=0, atol=oracle.ROUNDING)
    finally:
        module._BLOCK = kept


def test_additive_and_multiplicative():
    functions = [np.sin, None]
    assert np.allclose(forms.Additive(functions, intercept=2.0).predict(X), np.sin(X[:, 0]) + 2, rtol=1e-14)
    assert np.allclose(forms.Multiplicative(functions).predict(X), np.sin(X[:, 0]), rtol=1e-14)
    both = [np.sin, np.cos]
    assert np.allclose(forms.Multiplicative(both).predict(X), np.sin(X[:, 0]) * np.cos(X[:, 1]), rtol=1e-14)
    assert forms.Additive([None, None], intercept=1.0).predict(X).tolist() == [1.0] * 50
    assert forms.Multiplicative([None, None]).predict(X).tolist() == [1.0] * 50


def test_missing_values_pass_open_boxes_only_unless_said_otherwise():
    row = np.array([[np.nan, 0.0]])
    closed = forms.Boxes([[-1.0, -1.0]], [[np.inf, 1.0]], [1.0])
    opened = forms.Boxes([[-np.inf, -1.0]], [[np.inf, 1.0]], [1.0])
    mixed = forms.Boxes([[-1.0, -1.0]], [[np.inf, 1.0]], [1.0], missing=[[True, False]])
    refused = forms.Boxes([[-np.inf, -1.0]], [[np.inf, 1.0]], [1.0], missing=[[False, False]])
    assert [float(f.predict(row)[0]) for f in (closed, opened, mixed, refused)] == [0.0, 1.0, 1.0, 0.0]


def test_boxes_are_open_on_the_left_and_closed_on_the_right():
    form = forms.Boxes([[0.0]], [[1.0]], [1.0])
    assert form.predict([[0.0], [np.nextafter(0, 1)], [1.0], [np.nextafter(1, 2)]]).tolist() == [0, 1, 1, 0]
    assert forms.Boxes([[1.0]], [[1.0]], [1.0]).predict([[1.0]]).tolist() == [0.0]
    assert forms.Boxes([[-np.inf]], [[np.inf]], [1.0]).predict([[np.inf], [1e300]]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: forms.Linear([1.0, np.nan]), ["coef", "finite", "nan"]),
        (lambda: forms.Linear([[[1.0]]]), ["coef", "1 or 2 dimensions"]),
        (lambda: forms.Linear([1.0], np.inf), ["intercept", "finite"]),
        (lambda: forms.Boxes([[0.0]], [[1.0, 2.0]], [1.0]), ["(1, 1)", "(1, 2)"]),
        (lambda: forms.Boxes([[0.0]], [[1.0]], [1.0, 2.0]), ["(m, d)", "(2,)"]),
        (lambda: forms.Boxes([[np.nan]], [[1.0]], [1.0]), ["NaN", "-inf"]),
        (lambda: forms.Boxes([[0.0]], [[1.0]], [np.nan]), ["value", "finite"]),
        (lambda: forms.Boxes([0.0], [1.0], [1.0]), ["lower", "2 dimensions"]),
        (lambda: forms.GaussianKernels([[0.0]], [1.0, 2.0], 1.0), ["centers (m, d)", "(1, 1)", "(2,)"]),
        (lambda: forms.GaussianKernels([[0.0]], [1.0], 0.0), ["scale", "> 0"]),
        (lambda: forms.GaussianKernels([[0.0]], [1.0], np.inf), ["scale", "finite"]),
        (lambda: forms.GaussianKernels([[np.inf]], [1.0], 1.0), ["centers", "finite"]),
        (lambda: forms.Additive([np.sin], [[], []]), ["breaks has 2", "functions has 1"]),
        (lambda: forms.Additive([3.0]), ["callable", "float"]),
        (lambda: forms.Additive([np.sin]).select(0), ["one output"]),
        (lambda: forms.Multiplicative([np.sin]).select([0]), ["one output"]),
        (lambda: forms.Additive([lambda x: 1.0]).predict(X[:, :1]), ["(50,)", "()", "(n,) to (n,)"]),
        (lambda: forms.Multiplicative([lambda x: x[:, None]]).predict(X[:, :1]), ["(50, 1)"]),
    ],
)
def test_errors_say_what_is_wrong(build, words):
    with pytest.raises(InputError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "select",
    [
        lambda: forms.Linear([1.0, 2.0]).select(0),
        lambda: forms.Linear([[1.0, 2.0]]).select(2),
        lambda: forms.Boxes([[0.0]], [[1.0]], [1.0]).select([0]),
        lambda: forms.GaussianKernels([[0.0]], [[1.0, 2.0]], 1.0).select([0, 5]),
        lambda: strategies.as_forest([[(-1, 0.0, -1, -1, False, np.array(1.0))]], 1).select(0),
    ],
)
def test_an_output_that_does_not_exist_is_refused(select):
    with pytest.raises(InputError):
        select()


def test_a_tiny_scale_is_refused_or_right():
    try:
        form = forms.GaussianKernels([[0.0]], [1.0], 1e-170)
        assert form.predict([[0.0], [1.0]]).tolist() == [1.0, 0.0]
    except InputError:
        pass


def test_bricks_evaluate_their_formulas():
    x = np.array([-1.0, 0.0, 0.5, 1.0, np.nan])
    interval = Interval(np.array([0.0, -np.inf]), np.array([1.0, 0.0]), np.array([False, True]))
    assert interval(x).tolist() == [[0, 0, 1, 1, 0], [1, 1, 0, 0, 1]]
    assert np.array_equal(Identity()(x[:4]), x[None, :4])
    assert np.allclose(Bump(np.array([0.5]), 4.0)(x[:4]), np.exp(-2 * (x[:4] - 0.5) ** 2))
    assert np.array_equal(Shape(np.abs)(x[:4]), np.abs(x[None, :4]))
