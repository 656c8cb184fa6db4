"""Isolation forests: scores are refused, mean path lengths are read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestRegressor

import boosters
import limes
from internals import READERS
from limes.exceptions import InputError, NotReadableError
from limes.models import path_length

X, _ = boosters.numbers()
# the path length is found from a power of two
SAME = 1e-12


def make(x=X, **options):
    return IsolationForest(random_state=0, **{"n_estimators": 20, **options}).fit(x)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_estimators": 1},
        {"max_samples": 2},
        {"max_samples": 1.0},
        {"max_features": 1},
        {"max_features": 2, "bootstrap": True},
        {"contamination": 0.2},
    ],
    ids=str,
)
def test_path_lengths(options):
    form = boosters.assert_reads(path_length(make(**options)), X, tolerance=SAME)
    assert form.roots.size == options.get("n_estimators", 20)
    x = np.nan_to_num(X)
    boosters.assert_reads(path_length(make(x, **options)), x, tolerance=SAME, missing=False)


def test_path_lengths_order_rows_as_scores_do():
    model = make()
    np.testing.assert_array_equal(
        np.argsort(path_length(model).predict(X), kind="stable"),
        np.argsort(model.score_samples(X), kind="stable"),
    )


def test_equal_rows_are_isolated_by_nothing():
    x = np.ones((50, 2))
    form = boosters.assert_reads(path_length(make(x)), x, tolerance=SAME, missing=False)
    assert np.ptp(form.value) == 0


def test_coefficients():
    model = path_length(make(max_samples=8, n_estimators=3))
    boosters.assert_limit(limes.models.read(model), model.predict)
    boosters.assert_coefficients(path_length(make(X[:40])), X[:40])


@pytest.mark.parametrize("output", [None, "margin"])
def test_scores_and_labels_are_refused_with_the_alternative(output):
    model = make()
    assert "limes.models.path_length(model)" in boosters.reason(model, output)
    with pytest.raises(NotReadableError, match="path_length"):
        limes.TabularExplainer(model, X, output=output, method="exact")
    assert (
        limes.TabularExplainer(model, X, output="margin", max_calls=64, control="none")(X[:1]).method
        == "sampled"
    )


def test_models_without_a_path_length_are_refused():
    with pytest.raises(InputError, match="fitted IsolationForest"):
        path_length(IsolationForest())
    with pytest.raises(InputError, match="RandomForestRegressor"):
        path_length(RandomForestRegressor(n_estimators=1).fit(np.nan_to_num(X), X[:, 0] > 0))
    with pytest.raises(InputError, match="one sample"):
        path_length(make(max_samples=1))

    class Subclass(IsolationForest):
        pass

    assert "may score in another way" in boosters.reason(path_length(Subclass(n_estimators=2).fit(X)))
    assert "subclass of IsolationForest" in boosters.reason(Subclass(n_estimators=2).fit(X))


def test_every_booster_has_a_reader_with_a_stated_tolerance():
    single = {name for name, entry in READERS.items() if entry.reader == "xgboost:booster"}
    assert all(READERS[name].tolerance == 1e-5 for name in single)
    for library in ("lightgbm", "catboost"):
        entries = [entry for name, entry in READERS.items() if name.startswith(library)]
        assert len(entries) == 4
        assert all(entry.tolerance == 1e-9 for entry in entries)
