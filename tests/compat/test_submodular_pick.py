"""The submodular pick against brute force and against lime's choice; its arguments and results."""

from __future__ import annotations

from itertools import combinations

import lime.lime_tabular
import lime.submodular_pick
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from limes.compat.lime.lime_image import LimeImageExplainer
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.compat.lime.lime_text import LimeTextExplainer
from limes.compat.lime.submodular_pick import SubmodularPick, picked, sizes
from limes.exceptions import InputError

X, Y = load_iris(return_X_y=True)
FOREST = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y)
MATRICES = arrays(
    float, st.tuples(st.integers(1, 7), st.integers(1, 6)), elements=st.sampled_from([0, 0, 1, 2.5])
)


def coverage(matrix, rows):
    return np.sqrt(matrix.sum(axis=0)) @ (matrix[list(rows)] > 0).any(axis=0)


@given(MATRICES, st.integers(1, 7))
def test_each_pick_adds_most(matrix, count):
    chosen = picked(matrix, count)
    assert len(set(chosen)) == len(chosen) == min(count, len(matrix))
    for m, best in enumerate(chosen):
        others = [i for i in range(len(matrix)) if i not in chosen[:m]]
        most = max(coverage(matrix, [*chosen[:m], i]) for i in others)
        assert coverage(matrix, chosen[: m + 1]) == pytest.approx(most)
        assert best in others


@given(MATRICES, st.integers(1, 4))
def test_greedy_is_near_the_best(matrix, count):
    count = min(count, len(matrix))
    best = max(coverage(matrix, rows) for rows in combinations(range(len(matrix)), count))
    # Nemhauser, Wolsey & Fisher 1978
    assert coverage(matrix, picked(matrix, count)) >= (1 - 1 / np.e) * best - 1e-12


def test_the_same_explanations_are_picked_as_by_lime():
    explainer = lime.lime_tabular.LimeTabularExplainer(X, random_state=0)
    theirs = lime.submodular_pick.SubmodularPick(
        explainer,
        X[::4],
        FOREST.predict_proba,
        method="full",
        num_exps_desired=6,
        num_features=2,
        num_samples=100,
    )
    assert picked(sizes(theirs.explanations), 6) == theirs.V


def test_rows_of_a_table():
    explainer = LimeTabularExplainer(X, random_state=0)
    pick = SubmodularPick(
        explainer, X, FOREST.predict_proba, sample_size=20, num_exps_desired=3, num_features=3
    )
    again = SubmodularPick(
        explainer, X, FOREST.predict_proba, sample_size=20, num_exps_desired=3, num_features=3
    )
    other = SubmodularPick(explainer, X, FOREST.predict_proba, sample_size=20, random_state=5)
    assert (pick.V, pick.indices.tolist()) == (again.V, again.indices.tolist())
    assert pick.indices.tolist() != other.indices.tolist()
    assert len(set(pick.indices.tolist())) == len(pick.explanations) == 20
    for i, explanation in zip(pick.indices, pick.explanations, strict=True):
        assert (
            explanation.local_exp
            == explainer.explain_instance(X[i], FOREST.predict_proba, top_labels=1, num_features=3).local_exp
        )
    assert pick.sp_explanations == [pick.explanations[i] for i in pick.V]


def test_a_frame_and_several_labels():
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(100, 250))
    model = RandomForestClassifier(5, random_state=0).fit(frame, Y)
    explainer = LimeTabularExplainer(frame, random_state=0)
    pick = SubmodularPick(explainer, frame[:6], model.predict_proba, "full", num_exps_desired=2, top_labels=2)
    assert [len(one.local_exp) for one in pick.explanations] == [2] * 6
    # coefficients of two classes nearly cancel, their sizes do not
    assert (sizes(pick.explanations).sum(axis=1) > 0.1).all()


def test_a_regression():
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    explainer = LimeTabularExplainer(X, mode="regression", random_state=0)
    pick = SubmodularPick(explainer, X, model.predict, sample_size=8, num_exps_desired=2, num_features=3)
    assert pick.sp_explanations[0].available_labels() == [1]
    assert sizes(pick.explanations).shape[0] == 8


def test_texts():
    texts = ["good food", "bad food", "good good wine", "bad service", "fine wine and food"]
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, [1, 0, 1, 0, 1])
    pick = SubmodularPick(
        LimeTextExplainer(random_state=0), texts, model.predict_proba, num_exps_desired=2, sample_size=5
    )
    assert len(pick.sp_explanations) == 2


def test_errors_are_advice():
    explainer = LimeTabularExplainer(X, random_state=0)

    def pick(data=X[:3], chosen=explainer, **options):
        return SubmodularPick(chosen, data, FOREST.predict_proba, **options)

    with pytest.raises(InputError, match="did you mean 'sample'"):
        pick(method="samples")
    with pytest.raises(InputError, match="num_exps_desired"):
        pick(num_exps_desired="five")
    with pytest.raises(TypeError, match="top_label"):
        pick(method="full", top_label=3)
    with pytest.warns(UserWarning, match="all of them are explained"):
        pick(num_exps_desired=2)
    with pytest.warns(UserWarning, match="all of them are picked"):
        assert len(pick(method="full").sp_explanations) == 3
    images = np.zeros((2, 8, 8, 3))
    with pytest.raises(InputError, match="tables or texts"):
        SubmodularPick(
            LimeImageExplainer(), images, lambda x: x.mean(axis=(1, 2, 3)), "full",
            segmentation_fn=lambda image: np.eye(8, dtype=int),
        )  # fmt: skip
