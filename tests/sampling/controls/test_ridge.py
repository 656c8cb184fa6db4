"""Kernel ridge regression against refits without each row in turn."""

from __future__ import annotations

import numpy as np

import oracle
from internals import PENALTIES, leave_one_out_errors
from oracle import EXACT


def test_leave_one_out_errors_are_those_of_refits():
    rng = np.random.default_rng(0)
    x, f = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    gram = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(axis=2))
    expected = []
    for penalty in PENALTIES:
        errors = []
        for i in range(len(x)):
            others = np.arange(len(x)) != i
            regularised = gram[np.ix_(others, others)] + penalty * np.eye(len(x) - 1)
            errors.append(f[i] - gram[i, others] @ np.linalg.solve(regularised, f[others]))
        expected.append((np.array(errors) ** 2).mean())
    result = leave_one_out_errors(gram, f)
    assert (
        oracle.relative_errors(result, np.array(expected)).max() < EXACT * 1e3
    )  # of a gram matrix near 1e-5
    assert int(np.argmin(result)) == int(np.argmin(expected))
