"""``limes.compat.shap`` where shap misses its own definition, its errors, and without shap."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from compat.test_shap_scripts import enumerated
from limes.compat import shap as ours
from limes.compat.shap.explanation import Explanation
from limes.exceptions import InputError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # shap's own imports warn
    shap = pytest.importorskip("shap")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = X[:, 0] * X[:, 1] + (X[:, 2] > 0.3) + 0.1 * X[:, 4]
FRAME = pd.DataFrame(X, columns=["age", "bmi", "dose", "size", "sex"])
FOREST = RandomForestRegressor(6, max_depth=4, random_state=0).fit(X, Y)
BOOSTED = xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1).fit(X, Y > 0.4)


def truth(f, background, rows):
    return np.array([enumerated(f, background, row) for row in np.asarray(rows)])


# -- where shap misses its own definition, each with an enumeration ---------------------------------------


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(call(), dtype=float)


def test_the_whole_background_counts():
    model = LogisticRegression().fit(X, Y > 0.4)
    expected = truth(model.decision_function, X, X[:4])
    np.testing.assert_allclose(ours.LinearExplainer(model, X).shap_values(X[:4]), expected, atol=1e-12)
    values = ours.Explainer(FOREST.predict, FRAME.to_numpy())(X[:4]).values
    np.testing.assert_allclose(values, truth(FOREST.predict, X, X[:4]), atol=1e-12)
    # shap takes 100 rows
    theirs = quietly(lambda: shap.LinearExplainer(model, X).shap_values(X[:4]))
    assert np.abs(theirs - expected).max() > 1e-3


def test_trees_compare_numbers_as_the_model_does():
    # shap compares float64 thresholds with its rows in another precision
    x = np.round(X, 1)
    model = RandomForestRegressor(10, random_state=0).fit(x, Y)
    values = ours.TreeExplainer(model, x[:50]).shap_values(x[:4])
    np.testing.assert_allclose(values, truth(model.predict, x[:50], x[:4]), atol=1e-12)


def test_probabilities_are_those_of_the_definition():
    explainer = ours.TreeExplainer(BOOSTED, X[:40], model_output="probability")
    expected = truth(lambda x: BOOSTED.predict_proba(x)[:, 1], X[:40], X[:4])
    values = explainer.shap_values(X[:4])
    np.testing.assert_allclose(values, expected, atol=1e-6)
    theirs = quietly(
        lambda: shap.TreeExplainer(BOOSTED, X[:40], model_output="probability").shap_values(X[:4])
    )
    assert np.abs(theirs - expected).max() > 1e-3
    mean = BOOSTED.predict_proba(X[:40])[:, 1].mean()
    np.testing.assert_allclose(explainer.expected_value, mean, atol=1e-6)
    # before the first call, too, and of pairs, where it was that of two classes
    fresh = ours.TreeExplainer(BOOSTED, X[:40], model_output="probability")
    assert np.shape(fresh.expected_value) == ()
    pairs = fresh.shap_interaction_values(X[:4])
    assert (pairs.shape, np.shape(fresh.expected_value)) == ((4, X.shape[1], X.shape[1]), ())
    np.testing.assert_allclose(pairs.sum(axis=2), values, atol=1e-6)


def test_no_column_is_left_out_by_a_penalty():
    # shap's kernel explainer keeps ten columns unless told otherwise

    def f(x):
        return x.sum(axis=1)

    x = RNG.normal(size=(20, 11))
    explainer = ours.KernelExplainer(f, x[:10])
    expected = x[10:12] - x[:10].mean(axis=0)
    np.testing.assert_allclose(explainer.shap_values(x[10:12]), expected, atol=1e-12)
    theirs = quietly(lambda: shap.KernelExplainer(f, x[:10]).shap_values(x[10:12], silent=True))
    assert np.abs(theirs - expected).max() > 1e-3


def test_trees_behind_an_encoder_of_named_columns():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=120), "kind": rng.choice([*"xyz"], 120)})
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestRegressor(5, random_state=0))
    model.fit(rows, rows.a * (rows.kind == "x"))
    few, background = rows[:3], rows[50:90]
    answers = model.predict(few)
    by_covers = ours.TreeExplainer(model)
    sums = by_covers.shap_values(few).sum(axis=1) + by_covers.expected_value
    np.testing.assert_allclose(sums, answers, atol=1e-12)
    for row, values in zip(
        few.itertuples(index=False), ours.TreeExplainer(model, background)(few).values, strict=True
    ):

        def mean_with(kept, row=row):
            return model.predict(background.assign(**{name: getattr(row, name) for name in kept})).mean()

        alone, rest = mean_with(["a"]) - mean_with([]), mean_with(["a", "kind"]) - mean_with(["kind"])
        total = mean_with(["a", "kind"]) - mean_with([])
        np.testing.assert_allclose(values, [(alone + rest) / 2, total - (alone + rest) / 2], atol=1e-12)


def test_trees_of_catboost_that_are_not_symmetric_add_up():
    options = {"iterations": 5, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoostRegressor(grow_policy="Lossguide", **options).fit(X, Y)
    explainer = ours.TreeExplainer(model)
    total = explainer.expected_value + explainer.shap_values(X).sum(axis=1)
    np.testing.assert_allclose(total, model.predict(X), atol=1e-12)
    theirs = quietly(lambda: shap.TreeExplainer(model).shap_values(X, check_additivity=False))
    assert np.abs(theirs.sum(axis=1) + explainer.expected_value - model.predict(X)).max() > 1e-2


# -- samples ------------------------------------------------------------------------------------------------


def test_samples_have_errors_that_cover_and_add_up():
    d = 14
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=d), rng.normal(size=(40, d))

    def f(table):
        return np.tanh(table @ w / 3) + table[:, 0] * table[:, 1]

    explanation = ours.PermutationExplainer(f, x[:20], seed=3)(x[20:23])
    values, errors = explanation.values, explanation.error_std
    np.testing.assert_allclose(explanation.base_values, f(x[:20]).mean())
    np.testing.assert_allclose(values.sum(axis=1) + explanation.base_values, f(x[20:23]), atol=1e-12)
    exact = ours.ExactExplainer(f, x[:20])(x[20:23]).values
    assert (errors > 0).any()
    assert np.mean(np.abs(values - exact) <= 3 * errors + 1e-12) > 0.97
    again = ours.PermutationExplainer(f, x[:20], seed=3)(x[22:23]).values
    assert np.array_equal(again[0], values[2])


def test_weights_of_a_summary_count_in_samples():
    x = RNG.normal(size=(200, 14))

    def f(table):
        return np.tanh(table).sum(axis=1) + table[:, 0] * table[:, 1]

    summary = shap.kmeans(x, 4)
    explainer = ours.KernelExplainer(f, summary)
    values = explainer.shap_values(x[:2], nsamples=1000)
    weights = summary.weights / summary.weights.sum()
    np.testing.assert_allclose(explainer.expected_value, weights @ f(summary.data))
    expected = np.tanh(x[:2]) - weights @ np.tanh(summary.data)
    np.testing.assert_allclose(values[:, 2:], expected[:, 2:], atol=0.02)


# -- interface ----------------------------------------------------------------------------------------------


def test_one_row_is_a_background():
    values = ours.TreeExplainer(FOREST, X[:1]).shap_values(X[5:8])
    np.testing.assert_allclose(values, truth(FOREST.predict, X[:1], X[5:8]), atol=1e-12)
    flat = ours.KernelExplainer(FOREST.predict, X[0]).shap_values(X[5])
    np.testing.assert_allclose(flat, values[0], atol=1e-12)


@pytest.mark.parametrize("row", [X[7], pd.Series(X[7], index=FRAME.columns), FRAME.iloc[7]], ids=type)
def test_a_row_without_its_axis(row):
    whole = ours.TreeExplainer(FOREST).shap_values(X[7:8])
    assert np.array_equal(ours.TreeExplainer(FOREST).shap_values(np.asarray(row)), whole[0])
    linear = ours.LinearExplainer(Ridge().fit(X, Y), X)
    assert linear.shap_values(row).shape == (5,)
    assert ours.TreeExplainer(FOREST)(X[7]).values.shape == (5,)


def test_explanations_are_shap_s_own():
    explanation = ours.TreeExplainer(RandomForestClassifier(4, random_state=0).fit(FRAME, Y > 0.4))(FRAME[:6])
    assert isinstance(explanation, shap.Explanation)
    assert ours.Explanation is shap.Explanation
    assert explanation.feature_names == [*FRAME]
    assert explanation.output_names == ["Output 0", "Output 1"]
    assert explanation.values.shape == (6, 5, 2)
    assert explanation[..., 1].base_values.shape == (6,)
    assert ours.plots is shap.plots
    with pytest.raises(AttributeError):
        _ = ours.no_such_name


@pytest.mark.parametrize("named", [False, True])
def test_rows_of_a_dmatrix(named):
    rows = FRAME[:20].copy()
    rows.iloc[::3, 0] = np.nan
    rows.iloc[::4, 1] = 0.0
    rows = rows if named else rows.to_numpy()
    model = xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(FRAME if named else X, Y), 10)
    values = ours.TreeExplainer(model).shap_values(xgboost.DMatrix(rows))
    np.testing.assert_array_equal(values, ours.TreeExplainer(model).shap_values(rows))
    np.testing.assert_allclose(
        values, model.predict(xgboost.DMatrix(rows), pred_contribs=True)[:, :-1], atol=1e-6
    )


def test_texts_and_other_algorithms_are_for_shap_itself():
    def length(texts):
        return np.array([float(len(text)) for text in texts])

    explainer = ours.Explainer(length, shap.maskers.Text(r"\W"))
    assert isinstance(explainer, shap.Explainer)
    explanation = explainer(["good wine"], silent=True)
    assert explanation.values.sum() + explanation.base_values == pytest.approx(9.0)
    masker = shap.maskers.Partition(X[:20])
    for arguments, options in (((), {"algorithm": "partition"}), ((shap.links.identity, "partition"), {})):
        its = ours.Explainer(FOREST.predict, masker, *arguments, **options)
        assert isinstance(its, shap.PartitionExplainer)


def product(table):
    return np.prod(np.asarray(table)[:, :3], axis=1)


@pytest.mark.parametrize(
    "explain",
    [
        lambda its, masker: its.Explainer(product, masker),
        lambda its, masker: its.ExactExplainer(product, masker),
        lambda its, masker: its.ExactExplainer(product, masker=masker),
    ],
)
def test_partitions_of_features_are_for_shap_itself(explain):
    """A masker with a clustering makes another game, Owen's: its groups were dropped without a word."""
    masker = shap.maskers.Partition(np.column_stack([X[:20, 0], X[:20, 0] ** 3, X[:20, 1:4]]))
    explainer, rows = explain(ours, masker), masker.data[:3]
    assert not isinstance(explainer, ours.Explainer)
    theirs = explain(shap, masker)(rows, silent=True).values
    np.testing.assert_allclose(explainer(rows, silent=True).values, theirs, atol=1e-12)
    assert np.abs(ours.ExactExplainer(product, masker.data)(rows).values - theirs).max() > 0.01
    # trees know no groups, there as here
    assert isinstance(ours.Explainer(FOREST, shap.maskers.Partition(X[:20])), ours.TreeExplainer)


def test_groups_of_a_summary_are_for_shap_itself():
    groups = [np.array([0, 1]), np.array([2]), np.array([3]), np.array([4])]
    summary = shap.utils._legacy.DenseData(X[:20], ["a", "b", "c", "d"], groups)
    for explainer in (ours.KernelExplainer(product, summary), ours.KernelExplainer(product, data=summary)):
        assert explainer.shap_values(X[20:22], silent=True).shape == (2, 4)


def test_weights_of_a_summary_are_met_exactly():
    """Weights were rounded to a part in 10,000: an estimator that is read was explained to five digits."""
    summary = shap.kmeans(X[:97], 6)
    expected = sum(
        w * truth(FOREST.predict, row[None], X[100:103])
        for w, row in zip(summary.weights / summary.weights.sum(), summary.data, strict=True)
    )
    for explainer in (ours.TreeExplainer(FOREST, summary), ours.KernelExplainer(FOREST.predict, summary)):
        np.testing.assert_allclose(explainer.shap_values(X[100:103]), expected, rtol=0, atol=1e-12)


def test_the_version_is_that_of_shap():
    assert ours.__version__ == shap.__version__


def test_the_kind_of_explainer():
    kinds = {
        "TreeExplainer": ours.Explainer(FOREST),
        "LinearExplainer": ours.Explainer(Ridge().fit(X, Y), X),
        "ExactExplainer": ours.Explainer(FOREST.predict, X[:20]),
        "PermutationExplainer": ours.Explainer(lambda x: x.sum(axis=1), RNG.normal(size=(20, 11))),
        "KernelExplainer": ours.Explainer(FOREST.predict, X[:20], algorithm="kernel"),
    }
    for name, explainer in kinds.items():
        assert type(explainer).__name__ == name
        assert isinstance(explainer, ours.Explainer)
    with pytest.warns(UserWarning, match="data= is ignored"):
        assert ours.TreeExplainer(FOREST, X[:9], feature_perturbation="tree_path_dependent").by_covers
    assert ours.Explainer(FOREST, X[:30]).feature_perturbation == "interventional"


def test_interactions():
    explainer = ours.TreeExplainer(BOOSTED)
    pairs, values = explainer.shap_interaction_values(X[:4]), explainer.shap_values(X[:4])
    np.testing.assert_allclose(pairs.sum(axis=2), values, atol=1e-12)
    assert explainer(X[:4], interactions=True).values.shape == (4, 5, 5)
    # against background rows shap has none
    against = ours.TreeExplainer(FOREST, X[:30])
    np.testing.assert_allclose(
        against.shap_interaction_values(X[:4]).sum(axis=2), against.shap_values(X[:4]), atol=1e-10
    )


def test_explainers_can_be_pickled():
    for explainer in (ours.TreeExplainer(FOREST), ours.LinearExplainer(Ridge().fit(X, Y), X)):
        other = pickle.loads(pickle.dumps(explainer))
        assert np.array_equal(other.shap_values(X[:3]), explainer.shap_values(X[:3]))


def test_frames_reach_functions_as_in_shap():
    seen = []

    def f(table):
        seen.append(type(table))
        return np.asarray(table, dtype=float)[:, 0]

    ours.KernelExplainer(f, FRAME[:10]).shap_values(FRAME[:2])
    assert set(seen) == {np.ndarray}
    seen.clear()
    ours.PermutationExplainer(f, FRAME[:10])(FRAME[:2])
    assert set(seen) == {pd.DataFrame}


@pytest.mark.parametrize(
    ("call", "name", "kind"),
    [
        (lambda s: s.TreeExplainer(Ridge().fit(X, Y)), "InvalidModelError", InputError),
        (
            lambda s: s.TreeExplainer(FOREST, feature_perturbation="no"),
            "InvalidFeaturePerturbationError",
            InputError,
        ),
        (lambda s: s.TreeExplainer(FOREST, model_output="probability"), "ValueError", ValueError),
        (lambda s: s.LinearExplainer(FOREST, X), "InvalidModelError", InputError),
        (lambda s: s.Explainer(3, X), "TypeError", TypeError),
        (lambda s: s.KernelExplainer(FOREST, X), "TypeError", TypeError),
    ],
)
def test_errors_are_shap_s_own_too(call, name, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as theirs:
            call(shap)
    assert type(theirs.value).__name__ == name
    with pytest.raises(type(theirs.value)):
        call(ours)
    with pytest.raises(kind):
        call(ours)


CATEGORIES = catboost.CatBoostRegressor(
    iterations=3, verbose=0, cat_features=[0], one_hot_max_size=5, allow_writing_files=False
).fit([["a", 1.0], ["b", 2.0], ["a", 3.0], ["b", 4.0]], [1.0, 2.0, 3.0, 4.0])


def pool_of_categories():
    return catboost.Pool([["a", 1.0]], cat_features=[0])


def with_categories():
    return xgboost.DMatrix(X, feature_types=["c", *"qqqq"], enable_categorical=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ours.TreeExplainer(FOREST).shap_values(X[:2], y=Y[:2]), "log_loss"),
        (lambda: ours.TreeExplainer(FOREST, X[:9], model_output="log_loss"), "log_loss"),
        (lambda: ours.TreeExplainer(FOREST).shap_values(X[:2], tree_limit=3), "tree_limit"),
        (lambda: ours.TreeExplainer(FOREST, X[:9], model_output="odds"), "odds"),
        (lambda: ours.Explainer(FOREST, algorithm="magic"), "magic"),
        (lambda: ours.Explainer(FOREST.predict), "masker cannot be None"),
        (lambda: ours.LinearExplainer(Ridge().fit(X, Y), X[:, :3]), "3 columns"),
        (
            lambda: ours.LinearExplainer(Ridge().fit(X, Y), X, feature_perturbation="correlation_dependent"),
            "correlation",
        ),
        (lambda: ours.LinearExplainer(Ridge().fit(X, Y), shap.maskers.Impute(X)), "maskers.Impute"),
        (lambda: ours.Explainer(FOREST.predict, shap.maskers.Impute(X)), "maskers.Impute"),
        (lambda: ours.KernelExplainer(FOREST.predict, X[:9], link="probit"), "probit"),
        (lambda: ours.KernelExplainer(FOREST.predict, X[:9]).shap_values(X[:2, :3]), "3 columns"),
        (lambda: ours.KernelExplainer(FOREST.predict, object()), "table"),
        (lambda: ours.KernelExplainer(product, X[:9]).shap_values(X[20:21], nsamples="many"), "'many' is no"),
        (lambda: ours.PermutationExplainer(product, X[:9])(X[20:21], max_evals=0), "0 is no number"),
        (lambda: ours.TreeExplainer(CATEGORIES).shap_values(pool_of_categories()), "a Pool gives no"),
        (lambda: ours.ExactExplainer(FOREST.predict, X[:9])(X[:2], interactions=2), "interactions"),
        (lambda: ours.TreeExplainer(BOOSTED).shap_values(with_categories()), "codes in the place"),
    ],
)
def test_misuse(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_few_coalitions_of_many_columns():
    """One coalition of 40 columns was refused in the name of max_calls, which shap does not have."""
    x = RNG.normal(size=(20, 40))
    explainer = ours.KernelExplainer(lambda table: np.tanh(table).prod(axis=1) + table[:, 0], x[:9])
    explanation = explainer(x[9:10], nsamples=1)
    total = explanation.values.sum(axis=1) + explanation.base_values
    np.testing.assert_allclose(total, explainer.model(x[9:10]), atol=1e-12)
    assert explanation.error_std is None or np.isfinite(explanation.error_std).all()


def test_unknown_keywords_are_refused():
    for call in (
        lambda: ours.TreeExplainer(FOREST, dta=X),
        lambda: ours.LinearExplainer(Ridge().fit(X, Y), X, nsample=3),
        lambda: ours.KernelExplainer(FOREST.predict, X[:9], lnk="logit"),
    ):
        with pytest.raises(TypeError, match="unexpected keyword"):
            call()


def test_interventional_without_data_warns():
    with pytest.warns(FutureWarning, match="pass data="):
        explainer = ours.TreeExplainer(FOREST, feature_perturbation="interventional")
    assert explainer.by_covers
    with pytest.warns(UserWarning, match="exact"):
        explainer.shap_values(X[:2], approximate=True)


def test_links_of_wide_functions_are_refused():
    x = RNG.normal(size=(30, 14))

    def f(table):
        return 1 / (1 + np.exp(-table.sum(axis=1)))

    with pytest.raises(InputError, match="explain the margin"):
        ours.PermutationExplainer(f, x[:10], link=shap.links.logit)(x[10:12])


def test_margins_of_boosted_classifiers_are_raw():
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, Y > 0.4)
    explainer = ours.TreeExplainer(model, X[:30])
    np.testing.assert_allclose(explainer.expected_value, model.decision_function(X[:30]).mean())
    probability = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1).fit(X, Y > 0.4)
    total = ours.TreeExplainer(probability).shap_values(X).sum(axis=1)
    total += ours.TreeExplainer(probability).expected_value
    np.testing.assert_allclose(total, probability.predict(X, raw_score=True), atol=1e-12)


# -- without shap, and in its place -------------------------------------------------------------------------


def test_an_explanation_without_shap():
    values, base = RNG.normal(size=(4, 3, 2)), np.zeros((4, 2))
    e = Explanation(values, base, data=X[:4, :3], feature_names=["a", "b", "c"], output_names=["no", "yes"])
    assert len(e) == 4
    assert e.shape == (4, 3, 2)
    assert np.array_equal(e[1].values, values[1])
    assert np.array_equal(e[:, "b", "yes"].values, values[:, 1, 1])
    assert np.array_equal(e[..., 1].base_values, base[:, 1])
    assert np.array_equal(e[:2, :, 0].data, X[:2, :3])
    assert np.array_equal(e.abs.mean(0).values, np.abs(values).mean(0))
    assert np.array_equal(e.max(0).values, values.max(0))
    assert np.array_equal(e.min(1).values, values.min(1))
    assert np.array_equal(e.sum(0).values, values.sum(0))
    with pytest.raises(InputError, match="names are"):
        _ = e[:, "d"]


WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "shap":
            raise ModuleNotFoundError(name)

import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "shap" else found(name, package)
sys.meta_path.insert(0, Hidden())
import numpy as np
from limes.compat import shap
from sklearn.tree import DecisionTreeRegressor
X = np.random.default_rng(0).normal(size=(50, 3))
model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X[:, 0])
explanation = shap.Explainer(model)(X[:4])
assert type(explanation).__module__ == "limes.compat.shap.explanation"
assert abs(explanation.values.sum(1) + explanation.base_values - model.predict(X[:4])).max() < 1e-12
try:
    shap.TreeExplainer(3)
except ValueError as error:
    print(error)
try:
    shap.Explainer(model.predict, X, algorithm="partition")
except ValueError as error:
    print(error)
try:
    shap.plots
except AttributeError as error:
    print(error)
shap.install()
import shap as again
assert again is shap
"""

INSTALLED = """
import limes.compat.shap
limes.compat.shap.install()
limes.compat.shap.install()
import shap
from shap.utils._legacy import DenseData
import shap.plots
from shap import TreeExplainer
from shap.maskers import Independent
assert shap is limes.compat.shap
assert TreeExplainer.__module__ == "limes.compat.shap.trees"
assert shap.plots.beeswarm.__module__.startswith("shap.plots")
"""

TOO_LATE = """
import shap
from shap.utils._legacy import DenseData
import limes.compat.shap
try:
    limes.compat.shap.install()
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [(WITHOUT, "pip install shap"), (INSTALLED, ""), (TOO_LATE, "first of all")],
    ids=["without", "installed", "too late"],
)
def test_shap_means_the_drop_in(code, printed):
    options = {"capture_output": True, "text": True}
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False, **options)
    assert result.returncode == 0, result.stderr
    assert printed in result.stdout
