"""Attributes of links: the bounds of rules depend on their extremes."""

from __future__ import annotations

import numpy as np
import pytest

from internals import CURVES, bounds_of
from limes.models import forms

GRID = np.linspace(-6.0, 6.0, 2001)


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_says_whether_it_is_monotone(name):
    steps = np.diff(CURVES[name].function(GRID))
    assert CURVES[name].is_monotone == (bool((steps >= 0).all()) or bool((steps <= 0).all()))


@pytest.mark.parametrize("name", CURVES)
def test_bounds_over_a_box_contain_every_answer(name):
    form = forms.Linked(forms.Linear([1.0]), name)
    bounds, box = bounds_of(form), (GRID,)
    if bounds is None:
        assert not CURVES[name].is_monotone
        return
    ends, answers = bounds(box), form.predict(GRID[:, None])
    assert ends.low <= answers.min() + 1e-12
    assert ends.high >= answers.max() - 1e-12


@pytest.mark.parametrize("name", CURVES)
def test_the_first_contour_is_that_of_0_but_of_the_exponential(name):
    assert CURVES[name].tilts[0] == (1.0 if name == "exp" else 0.0)
