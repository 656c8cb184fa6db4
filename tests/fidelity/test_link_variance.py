"""Variances of links of sums against enumeration, in extended precision."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import erfc

import limes
from effort import repeats
from internals import BinWeights, ProductFamily, categorical, link_variance
from limes.designs import ExchangeableDesign
from limes.models import forms
from oracle import EXACT

LONG = np.longdouble
CURVES = {
    "logistic": lambda s: 1 / (1 + np.exp(-s)),
    "probit": lambda s: (0.5 * erfc(-s.astype(float) / np.sqrt(2.0))).astype(LONG),
    "cloglog": lambda s: -np.expm1(-np.exp(np.minimum(s, LONG(700)))),
    "exp": np.exp,
}


def discrete(rng):
    """Designs of two or three values a column, two rows, and the states and their law at the first."""
    d = int(rng.integers(1, 9))
    values = [np.sort(rng.normal(size=rng.integers(2, 4))) for _ in range(d)]
    columns = [np.r_[v, v[rng.integers(v.size, size=20)]] for v in values]
    bandwidth = float(rng.choice([0.5, 1.0, 0.75 * np.sqrt(d), 20.0]))
    row, other = (np.array([v[i] for v in values]) for i in (0, -1))
    family = ProductFamily(tuple(map(categorical, columns)), BinWeights(bandwidth))
    states = np.array(list(product(*values)), dtype=LONG)
    masses = [
        (c[:, None] == v).sum(axis=0) * np.where(v == x, LONG(1), np.exp(-0.5 / LONG(bandwidth) ** 2))
        for c, v, x in zip(columns, values, row, strict=True)
    ]
    law = np.array([np.prod(each) for each in product(*masses)])
    return family, np.stack([row, other]), states, law / law.sum()


def computed(variance, family, rows):
    """For the first row, beside the other and alone; nan where it is refused."""
    first, _ = variance.at_rows(family, rows, family.cells(rows))
    alone = variance.variance(family.at(rows[0]))
    assert np.allclose(alone, first, rtol=EXACT, atol=0, equal_nan=True)
    return first


def variance_of(f, law):
    mean = law @ f
    return law @ (f - mean) ** 2


@pytest.mark.parametrize("link", CURVES)
@pytest.mark.parametrize("seed", range(repeats(200, 6)))
def test_variances_against_enumeration(link, seed):
    rng = np.random.default_rng(seed)
    family, rows, states, law = discrete(rng)
    size, shift = float(rng.choice([0.1, 1.0, 4.0])), float(rng.choice([0.0, -12.0, 12.0]))
    if link != "logistic":
        shift /= 6.0
    weights = size * rng.normal(size=states.shape[1])
    form = forms.Linked(forms.Linear(weights, shift), link, [[-3.0, 2.0]], [5.0, 0.0])
    unit = np.array([4.0, 1.0])
    result = computed(link_variance(form, unit), family, rows)
    f = CURVES[link](states @ weights.astype(LONG) + LONG(shift))
    variance = variance_of(f, law)
    squares = [law @ f**2] + [law @ (1 - f) ** 2] * (link in ("logistic", "probit"))
    refused = np.isnan(result)
    # next to nothing beside the mean square, or in the normal law's far tail
    assert (
        not refused.any() or variance < 2.1e-4 * min(squares) or (link == "probit" and min(squares) < 1e-20)
    )
    gap = np.abs(result - variance * np.array([9.0 / 16.0, 4.0]))
    assert (gap <= EXACT * variance)[~refused].all()


@pytest.mark.parametrize("seed", range(repeats(200, 6)))
def test_sums_of_cosines(seed):
    rng = np.random.default_rng(seed)
    family, rows, states, law = discrete(rng)
    m = int(rng.integers(1, 9))
    form = forms.Ridges(
        rng.normal(size=(m, states.shape[1])), rng.normal(size=m), rng.normal(size=(m, 2)), "cos", [1.0, 0.0]
    )
    f = np.cos(states @ form.weights.T.astype(LONG) + form.offsets) @ form.scales
    result = computed(link_variance(form, np.ones(2)), family, rows)
    expected = np.array([variance_of(f[:, k], law) for k in range(2)])
    refused = np.isnan(result)
    assert (expected < 2.1e-4 * (law @ f**2))[refused].all()
    assert (np.abs(result - expected) <= EXACT * expected)[~refused].all()


@pytest.mark.parametrize("link", ["logistic", "exp"])
@pytest.mark.parametrize("norm", [None, "l2"])
def test_texts(norm, link):
    rng = np.random.default_rng(5)
    d = 9
    # of a steeper exponential on TF-IDF the bound has fewer than nine digits, so that R² is estimated
    effects = (0.3 if link == "exp" else 1.0) * rng.normal(size=d)
    if norm:
        margin = forms.NormalizedLinear(effects, rng.uniform(0.5, 2.0, size=d), intercept=0.3)
    else:
        margin = forms.Linear(effects, 0.3)
    form = forms.Linked(margin, link, [[-1.0, 1.0]], [1.0, 0.0])
    design = ExchangeableDesign.word_deletions(d, 0.4)
    z, log_law = design.enumerate()
    law = np.exp(log_law - log_law.max())
    law /= law.sum()
    result = link_variance(form, np.ones(2), ExchangeableDesign).variance(design)
    expected = variance_of(form.predict(z)[:, 1].astype(LONG), law)
    assert np.abs(result - expected).max() <= EXACT * expected


def test_others_have_none():
    network = forms.Ridges([[1.0, 2.0], [0.5, 1.0]], [0.0, 0.0], [1.0, 2.0], "tanh")
    assert link_variance(network, np.ones(1)) is None
    several = forms.Linked(forms.Linear(np.ones((2, 2))), "logistic", [1.0, 2.0])
    assert link_variance(several, np.ones(1)) is None
    many = forms.Ridges(np.ones((129, 2)), np.zeros(129), np.ones(129), "cos")
    assert link_variance(many, np.ones(1)) is None


def test_fidelity_of_probabilities_is_exact():
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    explanation = limes.TabularExplainer(model, X, method="exact")(X[:3])
    assert not explanation.fidelity_errors.any()
    sampled = limes.TabularExplainer(
        model, X, method="sampled", max_calls=repeats(1 << 15, 1 << 12), tolerance=1e-9
    )(X[:3])
    z = (explanation.fidelity - sampled.fidelity) / sampled.fidelity_errors
    assert np.abs(z).max() < 5
