"""Contributions of a table's function from 16 calls on: coverage, budgets, enumeration, no jump of errors.

Oracles ask about every row that a game has, or read the model whose answers are asked for one by one.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import limes
from coalitions import game, shapley
from effort import repeats
from internals import IndependentDraws, ProductStarts, enumerated
from limes.exceptions import InputError

D = 8
RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, D))
LEVELS = RNG.integers(0, 3, size=(300, D)).astype(float)


class Counted:
    """A function, and how many rows it was asked about."""

    def __init__(self, function):
        self.function, self.rows = function, 0

    def __call__(self, rows):
        self.rows += len(rows)
        return self.function(np.asarray(rows, dtype=float))


def curved(x):
    return x[:, 0] * x[:, 1] + (x[:, 2] > 0.3) * x[:, 0] + x.sum(axis=1) / 3.0


# -- coverage ------------------------------------------------------------------------------------------------


def _of_levels(kind, seed):
    """Functions that no constant was chosen by, of columns with three values."""
    rng = np.random.default_rng([seed, len(kind)])
    sets = [rng.choice(D, size, replace=False) for size in (2, 3, 3, 4)]
    sizes, slopes = rng.uniform(1.0, 3.0, 4) * rng.choice([-1, 1], 4), rng.normal(size=(D, 3))

    def f(x):
        x = np.asarray(x, dtype=float)
        if kind == "linear":
            return x @ slopes[:, 0]
        if kind == "dense":
            alone = sum(slopes[j, x[:, j].astype(int)] for j in range(D))
            return alone + np.sin(x @ slopes[:, 1])
        each = {
            "products": lambda c: np.prod(x[:, c] - 0.8, axis=1),
            "all": lambda c: (x[:, c] > 0).all(axis=1),
            "any": lambda c: (x[:, c] > 1).any(axis=1),
        }[kind]
        return sum(size * each(c) for size, c in zip(sizes, sets, strict=True)) + 0.1 * x @ slopes[:, 0]

    return f


def _by_all_rows(f, row):
    """Contributions and base by the answers to all rows of the game."""
    model = limes.TabularExplainer(f, LEVELS, max_calls=200)._model
    law = IndependentDraws(row, ProductStarts(model.account.at(row)), model.account)
    account = enumerated(law, f(row[None]), lambda x: f(x)[:, None], 3**D)
    return account.values[0, :, 0], float(account.base[0, 0])


def _forest(seed):
    rng = np.random.default_rng(seed)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + (X[:, 3] > 0) * X[:, 4] + 0.1 * rng.normal(size=len(X))
    kind = RandomForestRegressor(15, max_depth=6, random_state=seed)
    return (GradientBoostingRegressor(random_state=seed) if seed % 2 else kind).fit(X, y)


@pytest.fixture(scope="module")
def cases():
    """(function, background, row, contributions, base)"""
    every = []
    for seed in range(repeats(6, 3)):
        for kind in ("linear", "products", "all", "any", "dense"):
            f, row = _of_levels(kind, seed), LEVELS[seed]
            every.append((f, LEVELS, row, *_by_all_rows(f, row)))
        model, row = _forest(seed), X[seed]
        exact = limes.TabularExplainer(model, X).contributions(row)
        assert exact.method == "exact"
        account = exact.contributions
        # a function, behind which nothing is read
        answers = lambda x, m=model: m.predict(x)  # noqa: E731
        every.append((answers, X, row, account.values[0], account.base_values[0]))
    return every


@pytest.mark.parametrize("most", [16, 24, 32, 64, 126, 180])
def test_intervals_cover_and_the_largest_too(cases, most):
    inside, largest, of_base = [], [], []
    for f, background, row, phi, base in cases:
        for seed in range(2):
            explanation = limes.TabularExplainer(f, background, max_calls=most, rng=seed).contributions(row)
            account = explanation.contributions
            total = account.base_values[0] + account.values[0].sum()
            assert total == pytest.approx(explanation.predictions[0], rel=1e-9, abs=1e-9)
            assert (account.standard_errors > 0).all()
            covers = np.abs(account.values[0] - phi) <= 1.96 * account.standard_errors[0]
            inside.append(covers.mean())
            largest.append(covers[np.argsort(-np.abs(phi))[:5]].mean())
            of_base.append(abs(account.base_values[0] - base) <= 1.96 * account.base_errors[0])
    assert np.mean(inside) >= 0.93
    assert np.mean(largest) >= 0.93
    # of few bases
    assert np.mean(of_base) >= 0.93 - 2.5 * np.sqrt(0.07 * 0.93 / len(of_base))


@pytest.mark.parametrize("most", [16, 48, 100])
@pytest.mark.parametrize("law", ["joint", "noise"])
def test_intervals_cover_under_the_joint_law_and_of_random_answers(law, most):
    inside = []
    for seed in range(repeats(16, 8)):
        model, row, noise = _forest(seed), X[seed], np.random.default_rng(seed)
        options = {"law": "joint"} if law == "joint" else {}
        size = 0.0 if law == "joint" else 0.3
        f = lambda x, m=model, s=size, r=noise: m.predict(x) + s * r.normal(size=len(x))  # noqa: E731
        phi = limes.TabularExplainer(model, X, **options).contributions(row).contributions.values[0]
        account = limes.TabularExplainer(f, X, max_calls=most, rng=seed, **options).contributions(row)
        errors = account.contributions.standard_errors[0]
        assert (errors > size / D / 4).all()
        inside.append(np.abs(account.contributions.values[0] - phi) <= 1.96 * errors)
    assert np.mean(inside) >= 0.93


def test_errors_of_both_ways_are_alike_where_they_meet(cases):
    """With eight columns pairs of sets begin where 320 calls are left; errors must not rise there."""

    def error(most):
        squares = []
        for f, background, row, phi, _ in cases:
            explainer = limes.TabularExplainer(f, background, max_calls=most)
            account = explainer.contributions(row).contributions
            squares.append(((account.values[0] - phi) ** 2).sum() / (phi**2).sum() + 1e-6)
        return np.exp(np.log(squares).mean())

    errors = {most: error(most) for most in (16, 48, 126, 320, 380)}
    numbers = [*errors.values()]
    # within what so few cases show
    assert all(later <= 1.3 * earlier for earlier, later in pairwise(numbers)), errors
    assert errors[126] < 0.2 * errors[16]


# -- budgets -------------------------------------------------------------------------------------------------

DOORS = {
    "independent": (curved, X, {}),
    "three columns": (curved, X[:, :3], {}),
    "60 columns": (curved, np.random.default_rng(1).normal(size=(120, 60)), {}),
    "joint": (curved, X, {"law": "joint"}),
    "joint, few rows": (curved, X[:6], {"law": "joint"}),
    "few rows": (curved, X[:4], {}),
    "slopes": (curved, X, {"bins": None}),
    "groups": (curved, X, {"groups": {"both": [0, 1]}}),
    "reference": (curved, X, {"reference": X[7]}),
    "levels": (curved, LEVELS, {}),
    "two outputs": (lambda x: np.stack([curved(x), 2.0 - x[:, 3]], axis=1), X, {}),
    "probabilities": (lambda x: np.stack([1.0 - _p(x), _p(x)], axis=1), X, {}),
}


def _p(x):
    return 1.0 / (1.0 + np.exp(-curved(x)))


@pytest.mark.parametrize("most", [16, 17, 26, 28, 64, 110])
@pytest.mark.parametrize("door", DOORS)
def test_contributions_are_never_refused(door, most):
    function, background, options = DOORS[door]
    for alone in (True, False):
        model = Counted(function)
        explainer = limes.TabularExplainer(model, background, max_calls=most, **options)
        explanation = (explainer.contributions if alone else explainer)(background[3:4], progress=False)
        account = explanation.contributions
        assert model.rows <= most
        assert model.rows == explanation.model_calls + int(explanation.shared_calls.max())
        assert np.isfinite(account.values).all()
        assert np.isfinite(account.standard_errors).all()
        np.testing.assert_allclose(
            account.base_values + account.values.sum(axis=1), explanation.predictions, rtol=1e-9, atol=1e-9
        )
        if "reference" not in options and not alone:
            assert np.isfinite(explanation.coefficients.values).all()


def test_a_row_has_the_same_contributions_beside_others_and_in_a_random_models_order():
    explainer = limes.TabularExplainer(curved, X, max_calls=40, rng=3)
    together = explainer.contributions(X[:3], progress=False).contributions
    again = limes.TabularExplainer(curved, X, max_calls=40, rng=3).contributions(X[1:2]).contributions
    np.testing.assert_array_equal(together.values[1], again.values[0])
    np.testing.assert_array_equal(together.standard_errors[1], again.standard_errors[0])
    other = limes.TabularExplainer(curved, X, max_calls=40, rng=4).contributions(X[1:2]).contributions
    assert (other.values != again.values).any()


def test_fewer_calls_than_16_are_refused_with_what_helps():
    with pytest.raises(InputError, match=r"max_calls=12 is too few .* use at least 13"):
        limes.TabularExplainer(curved, X, max_calls=12)
    explainer = limes.TabularExplainer(curved, X, max_calls=15, contributions=False)
    with pytest.raises(InputError, match="used up by coefficients; pass contributions='auto'"):
        explainer(X[:1], progress=False).contributions  # noqa: B018 - computed when read
    explanation = limes.TabularExplainer(curved, X, max_calls=15)(X[:1], progress=False)
    with pytest.raises(InputError, match=r"which need 3: pass max_calls of at least 16"):
        explanation.contributions  # noqa: B018 - computed when read


# -- enumeration ---------------------------------------------------------------------------------------------


def test_all_rows_of_a_small_game_are_asked_about():
    few = np.column_stack([LEVELS[:, 0] > 0, LEVELS[:, 1], LEVELS[:, 2] > 1]).astype(float)

    class Model:
        def predict(self, x):
            x = np.asarray(x, dtype=float)
            return np.stack([x[:, 0] * x[:, 1] + np.abs(x[:, 1] - 1.0) * x[:, 2], x[:, 1] ** 2], axis=1)

    row = few[5]
    for most in (24, 64, 300):  # 12 rows, and 8 to 10 for checks
        model = Counted(Model().predict)
        explainer = limes.TabularExplainer(model, few, max_calls=most)
        account = explainer.contributions(row).contributions
        values, alone, last = shapley(game(Model(), explainer, row))
        np.testing.assert_allclose(account.values[0], values, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(account.alone[0], alone, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(account.last[0], last, rtol=1e-9, atol=1e-12)
        assert not account.standard_errors.any()
        assert not account.base_errors.any()
        assert model.rows <= most


def test_bins_without_a_density_are_enumerated_as_well():
    """Under law="empirical" bins have values of the table alone, few of which are drawn again and again."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        rows = int(rng.integers(5, 40))
        few = rng.integers(0, 3, size=(rows, 2)).astype(float)
        weights, offsets = rng.normal(size=(2, 6)), rng.normal(size=6)

        def model(x, weights=weights, offsets=offsets):
            return np.tanh(np.asarray(x, dtype=float) @ weights + offsets).sum(axis=1)

        explainer = limes.TabularExplainer(model, few, law="empirical", bandwidth=np.inf, rng=seed)
        account = explainer.contributions(few[0], progress=False).contributions
        # columns are drawn from the table, each on its own: all pairs of rows
        left, right = (np.repeat(few[:, 0], rows), np.tile(few[:, 1], rows))
        v = np.empty((2, 2))
        for kept in np.ndindex(2, 2):
            columns = np.where(kept[0], few[0, 0], left), np.where(kept[1], few[0, 1], right)
            v[kept] = model(np.column_stack(columns)).mean()
        first = ((v[1, 0] - v[0, 0]) + (v[1, 1] - v[0, 1])) / 2
        np.testing.assert_allclose(account.base_values[0], v[0, 0], rtol=1e-9)
        np.testing.assert_allclose(account.values[0], [first, v[1, 1] - v[0, 0] - first], atol=1e-10)
        assert not account.standard_errors.any()


def test_all_mixtures_with_a_small_background_are_asked_about():
    background, row = X[:4, :3], X[9, :3]
    explainer = limes.TabularExplainer(curved, background, max_calls=48, law="joint")
    account = explainer.contributions(row).contributions
    weights = explainer._model.law.around(explainer._model.law.cells(row[None])[0]).weights
    v = np.empty((2,) * 3, dtype=object)
    for kept in np.ndindex(*v.shape):
        v[kept] = weights @ curved(np.where(kept, row, background))[:, None]
    np.testing.assert_allclose(account.values[0], shapley(v)[0][:, 0], rtol=1e-9, atol=1e-12)
    assert not account.standard_errors.any()


def test_random_answers_are_never_exact():
    few, noise = (LEVELS[:, :3] > 0).astype(float), np.random.default_rng(0)
    explainer = limes.TabularExplainer(lambda x: x[:, 0] + noise.normal(size=len(x)), few, max_calls=64)
    assert (explainer.contributions(few[0]).contributions.standard_errors > 0.05).all()
