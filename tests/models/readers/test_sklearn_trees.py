"""Trees of scikit-learn, read and compared with their predictions: on thresholds, beside them, and at NaN."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import ensemble, tree
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import limes
import strategies
from internals import READERS
from limes.models import forms

# Hundreds of leaves added in another order.
SAME = 1e-11

TREES = {
    "DecisionTreeRegressor": [
        {},
        {"max_depth": 1},
        {"max_leaf_nodes": 9},
        {"criterion": "absolute_error", "max_depth": 4},
        {"criterion": "poisson"},
        {"ccp_alpha": 1e9},
    ],
    "ExtraTreeRegressor": [{}, {"max_depth": 3}],
    "RandomForestRegressor": [{"max_depth": 5}, {"min_samples_leaf": 20, "bootstrap": False}],
    "ExtraTreesRegressor": [{"max_depth": 5}, {"bootstrap": True, "min_samples_split": 40}],
    "GradientBoostingRegressor": [
        {},
        {"loss": "huber", "subsample": 0.5},
        {"loss": "quantile", "alpha": 0.3},
        {"loss": "absolute_error", "learning_rate": 1.0},
        {"init": "zero"},
        {"init": DummyRegressor(strategy="median")},
        {"init": DummyRegressor(strategy="constant", constant=7.0)},
    ],
}
CLASSIFIERS = {
    "DecisionTreeClassifier": [
        {},
        {"max_depth": 1},
        {"class_weight": "balanced", "max_depth": 3},
        {"criterion": "entropy", "min_samples_leaf": 10},
        {"min_impurity_decrease": 1.0},
    ],
    "ExtraTreeClassifier": [{}, {"class_weight": "balanced", "max_depth": 4}],
    "RandomForestClassifier": [{"max_depth": 4}, {"class_weight": "balanced_subsample", "max_depth": 4}],
    "ExtraTreesClassifier": [
        {"max_depth": 4},
        {"bootstrap": True, "class_weight": "balanced", "max_depth": 4},
    ],
}
BOOSTED = [
    {},
    {"init": "zero"},
    {"subsample": 0.5, "max_depth": 1},
    {"init": DummyClassifier(strategy="prior")},
]


def cases(table):
    return [
        pytest.param(name, options, id=f"{name} {options}")
        for name, all_ in table.items()
        for options in all_
    ]


def make(name, options):
    home = tree if hasattr(tree, name) else ensemble
    many = {"n_estimators": 8} if home is ensemble else {}
    return getattr(home, name)(random_state=0, **(many | options))


def nodes_of(model):
    members = np.ravel(getattr(model, "estimators_", [model]))
    return [m.tree_ for m in members]


def edge_rows(model, X, count=1000):
    """float64 rows where float32 decides: thresholds, the next numbers of either kind, midpoints."""
    rng = np.random.default_rng(0)
    rows = X[rng.integers(len(X), size=count)].astype(float)
    for j in range(X.shape[1]):
        cuts = np.concatenate([t.threshold[t.feature == j] for t in nodes_of(model)])
        cuts = cuts[np.isfinite(cuts)]
        if not cuts.size:
            continue
        single = cuts.astype(np.float32)
        after, before = (np.nextafter(single, np.float32(s * np.inf)).astype(float) for s in (1, -1))
        places = [cuts, single.astype(float), after, before, 0.5 * (single + after), 0.5 * (single + before)]
        places = np.concatenate(places)
        places = np.concatenate([places, np.nextafter(places, -np.inf), np.nextafter(places, np.inf)])
        chosen = rng.random(count) < 0.7
        rows[chosen, j] = rng.choice(places, chosen.sum())
    return rows


def assert_same(form, expected, x):
    result = form.predict(x)
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() <= SAME * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(("name", "options"), cases(TREES))
def test_regressors(name, options):
    X, y = load_diabetes(return_X_y=True)
    model = make(name, options).fit(X, y)
    form = limes.models.read(model)
    assert isinstance(form, forms.Forest)
    x = edge_rows(model, X)
    assert_same(form, model.predict(x), x)
    assert_same(strategies.leaf_boxes(form), model.predict(x), x)


@pytest.mark.parametrize("name", [n for n in TREES if n != "GradientBoostingRegressor"])
@pytest.mark.parametrize("columns", [1, 2])
def test_several_targets(name, columns):
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn prefers a vector to one column
        targets = np.column_stack([y, -2 * y + X[:, 0] * 1e3])[:, :columns]
        model = make(name, {"max_depth": 4}).fit(X, targets)
    x = edge_rows(model, X)
    expected = model.predict(x)
    assert_same(limes.models.read(model), expected, x)
    if columns == 2:
        assert_same(limes.models.read(model, 1), expected[:, 1], x)
        assert_same(limes.models.read(model, [1, 0]), expected[:, [1, 0]], x)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
@pytest.mark.parametrize(("name", "options"), cases(CLASSIFIERS))
def test_classifiers(name, options, load):
    X, y = load(return_X_y=True)
    names = np.array(["a", "b", "c"])
    model = make(name, options).fit(X, names[y])
    x = edge_rows(model, X)
    expected = model.predict_proba(x)
    for output in (None, "probability"):
        form = limes.models.read(model, output)
        assert isinstance(form, forms.Forest)
        assert_same(form, expected, x)
    assert_same(limes.models.read(model, "b"), expected[:, 1], x)
    assert_same(limes.models.read(model, ["b", "a"]), expected[:, [1, 0]], x)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("options", BOOSTED, ids=str)
def test_margins_of_boosting(options, load):
    X, y = load(return_X_y=True)
    model = make("GradientBoostingClassifier", options).fit(X, y)
    x = edge_rows(model, X)
    form = limes.models.read(model, "margin")
    assert isinstance(form, forms.Forest)
    assert_same(form, model.decision_function(x), x)


def test_exponential_loss():
    X, y = load_breast_cancer(return_X_y=True)
    model = make("GradientBoostingClassifier", {"loss": "exponential"}).fit(X, y)
    x = edge_rows(model, X)
    assert_same(limes.models.read(model, "margin"), model.decision_function(x), x)


@pytest.mark.parametrize("output", [None, "probability", 1, [0, 1]])
def test_boosted_probabilities_are_a_black_box(output):
    X, y = load_breast_cancer(return_X_y=True)
    model = make("GradientBoostingClassifier", {"n_estimators": 50}).fit(X, y)
    form = limes.models.read(model, output)
    assert isinstance(form, forms.BlackBox)
    assert "output='margin'" in form.reason
    columns = slice(None) if not isinstance(output, int | list) else output
    assert np.array_equal(form.predict(X), model.predict_proba(X)[:, columns])


@pytest.mark.parametrize(
    ("model", "output", "init"),
    [
        (ensemble.GradientBoostingRegressor(init=LinearRegression()), None, "LinearRegression"),
        (
            ensemble.GradientBoostingClassifier(init=LogisticRegression(max_iter=5000), n_estimators=2),
            "margin",
            "LogisticRegression",
        ),
    ],
)
def test_boosting_that_starts_from_a_model_is_a_black_box(model, output, init):
    X, y = load_iris(return_X_y=True)
    form = limes.models.read(model.fit(X, y), output)
    assert isinstance(form, forms.BlackBox)
    assert init in form.reason
    answer = model.predict(X) if output is None else model.decision_function(X)
    assert np.array_equal(form.predict(X), answer)


def test_boosting_that_starts_at_random_is_a_black_box():
    X, y = load_iris(return_X_y=True)
    model = make(
        "GradientBoostingClassifier", {"init": DummyClassifier(strategy="stratified", random_state=0)}
    )
    assert isinstance(limes.models.read(model.fit(X, y), "margin"), forms.BlackBox)


def test_stopping_early_counts_the_trees_that_are_there():
    X, y = load_diabetes(return_X_y=True)
    model = make("GradientBoostingRegressor", {"n_estimators": 200, "n_iter_no_change": 2}).fit(X, y)
    assert len(model.estimators_) < 200
    assert_same(limes.models.read(model), model.predict(X), X)


@pytest.mark.parametrize("name", ["DecisionTreeRegressor", "RandomForestRegressor", "ExtraTreesRegressor"])
@pytest.mark.parametrize("share", [0.3, 0.02])
def test_missing_values_go_where_the_tree_sends_them(name, share):
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    X = np.where(rng.random(X.shape) < share, np.nan, X)
    y = y + 200 * np.isnan(X[:, 0])  # being missing tells something
    model = make(name, {"max_depth": 7}).fit(X, y)
    x = edge_rows(model, X)
    x[rng.random(x.shape) < 0.3] = np.nan
    form = limes.models.read(model)
    assert_same(form, model.predict(x), x)
    assert_same(strategies.leaf_boxes(form), model.predict(x), x)
    assert_same(form, model.predict(np.full((2, 10), np.nan)), np.full((2, 10), np.nan))


def test_a_split_between_missing_and_known():
    """Its threshold is infinite."""
    X = np.array([[1.0], [np.nan], [2.0], [np.nan], [3.0], [np.nan]])
    model = tree.DecisionTreeRegressor().fit(X, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    form = limes.models.read(model)
    x = np.array([[1.0], [np.nan], [9e9], [-9e9]])
    assert form.predict(x).tolist() == model.predict(x).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert strategies.leaf_boxes(form).predict(x).tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_tree_of_depth_one_hundred():
    x = np.arange(2.0**7)[:, None]
    model = tree.DecisionTreeRegressor(splitter="random", random_state=3, min_samples_split=2)
    y = np.where(np.arange(128) % 2 == 0, np.exp(np.arange(128) / 6), 0.0)
    model.fit(x, y)
    deep = tree.DecisionTreeRegressor().fit(np.arange(120.0)[:, None], 4.0 ** np.arange(120))
    assert deep.get_depth() > 100
    for each, rows in ((model, x), (deep, np.arange(-1, 122, 0.25)[:, None])):
        form = limes.models.read(each)
        assert np.array_equal(form.predict(rows), each.predict(rows))
        assert np.array_equal(strategies.leaf_boxes(form).predict(rows), each.predict(rows))


@pytest.mark.parametrize(
    "name", ["DecisionTreeRegressor", "RandomForestRegressor", "GradientBoostingRegressor"]
)
def test_constant_targets(name):
    X, _ = load_diabetes(return_X_y=True)
    model = make(name, {}).fit(X, np.full(len(X), 3.25))
    assert_same(limes.models.read(model), model.predict(X), X)


def test_one_class_only():
    X, _ = load_iris(return_X_y=True)
    model = tree.DecisionTreeClassifier().fit(X, ["only"] * 150)
    assert limes.models.read(model).predict(X).tolist() == [[1.0]] * 150


def test_sample_weights_even_zero_ones():
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).uniform(size=150) * (np.arange(150) % 3 > 0)
    for name in ("DecisionTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier"):
        model = make(name, {}).fit(X, y, sample_weight=weights)
        assert_same(limes.models.read(model), model.predict_proba(X), X)
    model = make("RandomForestClassifier", {"class_weight": {0: 1.0, 1: 1e-6, 2: 1e6}}).fit(X, y)
    assert_same(limes.models.read(model), model.predict_proba(X), X)


def test_monotone_constraints():
    X, y = load_breast_cancer(return_X_y=True)
    signs = np.where(np.arange(30) % 2, -1, 1)
    model = make("RandomForestClassifier", {"monotonic_cst": signs, "max_depth": 6}).fit(X, y)
    x = edge_rows(model, X)
    assert_same(limes.models.read(model), model.predict_proba(x), x)


@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier"])
def test_classifiers_of_several_targets(name):
    """Targets with different numbers of classes, their shares side by side."""
    X, y = load_iris(return_X_y=True)
    model = make(name, {"max_depth": 4}).fit(X, np.column_stack([y, y % 2, y == 1]))
    x = edge_rows(model, X)
    assert_same(limes.models.read(model), np.concatenate(model.predict_proba(x), axis=1), x)


def test_every_tree_class_is_tested():
    listed = {
        n.split(".")[1] for n, entry in READERS.items() if entry.reader.startswith("sklearn_ensembles:")
    }
    tested = set(TREES) | set(CLASSIFIERS) | {"GradientBoostingClassifier"}
    assert tested <= listed
