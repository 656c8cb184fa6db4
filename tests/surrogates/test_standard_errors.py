"""Standard errors of a rule's coefficients equal those of the mean of the rows' influences."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import oracle
from internals import FLIP_LAWS, standard_errors


@pytest.mark.parametrize("name", FLIP_LAWS)
@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_standard_errors_of_a_rule_with_a_constant(spread, name):
    """H = E t tᵀ, t = s - 1, by all 2^5 rows; the influence of a row is H⁻¹ t r."""
    law, rng = FLIP_LAWS[name](5, spread=spread), np.random.default_rng(2)
    flips, residuals = law.flips(rng, 200), rng.normal(size=200)
    u = np.array([0.5, 0.0, -1.0, 0.0, 2.0])
    support = np.flatnonzero(u)
    rows = oracle.all_rows(5)
    t = rows[:, support] - 1.0
    h = t.T @ (oracle.row_law(rows, np.ones(5), spread, name)[:, None] * t)
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
