"""Models that are read but cannot be integrated: their form answers the samples, without model calls."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from internals import CHECK_CALLS, WITNESSES, ModelCaller, matching_curve


def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :5], y


def iris():
    return load_iris(return_X_y=True, as_frame=True)


def many():
    X, y = iris()
    return X, 2 * y + (X.iloc[:, 1] > 3.0)


MODELS = {
    "boosting": (GradientBoostingClassifier(n_estimators=30, max_depth=4, random_state=0), cancer),
    "exponential loss": (
        GradientBoostingClassifier(loss="exponential", n_estimators=30, max_depth=4, random_state=0),
        cancer,
    ),
    "histograms": (HistGradientBoostingClassifier(max_iter=10), cancer),
    "boosting of three classes": (GradientBoostingClassifier(n_estimators=5, random_state=0), iris),
    "AdaBoost": (AdaBoostClassifier(n_estimators=5, random_state=0), many),
    "softmax": (make_pipeline(StandardScaler(), LogisticRegression()), many),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_not_called_and_answers_are_its_own(name):
    model, table = MODELS[name]
    X, y = table()
    model.fit(X, y)
    # log odds, on which a network is fitted, magnify the last bits of answers near 0 and 1
    options = {"max_calls": 1104, "control": "additive", "contributions": False}
    explainer = limes.TabularExplainer(model, X, **options)
    explanation = explainer(X.iloc[[0, 60]])
    assert explanation.method == "sampled"
    assert explanation.reason.endswith("(sampled from the read model)")
    assert explanation.model_calls == explainer.pool_calls == 0
    assert explanation.shared_calls.tolist() == [0, 0]
    assert (explanation.coefficients.effective_rows > 500).all()
    called = limes.TabularExplainer(model, X, method="sampled", **options)
    reference = called(X.iloc[[0, 60]])
    assert called.pool_calls == 2 + CHECK_CALLS + WITNESSES + 1024
    np.testing.assert_allclose(
        explanation.coefficients.values, reference.coefficients.values, rtol=1e-9, atol=1e-13
    )
    np.testing.assert_allclose(
        explanation.coefficients.standard_errors,
        reference.coefficients.standard_errors,
        rtol=1e-6,
        atol=1e-12,
    )


def test_single_rows_draws_classes_and_copies():
    X, y = iris()
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, y)
    # without bins a row has draws by itself
    options = {"output": [2, 0], "bins": None, "contributions": False, "control": "none"}
    explainer = limes.TabularExplainer(model, X, max_calls=256, **options)
    explanation = explainer(X.iloc[:1])
    assert explanation.model_calls == 0
    cloudpickle = pytest.importorskip("cloudpickle")
    again = pickle.loads(cloudpickle.dumps(explainer))(X.iloc[:1])
    np.testing.assert_array_equal(again.coefficients.values, explanation.coefficients.values)
    # as many, beside those for checks
    reference = limes.TabularExplainer(model, X, method="sampled", max_calls=284, **options)(X.iloc[:1])
    assert reference.model_calls <= 1 + 256
    np.testing.assert_allclose(
        explanation.coefficients.values, reference.coefficients.values, rtol=1e-9, atol=1e-13
    )


def test_a_model_that_is_fitted_again_is_read_again():
    X, y = cancer()
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    explainer = limes.TabularExplainer(model, X, output=1, max_calls=1024)
    before = explainer(X.iloc[:1])
    model.fit(X, 1 - y)
    after = explainer(X.iloc[:1])
    np.testing.assert_allclose(after.coefficients.values, -before.coefficients.values, atol=0.02)
    assert after.model_calls == 0


def test_the_second_of_two_probabilities_decides_the_first():
    X, y = cancer()
    model = GradientBoostingClassifier(n_estimators=30, max_depth=4, random_state=0).fit(X, y)
    for law in ("truncnorm", "joint"):
        both = limes.TabularExplainer(model, X, max_calls=1024, law=law)(X.iloc[:3])
        one = limes.TabularExplainer(model, X, max_calls=1024, law=law, output=1)(X.iloc[:3])
        np.testing.assert_allclose(
            both.coefficients.values[..., 1], one.coefficients.values, rtol=1e-9, atol=1e-13
        )
        np.testing.assert_array_equal(both.coefficients.values[..., 0], -both.coefficients.values[..., 1])
        np.testing.assert_allclose(
            both.coefficients.intercepts.sum(axis=1) + both.coefficients.values.sum(axis=(1, 2)), 1.0
        )
        for name in ("standard_errors", "shares", "share_errors"):
            values = getattr(both.coefficients, name)
            np.testing.assert_array_equal(values[..., 0], values[..., 1])
        np.testing.assert_array_equal(both.fidelity[:, 0], both.fidelity[:, 1])
        effects = [both[0, :, k].effects["mean radius"].values for k in (0, 1)]
        np.testing.assert_allclose(effects[0], -effects[1], atol=1e-12)


def test_two_outputs_that_are_no_probabilities_are_computed_each():
    X, _ = cancer()

    def model(table):
        return np.stack([table["mean radius"], table["mean texture"]], axis=1)

    explanation = limes.TabularExplainer(model, X, max_calls=1024)(X.iloc[:1])
    assert abs(explanation.coefficients.values[0, 0, 0]) > 1.0
    assert abs(explanation.coefficients.values[0, 0, 1]) < 1e-6


def test_curves_are_recognised_by_values_and_refused_otherwise():
    margins = np.random.default_rng(0).normal(size=(50, 3))
    softmax = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    curve = matching_curve(margins, softmax[:, 1], lambda p: p[:, 1], 1e-12)
    np.testing.assert_allclose(curve(2 * margins), (softmax**2)[:, 1] / (softmax**2).sum(axis=1))
    assert matching_curve(margins, softmax[:, 1] + 1e-6, lambda p: p[:, 1], 1e-12) is None
    assert matching_curve(margins[:, 0], margins[:, 0] ** 3, lambda p: p, 1e-12) is None


def test_a_model_is_asked_once_about_the_rows_on_which_its_form_is_checked(monkeypatch):
    """Also where the form agrees with the model, and has no exact expectation."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 30)).astype(float)
    model = MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs", random_state=0).fit(
        X, X @ rng.normal(size=30)
    )
    sizes, predict = [], ModelCaller.__call__
    monkeypatch.setattr(ModelCaller, "__call__", lambda self, x: sizes.append(len(x)) or predict(self, x))
    explainer = limes.TabularExplainer(model, X, categorical=list(range(30)), max_calls=64, control="none")
    assert explainer(X[:1]).reason.endswith("(sampled from the read model)")
    # 200 background rows and about 270 more; what is asked besides are single rows
    assert sum(count > 100 for count in sizes) == 1
