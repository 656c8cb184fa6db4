"""One form at many bandwidths: results do not depend on what is cached from one to the next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import limes
from internals import ExactExpectation, IndicatorColumn, LinkedExpectation, Rows
from limes.designs import ProductFamily
from limes.models import forms


@pytest.fixture(scope="module")
def family():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(400, 3)), rng.integers(0, 3, 400), np.arange(400) % 300])
    return limes.TabularExplainer(lambda t: t[:, 0], x, categorical=[3, 4])._model_at(x)[0].family, x


def at_bandwidth(family: ProductFamily, bandwidth: float) -> ProductFamily:
    return replace(family, weights=replace(family.weights, bandwidth=bandwidth))


@pytest.mark.parametrize("bandwidth", [0.05, 0.7, 3.0, np.inf])
def test_columns_of_all_cells_are_those_of_each_law(family, bandwidth):
    laws, weights = family[0].marginals, at_bandwidth(family[0], bandwidth).weights
    together = IndicatorColumn.of_all_cells(laws, weights.penalty)
    assert max(law.cells.count for law in laws) > 256
    for law, column in zip(laws, together, strict=True):
        alone = IndicatorColumn.of(law, np.arange(law.cells.count), weights.penalty)
        for name in ("inclusion", "exclusion", "log_weight", "elsewhere"):
            np.testing.assert_array_equal(getattr(column, name), getattr(alone, name))


def test_moments_at_bandwidths_in_any_order_are_those_of_a_new_expectation(family):
    family, x = family
    rng = np.random.default_rng(1)
    form = forms.GaussianKernels(rng.normal(size=(6, 5)), rng.normal(size=(6, 2)), scale=3.0)
    kept, cells = ExactExpectation(form), family.cells(x[:4])
    for bandwidth in (1.0, 0.05, np.inf, 1.0, 0.3):
        for cell in cells:
            design = at_bandwidth(family, bandwidth).of_cells(cell)
            ours, fresh = kept.moments(design), ExactExpectation(form).moments(replace(design, family=None))
            np.testing.assert_allclose(ours.mean, fresh.mean, rtol=1e-12)
            np.testing.assert_allclose(ours.gamma, fresh.gamma, rtol=1e-9, atol=1e-13)


def test_links_at_bandwidths_in_any_order_have_the_bits_of_a_new_expectation(family):
    family, x = family
    form = forms.Linked(forms.Linear(np.array([1.0, -0.5, 0.3, 0.7, 0.004]), -0.2), "logistic")
    kept, cells = LinkedExpectation(form), family.cells(x[:6])
    for bandwidth in (1.0, 0.05, np.inf, 1.0, 0.3):
        rows = Rows.in_cells(at_bandwidth(family, bandwidth), cells)
        ours, fresh = kept.at(rows), LinkedExpectation(form).at(rows)
        np.testing.assert_array_equal(ours.mean, fresh.mean)
        np.testing.assert_array_equal(ours.gamma, fresh.gamma)
