"""Errors include what a bounded number of answers leaves out: intervals cover what all answers would give.

The oracles enumerate: all subsets of words, or all coalitions of columns against every background row.
"""

from __future__ import annotations

from itertools import product
from math import comb, factorial

import numpy as np
import pytest

import limes
from effort import repeats

# -- sets that serve coefficients and contributions ----------------------------------------------------------

D = 10
SUBSETS = np.array([*product((0.0, 1.0), repeat=D)])


def text_truth(f):
    """LIME's coefficients, by weighted least squares on all subsets, and Shapley values."""
    removed = D - SUBSETS.sum(axis=1)
    share = np.array([0.0 if s == 0 else 1.0 / D / comb(D, int(s)) for s in removed])
    weights = share * np.exp(-((1 - np.sqrt(1 - removed / D)) ** 2) / (2 * 0.25**2))
    answers = f(SUBSETS)
    root = np.sqrt(weights)[:, None]
    design = np.column_stack([np.ones(len(SUBSETS)), SUBSETS])
    coef = np.linalg.lstsq(root * design, root[:, 0] * answers, rcond=None)[0][1:]
    value = {tuple(z): a for z, a in zip(SUBSETS.tolist(), answers.tolist(), strict=True)}
    phi = np.zeros(D)
    for z in SUBSETS:
        kept = int(z.sum())
        for j in np.flatnonzero(z == 0):
            more = z.copy()
            more[j] = 1.0
            part = factorial(kept) * factorial(D - kept - 1) / factorial(D)
            phi[j] += part * (value[tuple(more)] - value[tuple(z)])
    return coef, phi


def curve(seed):
    rng = np.random.default_rng(seed)
    slopes, pairs = rng.normal(size=D), np.triu(rng.normal(size=(D, D)) * (rng.random((D, D)) < 0.3), 1)
    return lambda z: 1.0 / (1.0 + np.exp(-(z @ slopes + ((z @ pairs) * z).sum(axis=1))))


def wave(seed):
    rng = np.random.default_rng(seed)
    slopes = rng.uniform(0.3, 1.5, size=D)
    return lambda z: np.sin(z @ slopes) + z[:, 0] * z[:, 1]


def step(seed):
    slopes = np.random.default_rng(seed).normal(size=D)
    return lambda z: (z @ slopes > slopes.sum() / 2).astype(float)


@pytest.mark.parametrize("family", [curve, wave, step])
@pytest.mark.parametrize("most", [120, 400])
def test_intervals_of_both_fits_of_one_sample_cover(family, most):
    of_coef, of_contributions = [], []
    for seed in range(repeats(60, 16)):
        f = family(seed)
        coef, phi = text_truth(f)

        def model(texts, f=f):
            return f(np.array([[f"w{j}" in text.split() for j in range(D)] for text in texts], dtype=float))

        explanation = limes.TextExplainer(model, max_calls=most, rng=seed)(
            " ".join(f"w{j}" for j in range(D)), progress=False
        )
        assert explanation.method == "sampled"
        account = explanation.contributions
        of_coef.append(
            np.abs(explanation.coefficients.values[0] - coef)
            <= 1.96 * explanation.coefficients.standard_errors[0]
        )
        of_contributions.append(np.abs(account.values[0] - phi) <= 1.96 * account.standard_errors[0] + 1e-12)
    chance = 2.0 * np.sqrt(0.05 * 0.95 / len(of_coef))  # the intervals of one seed are alike
    assert np.mean(of_coef) >= 0.95 - chance / 2
    assert np.mean(of_contributions) >= 0.95 - chance / 2


# -- rows of a background that were left out -----------------------------------------------------------------


def joint_truth(f, rows, row):
    """Base and Shapley values against all rows of a background, of one weight each."""
    d = rows.shape[1]

    def v(kept):
        x = rows.copy()
        x[:, list(kept)] = row[list(kept)]
        return f(x).mean()

    values = {kept: v(kept) for kept in product((0, 1), repeat=d) for kept in [tuple(np.flatnonzero(kept))]}
    phi = np.zeros(d)
    for kept, value in values.items():
        for j in set(range(d)) - set(kept):
            part = factorial(len(kept)) * factorial(d - len(kept) - 1) / factorial(d)
            phi[j] += part * (values[tuple(sorted((*kept, j)))] - value)
    return values[()], phi


JOINT = {
    "product": lambda x: x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]),
    "step": lambda x: (x[:, 0] + x[:, 3] > 0.5) * 2.0 + x[:, 1],
    "exponential": lambda x: np.exp(0.7 * x[:, 0] + 0.4 * x[:, 2]),
}


@pytest.mark.parametrize("most", [300, 700])
def test_rows_that_were_left_out_are_in_the_errors(most):
    base, inside, covered = [], [], []
    seeds = range(repeats(80, 25))
    for f, seed in ((f, 1000 * k + i) for k, f in enumerate(JOINT.values()) for i in seeds):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(900, 4))
        rows[:, 3] = rows[:, 0] + 0.5 * rows[:, 3]
        row = rng.normal(size=4)
        options = {"law": "joint", "bandwidth": np.inf, "max_calls": most, "rng": seed}
        account = limes.TabularExplainer(f, rows, **options)(row, progress=False).contributions
        truth, phi = joint_truth(f, rows, row)
        assert account.base_errors[0] > 0.0
        base.append(abs(account.base_values[0] - truth) / account.base_errors[0])
        covered.append(base[-1] <= 1.96)
        inside.append(np.abs(account.values[0] - phi) <= 1.96 * account.standard_errors[0])
    assert np.mean(covered) >= 0.95 - 2.5 * np.sqrt(0.05 * 0.95 / len(covered))
    assert np.mean(inside) >= 0.93
    # neither is it many times too wide
    assert np.mean(base) > 0.4


def test_no_row_left_out_no_error_of_the_base():
    rng = np.random.default_rng(0)
    rows, row = rng.normal(size=(200, 4)), rng.normal(size=4)
    f = JOINT["product"]
    options = {"law": "joint", "bandwidth": np.inf, "max_calls": 1000}
    account = limes.TabularExplainer(f, rows, **options)(row, progress=False).contributions
    np.testing.assert_allclose(account.base_values[0], f(rows).mean(), rtol=1e-9)
    assert account.base_errors[0] < 1e-9


def test_a_read_model_uses_the_whole_background():
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(1)
    rows = rng.normal(size=(900, 4))
    model = LinearRegression().fit(rows, rows @ [1.0, -2.0, 0.5, 0.0])
    account = limes.TabularExplainer(model, rows, law="joint", bandwidth=np.inf, max_calls=100)(
        rows[0], progress=False
    ).contributions
    np.testing.assert_allclose(account.base_values[0], model.predict(rows).mean(), rtol=1e-9)


# -- wide tables ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), [(40, 7), (40, 39), (40, 41), (30, 200)])
def test_a_ridge_path_is_the_same_by_rows_and_by_columns(n, p):
    """Against the normal equations of each penalty, by brute force."""
    from internals import PENALTIES, control

    rng = np.random.default_rng(n + p)
    x, y = rng.normal(size=(n, p)) + 1.0, rng.normal(size=(n, 3))
    x[:, 0] = 2.0  # a constant column has no coefficient
    intercept, coef = control.ridge_path(x, y)
    live = np.arange(1, p)
    z = (x[:, live] - x[:, live].mean(axis=0)) / x[:, live].std(axis=0)
    centred, best = y - y.mean(axis=0), [(np.inf, None)] * 3
    for penalty in PENALTIES:
        inverse = np.linalg.inv(z.T @ z / n + penalty * np.eye(p - 1))
        fit = inverse @ z.T @ centred / n
        hat = np.trace(z @ inverse @ z.T) / n
        for k in range(3):
            rest = ((centred[:, k] - z @ fit[:, k]) ** 2).mean()
            score = rest / max(1.0 - (1.0 + hat) / n, 0.05) ** 2
            if score < best[k][0] * (1 - 1e-12):
                best[k] = score, fit[:, k] / x[:, live].std(axis=0)
    expected = np.column_stack([fit for _, fit in best])
    np.testing.assert_allclose(coef[1:], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(coef[0], 0.0)
    np.testing.assert_allclose(intercept, y.mean(axis=0) - x.mean(axis=0) @ coef, rtol=1e-9)
