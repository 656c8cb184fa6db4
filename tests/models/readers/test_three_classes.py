"""Three classes behind a softmax of sums: every reader against enumeration, some against draws."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, SplineTransformer, StandardScaler

import limes
from effort import crossed, repeats
from enumerated import explained, table_of
from internals import SoftmaxExpectation
from limes.models import forms
from oracle import EXACT

X = load_breast_cancer().data[:, :6]
DRAWS = repeats(1 << 19, 1 << 15)
# Of the model's own answers, where margins of 100 are rounded
ROUNDING = 1e-13
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
READ = {
    "logistic": SCALED,
    "cross-validated": make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(cv=3, Cs=3, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False),
    ),
    "in bins": make_pipeline(KBinsDiscretizer(4), LogisticRegression()),
    "splines": make_pipeline(SplineTransformer(4), LogisticRegression()),
    "discriminant": LinearDiscriminantAnalysis(),
    "normal": GaussianNB(var_smoothing=0.1),
    "binary": BernoulliNB(binarize=8.0),
    "counts": MultinomialNB(),
    "complement": ComplementNB(),
    "bagged": BaggingClassifier(SCALED, 3, max_features=4, random_state=0),
    "stumps": GradientBoostingClassifier(max_depth=1, n_estimators=20, random_state=0),
    "histogram stumps": HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=20),
    "votes of stumps": AdaBoostClassifier(n_estimators=10, random_state=0),
}
# Libraries that need not be there: where, and with what
OTHERS = {
    "additive boosting": (
        "interpret.glassbox.ExplainableBoostingClassifier",
        {"interactions": 0, "max_rounds": 20, "outer_bags": 1, "n_jobs": 1, "random_state": 0},
    ),
    "LightGBM": (
        "lightgbm.LGBMClassifier",
        {"num_leaves": 2, "n_estimators": 10, "min_child_samples": 3, "verbose": -1, "n_jobs": 1},
    ),
    "CatBoost": (
        "catboost.CatBoostClassifier",
        {"depth": 1, "iterations": 10, "verbose": False, "thread_count": 1, "allow_writing_files": False},
    ),
}
# In `make test`: each kind of sum once
PART = [
    "logistic",
    "splines",
    "discriminant",
    "normal",
    "binary",
    "counts",
    "bagged",
    "stumps",
    "histogram stumps",
]
PART += ["additive boosting", "LightGBM"]


def classifier(name):
    if name in READ:
        return clone(READ[name])
    path, options = OTHERS[name]
    module, _, kind = path.rpartition(".")
    return getattr(pytest.importorskip(module), kind)(**options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", repeats([*READ, *OTHERS], PART))
@pytest.mark.parametrize("seed", range(repeats(200, 1)))
def test_against_enumeration(name, seed, record_property):
    """The model's own probabilities at all combinations of two or three values of up to six columns.

    Errors are relative to what is stated: E p and its largest contrast, of each class.
    """
    rng = np.random.default_rng(seed)
    d = 4 if name == "bagged" else int(rng.integers(1, 7))
    values = [np.sort(rng.gamma(2.0, 4.0, size=rng.integers(2, 4))) for _ in range(d)]
    table = table_of(values, 80, rng)
    y = np.digitize(0.1 * (table - 8.0) @ rng.normal(size=d) + rng.logistic(size=80), [-0.5, 0.5])
    y[:15] = [0, 1, 2] * 5
    model = classifier(name).fit(table, y)
    row, bandwidth = table[rng.integers(80)], float(rng.choice([0.5, 1.0, 0.75 * np.sqrt(d)]))
    explainer = limes.TabularExplainer(
        model, table, categorical=list(range(d)), bandwidth=bandwidth, method="exact"
    )
    explanation = explainer(row[None])
    coef, start, _ = explained(model.predict_proba, values, table, row, bandwidth)
    family, expectation = explainer._model.family, explainer._model.bound.expectation
    size = np.abs(coef).max(axis=0) + np.abs(start + family.at(row).inclusion @ coef)
    error = np.abs(explanation.coefficients.values[0] - coef).max(axis=0)
    # an intercept is a mean less all coefficients
    relative = np.maximum(error, np.abs(explanation.coefficients.intercepts[0] - start) / (1 + d)) / size
    record_property("error", float(relative.max()))
    assert relative.max() < EXACT
    if isinstance(expectation, SoftmaxExpectation):  # neither an average of several nor guarded
        tables = expectation._tables.get(family, lambda: expectation._tabulate(family.columns))
        bound = tables.expect(family.cells(row[None])).bound[0]
        record_property("share_of_bound", float((error / bound).max()))
        assert (error <= bound + ROUNDING * size).all()


@pytest.mark.parametrize(("name", "options"), crossed(["logistic", "splines"], [{}, {"bins": None}]))
def test_three_classes_against_the_models_own_answers(name, options):
    """Draws of w, the model asked at each: |z| of the mean and of every coefficient."""
    x = X / X.std(axis=0)
    model = clone(READ[name]).fit(x, np.digitize(X[:, 0], [12, 16]))
    explainer = limes.TabularExplainer(model, x, method="exact", **options)
    design = explainer._model.family.at(x[17]).in_units()
    moments = explainer._model.bound.expectation.moments(design)
    drawn, h = design.draw(np.random.default_rng(1).random((DRAWS, x.shape[1])))
    f = model.predict_proba(drawn)
    # a few draws decide a mean that is nearly 0
    seen = f.mean(axis=0) > 1e-3
    spread = np.maximum(f.std(axis=0), 1e-12) / np.sqrt(DRAWS)
    assert (np.abs(f.mean(axis=0) - moments.mean) <= 5 * spread)[seen].all()
    products = (h - design.inclusion)[:, :, None] * (f - f.mean(axis=0))[:, None]
    z = (products.mean(axis=0) - moments.gamma) / (products.std(axis=0) / np.sqrt(DRAWS))
    assert np.abs(z[:, seen]).max() < 5


def test_margins_that_range_too_far_are_sampled_with_the_reason():
    y = np.digitize(X[:, 0], [12, 16])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e9, max_iter=10_000)).fit(X, y)
    steep = clone(model).fit(X, y)
    steep[-1].coef_ *= 100.0
    explanation = limes.TabularExplainer(steep, X, max_calls=256, control="none")(X[:1])
    assert explanation.method == "sampled"
    assert "range too far" in explanation.reason


def test_four_classes_and_other_functions_of_three_margins_are_sampled():
    y = np.digitize(X[:, 0], [12, 14, 16])
    form = limes.models.read(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
    assert isinstance(form, forms.BlackBox)
    apart = SGDClassifier(loss="log_loss", random_state=0).fit(X, np.digitize(X[:, 0], [12, 16]))
    assert isinstance(limes.models.read(apart), forms.BlackBox)
