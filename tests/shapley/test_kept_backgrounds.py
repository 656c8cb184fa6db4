"""The background that an explainer keeps: enumeration, and passes that are counted."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import limes
import plain_kernels as plain
from internals import Interventional, _kernels, against, interventional
from limes.models.forms import Forest
from oracle import EXACT


def drawn(seed, *, columns=5, depth=8, outputs=2, codes=4, trees=5):
    """A small forest as limes has it, and as the oracle does."""
    rng = np.random.default_rng(seed)
    its = plain.Trees.random(rng, trees, depth, columns, outputs, codes=codes)
    nodes = {name: getattr(its, name) for name in ("feature", "threshold", "left", "right", "missing_left")}
    value = its.value if outputs > 1 else its.value[:, 0]
    intercept = rng.normal(size=value.shape[1:])
    sets = {"set_of": its.set_of, "sets": its.sets} if codes else {}
    form = Forest(**nodes, value=value, roots=its.roots, intercept=intercept, size=columns, **sets)
    return its, form, rng


def rows_of(rng, count, columns=5):
    return np.where(rng.random((count, columns)) < 0.15, np.nan, rng.integers(-3, 6, (count, columns)) / 2.0)


def check(its, form, x, background, weights, actual):
    for i, row in enumerate(x):
        base, sums = plain.joint_contributions(its, row, background, weights)
        base = base + np.reshape(form.intercept, -1)
        size = np.abs(its.value[its.feature < 0]).max() * len(its.roots)
        for one, other in zip(
            (actual.base[i], actual.values[i], actual.alone[i], actual.last[i]), (base, *sums), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=0, atol=EXACT * size)


@pytest.mark.parametrize("size", [1, 2, 30])
@pytest.mark.parametrize("room", ["all", "some", "nothing", "too many steps"])
def test_forests_by_enumeration(size, room, monkeypatch):
    """Missing values, categories, two outputs, columns that a path tests again, one background row."""
    monkeypatch.setattr(interventional, "_KEPT", {"some": 30_000, "nothing": 0}.get(room, 1 << 26))
    monkeypatch.setattr(interventional, "_STEPS", 0 if room == "too many steps" else 1 << 32)
    its, form, rng = drawn(size)
    x, background = rows_of(rng, 4), rows_of(rng, size)
    x[0] = background[0]
    game = against(form, background)
    check(its, form, x, background, np.full(size, 1.0 / size), game(x, None))


def test_rows_without_weight_say_nothing():
    its, form, rng = drawn(7, outputs=1)
    x, background = rows_of(rng, 3), rows_of(rng, 12)
    weights = np.where(np.arange(12) < 5, 0.2, 0.0)
    game = against(form, background)
    check(its, form, x, background, weights, game(x, weights[None]))
    check(its, form, x, background, weights, game(x, np.tile(weights, (3, 1))))
    check(its, form, x, background[:5], weights[:5], against(form, background[:5])(x, None))


def test_a_row_has_the_same_bits_in_every_batch_and_thread():
    _, form, rng = drawn(3, trees=40)
    x, game = rows_of(rng, 300), against(form, rows_of(rng, 50))
    whole = game(x, None)

    def same(start):
        some = game(x[start : start + 1 + start % 9], None)
        return all(
            np.array_equal(getattr(some, name), getattr(whole, name)[start : start + len(some.base)])
            for name in ("base", "values", "alone", "last")
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(same, range(0, 290, 7)))


def model_and_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6)).astype(np.float32).astype(float)
    model = RandomForestRegressor(20, max_depth=9, random_state=0).fit(x, x[:, 0] * x[:, 1] + x[:, 2])
    return model, x


@pytest.mark.parametrize("bandwidth", [np.inf, 1.0])
@pytest.mark.parametrize("count", [1, 20, 21, 300])
def test_a_call_takes_its_rows_through_the_trees_once(count, bandwidth, monkeypatch):
    """Coefficients and contributions of few rows in a call; those of many rows when they are read."""
    model, x = model_and_rows()
    explainer = limes.TabularExplainer(model, x[:50], law="joint", bandwidth=bandwidth)
    explainer.contributions(x[:1])  # what is kept
    passes, name = [], "add_against" if np.isinf(bandwidth) else "add_joint_contributions"
    kernel = getattr(_kernels, name)

    def counted(*arguments):
        passes.append(arguments)
        return kernel(*arguments)

    monkeypatch.setattr(_kernels, name, counted)
    first = explainer(x[:count], progress=False).contributions
    assert len(passes) == 1
    passes.clear()
    alone = explainer.contributions(x[:count]).contributions
    assert len(passes) == 1
    np.testing.assert_array_equal(first.values, alone.values)
    assert (first.standard_errors == 0).all()


def test_copies_of_an_explainer_have_the_same_bits():
    model, x = model_and_rows()
    explainer = limes.TabularExplainer(model, x[:50], law="joint", bandwidth=np.inf)
    account = explainer.contributions(x[60:65]).contributions
    copied = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(copied.contributions(x[60:65]).contributions.values, account.values)


def test_samples_of_a_population_have_errors_by_parts():
    model, x = model_and_rows()
    law = limes.TabularExplainer(model, x[:64], law="joint", bandwidth=np.inf)._model.law
    form = limes.models.read(model)
    cells = law.cells(x[70:73])
    whole = Interventional(form, form.predict, law).at(x[70:73], cells)
    part = Interventional(form, form.predict, replace(law, population=256)).at(x[70:73], cells)
    np.testing.assert_array_equal(part.values, whole.values)
    assert (part.errors > 0).any()
    assert (whole.errors == 0).all()


def test_sums_are_functions_less_their_means():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 7))
    model = LinearRegression().fit(x, x @ np.arange(7.0) + rng.normal(size=200))
    explainer = limes.TabularExplainer(model, x[:90], law="joint", bandwidth=np.inf)
    account = explainer.contributions(x[100:110]).contributions
    expected = model.coef_ * (x[100:110] - x[:90].mean(axis=0))
    for numbers in (account.values, account.alone, account.last):
        np.testing.assert_allclose(numbers, expected, rtol=0, atol=EXACT * np.abs(expected).max())
    np.testing.assert_allclose(account.base_values, model.predict(x[:90]).mean(), rtol=EXACT)
