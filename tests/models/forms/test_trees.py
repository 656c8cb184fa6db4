"""Forests walk like trees, equal the sum of their boxes, and compare in float32 where the library does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import strategies
from effort import examples
from internals import float32_threshold
from limes.exceptions import InputError
from limes.models import forms

FLOAT32_MAX = float(np.finfo(np.float32).max)


def random_forest(rng, d, depth, count=3, outputs=()):
    places = [np.unique(rng.normal(size=4).round(1)) for _ in range(d)]
    trees = [strategies.random_tree(rng, places, depth, outputs) for _ in range(count)]
    # rows on thresholds, beside them, elsewhere, infinite and missing
    on = np.stack([rng.choice(p, 60) for p in places], axis=1)
    x = on + rng.choice([0.0, 1e-12, -1e-12, 0.5, -3.0], on.shape)
    x[rng.random(x.shape) < 0.15] = np.nan
    x[rng.random(x.shape) < 0.05] = np.inf
    x[rng.random(x.shape) < 0.05] = -np.inf
    return trees, strategies.as_forest(trees, d, outputs), x


@settings(max_examples=examples(80))
@given(strategies.rngs, st.integers(1, 4), st.integers(0, 6), st.sampled_from([(), (1,), (3,)]))
def test_a_forest_walks_node_by_node_and_is_its_boxes(rng, d, depth, outputs):
    trees, form, x = random_forest(rng, d, depth, outputs=outputs)
    expected = np.array([strategies.walk(trees, row) for row in x])
    assert np.allclose(form.predict(x), expected, rtol=0, atol=oracle.ROUNDING)
    # an open box holds no -inf: tables refuse infinite values
    x, boxes = np.where(np.isneginf(x), -1e300, x), strategies.leaf_boxes(form)
    assert np.allclose(boxes.predict(x), expected, rtol=0, atol=oracle.ROUNDING)
    assert np.allclose(form.reduce().predict(x), expected, rtol=0, atol=oracle.ROUNDING)
    assert np.allclose(strategies.in_boxes(boxes)(x), expected, rtol=0, atol=oracle.ROUNDING)
    if outputs == (3,):
        assert np.allclose(form.select(1).predict(x), expected[:, 1], rtol=0, atol=oracle.ROUNDING)
        several = form.select([2, 0]).predict(x)
        assert np.allclose(several, expected[:, [2, 0]], rtol=0, atol=oracle.ROUNDING)


def test_every_row_reaches_one_leaf_of_every_tree():
    rng = np.random.default_rng(0)
    trees, form, x = random_forest(rng, 3, 6)
    ones = forms.Boxes(
        *(getattr(strategies.leaf_boxes(form), n) for n in ("lower", "upper")),
        np.ones(strategies.leaf_boxes(form).value.shape[0]),
    )
    finite = x[np.isfinite(x).all(axis=1)]
    assert (ones.predict(finite) == len(trees)).all()


def test_a_single_leaf_is_a_constant():
    form = strategies.as_forest([[(-1, 0.0, -1, -1, False, np.array(2.5))]], 3)
    assert form.predict(np.full((4, 3), np.nan)).tolist() == [2.5] * 4
    assert strategies.leaf_boxes(form).predict(np.zeros((2, 3))).tolist() == [2.5] * 2


def test_no_rows_no_predictions():
    form = strategies.as_forest([[(-1, 0.0, -1, -1, False, np.zeros(2))]], 3, (2,))
    assert form.predict(np.zeros((0, 3))).shape == (0, 2)
    assert strategies.leaf_boxes(form).predict(np.zeros((0, 3))).shape == (0, 2)


def test_a_chain_of_a_hundred_splits():
    nodes, d = [], 3
    for level in range(100):
        node = 2 * level
        nodes.append((level % d, 1.0 - level / 100, node + 2, node + 1, False, np.array(0.0)))
        nodes.append((-1, 0.0, -1, -1, False, np.array(float(level))))
    nodes.append((-1, 0.0, -1, -1, False, np.array(-1.0)))
    form, x = strategies.as_forest([nodes], d), np.random.default_rng(1).uniform(-0.1, 1.1, (200, d))
    expected = strategies.walked([nodes])(x)
    assert len(set(expected)) > 20
    assert np.array_equal(form.predict(x), expected)
    assert np.array_equal(strategies.leaf_boxes(form).predict(x), expected)


def test_trees_over_different_columns_cannot_be_joined():
    leaf = [(-1, 0.0, -1, -1, False, np.array(0.0))]
    with pytest.raises(InputError, match="same columns"):
        forms.Forest.joined([strategies.as_forest([leaf], d) for d in (2, 3)], intercept=np.zeros(()))


# -- float32 -----------------------------------------------------------------------------------------------


def neighbours(threshold):
    """float64 numbers around the threshold and around the float32 numbers beside it, and their midpoints."""
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
        singles = [near]
        for direction in (np.float32(-np.inf), np.float32(np.inf)):
            one = np.nextafter(near, direction)
            singles += [one, np.nextafter(one, direction)]
    singles = np.sort(np.array(singles, dtype=np.float64))
    singles = singles[np.isfinite(singles)]
    points = np.concatenate([singles, 0.5 * (singles[:-1] + singles[1:]), [threshold]])
    points = np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf)])
    return points[np.isfinite(points) & (np.abs(points) <= FLOAT32_MAX)]


def assert_same_side(threshold):
    moved = float(float32_threshold(np.array([threshold]))[0])
    x = neighbours(threshold)
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float32).astype(np.float64)
    assert np.array_equal(x <= moved, rounded <= threshold), threshold


@settings(max_examples=examples(400))
@given(st.floats(-3e38, 3e38, allow_nan=False))
def test_a_moved_threshold_decides_as_float32_does(threshold):
    assert_same_side(threshold)


@settings(max_examples=examples(200))
@given(st.floats(-(2.0**127), 2.0**127, width=32, allow_nan=False))
def test_a_threshold_that_is_itself_a_float32(threshold):
    assert_same_side(threshold)


@settings(max_examples=examples(200))
@given(st.floats(-(2.0**127), 2.0**127, width=32, allow_nan=False))
def test_a_threshold_half_way_between_two_float32(low):
    assert_same_side(
        0.5 * (float(np.float32(low)) + float(np.nextafter(np.float32(low), np.float32(np.inf))))
    )


@pytest.mark.parametrize(
    "threshold",
    [0.0, -0.0, 1e-46, -1e-46, 1.4e-45, -1.4e-45, 1e-300, -1e-300, 1.0, 0.1, 16777217.0, -16777217.0],
)
def test_thresholds_near_nothing_and_where_whole_numbers_end(threshold):
    assert_same_side(threshold)


def test_infinite_thresholds_stay():
    assert float32_threshold(np.array([np.inf, -np.inf])).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("threshold", [FLOAT32_MAX, 1e300, -1e300, -FLOAT32_MAX])
def test_at_the_end_of_float32(threshold):
    """Numbers that round to the largest float32 pass with it; those that round to infinity do not."""
    moved = float(float32_threshold(np.array([threshold]))[0])
    edge = 2.0**128 - 2.0**103
    around = np.array([FLOAT32_MAX, np.nextafter(edge, 0), edge, 1e299, 1e301])
    x = np.concatenate([around, -around])
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float32).astype(np.float64)
    assert np.array_equal(x <= moved, rounded <= threshold)
