"""XGBoost, read and compared with its own answers, which are float32."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import boosters
import limes
import oracle
from internals import CannotRead, _tree_rewriting, resolve
from limes.exceptions import InputError, ModelError, NotReadableError
from limes.models import forms
from limes.models.readers import xgboost as reader

X, Y = boosters.numbers()
RNG = np.random.default_rng(0)
# float32 sums of a few dozen trees
SINGLE = 2e-6
VERSION = tuple(int(part) for part in xgboost.__version__.split(".")[:2])
SORTS = VERSION >= (3, 4)  # the quantiles of a row
# of versions from 3.4 on, of dart and random forests
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*is deprecated")
names_kept = pytest.mark.skipif(VERSION < (3, 1), reason="keeps no names of categories")


def make(kind="XGBRegressor", **options):
    depth = {} if options.get("booster") == "gblinear" else {"max_depth": 4}
    return getattr(xgboost, kind)(**{"n_estimators": 12, "n_jobs": 1, **depth, **options})


def trained(rounds=8, x=X, y=Y, **options):
    names = options.pop("feature_names", None)
    data = xgboost.DMatrix(x, y, feature_names=names)
    return xgboost.train({"nthread": 1, "max_depth": 3, **options}, data, rounds)


# -- what is read -----------------------------------------------------------------------------------------

OPTIONS = [
    {},
    {"max_depth": 1, "n_estimators": 3},
    {"max_depth": 12, "min_child_weight": 0, "n_estimators": 3, "reg_lambda": 0},
    {"tree_method": "exact", "gamma": 1.0},  # pruned: nodes that nothing leads to
    {"tree_method": "approx", "grow_policy": "lossguide", "max_leaves": 9},
    {"booster": "dart", "rate_drop": 0.5},
    {"booster": "dart", "normalize_type": "forest", "rate_drop": 0.3, "one_drop": 1},
    {"num_parallel_tree": 3, "subsample": 0.6, "n_estimators": 4},
    {"base_score": 40.0},
    {"base_score": -3.0, "n_estimators": 1},
    {"gamma": 1e9},  # constant
    {"objective": "reg:absoluteerror"},
    {"objective": "reg:pseudohubererror"},
    {"objective": "reg:quantileerror", "quantile_alpha": 0.3},
    *([] if SORTS else [{"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.5, 0.8]}]),
    {"monotone_constraints": (1, 0, 0)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_regressors(options):
    boosters.assert_reads(make(**options).fit(X, Y), X, tolerance=SINGLE)


def test_random_forests_rankers_and_weights():
    weights = RNG.exponential(size=len(X))
    boosters.assert_reads(make("XGBRFRegressor").fit(X, Y, sample_weight=weights), X, tolerance=SINGLE)
    boosters.assert_reads(
        make("XGBRFClassifier").fit(X, Y > 0, sample_weight=weights), X, output="margin", tolerance=SINGLE
    )
    for objective in ("rank:ndcg", "rank:pairwise"):
        ranker = make("XGBRanker", objective=objective).fit(X, Y > 0, qid=np.arange(len(X)) // 30)
        boosters.assert_reads(ranker, X, tolerance=SINGLE)


@pytest.mark.parametrize("targets", [2, 3])
@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_several_targets(strategy, targets):
    y = np.column_stack([Y, Y**2, -Y])[:, -targets:]
    model = make(multi_strategy=strategy, tree_method="hist", n_estimators=5).fit(X, y)
    form = boosters.assert_reads(model, X, tolerance=SINGLE)
    assert form.value.shape[1] == targets
    chosen = [targets - 1, 0]
    assert boosters.assert_reads(model, X, output=chosen, tolerance=SINGLE).value.shape[1] == 2


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize("base", [{}, {"base_score": 0.2}], ids=str)
def test_margins_of_classifiers(base, booster):
    y = np.digitize(Y, [-1, 0, 1])
    for target in (y, y > 1):
        model = make("XGBClassifier", booster=booster, **base).fit(X, target)
        form = boosters.assert_reads(model, X, output="margin", tolerance=SINGLE)
        assert form.value.shape[1:] == ((4,) if target is y else ())
    assert resolve(model, "margin").labels == ("1",)


@pytest.mark.parametrize(
    "objective",
    ["reg:gamma", "reg:tweedie", "count:poisson", "survival:cox", "reg:logistic", "binary:logitraw"],
)
@pytest.mark.parametrize("base", [{}, {"base_score": 0.7}], ids=str)
def test_margins_of_boosters_with_links(objective, base):
    y = (Y > 0).astype(float) if "logi" in objective else np.exp(Y / 4)
    booster = trained(y=y, objective=objective, **base)
    boosters.assert_reads(booster, X, output="margin", tolerance=SINGLE)


def test_early_stopping_predicts_with_the_best_rounds_and_a_bare_booster_with_all():
    model = make(n_estimators=60, early_stopping_rounds=5, max_depth=6)
    model.fit(X[:200], Y[:200], eval_set=[(X[200:], Y[200:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    best = boosters.assert_reads(model, X, tolerance=SINGLE)
    whole = boosters.assert_reads(model.get_booster(), X, tolerance=SINGLE)
    assert best.roots.size == model.best_iteration + 1 < whole.roots.size
    boosters.assert_reads(model.get_booster()[2:5], X, tolerance=SINGLE)


def test_linear_boosters():
    x = np.nan_to_num(X)
    model = make(booster="gblinear").fit(x, Y)
    form = limes.models.read(model)
    assert isinstance(form, forms.Linear)
    boosters.assert_same(form, model.predict(np.tile(x, (4, 1))), np.tile(x, (4, 1)), SINGLE)
    explained = limes.TabularExplainer(model, x, method="exact", bins=None)(x[:1])
    np.testing.assert_allclose(explained.coefficients.values[0], form.coef, rtol=oracle.EXACT)
    model = make("XGBClassifier", booster="gblinear", base_score=0.5).fit(x, np.digitize(Y, [-1, 1]))
    form = limes.models.read(model, "margin")
    expected = model.predict(np.tile(x, (4, 1)), output_margin=True)
    boosters.assert_same(form, expected, np.tile(x, (4, 1)), SINGLE)


def test_a_custom_objective():
    model = make(objective=lambda y, p: (p - y, np.ones_like(y))).fit(X, Y)
    boosters.assert_reads(model, X, tolerance=SINGLE)


def test_splits_at_the_ends_of_float32():
    largest = float(np.finfo(np.float32).max)
    x = RNG.choice([largest, -largest, 1e38, 1e-45, 0.0, np.nan], size=(400, 2))
    y = np.nan_to_num(x[:, 0] / 1e38) + np.isnan(x[:, 1])
    model = make(tree_method="exact").fit(x, y)
    beside = [np.nextafter(largest + 2.0**103, 0), largest, 1e-45, 7e-46, 2e-45]
    boosters.assert_reads(model, x, tolerance=SINGLE, extremes=np.array([*beside, *(-b for b in beside)]))


MARKERS = [-999.0, 0, 0.5, -999.9, 1e30, 1e-45, float("inf")]


def marked(marker, x=X):
    """The table with a number for what is missing, and numbers beside it."""
    return np.nan_to_num(x, nan=float(np.clip(marker, -1e38, 1e38)))


@pytest.mark.parametrize("marker", MARKERS, ids=str)
@pytest.mark.parametrize("options", [{}, {"booster": "dart", "rate_drop": 0.5}, {"max_depth": 8}], ids=str)
def test_numbers_that_count_as_missing(marker, options):
    x = marked(marker)
    model = make(missing=marker, **options).fit(x, Y)
    single = np.float32(marker)
    with np.errstate(over="ignore", invalid="ignore"):
        around = [np.nextafter(single, np.float32(s)) for s in (-np.inf, np.inf)]
    ends = np.array([float(marker), float(single), *map(float, around)])
    beside = np.concatenate(
        [ends, 0.5 * (ends + float(single)), np.nextafter(ends, 1e308), np.nextafter(ends, -1e308)]
    )
    beside = np.concatenate([beside[np.isfinite(beside)], boosters.EXTREMES])
    boosters.assert_reads(model, x, tolerance=SINGLE, extremes=beside)


def test_numbers_that_count_as_missing_in_frames_and_classes():
    x = marked(-999.0)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = make("XGBClassifier", missing=-999.0).fit(frame, np.digitize(Y, [-1, 1]))
    form = limes.models.read(model, "margin")
    rows = boosters.edge_rows(form, x, extremes=np.array([-999.0, 0.0, -998.0, -1000.0]))
    expected = model.predict(pd.DataFrame(rows, columns=["a", "b", "c"]), output_margin=True)
    boosters.assert_same(form, expected, rows, SINGLE)


@pytest.mark.parametrize("marker", [-999.0, 0.0])
def test_coefficients_where_a_number_counts_as_missing(marker):
    x = marked(marker)[:40]
    model = make(missing=marker).fit(marked(marker), Y)
    boosters.assert_coefficients(model, x, tolerance=1e-5)
    # the whole table has the marker where the model alone would send NaN
    clean = make().fit(X, Y)
    if marker == -999.0:
        assert np.allclose(limes.models.read(model).predict(marked(marker)), clean.predict(X), atol=1e-4)


def test_models_with_a_missing_number_that_are_not_read(monkeypatch):
    x = marked(-999.0)
    linear = make(booster="gblinear", missing=-999.0).fit(x, Y)
    assert "missing=-999.0" in boosters.reason(linear)
    x = np.column_stack([RNG.integers(0, 20, 300), x[:, 1]])
    split = make(missing=-999.0, feature_types=["c", "q"], enable_categorical=True).fit(x, Y + (x[:, 0] % 3))
    assert "splits by categories" in boosters.reason(split)
    monkeypatch.setattr(_tree_rewriting, "_GROWTH_OF_COPIES", 1)
    assert "missing=0" in boosters.reason(make(missing=0, max_depth=8).fit(X, Y))


# -- coefficients -----------------------------------------------------------------------------------------


def test_coefficients():
    model = make(n_estimators=4, max_depth=3).fit(X, Y)
    form = limes.models.read(model)
    boosters.assert_limit(form, form.predict)
    boosters.assert_limit(form, model.predict, tolerance=10 * SINGLE)
    boosters.assert_coefficients(model, X[:40], tolerance=10 * SINGLE)
    model = make("XGBClassifier", n_estimators=3).fit(X, np.digitize(Y, [-1, 1]))
    explanation = boosters.assert_coefficients(model, X[:40], output="margin", tolerance=10 * SINGLE)
    assert explanation.output_names == ("0", "1", "2")


def test_a_constant_model_explains_nothing():
    explained = limes.TabularExplainer(make(gamma=1e9).fit(X, Y), X, method="exact")(X[:2])
    assert not explained.coefficients.values.any()


def test_bare_boosters():
    booster = trained(feature_names=["a", "b", "c"])
    for background in (X, boosters.pd.DataFrame(X, columns=list("abc"))):
        explained = limes.TabularExplainer(booster, background, method="exact")(background[:2])
        np.testing.assert_allclose(
            explained.predictions, booster.inplace_predict(X[:2], validate_features=False)
        )
    booster = trained(y=Y > 0, objective="binary:logistic")
    assert limes.TabularExplainer(booster, X, max_calls=64, control="none")(X[:1]).method == "sampled"
    assert limes.TabularExplainer(booster, X, output="margin")(X[:1]).method == "exact"
    with pytest.raises(InputError, match="no classes"):
        limes.TabularExplainer(booster, X, output="probability")


def test_the_margin_behind_a_pipeline():
    x = np.nan_to_num(X)
    model = make_pipeline(StandardScaler(), make("XGBClassifier")).fit(x, Y > 0)
    explained = limes.TabularExplainer(
        model, x, output="margin", method="sampled", max_calls=64, control="none"
    )(x[:2])
    expected = model[-1].predict(model[:-1].transform(x[:2]), output_margin=True)
    np.testing.assert_allclose(explained.predictions, expected, rtol=1e-6)


# -- categories -------------------------------------------------------------------------------------------


def fitted(frame, y, **options):
    return make(enable_categorical=True, tree_method="hist", **options).fit(frame, y)


@names_kept
@pytest.mark.parametrize("onehot", [1, 100])
def test_categories(onehot):
    frame, y = boosters.mixed()
    model = fitted(frame, y, max_cat_to_onehot=onehot)
    form, table = boosters.read_frame(model, frame)
    x = np.column_stack([RNG.choice(column, 1500) for column in table.matrix.T])
    boosters.assert_same(form, model.predict(table.decode(x)), x, SINGLE)
    boosters.assert_coefficients_of_frame(model, frame[:40], tolerance=10 * SINGLE)
    boosters.assert_coefficients_of_frame(model.get_booster(), frame[:40], tolerance=10 * SINGLE)


@names_kept
def test_a_background_with_fewer_categories_than_training():
    frame, y = boosters.mixed()
    model = fitted(frame, y, max_cat_to_onehot=1)
    some = frame[(frame["color"] != "green") & (frame["code"] != 3)]
    boosters.assert_coefficients_of_frame(model, some[:40], tolerance=10 * SINGLE)
    for name in ("color", "code"):
        some = some.assign(**{name: some[name].cat.remove_unused_categories()})
    assert limes.TabularExplainer(model, some, method="exact")(some[:1]).method == "exact"


@names_kept
@names_kept
@pytest.mark.parametrize("part", [slice(0, 5), slice(None, None, 2)])
@pytest.mark.parametrize("fewer", [False, True])
def test_slices_of_a_booster_take_the_codes_of_the_table(part, fewer):
    """A slice stores no names of categories: the codes of the background's own dtype are its categories."""
    frame, y = boosters.mixed()
    booster = fitted(frame, y).get_booster()[part]
    if fewer:  # a level of the middle that no row has keeps its code
        name = frame.select_dtypes("category").columns[0]
        frame = frame[frame[name] != frame[name].cat.categories[1]]
    explained = limes.TabularExplainer(booster, frame, method="exact")(frame[:20])
    answers = booster.predict(xgboost.DMatrix(frame[:20], enable_categorical=True))
    np.testing.assert_allclose(explained.predictions, answers, rtol=1e-5)
    form, table = boosters.read_frame(booster, frame)
    np.testing.assert_allclose(form.predict(table.encode(frame[:20])), answers, rtol=1e-5)


def test_categories_unseen_in_training():
    frame, y = boosters.mixed(missing=False)
    some = frame[frame["color"] != "red"]
    some = some.assign(color=some["color"].cat.remove_unused_categories())
    model = fitted(some, y[some.index])
    reason = boosters.read_frame(model, frame)[0].reason
    assert "column 'color' of the background has the category 'red'" in reason
    assert "is not in the training data" in reason
    added = frame.assign(color=frame["color"].cat.rename_categories({"red": "zinc"}))
    with pytest.raises(ModelError, match="category not in the training set"):
        limes.TabularExplainer(model, added[added["color"] == "zinc"])


def test_categories_that_are_numbers_of_an_array():
    x = np.column_stack([RNG.integers(0, 40, 400), RNG.normal(size=400)]).astype(float)
    x[::9, 0] = np.nan
    y = (x[:, 0] % 3 == 1) * x[:, 1]
    for onehot in (1, 100):
        model = fitted(x, y, feature_types=["c", "q"], max_cat_to_onehot=onehot)
        form = limes.models.read(model)
        assert (form.set_of >= 0).any()
        rows = np.column_stack([RNG.choice([*range(50), np.nan], 1500), RNG.normal(size=1500)])
        boosters.assert_same(form, model.predict(rows), rows, SINGLE)
        assert limes.TabularExplainer(model, x, categorical=[0], method="exact")(x[:2]).method == "exact"
        assert limes.TabularExplainer(
            model.get_booster(), x, categorical=[0], method="exact"
        )(x[:2]).method == "exact"  # fmt: skip
        by_model, by_option = (
            limes.TabularExplainer(model, x),
            limes.TabularExplainer(model, x, categorical=[0]),
        )
        np.testing.assert_array_equal(
            by_model(x[:2]).coefficients.values, by_option(x[:2]).coefficients.values
        )
        assert by_model(x[:1]).provenance["categories of the model"] == ["x0"]


@pytest.mark.skipif(not SORTS, reason="leaves the quantiles of a row as they are")
def test_quantiles_that_are_sorted_are_no_sums_of_trees():
    model = make(objective="reg:quantileerror", quantile_alpha=[0.2, 0.5, 0.8]).fit(X, Y)
    form = limes.models.read(model)
    assert isinstance(form, forms.BlackBox)
    assert "sorts the quantiles" in form.reason


@names_kept
@pytest.mark.parametrize(
    "levels", [["é0", "é1", "ü2", "a"], ["é0", "é", "a", "b"], ["blau", "grün", "rot", "z"]], ids=str
)
def test_names_that_xgboost_stores_cut_short(levels):
    frame, y = boosters.mixed(missing=False)
    frame = frame.assign(color=frame["color"].cat.rename_categories(levels))
    model = fitted(frame, y)
    form = boosters.read_frame(model, frame)[0]
    if isinstance(form, limes.models.forms.BlackBox):
        assert "column 'color' has categories with letters beyond ASCII" in form.reason
        assert "cut short" in form.reason
        assert (
            limes.TabularExplainer(model, frame, max_calls=64, control="none")(frame[:1]).method == "sampled"
        )
    else:  # a version that stores all bytes, from 3.4 on
        explanation = limes.TabularExplainer(model, frame, method="exact")(frame, progress=False)
        account = explanation.contributions
        total = account.base_values + account.values.sum(axis=1)
        assert oracle.error(total, model.predict(frame), 10.0) < SINGLE


@names_kept
def test_texts_behind_a_model_that_keeps_no_names():
    frame, y = boosters.mixed()
    model = fitted(frame, y)
    stored = json.loads(bytes(model.get_booster().save_raw("json")))
    del stored["learner"]["gradient_booster"]["model"]["cats"]  # as before XGBoost 3.1
    schema = replace(boosters.read_frame(model, frame)[1].schema, categories=())
    with pytest.raises(CannotRead, match=r"'color' holds texts.*XGBoost 3.1 or later"):
        reader.booster(Dump(stored), "predict", schema)


@names_kept
def test_categories_that_are_no_codes():
    frame, y = boosters.mixed()
    code = frame["code"].cat.rename_categories([-3, 10, 30])
    assert "-3" in boosters.read_frame(fitted(frame.assign(code=code), y), frame.assign(code=code))[0].reason


# -- refusals ---------------------------------------------------------------------------------------------


class Dump:
    """A booster whose dump is the text that it was made with."""

    def __init__(self, stored):
        self.stored = stored

    def save_raw(self, kind):
        return self.stored if isinstance(self.stored, bytes) else json.dumps(self.stored).encode()


@pytest.mark.parametrize(
    "objective", ["reg:gamma", "reg:tweedie", "count:poisson", "reg:logistic", "binary:logistic"]
)
def test_links(objective):
    booster = trained(y=1 / (1 + np.exp(-Y)), objective=objective)
    assert objective in boosters.reason(booster)
    assert "output='margin'" in boosters.reason(booster)
    with pytest.raises(NotReadableError, match="output='margin'"):
        limes.TabularExplainer(booster, X, method="exact")


def test_classes_and_probabilities():
    model = make("XGBClassifier", n_estimators=150, max_depth=6).fit(X, Y > 0)
    assert "predict_proba of XGBClassifier" in boosters.reason(model)
    with pytest.raises(CannotRead, match="predict of XGBClassifier is not a sum"):
        reader.booster(model, "predict", None)


@names_kept
def test_linear_boosters_with_several_base_scores():
    model = make("XGBClassifier", booster="gblinear").fit(np.nan_to_num(X), np.digitize(Y, [-1, 1]))
    assert "base_score=0.5" in boosters.reason(model, "margin")


def test_a_subclass():
    class Subclass(xgboost.XGBRegressor):
        pass

    assert "subclass of XGBRegressor" in boosters.reason(Subclass(n_estimators=1).fit(X, Y))


def test_unknown_objectives_boosters_and_damaged_dumps():
    stored = json.loads(bytes(trained().save_raw("json")))
    learner = stored["learner"]

    def refusal(**changed):
        with pytest.raises(CannotRead) as result:
            reader.booster(Dump({"learner": learner | changed}), "predict", None)
        return str(result.value)

    assert "'reg:new'" in refusal(objective={"name": "reg:new"})
    assert "'gbforest'" in refusal(gradient_booster={"name": "gbforest"})
    assert "damaged" in refusal(gradient_booster={"name": "gbtree"})
    assert "damaged" in refusal(learner_model_param={"num_class": "0", "base_score": "what"})
    trees = learner["gradient_booster"]["model"]["trees"]
    trees[0]["left_children"][0] = 10_000
    assert "damaged" in refusal()
    trees[0]["left_children"][0] = 0
    assert "two parents" in refusal()
    with pytest.raises(CannotRead, match="damaged"):
        reader.booster(Dump(b'{"learner": '), "predict", None)


def test_another_table_than_the_model_was_fitted_on():
    booster = trained(feature_names=["a", "b", "c"])
    frame = boosters.pd.DataFrame(X, columns=["a", "b", "z"])
    with pytest.raises(ModelError, match="z"):
        limes.TabularExplainer(booster, frame)
    with pytest.raises(ModelError, match=r"expected.*3|3.*2"):
        limes.TabularExplainer(booster, X[:, :2])
    with pytest.raises(ModelError, match="mismatch"):
        limes.TabularExplainer(make().fit(X, Y), X[:, :2])
    with pytest.raises(ModelError):
        limes.TabularExplainer(make(), X)
