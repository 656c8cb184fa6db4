"""Ensembles and wrappers of scikit-learn, read and compared with their predictions and their surrogates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble, preprocessing
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
)
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor, RegressorChain
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import limes
import oracle
import slopes
import strategies
from effort import crossed, examples
from internals import CannotRead, Schema, read_form
from limes.exceptions import InputError, ModelError, NotReadableError
from limes.models import forms
from oracle import EXACT

# Parts added in another order.
SAME = 1e-11

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
TARGETS = np.column_stack([Y, X[:, 0] ** 2])
TWO, THREE = np.where(Y > 0, "yes", "no"), np.digitize(Y, [-0.5, 0.5]) * 5
TREE, VOTER = DecisionTreeRegressor(max_depth=4), DecisionTreeClassifier(max_depth=3)
PARTS = [
    ("tree", TREE),
    ("line", Ridge()),
    ("svr", SVR()),
    ("forest", ensemble.RandomForestRegressor(3, random_state=0)),
]
VOTERS = [("tree", VOTER), ("forest", ensemble.RandomForestClassifier(4, max_depth=4, random_state=0))]


def trees_of(model):
    """All trees inside a model, however deep."""
    if hasattr(model, "tree_"):
        return [model]
    names = ("estimators_", "best_estimator_", "regressor_", "init_", "final_estimator_")
    inner = [getattr(model, name) for name in names if hasattr(model, name)]
    return [tree for part in inner for tree in _each(part)]


def _each(part):
    if isinstance(part, list | np.ndarray):
        return [tree for one in part for tree in _each(one)]
    return [] if isinstance(part, str) else trees_of(part)


def rows(model):
    """Far and near, and on every threshold, one ulp beside it, and at its neighbours in float32."""
    rng = np.random.default_rng(1)
    result = [3 * rng.normal(size=(1000, 3)), rng.normal(size=(50, 3)) * 1e6, X]
    for tree in trees_of(model):
        cut = tree.tree_.threshold[tree.tree_.feature >= 0]
        near = np.float32(cut)
        places = (
            cut,
            np.nextafter(cut, -np.inf),
            np.nextafter(cut, np.inf),
            near,
            np.nextafter(near, np.float32(-np.inf)),
            np.nextafter(near, np.float32(np.inf)),
            0.5 * (near.astype(float) + np.nextafter(near, np.float32(np.inf))),
        )
        result += [np.repeat(value.astype(float)[:, None], 3, axis=1) for value in places]
    return np.concatenate(result)


def assert_read(model, method="predict", kind=None):
    form, x = read_form(model, method, None), rows(model)
    expected = getattr(model, method)(x)
    assert form.size == 3
    assert kind is None or type(form).__name__ == kind
    assert oracle.error(form.predict(x), expected) < SAME
    return form


# -- bagging ----------------------------------------------------------------------------------------------

SUBSETS = [
    {},
    {"max_features": 2},
    {"max_features": 1},
    {"bootstrap_features": True},
    {"max_samples": 0.3, "bootstrap": False, "max_features": 0.7},
]


BAGGED = [
    (None, "Forest"),
    (TREE, "Forest"),
    (ensemble.RandomForestRegressor(3), "Forest"),
    (ensemble.GradientBoostingRegressor(n_estimators=3), "Forest"),
    (Ridge(), "Linear"),
    (SVR(), None),
    (SVR(kernel="poly", degree=2), "Quadratic"),
    (ensemble.VotingRegressor(PARTS), "Combination"),
]


@pytest.mark.parametrize(("options", "bagged"), crossed(SUBSETS, BAGGED), ids=str)
def test_bagged_regression(bagged, options):
    part, kind = bagged
    model = ensemble.BaggingRegressor(part, 5, random_state=0, **options).fit(X, Y)
    assert_read(model, kind=kind)


def test_bagged_regression_of_several_targets_and_of_weighted_rows():
    weights = RNG.uniform(0.1, 5, 120)
    assert_read(ensemble.BaggingRegressor(TREE, 4, random_state=0).fit(X, Y, sample_weight=weights))
    assert_read(ensemble.BaggingRegressor(Ridge(), 4, random_state=0).fit(X, Y))


@pytest.mark.parametrize("options", SUBSETS, ids=str)
@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_bagged_probabilities(options, labels):
    model = ensemble.BaggingClassifier(VOTER, 6, random_state=0, **options).fit(X, labels)
    assert_read(model, "predict_proba", "Forest")


def test_a_bagged_sample_may_miss_a_class():
    part = ensemble.VotingClassifier(VOTERS, voting="soft")  # takes no sample weights: rows are drawn
    model = ensemble.BaggingClassifier(part, 9, random_state=0, max_samples=4).fit(X, THREE)
    assert min(len(part.classes_) for part in model.estimators_) < 3
    assert_read(model, "predict_proba", "Forest")


@pytest.mark.parametrize(
    "part", [SVC(), LogisticRegression(), ensemble.GradientBoostingClassifier(n_estimators=2)]
)
def test_bagged_margins(part):
    model = ensemble.BaggingClassifier(part, 4, random_state=0, max_features=2).fit(X, TWO)
    assert_read(model, "decision_function")


def test_bagged_trees_send_missing_values_where_the_trees_do():
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    model = ensemble.BaggingRegressor(TREE, 6, max_features=2, random_state=0).fit(holes, Y)
    form = read_form(model, "predict", None)
    assert oracle.error(form.predict(holes), model.predict(holes)) < SAME


# -- voting and stacking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 0], [0.1, 0.1, 0.1, 0.1]], ids=str)
def test_voting_regression(weights):
    form = assert_read(ensemble.VotingRegressor(PARTS, weights=weights).fit(X, Y), kind="Combination")
    assert [type(part).__name__ for part in form.parts] == ["Forest", "Linear", "GaussianKernels"]
    dropped = [PARTS[0], ("line", "drop"), *PARTS[2:]]
    assert_read(ensemble.VotingRegressor(dropped, weights=weights).fit(X, Y))


def test_voting_trees_are_one_forest():
    assert_read(ensemble.VotingRegressor([PARTS[0], PARTS[3]]).fit(X, Y), kind="Forest")


@pytest.mark.parametrize("weights", [None, [1, 3]], ids=str)
@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_soft_votes(weights, labels):
    model = ensemble.VotingClassifier(VOTERS, voting="soft", weights=weights).fit(X, labels)
    assert_read(model, "predict_proba", "Forest")


@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("final", [None, LinearRegression()], ids=str)
def test_stacked_regression(passthrough, final):
    model = ensemble.StackingRegressor(PARTS, final, passthrough=passthrough, cv=3)
    assert_read(model.fit(X, Y), kind="Combination")
    dropped = [PARTS[0], ("line", "drop"), PARTS[3]]
    model = ensemble.StackingRegressor(dropped, final, passthrough=passthrough, cv=3).fit(X, Y)
    assert_read(model, kind="Combination" if passthrough else "Forest")


def test_stacks_of_fitted_models():
    parts = [(name, part.fit(X, Y)) for name, part in PARTS]
    assert_read(ensemble.StackingRegressor(parts, LinearRegression(), cv="prefit").fit(X, Y))


@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_margins_of_stacks(passthrough, labels):
    svc = SVC(decision_function_shape="ovo")
    for parts in (VOTERS, [*VOTERS, ("svc", svc)]):
        model = ensemble.StackingClassifier(parts, passthrough=passthrough, cv=3).fit(X, labels)
        assert_read(model, "decision_function")


# -- boosting ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("depth", [1, 3, None])
@pytest.mark.parametrize("options", [{}, {"learning_rate": 0.3}, {"n_estimators": 1}], ids=str)
def test_adaboost(labels, depth, options):
    part = DecisionTreeClassifier(max_depth=depth, random_state=0)
    model = ensemble.AdaBoostClassifier(part, **{"n_estimators": 12, "random_state": 0, **options})
    weights = RNG.uniform(0.1, 2.0, 120)
    assert_read(model.fit(X, labels, sample_weight=weights), "decision_function", "Forest")


def test_adaboost_of_randomised_trees_and_of_ties():
    part = ensemble.AdaBoostClassifier().fit(X, TWO).estimators_[0].__class__(max_depth=1, splitter="random")
    assert_read(ensemble.AdaBoostClassifier(part, n_estimators=5).fit(X, THREE), "decision_function")
    coarse, labels = np.round(X), np.tile(["a", "b"], 60)  # leaves with as many "a" as "b"
    model = ensemble.AdaBoostClassifier(VOTER, n_estimators=5, random_state=0).fit(coarse, labels)
    assert_read(model, "decision_function")


@pytest.mark.parametrize(
    "init",
    [
        TREE,
        ensemble.RandomForestRegressor(3),
        ensemble.ExtraTreesRegressor(3),
        ensemble.BaggingRegressor(TREE, 3),
        DummyRegressor(strategy="median"),
        "zero",
    ],
    ids=str,
)
def test_boosting_that_starts_from_trees(init):
    model = ensemble.GradientBoostingRegressor(init=init, n_estimators=4, random_state=0).fit(X, Y)
    assert_read(model, kind="Forest")


# -- wrappers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "kind"),
    [(TREE, "Forest"), (Ridge(), "Linear"), (SVR(), "GaussianKernels"), (PARTS[3][1], "Forest")],
    ids=str,
)
def test_one_model_a_target(part, kind):
    form = assert_read(MultiOutputRegressor(part).fit(X, TARGETS), kind=kind)
    assert form.predict(X).shape == (120, 2)


SCALERS = [
    None,
    preprocessing.FunctionTransformer(),
    preprocessing.StandardScaler(),
    preprocessing.StandardScaler(with_mean=False),
    preprocessing.StandardScaler(with_std=False),
    preprocessing.MinMaxScaler((-1, 2)),
    preprocessing.MaxAbsScaler(),
    preprocessing.RobustScaler(),
    preprocessing.RobustScaler(with_centering=False),
    preprocessing.RobustScaler(with_scaling=False),
]


@pytest.mark.parametrize("transformer", SCALERS, ids=str)
@pytest.mark.parametrize("target", [Y + 5, Y[:, None], TARGETS], ids=["one", "column", "two"])
@pytest.mark.parametrize("part", [TREE, Ridge()], ids=str)
def test_transformed_targets(transformer, target, part):
    model = TransformedTargetRegressor(part, transformer=transformer).fit(X, target)
    assert_read(model, kind="Forest" if part is TREE else "Linear")


def test_searches_are_their_best_model():
    assert_read(GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=2).fit(X, Y), kind="Forest")
    search = RandomizedSearchCV(SVC(), {"C": [1.0, 2.0]}, n_iter=2, cv=2, random_state=0).fit(X, TWO)
    assert_read(search, "decision_function", "GaussianKernels")


def test_wrappers_of_wrappers():
    inner = ensemble.BaggingRegressor(ensemble.VotingRegressor([PARTS[0], PARTS[3]]), 3, max_features=2)
    model = TransformedTargetRegressor(inner, transformer=preprocessing.StandardScaler())
    assert_read(MultiOutputRegressor(model).fit(X, TARGETS), kind="Forest")


def test_votes_of_models_that_add_in_float32():
    xgboost = pytest.importorskip("xgboost")
    parts = [("xgb", xgboost.XGBRegressor(n_estimators=5, n_jobs=1)), PARTS[0]]
    model = ensemble.VotingRegressor(parts).fit(X, Y)
    explanation = limes.TabularExplainer(model, X, method="exact")(X[:3])
    assert np.allclose(explanation.predictions, model.predict(X[:3]), rtol=1e-5)


def test_boosting_that_starts_from_histograms_sees_them_at_float32():
    start = ensemble.HistGradientBoostingRegressor(max_iter=3, max_bins=20)
    model = ensemble.GradientBoostingRegressor(init=start, n_estimators=2).fit(X, Y)
    form = read_form(model, "predict", None)
    cuts = np.unique(form.threshold[form.feature >= 0])
    x = np.repeat(np.concatenate([cuts, np.nextafter(cuts, -9), np.nextafter(cuts, 9)])[:, None], 3, axis=1)
    assert oracle.error(form.predict(x), model.predict(x)) < SAME


# -- surrogates -------------------------------------------------------------------------------------------


def assert_limit(stated, model, method="predict"):
    cuts = [np.unique([*oracle_cuts(model, j), 0.0]) for j in range(stated.size)]
    ask = getattr(model, method)
    truth = oracle.truth(stated.columns(cuts, resolution=2.0), ask, stated.cells)
    surrogate = limes.limit(stated.design(), read_form(model, method, None))
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT


def oracle_cuts(model, column):
    """Where trees over all columns step: x <= cut in float32."""
    for tree in trees_of(model):
        splits = tree.tree_.feature == column
        yield from limes.models.forms._trees.float32_threshold(tree.tree_.threshold[splits])


SMALL = st.sampled_from(
    [
        lambda: ensemble.BaggingRegressor(DecisionTreeRegressor(max_depth=2), 3, random_state=0),
        lambda: ensemble.BaggingRegressor(SVR(), 2, random_state=0, bootstrap_features=True),
        lambda: ensemble.VotingRegressor([PARTS[0], *PARTS[1:3]], weights=[1, 2, 3]),
        lambda: ensemble.StackingRegressor([PARTS[0], PARTS[1]], Ridge(), cv=2, passthrough=True),
        lambda: MultiOutputRegressor(DecisionTreeRegressor(max_depth=2)),
        lambda: TransformedTargetRegressor(SVR(), transformer=preprocessing.StandardScaler()),
    ]
)


def fitted(rng, d, build):
    x, model = rng.normal(size=(24, d)), build()
    y = np.sin(x).sum(axis=1) + x.prod(axis=1)
    return model.fit(x, np.column_stack([y, y**2]) if isinstance(model, MultiOutputRegressor) else y)


@settings(max_examples=examples(25))
@given(strategies.designs(sizes=(1, 2), most_bins=3), strategies.rngs, SMALL)
def test_limits(stated, rng, build):
    assert_limit(stated, fitted(rng, stated.size, build))


@settings(max_examples=examples(10))
@given(strategies.designs(sizes=(2,), most_bins=3), strategies.rngs, st.booleans())
def test_limits_of_adaboost(stated, rng, several):
    x = rng.normal(size=(30, 2))
    labels = np.digitize(x.sum(axis=1), [-0.5, 0.5] if several else [0.0])
    assert_limit(stated, ensemble.AdaBoostClassifier(n_estimators=4).fit(x, labels), "decision_function")


@settings(max_examples=examples(12))
@given(strategies.rngs, SMALL)
def test_slopes(rng, build):
    model = fitted(rng, 2, build)
    design, columns = slopes.normal_columns(rng, 2)
    cuts = [[*oracle_cuts(model, j)] for j in range(2)]
    slopes.assert_slopes(design, limes.models.read(model), model.predict, columns(cuts, resolution=2.0))


def test_explaining_a_table():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ensemble.BaggingClassifier(VOTER, 4, max_features=2, random_state=0).fit(frame, TWO)
    explanation = limes.TabularExplainer(model, frame, output="yes", method="exact")(frame[:3])
    assert np.allclose(explanation.predictions, model.predict_proba(frame[:3])[:, 1])
    several = ensemble.AdaBoostClassifier(n_estimators=3).fit(frame, THREE)
    explanation = limes.TabularExplainer(several, frame, output="margin", method="exact")(frame[:3])
    assert explanation.output_names == ("0", "5", "10")


# -- what is refused --------------------------------------------------------------------------------------


def boosted(init):
    return ensemble.GradientBoostingRegressor(init=init, n_estimators=2).fit(X, Y)


def target(**options):
    return TransformedTargetRegressor(Ridge(), **options).fit(X, Y + 9)


def changed():
    model = ensemble.BaggingRegressor(TREE, 3).fit(X, Y)
    return model.set_params(n_estimators=2)


def boosted_steps():
    """A form that is known by its bricks only cannot read a column twice."""
    interpret = pytest.importorskip("interpret.glassbox")
    part = interpret.ExplainableBoostingRegressor(interactions=0, max_rounds=2, outer_bags=1, n_jobs=1)
    part = ensemble.VotingRegressor([("ebm", part)])  # takes no sample weights, of which 0 would be refused
    return ensemble.BaggingRegressor(part, 2, bootstrap_features=True, random_state=0).fit(X, Y)


REFUSED = [
    (lambda: ensemble.AdaBoostRegressor(n_estimators=2).fit(X, Y), "predict", "weighted median"),
    (lambda: ensemble.AdaBoostClassifier(SVC(), n_estimators=2).fit(X, TWO), "decision_function", "of SVC"),
    (
        lambda: ensemble.AdaBoostClassifier(n_estimators=2).fit(X, np.arange(120) % 4),
        "predict_proba",
        "output='margin'",
    ),
    (
        lambda: ensemble.AdaBoostClassifier(n_estimators=2).fit(X, np.zeros(120)),
        "decision_function",
        "one class",
    ),
    (lambda: ensemble.BaggingRegressor(KNeighborsRegressor(), 2).fit(X, Y), "predict", "KNeighborsRegressor"),
    (lambda: ensemble.BaggingClassifier(SVC(), 2).fit(X, TWO), "predict_proba", "vote"),
    (lambda: ensemble.BaggingClassifier(VOTER, 2).fit(X, TWO), "predict", "DecisionTreeClassifier.predict"),
    (changed, "predict", "n_estimators=2 was changed"),
    (boosted_steps, "predict", "bootstrap_features=True .* twice"),
    (lambda: ensemble.VotingClassifier(VOTERS).fit(X, TWO), "predict", "voting='soft'"),
    (
        lambda: ensemble.StackingRegressor(PARTS[:2], TREE, cv=2).fit(X, Y),
        "predict",
        "DecisionTreeRegressor as final_estimator",
    ),
    (
        lambda: ensemble.StackingClassifier(VOTERS, cv=2).fit(X, TWO),
        "predict_proba",
        "LogisticRegression as final_estimator is not linear",
    ),
    (
        lambda: ensemble.StackingClassifier(VOTERS, cv=2, stack_method="predict").fit(X, TWO),
        "decision_function",
        "DecisionTreeClassifier.predict",
    ),
    (lambda: ensemble.StackingClassifier(VOTERS, cv=2).fit(X, TWO), "predict", "returns labels"),
    (lambda: RegressorChain(Ridge()).fit(X, TARGETS), "predict", "chain"),
    (
        lambda: ClassifierChain(LogisticRegression()).fit(X, TARGETS > 0.3),
        "decision_function",
        "chain",
    ),
    (lambda: target(func=np.log, inverse_func=np.exp), "predict", "transformed by functions"),
    (lambda: target(transformer=preprocessing.PowerTransformer()), "predict", "PowerTransformer"),
    (lambda: CalibratedClassifierCV(SVC(), cv=2).fit(X, TWO), "predict_proba", "calibrated"),
    (lambda: boosted(Ridge()), "predict", "rounded to float32"),
    (
        lambda: ensemble.GradientBoostingClassifier(init=VOTER, n_estimators=2).fit(X, TWO),
        "decision_function",
        "probabilities of DecisionTreeClassifier",
    ),
    (
        lambda: ensemble.GradientBoostingClassifier(n_estimators=2).fit(X, TWO),
        "predict",
        "output='margin'",
    ),
]


@pytest.mark.parametrize(("build", "method", "reason"), REFUSED)
def test_refused(build, method, reason):
    with pytest.raises(CannotRead, match=reason):
        read_form(build(), method, None)


def test_passthrough_of_texts_is_refused():
    model = ensemble.StackingRegressor(PARTS[:2], Ridge(), passthrough=True, cv=2).fit(X, Y)
    with pytest.raises(CannotRead, match="passthrough"):
        read_form(model, "predict", Schema(("a", "b", "c"), (("1", "2"), (), ())))


def test_the_reason_reaches_the_user():
    model = ensemble.AdaBoostRegressor(n_estimators=2).fit(X, Y)
    with pytest.raises(NotReadableError, match="weighted median"):
        limes.TabularExplainer(model, X, method="exact")
    assert limes.TabularExplainer(model, X, max_calls=64).method == "sampled"


def test_hard_votes_have_nothing_to_explain():
    with pytest.raises(InputError, match="VotingClassifier"):
        limes.TabularExplainer(ensemble.VotingClassifier(VOTERS).fit(X, TWO), X)


def test_a_model_of_other_columns():
    model = ensemble.BaggingRegressor(TREE, 2).fit(X, Y)
    with pytest.raises(ModelError, match="2 features"):
        limes.TabularExplainer(model, X[:, :2])


def test_a_subclass_may_be_anything():
    class Subclass(ensemble.VotingRegressor):
        pass

    assert isinstance(limes.models.read(Subclass(PARTS).fit(X, Y)), forms.BlackBox)
    outer = ensemble.BaggingRegressor(Subclass(PARTS), 2).fit(X, Y)
    assert "Subclass is a subclass of VotingRegressor" in limes.models.read(outer).reason
