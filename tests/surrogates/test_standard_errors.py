"""Standard errors of a rule's coefficients are those of the mean of the rows' influences."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from internals import FlipLaw, standard_errors


@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_of_a_rule_with_a_constant(spread):
    """H = E t tᵀ, t = s - 1, by all 2^3 rows of the support; the influence of a row is H⁻¹ t r."""
    law, rng = FlipLaw(5, spread=spread), np.random.default_rng(2)
    q = np.exp(-spread) / (1.0 + np.exp(-spread))
    flips, residuals = rng.random((200, 5)) < q, rng.normal(size=200)
    u = np.array([0.5, 0.0, -1.0, 0.0, 2.0])
    support = np.flatnonzero(u)
    h = np.zeros((3, 3))
    for flipped in product([0, 1], repeat=3):
        t = -2.0 * np.array(flipped)
        h += np.prod(np.where(flipped, q, 1.0 - q)) * np.outer(t, t)
    influences = np.array(
        [np.linalg.solve(h, -2.0 * row[support]) * r for row, r in zip(flips, residuals, strict=True)]
    )
    expected = influences.std(axis=0) / np.sqrt(200 - 4)
    problem = SimpleNamespace(
        seen=SimpleNamespace(values=residuals, flips=flips, errors=lambda u, constant: residuals),
        near=SimpleNamespace(law=law),
        config=SimpleNamespace(of_sample=True, intercept=True),
    )
    np.testing.assert_allclose(standard_errors(problem, u, 0.0)[support], expected, rtol=1e-9)
