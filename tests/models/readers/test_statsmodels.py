"""Results of statsmodels: read, compared with their own predictions, and held against enumeration."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import limes
import oracle
from effort import repeats
from enumerated import explained, table_of
from limes.models import forms
from oracle import EXACT

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")

pytestmark = pytest.mark.filterwarnings("ignore")
LINKS = sm.families.links


def grid(rng, d):
    """A table whose columns have two or three values each."""
    values = [np.sort(rng.normal(size=rng.integers(2, 4))) for _ in range(d)]
    return table_of(values, 80, rng), values


def binary(rng, X):
    y = (X @ rng.normal(size=X.shape[1]) + rng.logistic(size=len(X)) > 0).astype(float)
    y[:4] = [0, 1, 0, 1]
    return y


def counts(rng, X):
    return rng.poisson(np.exp(np.clip(X @ rng.normal(size=X.shape[1]), -2, 2))) + 0.0


def positive(rng, X):
    return np.exp(0.3 * X @ rng.normal(size=X.shape[1])) * rng.gamma(5.0, 0.2, size=len(X)) + 0.01


RESULTS = {
    "OLS": lambda rng, X: sm.OLS(positive(rng, X), sm.add_constant(X)).fit(),
    "WLS": lambda rng, X: sm.WLS(positive(rng, X), sm.add_constant(X), weights=rng.random(len(X))).fit(),
    "ridge": lambda rng, X: sm.OLS(positive(rng, X), sm.add_constant(X)).fit_regularized(alpha=0.01),
    "robust": lambda rng, X: sm.RLM(positive(rng, X), sm.add_constant(X)).fit(),
    "median": lambda rng, X: sm.QuantReg(positive(rng, X), sm.add_constant(X)).fit(),
    "Logit": lambda rng, X: sm.Logit(binary(rng, X), sm.add_constant(X)).fit_regularized(alpha=0.5, disp=0),
    "Probit": lambda rng, X: sm.Probit(binary(rng, X), sm.add_constant(X)).fit_regularized(alpha=0.5, disp=0),
    "Poisson": lambda rng, X: sm.Poisson(counts(rng, X), sm.add_constant(X)).fit(disp=0, maxiter=20),
    "negative binomial": lambda rng, X: sm.NegativeBinomial(counts(rng, X), sm.add_constant(X)).fit(
        disp=0, maxiter=5, method="bfgs"
    ),
    "binomial": lambda rng, X: sm.GLM(
        binary(rng, X), sm.add_constant(X), family=sm.families.Binomial()
    ).fit_regularized(alpha=0.01),
    "binomial probit": lambda rng, X: sm.GLM(
        binary(rng, X), sm.add_constant(X), family=sm.families.Binomial(LINKS.Probit())
    ).fit_regularized(alpha=0.01),
    "binomial cloglog": lambda rng, X: sm.GLM(
        binary(rng, X), sm.add_constant(X), family=sm.families.Binomial(LINKS.CLogLog())
    ).fit_regularized(alpha=0.05),
    "gamma": lambda rng, X: sm.GLM(
        positive(rng, X), sm.add_constant(X), family=sm.families.Gamma(LINKS.Log())
    ).fit(),
    "Tweedie": lambda rng, X: sm.GLM(
        positive(rng, X), sm.add_constant(X), family=sm.families.Tweedie(LINKS.Log(), var_power=1.5)
    ).fit(),
    "gaussian": lambda rng, X: sm.GLM(positive(rng, X), sm.add_constant(X)).fit(),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("seed", range(repeats(200, 2)))
def test_results_against_enumeration(name, seed):
    rng = np.random.default_rng(seed)
    X, values = grid(rng, int(rng.integers(1, 7)))
    model = RESULTS[name](rng, X)
    if not np.isfinite(model.params).all():
        pytest.skip("statsmodels did not converge")
    table, row = sm.add_constant(X, has_constant="add"), X[rng.integers(len(X))]
    bandwidth = float(rng.choice([0.5, 1.0, 0.75 * np.sqrt(X.shape[1])]))
    explainer = limes.TabularExplainer(
        model, table, method="exact", law="empirical", categorical=list(range(table.shape[1])),
        bandwidth=bandwidth,
    )  # fmt: skip
    explanation = explainer(np.r_[1.0, row][None])
    coef, start, size = explained(
        lambda x: model.predict(np.column_stack([np.ones(len(x)), x])), values, X, row, bandwidth
    )
    # the constant column has a coefficient of 0
    assert oracle.error(explanation.coefficients.values[0], np.r_[0, coef], size) < EXACT
    assert oracle.error(explanation.coefficients.intercepts[0], start, size) < EXACT


@pytest.mark.parametrize("name", ["Logit", "Probit", "Poisson", "binomial cloglog", "OLS"])
@pytest.mark.parametrize("bins", ["quartile", None])
def test_results_in_bins_are_exact(name, bins):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 4))
    model = RESULTS[name](rng, X)
    explainer = limes.TabularExplainer(model, sm.add_constant(X), method="exact", bins=bins)
    assert explainer(sm.add_constant(X)[:2]).method == "exact"
    margin = limes.models.read(model, "margin")
    expected = sm.add_constant(X) @ np.asarray(model.params)
    assert np.allclose(margin.predict(sm.add_constant(X)), expected, rtol=0, atol=1e-12)


FORMULAS = {
    "y ~ a + b": 2,
    "y ~ a + C(g)": 2,
    "y ~ g + b - 1": 2,
    "y ~ a + C(k)": 2,
    "y ~ a + g + k": 3,
}


def people(rng):
    table = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    table["g"] = rng.choice(["low", "mid", "high"], 200)
    table["k"] = rng.integers(3, size=200)
    y = (table["a"] + (table["g"] == "mid") + rng.logistic(size=200) > 0).astype(int)
    return table, y


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_of_columns_and_levels(formula):
    table, y = people(np.random.default_rng(0))
    for fit in (smf.logit, smf.probit, smf.ols):
        keywords = {} if fit is smf.ols else {"disp": 0}
        model = fit(formula, table.assign(y=y)).fit(**keywords)
        categorical = ["k"] if "C(k)" in formula else []
        explainer = limes.TabularExplainer(model, table, method="exact", categorical=categorical)
        explanation = explainer(table[:3])
        assert (
            np.count_nonzero(np.abs(explanation.coefficients.values).max(axis=0) > 1e-12) == FORMULAS[formula]
        )


def test_mixed_models_are_their_fixed_effects():
    """A row belongs to no group: predict leaves the effects of groups out."""
    table, _ = people(np.random.default_rng(0))
    shift = np.random.default_rng(1).normal(size=3)
    y = table["a"] * 2 + (table["g"] == "mid") + shift[table["k"]]
    by_formula = smf.mixedlm("y ~ a + g", table.assign(y=y), groups=table["k"]).fit()
    matrix = sm.add_constant(table[["a", "b"]].to_numpy())
    by_matrix = sm.MixedLM(y.to_numpy(), matrix, groups=table["k"].to_numpy(), exog_re=matrix[:, :2]).fit()
    for model, rows in ((by_formula, table), (by_matrix, matrix)):
        explanation = limes.TabularExplainer(model, rows, method="exact")(rows[:3])
        np.testing.assert_allclose(explanation.predictions, model.predict(rows[:3]), rtol=1e-12)
        drawn = limes.TabularExplainer(model.predict, rows, method="sampled", max_calls=2048)(rows[:3])
        assert (
            np.abs(explanation.coefficients.values - drawn.coefficients.values)
            < 5 * drawn.coefficients.standard_errors + 1e-6
        ).all()
        assert np.abs(explanation.coefficients.values).max() > 0.5


@pytest.mark.parametrize(
    "formula", ["y ~ a + np.log(b ** 2)", "y ~ a * b", "y ~ a + C(g):b", "y ~ cr(a, df=3)"]
)
def test_other_terms_are_refused_by_their_name(formula):
    table, y = people(np.random.default_rng(0))
    model = smf.logit(formula, table.assign(y=y)).fit(disp=0)
    explanation = limes.TabularExplainer(model, table, max_calls=64, control="none")(table[:1])
    assert explanation.method == "sampled"
    assert "the formula's term" in explanation.reason


def test_results_without_such_a_sum_say_why():
    rng = np.random.default_rng(1)
    X = sm.add_constant(rng.normal(size=(120, 2)))
    several = sm.MNLogit(rng.integers(3, size=120), X).fit(disp=0)
    inverse = sm.GLM(1.0 + rng.random(120), X, family=sm.families.Gamma(LINKS.InversePower())).fit()
    for model, reason in ((several, "limes cannot read statsmodels' MNLogit"), (inverse, "InversePower")):
        form = limes.models.read(model)
        assert isinstance(form, forms.BlackBox)
        assert reason in form.reason


def test_a_result_whose_model_was_patched_is_sampled():
    rng = np.random.default_rng(1)
    X = sm.add_constant(rng.normal(size=(60, 2)))
    model = sm.OLS(rng.normal(size=60), X).fit()
    model.model.predict = lambda params, exog: np.ones(len(exog))
    assert "was replaced" in limes.models.read(model).reason


def test_counts_with_a_dispersion_of_a_formula():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=300)})
    counts = table.assign(count=rng.poisson(np.exp(0.3 * table["a"])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = smf.negativebinomial("count ~ a", counts).fit(disp=0)
    explanation = limes.TabularExplainer(model, table)(table[:2])
    np.testing.assert_allclose(explanation.predictions, model.predict(table[:2]), rtol=1e-9)
