"""Contributions from sets of kept columns: exact games of controls, coverage, budgets, unused columns."""

from __future__ import annotations

import pickle
import tracemalloc
from math import comb

import numpy as np
import pytest
from scipy.stats import qmc

import limes
from coalitions import shapley
from effort import repeats
from internals import (
    BoostedGame,
    Bumps,
    ColumnFunctions,
    IndependentDraws,
    OccurringDraws,
    OccurringStarts,
    ProductStarts,
    SumOfPairs,
    group_regression,
    law_of_sizes,
    weights_of_sets,
)
from limes.exceptions import InputError

RNG = np.random.default_rng(7)
D, USED = 20, 5
X = RNG.normal(size=(300, D))
X[:, 1] = np.round(np.exp(X[:, 1]), 2)
X[:, 4] = X[:, 4] > 0.3
ROW = X[3]
# Functions that no constant of the sampler was chosen by, of the first five columns
FUNCTIONS = {
    "products": lambda u: u[:, 0] * u[:, 2] + u[:, 3] * u[:, 4] + u[:, 1],
    "steps": lambda u: np.floor(u[:, 0] + u[:, 2]) + 2.0 * (u[:, 3] > 0.5) * u[:, 4],
    "interactions alone": lambda u: np.sign(u[:, 0] * u[:, 2]) * (1.0 + u[:, 3]),
    "rare": lambda u: u[:, 0] + 10.0 * ((u[:, 2] > 1.2) & (u[:, 3] > 1.0)),
    # no product with a matrix, whose last bit depends on the number of rows
    "smooth": lambda u: (
        np.tanh(u[:, 0] - 0.3 * u[:, 1] + 0.7 * u[:, 2] + 0.5 * u[:, 3] + u[:, 4])
        + 0.3 * np.sin(2.0 * u[:, 0])
    ),
    "heavy tails": lambda u: np.exp(0.5 * (u[:, 0] + u[:, 2] - u[:, 3])),
    "one column": lambda u: u[:, 2] ** 2,
}


def padded(name):
    return lambda x: np.asarray(FUNCTIONS[name](np.asarray(x)[:, :USED]), dtype=float)


def truth(f, row=ROW, points=1 << 14):
    """Shapley values and base of a function of the first columns, each drawn from the background's values."""
    places = (qmc.Sobol(USED, seed=0).random(points) * len(X)).astype(int)
    drawn = np.take_along_axis(np.sort(X[:, :USED], axis=0), places, axis=0)
    game = np.empty((2,) * USED, dtype=object)
    for kept in np.ndindex(*game.shape):
        game[kept] = np.array([FUNCTIONS[f](np.where(kept, row[:USED], drawn)).mean()])
    return shapley(game)[0][:, 0], float(game[(0,) * USED][0])


def explained(f, calls=500, **options):
    options = {"bandwidth": np.inf, "max_calls": calls, **options}
    return limes.TabularExplainer(f, X, **options)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_cover_and_columns_that_change_nothing_have_small_errors(name):
    phi, mean = truth(name)
    largest, expected = np.abs(phi).max(), np.zeros(D)
    expected[:USED] = phi
    covered, base, unused, squares = [], [], [], []
    for seed in range(repeats(24, 12)):
        account = explained(padded(name), rng=seed).contributions(ROW[None], progress=False).contributions
        errors, away = account.standard_errors[0], np.abs(account.values[0] - expected)
        # the expected numbers have errors of about 0.1 %
        covered.append(away <= 1.96 * errors + 2e-3 * largest)
        base.append(abs(account.base_values[0] - mean) <= 1.96 * account.base_errors[0] + 2e-3 * largest)
        unused.append(errors[USED:].max() / largest)
        squares.append((away**2).mean())
    assert np.mean(covered) >= 0.93
    # of a few bases
    assert np.mean(base) >= 0.93 - 2.5 * np.sqrt(0.07 * 0.93 / len(base))
    # around this row a jump of ten in 2 % of the rows makes contributions of 0.3
    assert np.median(unused) < (0.2 if name == "rare" else 0.1)
    # what a control cannot follow leaves larger errors
    if name not in ("interactions alone", "rare", "steps"):
        assert np.sqrt(np.mean(squares)) < 0.05 * largest


@pytest.mark.parametrize(
    ("size", "shares"), [(5.0, [0.01]), (3.0, [0.17, 0.17]), (10.0, [0.17, 0.17])], ids=str
)
def test_effects_in_few_rows_are_covered(size, shares):
    """Columns that are taken for ones that change nothing, more often than not, or matter together alone."""
    columns = np.array([2, 3])[: len(shares)]
    edges = np.array([np.quantile(X[:, j], 1.0 - share) for j, share in zip(columns, shares, strict=True)])
    acts = X[:, columns] > edges
    game = np.empty((2,) * len(shares), dtype=object)
    for kept in np.ndindex(*game.shape):
        game[kept] = np.array([size * np.where(kept, acts[3], acts.mean(axis=0)).prod()])
    phi, covered, errors = shapley(game)[0][:, 0], [], []
    f = lambda x: x[:, 0] + x[:, 5] + size * (x[:, columns] > edges).all(axis=1)  # noqa: E731
    for seed in range(repeats(24, 12)):
        account = explained(f, rng=seed).contributions(ROW[None], progress=False).contributions
        its = account.standard_errors[0, columns]
        covered.append(np.abs(account.values[0, columns] - phi) <= 1.96 * its)
        errors.append(its.max())
    # both columns of a pair are covered or not together
    assert np.mean(covered) >= 0.93 - 2.5 * np.sqrt(0.07 * 0.93 / len(covered))
    assert max(errors) < 1.0


@pytest.mark.parametrize("most", [300, 500, 1000])
@pytest.mark.parametrize("law", ["empirical", None, "joint"])
def test_no_more_rows_than_max_calls_are_asked(law, most):
    calls = []

    def model(x):
        calls.append(len(x))
        return padded("steps")(x)

    explanation = explained(model, most, law=law, batch_size=64).contributions(X[:2], progress=False)
    # two rows share what is asked before, and a pool of the background's rows
    assert (explanation.calls + explanation.shared_calls + explanation.contributions.calls <= most).all()
    assert sum(calls) == explanation.model_calls + explanation.shared_calls.max()
    assert max(calls) <= 64
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=0, atol=1e-9)


def test_contributions_alone_draw_no_pool_and_refuse_what_the_budget_has_no_calls_for():
    explanation = explained(padded("smooth")).contributions(ROW[None], progress=False)
    assert explanation.shared_calls[0] < 20
    assert explanation.contributions.calls[0] > 400
    with pytest.raises(InputError, match="used up by contributions"):
        _ = explanation.coefficients
    # nor does a look at the warnings ask
    assert explanation.row_warnings is not None


@pytest.mark.parametrize("calls", [500, None])
def test_a_row_has_the_same_numbers_whatever_the_batch_and_the_rows_beside_it(calls):
    f = padded("smooth")
    both = explained(f, calls, rng=5).contributions(X[:2], progress=False).contributions
    for options in ({}, {"batch_size": 7}):
        alone = explained(f, calls, rng=5, **options).contributions(X[1:2], progress=False).contributions
        for name in ("values", "standard_errors", "base_values", "alone", "last", "calls"):
            np.testing.assert_array_equal(getattr(both, name)[1:], getattr(alone, name))
    copied = pickle.loads(pickle.dumps(explained(SMOOTH, calls, rng=5)))
    again = copied.contributions(X[1:2], progress=False).contributions
    np.testing.assert_array_equal(again.values, both.values[1:])


class Smooth:
    def __call__(self, x):
        return padded("smooth")(x)


SMOOTH = Smooth()


def test_the_pool_of_coefficients_serves_contributions():
    """For both readings: the answers that coefficients rest on are in the control."""
    phi, _ = truth("smooth")
    explainer = explained(padded("smooth"), 1000)
    explanation = explainer(ROW[None], progress=False)
    account = explanation.contributions
    assert explanation.shared_calls[0] + explanation.calls[0] + account.calls[0] <= 1000
    assert np.abs(account.values[0, :USED] - phi).max() < 0.1 * np.abs(phi).max()


def test_two_classes_mirror_each_other():
    def model(x):
        p = 1.0 / (1.0 + np.exp(-padded("smooth")(x)))
        return np.column_stack([1.0 - p, p])

    account = explained(model).contributions(ROW[None], progress=False).contributions
    np.testing.assert_array_equal(account.values[..., 0], -account.values[..., 1])
    np.testing.assert_allclose(account.base_values.sum(axis=1), 1.0, atol=1e-12)


def test_random_answers_have_errors():
    noise = np.random.default_rng(0)

    def model(x):
        return padded("products")(x) + 0.5 * noise.normal(size=len(x))

    explanation = explained(model).contributions(ROW[None], progress=False)
    account = explanation.contributions
    phi, _ = truth("products")
    expected = np.append(phi, np.zeros(D - USED))
    assert (np.abs(account.values[0] - expected) < 4.0 * account.standard_errors[0]).all()
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=0, atol=1e-9)


def test_the_base_counts_where_accuracy_is_judged():
    explanation = explained(padded("rare"), 300, tolerance="60%").contributions(ROW[None], progress=False)
    account = explanation.contributions
    largest = np.abs(account.values).max()
    errors = max(account.standard_errors.max(), account.base_errors.max())
    assert account.converged == (errors <= 0.6 * largest)


# -- games of controls ---------------------------------------------------------------------------------------

FEW = 4
COLUMNS = np.array([0, 1, 3])  # of four, of which one is in no game
TABLE = np.column_stack([X[:40, :3], np.repeat([0.0, 1.0, 2.0, np.nan], 10)])
POINT = TABLE[5]


def laws():
    explainer = limes.TabularExplainer(lambda x: x[:, 0], TABLE, bandwidth=np.inf, law="empirical")
    family = explainer._model.account
    yield IndependentDraws(POINT, ProductStarts(family.at(POINT)), family)
    joint = limes.TabularExplainer(lambda x: x[:, 0], TABLE, bandwidth=np.inf, law="joint")._model.law
    around = joint.around(joint.cells(POINT[None])[0])
    answers = TABLE[:, :1]
    yield OccurringDraws(POINT, OccurringStarts(TABLE, answers, around), joint.product)


def enumerated(law, predict):
    """v(S) of all sets of the columns in the game, by all combinations of their values."""
    if isinstance(law, OccurringDraws):
        drawn, weights = TABLE, law.weights
    else:
        grids = np.meshgrid(*(TABLE[:, j] for j in COLUMNS), indexing="ij")
        drawn = np.repeat(POINT[None], grids[0].size, axis=0)
        drawn[:, COLUMNS] = np.stack([grid.ravel() for grid in grids], axis=1)
        weights = np.full(len(drawn), 1.0 / len(drawn))
    game = np.empty((2,) * COLUMNS.size, dtype=object)
    for kept in np.ndindex(*game.shape):
        keeps = np.zeros((1, FEW), dtype=bool)
        keeps[:, COLUMNS] = kept
        game[kept] = weights @ predict(np.where(keeps, POINT, drawn), np.broadcast_to(keeps, drawn.shape))
    return game


@pytest.mark.parametrize("kind", ["pairs", "bumps", "trees"])
@pytest.mark.parametrize("which", [0, 1], ids=["independent", "joint"])
def test_games_of_controls_are_exact(kind, which):
    law = [*laws()][which]
    rng = np.random.default_rng(1)
    x = TABLE[rng.integers(0, 40, (200, FEW)), np.arange(FEW)]
    kept = rng.random(x.shape) < 0.5
    x = np.where(kept, POINT, x)
    y = np.column_stack([x[:, 0] * x[:, 1] + np.isnan(x[:, 3]), np.abs(x[:, 0]) * (x[:, 3] == 1.0)])
    if kind == "pairs":
        functions = ColumnFunctions(law, COLUMNS)
        fitted = SumOfPairs.fit(functions, functions(x, kept), y)[1]
        assert len(fitted.pairs)
        predict = lambda rows, keeps: fitted.predict(functions(rows, keeps))  # noqa: E731
    else:
        fitted = (
            Bumps.without_each(law, COLUMNS, x, [y], [np.zeros(len(x), dtype=bool)])
            if kind == "bumps"
            else BoostedGame.fit(law, COLUMNS, x, y)
        )
        predict = lambda rows, keeps: fitted.predict(rows)  # noqa: E731
    game = enumerated(law, predict)
    phi, alone, last = shapley(game)
    its = fitted.game()
    weights = law.weights if len(its.values) == law.weights.size else np.ones(1)
    np.testing.assert_allclose(weights @ its.base, game[(0,) * COLUMNS.size], atol=1e-9)
    for numbers, expected in ((its.values, phi), (its.alone, alone), (its.last, last)):
        np.testing.assert_allclose(np.tensordot(weights, numbers, 1), expected, atol=1e-9)


@pytest.mark.parametrize(("columns", "m"), [(6, 6), (6, 2), (6, 5), (30, 9), (30, 1)])
def test_the_law_of_sizes_is_that_of_drawn_sets(columns, m):
    law = law_of_sizes(columns, m)
    assert law.sum() == pytest.approx(1.0)
    s = np.arange(1, columns)
    share = 1.0 / np.sqrt(s * (columns - s))
    share /= share.sum()
    rng = np.random.default_rng(0)
    sizes = rng.choice(s, 20_000, p=share)
    drawn = rng.hypergeometric(m, columns - m, sizes) if m < columns else sizes
    seen = np.bincount(drawn, minlength=m + 1) / drawn.size
    np.testing.assert_allclose(seen, law, atol=0.02)


@pytest.mark.parametrize("now", [[0, 1, 2, 3, 4], [0, 2], [0, 2, 3], [4]])
def test_weights_make_contributions_of_sets_of_all_games(now):
    """Sums over all sets, by the law that they are drawn by, are Shapley values, but for what all share."""
    games = [(30, np.arange(5)), (10, np.array([0, 1, 2])), (20, np.array([0, 2])), (5, np.arange(0))]
    sets = np.array(list(np.ndindex(*(2,) * 5)), dtype=bool)
    law = np.zeros(len(sets))
    for pairs, its in games:
        sizes, m = sets[:, its].sum(axis=1), its.size
        of_size = [1.0 / np.sqrt(s * (m - s)) if 0 < s < m else 0.0 for s in range(m + 1)] if m else [1.0]
        each = np.array([of_size[s] / sum(of_size) / comb(m, s) for s in sizes])
        law += pairs / 65 * each * 0.5 ** (5 - m)
    assert law.sum() == pytest.approx(1.0)
    columns = np.array(now)
    worth = np.random.default_rng(0).normal(size=(2,) * columns.size)
    game = np.empty(worth.shape, dtype=object)
    for kept in np.ndindex(*worth.shape):
        game[kept] = np.array([worth[kept]])
    phi, values = shapley(game)[0][:, 0], worth[tuple(sets[:, columns].T.astype(int))]
    others = worth[tuple(~sets[:, columns].T * 1)]
    sums = law @ (weights_of_sets(sets, columns, games) * 0.5 * (values - others)[:, None])
    np.testing.assert_allclose(sums - sums.mean(), phi - phi.mean(), atol=1e-12)


def test_bumps_without_a_part_are_those_of_a_fit_without_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, FEW))
    part = np.arange(120) % 3
    parts = [part == 0, part == 1, np.zeros(120, dtype=bool)]
    targets = [np.sin(x[:, :1]) + x[:, 1:2] * i for i in range(3)]
    bumps = Bumps.without_each(next(laws()), COLUMNS, x, targets, parts)
    assert len(bumps.centres) == 120
    squares = ((bumps.centres[:, None] - bumps.centres) ** 2).sum(axis=2)
    kernel, penalties = np.exp(-0.5 * squares), []
    for i, out in enumerate(parts):
        coef, rest = bumps.coef[:, i], targets[i][:, 0] - targets[i][~out].mean()
        np.testing.assert_allclose(coef[out], 0.0, atol=1e-9)
        # (K + penalty) coef = y
        away = (rest - kernel @ coef)[~out]
        penalties.append(away @ coef[~out] / (coef[~out] @ coef[~out]))
        np.testing.assert_allclose(away, penalties[-1] * coef[~out], atol=1e-8)
    assert penalties[0] > 0
    np.testing.assert_allclose(penalties, penalties[0], rtol=1e-5)


def test_bumps_hold_the_distances_of_few_rows_at_once():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30_000, FEW))
    parts = [np.arange(len(x)) < 100]
    bumps = Bumps.without_each(next(laws()), COLUMNS, x, [np.sin(x[:, :1])], parts)
    tracemalloc.start()
    values = bumps.predict(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(values) == len(x)
    # all distances at once would be 600 numbers a row
    assert peak < 0.5 * 8 * 600 * len(x)


def test_groups_that_explain_nothing_get_no_coefficients():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 40))
    y = x[:, :2] @ [[1.0], [-2.0]]
    coef, intercept = group_regression(x, np.arange(40) // 2, y)
    np.testing.assert_allclose(coef[:2, 0], [1.0, -2.0], atol=1e-3)
    assert np.abs(coef[2:]).max() < 1e-3
    assert abs(intercept[0]) < 1e-3
