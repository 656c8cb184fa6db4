"""R² of sampled models: the squared errors of estimates are subtracted from a sum of squared estimates."""

import numpy as np
import pytest

import limes
from effort import repeats

X = np.round(np.random.default_rng(11).normal(size=(50, 30)), 2)


def linear_and_parity(x):
    return 0.8 * x[:, 3] + np.sign(x[:, 0] * x[:, 1] * x[:, 2])


def fidelity_by_moments(x, rows, f):
    """R² under bin weights and empirical laws, by 2^20 draws of the four columns that the function reads."""
    rng = np.random.default_rng(0)
    d, n, used = x.shape[1], len(x), [0, 1, 2, 3]
    t = np.exp(-1 / (2 * (0.75 * np.sqrt(d)) ** 2))
    edges = [np.quantile(column, [0.25, 0.5, 0.75]) for column in x.T]
    drawn, z = np.zeros((1 << 20, 4)), np.zeros((1 << 20, 4), dtype=bool)
    for j in used:
        cell = np.searchsorted(edges[j], x[:, j], side="left")
        inside = cell == np.searchsorted(edges[j], rows[0, j], side="left")
        weights = np.where(inside, 1.0, t)
        places = rng.choice(n, size=1 << 20, p=weights / weights.sum())
        drawn[:, j], z[:, j] = x[places, j], inside[places]
    y = f(drawn)
    beta = [y[z[:, j]].mean() - y[~z[:, j]].mean() for j in used]
    explained = sum(b**2 * z[:, j].mean() * (1 - z[:, j].mean()) for j, b in enumerate(beta))
    return explained / y.var()


@pytest.mark.parametrize("options", [{"max_calls": 1104}, {"max_calls": 560, "control": "none"}])
def test_intervals_of_fidelity_cover_where_the_model_is_hardly_linear(options):
    truth = fidelity_by_moments(X, X[:1], linear_and_parity)
    assert 0.005 < truth < 0.02
    inside, shown = [], []
    for seed in range(repeats(20, 8)):
        explainer = limes.TabularExplainer(
            linear_and_parity, X, law="empirical", contributions=False, rng=seed, **options
        )
        explanation = explainer(X[:1])
        shown.append(explanation.fidelity[0])
        inside.append(abs(shown[-1] - truth) <= 1.96 * explanation.fidelity_errors[0] + 1e-3)
    assert np.mean(inside) >= 0.85
    assert np.mean(shown) < truth + 0.01  # without the correction 0.03 and more


def test_a_sample_of_one_answer_shows_nothing_of_the_fit():
    """Rare answers may have been missed: R² is unknown, as the standard errors state."""
    rare = np.round(np.random.default_rng(0).normal(size=(60, 8)), 3)

    def model(x):
        return ((x[:, 0] > 1.6) & (x[:, 1] > 1.4)).astype(float)

    explanation = limes.TabularExplainer(model, rare, law="empirical", max_calls=200, rng=1)(rare[:1])
    assert explanation.fidelity_errors.tolist() == [np.inf]
    pooled = limes.TabularExplainer(lambda x: np.ones(len(x)), rare, max_calls=1024)(rare[:1])
    assert pooled.fidelity_errors.tolist() == [np.inf]
