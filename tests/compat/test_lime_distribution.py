"""Engine "lime" and lime itself: the same law of every coefficient, over many seeds."""

from __future__ import annotations

from functools import partial

import lime.lime_tabular
import numpy as np
import pytest
from scipy import stats

from effort import repeats
from limes.compat.lime.lime_tabular import LimeTabularExplainer

SEEDS = repeats(200, 60)
# The probability that any test in this file reports a difference where there is no difference
LEVEL = 0.01

RNG = np.random.default_rng(5)
X = np.column_stack(
    [
        RNG.normal(size=300),
        RNG.gamma(2.0, size=300),
        RNG.integers(0, 4, size=300),
        RNG.uniform(-1, 1, size=300),
    ]
)


def score(x):
    return np.sin(2 * x[:, 0]) + 0.3 * x[:, 0] * x[:, 1] + 0.4 * (x[:, 2] == 1) - np.abs(x[:, 3])


def chances(x):
    p = 1 / (1 + np.exp(-score(x)))
    return np.stack([1 - p, p], axis=1)


CASES = {
    "quartiles": {"categorical_features": [2]},
    "deciles, a narrow kernel": {"categorical_features": [2], "discretizer": "decile", "kernel_width": 0.6},
    "slopes": {"categorical_features": [2], "discretize_continuous": False},
    "around the row": {"discretize_continuous": False, "sample_around_instance": True},
}


def coefficients(kind, options, seed):
    """Coefficients, intercept, score and prediction of one fit on 300 rows."""
    explainer = kind(X, random_state=seed, **options)
    surrogate = explainer.explain_instance(X[7], chances, num_samples=300)
    values = dict(surrogate.as_map()[1])
    local = (
        float(np.ravel(surrogate.local_pred)[0])
        if np.ndim(surrogate.local_pred)
        else float(surrogate.local_pred)
    )
    return [*(values[j] for j in range(4)), surrogate.intercept[1], float(surrogate.score), local]


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_mean_and_spread_of_all_numbers_are_lime_s(options):
    kinds = (partial(LimeTabularExplainer, engine="lime"), lime.lime_tabular.LimeTabularExplainer)
    ours, theirs = (
        np.array([coefficients(kind, options, 1 + seed) for seed in range(SEEDS)]).T for kind in kinds
    )
    level = LEVEL / (2 * len(ours) * len(CASES))
    for a, b in zip(ours, theirs, strict=True):
        assert stats.ttest_ind(a, b, equal_var=False).pvalue > level
        assert stats.levene(a, b, center="mean").pvalue > level


@pytest.mark.parametrize("name", ["quartiles", "slopes"])
def test_the_limit_is_what_they_scatter_around(name):
    def numbers(kind, seed, count):
        surrogate = kind(X, random_state=seed, **CASES[name]).explain_instance(
            X[7], chances, num_samples=count
        )
        values = dict(surrogate.as_map()[1])
        return [
            *(values[j] for j in range(4)),
            surrogate.intercept[1],
            float(surrogate.score),
            *np.ravel(surrogate.local_pred),
        ]

    runs = np.array([numbers(lime.lime_tabular.LimeTabularExplainer, 1 + seed, 4000) for seed in range(40)])
    limit = numbers(LimeTabularExplainer, 0, 2**14)
    # five standard errors of a mean of 40, and what a ridge of 1 takes from 4000 rows
    np.testing.assert_array_less(np.abs(runs.mean(axis=0) - limit), 5 * runs.std(axis=0) / np.sqrt(40) + 5e-4)
