"""Kernels of switches: their coefficients are exact, and they explain more of a model than a line does."""

from __future__ import annotations

import numpy as np
import pytest

import words
from internals import ZeroControl, switch_kernels
from limes.designs import ExchangeableDesign
from oracle import EXACT, error

D = 8
DESIGN = ExchangeableDesign.superpixel_switches(D)


def sigmoid(z):
    """Two outputs that a few of the features decide together."""
    margin = 4 * z[:, 0] * z[:, 1] + 3 * z[:, 2] - 3 + 0.1 * z[:, 3:].sum(axis=1)
    return np.stack([1 / (1 + np.exp(-margin)), margin], axis=1)


def rows(n, seed=0):
    return DESIGN.sample(n, np.random.SeedSequence(seed))[0]


def test_its_coefficients_are_exact():
    z = rows(200)
    control = switch_kernels(DESIGN, z, sigmoid(z))
    mean, beta, _ = control.expectation(DESIGN)
    _, coef, expected = words.surrogate(words.law("superpixels", D, 0.25), control.predict(words.subsets(D)))
    assert error(beta, coef) < EXACT
    assert error(mean, expected) < EXACT


@pytest.mark.parametrize("n", [60, 225, 900])
def test_it_leaves_less_than_a_line(n):
    z, fresh = rows(n), rows(1000, seed=1)
    remaining = ((sigmoid(fresh) - switch_kernels(DESIGN, z, sigmoid(z)).predict(fresh))[:, 0] ** 2).mean()
    line = np.column_stack([np.ones(n), z])
    beta = np.linalg.lstsq(line, sigmoid(z)[:, 0])[0]
    linear = ((sigmoid(fresh)[:, 0] - np.column_stack([np.ones(1000), fresh]) @ beta) ** 2).mean()
    assert remaining < 0.3 * linear


def test_few_rows_and_constant_answers():
    assert isinstance(switch_kernels(DESIGN, rows(16), sigmoid(rows(16))), ZeroControl)
    z = rows(64)
    control = switch_kernels(DESIGN, z, np.full((64, 1), 3.0))
    np.testing.assert_allclose(control.predict(z), 3.0)
    np.testing.assert_allclose(control.expectation(DESIGN).coef, 0.0, atol=1e-12)
