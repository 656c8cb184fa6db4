"""The numbers of a diagnosis against enumeration, other computations, and their error bars."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import limes
from flaws import diagnosed, linear
from internals import Alignment, Estimate, Profile, RowOutput, diagnosis, grid
from oracle import EXACT, Z_LIMIT, atoms_column, bin_weighted
from oracle import grid as all_rows

BANDWIDTH = 0.8


@pytest.fixture(scope="module")
def small():
    """Two columns whose laws are the 40 background values themselves: every expectation is a finite sum."""
    X = np.random.default_rng(1).normal(size=(40, 2))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 0])
    model = DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    explainer = limes.TabularExplainer(model, X, law="empirical", bandwidth=BANDWIDTH)
    explanation = explainer(X[:1])
    return X, model, explanation, limes.diagnose(explanation, max_calls=4096).rows[0]


def enumerated(X, model, row, bandwidth):
    """All rows of the weighted law, their probabilities and answers."""
    columns = []
    for j in range(2):
        edges = np.percentile(X[:, j], [25, 50, 75])
        cells = np.searchsorted(edges, X[:, j], side="left")
        column = atoms_column(X[:, j], np.ones(len(X)), cells)
        columns.append(bin_weighted(column, np.searchsorted(edges, row[j], side="left"), bandwidth))
    x, weights = all_rows(columns)
    cells = np.stack(
        [c.cell[i] for c, i in zip(columns, np.indices((40, 40)).reshape(2, -1), strict=True)], 1
    )
    return x, weights.astype(float), cells, model.predict(x)


def test_profiles_are_conditional_means(small):
    X, model, _, row = small
    _, weights, cells, f = enumerated(X, model, X[0], BANDWIDTH)
    assert len(row.profiles) == 2
    for profile in row.profiles:
        j = int(profile.name[1:])
        for place, cell in enumerate(profile.cells):
            in_cell = cells[:, j] == cell
            mean = (weights * f)[in_cell].sum() / weights[in_cell].sum()
            assert profile.mean[place] == pytest.approx(mean, abs=EXACT)
            assert profile.probability[place] == pytest.approx(weights[in_cell].sum(), abs=EXACT)


def test_a_profile_gives_its_coefficient(small):
    *_, explanation, row = small
    for profile in row.profiles:
        j = int(profile.name[1:])
        assert profile.coef == pytest.approx(explanation.coefficients.values[0, j], abs=EXACT)
        assert 0 <= profile.explained <= profile.between * (1 + EXACT)


def test_fidelity_and_variance_are_those_of_all_rows(small):
    X, model, explanation, row = small
    _, weights, cells, f = enumerated(X, model, X[0], BANDWIDTH)
    row_cells = np.array([np.searchsorted(np.percentile(X[:, j], [25, 50, 75]), X[0, j]) for j in range(2)])
    surrogate = (
        explanation.coefficients.intercepts[0] + (cells == row_cells) @ explanation.coefficients.values[0]
    )
    mean = weights @ f
    variance = weights @ (f - mean) ** 2
    fidelity = 1 - weights @ (f - surrogate) ** 2 / variance
    fit = row.diagnostics["fit"]
    assert abs(fit.fidelity - fidelity) < Z_LIMIT * fit.fidelity_error + EXACT
    assert abs(fit.deviation.value - np.sqrt(variance)) < Z_LIMIT * fit.deviation.error + EXACT
    assert fit.shares.sum() == pytest.approx(fit.fidelity)


def test_distances_in_deviations_have_errors_that_cover():
    """Against 200,000 rows of the weighted law; of a linear model the deviation is exact."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    within = []
    for model in (RandomForestRegressor(20, max_depth=5, random_state=0).fit(X, y), linear([1.0, 2.0, 0.5])):
        explainer = limes.TabularExplainer(model, X)
        for i in range(20):
            explanation = explainer(X[i : i + 1])
            x, _ = explainer.design(X[i : i + 1]).draw(rng.uniform(size=(200_000, 3)))
            surrogate = explanation.coefficients.surrogate_predictions[0]
            truth = abs(model.predict(X[i : i + 1])[0] - surrogate) / model.predict(x).std()
            fit = limes.diagnose(explanation, progress=False).rows[0].diagnostics["fit"]
            (measured,) = [measure for measure in fit.measures() if measure.name == "local error"]
            of_rows = 3e-3 * truth  # by the truth's own draws
            within.append(abs(measured.value - truth) <= 1.96 * np.hypot(measured.error, of_rows))
            is_exact = explanation.fidelity_errors[0] == 0
            assert (measured.error == 0) == is_exact
    assert np.mean(within) >= 0.93


def test_misses_and_orders_that_are_rounding_are_0():
    """A linear model is its own slopes, and its columns add up: misses and orders are rounding."""
    X = np.random.default_rng(5).normal(size=(60, 3)) * [1.0, 1e3, 1e-3]
    explainer = limes.TabularExplainer(linear([0.1, 0.3, 7.0], 0.7), X, bins=None)
    for i in range(10):
        row = limes.diagnose(explainer(X[i : i + 1]), progress=False).rows[0]
        measured = {measure.name: measure.value for measure in row.measures}
        assert (measured["local error"], measured["order of features"]) == (0.0, 0.0)
    suggested = limes.suggest_design(explainer, X[:10])
    assert suggested.miss[suggested.names.index("slopes")] == 0.0


def test_the_path_is_the_explanation_at_other_bandwidths(small):
    X, model, explanation, row = small
    for at in (0, 7, 12, 24):
        other = limes.TabularExplainer(model, X, law="empirical", bandwidth=row.path.bandwidths[at])
        np.testing.assert_allclose(
            row.path.values[at], other(X[:1]).coefficients.values[0], rtol=0, atol=EXACT
        )
    np.testing.assert_allclose(
        row.path.values[row.path.current], explanation.coefficients.values[0], rtol=0, atol=EXACT
    )


def test_limes_printed_coefficients_are_the_ridge_explanation():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    for bandwidth, reported in ((0.2, True), (1.5, False)):
        reading = diagnosed(model, X, X[:1], bandwidth=bandwidth).rows[0].diagnostics["shrinkage"]
        ridge = limes.TabularExplainer(model, X, bandwidth=bandwidth, ridge=1.0)(X[:1])
        np.testing.assert_allclose(reading.lime, ridge.coefficients.values[0], rtol=0, atol=EXACT)
        assert bool(list(reading.findings())) is reported
        # a ridge explanation is measured against the same limit, with a mean that is sampled
        again = limes.diagnose(ridge).rows[0].diagnostics["shrinkage"]
        np.testing.assert_allclose(again.limit, reading.limit, rtol=0, atol=EXACT)


@pytest.mark.parametrize("weights", ["bins", "euclidean"])
def test_effective_sample_size_is_that_of_weighted_rows(weights):
    X = np.random.default_rng(3).normal(size=(200, 3))
    explainer = limes.TabularExplainer(linear([1.0, 1.0, 1.0]), X, weights=weights, bandwidth=0.7)
    context = explainer._diagnostic_context(explainer(X[:1]), output=np.zeros(1, dtype=int), calls=None)
    share = limes.diagnose(explainer(X[:1])).rows[0].diagnostics["sample size"].share
    # rows of the law without weights, weighed afterwards
    far = context.designs(np.inf)[0]
    x, _ = context.draw(far, 200_000, np.random.default_rng(0))
    pi = np.exp(-context.squared_distances(0, x) / (2 * 0.7**2))
    sampled = pi.mean() ** 2 / (pi**2).mean()
    assert share == pytest.approx(sampled, rel=0.03)


@pytest.mark.parametrize("weights", ["bins", "euclidean"])
def test_a_sample_agrees_with_the_form_within_its_errors(weights):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 4))
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    options = {"weights": weights, "bandwidth": 1.2}
    exact = diagnosed(model, X, X[:1], **options).rows[0]
    sampled = diagnosed(model, X, X[:1], method="sampled", control="additive", **options).rows[0]
    finite = np.isfinite(sampled.path.values)
    z = (sampled.path.values - exact.path.values)[finite] / sampled.path.errors[finite]
    assert np.abs(z).max() < Z_LIMIT
    assert 0.3 < np.sqrt((z**2).mean()) < 2  # errors are neither zero nor boundless
    assert finite[12:].all()  # the explainer's bandwidth, and all wider ones
    profiles = {p.name: p for p in exact.profiles}
    for profile in sampled.profiles:
        z = (profile.mean - profiles[profile.name].mean) / profile.error
        assert np.abs(z).max() < Z_LIMIT
    gap = sampled.diagnostics["alignment"].effects.value - exact.diagnostics["alignment"].effects.value
    assert (np.abs(gap) < Z_LIMIT * sampled.diagnostics["alignment"].effects.error + EXACT).all()
    if weights == "bins":
        edge, true = sampled.diagnostics["edge"], exact.diagnostics["edge"]
        assert (edge.column, edge.distance) == (true.column, true.distance)
        assert (np.abs(edge.coef.value - true.coef.value) < Z_LIMIT * edge.coef.error).all()


def test_a_narrow_bandwidth_is_the_box_alone(small):
    X, model, _, row = small
    narrow = limes.TabularExplainer(model, X, law="empirical", bandwidth=0.05)(X[:1])
    np.testing.assert_allclose(
        row.diagnostics["alignment"].effects.value, narrow.coefficients.values[0], rtol=0, atol=EXACT
    )


def test_rows_do_not_depend_on_each_other():
    X = np.random.default_rng(5).normal(size=(300, 3))
    explainer = limes.TabularExplainer(
        lambda x: np.sin(x).sum(axis=1), X, method="sampled", max_calls=256, control="none"
    )
    together = limes.diagnose(explainer(X[:3], progress=False), max_calls=256)
    alone = limes.diagnose(explainer(X[2:3], progress=False), max_calls=256)
    assert together[2].to_json() == alone.numbered([2]).to_json()


def test_blocks_of_rows_change_nothing(monkeypatch):
    X = np.random.default_rng(8).normal(size=(300, 3))
    explanation = limes.TabularExplainer(linear([1.0, 2.0, 3.0]), X)(X[:5])
    whole = limes.diagnose(explanation, progress=False)
    monkeypatch.setattr(diagnosis, "_BLOCK", 2)
    assert limes.diagnose(explanation, progress=False).to_json() == whole.to_json()


def test_an_infinite_bandwidth_has_a_path_that_ends_there():
    X = np.random.default_rng(6).normal(size=(300, 3))
    path = diagnosed(linear([1.0, 2.0, 3.0]), X, X[:1], bandwidth=np.inf).rows[0].path
    assert np.isinf(path.bandwidth)
    assert np.isfinite(grid(np.inf)[:-1]).all()


@pytest.mark.parametrize("method", ["auto", "sampled"])
def test_a_model_that_does_not_vary_has_no_findings(method):
    X = np.random.default_rng(9).normal(size=(300, 3))
    X[::3, 1] = np.nan
    constant = lambda x: np.full(len(x), 0.3)  # noqa: E731
    diagnosis = diagnosed(constant, X, X[:2], max_calls=256, method=method)
    assert not diagnosis.findings
    assert np.isnan(diagnosis.rows[0].diagnostics["fit"].fidelity)
    measures = {measure.name: measure for measure in diagnosis.rows[0].measures}
    assert (measures["hidden variance"].value, measures["hidden variance"].error) == (0.0, 0.0)
    assert all(measure.error >= 0 for measure in measures.values())
    assert diagnosis.to_html()
    assert diagnosis.to_json()


def test_slopes_are_diagnosed_too():
    X = np.random.default_rng(7).normal(size=(300, 3))
    row = diagnosed(linear([1.0, 2.0, 3.0]), X, X[:1], bins=None).rows[0]
    assert not row.profiles
    assert row.diagnostics["fit"].fidelity == pytest.approx(1.0, abs=0.3)
    assert not row.findings


def row_output(values, errors):
    """A row of three columns, whose surrogate is perfect."""
    return RowOutput(
        names=tuple("abc"),
        conditions=tuple("abc"),
        output="y",
        values=np.array(values),
        errors=np.array(errors),
        intercept=0.0,
        prediction=1.0,
        surrogate=1.0,
        surrogate_error=0.0,
        fit=lambda: (1.0, 0.0),
    )


def test_an_effect_of_rounding_alone_is_written_as_0():
    """For three coefficients of 2, the model moves by -0.1, by rounding, and not at all near the row."""
    row = row_output(values=[2.0, 2.0, 2.0], errors=[0.0, 0.0, 0.0])
    effects = Estimate(np.array([-0.1, 1e-12, 0.0]), np.zeros(3))
    findings = list(
        Alignment(row=row, effects=effects, inside=0.0, around=Estimate.exact(np.array(1.0))).findings()
    )
    assert [finding.number for finding in findings] == [-0.1, 0.0, 0.0]
    assert ["changes it by 0:" in finding.sentence for finding in findings] == [False, True, True]


def test_only_coefficients_that_are_large_and_certain_are_called_artifacts():
    """Three coefficients that nothing near the row explains: a large one, a small one, an uncertain one."""
    row = row_output(values=[2.0, -0.1, 2.0], errors=[0.0, 0.0, 5.0])
    effects = Estimate(np.zeros(3), np.zeros(3))
    assert Alignment(
        row=row, effects=effects, inside=0.0, around=Estimate.exact(np.array(1.0))
    ).artifacts() == [0]


def test_a_column_without_a_value_has_no_correlation():
    X = pd.DataFrame(np.random.default_rng(3).normal(size=(200, 3)), columns=list("abc"))
    X["c"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        diagnosis = limes.diagnose(limes.TabularExplainer(lambda x: x["a"] * x["b"], X)(X[:1]))
    assert diagnosis.rows


def test_the_error_of_the_variance_between_cells_is_its_first_order():
    """Errors of the means times the gradient, by differences."""
    mean, error = np.array([1.0, 3.0, -2.0, 0.5]), np.array([0.1, 0.2, 0.05, 0.3])
    q = np.array([0.4, 0.3, 0.2, 0.1])

    def between(mean):
        facts = {"name": "", "current": 0, "cells": (), "texts": (), "probability": q}
        return Profile(mean=mean, error=np.zeros(4), **facts).between

    gradient = [(between(mean + step) - between(mean - step)) / 2e-4 for step in 1e-4 * np.eye(4)]
    profile = Profile(name="", current=0, cells=(), texts=(), mean=mean, error=error, probability=q)
    assert profile.between_error == pytest.approx(np.sqrt(np.square(gradient) @ error**2), rel=1e-6)


def test_an_effect_of_categories_is_compared_with_no_line():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"town": rng.choice(list("abc"), 300), "size": rng.normal(size=300)})
    X.loc[::5, "size"] = np.nan
    model = lambda x: (x["town"] == "a") + x["size"].fillna(0.0)  # noqa: E731
    explainer = limes.TabularExplainer(model, X, max_calls=2048)
    profiles = {profile.name: profile for profile in limes.diagnose(explainer(X[:1])).rows[0].profiles}
    assert profiles["town"].of_linear == 1.0
    assert profiles["size"].of_linear == 1.0  # with a cell of missing values


@pytest.mark.parametrize(("interact", "kinds"), [(True, ["fidelity"]), (False, [])])
def test_a_low_fidelity_is_no_finding_where_effects_of_single_columns_suffice(interact, kinds):
    """For products of signs no column has an effect alone; of a sum of sizes all is effects of columns."""
    X = np.random.default_rng(0).normal(size=(800, 3))
    model = lambda x: np.sign(x).prod(axis=1) if interact else np.abs(x).sum(axis=1)  # noqa: E731
    row = diagnosed(model, X, X[:1], bins="decile", max_calls=4096).rows[0]
    assert row.fidelity < 0.25
    assert (row.additive < 0.1) == interact
    assert (row.additive > 0.9) != interact
    assert [finding.kind for finding in row.findings if finding.kind == "fidelity"] == kinds


def test_the_former_name_of_max_calls_warns(small):
    _, _, explanation, _ = small
    with pytest.warns(FutureWarning, match="max_calls="):
        former = limes.diagnose(explanation, calls=256)
    assert str(former) == str(limes.diagnose(explanation, max_calls=256))
