"""Contributions from 16 to some hundred calls: readable models of sets, sets of whole groups, and budgets."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import Lasso, Ridge
from threadpoolctl import threadpool_limits

import limes
from internals import GroupedUnits, Tolerance, account_of, lasso, ridge, set_control

ENDS = np.array([[0.0], [1.0]])


def shapley(value: Any, d: int) -> Any:
    """Contributions (d,) by all orders of a function of sets of numbers."""
    values, orders = np.zeros(d), list(permutations(range(d)))
    for order in orders:
        for place, j in enumerate(order):
            values[j] += value(set(order[: place + 1])) - value(set(order[:place]))
    return values / len(orders)


def account(f: Any, d: int, calls: int, seed: int = 0, groups: Any = None) -> Any:
    units = GroupedUnits.of(np.arange(d), np.zeros(d, dtype=int) if groups is None else groups)
    whole = f(np.ones((1, d)))[0]
    with threadpool_limits(1):  # as explainers have it
        return account_of(f, units, whole, calls, np.random.default_rng(seed), is_function=True)


# -- models of sets ------------------------------------------------------------------------------------------


def test_the_lasso_is_the_lasso():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (200, 30)) * rng.uniform(0.5, 2.0, 30)
    y = x[:, :4] @ np.array([3.0, -2.0, 1.0, 0.5]) + rng.normal(size=200)
    coef, level = lasso(x, y[:, None])
    spread = x.std(axis=0)
    standard = (x - x.mean(axis=0)) / spread
    largest = np.abs(standard.T @ (y - y.mean())).max() / len(y)
    for i, share in enumerate(np.geomspace(0.7, 3e-3, 12)):
        model = Lasso(alpha=share * largest, tol=1e-12, max_iter=10**5).fit(standard, y)
        np.testing.assert_allclose(coef[i, :, 0], model.coef_ / spread, atol=1e-5)
        np.testing.assert_allclose(level[i, 0], y.mean() - x.mean(axis=0) @ coef[i, :, 0])


def test_a_game_of_few_products_is_found():
    """Two facts that are needed together have a half each; g has no rest where the model is of its kind."""
    d = 32

    def f(z: Any) -> Any:
        z = np.asarray(z)
        both, either = z[:, 3] * z[:, 7], np.maximum(z[:, 11], z[:, 20])
        return (4.0 * both + 3.0 * either + z[:, 0])[:, None]

    exact = np.zeros(d)
    exact[[3, 7, 11, 20, 0]] = [2.0, 2.0, 1.5, 1.5, 1.0]
    far = []
    for seed in range(6):
        its = account(f, d, 128, seed)
        far.append(np.sum((its.values[:, 0] - exact) ** 2) / np.sum(exact**2))
        strongest = {pair[:2]: pair[2] for pair in its.pairs[0][:2]}
        assert strongest[3, 7] == pytest.approx(4.0, rel=0.2)  # needed together
        assert strongest[11, 20] == pytest.approx(-3.0, rel=0.2)  # said twice
    assert np.median(far) < 0.002


def test_a_product_adds_a_half_to_each():
    """Contributions of the fitted model itself, by enumeration of a game that has no noise."""
    d, rng = 7, np.random.default_rng(1)
    z = rng.integers(0, 2, (240, d)).astype(float)

    def f(z: Any) -> Any:
        return np.stack([3.0 * z[:, 0] * z[:, 1] - z[:, 2], z[:, 4] - 2.0 * z[:, 5] * z[:, 6]], axis=1)

    control = set_control(np.eye(d), ENDS * np.ones(d), f(ENDS * np.ones(d)), z, f(z))
    for k in range(2):
        exact = shapley(lambda kept, k=k: f(np.isin(np.arange(d), list(kept))[None] * 1.0)[0, k], d)
        np.testing.assert_allclose(control.gamma[:, k], exact, atol=0.02)
    assert np.abs(control.rest).max() < 0.1


def test_exact_pairs_are_mean_second_differences():
    d = 5
    weights = np.random.default_rng(0).normal(size=(1 << d, 1))

    def f(z: Any) -> Any:
        return weights[(np.asarray(z) @ (1 << np.arange(d))).astype(int)]

    its = account(f, d, 40)
    assert its.is_exact
    expected = {}
    for i, j in combinations(range(d), 2):
        rest = [k for k in range(d) if k not in (i, j)]
        sets = [set(c) for n in range(4) for c in combinations(rest, n)]
        value = lambda kept: float(f(np.isin(np.arange(d), list(kept))[None] * 1.0)[0, 0])  # noqa: E731
        expected[i, j] = np.mean(
            [value(s | {i, j}) - value(s | {i}) - value(s | {j}) + value(s) for s in sets]
        )
    for i, j, size in its.pairs[0]:
        assert size == pytest.approx(expected[i, j], abs=1e-12)
    assert abs(its.pairs[0][0][2]) == pytest.approx(max(map(abs, expected.values())))


def _games(d: int, seed: int) -> list[tuple[Any, Any]]:
    """Functions with products of three and four, with exact contributions: none of g's kind."""
    rng = np.random.default_rng(seed)
    games = []
    for is_any in (False, True):
        sets = [rng.choice(d, size, replace=False) for size in (3, 3, 4, 2, 2)]
        sizes, slopes = rng.uniform(1.0, 3.0, 5) * rng.choice([-1, 1], 5), rng.normal(size=d) * 0.2
        exact = slopes.copy()
        for columns, size in zip(sets, sizes, strict=True):
            exact[columns] += size / len(columns)

        def f(z: Any, its: Any = (sets, sizes, slopes, is_any)) -> Any:
            sets, sizes, slopes, is_any = its
            shown = np.asarray(z) > 0
            parts = [shown[:, c].any(axis=1) if is_any else shown[:, c].all(axis=1) for c in sets]
            return (z @ slopes + np.stack(parts, axis=1) @ sizes)[:, None]

        games.append((f, exact))
    return games


@pytest.mark.parametrize("calls", [32, 64, 200])
def test_intervals_cover_and_the_largest_too(calls):
    inside, largest = [], []
    for game in range(5):
        for f, exact in _games(24, game):
            for seed in range(3):
                its = account(f, 24, calls, seed)
                covers = np.abs(its.values[:, 0] - exact) <= 1.96 * its.errors[:, 0]
                inside.append(covers.mean())
                largest.append(covers[np.argsort(-np.abs(exact))[:5]].mean())
    assert np.mean(inside) >= 0.93
    assert np.mean(largest) >= 0.93


# -- sets of whole groups ------------------------------------------------------------------------------------


def _of_groups(groups: Any) -> Any:
    """A game of d units in groups in which groups and units have products, for oracles by enumeration."""
    d = len(groups)
    rng = np.random.default_rng(5)
    slopes = rng.normal(size=d)

    def f(z: Any) -> Any:
        z = np.asarray(z)
        in_group = np.stack([z[:, groups == g].mean(axis=1) for g in range(max(groups) + 1)], axis=1)
        return (z @ slopes + 6.0 * in_group[:, 0] * in_group[:, 1] - 4.0 * (in_group[:, 2] > 0.5))[:, None]

    return f


def test_groups_have_the_values_of_their_own_game():
    groups = np.array([0, 0, 1, 1, 1, 2, 2, 2])
    f = _of_groups(groups)
    exact = shapley(lambda kept: float(f(np.isin(groups, list(kept))[None] * 1.0)[0, 0]), 3)
    its = account(f, 8, 300, groups=groups)
    assert its.is_exact
    np.testing.assert_allclose(its.of_groups[:, 0], exact, rtol=1e-9)
    np.testing.assert_allclose(its.values[:, 0].sum(), exact.sum(), rtol=1e-12)
    sums = [its.values[groups == g, 0].sum() for g in range(3)]
    np.testing.assert_allclose(sums, exact, rtol=1e-9)


@pytest.mark.parametrize("calls", [60, 160])
def test_intervals_of_groups_cover_their_game(calls):
    groups = np.repeat(np.arange(6), 6)
    f = _of_groups(groups)
    exact = shapley(lambda kept: float(f(np.isin(groups, list(kept))[None] * 1.0)[0, 0]), 6)
    inside, far = [], []
    for seed in range(20):
        its = account(f, 36, calls, seed, groups)
        missed = np.abs(its.of_groups[:, 0] - exact)
        inside.append(missed <= 1.96 * its.group_errors[:, 0] + 1e-9)
        far.append(np.sum((its.of_groups[:, 0] - exact) ** 2) / np.sum(exact**2))
        sums = [its.values[groups == g, 0].sum() for g in range(6)]
        np.testing.assert_allclose(sums, its.of_groups[:, 0], atol=1e-12)
    assert np.mean(inside) >= 0.93
    assert np.mean(far) < 0.1


@pytest.mark.parametrize("calls", [40, 60, 100])
def test_intervals_of_units_cover_their_shares_of_exact_groups(calls):
    """Errors of two units of a group whose sum is exact were unlike, and covered half of the time."""
    inside = []
    for game in range(6):
        rng = np.random.default_rng(game)
        pairs, sizes = [rng.choice(8, 2, replace=False) for _ in range(3)], rng.uniform(0.5, 2.0, 3)
        slopes = rng.normal(size=8) * (rng.random(8) < 0.5)

        def f(z: Any, its: Any = (pairs, sizes, slopes)) -> Any:
            pairs, sizes, slopes = its
            both = np.stack([np.asarray(z)[:, pair].all(axis=1) for pair in pairs], axis=1)
            return np.tanh(z @ slopes + both @ sizes)[:, None]

        groups = np.repeat(np.arange(4), 2)
        exact = account(f, 8, 600, groups=groups)
        assert exact.is_exact
        for seed in range(8):
            its = account(f, 8, calls, seed, groups)
            np.testing.assert_allclose(its.of_groups, exact.of_groups, atol=1e-12)
            np.testing.assert_allclose(its.errors[::2], its.errors[1::2], rtol=1e-6, atol=1e-9)
            inside.append(np.abs(its.values - exact.values) <= 1.96 * its.errors + 1e-12)
    assert np.mean(inside) >= 0.93


@pytest.mark.parametrize("calls", [16, 24])
def test_few_sets_that_a_model_explains_do_not_show_all(calls):
    """A sum of one unit, in half of the games with a product of three that few sets of units have."""
    inside = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        j, *others = rng.choice(14, 4, replace=False)
        size = 1.0 * (seed % 2)

        def f(z: Any, its: Any = (j, others, size)) -> Any:
            j, others, size = its
            return (2.0 * z[:, j] + size * np.asarray(z)[:, others].all(axis=1))[:, None]

        exact = np.zeros(14)
        exact[j], exact[others] = 2.0, size / 3.0
        its = account(f, 14, calls, seed)
        assert (its.errors > 0.01).all()
        inside.append(np.abs(its.values[:, 0] - exact) <= 1.96 * its.errors[:, 0])
    assert np.mean(inside) >= 0.93


def _steep(d: int, products: Any = ()) -> Any:
    """A game with another answer where nothing is shown, with exact contributions: no g explains its sum."""
    slopes = np.random.default_rng(d).normal(size=d) * 0.2
    exact = slopes - 3.0 / d
    for columns in products:
        exact[list(columns)] += 2.0 / len(columns)

    def f(z: Any) -> Any:
        shown = np.asarray(z) > 0
        parts = sum(2.0 * shown[:, list(columns)].all(axis=1) for columns in products)
        return (z @ slopes + parts + 3.0 * ~shown.any(axis=1))[:, None]

    return f, exact


def test_a_known_sum_makes_no_errors_that_sets_exclude():
    f, exact = _steep(20, [(0, 1, 2), (3, 4, 5), (6, 7, 8)])
    inside, sizes = [], []
    for seed in range(10):
        its = account(f, 20, 1000, seed)
        inside.append(np.abs(its.values[:, 0] - exact) <= 1.96 * its.errors[:, 0])
        sizes.append(its.errors.max())
        np.testing.assert_allclose(its.values.sum(), exact.sum(), rtol=1e-12)
    assert np.mean(inside) >= 0.93
    assert max(sizes) < 0.1  # a share of the sum by chance would be 3 / sqrt(20) = 0.67


def test_errors_of_groups_fall_with_the_calls():
    """Sets of groups were as many as units at most, however many calls there were."""
    groups = np.repeat(np.arange(16), 4)
    of_groups, exact = _steep(16, [(0, 1, 2), (3, 4, 5), (6, 7, 8)])
    of_words, _ = _steep(64)

    def f(z: Any) -> Any:  # a group is shown as far as its units are
        whole = np.stack([z[:, groups == g].all(axis=1) for g in range(16)], axis=1)
        return of_groups(whole * 1.0) + 0.1 * (of_words(z) - 3.0 * ~z.any(axis=1)[:, None])

    slopes = np.random.default_rng(64).normal(size=64) * 0.02
    exact = exact + np.array([slopes[groups == g].sum() for g in range(16)])
    errors = {}
    for calls in (1000, 4000):
        inside, far = [], []
        for seed in range(5):
            its = account(f, 64, calls, seed, groups)
            inside.append(np.abs(its.of_groups[:, 0] - exact) <= 1.96 * its.group_errors[:, 0])
            far.append(its.group_errors.mean())
        assert np.mean(inside) >= 0.93
        errors[calls] = np.mean(far)
    assert errors[4000] < 0.6 * errors[1000]


def test_the_ridge_is_the_ridge():
    rng = np.random.default_rng(0)
    for n, p in ((60, 12), (12, 60)):
        x, weights = rng.normal(size=(n, p)), rng.uniform(0.2, 1.0, n)
        y = x[:, :3] @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=n)
        coef, level = ridge(x, y[:, None], weights)
        fits = [Ridge(alpha=alpha).fit(x, y, sample_weight=weights) for alpha in np.geomspace(1e-4, 1e3, 29)]
        far = [np.abs(fit.coef_ - coef[:, 0]).max() + abs(fit.intercept_ - level[0]) for fit in fits]
        assert min(far) < 1e-9
        # Gaussian coefficients of variance s² / penalty and noise of s²: s² has its largest likelihood
        scores = []
        for alpha in np.geomspace(1e-4, 1e3, 29):
            centred = np.sqrt(weights)[:, None] * (x - np.average(x, axis=0, weights=weights))
            target = np.sqrt(weights) * (y - np.average(y, weights=weights))
            covariance = centred @ centred.T / alpha + np.eye(n)
            s2 = target @ np.linalg.solve(covariance, target) / n
            scores.append(n * np.log(s2) + np.linalg.slogdet(covariance)[1])
        assert np.argmin(far) == np.argmin(scores)


def test_sets_are_no_more_than_an_accuracy_takes():
    f, exact = _games(24, 0)[0]
    few, many = (_accurate(f, 4096, size) for size in (0.1, 0.001))
    assert few.rows < 1100 < 4000 < many.rows <= 4096
    for its in (few, many):
        assert np.abs(its.account.values[:, 0] - exact).max() < 4.0 * its.account.errors.max()
    assert few.account.errors.max() <= 0.1 * np.abs(few.account.values).max()


class _Accurate(NamedTuple):
    account: Any
    rows: int


def _accurate(f: Any, calls: int, size: float) -> _Accurate:
    counts = []

    def ask(z: Any) -> Any:
        counts.append(len(z))
        return f(z)

    units = GroupedUnits.of(np.arange(24), np.zeros(24, dtype=int))
    stream, tolerance = np.random.default_rng(0), Tolerance(size, relative=True)
    with threadpool_limits(1):
        its = account_of(
            ask, units, f(np.ones((1, 24)))[0], calls, stream, is_function=True, accuracy=tolerance
        )
    return _Accurate(its, sum(counts))


def test_a_unit_that_adds_nothing_has_nothing_of_its_groups():
    groups = np.array([0, 0, 1, 1])

    def f(z: Any) -> Any:
        return (5.0 * z[:, 0] * z[:, 2])[:, None]

    its = account(f, 4, 40, groups=groups)
    np.testing.assert_allclose(its.values[:, 0], [2.5, 0.0, 2.5, 0.0], atol=1e-9)


def test_a_unit_without_effect_adds_exactly_nothing():
    groups = np.array([0, 0, 1, 2])
    its = account(lambda z: (0.7 * z[:, 0] + 0.1 * z[:, 3])[:, None], 4, 40, groups=groups)
    np.testing.assert_allclose(its.values[:, 0], [0.7, 0.0, 0.0, 0.1], rtol=1e-12)
    assert (its.values[1:3] == 0.0).all()


# -- features of one level -----------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [16, 32, 48, 100])
def test_words_have_intervals_from_few_calls(calls):
    words = [f"w{j}" for j in range(20)]
    inside = []
    for game in range(3):
        for f, exact in _games(20, game):

            def ask(texts: list[str], f: Any = f) -> Any:
                return f(np.array([[word in text.split() for word in words] for text in texts]) * 1.0)[:, 0]

            for seed in range(3):
                its = limes.TextExplainer(ask, max_calls=calls, rng=seed)(" ".join(words)).contributions
                np.testing.assert_allclose(its.values.sum() + its.base_values[0], ask([" ".join(words)])[0])
                inside.append(np.abs(its.values[0] - exact) <= 1.96 * its.standard_errors[0])
    assert np.mean(inside) >= 0.93


@pytest.mark.parametrize("calls", [20, 32, 64])
def test_random_answers_have_intervals_from_few_calls(calls):
    words = [f"w{j}" for j in range(20)]
    inside, of_base = [], []
    for game in range(4):
        f, exact = _games(20, game)[0]
        noise = np.random.default_rng(game)

        def ask(texts: list[str], f: Any = f, noise: Any = noise) -> Any:
            z = np.array([[word in text.split() for word in words] for text in texts]) * 1.0
            return f(z)[:, 0] + 0.3 * noise.normal(size=len(texts))

        for seed in range(3):
            explanation = limes.TextExplainer(ask, max_calls=calls, rng=seed)(" ".join(words), progress=False)
            its = explanation.contributions
            assert explanation.model_calls <= calls
            assert (its.standard_errors > 0.0).all()
            assert (its.base_errors > 0.0).all()
            inside.append(np.abs(its.values[0] - exact) <= 1.96 * its.standard_errors[0])
            of_base.append(abs(its.base_values[0]) <= 1.96 * its.base_errors[0])  # nothing shown: 0
    assert np.mean(inside) >= 0.93
    assert np.mean(of_base) >= 0.75  # of 12


@pytest.mark.parametrize(("words", "calls"), [(40, 32), (40, 200), (240, 300)])
def test_answers_that_are_all_the_same_have_infinite_errors(words, calls):
    text = " ".join(f"w{j}" + "." * (j % 12 == 11) for j in range(words))
    its = limes.TextExplainer(lambda texts: np.full(len(texts), 2.0), max_calls=calls)(text, progress=False)
    assert (its.contributions.values == 0.0).all()
    assert np.isinf(its.contributions.standard_errors).all()
    assert not its.converged


# -- few units, whose sets are few ---------------------------------------------------------------------------


def games(d: int, rng: np.random.Generator, each: int) -> dict[str, Any]:
    """Answers (2^d, n) of random games to all sets, in the order of binary numbers, by kind."""
    z = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(float)
    slopes, noise = rng.normal(size=(2, d, each)), rng.normal(size=(1 << d, each))
    some = rng.random((d, each)) < 0.6
    some[:2] = True
    some = rng.permuted(some, axis=0)
    both, either = ((side[:, :, None] >= some[None]).all(axis=1) for side in (z, 1.0 - z))
    return {
        "tables": noise,
        "additive": z @ slopes[0] + 0.3 * noise,
        "nearly additive": z @ slopes[0] + 0.03 * noise,
        "all of some": both.astype(float),
        "one of some": 1.0 - either,
        "all of some, and slopes": 2.0 * both + 0.2 * z @ slopes[1],
    }


def weights_of(d: int) -> Any:
    """Contributions (d, 2^d) by answers to all sets, by all orders."""
    weights = np.zeros((d, 1 << d))
    orders = [*permutations(range(d))]
    for order in orders:
        shown = 0
        for j in order:
            weights[j, shown] -= 1.0
            shown |= 1 << j
            weights[j, shown] += 1.0
    return weights / len(orders)


@pytest.mark.parametrize(
    ("d", "calls"),
    [(3, 6), (3, 7), (4, 6), (4, 9), (4, 12), (4, 15), (5, 8), (5, 18), (5, 31), (6, 40), (7, 24)],
)
def test_intervals_of_few_units_cover(d, calls):
    """Three sources have 6 answers at 8 calls: intervals of ands and ors covered .77 to .87."""
    rng, places, weights = np.random.default_rng(d * 100 + calls), 1 << np.arange(d), weights_of(d)
    covered: dict[str, list[Any]] = {}
    for seed in range(8):
        for kind, tables in games(d, rng, 40).items():
            rows: set[int] = set()

            def f(z: Any, tables: Any = tables, rows: set[int] = rows) -> Any:
                which = (np.asarray(z) @ places).astype(int)
                rows.update(which.tolist())
                return tables[which]

            its = account(f, d, calls, seed, groups=np.arange(d))
            assert len(rows) == calls
            np.testing.assert_allclose(its.values.sum(axis=0), tables[-1] - tables[0], atol=1e-9)
            assert (its.errors > 0.0).all()
            covered.setdefault(kind, []).append(np.abs(its.values - weights @ tables) <= 1.96 * its.errors)
    assert {kind: float(np.mean(its)) for kind, its in covered.items() if np.mean(its) < 0.93} == {}


@pytest.mark.parametrize(("d", "calls"), [(6, 12), (6, 24), (7, 12), (7, 24), (7, 48)])
def test_intervals_of_few_units_that_vote_cover(d, calls):
    """Answers are yes or no, by weights: intervals of six units covered .85 to .92."""
    rng, places, weights = np.random.default_rng(d * 100 + calls), 1 << np.arange(d), weights_of(d)
    z, covered = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(float), {"votes": [], "logits": []}
    for seed in range(8):
        sums = z @ np.where(rng.random(40) < 0.5, rng.normal(size=(d, 40)), rng.exponential(size=(d, 40)))
        away = sums - np.quantile(sums, rng.uniform(0.25, 0.75), axis=0)
        for kind, tables in {
            "votes": (away > 0.0) * 1.0,
            "logits": expit(6.0 * away / sums.std(axis=0)),
        }.items():
            its = account(
                lambda z, t=tables: t[(np.asarray(z) @ places).astype(int)],
                d,
                calls,
                seed,
                groups=np.arange(d),
            )
            covered[kind].append(np.abs(its.values - weights @ tables) <= 1.96 * its.errors)
    assert np.mean(covered["votes"]) >= 0.93
    assert np.mean(covered["logits"]) >= 0.93


def test_the_fit_and_pairs_of_few_units_are_within_their_errors():
    """R² of the line through base and contributions, under Shapley's weights, and what two have together."""
    d, calls, weights = 4, 12, weights_of(4)
    z = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(float)
    inside, kept = slice(1, 15), z[1:15].sum(axis=1)
    law = 1.0 / (kept * (d - kept) * np.array([1, 4, 6, 4])[kept.astype(int)])
    rng, covered, strongest = np.random.default_rng(5), [], []
    for seed in range(60):
        tables = z @ rng.normal(size=(d, 12)) + 0.4 * rng.normal(size=(16, 12))
        tables += 2.0 * z[:, :1] * z[:, 1:2]
        its = account(lambda z, t=tables: t[(np.asarray(z) @ [1, 2, 4, 8]).astype(int)], d, calls, seed)
        rest = tables - tables[0] - z @ (weights @ tables)
        centred = tables[inside] - np.average(tables[inside], axis=0, weights=law)
        exact = 1.0 - (law @ rest[inside] ** 2) / (law @ centred**2)
        covered.append(np.abs(its.fidelity - exact) <= 1.96 * its.fidelity_errors)
        strongest += [pairs[0][:2] == (0, 1) for pairs in its.pairs if pairs]
    assert np.mean(covered) >= 0.93
    assert len(strongest) > 300
    assert np.mean(strongest) > 0.8


def test_three_sources_at_eight_calls_have_intervals():
    documents = limes.sources(["north is cold", "south is warm", "east is wet"])
    weights, covered = weights_of(3), []
    for seed in range(60):
        table, calls = np.random.default_rng(seed).random(8), []

        def f(prompts: Any, table: Any = table, calls: list[Any] = calls) -> Any:
            calls.extend(prompts)
            words = ("north", "south", "east")
            return [table[sum(1 << j for j in range(3) if words[j] in one)] for one in prompts]

        prompt = limes.Prompt("Read: ", documents, "What?")
        most = 8 + seed % 3
        its = limes.PromptExplainer(f, max_calls=most, rng=seed)(prompt, progress=False).contributions
        assert len(calls) <= most
        exact = weights @ table
        if most == 10:
            np.testing.assert_allclose(its.values[0], exact, rtol=1e-9, atol=1e-12)
        else:
            covered.append(np.abs(its.values[0] - exact) <= 1.96 * its.standard_errors[0])
    assert np.mean(covered) >= 0.93
