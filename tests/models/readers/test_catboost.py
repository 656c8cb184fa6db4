"""CatBoost, read and compared with its own answers: symmetric trees and others, categories by hashes."""

from __future__ import annotations

import json
from pathlib import Path

import catboost
import numpy as np
import pytest

import boosters
import limes
from internals import CannotRead, resolve
from limes.exceptions import InputError, ModelError, NotReadableError
from limes.models.readers import catboost as reader

X, Y = boosters.numbers()
RNG = np.random.default_rng(0)
LARGEST = float(np.finfo(np.float32).max)
ENDS = np.array([0.0, LARGEST, -LARGEST, LARGEST + 2.0**102, LARGEST + 2.0**103, 1e300, -1e300, 1e-45, 7e-46])


def make(kind="CatBoostRegressor", **options):
    small = {"iterations": 12, "depth": 4, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    return getattr(catboost, kind)(**{**small, **options})


def assert_reads(model, x=X, **options):
    return boosters.assert_reads(model, x, extremes=ENDS, **options)


# -- what is read -----------------------------------------------------------------------------------------

OPTIONS = [
    {},
    {"depth": 1, "iterations": 3},
    {"depth": 9, "iterations": 3},
    {"nan_mode": "Max"},
    {"nan_mode": "Max", "grow_policy": "Lossguide"},
    {"grow_policy": "Lossguide", "max_leaves": 20, "depth": 12},
    {"grow_policy": "Depthwise"},
    {"boosting_type": "Ordered"},
    {"boost_from_average": False, "learning_rate": 0.9},
    {"loss_function": "MAE"},
    {"loss_function": "Quantile:alpha=0.2"},
    {"loss_function": "MultiQuantile:alpha=0.2,0.5,0.8"},
    {"loss_function": "Huber:delta=1.0"},
    {"loss_function": "LogLinQuantile"},
    {"feature_border_type": "Uniform", "border_count": 5},
    {"boost_from_average": True, "l2_leaf_reg": 1e9},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("x", [X, np.nan_to_num(X)], ids=["missing", "complete"])
def test_regressors(options, x):
    y = Y if options.get("loss_function") != "LogLinQuantile" else np.exp(Y / 4)
    model = make(**options).fit(x, y)
    assert_reads(model, x, missing=x is X)


def test_several_targets_and_weights():
    y = np.column_stack([Y, Y**2, -Y])
    model = make(loss_function="MultiRMSE").fit(X, y, sample_weight=RNG.exponential(size=len(X)))
    assert assert_reads(model).value.shape[1] == 3
    assert assert_reads(model, output=[2, 0]).value.shape[1] == 2
    model = make(loss_function="MultiRMSE", grow_policy="Depthwise", boost_from_average=False).fit(X, y)
    assert assert_reads(model).value.shape[1] == 3


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_margins_of_classifiers(policy):
    y = np.digitize(Y, [-1, 0, 1])
    for target, loss in ((y, "MultiClass"), (y, "MultiClassOneVsAll"), (y > 1, "Logloss")):
        model = make("CatBoostClassifier", loss_function=loss, grow_policy=policy).fit(X, target)
        form = assert_reads(model, output="margin")
        assert form.value.shape[1:] == ((4,) if target is y else ())
    assert resolve(model, "margin").labels == ("True",)


def test_rankers_and_bare_models():
    ranker = make("CatBoostRanker", loss_function="QueryRMSE")
    assert_reads(ranker.fit(X, Y, group_id=np.arange(len(X)) // 30))
    for loss, y, output in (("RMSE", Y, None), ("Logloss", (Y > 0).astype(int), "margin")):
        small = {"loss_function": loss, "iterations": 5, "verbose": 0, "allow_writing_files": False}
        assert_reads(catboost.CatBoost({**small, "thread_count": 1}).fit(X, y), output=output)


def test_early_stopping_keeps_the_best_trees():
    model = make(iterations=200, learning_rate=0.5, use_best_model=True, early_stopping_rounds=5)
    model.fit(X[:200], Y[:200], eval_set=(X[200:], Y[200:]))
    assert assert_reads(model).roots.size == model.best_iteration_ + 1


def test_scale_and_bias_and_a_saved_model(tmp_path):
    model = make().fit(X, Y)
    model.set_scale_and_bias(2.5, -7.0)
    assert_reads(model)
    model.save_model(tmp_path / "model.cbm")
    assert_reads(catboost.CatBoostRegressor().load_model(tmp_path / "model.cbm"))


def test_missing_values_split_from_all_numbers():
    x = np.where(np.arange(300) % 3, RNG.normal(size=300), np.nan)[:, None]
    for mode in ("Min", "Max"):
        model = make(nan_mode=mode, depth=1).fit(x, np.isnan(x[:, 0]).astype(float))
        form = assert_reads(model, x)
        assert np.ptp(form.predict(np.array([[0.0], [np.nan]]))) > 0.3


def test_a_constant_model_explains_nothing():
    model = make(allow_const_label=True, bootstrap_type="No", boost_from_average=False).fit(
        X, np.zeros(len(X))
    )
    assert_reads(model)
    assert not limes.TabularExplainer(model, X, method="exact")(X[:2]).coefficients.values.any()


# -- coefficients -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_coefficients(policy):
    model = make(iterations=4, depth=3, grow_policy=policy).fit(X, Y)
    boosters.assert_limit(limes.models.read(model), model.predict)
    x, y = X[:40], Y[:40]
    boosters.assert_coefficients(make(grow_policy=policy, nan_mode="Max").fit(x, y), x)
    model = make("CatBoostClassifier", grow_policy=policy).fit(x, np.digitize(y, [-1, 1]))
    explanation = boosters.assert_coefficients(model, x, output="margin")
    assert explanation.output_names == ("0", "1", "2")


# -- categories -------------------------------------------------------------------------------------------

COLUMNS = ["color", "size", "code"]


def one_hot(**options):
    return make(one_hot_max_size=10, cat_features=COLUMNS, **options)


def texts(frame):
    """CatBoost takes no missing categories."""
    for name in COLUMNS[:2]:
        full = frame[name].cat.add_categories("none").fillna("none")
        frame = frame.assign(**{name: full})
    return frame


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide", "Depthwise"])
def test_categories(policy):
    frame, y = boosters.mixed(missing=False)
    model = one_hot(grow_policy=policy).fit(frame, y)
    form, table = boosters.read_frame(model, frame)
    assert (form.set_of >= 0).any()
    x = np.column_stack([RNG.choice(column, 1500) for column in table.matrix.T])
    boosters.assert_same(form, model.predict(table.decode(x)), x, 1e-12)
    boosters.assert_coefficients_of_frame(model, frame[:40])


def test_texts_of_other_alphabets_and_missing_ones_that_have_a_name():
    frame, y = boosters.mixed()
    frame = texts(frame).assign(color=texts(frame)["color"].astype(object).replace("red", "zażółć 🙂"))
    model = one_hot().fit(frame, y)
    form, table = boosters.read_frame(model, frame)
    boosters.assert_same(
        form, model.predict(table.decode(np.tile(table.matrix, (4, 1)))), np.tile(table.matrix, (4, 1)), 1e-12
    )


def test_a_background_with_other_categories_than_training():
    frame, y = boosters.mixed(missing=False)
    some = (frame["color"] != "red") & (frame["code"] != 10)
    boosters.assert_coefficients_of_frame(one_hot().fit(frame[some], y[some]), frame[:40])
    boosters.assert_coefficients_of_frame(one_hot().fit(frame, y), frame[some][:40])


def test_categories_that_are_no_codes():
    frame, y = boosters.mixed(missing=False)
    frame = frame.assign(code=frame["code"].cat.rename_categories([-3, 10, 30]))
    y = y - 9.0 * (frame["code"].to_numpy() == -3)
    form, _ = boosters.read_frame(one_hot().fit(frame, y), frame)
    assert "'code'" in form.reason
    assert "store them as texts" in form.reason


def test_statistics_of_the_target_are_refused():
    frame, y = boosters.mixed(missing=False)
    model = make(cat_features=COLUMNS).fit(frame, y)
    assert "one_hot_max_size" in boosters.read_frame(model, frame)[0].reason
    explained = limes.TabularExplainer(model, frame, max_calls=64, control="none")(frame[:1])
    assert explained.method == "sampled"


# -- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["Poisson", "Tweedie:variance_power=1.5", "RMSEWithUncertainty"])
def test_links(loss):
    model = make(loss_function=loss).fit(X, np.exp(Y / 4))
    assert "output='margin'" in boosters.reason(model)
    assert_reads(model, output="margin")
    with pytest.raises(NotReadableError, match="output='margin'"):
        limes.TabularExplainer(model, X, method="exact")


def test_classes_and_probabilities():
    model = make("CatBoostClassifier", iterations=150, depth=6).fit(X, Y > 0)
    assert "predict_proba of CatBoostClassifier" in boosters.reason(model)
    with pytest.raises(CannotRead, match="predict of CatBoostClassifier is not a sum"):
        reader.booster(model, "predict", None)
    with pytest.raises(InputError, match="no classes"):
        limes.TabularExplainer(make().fit(X, Y), X, output="probability")


def test_a_subclass():
    class Subclass(catboost.CatBoostRegressor):
        pass

    model = Subclass(iterations=1, verbose=0, allow_writing_files=False).fit(X, Y)
    assert "subclass of CatBoostRegressor" in boosters.reason(model)


class Dump:
    """A model whose dump is the text that it was made with."""

    feature_names_ = ("0", "1", "2")

    def __init__(self, stored):
        self.stored = stored

    def save_model(self, path, **options):
        assert options["format"] == "json"
        Path(path).write_text(self.stored if isinstance(self.stored, str) else json.dumps(self.stored))


def test_damaged_dumps_and_unknown_splits_are_refused(tmp_path):
    make(depth=2, iterations=2).fit(X, Y).save_model(tmp_path / "model.json", format="json")
    stored = json.loads((tmp_path / "model.json").read_text())
    assert reader.booster(Dump(stored), "predict", None).size == 3

    def refusal():
        with pytest.raises(CannotRead) as result:
            reader.booster(Dump(stored), "predict", None)
        return str(result.value)

    tree = stored["oblivious_trees"][0]
    del tree["leaf_values"][0]
    assert "2 tests has 3 leaves" in refusal()
    tree["leaf_values"].append(1.0)
    tree["splits"][0]["split_type"] = "Embedding"
    assert "'Embedding'" in refusal()
    tree["splits"][0] = {"split_type": "FloatFeature", "float_feature_index": 17, "border": 0.0}
    assert "damaged" in refusal()
    stored["features_info"]["float_features"][0]["nan_value_treatment"] = "AsNew"
    tree["splits"][0]["float_feature_index"] = 0
    assert "AsNew" in refusal()
    stored = '{"trees": '
    assert "damaged" in refusal()


def test_another_table_than_the_model_was_fitted_on():
    with pytest.raises(ModelError, match=r"CatBoostRegressor\.predict"):
        limes.TabularExplainer(make().fit(X, Y), X[:, :2])
    frame, y = boosters.mixed(missing=False)
    with pytest.raises(ModelError, match="other"):
        limes.TabularExplainer(one_hot().fit(frame, y), frame.rename(columns={"number": "other"}))
