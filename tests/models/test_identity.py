"""A model that was fitted again is recognised without calling it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from internals import same_objects, state_of

X, Y = load_iris(return_X_y=True)


def again(model):
    model.fit(X, (Y + 1) % 3)


def in_place(model):
    model.coef_ *= 2.0


def more(model):
    model.set_params(n_estimators=4, warm_start=True).fit(X, Y)


def a_step(model):
    model[-1].fit(model[:-1].transform(X), (Y + 1) % 3)


def bit_by_bit(model):
    model.partial_fit(X, Y)


CHANGES = {
    "a forest": (RandomForestClassifier(3), again),
    "a forest that grows": (RandomForestClassifier(3), more),
    "boosting that grows": (GradientBoostingClassifier(n_estimators=3), more),
    "a pipeline": (make_pipeline(StandardScaler(), DecisionTreeClassifier()), again),
    "a pipeline's step": (make_pipeline(StandardScaler(), DecisionTreeClassifier()), a_step),
    "a vote": (VotingClassifier([("a", DecisionTreeClassifier())], voting="soft"), again),
    "a search": (GridSearchCV(DecisionTreeClassifier(), {"max_depth": [2]}, cv=2), again),
    "coefficients in place": (LogisticRegression(max_iter=1000), in_place),
    "a stream": (SGDClassifier(random_state=0), bit_by_bit),
}


@pytest.mark.parametrize(("model", "change"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(model, change):
    before = state_of(model.fit(X, Y))
    model.predict(X[:1])
    assert same_objects(*before[:3])
    change(model)
    assert not same_objects(*before[:3])


@pytest.mark.parametrize(
    "library", ["xgboost.XGBClassifier", "lightgbm.LGBMClassifier", "catboost.CatBoostClassifier"]
)
def test_a_booster_that_was_trained_again(library):
    home, name = library.split(".")
    quiet = {
        "xgboost": {},
        "lightgbm": {"verbose": -1, "n_jobs": 1},
        "catboost": {"verbose": 0, "allow_writing_files": False},
    }
    model = getattr(pytest.importorskip(home), name)(n_estimators=3, **quiet[home]).fit(X, Y)
    before = state_of(model)
    model.predict_proba(X[:1])
    assert same_objects(*before[:3])
    again(model)
    assert not same_objects(*before[:3])


def test_objects_without_attributes_never_change():
    assert state_of(None).contents == state_of(np.float64(1.0)).contents == []
    assert same_objects(*state_of(None)[:3])


def test_only_scikit_learn_shows_all_of_a_fit():
    assert state_of(RandomForestClassifier(3).fit(X, Y)).complete
    assert state_of(make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, Y)).complete
    booster = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1)
    assert not state_of(booster.fit(X, Y)).complete
    assert not state_of(make_pipeline(StandardScaler(), booster).fit(X, Y)).complete
