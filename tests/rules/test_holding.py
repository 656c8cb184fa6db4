"""Rules that hold against the enumeration of all sets of facts, and of all rows around the instance."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import limes
from effort import repeats
from internals import (
    FactRows,
    FactSample,
    FactSearch,
    LiteralFlips,
    bernstein_bound,
    betting_bound,
    quantile_bound,
    share_bound,
)
from limes.exceptions import InputError

INSTANCES = repeats(300, 36)


def all_rows(d):
    return np.array(np.meshgrid(*[[False, True]] * d, indexing="ij")).reshape(d, -1).T


def sets_of(d, k):
    return [facts for size in range(k + 1) for facts in combinations(range(d), size)]


class Population:
    """All 2^d rows around x with their probabilities: what no sample is needed for."""

    def __init__(self, model, x, spread, law="literal"):
        self.flips = all_rows(x.size)
        q = np.exp(-spread) / (1.0 + np.exp(-spread))
        self.weights = np.prod(np.where(self.flips, q, 1.0 - q), axis=1)
        if law == "count":  # a number of flips, and one of the sets of this size
            number = self.flips.sum(axis=1)
            counts = np.exp(-spread * np.arange(x.size + 1.0))
            self.weights = (counts / counts.sum())[number] / np.bincount(number)[number]
        self.answers, self.target = model(np.where(self.flips, -x, x)), float(model(x[None, :])[0])

    def error(self, facts, losses=None):
        holds = ~self.flips[:, list(facts)].any(axis=1)
        losses = np.abs(self.answers - self.target) if losses is None else losses
        return float(self.weights[holds] @ losses[holds] / self.weights[holds].sum())

    def least(self, k, losses=None):
        return min(self.error(facts, losses) for facts in sets_of(self.flips.shape[1], k))

    def within(self, facts, distance):
        holds = ~self.flips[:, list(facts)].any(axis=1)
        near = np.abs(self.answers - self.target) <= distance + 1e-12
        return float(self.weights[holds & near].sum() / self.weights[holds].sum())


def instance(seed, smallest=6, largest=14):
    """A tree, a network or a sum with products, a row, k and a spread."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(smallest, largest + 1)), int(rng.integers(1, 5))
    rows = rng.choice([-1.0, 1.0], (300, d))
    pairs, weights = rng.integers(0, d, (4, 2)), rng.normal(size=4)

    def products(z):
        return z @ slopes + (z[:, pairs[:, 0]] * z[:, pairs[:, 1]]) @ weights

    slopes = rng.normal(size=d) * rng.exponential(size=d) * 0.5
    if seed % 3 == 0:
        forest = RandomForestRegressor(8, max_depth=6, random_state=0).fit(rows, products(rows))

        def model(z):  # not read
            return forest.predict(z)
    elif seed % 3 == 1:
        inner, outer = rng.normal(size=(d, 6)) * 0.5, rng.normal(size=6)

        def model(z):
            return np.tanh(z @ inner) @ outer
    else:
        model = products
    return model, rows[0], k, float(rng.choice([0.0, 1.0, 2.0]))


def chosen(explanation):
    return tuple(int(fact.split()[0][1:]) for fact in explanation.certificate.facts)


# -- the search ---------------------------------------------------------------------------------------------


def weighted_sample(rng):
    d, m = int(rng.integers(2, 10)), int(rng.integers(5, 300))
    holds = rng.random((m, d)) < rng.choice([0.5, 0.73, 0.9])
    losses = rng.random(m) ** 3 if rng.random() < 0.7 else (rng.random(m) < 0.3) * 1.0
    losses = np.where(holds[:, 0] & holds[:, -1], 0.3 * losses, losses)
    return FactRows(holds, losses, rng.random(m) + 0.1)


def plain_error(rows, facts):
    kept = [i for i in range(len(rows.losses)) if all(rows.holds[i, j] for j in facts)]
    if not kept:
        return np.inf
    return sum(rows.weights[i] * rows.losses[i] for i in kept) / sum(rows.weights[i] for i in kept)


@pytest.mark.parametrize("seed", range(repeats(200, 40)))
def test_the_search_lists_the_best_sets_of_all(seed):
    rng = np.random.default_rng(seed)
    rows, k = weighted_sample(rng), int(rng.integers(1, 6))
    d = rows.holds.shape[1]
    k = min(k, d)
    searched = FactSearch(rows, np.arange(d)).best(k)
    every = sorted(plain_error(rows, facts) for facts in sets_of(d, k))
    assert searched.proved
    assert searched.best[0][0] == pytest.approx(every[0], rel=1e-9, abs=1e-15)
    if every[0] > 0.0:  # a set without an error ends the search
        listed = [error for error, _ in searched.best]
        np.testing.assert_allclose(listed, [error for error in every if error < np.inf][:16], rtol=1e-9)
    short = FactSearch(rows, np.arange(d)).best(k, work=1.0)
    assert short.lower_bound <= every[0] * (1.0 + 1e-9)
    if short.proved:
        assert short.best[0][0] == pytest.approx(every[0], rel=1e-9, abs=1e-15)


def test_the_smaller_of_equal_sets_is_chosen():
    holds = np.array([[True, True, True], [True, False, True], [False, True, True], [False, False, True]])
    rows = FactRows(holds, np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4))
    assert FactSearch(rows, np.arange(3)).best(3).best[0] == (0.0, (0,))


def test_forty_facts_are_searched_without_trying_all_sets():
    rng = np.random.default_rng(0)
    holds = rng.random((1000, 40)) < 0.73
    losses = np.abs(2.0 * (~holds[:, 3] & holds[:, 17]) + 1.0 * ~holds[:, 30] + 0.2 * rng.random(1000))
    rows = FactRows(holds, losses, np.ones(1000))
    searched = FactSearch(rows, np.arange(40)).best(4)
    assert searched.proved
    assert {3, 30} <= set(searched.best[0][1])
    assert searched.nodes < comb(40, 2) // 4


def test_a_search_that_is_cut_short_says_so():
    slopes = np.random.default_rng(0).normal(size=120) / 11.0
    explainer = limes.SparseExplainer(lambda z: np.tanh(z @ slopes), k=7, objective="precision", samples=300)
    rule = explainer(np.ones((1, 120)))
    certificate = rule.certificate
    assert not certificate.proved
    assert certificate.lower_bound < certificate.objective
    assert certificate.optimum == "sample"
    text = " ".join(str(certificate).split())
    assert (
        "not proved (the search was cut short: time_limit= allows more). Its bounds hold all the same" in text
    )
    assert len(certificate.facts) == 7


def test_a_time_limit_lets_the_search_of_a_row_end():
    """Five of 40 facts."""
    slopes = np.random.default_rng(0).normal(size=40) * np.exp(-np.arange(40.0) / 8.0)
    options = {"k": 5, "objective": "precision", "spread": 0.5, "samples": 100, "rng": 0}

    def certified(**more):
        explainer = limes.SparseExplainer(lambda z: np.tanh(z @ slopes), **options, **more)
        return explainer(np.ones((1, 40))).certificate

    cut, whole = certified(time_limit=1e-9), certified(time_limit=600.0)
    assert not cut.proved
    assert cut.lower_bound < cut.objective
    assert whole.proved
    assert whole.lower_bound == whole.objective
    assert whole.nodes > cut.nodes


def test_the_bound_of_a_rule_whose_search_was_cut_short_covers():
    """Six of 60 facts: fresh rows bound the rule that was chosen, whether or not another one is better."""
    number, failures = repeats(200, 40), 0
    for seed in range(number):
        rng = np.random.default_rng(seed)
        slopes, pairs = rng.normal(size=60) * np.exp(-np.arange(60.0) / 8.0), rng.integers(0, 60, (12, 2))
        x = rng.choice([-1.0, 1.0], 60)

        def model(z, slopes=slopes, pairs=pairs):
            return np.tanh(0.4 * (z @ slopes) + 0.3 * (z[:, pairs[:, 0]] * z[:, pairs[:, 1]]).sum(axis=1))

        options = {"spread": 0.5, "samples": 100, "fresh": 150, "scale": (-1.0, 1.0), "rng": seed}
        explainer = limes.SparseExplainer(model, k=6, objective="precision", time_limit=1e-9, **options)
        rule = explainer(x[None, :])
        assert not rule.certificate.proved
        flips = rng.random((4000, 60)) < 1.0 / (1.0 + np.exp(0.5))
        flips[:, list(chosen(rule))] = False
        moved = np.abs(model(np.where(flips, -x, x)) - model(x[None, :]))
        failures += moved.mean() > rule.certificate.bounds["precision"]
    assert failures <= 0.05 * number


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_rows_of_sets_and_of_the_law_estimate_the_same_errors(spread):
    """The mean of many samples' numerators and denominators is that of the law."""
    d, x = 6, np.ones(6)
    model = instance(2, 6, 6)[0]
    truth, near, facts = Population(model, x, spread), LiteralFlips(x, spread), (0, 2)
    parts = []
    for seed in range(repeats(400, 100)):
        rng = np.random.default_rng(seed)

        def losses(flips):
            return np.abs(model(np.where(flips, -x, x)) - truth.target)

        flips = near.law.flips(rng, 60)
        sample = FactSample(near, losses, np.arange(d), first=(flips, losses(flips)), rng=rng)
        sample.best(2)
        rows = sample.rows
        holds = rows.holds[:, list(facts)].all(axis=1)
        parts.append([rows.weights @ holds, rows.weights @ (holds * rows.losses)])
    parts = np.array(parts)
    share = (1.0 / (1.0 + np.exp(-spread))) ** 2
    off = parts.mean(axis=0) - [share, share * truth.error(facts)]
    assert (np.abs(off) < 4.0 * parts.std(axis=0) / np.sqrt(len(parts))).all()


# -- the optimum of the population --------------------------------------------------------------------------


def test_the_best_facts_of_the_law_are_chosen():
    """At least 95 % of the chosen sets are optimal, and "proved" is claimed only where this holds."""
    hits, ratios = 0, []
    for seed in range(INSTANCES):
        model, x, k, spread = instance(seed)
        rule = limes.SparseExplainer(model, k=k, spread=spread, objective="precision", rng=seed)(x[None, :])
        truth, certificate = Population(model, x, spread), rule.certificate
        least, error = truth.least(k), truth.error(chosen(rule))
        hits += error <= least * (1.0 + 1e-9)
        ratios.append(error / least)
        assert certificate.optimum == ("population" if x.size <= 12 else "sample")
        if certificate.optimum == "population":
            assert certificate.proved
            assert certificate.objective == pytest.approx(least, rel=1e-9)
    assert hits >= 0.95 * INSTANCES
    assert max(ratios) < 1.1


@pytest.mark.parametrize("seed", range(repeats(60, 8)))
def test_the_best_facts_of_the_count_law_are_chosen(seed):
    """For all rows, and of a sample that rows with the best facts are added to."""
    model, x, k, spread = instance(seed, 6, 14)
    options = {"k": k, "spread": spread, "law": "count", "objective": "precision", "rng": seed}
    rule = limes.SparseExplainer(model, **options, samples=2000)(x[None, :])
    truth, certificate = Population(model, x, spread, "count"), rule.certificate
    least, error = truth.least(k), truth.error(chosen(rule))
    assert error <= 1.1 * least
    assert certificate.bounds["precision"] >= error - 1e-12
    if certificate.optimum == "population":
        assert error == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("seed", range(repeats(60, 10)))
def test_the_class_is_kept_as_well_as_by_any_facts(seed):
    model, x, k, spread = instance(seed, 6, 10)
    truth = Population(model, x, spread)
    threshold = float(np.quantile(truth.answers, 0.4))
    options = {"k": k, "spread": spread, "objective": "class", "threshold": threshold}
    rule = limes.SparseExplainer(model, **options)(x[None, :])
    across = ((truth.answers >= threshold) != (truth.target >= threshold)) * 1.0
    assert truth.error(chosen(rule), across) == pytest.approx(truth.least(k, across), rel=1e-9, abs=1e-12)
    assert rule.certificate.other_class == pytest.approx(truth.error(chosen(rule), across), abs=1e-12)


@pytest.mark.parametrize("seed", range(repeats(100, 15)))
def test_the_smallest_rule_is_the_smallest(seed):
    model, x, _, spread = instance(seed, 6, 9)
    truth = Population(model, x, spread)
    error = float(np.random.default_rng(seed).uniform(0.2, 0.9)) * truth.error(())
    options = {"k": "smallest", "error": error, "objective": "precision", "spread": spread, "rng": seed}
    rule = limes.SparseExplainer(model, **options)(x[None, :])
    size = next(k for k in range(x.size + 1) if truth.least(k) <= error)
    assert len(rule.certificate.facts) == rule.certificate.fewest == size
    assert rule.certificate.bounds["precision"] == pytest.approx(truth.error(chosen(rule)), rel=1e-9)
    assert "Fewer facts do not reach" in str(rule.certificate)


def test_the_papers_measure_takes_facts_that_least_squares_does_not():
    def model(z):
        return 0.6 * z[:, 0] * z[:, 1] + 0.1 * z[:, 2] + 0.05 * z[:, 3]

    options = {"k": 2, "spread": 0.0}
    rule = limes.SparseExplainer(model, objective="precision", **options)(np.ones((1, 8)))
    assert chosen(rule) == (0, 1)
    assert rule.certificate.precision == pytest.approx(0.15, rel=1e-9)
    assert rule.rule() == "[x0 = 1] and [x1 = 1]  ->  output within 0.3 of 0.75"
    other = limes.SparseExplainer(model, **options)(np.ones((1, 8)))
    assert chosen(other) == (2, 3)
    assert other.certificate.precision > 0.5


# -- bounds -------------------------------------------------------------------------------------------------


def test_bounds_of_fresh_rows_hold():
    """All bounds of a rule together fail in 5 % of the rules at most."""
    failures, number = 0, repeats(300, 40)
    for seed in range(number):
        model, x, k, spread = instance(seed, 15 + 3, 15 + 3)
        threshold = float(np.median(model(np.random.default_rng(seed).choice([-1.0, 1.0], (500, x.size)))))
        options = {"k": min(k, 2), "spread": spread, "samples": 200, "objective": "class", "rng": seed}
        rule = limes.SparseExplainer(model, scale=(-60, 60), threshold=threshold, **options)(x[None, :])
        certificate, facts = rule.certificate, chosen(rule)
        truth = Population(model, x, spread)
        across = ((truth.answers >= threshold) != (truth.target >= threshold)) * 1.0
        assert certificate.precision_error > 0.0  # of fresh rows
        failures += (
            truth.error(facts) > certificate.bounds["precision"]
            or truth.error(facts, across) > certificate.bounds["class"]
            or truth.within(facts, certificate.bounds["band"]) < 0.9
        )
    assert failures <= 0.05 * number + 2.0 * np.sqrt(0.05 * number)


DRAWS = {
    "uniform": (lambda rng: rng.random(400), 0.5),
    "small": (lambda rng: 0.05 * rng.random(400), 0.025),
    "a rare one": (lambda rng: (rng.random(400) < 0.004) * 1.0, 0.004),
    "never": (lambda rng: np.zeros(400), 0.0),
    "a tail": (lambda rng: np.minimum(1.0, 0.01 * rng.pareto(1.5, 400)), None),
    "often": (lambda rng: (rng.random(400) < 0.9) * 1.0, 0.9),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_bets_bound_the_mean(kind):
    draw, mean = DRAWS[kind]
    if mean is None:
        # E min(1, c X) = ∫_0^1 P(X > t/c) dt, P(X > s) = (1 + s)^-1.5 and c = 0.01
        mean = 0.01 * 2.0 * (1.0 - 101.0**-0.5)
    rng, number = np.random.default_rng(0), repeats(2000, 400)
    bounds = np.array([betting_bound(draw(rng), largest=1.0, risk=0.05) for _ in range(number)])
    assert np.mean(bounds < mean) <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / number)
    if kind in ("small", "never"):
        values = draw(rng)
        plain = bernstein_bound(values, largest=1.0, risk=0.05)
        close = betting_bound(values, largest=1.0, risk=0.05)
        assert close - values.mean() < 0.6 * (plain - values.mean())


def test_a_bound_is_where_the_capital_reaches_its_goal():
    """By the definition, one bet after the other."""
    x, risk = np.random.default_rng(3).random(50) ** 3, 0.1
    bound = betting_bound(2.0 * x, largest=2.0, risk=risk) / 2.0
    capital, seen = 1.0, []
    for value in x:
        means = [(0.5 + sum(seen[: i + 1])) / (i + 2) for i in range(len(seen))]
        variance = (0.25 + sum((s - m) ** 2 for s, m in zip(seen, means, strict=True))) / (len(seen) + 1)
        capital *= 1.0 - min(1.0, np.sqrt(2.0 * np.log(1.0 / risk) / (50 * variance))) * (value - bound)
        seen.append(value)
    assert capital == pytest.approx(1.0 / risk, rel=1e-6)


@pytest.mark.parametrize(("events", "n"), [(0, 50), (3, 50), (49, 50), (50, 50)])
def test_a_share_bound_is_where_so_few_events_become_improbable(events, n):
    bound = share_bound(events, n, risk=0.05)
    tail = sum(comb(n, i) * bound**i * (1.0 - bound) ** (n - i) for i in range(events + 1))
    assert tail == pytest.approx(1.0 if events == n else 0.05, rel=1e-9)


def test_an_order_statistic_bounds_the_quantile():
    rng, n = np.random.default_rng(0), 100
    covered = [quantile_bound(rng.random(n), 0.9, risk=0.05) >= 0.9 for _ in range(2000)]
    assert 0.95 - 3.0 * np.sqrt(0.05 * 0.95 / 2000) <= np.mean(covered) <= 0.99
    assert quantile_bound(rng.random(10), 0.9, risk=0.05) == np.inf  # too few draws for any bound


# -- tables, texts, and what else a rule goes through -------------------------------------------------------


@pytest.fixture(scope="module")
def forest():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, y)
    return model, limes.Literals.fit(X), X


def test_a_rule_of_a_table_holds_for_rows_with_its_facts(forest):
    """Drawn here by the definition: a column keeps its value, or takes one of another bin."""
    model, literals, X = forest
    rule = limes.SparseExplainer(model, literals=literals, k=3, objective="precision")(X.iloc[[5]])
    certificate, rng, x = rule.certificate, np.random.default_rng(1), X.to_numpy()
    rows = np.tile(x[5], (20_000, 1))
    cells = literals.background_cells
    for j in range(x.shape[1]):
        if rule.conditions[0][j] in certificate.facts:
            continue
        flips = rng.random(len(rows)) < 1.0 / (1.0 + np.e)
        rows[flips, j] = rng.choice(x[cells[:, j] != cells[5, j], j], int(flips.sum()))
    away = np.abs(model.predict(pd.DataFrame(rows, columns=X.columns)) - rule.predictions[0])
    assert away.mean() <= certificate.bounds["precision"]
    assert away.mean() == pytest.approx(certificate.precision, abs=5.0 * certificate.precision_error)
    assert np.mean(away <= certificate.bounds["band"]) >= 0.9
    assert "While these three hold, the prediction stays within" in " ".join(str(certificate).split())
    low, high = certificate.worst_case
    assert low <= rule.predictions[0] <= high
    assert certificate.coverage > 0.0


def test_certificates_do_not_depend_on_the_other_rows(forest):
    model, literals, X = forest
    explainer = limes.SparseExplainer(
        model.predict, literals=literals, k=2, objective="precision", samples=200
    )
    whole = explainer(X.iloc[:4], progress=False)
    assert explainer(X.iloc[[2]]).certificates[0] == whole.certificates[2]
    turned = explainer(X.iloc[[3, 2, 1, 0]], progress=False, workers=2)
    assert turned.certificates[::-1] == whole.certificates


def test_probabilities_and_classes_are_named(forest):
    _, literals, X = forest
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, X["bmi"] * X["s5"] > 120)
    options = {"literals": literals, "k": 2}
    rule = limes.SparseExplainer(model, objective="class", **options)(X.iloc[[5]])
    side = "below 0.5" if rule.predictions[0] < 0.5 else "at or above 0.5"
    assert f"While both facts hold, the probability is {side} for" in " ".join(str(rule.certificate).split())
    assert rule.certificate.threshold == 0.5
    precise = limes.SparseExplainer(model, objective="precision", **options)(X.iloc[[5]])
    assert precise.certificate.precision <= rule.certificate.precision + 0.02
    again = limes.Explanation.from_json(precise.to_json())
    assert again.certificate.facts == precise.certificate.facts
    assert "While both facts hold" in " ".join(again.to_html().split())
    assert "While both facts hold" in precise.to_report()


def test_excluded_columns_are_no_facts(forest):
    model, literals, X = forest
    explainer = limes.SparseExplainer(model, literals=literals, k=3, objective="precision", samples=300)
    facts = explainer(X.iloc[[5]], exclude=["bmi", "s5"]).certificate.facts
    assert len(facts) == 3
    assert not any(name in fact for fact in facts for name in ("bmi", "s5"))


def test_a_constant_model_needs_no_facts():
    rule = limes.SparseExplainer(lambda z: np.full(len(z), 2.0), k=3, objective="precision")(np.ones((1, 5)))
    assert rule.certificate.facts == ()
    assert rule.rule() == "always  ->  output within 0 of 2"
    assert "Whatever changes, the prediction stays within 0 of 2" in " ".join(str(rule.certificate).split())


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"objective": "precise"}, "did you mean 'precision'"),
        ({"objective": "precision", "solver": "branch_and_bound"}, "leave out solver="),
        ({"objective": "precision", "intercept": False}, "leave out solver=, intercept="),
        ({"objective": "precision", "certify": "fidelity"}, "certify="),
        ({"objective": "precision", "threshold": 0.5}, "goes with objective='class'"),
        ({"threshold": 0.5}, "goes with objective='class'"),
        ({"objective": "class"}, "needs threshold="),
        ({"objective": "class", "threshold": True}, "finite number"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, advice):
    with pytest.raises(InputError, match=advice):
        limes.SparseExplainer(lambda z: z[:, 0], **options)


def test_a_rule_that_holds_is_not_judged_by_its_fit():
    """Two facts hold the product down, which their weights do not describe."""

    def model(z):
        return z[:, 0] * z[:, 1]

    for objective, judged in (("precision", False), ("fidelity", True)):
        rule = limes.SparseExplainer(model, k=1, spread=0.0, objective=objective, rng=0)([[1.0, 1.0, 1.0]])
        texts = f"{rule}\n{rule.to_html()}"
        assert ("R²" in texts.partition("how this was made")[0]) == judged


WINE, VARIETY = load_wine(return_X_y=True, as_frame=True)
OF_THREE = RandomForestClassifier(20, max_depth=4, random_state=0).fit(
    WINE, np.array(["a", "b", "c"])[VARIETY]
)


@pytest.mark.parametrize("law", ["literal", "background"])
@pytest.mark.parametrize("objective", ["class", "precision"])
def test_the_predicted_one_of_three_classes_needs_no_output(objective, law):
    literals = limes.Literals.fit(WINE)
    explainer = limes.SparseExplainer(
        OF_THREE, literals=literals, k=2, objective=objective, law=law, samples=300, rng=0
    )
    labels = OF_THREE.predict(WINE)
    for label in "abc":
        place = int(np.flatnonzero(labels == label)[0])
        explanation = explainer(WINE.iloc[[place]], progress=False)
        certificate = explanation.certificate
        if objective == "precision":
            assert explanation.output_names == (label,)
            chances = OF_THREE.predict_proba(WINE)[:, "abc".index(label)]
            assert explanation.predictions[0] == pytest.approx(chances[place], rel=1e-9)
            continue
        assert explanation.rule().endswith(f"->  class {label} is predicted")
        assert (explanation.predictions[0], certificate.threshold) == (1.0, 0.5)
        # of the table's own rows with the facts this share is of the class, by the model's own predict
        facts = [explanation.conditions[0][j] for j in np.flatnonzero(explanation.coefficients.values[0])]
        signs, names = literals.transform(WINE), list(literals.names)
        holds = np.all([signs[:, names.index(fact)] == 1 for fact in facts], axis=0)
        assert certificate.agreement == pytest.approx((labels[holds] == label).mean(), rel=1e-12)
    with pytest.raises(
        InputError, match=r"predicts 3 classes at these rows.*one class at a time, or output=$"
    ):
        explainer(WINE, progress=False)
