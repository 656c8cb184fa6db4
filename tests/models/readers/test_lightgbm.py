"""LightGBM, read and compared with its own answers: zeros, missing values of three kinds, categories."""

from __future__ import annotations

import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import boosters
import limes
import oracle
from internals import CannotRead, Table, _tree_rewriting, resolve
from limes.exceptions import InputError, ModelError, NotReadableError
from limes.models.readers import lightgbm as reader
from limes.models.readers.lightgbm import ZERO

X, Y = boosters.numbers()
RNG = np.random.default_rng(0)
ZEROS = np.array([0.0, -0.0, ZERO, -ZERO, 1e-35, -1e-35, 2e-35, 1e-300, 1e300, -1e300])
ZEROS = np.concatenate([ZEROS, np.nextafter(ZEROS, -np.inf), np.nextafter(ZEROS, np.inf)])


def make(kind="LGBMRegressor", **options):
    small = {"n_estimators": 12, "num_leaves": 12, "min_child_samples": 4, "n_jobs": 1, "verbose": -1}
    return getattr(lightgbm, kind)(**{**small, **options})


def trained(rounds=8, x=X, y=Y, categorical="auto", **options):
    data = lightgbm.Dataset(x, y, categorical_feature=categorical)
    return lightgbm.train({"verbose": -1, "num_threads": 1, "num_leaves": 9, **options}, data, rounds)


def assert_reads(model, x=X, **options):
    return boosters.assert_reads(model, x, extremes=ZEROS, **options)


# -- what is read -----------------------------------------------------------------------------------------

OPTIONS = [
    {},
    {"num_leaves": 2, "n_estimators": 3},
    {"num_leaves": 200, "min_child_samples": 1, "min_child_weight": 0, "n_estimators": 3},
    {"use_missing": False},
    {"zero_as_missing": True},
    {"zero_as_missing": True, "num_leaves": 40, "min_child_samples": 1, "n_estimators": 4},
    {"boosting_type": "dart", "drop_rate": 0.5},
    {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
    {"boost_from_average": False},
    {"min_child_samples": 10_000},  # constant
    {"objective": "regression_l1"},
    {"objective": "huber"},
    {"objective": "fair"},
    {"objective": "quantile", "alpha": 0.2},
    {"objective": "mape"},
    {"extra_trees": True, "path_smooth": 1.0, "monotone_constraints": [1, 0, 0]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("x", [X, np.nan_to_num(X)], ids=["missing", "complete"])
def test_regressors(options, x):
    assert_reads(make(**options).fit(x, Y), x)


def test_zeros_that_are_missing_go_to_either_side():
    """Zeros between the numbers, and sent to either side of them: the thresholds alone cannot say it."""
    x = RNG.choice([-2.0, -1.0, 0.0, 1.0, 2.0, np.nan], size=(600, 3))
    for y in (np.where(x[:, 0] == 0, 5.0, x[:, 0]), np.where(x[:, 0] == 0, -5.0, x[:, 0]) * (x[:, 1] > 0)):
        y = np.nan_to_num(y, nan=9.0)
        form = assert_reads(make(zero_as_missing=True, num_leaves=30).fit(x, y), x)
        assert (np.abs(form.threshold) == ZERO).any()


def test_weights_initial_scores_and_rankers():
    weights = RNG.exponential(size=len(X))
    assert_reads(make().fit(X, Y, sample_weight=weights))
    assert_reads(make().fit(X, Y, init_score=np.full(len(X), 5.0)))
    for objective in ("lambdarank", "rank_xendcg"):
        ranker = make("LGBMRanker", objective=objective)
        assert_reads(ranker.fit(X, (Y > 0).astype(int), group=[30] * 10))


@pytest.mark.parametrize("boosting", ["gbdt", "rf", "dart"])
def test_margins_of_classifiers(boosting):
    y = np.digitize(Y, [-1, 0, 1])
    options = {"bagging_freq": 1, "bagging_fraction": 0.6} if boosting == "rf" else {}
    for target, objective in ((y, "multiclass"), (y, "multiclassova"), (y > 1, "binary")):
        model = make("LGBMClassifier", boosting_type=boosting, objective=objective, **options).fit(X, target)
        form = assert_reads(model, output="margin")
        assert form.value.shape[1:] == ((4,) if target is y else ())
    assert resolve(model, "margin").labels == ("True",)


@pytest.mark.parametrize(
    ("objective", "y"),
    [
        ("poisson", np.exp(Y / 4)),
        ("gamma", np.exp(Y / 4)),
        ("tweedie", np.exp(Y / 4)),
        ("cross_entropy", 1 / (1 + np.exp(-Y))),
        ("cross_entropy_lambda", 1 / (1 + np.exp(-Y))),
        ("binary", Y > 0),
    ],
)
def test_links(objective, y):
    booster = trained(y=y, objective=objective)
    assert objective in boosters.reason(booster)
    assert "output='margin'" in boosters.reason(booster)
    assert_reads(booster, output="margin")
    with pytest.raises(NotReadableError, match="output='margin'"):
        limes.TabularExplainer(booster, X, method="exact")


def test_the_root_of_the_target():
    model = make(reg_sqrt=True).fit(X, Y)
    assert "'regression sqrt'" in boosters.reason(model)
    assert_reads(model, output="margin")


def test_early_stopping_predicts_with_the_best_rounds():
    stop = lightgbm.early_stopping(3, verbose=False)
    model = make(n_estimators=80, num_leaves=31)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions want eval_X, which older ones do not know
        model.fit(X[:200], Y[:200], eval_set=[(X[200:], Y[200:])], callbacks=[stop])
    assert model.best_iteration_ < 80
    for fitted in (model, model.booster_):
        assert assert_reads(fitted).roots.size == model.best_iteration_
    booster = trained()
    booster.best_iteration = 3
    assert assert_reads(booster).roots.size == 3


def test_a_custom_objective():
    def gradient(predictions, data):
        return predictions - data.get_label(), np.ones_like(predictions)

    assert_reads(trained(objective=gradient))
    assert_reads(make(objective=lambda y, p: (p - y, np.ones_like(y))).fit(X, Y))


def test_a_saved_booster(tmp_path):
    path = tmp_path / "model.txt"
    trained().save_model(path)
    assert_reads(lightgbm.Booster(model_file=path))


# -- coefficients -----------------------------------------------------------------------------------------


def test_coefficients():
    model = make(n_estimators=4, num_leaves=5).fit(X, Y)
    boosters.assert_limit(limes.models.read(model), model.predict)
    x, y = X[:40], Y[:40]
    boosters.assert_coefficients(make().fit(x, y), x)
    boosters.assert_coefficients(make(zero_as_missing=True).fit(x, y), x)
    model = make("LGBMClassifier").fit(x, np.digitize(y, [-1, 1]))
    explanation = boosters.assert_coefficients(model, x, output="margin")
    assert explanation.output_names == ("0", "1", "2")


def test_a_constant_model_explains_nothing():
    model = make(min_child_samples=10_000).fit(X, Y)
    assert not limes.TabularExplainer(model, X, method="exact")(X[:2]).coefficients.values.any()


def test_bare_boosters():
    booster = trained()
    boosters.assert_coefficients(booster, X[:40])
    booster = trained(y=Y > 0, objective="binary")
    assert limes.TabularExplainer(booster, X, max_calls=64, control="none")(X[:1]).method == "sampled"
    boosters.assert_coefficients(booster, X[:40], output="margin")
    with pytest.raises(InputError, match="no classes"):
        limes.TabularExplainer(booster, X, output="probability")


def test_the_margin_behind_a_pipeline():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM's own, on columns without names
        x = np.nan_to_num(X)
        model = make_pipeline(StandardScaler(), make("LGBMClassifier")).fit(x, Y > 0)
        explained = limes.TabularExplainer(
            model, x, output="margin", method="sampled", max_calls=64, control="none"
        )(x[:2])
        expected = model[-1].predict(model[:-1].transform(x[:2]), raw_score=True)
    np.testing.assert_allclose(explained.predictions, expected, rtol=1e-12)


# -- categories -------------------------------------------------------------------------------------------

FEW = {"min_data_per_group": 3, "min_child_samples": 5, "cat_smooth": 1.0, "cat_l2": 1.0}


@pytest.mark.parametrize("onehot", [1, 100])
def test_categories(onehot):
    frame, y = boosters.mixed()
    model = make(max_cat_to_onehot=onehot, **FEW).fit(frame, y)
    form, table = boosters.read_frame(model, frame)
    x = np.column_stack([RNG.choice(column, 1500) for column in table.matrix.T])
    boosters.assert_same(form, model.predict(table.decode(x)), x, 1e-12)
    boosters.assert_coefficients_of_frame(model, frame[:40])
    boosters.assert_coefficients_of_frame(model.booster_, frame[:40])


def test_ordered_categories_are_numbers_for_lightgbm():
    frame, y = boosters.mixed()
    frame = frame[["number", "size"]]
    form, _ = boosters.read_frame(make().fit(frame, boosters.as_size(frame) * y), frame)
    assert (form.set_of[form.feature == 1] >= 0).all()


def test_a_background_with_other_categories_than_training():
    frame, y = boosters.mixed()
    some = (frame["color"] != "red") & (frame["code"] != 10)
    model = make(**FEW)
    boosters.assert_coefficients_of_frame(model.fit(frame[some], y[some]), frame[:40])
    dropped = frame[some]
    for name in ("color", "code"):
        dropped = dropped.assign(**{name: dropped[name].cat.remove_unused_categories()})
    boosters.assert_coefficients_of_frame(model.fit(dropped, y[some]), frame[:40])
    boosters.assert_coefficients_of_frame(model.fit(frame, y), frame[some][:40])


def test_categories_that_are_numbers_of_an_array():
    x = np.column_stack([RNG.integers(0, 40, 500), RNG.normal(size=500)]).astype(float)
    x[::9, 0] = np.nan
    y = 3.0 * (np.nan_to_num(x[:, 0]) % 3 == 1) + x[:, 1]
    for onehot in (1, 100):
        model = trained(x=x, y=y, max_cat_to_onehot=onehot, categorical=[0], **FEW)
        form = limes.models.read(model)
        assert (form.set_of >= 0).any()
        rows = np.column_stack([RNG.choice([-7, -1, *range(70), 1e6, np.nan], 2000), RNG.normal(size=2000)])
        boosters.assert_same(form, model.predict(rows), rows, 1e-12)
        assert limes.TabularExplainer(model, x, categorical=[0], method="exact")(x[:2]).method == "exact"
        by_model, by_option = (
            limes.TabularExplainer(model, x),
            limes.TabularExplainer(model, x, categorical=[0]),
        )
        np.testing.assert_array_equal(
            by_model(x[:2]).coefficients.values, by_option(x[:2]).coefficients.values
        )
        assert by_model(x[:1]).provenance["categories of the model"] == ["x0"]


def test_categories_that_are_no_codes_or_of_columns_that_are_not_known():
    frame, y = boosters.mixed()
    other = frame.assign(code=frame["code"].cat.rename_categories([-3, 10, 30]))
    assert "-3" in boosters.read_frame(make(**FEW).fit(other, y), other)[0].reason
    numbers = frame.assign(size=frame["size"].cat.rename_categories([1, 2, 3]))
    # ordered categories are numbers for LightGBM, and listed nowhere
    reason = boosters.read_frame(make(**FEW).fit(numbers, y), numbers)[0].reason
    assert "3 pandas columns of categories, and it does not store which" in reason
    assert "categorical_feature=" in reason
    assert "'blue'" in boosters.reason_of(make(**FEW).fit(frame[["color"]], y), frame[["color"]])


# -- refusals ---------------------------------------------------------------------------------------------


def test_linear_trees():
    x = np.nan_to_num(X)
    assert "linear_tree=True" in boosters.reason(trained(x=x, linear_tree=True))


def test_trees_left_out_row_by_row():
    model = make("LGBMClassifier", pred_early_stop=True).fit(X, Y > 0)
    assert "pred_early_stop=True" in boosters.reason(model, "margin")


def test_classes_and_probabilities():
    model = make("LGBMClassifier", n_estimators=150, num_leaves=31, min_child_samples=2).fit(X, Y > 0)
    assert "predict_proba of LGBMClassifier" in boosters.reason(model)
    with pytest.raises(CannotRead, match="predict of LGBMClassifier is not a sum"):
        reader.booster(model, "predict", None)


def test_a_subclass():
    class Subclass(lightgbm.LGBMRegressor):
        pass

    assert "subclass of LGBMRegressor" in boosters.reason(Subclass(n_estimators=1, verbose=-1).fit(X, Y))


@pytest.mark.parametrize("levels", [[1, 2, 3], [30, 7, 2], [0, 500, 20]], ids=str)
@pytest.mark.parametrize("bare", [False, True])
def test_pandas_categories_that_are_whole_numbers(levels, bare):
    """LightGBM stores no list for a constant column of categories; its training parameters name it."""
    frame, y = boosters.mixed()
    sizes = frame["size"].cat.as_unordered().cat.rename_categories(levels)
    frame = frame.assign(size=sizes, one=pd.Categorical([4] * len(frame)))
    model = make(**FEW).fit(frame, y)
    if bare:
        model = lightgbm.Booster(model_str=model.booster_.model_to_string())
    form, table = boosters.read_frame(model, frame)
    assert not isinstance(form, limes.models.forms.BlackBox), form.reason
    x = np.column_stack([RNG.choice(column, 1500) for column in table.matrix.T])
    boosters.assert_same(form, model.predict(table.decode(x)), x, 1e-12)
    result = limes.TabularExplainer(model, frame[:40], method="exact", law="empirical")(frame[:2])
    small = Table.fit(frame[:40])
    codes = small.matrix
    for i in range(2):
        truth = boosters.enumerated(codes, codes[i], lambda x: model.predict(small.decode(x)), (1, 2, 3, 4))
        assert oracle.error(result.coefficients.values[i], truth.coef, truth.size) < oracle.EXACT


def test_zeros_that_are_missing_in_too_many_columns(monkeypatch):
    model = make(zero_as_missing=True, num_leaves=40).fit(X, Y)
    monkeypatch.setattr(_tree_rewriting, "_GROWTH_OF_COPIES", 1)
    assert "zero_as_missing=True" in boosters.reason(model)
    assert "too many parts" in boosters.reason(model)


class Text:
    """A booster whose dump is the text that it was made with."""

    pandas_categorical = None

    def __init__(self, text):
        self.text = text

    def model_to_string(self):
        return self.text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version=v4", "version=v9", "version 'v9'"),
        ("objective=regression", "objective=newest", "'newest'"),
        ("num_leaves=9", "num_leaves=8", "number of leaves"),
        ("leaf_value=", "leaf_worth=", "damaged"),
        ("threshold=", "threshold=x ", "damaged"),
        ("left_child=1", "left_child=70", "damaged"),
        ("left_child=1", "left_child=0", "two parents"),
        ("max_feature_idx=2", "max_feature_idx=1", "tests column 2"),
        ("tree\n", "", ""),
    ],
)
def test_damaged_texts(old, new, words):
    text = trained(rounds=1).model_to_string()
    assert old in text
    if not words:
        assert reader.booster(Text(text), "predict", None).size == 3
        return
    with pytest.raises(CannotRead, match=words):
        reader.booster(Text(text.replace(old, new)), "predict", None)
    with pytest.raises(CannotRead, match="damaged"):
        reader.booster(Text(text[: len(text) // 20]), "predict", None)


def test_another_table_than_the_model_was_fitted_on():
    with pytest.raises(ModelError, match="number of features"):
        limes.TabularExplainer(trained(), X[:, :2])
    frame, y = boosters.mixed()
    model = make(**FEW).fit(frame, y)
    with pytest.raises(ModelError, match="categorical_feature do not match"):
        limes.TabularExplainer(model, frame.assign(code=frame["code"].astype(int)))


@pytest.mark.parametrize("missing_left", [True, False])
def test_a_node_splits_an_interval_only_if_its_values_take_both_sides(missing_left):
    """All intervals between ends on a grid, with all their values on a grid of half the width."""
    for lower, upper, threshold in np.ndindex(4, 4, 4):
        x = np.arange(0.0, 4.0, 0.5)
        sides = {bool(value <= threshold) for value in x[(lower < x) & (x <= upper)]} | {missing_left}
        interval = _tree_rewriting._Interval(float(lower), float(upper), missing=True)
        expected = None if len(sides) == 2 else missing_left
        assert interval.goes_left(float(threshold), missing_left=missing_left) is expected
