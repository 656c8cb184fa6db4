"""Moments of many rows by lookup equal those of each row alone, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from internals import Combination, ProductFamily, Rows, binned, exact_expectation, named_weights, read
from limes.models import forms
from oracle import EXACT

RNG = np.random.default_rng(0)
D = 4
FOREST = read(RandomForestRegressor(20, random_state=0).fit(RNG.normal(size=(80, D)), RNG.normal(size=80)))
FORMS = {
    "linear": forms.Linear(RNG.normal(size=D), 0.3),
    "linear, three outputs": forms.Linear(RNG.normal(size=(D, 3)), RNG.normal(size=3)),
    "additive": forms.Additive([np.sin, np.cos, np.exp, np.tanh]),
    "multiplicative": forms.Multiplicative([np.cos, np.exp, np.tanh, np.sin]),
    "kernels": forms.GaussianKernels(RNG.normal(size=(9, D)), RNG.normal(size=9), 1.3, 0.2),
    "combination": Combination(
        [forms.Linear(RNG.normal(size=D), 0.3), forms.Additive([np.sin, np.cos, np.exp, np.tanh])] * 5,
        RNG.normal(size=10),
        np.array(0.7),
    ),
    "boxes": forms.Boxes(RNG.normal(size=(7, D)) - 1, RNG.normal(size=(7, D)) + 1, RNG.normal(size=(7, 2))),
}


@pytest.fixture(scope="module")
def rows():
    return RNG.normal(size=(60, D))


@pytest.fixture(scope="module")
def family(rows) -> ProductFamily:
    edges = [np.percentile(x, [0, 25, 50, 75, 100]) for x in rows.T]
    marginals = tuple(binned(x, e) for x, e in zip(rows.T, edges, strict=True))
    return ProductFamily(marginals, named_weights("bins", 1.2))


@pytest.mark.parametrize("name", FORMS)
def test_many_rows_are_each_row_alone(name, family, rows):
    together, alone = exact_expectation(FORMS[name]), exact_expectation(FORMS[name])
    cells = family.cells(rows)
    many = together.at(Rows(family, rows, cells))
    for i, row in enumerate(rows):
        one = alone.moments(family.at(row).in_units())
        assert np.array_equal(many.mean[i], one.mean)
        assert np.array_equal(many.gamma[i], one.gamma)
    some = together.at(Rows(family, rows[40:41], cells[40:41]))
    assert np.array_equal(some.gamma[0], many.gamma[40])


def test_a_forest_in_a_sum_has_the_same_bits_for_any_number_of_rows(family, rows):
    form = Combination([FOREST, FORMS["linear"]], np.array([0.4, 2.0]), np.array(-0.1))
    exact, cells = exact_expectation(form), family.cells(rows)
    assert exact.shares_tables(family)
    many = exact.at(Rows(family, rows, cells))
    for i, row in enumerate(rows):
        alone = exact.at(Rows(family, rows[i : i + 1], cells[i : i + 1]))
        assert np.array_equal(many.gamma[i], alone.gamma[0])
        assert np.array_equal(many.mean[i], alone.mean[0])
        one = exact.moments(family.at(row).in_units())
        assert np.allclose(many.gamma[i], one.gamma, rtol=EXACT, atol=EXACT * np.abs(one.gamma).max())
