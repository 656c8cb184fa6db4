"""The law of covers: against its game, summed over all sets of columns, and the libraries' own answers."""

from __future__ import annotations

import warnings
from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import boosters
import limes
import plain_kernels as plain
from internals import Covers, read_output, resolve
from limes.exceptions import InputError
from limes.models.forms import Combination, Forest, Linear

X, Y = boosters.numbers(n=400, d=5)
COMPLETE = np.nan_to_num(X)
CLASSES = np.digitize(Y, [-1.0, 1.0])
ONE_THREAD = {"n_jobs": 1, "random_state": 0}


def with_covers(rng, nodes):
    """Random covers of random trees, 0 at every third leaf: an inner node has the sum of its children."""
    covers = np.where(rng.random(nodes.feature.size) < 1 / 3, 0.0, rng.integers(1, 50, nodes.feature.size))

    def total(node):
        if nodes.feature[node] >= 0:
            covers[node] = total(nodes.left[node]) + total(nodes.right[node])
        return covers[node]

    for root in nodes.roots:
        total(root)
    return covers


def forest_of(nodes, covers, columns):
    names = ("feature", "threshold", "left", "right", "missing_left", "set_of", "sets", "roots")
    return Forest(
        **{name: getattr(nodes, name) for name in names},
        value=nodes.value,
        intercept=np.full(nodes.value.shape[1], 0.5),
        size=columns,
        covers=covers,
    )


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("depth", "columns"), [(4, 3), (6, 6), (9, 7)])
@pytest.mark.parametrize("codes", [0, 6])
def test_contributions_are_shapley_values_of_the_game(outputs, depth, columns, codes):
    rng = np.random.default_rng(depth + codes)
    nodes = plain.Trees.random(rng, 4, depth, columns, outputs, codes=codes, leaf=0.15)
    covers = with_covers(rng, nodes)
    x = rng.normal(size=(3, columns))
    if codes:
        x[:, 0] = rng.integers(0, codes + 1, 3)
    x[rng.random(x.shape) < 0.2] = np.nan
    law = Covers(forest_of(nodes, covers, columns))
    account, pairs = law.contributions(x), law.pairs(x)
    for i, row in enumerate(x):
        game = plain.covers_game(nodes, covers, row)
        base, sums = plain.shapley_values(game, columns)
        np.testing.assert_allclose(pairs[i], plain.shapley_indices(game, columns), rtol=0, atol=1e-11)
        np.testing.assert_allclose(account.base[i], base + 0.5, rtol=0, atol=1e-12)
        for its, expected in zip((account.values, account.alone, account.last), sums, strict=True):
            np.testing.assert_allclose(its[i], expected, rtol=0, atol=1e-11)


def test_rows_are_the_same_in_any_batch():
    rng = np.random.default_rng(0)
    nodes = plain.Trees.random(rng, 30, 8, 6, 2)
    covers, x = Covers(forest_of(nodes, with_covers(rng, nodes), 6)), rng.normal(size=(300, 6))
    together = covers.contributions(x).values
    for rows in (slice(0, 1), slice(7, 9), slice(100, 290)):
        assert np.array_equal(covers.contributions(x[rows]).values, together[rows])


def test_covers_of_sums_of_forests():
    rng = np.random.default_rng(1)
    nodes = [plain.Trees.random(rng, 3, 4, 4, 1) for _ in range(2)]
    parts = [forest_of(each, with_covers(rng, each), 4) for each in nodes]
    x = rng.normal(size=(5, 4))
    first, second = (Covers(part).contributions(x) for part in parts)
    both = Covers(Combination(parts, np.array([2.0, -1.0]), np.array([3.0]))).contributions(x)
    np.testing.assert_allclose(both.values, 2 * first.values - second.values, atol=1e-14)
    np.testing.assert_allclose(both.base, 2 * first.base - second.base + 3.0, atol=1e-14)


def test_other_forms_are_refused():
    rng = np.random.default_rng(1)
    nodes = plain.Trees.random(rng, 3, 4, 4, 1)
    form = forest_of(nodes, with_covers(rng, nodes), 4)
    with pytest.raises(InputError, match="read as Linear"):
        Covers(Combination([form, Linear(np.ones((4, 1)), np.zeros(1))], np.ones(2)))
    without = replace(form, covers=np.zeros(0), no_covers="rows were not counted")
    with pytest.raises(InputError, match="rows were not counted"):
        Covers(without)
    with pytest.raises(InputError, match="rows were not counted"):
        Covers(Forest.joined([form, without], intercept=np.zeros(1)))
    with pytest.raises(InputError, match="covers must have an entry"):
        replace(form, covers=np.ones(2))


# -- libraries --------------------------------------------------------------------------------------------


def assert_agrees(model, expected, x, *, output=None, tolerance, schema=None):
    """``expected`` (n, d + 1[, k]) have the bases last."""
    form = read_output(model, resolve(model, output), schema)
    account = Covers(form).contributions(x)
    values, base = account.values, account.base
    if np.ndim(expected) == 2:
        expected = np.asarray(expected)[..., None]
    if values.shape[2] != expected.shape[2]:
        raise AssertionError(values.shape)
    size = np.abs(expected).max()
    np.testing.assert_allclose(values, expected[:, :-1], rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(base, expected[:, -1], rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(
        base + values.sum(axis=1), form.predict(x).reshape(base.shape), rtol=0, atol=1e-11 * size
    )


def shap_numbers(model, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of matplotlib, while its colours are made
        shap = pytest.importorskip("shap")
    peer = shap.TreeExplainer(model)
    values = np.asarray(peer.shap_values(x, check_additivity=False))
    base = np.ravel(peer.expected_value)
    base = np.broadcast_to(base if values.ndim == 3 else base[-1], (len(x), 1, *values.shape[2:]))
    return np.concatenate([values, base], axis=1)


SKLEARN = [
    (DecisionTreeRegressor(random_state=0), Y, None),
    (RandomForestRegressor(12, **ONE_THREAD), Y, None),
    (
        RandomForestRegressor(12, max_features=2, bootstrap=True, **ONE_THREAD),
        np.stack([Y, -(Y**2)], 1),
        None,
    ),
    (RandomForestClassifier(12, **ONE_THREAD), CLASSES, None),
    (ExtraTreesClassifier(12, class_weight="balanced", **ONE_THREAD), CLASSES > 0, None),
    (GradientBoostingRegressor(n_estimators=20, subsample=0.7, random_state=0), Y, None),
    (GradientBoostingClassifier(n_estimators=20, random_state=0), CLASSES > 0, "margin"),
    (HistGradientBoostingRegressor(max_iter=20), Y, None),
    (HistGradientBoostingClassifier(max_iter=20), CLASSES > 0, "margin"),
]


@pytest.mark.parametrize(("model", "y", "output"), SKLEARN, ids=lambda its: type(its).__name__)
@pytest.mark.parametrize("missing", [False, True])
def test_scikit_learn(model, y, output, missing):
    takes_missing = not type(model).__name__.startswith("GradientBoosting")
    x = X if missing and takes_missing else COMPLETE
    model.fit(x, y)
    # shap compares float32
    rows = x[:30].astype(np.float32).astype(np.float64)
    assert_agrees(model, shap_numbers(model, rows), rows, output=output, tolerance=1e-9)


@pytest.mark.parametrize(
    ("options", "y"),
    [
        ({}, Y),
        ({"booster": "dart", "rate_drop": 0.3}, Y),
        ({"num_parallel_tree": 3, "subsample": 0.5}, Y),
        ({"objective": "count:poisson"}, np.exp(Y / 4)),
        ({"objective": "binary:logistic"}, CLASSES > 0),
        ({"objective": "multi:softprob", "num_class": 3}, CLASSES),
    ],
    ids=str,
)
def test_xgboost(options, y):
    model = xgboost.train({"nthread": 1, **options}, xgboost.DMatrix(X, y), num_boost_round=15)
    expected = model.predict(xgboost.DMatrix(X[:30]), pred_contribs=True)
    expected = expected.swapaxes(1, 2) if expected.ndim == 3 else expected
    assert_agrees(model, expected, X[:30], output="margin", tolerance=1e-6)


@pytest.mark.parametrize(
    ("options", "y"),
    [
        ({"objective": "regression"}, Y),
        ({"objective": "binary"}, CLASSES > 0),
        ({"objective": "multiclass", "num_class": 3}, CLASSES),
        ({"objective": "regression", "bagging_freq": 1, "bagging_fraction": 0.5, "boosting": "dart"}, Y),
    ],
    ids=str,
)
def test_lightgbm(options, y):
    model = lightgbm.train({"verbose": -1, "num_threads": 1, **options}, lightgbm.Dataset(X, y), 15)
    expected = model.predict(X[:30], pred_contrib=True).reshape(30, -1, 6).swapaxes(1, 2)
    assert_agrees(model, expected.squeeze(), X[:30], output="margin", tolerance=1e-9)


@pytest.mark.parametrize(
    ("kind", "options", "y"),
    [
        ("CatBoostRegressor", {}, Y),
        ("CatBoostRegressor", {"depth": 9, "nan_mode": "Max"}, Y),
        ("CatBoostClassifier", {}, CLASSES > 0),
        ("CatBoostClassifier", {"loss_function": "MultiClass"}, CLASSES),
    ],
)
def test_catboost(kind, options, y):
    small = {"iterations": 12, "depth": 4, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    model = getattr(catboost, kind)(**{**small, **options}).fit(X, y)
    expected = model.get_feature_importance(catboost.Pool(X[:30]), type="ShapValues")
    expected = expected.swapaxes(1, 2) if expected.ndim == 3 else expected
    assert_agrees(model, expected, X[:30], output="margin", tolerance=1e-9)


def test_catboost_trees_of_other_shapes_have_the_values_of_the_definition():
    # CatBoost's own do not add up to its prediction there
    options = {"iterations": 2, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(grow_policy="Lossguide", **options).fit(X, Y)
    form = limes.models.read(model)
    account = Covers(form).contributions(X[:5])
    nodes = plain.Trees(
        **{name: getattr(form, name) for name in plain.Trees.__annotations__ if name != "value"},
        value=form.value.reshape(-1, 1),
    )
    for i in range(5):
        base, sums = plain.shapley_values(plain.covers_game(nodes, form.covers, X[i]), form.size)
        np.testing.assert_allclose(account.base[i], base + form.intercept, rtol=0, atol=1e-12)
        np.testing.assert_allclose(account.values[i], sums[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        (account.base + account.values.sum(axis=1))[:, 0], model.predict(X[:5]), atol=1e-12
    )


# -- categories -------------------------------------------------------------------------------------------


def frame_account(model, frame, output=None):
    form, table = boosters.read_frame(model, frame, output)
    return Covers(form).contributions(table.matrix)


def assert_same_account(account, expected, tolerance):
    size = np.abs(expected).max()
    np.testing.assert_allclose(account.values[..., -1], expected[:, :-1], rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(account.base[:, -1], expected[:, -1], rtol=0, atol=tolerance * size)


def test_categories_of_xgboost():
    frame, y = boosters.mixed()
    model = xgboost.XGBRegressor(
        n_estimators=15, max_depth=5, n_jobs=1, max_cat_to_onehot=1, enable_categorical=True
    ).fit(frame, y)
    matrix = xgboost.DMatrix(frame, enable_categorical=True)
    expected = model.get_booster().predict(matrix, pred_contribs=True)
    assert_same_account(frame_account(model, frame), expected, 1e-6)


def test_categories_of_lightgbm():
    frame, y = boosters.mixed()
    options = {"min_data_per_group": 1, "cat_smooth": 1, "n_jobs": 1, "verbose": -1}
    model = lightgbm.LGBMRegressor(n_estimators=15, **options).fit(frame, y)
    assert model.booster_.pandas_categorical
    assert_same_account(frame_account(model, frame), model.predict(frame, pred_contrib=True), 1e-9)


def test_categories_of_catboost():
    frame, y = boosters.mixed(missing=False)
    frame = frame.assign(**{name: frame[name].astype(str) for name in boosters.LEVELS})
    options = {"iterations": 15, "depth": 4, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(one_hot_max_size=10, cat_features=[*boosters.LEVELS], **options)
    model.fit(frame, y)
    expected = model.get_feature_importance(
        catboost.Pool(frame, cat_features=[*boosters.LEVELS]), type="ShapValues"
    )
    assert_same_account(frame_account(model, frame), expected, 1e-9)


def test_categories_of_scikit_learn():
    frame, y = boosters.mixed()
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=15).fit(frame, y)
    form, table = boosters.read_frame(model, frame)
    nodes = plain.Trees(
        **{name: getattr(form, name) for name in plain.Trees.__annotations__ if name != "value"},
        value=form.value.reshape(-1, 1),
    )
    account = Covers(form).contributions(table.matrix[:6])
    for i in range(6):
        _, sums = plain.shapley_values(plain.covers_game(nodes, form.covers, table.matrix[i]), form.size)
        np.testing.assert_allclose(account.values[i], sums[0], rtol=0, atol=1e-11)


# -- covers of what is read -------------------------------------------------------------------------------


def test_pipelines_keep_the_covers_and_players_are_the_users_columns():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 3, 300), rng.integers(0, 5, 300)]).astype(float)
    y = (x[:, 0] == 1) * 2.0 + x[:, 1] * (x[:, 0] == 2)
    scaled = make_pipeline(StandardScaler(), RandomForestRegressor(5, **ONE_THREAD)).fit(COMPLETE, Y)
    inner = Covers(limes.models.read(scaled[-1])).contributions(scaled[:-1].transform(COMPLETE[:9]))
    outer = Covers(limes.models.read(scaled)).contributions(COMPLETE[:9])
    np.testing.assert_allclose(outer.values, inner.values, rtol=0, atol=1e-12)
    # dummies of one column are one player: they are known together, or not at all
    encoded = make_pipeline(
        OneHotEncoder(sparse_output=False), DecisionTreeRegressor(max_depth=4, random_state=0)
    )
    encoded.fit(x, y)
    form, tree = limes.models.read(encoded), encoded[-1].tree_
    assert np.array_equal(form.covers, tree.weighted_n_node_samples)
    source = np.repeat([0, 1], [len(c) for c in encoded[0].categories_])
    nodes = plain.Trees(
        **{name: getattr(form, name) for name in plain.Trees.__annotations__ if name != "value"},
        value=form.value.reshape(-1, 1),
    )
    assert np.array_equal(form.feature >= 0, tree.children_left >= 0)
    assert np.array_equal(form.feature[form.feature >= 0], source[tree.feature[tree.feature >= 0]])
    for row in x[:5]:
        _, sums = plain.shapley_values(plain.covers_game(nodes, form.covers, row), form.size)
        np.testing.assert_allclose(Covers(form).contributions(row[None]).values[0], sums[0], atol=1e-12)


def test_bagging_and_votes_keep_the_covers():
    model = BaggingRegressor(DecisionTreeRegressor(max_depth=3), 4, max_features=3, random_state=0).fit(
        COMPLETE, Y
    )
    form = limes.models.read(model)
    assert form.covers.size == form.feature.size
    votes = AdaBoostClassifier(n_estimators=4).fit(COMPLETE, CLASSES)
    assert limes.models.read(votes, "margin").covers.size


def test_the_weight_of_a_node_is_that_of_its_children():
    models = [
        RandomForestRegressor(3, **ONE_THREAD).fit(COMPLETE, Y),
        HistGradientBoostingRegressor(max_iter=3).fit(X, Y),
        xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(X, Y),
        lightgbm.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1).fit(X, Y),
        catboost.CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False).fit(X, Y),
    ]
    for model in models:
        form = limes.models.read(model)
        inner = form.feature >= 0
        children = form.covers[form.left[inner]] + form.covers[form.right[inner]]
        np.testing.assert_allclose(form.covers[inner], children, rtol=1e-6)
        assert (form.covers[form.roots] == len(X)).all(), type(model)


def test_a_split_in_several_parts_has_no_covers():
    x = np.where(np.isnan(X), -999.0, X)
    model = xgboost.XGBRegressor(n_estimators=5, missing=-999, n_jobs=1).fit(x, Y)
    form = limes.models.read(model)
    assert not form.covers.size
    with pytest.raises(InputError, match="numbers count as missing"):
        Covers(form)


def test_random_forests_of_lightgbm_are_means():
    # its pred_contrib adds trees up that it averages when it predicts
    options = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6, "verbose": -1, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = lightgbm.LGBMRegressor(n_estimators=10, **options).fit(X, Y)
    account = Covers(limes.models.read(model)).contributions(X[:5])
    theirs = model.predict(X[:5], pred_contrib=True)
    np.testing.assert_allclose(account.values[..., 0], theirs[:, :-1] / 10, atol=1e-12)
    np.testing.assert_allclose((account.base + account.values.sum(axis=1))[:, 0], model.predict(X[:5]))
