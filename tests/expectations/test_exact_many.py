"""Moments of many rows by lookup are those of each row alone, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from limes._expectations.of_forms import exact_expectation
from limes._pipeline import _is_batched
from limes.designs._columns import binned
from limes.designs._product import ProductFamily
from limes.designs._weights import named_weights
from limes.models import forms
from limes.models.forms._base import Combination

RNG = np.random.default_rng(0)
D = 4
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
    assert _is_batched(together, family)
    cells = family.cells(rows)
    many = together.many(family, cells, family.features(cells).variance)
    for i, row in enumerate(rows):
        one = alone.moments(family.at(row).in_units())
        assert np.array_equal(many.mean[i], one.mean)
        assert np.array_equal(many.gamma[i], one.gamma)
    some = together.many(family, cells[40:41], family.features(cells[40:41]).variance)
    assert np.array_equal(some.gamma[0], many.gamma[40])
