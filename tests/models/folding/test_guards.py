"""Guards make a form NaN where a step of the model would raise."""

from __future__ import annotations

import numpy as np

from internals import Accepted, Guard, LookupMap, ModelColumn, StepMap

KEYS = np.array([0.0, 1.0, 2.0])


def guarded(values, **accepted):
    codes = LookupMap(KEYS, np.array([*values, 0.0, 0.0]), closed=True)
    return Guard(ModelColumn(0, codes), Accepted(**accepted), "Step").function()


def test_categories_whose_code_a_step_refuses_are_nan():
    np.testing.assert_array_equal(guarded([4.0, np.nan, 9.0])(KEYS), [[0.0, np.nan, 0.0]])
    np.testing.assert_array_equal(guarded([4.0, -1.0, 9.0], lower=0.0)(KEYS), [[0.0, np.nan, 0.0]])


def test_categories_that_a_step_takes_need_no_guard():
    assert guarded([4.0, 1.0, 9.0]) is None
    assert guarded([4.0, np.nan, 9.0], missing=True) is None


def test_steps_of_a_number_that_a_step_refuses_are_nan_between_their_cuts():
    def guarded_steps(*values, **accepted):
        pieces = StepMap(np.array([1.0, 2.0]), np.array(values), missing=0.0)
        return Guard(ModelColumn(0, pieces), Accepted(**accepted), "Step").function()

    x = np.array([0.5, 1.5, 2.5])
    np.testing.assert_array_equal(guarded_steps(4.0, -1.0, 9.0, lower=0.0)(x), [[0.0, np.nan, 0.0]])
    assert guarded_steps(4.0, 1.0, 9.0, lower=0.0) is None
