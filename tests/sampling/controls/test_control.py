"""A control is used where it lowers the error, not where a linear fit does as well; folds decide together."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from internals import ZeroControl, if_better_than_linear, share_beyond_trees, switch_kernels, tree_control
from limes.designs import ExchangeableDesign

DESIGN = ExchangeableDesign.word_deletions(12)


@pytest.fixture
def z():
    return DESIGN.sample(400, np.random.SeedSequence(0))[0]


def test_linear_functions_need_no_control(z):
    f = (z @ np.arange(12.0))[:, None] + 1.0
    assert isinstance(if_better_than_linear(switch_kernels)(DESIGN, z, f), ZeroControl)


def test_products_do(z):
    f = np.tanh(3 * (z[:, :4].prod(axis=1) - z[:, 5] * z[:, 6]) + z[:, 1])[:, None]
    fitted = if_better_than_linear(switch_kernels)(DESIGN, z[:300], f[:300])
    assert not isinstance(fitted, ZeroControl)
    assert (f[300:] - fitted.predict(z[300:])).var() < 0.5 * f[300:].var()


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_choice_does_not_depend_on_the_unit_of_the_answers(z, unit):
    curved, linear = np.sin(5 * z[:, :1] * z[:, 1:2] + z[:, 2:3] * z[:, 3:4]), z[:, :1] * 2.0
    assert not isinstance(if_better_than_linear(switch_kernels)(DESIGN, z, unit * curved), ZeroControl)
    assert isinstance(if_better_than_linear(switch_kernels)(DESIGN, z, unit * linear), ZeroControl)


def test_a_control_needs_as_many_rows_as_the_decision(z):
    control = if_better_than_linear(switch_kernels)
    linear, curved = z[:, :1] * 2.0, np.sin(5 * z[:, :1] * z[:, 1:2] + z[:, 2:3] * z[:, 3:4])
    assert isinstance(control(DESIGN, z[:300], linear[:300]), ZeroControl)
    assert isinstance(control(DESIGN, z[100:], curved[100:]), ZeroControl)
    assert not isinstance(control(DESIGN, z, curved), ZeroControl)


def test_boosted_trees_of_two_probabilities_are_one_forest():
    """p and 1 - p vary along one direction: a second forest would be fitted to rounding errors."""
    rows = np.random.default_rng(0).random((60, 3))
    p = rows[:, :1] * rows[:, 1:2]
    fitted = tree_control(DESIGN, rows, np.hstack([p, 1.0 - p]))
    assert len(fitted.forests) == 1
    np.testing.assert_allclose(fitted.predict(rows).sum(axis=1), 1.0, atol=oracle.EXACT)


def test_trees_of_many_outputs_leave_the_variance_outside_their_directions():
    rng = np.random.default_rng(1)
    rows = rng.random((300, 20))
    # outputs of a column each: no eight of their mixtures have all of it
    f = (rows > rng.uniform(0.2, 0.8, 20)).astype(float)
    outside, rest = share_beyond_trees(f), f - tree_control(DESIGN, rows, f).predict(rows)
    assert outside > 0.1
    assert (rest.var(axis=0) / f.var(axis=0)).mean() > outside
    assert share_beyond_trees(f[:, :8]) == 0.0
