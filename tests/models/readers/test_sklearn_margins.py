"""Margins of scikit-learn's models that have no decision_function, and of discriminant analysis.

What is read is compared with numbers that the models compute themselves, on rows off the background too, and
coefficients with an enumeration of the model's own answers.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, TweedieRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import boosters
import limes
import oracle
from effort import repeats
from internals import ModelCaller, resolve
from limes.exceptions import InputError, ModelError
from limes.models import forms
from limes.models.readers import sklearn_linear

RNG = np.random.default_rng(0)
# few values a column, so that all rows of the grid can be asked
X = np.round(np.abs(RNG.normal(size=(150, 3))) * [1.0, 3.0, 0.3], 1)
Y = 2.0 * X[:, 0] - X[:, 1] + 5.0 * X[:, 2] + 0.3 * RNG.normal(size=150)
POSITIVE = np.exp(Y / 4)
TWO, THREE = np.where(Y > 0, "yes", "no"), np.digitize(Y, [-1.0, 1.0]) * 5
# Sums of a few terms in another order
SAME = 1e-11


def rows(count=1000):
    """Nonnegative rows, as counts are, most of them off the background."""
    drawn = X[RNG.integers(len(X), size=count)] + np.abs(RNG.normal(size=(count, 3))) * 4 * X.std(axis=0)
    return np.concatenate([drawn, X, np.zeros((1, 3))])


def assert_margin(model, expected, kind=None, x=X):
    """The margin is ``expected`` of rows, the form says the same, and coefficients are those of all cells."""
    form, table = limes.models.read(model, "margin"), rows()
    assert not isinstance(form, forms.BlackBox), form.reason
    assert kind is None or isinstance(form, kind)
    answers = ModelCaller(model, resolve(model, "margin"), np.asarray)(table)
    assert oracle.error(answers, expected(table)) < SAME
    assert oracle.error(form.predict(table), expected(table)) < SAME
    result = boosters.assert_coefficients(model, x, output="margin")
    assert result.method == "exact"
    return result


# -- generalised linear models ----------------------------------------------------------------------------

LOG_LINKS = [
    PoissonRegressor(alpha=0.1),
    PoissonRegressor(fit_intercept=False),
    GammaRegressor(alpha=0.01),
    TweedieRegressor(power=1.5, alpha=0.1),
    TweedieRegressor(power=0, link="log", alpha=0.01),
    TweedieRegressor(power=3, link="auto"),
]


@pytest.mark.parametrize("model", LOG_LINKS, ids=str)
def test_margins_behind_a_log_link(model):
    model.fit(X, POSITIVE)
    assert_margin(model, lambda x: x @ model.coef_ + model.intercept_, forms.Linear)
    form = limes.models.read(model)
    assert isinstance(form, forms.Linked)
    assert np.allclose(form.predict(X), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"power": -0.5}, {"power": 1.5, "link": "identity"}], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # is not what is tested
def test_the_identity_link_predicts_its_margin(options):
    model = TweedieRegressor(alpha=0.1, solver="newton-cholesky", **options).fit(X, POSITIVE)
    assert model.coef_.any()
    assert_margin(model, model.predict, forms.Linear)
    boosters.assert_coefficients(model, X)


def test_coefficients_of_a_log_link_are_differences_of_means_of_the_column():
    model = PoissonRegressor(alpha=0.1).fit(X, POSITIVE)
    result = limes.TabularExplainer(model, X, output="margin", law="empirical")(X[:5])
    for i, row in enumerate(X[:5]):
        for j in range(3):
            edges = np.unique(np.percentile(X[:, j], [25, 50, 75]))
            in_cell = np.searchsorted(edges, X[:, j]) == np.searchsorted(edges, row[j])
            gap = X[in_cell, j].mean() - X[~in_cell, j].mean()
            assert result.coefficients.values[i, j] == pytest.approx(model.coef_[j] * gap, rel=oracle.EXACT)


def test_a_prediction_of_zero_has_no_logarithm():
    model = PoissonRegressor().fit(X, POSITIVE)
    model.coef_ = np.array([-1.0, 0.0, 0.0])
    far = np.array([[1e4, 0.0, 0.0], [1e4, 0.0, 0.0]])  # exp(-10000) is 0 in float64
    with pytest.raises(ModelError, match=r"inf .*finite"):
        limes.TabularExplainer(model, far, output="margin")


@pytest.mark.parametrize("loss", ["poisson", "gamma", "squared_error"])
def test_histogram_boosting_with_a_log_link(loss):
    model = HistGradientBoostingRegressor(loss=loss, max_iter=8, min_samples_leaf=5).fit(X, POSITIVE)
    expected = model.predict if loss == "squared_error" else lambda x: np.log(model.predict(x))
    assert_margin(model, expected, forms.Forest)
    if loss != "squared_error":
        assert "output='margin'" in boosters.reason(model)


# -- naive Bayes and discriminant analysis ----------------------------------------------------------------

CLASSIFIERS = [
    (MultinomialNB(), forms.Linear),
    (MultinomialNB(alpha=0.1, fit_prior=False), forms.Linear),
    (ComplementNB(), forms.Linear),
    (ComplementNB(norm=True), forms.Linear),
    (BernoulliNB(), forms.Forest),
    (BernoulliNB(binarize=0.5, class_prior=[0.2, 0.3, 0.5]), forms.Forest),
    (GaussianNB(), forms.Reduced),
    (GaussianNB(var_smoothing=0.1, priors=[0.2, 0.3, 0.5]), forms.Reduced),
    (QuadraticDiscriminantAnalysis(), forms.Quadratic),
    (QuadraticDiscriminantAnalysis(priors=[0.2, 0.3, 0.5]), forms.Quadratic),
    (QuadraticDiscriminantAnalysis(reg_param=0.3, priors=[0.2, 0.3, 0.5]), forms.Quadratic),
]


def joint(model, table):
    """log P(class) + log P(row | class) up to a constant of the row, from the model's own answers.

    ``decision_function`` returns it where the model has that method, ``predict_joint_log_proba`` elsewhere.
    """
    if hasattr(model, "decision_function"):
        return model.decision_function(table)
    both = model.predict_joint_log_proba(table)
    return both[:, 1] - both[:, 0] if both.shape[1] == 2 else both


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize(("model", "kind"), CLASSIFIERS, ids=str)
def test_margins_of_classifiers(model, kind, labels):
    for name in ("class_prior", "priors"):
        prior = getattr(model, name, None)
        if prior is not None:
            model.set_params(**{name: [0.4, 0.6] if labels is TWO else [0.2, 0.3, 0.5]})
    model.fit(X, labels)
    explanation = assert_margin(model, lambda x: joint(model, x), kind)
    assert explanation.output_names == (("yes",) if labels is TWO else ("0", "5", "10"))
    if kind is not forms.Quadratic:
        form = limes.models.read(model)
        assert isinstance(form, forms.Linked if labels is TWO else forms.Softmax)
        assert np.allclose(form.predict(X), model.predict_proba(X), rtol=1e-9)
        return
    reason = boosters.reason(model)
    assert "output='margin'" in reason
    assert type(model).__name__ in reason


@pytest.mark.parametrize(("model", "kind"), CLASSIFIERS[:8:2], ids=str)
def test_margins_differ_as_log_probabilities_do(model, kind):
    """The constant that joint log-likelihoods leave out is the same for all classes."""
    model.fit(X, THREE)
    form, table = limes.models.read(model, "margin"), rows()
    result, logs = form.predict(table), model.predict_log_proba(table)
    gap = (result[:, 1:] - result[:, :1]) - (logs[:, 1:] - logs[:, :1])
    assert np.abs(gap).max() < 1e-10 * np.abs(result).max()


def test_bernoulli_without_a_threshold_takes_numbers_as_they_are():
    marks = (X > 0.5).astype(float)
    for labels in (TWO, THREE):
        model = BernoulliNB(binarize=None).fit(marks, labels)
        assert_margin(model, lambda x, m=model: joint(m, x), forms.Linear, x=marks)


def test_values_on_the_threshold_are_not_above_it():
    model = BernoulliNB(binarize=0.5).fit(X, TWO)
    beside = [np.nextafter(0.5, -np.inf), 0.5, np.nextafter(0.5, np.inf)]
    table = np.array([[a, b, c] for a in beside for b in beside for c in beside])
    result = limes.models.read(model, "margin").predict(table)
    assert np.allclose(result, joint(model, table), rtol=1e-12)
    assert np.unique(np.round(result, 12)).size == 8


def test_a_class_that_is_impossible_is_left_to_sampling():
    marks = (X > 0.5).astype(float)
    marks[:, 0] = 1.0
    model = MultinomialNB().fit(marks, TWO)
    model.feature_log_prob_ = np.where(np.arange(3) == 0, -np.inf, model.feature_log_prob_)
    with pytest.raises(sklearn_linear.CannotRead, match="larger alpha"):
        sklearn_linear.counts(model, "decision_function", None)


def far_away(model):
    """The model on a table, and on the same table far from 0; 1/8 and 2**20 are exact."""
    near = np.round(8 * X) / 8
    shift = 2.0**20 * np.array([1.0, -3.0, 0.0])
    target = Y + X[:, 0] ** 2 if isinstance(model, Pipeline) else TWO
    output = "margin" if target is TWO else None
    return [(clone(model).fit(table, target), table, output) for table in (near, near + shift)]


FAR_AWAY = [
    GaussianNB(var_smoothing=0.0),
    QuadraticDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearRegression()),
]


@pytest.mark.parametrize("model", FAR_AWAY, ids=str)
def test_numbers_far_from_zero(model):
    """Squares about 0 cancel digits: the pipeline's coefficients were off by 6e-5 of the largest here."""
    result = [
        limes.TabularExplainer(one, table, output=output, method="exact")(table[:5]).coefficients.values
        for one, table, output in far_away(model)
    ]
    # the sums that the models are fitted by round at the sixteenth digit of 3e6
    assert oracle.error(result[1], result[0]) < 1e-9


@pytest.mark.parametrize(
    "model", [GaussianNB(), QuadraticDiscriminantAnalysis(), PoissonRegressor(), MultinomialNB()], ids=str
)
def test_missing_values_are_refused_as_the_model_refuses_them(model):
    target = POSITIVE if isinstance(model, PoissonRegressor) else TWO
    model.fit(X, target)
    table = X.copy()
    table[3, 0] = np.nan
    with pytest.raises(ModelError, match="NaN"):
        limes.TabularExplainer(model, table, output="margin")


# -- behind what hands on ---------------------------------------------------------------------------------

HANDED_ON = {
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "search": lambda model: GridSearchCV(model, {}, cv=2),
    "search in a pipeline": lambda model: make_pipeline(StandardScaler(), GridSearchCV(model, {}, cv=2)),
    "pipeline in a search": lambda model: GridSearchCV(make_pipeline(StandardScaler(), model), {}, cv=2),
}


@pytest.mark.parametrize("wrap", HANDED_ON.values(), ids=HANDED_ON)
@pytest.mark.parametrize(
    "model",
    [PoissonRegressor(alpha=0.1), GaussianNB(), BernoulliNB(), QuadraticDiscriminantAnalysis()],
    ids=str,
)
def test_margins_behind_wrappers(model, wrap):
    target = POSITIVE if isinstance(model, PoissonRegressor) else TWO
    wrapped = wrap(model).fit(X, target)
    boosters.assert_coefficients(wrapped, X, output="margin")
    frozen = FrozenEstimator(wrapped)
    result = boosters.assert_coefficients(frozen, X, output="margin")
    assert result.method == "exact"


def test_columns_of_a_frame_keep_their_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for model, target in ((GaussianNB(), TWO), (PoissonRegressor(), POSITIVE), (MultinomialNB(), TWO)):
        result = limes.TabularExplainer(model.fit(frame, target), frame, output="margin")(frame[:1])
        assert result.method == "exact"


# -- default probabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "target", "output"),
    [
        (GaussianNB(), TWO, "yes"),
        (QuadraticDiscriminantAnalysis(), TWO, "yes"),
        (MultinomialNB(), THREE, 5),
        (PoissonRegressor(alpha=0.1), POSITIVE, None),
    ],
    ids=lambda each: str(each)[:20],
)
def test_the_margin_serves_as_control_of_what_is_behind_it(model, target, output):
    """Standard errors cover, and are smaller than without a control, over seeds."""
    model.fit(X, target)
    options = {"output": output, "law": "empirical", "method": "sampled", "contributions": False}
    ratios = []
    for seed in range(repeats(6, 3)):
        plain = limes.TabularExplainer(model, X, control="none", rng=seed, max_calls=560, **options)(X[:8])
        # the margin is compared with the model's
        helped = limes.TabularExplainer(model, X, control="margin", rng=seed, max_calls=640, **options)(X[:8])
        ratios.append(
            np.median(helped.coefficients.standard_errors) / np.median(plain.coefficients.standard_errors)
        )
    assert helped.method == "sampled"
    assert np.mean(ratios) < 0.88
    wanted = resolve(model, output)
    z = []
    for i in range(8):
        truth = boosters.enumerated(X, X[i], ModelCaller(model, wanted, np.asarray), categorical=())
        z.append((helped.coefficients.values[i] - truth.coef) / helped.coefficients.standard_errors[i])
    assert np.sqrt(np.mean(np.square(z))) < 1.5
    assert np.abs(z).max() < oracle.Z_LIMIT


# -- what has no margin -----------------------------------------------------------------------------------


def test_regressors_without_a_margin():
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(InputError, match="position"):
        resolve(KNeighborsRegressor().fit(X, Y), "margin")
    with pytest.raises(InputError, match="position"):
        resolve(FrozenEstimator(KNeighborsRegressor().fit(X, Y)), "margin")


def test_texts_of_bernoulli_and_frozen_models_are_read():
    texts = ["good food", "bad food", "good service", "slow bad service"] * 3
    model = make_pipeline(CountVectorizer(), BernoulliNB()).fit(texts, [1, 0, 1, 0] * 3)
    for each in (model, FrozenEstimator(model), GridSearchCV(model, {}, cv=2).fit(texts, [1, 0, 1, 0] * 3)):
        result = limes.TextExplainer(each, output="margin")("good but slow food, unknown words here")
        assert result.method == "exact"
        assert result.reason == ""
