"""Numbers of clusters and classes are names: no text depends on their order without saying so."""

import re

import numpy as np
import pandas as pd
import pytest
import xgboost
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.cluster import (
    AffinityPropagation,
    Birch,
    BisectingKMeans,
    KMeans,
    MeanShift,
    MiniBatchKMeans,
)
from sklearn.ensemble import IsolationForest, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier

import limes
from computed_once import ComputedOnce
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
CENTRES = np.array([[-4.0, 0.0], [0.0, 4.0], [4.0, 0.0], [0.0, -4.0]])
GROUPS = RNG.integers(0, 4, 200)
X = pd.DataFrame(CENTRES[GROUPS] + RNG.normal(size=(200, 2)), columns=["a", "b"])
ROW = X.iloc[[3]]
QUICK = {"control": "none", "max_calls": 256}


def k_means(**options):
    return KMeans(4, n_init=2, random_state=0, **options)


CLUSTERERS = ComputedOnce(
    {
        "KMeans": lambda: k_means().fit(X),
        "MiniBatchKMeans": lambda: MiniBatchKMeans(4, n_init=2, random_state=0).fit(X),
        "BisectingKMeans": lambda: BisectingKMeans(4, random_state=0).fit(X),
        "Birch": lambda: Birch(n_clusters=4).fit(X),
        "MeanShift": lambda: MeanShift(bandwidth=3.0).fit(X),
        "AffinityPropagation": lambda: AffinityPropagation(preference=-300, random_state=0).fit(X),
        "Pipeline": lambda: make_pipeline(StandardScaler(), k_means()).fit(X),
        "search": lambda: GridSearchCV(k_means(), {"max_iter": [20, 50]}, cv=2).fit(X),
        "Pipeline in a search": lambda: GridSearchCV(
            make_pipeline(StandardScaler(), k_means()), {"kmeans__max_iter": [20]}, cv=2
        ).fit(X),
    }
)


def explain(model, **options):
    return limes.TabularExplainer(model, X, **QUICK, **options)(ROW)


@pytest.mark.parametrize("name", CLUSTERERS)
def test_a_clusterer_is_explained_by_membership(name):
    model = CLUSTERERS[name]
    numbers = model.predict(X)
    explanation = explain(model)
    clusters = sorted({*numbers.tolist()})
    assert {f"cluster {k}" for k in clusters} <= {*explanation.output_names}
    for k, prediction in zip(explanation.output_names, explanation.predictions[0], strict=True):
        assert prediction == (k == f"cluster {model.predict(ROW)[0]}")
    assert not any("answers" in text for text in explanation.warnings)
    # the bound method gives the same, and says so
    bound = explain(model.predict)
    np.testing.assert_array_equal(bound.coefficients.values, explanation.coefficients.values)
    assert "no amounts" in bound.warnings[0]
    # by enumeration of w: a function of one cluster's membership has the same coefficients
    alone = explain(lambda table: (model.predict(table) == clusters[1]) * 1.0)
    assert alone.coefficients.values == pytest.approx(
        explanation[..., f"cluster {clusters[1]}"].coefficients.values
    )


def test_renumbered_clusters_have_the_same_coefficients():
    model, other = k_means().fit(X), k_means().fit(X)
    order = np.array([3, 0, 2, 1])  # the new number of each cluster
    other.cluster_centers_ = model.cluster_centers_[np.argsort(order)]
    other.labels_ = order[model.labels_]
    np.testing.assert_array_equal(other.predict(X), order[model.predict(X)])
    first, second = explain(model), explain(other)
    for k in range(4):
        same = second[..., f"cluster {order[k]}"]
        assert same.coefficients.values == pytest.approx(first[..., f"cluster {k}"].coefficients.values)


class KModes:
    """Like clusterers of other libraries: a type as an attribute, labels, and no tags."""

    _estimator_type = "clusterer"
    labels_ = np.array([5, 7, 5])

    def predict(self, table):
        return np.where(np.asarray(table)[:, 0] > 0, 7, 5)


def test_a_clusterer_of_another_library():
    explanation = explain(KModes())
    assert explanation.output_names == ("cluster 5", "cluster 7")
    assert explanation.predictions[0].tolist() == [
        1.0 * (ROW["a"].iloc[0] <= 0),
        1.0 * (ROW["a"].iloc[0] > 0),
    ]


@pytest.mark.parametrize(
    "mixture",
    [
        GaussianMixture(3, random_state=0),
        BayesianGaussianMixture(n_components=3, random_state=0),
        make_pipeline(StandardScaler(), GaussianMixture(3, random_state=0)),
    ],
)
def test_a_mixture_is_explained_by_its_probabilities(mixture):
    mixture.fit(X)
    for model in (mixture, mixture.predict, mixture.predict_proba):
        explanation = explain(model)
        assert explanation.predictions == pytest.approx(mixture.predict_proba(ROW))
    assert explain(mixture).output_names == ("cluster 0", "cluster 1", "cluster 2")
    assert "predict_proba is explained" in explain(mixture.predict).warnings[0]


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (2, ("cluster 2",)),
        ("2", ("cluster 2",)),
        ("cluster 2", ("cluster 2",)),
        (np.int64(2), ("cluster 2",)),
        ([1, "cluster 3"], ("cluster 1", "cluster 3")),
        ("probability", ("cluster 0", "cluster 1", "cluster 2", "cluster 3")),
    ],
)
def test_clusters_are_chosen_by_number_or_name(output, names):
    model = CLUSTERERS["KMeans"]
    explanation = explain(model, output=output)
    assert explanation.output_names == names
    wanted = [float(name == f"cluster {model.predict(ROW)[0]}") for name in names]
    assert explanation.predictions.ravel().tolist() == wanted


def test_a_cluster_that_there_is_not_is_refused():
    for output in (4, "cluster 9", "margin"):
        with pytest.raises(InputError, match=re.escape("[0, 1, 2, 3]")):
            explain(CLUSTERERS["KMeans"], output=output)


def test_rules_and_images_of_clusters():
    model = CLUSTERERS["KMeans"]
    sparse = limes.SparseExplainer(model.predict, literals=limes.Literals.fit(X), k=2, output=1)
    assert sparse(ROW).output_names == ("cluster 1",)
    pixels = RNG.normal(size=(60, 16))
    on_pixels = KMeans(3, n_init=1, random_state=0).fit(pixels)
    halves = np.repeat([[0, 0, 1, 1]], 4, axis=0)
    image = limes.ImageExplainer(on_pixels, segments=halves)(pixels[0].reshape(4, 4))
    assert image.predictions[0].argmax() == on_pixels.predict(pixels[:1])[0]
    assert image.output_names == ("cluster 0", "cluster 1", "cluster 2")


def test_classes_of_a_bare_booster_are_a_warning():
    options = {"objective": "multi:softmax", "num_class": 4}
    booster = xgboost.train(options, xgboost.DMatrix(X, GROUPS), 5)
    assert "whole numbers from 0 to 3 alone" in explain(booster).warnings[0]


CLASSIFIERS = {
    "LogisticRegression": LogisticRegression(),
    "XGBoost": XGBClassifier(n_estimators=5),
    "LightGBM": LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1),
    "CatBoost": CatBoostClassifier(iterations=5, verbose=0),
    "Pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "search": GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}, cv=2),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_bound_predict_of_a_classifier_explains_its_probabilities(name):
    model = CLASSIFIERS[name].fit(X, GROUPS)
    explanation, itself = explain(model.predict), explain(model)
    np.testing.assert_array_equal(explanation.coefficients.values, itself.coefficients.values)
    assert explanation.predictions == pytest.approx(model.predict_proba(ROW), abs=1e-6)
    (warning,) = set(explanation.warnings) - set(itself.warnings)
    assert "predict answers labels, which are no amounts: predict_proba is explained" in warning


def test_bound_predict_with_texts_and_without_probabilities():
    texts = np.array(["w", "n", "e", "s"])[GROUPS]
    named = explain(LogisticRegression().fit(X, texts).predict, output="w")
    assert named.output_names == ("w",)
    margins = explain(RidgeClassifier().fit(X, texts).predict)
    assert "decision_function is explained" in margins.warnings[0]


def test_bound_predict_of_a_text_classifier():
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit(["good film", "bad film", "dull film", "good good"], [0, 1, 2, 0])
    explanation = limes.TextExplainer(model.predict)("a good film")
    assert explanation.predictions == pytest.approx(model.predict_proba(["a good film"]))
    assert "predict_proba is explained" in explanation.warnings[0]


@pytest.mark.parametrize("model", [IsolationForest(n_estimators=5, random_state=0), OneClassSVM()])
def test_outlier_detectors_name_their_score(model):
    model.fit(X)
    for passed in (model, model.predict):
        assert "output='margin'" in explain(passed).warnings[0]
    assert not any("outliers" in text for text in explain(model, output="margin").warnings)


FUNCTIONS = {
    "clusters": (lambda table: CLUSTERERS["KMeans"].predict(table), "from 0 to 3"),
    "classes from 1": (lambda table: CLUSTERERS["KMeans"].predict(table) + 1.0, "from 1 to 4"),
    "outliers": (lambda table: np.where(table["a"] > 0, 1, -1), "-1 and 1 alone"),
    "noise among clusters": (lambda table: CLUSTERERS["KMeans"].predict(table) - 1, "from -1 to 2"),
    "two classes": (lambda table: table["a"] > 0, None),
    "amounts": (lambda table: table["a"], None),
    "whole amounts": (lambda table: np.rint(100 * table["a"]), None),
    "whole amounts far from 0": (lambda table: 10 + CLUSTERERS["KMeans"].predict(table), None),
    "probabilities": (LogisticRegression().fit(X, GROUPS).predict_proba, None),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_few_whole_numbers_are_a_warning(name):
    model, words = FUNCTIONS[name]
    explainer = limes.TabularExplainer(model, X, **QUICK)
    for rows in (ROW, X.iloc[:3]):
        explanation = explainer(rows)
        result = [text for text in explanation.warnings if "explained as amounts" in text]
        assert len(result) == (words is not None)
        assert words is None or words in result[0]


@pytest.mark.parametrize("model", [DecisionTreeRegressor(max_depth=2), RandomForestRegressor(1, max_depth=2)])
def test_whole_numbers_of_a_regressor_are_amounts(model):
    model.fit(X, GROUPS)
    for passed in (model, model.predict):
        assert not any("amounts" in text for text in explain(passed).warnings)


@pytest.mark.parametrize("engine", ["limit", "lime"])
@pytest.mark.parametrize("model", [k_means(), LogisticRegression()])
def test_the_drop_in_explains_the_numbers_as_lime_does(model, engine):
    model.fit(X, GROUPS)
    explainer = LimeTabularExplainer(X.to_numpy(), mode="regression", engine=engine, random_state=0)
    explanation = explainer.explain_instance(
        ROW.to_numpy()[0], lambda rows: model.predict(pd.DataFrame(rows, columns=["a", "b"])), num_samples=300
    )
    assert explanation.predicted_value == pytest.approx(float(model.predict(ROW)[0]))
    on_arrays = type(model)(**model.get_params()).fit(X.to_numpy(), GROUPS)
    bound = explainer.explain_instance(ROW.to_numpy()[0], on_arrays.predict, num_samples=300)
    assert bound.predicted_value == pytest.approx(float(on_arrays.predict(ROW.to_numpy())[0]))
