"""The quadrature of links, against enumeration of sums of coins."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.special import ndtr

from limes.exceptions import InputError
from limes.theory import expected_link
from pages import page

CURVES = {
    "logistic": lambda s: 1 / (1 + np.exp(-s)),
    "probit": ndtr,
    "cloglog": lambda s: -np.expm1(-np.exp(s)),
}


def coins(down, up, count):
    """M(z) of a sum of coins, and the values and law of the sum."""
    values = count * down + (up - down) * np.arange(count + 1)
    law = np.array([comb(count, k) for k in range(count + 1)]) / 2.0**count
    return lambda z: ((np.exp(z * down) + np.exp(z * up)) / 2) ** count, values, law


@pytest.mark.parametrize("link", CURVES)
@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("sides", [(-1.0, 2.0, 10), (-3.0, 0.5, 7), (-8.0, 8.0, 4), (0.01, 0.02, 3)])
def test_the_error_is_below_the_one_that_is_stated(link, error, sides):
    generating, values, law = coins(*sides)
    result = expected_link(generating, values[0], values[-1], link, error=error)
    assert abs(result.value - law @ CURVES[link](values)) <= result.error + 1e-14
    assert result.error == error


@pytest.mark.parametrize("link", CURVES)
def test_a_margin_of_one_value_has_the_curves_value(link):
    assert expected_link(lambda z: np.exp(0.7 * z), 0.7, 0.7, link).value == pytest.approx(CURVES[link](0.7))


def test_nodes_grow_with_the_digits():
    generating, *_ = coins(-1.0, 2.0, 10)
    nodes = [expected_link(generating, -10, 20, error=10.0**-k).nodes for k in (1, 4, 8, 12)]
    assert nodes == sorted(set(nodes))
    assert nodes[-1] < 60


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.exp, 0.0, 1.0, "cauchit"), {}, "is not one of"),
        ((np.exp, 1.0, 0.0), {}, "must (be a finite number|ascend)"),
        ((np.exp, 0.0, np.inf), {}, "must (be a finite number|ascend)"),
        ((np.exp, 0.0, 1.0), {"error": 1e-20}, "error must be from"),
        ((lambda z: 1.0, 0.0, 1.0), {}, "finite numbers"),
        ((np.exp, 0.0, 1e6), {}, "too far"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        expected_link(*arguments, **options)


def test_the_example_of_the_documentation_runs(capsys):
    exec(page("quadrature.md").split("```python\n")[1].split("```")[0], {})  # noqa: S102 - the page's own lines
    first, gap = capsys.readouterr().out.splitlines()
    value, error, nodes = map(float, first.split())
    assert 0 < value < 1
    assert error <= 1e-12
    assert nodes < 60
    assert float(gap) < 1e-3
