"""Models and tables that are made to have one flaw, and ones that have none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import limes


def linear(coef, intercept=0.0):
    """A fitted LinearRegression with these coefficients."""
    coef = np.asarray(coef, dtype=float)
    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = coef, intercept, coef.size
    return model


def uniform_table(d, n=2000, seed=0):
    """The paper's table: each column an even grid on [-10, 10] in random order, so that bins are alike."""
    rng = np.random.default_rng(seed)
    even = np.linspace(-10, 10, n)
    return np.column_stack([rng.permutation(even) for _ in range(d)])


def bump(seed=0):
    """A tree fitted to a bump on [2, 8]² of a uniform table, as in figure 13 of the 2022 paper."""
    X = uniform_table(2, 4000, seed)
    y = ((X > 2) & (X < 8)).all(axis=1).astype(float)
    return DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y), X


def switching(share):
    """f = 1[x0 > 0] (1[x1 > 0] - share): at (1, 1) the first coefficient has the sign of α₁(ν) - share."""

    def predict(X):
        return (X[:, 0] > 0) * ((X[:, 1] > 0) - share)

    return predict


def diagnosed(model, X, rows, **options):
    """Explain rows and diagnose them."""
    calls = options.pop("calls", None)
    explainer = limes.TabularExplainer(model, X, **options)
    return limes.diagnose(explainer(rows, progress=False), max_calls=calls)


def kinds(diagnosis, severity=None):
    """Kinds of findings of all rows, of one severity if given."""
    return {f.kind for f in diagnosis.findings if severity in (None, f.severity)}


def about(diagnosis, kind):
    """Findings of one kind."""
    return [f for f in diagnosis.findings if f.kind == kind]


@dataclass(frozen=True)
class WellBehaved:
    """A monotone additive model on independent columns, and a row that no known flaw of LIME concerns."""

    model: object
    X: np.ndarray
    row: np.ndarray


def well_behaved(seed):
    """Return what LIME is made for, by construction and not by what the diagnostics say of it.

    - d columns, 2 to 8, independent, normal or uniform, so that one-by-one perturbation makes ordinary rows;
    - f is linear (even seeds: read, so exact), or Σ λ_j g_j(x_j) with g_j monotone and mildly bent, and a
      rough but small ripple in every column (odd seeds: a callable, so sampled), so that neither ν nor other
      columns change a sign;
    - the row lies in an outer quartile of every column: in inner ones a coefficient of a monotone function
      cancels (the very flaw that is to be found), and fidelity is low for that reason;
    - and at least 0.02 standard deviations from every edge.
    """
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    X = np.where(rng.random(d) < 0.5, rng.normal(size=(300, d)), rng.uniform(-1.7, 1.7, size=(300, d)))
    slope = rng.choice([-1.0, 1.0], d) * rng.uniform(0.3, 2.0, d)
    bend, phase = rng.uniform(0.0, 0.3, d), rng.uniform(0, 2 * np.pi, d)
    ripple = 0.02 * np.abs(slope).mean()

    def model(x):
        smooth = slope * (x + bend * np.tanh(x))
        return (smooth + ripple * np.sin(9.0 * x + phase)).sum(axis=1)

    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    unit = X.std(axis=0)
    outer = ((low - 0.02 * unit > X) | (high + 0.02 * unit < X)).all(axis=1)
    candidates = np.flatnonzero(outer)
    if candidates.size:
        row = X[rng.choice(candidates)]
    else:
        sides = rng.random(d) < 0.5
        row = np.where(sides, low - rng.uniform(0.1, 0.8, d) * unit, high + rng.uniform(0.1, 0.8, d) * unit)
    return WellBehaved(model if seed % 2 else linear(slope), X, row)
