"""Slopes of columns with missing values, against weighted least squares on all states of an empirical law."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import limes
import oracle
from internals import bar_units

rng = np.random.default_rng(3)
X = rng.normal(size=(24, 3))
X[rng.random(24) < 0.3, 0] = np.nan
X[rng.random(24) < 0.2, 1] = np.nan
Y = np.nan_to_num(X[:, 0], nan=2.0) * X[:, 2] + np.nan_to_num(X[:, 1], nan=-1.0) ** 2
PRESENT = int(np.flatnonzero(np.isfinite(X).all(axis=1))[0])
MISSING = int(np.flatnonzero(np.isnan(X[:, 0]) & np.isfinite(X[:, 1]))[0])
MODELS = {
    "boosting": HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=2, random_state=0),
    "forest": RandomForestRegressor(5, random_state=0),
    "imputed": make_pipeline(SimpleImputer(add_indicator=True), LinearRegression()),
}


def states(explainer, row):
    """All states of the law around a row: rows (m, d) and their probabilities."""
    columns = []
    for coordinate in explainer.design(row).coordinates:
        law, places, weights = coordinate.marginal, [], []
        for measure in law.measures:
            places.append(measure.value)
            weights.append(measure.weight)
        cell = coordinate.probability[law.owners]
        columns.append((np.concatenate(places), np.concatenate(weights) * cell))
    grid = np.array(list(itertools.product(*[values for values, _ in columns])))
    return grid, np.array([np.prod(q) for q in itertools.product(*[q for _, q in columns])])


def both_features(x, w):
    """Each column with the mean of its numbers for a missing one, and whether it is missing."""
    missing = np.isnan(x)
    filled = x.copy()
    for j in range(x.shape[1]):
        present = ~missing[:, j]
        filled[missing[:, j], j] = w[present] @ x[present, j] / w[present].sum()
    return filled, missing.astype(float)


@pytest.mark.parametrize("row", [PRESENT, MISSING], ids=["present", "missing"])
@pytest.mark.parametrize("name", MODELS)
def test_slope_and_indicator_are_those_of_a_fit_of_both(name, row):
    model = MODELS[name].fit(X, Y)
    explainer = limes.TabularExplainer(model, X, bins=None, law="empirical", method="exact")
    explanation = explainer(X[[row]], progress=False)
    x, w = states(explainer, X[row])
    assert w.sum() == pytest.approx(1.0)
    f = model.predict(x)
    filled, missing = both_features(x, w)
    varies = [0, 1]  # the third column is complete
    z = np.column_stack([np.ones(len(x)), filled, missing[:, varies]])
    root = np.sqrt(w)[:, None]
    coef = np.linalg.lstsq(z * root, f * root[:, 0], rcond=None)[0]
    slopes, indicators = coef[1:4], coef[4:]
    size = np.abs(f).max()
    for j in range(3):
        lacks = np.isnan(X[row, j])
        expected = indicators[varies.index(j)] if lacks else slopes[j]
        assert oracle.error(explanation.coefficients.values[0, j], expected, size) < oracle.EXACT
        assert explanation.conditions[0][j] == (f"x{j} is missing" if lacks else f"x{j}")
    features = np.where(np.isnan(X[row]), missing, filled)
    remaining = f - features @ explanation.coefficients.values[0]
    variance = w @ (f - w @ f) ** 2
    expected = 1.0 - (w @ remaining**2 - (w @ remaining) ** 2) / variance
    gap = abs(explanation.fidelity[0] - expected)
    assert gap <= oracle.EXACT + oracle.Z_LIMIT * explanation.fidelity_errors[0]
    for j in varies:
        effect = explanation.effects[j]
        inside = (w * missing[:, j]) @ f / (w @ missing[:, j])
        assert effect.cells[-1] == f"x{j} is missing"
        assert effect.values[-1] == pytest.approx(inside - w @ f, abs=oracle.EXACT * size)
        assert effect.masses[-1] == pytest.approx(w @ missing[:, j])
        assert (effect.current == len(effect.cells) - 1) == np.isnan(X[row, j])
    assert explanation.additive_fidelity[0] >= explanation.fidelity[0] - 3 * explanation.fidelity_errors[0]


def test_drawn_features_are_those_of_the_design():
    model = MODELS["boosting"].fit(X, Y)
    explainer = limes.TabularExplainer(model, X, bins=None)
    for row in (PRESENT, MISSING):
        design = explainer.design(X[row])
        x, h = design.draw(np.random.default_rng(0).random((4096, 3)))
        assert np.array_equal(h, design.feature(x))
        assert np.isfinite(h).all()
        error = oracle.Z_LIMIT * h.std(axis=0) / np.sqrt(len(h))
        assert (np.abs(h.mean(axis=0) - design.inclusion) <= error + oracle.ROUNDING).all()
        assert np.isnan(x[:, 0]).mean() == pytest.approx(np.isnan(X[:, 0]).mean(), abs=0.1)


def test_bars_of_a_row_that_lacks_the_value_are_no_slopes():
    model = MODELS["boosting"].fit(X, Y)
    explanation = limes.TabularExplainer(model, X, bins=None)(X[[PRESENT, MISSING]], progress=False)
    deviations = bar_units(explanation)
    assert deviations[0, 0] == pytest.approx(np.nanstd(X[:, 0]))
    assert deviations[1, 0] == 1.0
    assert "x0 = missing" in str(explanation[1])


def test_sampled_slopes_lie_within_their_errors_of_exact_ones():
    model = MODELS["boosting"].fit(X, Y)
    exact = limes.TabularExplainer(model, X, bins=None)(X[[PRESENT, MISSING]], progress=False)
    sampled = limes.TabularExplainer(
        lambda x: model.predict(x), X, bins=None, method="sampled", control="none", max_calls=2048
    )(X[[PRESENT, MISSING]], progress=False)
    assert sampled.method == "sampled"
    gap = np.abs(sampled.coefficients.values - exact.coefficients.values)
    assert (gap <= oracle.Z_LIMIT * sampled.coefficients.standard_errors).all()
    assert np.isfinite(sampled.fidelity).all()
    assert np.isfinite(limes.diagnose(exact).rows[0].measures[0].value)


def test_a_ridge_shrinks_a_slope_per_deviation_and_an_indicator_as_it_is():
    """In other units of the columns the same penalty gives the same bars, at both kinds of rows."""
    bars = []
    for scale in (1.0, 8.0):
        model = clone(MODELS["imputed"]).fit(X * scale, Y)
        explainer = limes.TabularExplainer(model, X * scale, bins=None, ridge=50.0, method="exact")
        explanation = explainer(X[[PRESENT, MISSING]] * scale, progress=False)
        bars.append(explanation.coefficients.values * bar_units(explanation))
    assert bars[1] == pytest.approx(bars[0], rel=oracle.EXACT)
