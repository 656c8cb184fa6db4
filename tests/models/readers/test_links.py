"""Probabilities and means behind a link: read, verified, and explained exactly."""

from __future__ import annotations

import re
from functools import cache

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, SplineTransformer, StandardScaler
from sklearn.svm import LinearSVC

import limes
import oracle
from effort import crossed, repeats
from enumerated import explained, table_of
from internals import BlackBox
from limes.models import forms

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :6]
D, T = load_diabetes(return_X_y=True)
DRAWS = repeats(1 << 19, 1 << 15)

SCALED = make_pipeline(StandardScaler(), LogisticRegression())
EXACT = {
    "logistic": SCALED,
    "cross-validated": make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(cv=3, Cs=3, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False),
    ),
    "log loss": make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
    "in bins": make_pipeline(KBinsDiscretizer(4), LogisticRegression()),
    "splines": make_pipeline(SplineTransformer(4), LogisticRegression()),
    "discriminant": LinearDiscriminantAnalysis(),
    "normal": GaussianNB(),
    "binary": BernoulliNB(binarize=15.0),
    "counts": MultinomialNB(),
    "complement": ComplementNB(),
    "calibrated": CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC(random_state=0)), cv=2),
    "calibrated last": make_pipeline(
        StandardScaler(), CalibratedClassifierCV(LinearSVC(random_state=0), cv=2)
    ),
    "bagged": BaggingClassifier(SCALED, 3, max_features=4, random_state=0),
    "voting": VotingClassifier([("a", SCALED), ("b", GaussianNB())], voting="soft", weights=[1, 2]),
    "stumps": GradientBoostingClassifier(max_depth=1, n_estimators=20, random_state=0),
    "histogram stumps": HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=20),
    "votes of stumps": AdaBoostClassifier(n_estimators=10, random_state=0),
}


@cache
def trained(name):
    """A model, which all tests share."""
    return EXACT[name].fit(X, Y)


@pytest.mark.parametrize(
    ("name", "options"), crossed(EXACT, [{}, {"law": "empirical"}, {"weights": "euclidean"}])
)
def test_probabilities_are_exact(name, options):
    model = trained(name)
    explainer = limes.TabularExplainer(model, X, method="exact", **options)
    explanation = explainer(X[:2])
    assert explanation.method == "exact"
    assert np.allclose(
        explanation.coefficients.values[..., 0], -explanation.coefficients.values[..., 1], rtol=0, atol=1e-12
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", range(repeats(200, 1)))
def test_random_probabilities_against_enumeration(name, seed):
    """The model's own probabilities at all combinations of two or three values of up to six columns."""
    rng = np.random.default_rng(seed)
    d = 4 if name == "bagged" else int(rng.integers(1, 7))
    values = [np.sort(rng.gamma(2.0, 8.0, size=rng.integers(2, 4))) for _ in range(d)]
    table = table_of(values, 80, rng)
    y = (0.1 * (table - 16.0) @ rng.normal(size=d) + rng.logistic(size=80) > 0).astype(int)
    y[:12] = [0, 1] * 6
    model = clone(EXACT[name]).fit(table, y)
    row, bandwidth = table[rng.integers(80)], float(rng.choice([0.5, 1.0, 0.75 * np.sqrt(d)]))
    columns = list(range(d))
    explainer = limes.TabularExplainer(
        model, table, categorical=columns, bandwidth=bandwidth, max_calls=64, control="none"
    )
    explanation = explainer(row[None])
    if explanation.method == "sampled":  # a column is all but constant in one class: margins of 10⁸
        assert name in ("normal", "voting")
        assert "too far for quadrature" in explanation.reason
        return
    coef, start, size = explained(model.predict_proba, values, table, row, bandwidth)
    assert oracle.error(explanation.coefficients.values[0], coef, size) < oracle.EXACT
    assert oracle.error(explanation.coefficients.intercepts[0], start, size) < oracle.EXACT


@pytest.mark.parametrize(
    "model", [PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=1.5, link="log")]
)
@pytest.mark.parametrize("options", [{}, {"bins": None}])
def test_means_behind_a_log_link_are_exact(model, options):
    model.fit(D, T)
    assert np.allclose(limes.models.read(model).predict(D), model.predict(D), rtol=1e-12)
    assert limes.TabularExplainer(model, D, method="exact", **options)(D[:1]).method == "exact"


@pytest.mark.parametrize(
    ("name", "options"), crossed(["logistic", "normal", "calibrated", "splines"], [{}, {"bins": None}])
)
def test_exact_probabilities_against_the_models_own_answers(name, options):
    """Draws of w, the model asked at each: |z| of the mean and of every coefficient."""
    model = trained(name)
    explainer = limes.TabularExplainer(model, X, output=1, **options)
    design = explainer._model.family.at(X[17]).in_units()
    moments = explainer._model.bound.expectation.moments(design)
    x, h = design.draw(np.random.default_rng(1).random((DRAWS, X.shape[1])))
    f = model.predict_proba(x)[:, 1]
    assert abs(f.mean() - moments.mean) <= 5 * f.std() / np.sqrt(DRAWS)
    products = (h - design.inclusion) * (f - f.mean())[:, None]
    z = (products.mean(axis=0) - moments.gamma) / (products.std(axis=0) / np.sqrt(DRAWS))
    assert np.abs(z).max() < 5


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (GradientBoostingClassifier(max_depth=4, random_state=0), "is not a sum of trees.*join 6 columns"),
        (SGDClassifier(loss="modified_huber"), "is not a sum of effects"),
        (CalibratedClassifierCV(GaussianNB(), cv=2), "calibrates its probabilities"),
        (CalibratedClassifierCV(SCALED, method="isotonic", cv=2), "method='sigmoid'"),
    ],
)
def test_probabilities_that_are_no_links_of_sums_say_why(model, reason):
    form = limes.models.read(model.fit(X, Y))
    assert isinstance(form, forms.BlackBox)
    assert re.search(reason, form.reason)


def test_one_probability_and_both():
    model = SCALED.fit(X, Y)
    both = limes.TabularExplainer(model, X)(X[:3]).coefficients.values
    assert np.array_equal(limes.TabularExplainer(model, X, output=1)(X[:3]).coefficients.values, both[..., 1])


def test_additive_boosting_machines():
    glassbox = pytest.importorskip("interpret.glassbox")
    model = glassbox.ExplainableBoostingClassifier(interactions=0, max_rounds=50, random_state=0).fit(X, Y)
    assert limes.TabularExplainer(model, X, method="exact")(X[:1]).method == "exact"


def test_few_trees_of_two_columns_are_exact():
    """Interactions of a few columns, and R², which goes by the square of the link."""
    model = GradientBoostingClassifier(max_depth=2, n_estimators=8, random_state=0).fit(X, Y)
    explanation = limes.TabularExplainer(model, X, output=1, method="exact")(X[:3])
    assert not explanation.coefficients.standard_errors.any()
    assert not explanation.fidelity_errors.any()


ROWS = np.random.default_rng(0).normal(size=(300, 4))
CLASSES = (ROWS[:, 0] + 0.5 * ROWS[:, 1] > 0).astype(int)
SMALL = {"n_estimators": 10, "num_leaves": 2, "verbose": -1}
RANDOM = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}


@pytest.mark.parametrize(
    ("model", "is_read"),
    [
        (GradientBoostingClassifier(n_estimators=10, max_depth=1), True),
        (GradientBoostingClassifier(n_estimators=10, max_depth=1, loss="exponential"), False),
        (lightgbm.LGBMClassifier(**SMALL), True),
        (lightgbm.LGBMClassifier(**SMALL, objective="cross_entropy"), True),
        (lightgbm.LGBMClassifier(**SMALL, sigmoid=3.0), False),
        (lightgbm.LGBMClassifier(**SMALL, **RANDOM), False),
        (lightgbm.LGBMClassifier(**SMALL, objective="cross_entropy_lambda"), False),
        (lightgbm.LGBMClassifier(**SMALL, objective="regression"), False),
        (xgboost.XGBClassifier(n_estimators=10, max_depth=1), True),
        (xgboost.XGBClassifier(n_estimators=10, max_depth=1, objective="binary:logitraw"), False),
        (xgboost.XGBClassifier(n_estimators=10, max_depth=1, objective="binary:hinge"), False),
        (xgboost.XGBClassifier(n_estimators=10, max_depth=1, objective="reg:squarederror"), False),
    ],
)
def test_probabilities_are_read_where_they_are_the_logistic_of_the_margin(model, is_read):
    """For other objectives they are another function, or none: the form is the model itself."""
    form = limes.models.read(model.fit(ROWS, CLASSES))
    assert isinstance(form, BlackBox) != is_read
    answers = model.predict_proba(ROWS)[:, -1]
    np.testing.assert_allclose(form.predict(ROWS).reshape(300, -1)[:, -1], answers, rtol=0, atol=1e-6)


def test_three_classes_of_a_random_forest_of_lightgbm_are_no_softmax():
    model = lightgbm.LGBMClassifier(**SMALL, **RANDOM).fit(ROWS, CLASSES + (ROWS[:, 2] > 0))
    assert isinstance(limes.models.read(model), BlackBox)
