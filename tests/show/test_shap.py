from __future__ import annotations

import sys
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import limes
from internals import changed
from limes.exceptions import InputError
from samples import NAMES, explanation

mpl.use("agg")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # shap's own imports warn
    shap = pytest.importorskip("shap")


def saved(e):
    """The explanation from a file without contributions."""
    return changed(limes.Explanation.from_json(e.to_json()), contributions=None)


def test_outputs_are_named_as_surrogates():
    assert explanation(2).to_shap().output_names == "LIME's surrogate of progression"
    assert explanation(2, 3).to_shap().output_names[1] == "LIME's surrogate of versicolor"


@pytest.mark.parametrize("k", [None, 3])
def test_the_fields_arrive(k):
    e = explanation(4, k)
    s = e.to_shap()
    np.testing.assert_array_equal(s.values, e.coefficients.values)
    np.testing.assert_array_equal(s.base_values, e.coefficients.intercepts)
    assert list(s.feature_names) == list(NAMES)
    assert s.data.tolist() == e.data.tolist()
    if k:
        np.testing.assert_array_equal(s[..., 1].values, e.coefficients.values[..., 1])


def test_pairs_are_interaction_values_for_shaps_pictures():
    X, y = load_iris(return_X_y=True, as_frame=True)
    e = limes.TabularExplainer(LogisticRegression(max_iter=1000).fit(X, y), X)(X.iloc[[0, 60, 120]])
    s = e.to_shap(interactions=True)
    np.testing.assert_array_equal(s.values, e.contributions.pairs)
    total = s.base_values + s.values.sum(axis=(1, 2))
    np.testing.assert_allclose(total, e.predictions, rtol=1e-9, atol=1e-12)
    one = e[..., 1].to_shap(interactions=True)
    assert one.values.shape == (3, 4, 4)
    shap.dependence_plot((0, 1), one.values, X.iloc[[0, 60, 120]], show=False)
    plt.close("all")
    with pytest.raises(InputError, match="of contributions from each row's own base"):
        e.to_shap(interactions=True, base="common")


@pytest.mark.parametrize("bins", ["quartile", None])
@pytest.mark.parametrize("output", ["predict", "predict_proba"])
def test_base_and_values_add_up_to_the_prediction_or_without_contributions_to_the_surrogate(bins, output):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LogisticRegression(max_iter=1000).fit(X, y) if output == "predict_proba" else Ridge().fit(X, y)
    e = limes.TabularExplainer(model, X, bins=bins)(X.iloc[[0, 60, 120]])
    s = e.to_shap()
    np.testing.assert_allclose(s.base_values + s.values.sum(axis=1), e.predictions, rtol=1e-9, atol=1e-12)
    assert not any("surrogate" in name for name in np.ravel(s.output_names))
    s = saved(e).to_shap()
    np.testing.assert_allclose(
        s.base_values + s.values.sum(axis=1), e.coefficients.surrogate_predictions, rtol=1e-9
    )


def test_contributions_that_are_stored_or_sampled_are_kept():
    X, y = load_iris(return_X_y=True, as_frame=True)
    e = limes.TabularExplainer(Ridge().fit(X, y), X)(X.iloc[:3])
    stored = limes.Explanation.from_json(e.to_json()).to_shap()
    np.testing.assert_array_equal(stored.values, e.to_shap().values)
    e = limes.TabularExplainer(lambda rows: rows.iloc[:, 0] * rows.iloc[:, 2], X, max_calls=1024)(X.iloc[:3])
    s = e.to_shap()
    np.testing.assert_array_equal(s.values, e.contributions.values)
    np.testing.assert_allclose(s.base_values + s.values.sum(axis=1), e.predictions, rtol=1e-9)


def test_a_row_that_lacks_the_value_of_a_slope_adds_up_too():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    model = HistGradientBoostingRegressor(max_iter=10).fit(X, y)
    rows = X[X.isna().any(axis=1)].iloc[:4]
    e = limes.TabularExplainer(model, X, bins=None)(rows)
    s = saved(e).to_shap()
    np.testing.assert_allclose(
        s.base_values + s.values.sum(axis=1), e.coefficients.surrogate_predictions, rtol=1e-9
    )


def test_writing_into_the_copy_leaves_the_explanation_alone():
    e = explanation(2)
    e.to_shap().values[:] = 0.0
    assert (e.coefficients.values != 0.0).any()


def test_numbers_arrive_as_floats_with_nan_for_missing():
    s = explanation(d=3, data=[[1, None, 2.5]]).to_shap()
    np.testing.assert_array_equal(s.data, [[1.0, np.nan, 2.5]])


def test_one_base_for_all_rows():
    """Shap's decision plot, and its force plot of many rows, draw from one base alone."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    e = limes.TabularExplainer(model, X, bandwidth=0.6)(X.iloc[::15])
    assert np.ptp(e.to_shap().base_values[:, 0]) > 0.01
    s = e.to_shap(base="common")
    at_infinity = limes.TabularExplainer(model, X, bandwidth=np.inf)(X.iloc[::15])
    np.testing.assert_allclose(s.values, at_infinity.contributions.values, rtol=1e-9, atol=1e-12)
    assert s.base_values.shape == (3,)
    np.testing.assert_allclose(s.base_values + s.values.sum(axis=1), e.predictions, rtol=1e-9, atol=1e-12)
    one = e[..., "1"].to_shap(base="common")
    np.testing.assert_allclose(one.base_values + one.values.sum(axis=1), e.predictions[:, 1], atol=1e-12)
    with pytest.raises(limes.exceptions.InputError, match="each surrogate"):
        e.to_shap(of="coefficients", base="common")
    with pytest.raises(limes.exceptions.InputError, match="comes from a TabularExplainer"):
        limes.Explanation.from_json(e.to_json()).to_shap(base="common")


@pytest.mark.filterwarnings("ignore")  # shap's plots warn
@pytest.mark.parametrize("picture", ["bar of a row", "bar of all", "beeswarm", "waterfall"])
def test_shap_draws_it(picture):
    data = explanation(6).data.copy()
    data[0, 3] = None
    s = explanation(6, data=data).to_shap()
    draw = {
        "bar of a row": lambda: shap.plots.bar(s[0], show=False),
        "bar of all": lambda: shap.plots.bar(s, show=False),
        "beeswarm": lambda: shap.plots.beeswarm(s, show=False),
        "waterfall": lambda: shap.plots.waterfall(s[0], show=False),
    }
    assert draw[picture]() is not None
    plt.close("all")


def test_shap_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"to_shap\(\) needs shap.*pip install shap"):
        explanation().to_shap()
