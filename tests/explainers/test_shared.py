"""Explainers that threads share give the explanations of a single thread, bit for bit."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import limes
from internals import LRUCache, Rows, _identity, state_of
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import ModelError

THREADS = 8


@pytest.fixture
def hurried():
    """Threads take turns after every few instructions, so that races are seen."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def background():
    return np.random.default_rng(0).normal(size=(200, 3))


def bent(X):
    return np.tanh(X[:, 0] + X[:, 1] * X[:, 2])


def in_threads(work, count=THREADS):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.mark.usefixtures("hurried")
def test_sampled_rows_are_those_of_one_thread(background):
    """Rows of one call were cleared by another that ended: IndexError in three calls of four."""
    explainer = limes.TabularExplainer(bent, background, max_calls=64, control="none")
    alone = explainer(background[:24], progress=False)

    def explained(i):
        # the same rows in all threads, in a different order in each
        order = np.roll(np.arange(24), 3 * i)
        return order, explainer(background[order], progress=False)

    for order, together in in_threads(explained):
        assert np.array_equal(together.coefficients.values, alone.coefficients.values[order])
        assert np.array_equal(
            together.coefficients.standard_errors, alone.coefficients.standard_errors[order]
        )


@pytest.mark.usefixtures("hurried")
def test_single_sampled_rows_are_those_of_one_thread(background):
    explainer = limes.TabularExplainer(bent, background, max_calls=64, control="none")
    alone = explainer(background[:8], progress=False).coefficients.values
    result = in_threads(
        lambda _: [explainer(row, progress=False).coefficients.values[0] for row in background[:8]]
    )
    assert all(np.array_equal(one, alone) for one in result)


def forest(X):
    return RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, bent(X))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda X: bent, {"max_calls": 64, "control": "additive"}),
        (forest, {}),
        (forest, {"weights": "euclidean"}),
        (lambda X: LinearRegression().fit(X, bent(X)), {}),
    ],
    ids=["sampled", "forest", "forest, smooth weights", "linear"],
)
def test_explanations_beside_diagnoses_are_those_of_one_thread(background, make, options):
    """A diagnosis asks the same expectation about other bandwidths."""
    explainer = limes.TabularExplainer(make(background), background, **options)
    alone = explainer(background[:12], progress=False)
    limes.diagnose(alone[:2], progress=False)

    def explained(i):
        if i % 4 == 1:
            limes.diagnose(alone[:2], progress=False)
        order = np.roll(np.arange(12), 3 * i)
        return order, explainer(background[order], progress=False)

    for order, together in in_threads(explained):
        assert np.array_equal(together.coefficients.values, alone.coefficients.values[order])
        assert np.array_equal(together.coefficients.intercepts, alone.coefficients.intercepts[order])
        assert np.array_equal(
            together.coefficients.standard_errors, alone.coefficients.standard_errors[order]
        )


def test_a_failed_call_resumes_beside_others(background):
    """Another thread's success does not forget what this one was answered."""
    failing, sizes = [True], []

    def model(X):
        sizes.append(len(X))
        # the second row is the one near 5
        if failing[0] and len(X) > 2 and np.median(X[:, 0]) > 0.6:
            raise ConnectionError("gone")
        return bent(X)

    rows = np.vstack([background[0], [2.0, 0.0, 0.0]])
    options = {"max_calls": 64, "control": "none", "bandwidth": 0.5, "contributions": False}
    explainer = limes.TabularExplainer(model, background, **options)
    with pytest.raises(ModelError, match="gone"):
        explainer(rows, progress=False)
    explainer(background[1:2], progress=False)
    failing[0] = False
    sizes.clear()
    result = explainer(rows, progress=False)
    # a few rows again, the rows themselves, and the second one's 64 perturbed rows: the first one is kept
    assert sum(sizes) <= 8 + 2 + 64
    clean = limes.TabularExplainer(bent, background, **options)(rows)
    assert np.array_equal(result.coefficients.values, clean.coefficients.values)
    sizes.clear()
    explainer(rows[:1], progress=False)
    assert sum(sizes) > 8 + 2, "rows that are finished are not kept for ever"


def test_equal_rows_of_a_call_are_sampled_once(background):
    sizes = []

    def model(X):
        sizes.append(len(X))
        return bent(X)

    explainer = limes.TabularExplainer(model, background, max_calls=64, control="none", contributions=False)
    sizes.clear()
    result = explainer(background[[3, 3, 3]], progress=False, workers=2)
    assert sum(sizes) <= 8 + 3 + 64
    assert np.array_equal(result.coefficients.values[0], result.coefficients.values[2])


@pytest.mark.usefixtures("hurried")
def test_two_models_on_one_drop_in_explainer_never_mix(background, monkeypatch):
    """30 of 13,562 answers were the other model's; more where a look at the model takes a moment."""

    def slow(model):
        time.sleep(1e-3)
        return state_of(model)

    monkeypatch.setattr(_identity, "state_of", slow)
    X = background
    positive = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    negative = DecisionTreeRegressor(max_depth=3).fit(X, -5 * X[:, 0])
    explainer = LimeTabularExplainer(X, mode="regression", random_state=0)

    def explained(model):
        return dict(explainer.explain_instance(X[0], model.predict).as_map()[1])

    expected = [explained(model) for model in (positive, negative)]
    assert expected[0] != expected[1]

    def work(i):
        model = (positive, negative)[i % 2]
        return [explained(model) == expected[i % 2] for _ in range(15)]

    assert all(all(same) for same in in_threads(work, 8))


def test_a_diagnosis_leaves_the_explainers_table(background):
    """Each bandwidth of a diagnosis evicted the table, so that the next explanation made it again."""
    X = background
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, X[:, 0])
    explainer = limes.TabularExplainer(model, X)
    expectation = explainer._model.bound.expectation
    explainer(X[:2], progress=False)
    tables, make = [], expectation._table
    expectation._table = lambda variants: tables.append(1) or make(variants)
    for bandwidth in (0.5, 1.0):
        other = limes.TabularExplainer(model, X, bandwidth=bandwidth)
        family = other._model.family
        expectation.at(Rows(family, X[:2], family.cells(X[:2])))
    assert len(tables) == 2
    explainer(X[2:4], progress=False)
    assert len(tables) == 2


def test_recent_keeps_what_was_used_last_and_no_more_than_it_may():
    recent = LRUCache(2, largest=100)
    assert recent.get("a", lambda: 1, lambda _: 10) == 1
    assert recent.get("b", lambda: 2, lambda _: 10) == 2
    assert recent.get("a", lambda: 3) == 1
    recent.put("c", 4, 10)
    assert recent.take("b") is None
    recent.put("d", 5, 95)
    assert len(recent) == 1
    assert recent.take("d") == 5
    recent.put("e", 6, 1000)
    assert recent.take("e") == 6
    # the sum of bytes follows what is put in the place of others, and taken
    for _ in range(20):
        recent.put("f", 7, 60)
        recent.put("g", 8, 40)
        assert len(recent) == 2
        assert recent.find("f") == 7
        assert recent.take("g") == 8
        assert recent.find("g") is None
