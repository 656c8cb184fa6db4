"""Rules under anchors' law, against enumeration of the table, and an independent sampler of rows."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import limes
import oracle
from effort import repeats
from internals import ColumnDraws, TableDraws, TableFactSample
from limes.exceptions import InputError

LAWS = ("background", "marginals")


def categories(seed, rows=40, columns=5, levels=3):
    """A table of categories in which columns depend on each other."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (rows, columns))
    X[:, 1] = np.where(rng.random(rows) < 0.6, X[:, 0], X[:, 1])
    return pd.DataFrame(X.astype(float), columns=[f"c{j}" for j in range(columns)])


def literals_of(X):
    return limes.Literals.fit(X, categorical=list(X.columns))


def lookup(seed, columns=5, levels=3):
    """A function of categories, with another number for each row."""
    numbers = np.random.default_rng(seed).random((levels,) * columns)

    def model(rows):
        return numbers[tuple(np.asarray(rows).astype(int).T)]

    return model


def neighbours(X, row, facts, law):
    """All neighbours with facts (positions of columns) of a row, with their probabilities, one by one."""
    X, row = np.asarray(X), np.asarray(row)
    if law == "background":
        for b in X:
            z = b.copy()
            z[list(facts)] = row[list(facts)]  # a category's bin has one value
            yield z, 1.0 / len(X)
        return
    values = [np.unique(X[:, j]) if j not in facts else row[j : j + 1] for j in range(X.shape[1])]
    for z in product(*values):
        chances = [1.0 if j in facts else float(np.mean(X[:, j] == z[j])) for j in range(X.shape[1])]
        yield np.array(z), float(np.prod(chances))


def expected(X, row, facts, law, loss):
    rows, weights = zip(*neighbours(X, row, facts, law), strict=True)
    return float(np.array(weights) @ loss(np.stack(rows)))


def positions(certificate, X):
    return [list(X.columns).index(fact.split(" = ")[0]) for fact in certificate.facts]


# -- the laws -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_the_errors_are_those_of_all_neighbours(law, seed):
    X, model = categories(seed), lookup(seed)
    row = X.iloc[[seed]]
    explainer = limes.SparseExplainer(
        model, literals=literals_of(X), law=law, objective="precision", k=2, samples=200, fresh=4000, rng=seed
    )
    certificate = explainer(row).certificate
    target = float(model(row.to_numpy())[0])
    truth = expected(
        X, row.to_numpy()[0], positions(certificate, X), law, lambda z: np.abs(model(z) - target)
    )
    assert abs(certificate.precision - truth) <= 5 * certificate.precision_error
    assert certificate.precision_error < 0.01
    assert certificate.bounds["precision"] >= truth


@pytest.mark.parametrize("seed", range(3))
def test_marginals_of_two_values_are_enumerated(seed):
    X, model = categories(seed, levels=2), lookup(seed, levels=2)
    row = X.iloc[[seed]]
    explainer = limes.SparseExplainer(
        model, literals=literals_of(X), law="marginals", objective="precision", k=2, samples=50
    )
    certificate = explainer(row).certificate
    target = float(model(row.to_numpy())[0])

    def error(facts):
        return expected(X, row.to_numpy()[0], facts, "marginals", lambda z: np.abs(model(z) - target))

    sets = [facts for size in range(3) for facts in combinations(range(5), size)]
    chosen = error(positions(certificate, X))
    assert certificate.precision == pytest.approx(chosen, rel=oracle.EXACT)
    assert certificate.precision_error == 0.0
    assert certificate.bounds["precision"] == certificate.precision
    assert certificate.optimum == "population"
    assert certificate.proved
    assert chosen == pytest.approx(min(map(error, sets)), rel=oracle.EXACT)
    held = [np.mean(X.iloc[:, j] == row.iloc[0, j]) for j in positions(certificate, X)]
    assert certificate.coincidence == pytest.approx(np.prod(held), rel=oracle.EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_weights_under_marginals_are_the_least_squares_of_all_neighbours(seed):
    X = categories(seed)
    y = lookup(seed)(X)
    model = RandomForestRegressor(5, random_state=0).fit(X.to_numpy(), y)
    row = X.iloc[[seed]].to_numpy()
    explainer = limes.SparseExplainer(
        model, literals=literals_of(X.set_axis(range(5), axis=1)), law="marginals", objective="precision", k=2
    )
    explanation = explainer(row)
    assert explanation.method == "exact"
    rows, weights = zip(*neighbours(X, row[0], (), "marginals"), strict=True)
    rows, weights, target = np.stack(rows), np.array(weights), float(model.predict(row)[0])
    support = np.flatnonzero(explanation.coefficients.values[0])
    # b + w·s = f(x) where s = 1: b is eliminated
    away = np.where(rows == row, 1.0, -1.0)[:, support] - 1.0
    root = np.sqrt(weights)
    u = np.linalg.lstsq(root[:, None] * away, root * (model.predict(rows) - target), rcond=None)[0]
    assert support.size == 2
    np.testing.assert_allclose(explanation.coefficients.values[0, support], u, rtol=1e-9)


def forest_case():
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(20, random_state=0).fit(X, y == 1)
    return X, model


def independent_draws(X, row, sides, rng, count):
    """Rows of the table; where one is outside of a fact's (low, high], a value of the table inside."""
    X = np.asarray(X)
    rows = X[rng.integers(len(X), size=count)]
    for j, (low, high) in sides.items():
        inside = X[(X[:, j] > low) & (X[:, j] <= high), j]
        lacks = ~((rows[:, j] > low) & (rows[:, j] <= high))
        rows[lacks, j] = rng.choice(inside, int(lacks.sum()))
    return rows


def ends_of(X, row, certificate, bins=4):
    """The ends of each fact, from the quartiles of the table, and whether it states them."""
    sides = {}
    for fact in certificate.facts:
        (name,) = [c for c in X.columns if c in fact and not any(c != o and c in o and o in fact for o in X)]
        edges = np.quantile(X[name], np.linspace(0, 1, bins + 1)[1:-1])
        x = row[name].iloc[0]
        below, above = edges[edges < x], edges[edges >= x]
        has_low = " < " in fact or " > " in fact
        has_high = " <= " in fact
        low = below[-1] if has_low else -np.inf
        high = above[0] if has_high else np.inf
        sides[list(X.columns).index(name)] = (low, high)
    return sides


@pytest.mark.parametrize("encoding", ["bins", "thresholds"])
def test_the_share_of_the_class_is_that_of_an_independent_sampler(encoding):
    X, model = forest_case()
    literals = limes.Literals.fit(X, encoding=encoding)
    explainer = limes.SparseExplainer(
        model, literals=literals, law="background", objective="class", k=2, fresh=4000, rng=0
    )
    for i in (0, 60, 100, 150):
        row = X.iloc[[i]]
        certificate = explainer(row).certificate
        side = model.predict_proba(row)[0, 1] >= 0.5
        rows = independent_draws(X, row, ends_of(X, row, certificate), np.random.default_rng(i), 20_000)
        truth = np.mean((model.predict_proba(pd.DataFrame(rows, columns=X.columns))[:, 1] >= 0.5) != side)
        error = np.sqrt(truth * (1 - truth) * (1 / 20_000 + 1 / 4000))
        assert abs(certificate.other_class - truth) <= 5 * error + 1e-3
        assert certificate.bounds["class"] >= truth - 3 * np.sqrt(truth / 20_000)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("objective", ["precision", "class"])
def test_the_bounds_cover(law, objective):
    """All bounds hold together in at least 95 % of the runs: as often as the certificate says."""
    runs, missed = repeats(200, 40), 0
    X, model = categories(11), lookup(11)
    literals, row = literals_of(X), X.iloc[[3]]
    target = float(model(row.to_numpy())[0])
    truths = {}
    for run in range(runs):
        explainer = limes.SparseExplainer(
            model,
            literals=literals,
            law=law,
            objective=objective,
            threshold=0.4 if objective == "class" else None,
            k=2,
            samples=60,
            fresh=80,
            scale=(0.0, 1.0),
            rng=run,
        )
        certificate = explainer(row).certificate
        facts = tuple(positions(certificate, X))
        if facts not in truths:
            truths[facts] = (
                expected(X, row.to_numpy()[0], facts, law, lambda z: np.abs(model(z) - target)),
                expected(X, row.to_numpy()[0], facts, law, lambda z: (model(z) >= 0.4) != (target >= 0.4)),
            )
        distance, other = truths[facts]
        missed += certificate.bounds["precision"] < distance or (
            objective == "class" and certificate.bounds["class"] < other
        )
    assert missed <= 0.05 * runs


# -- the search ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(repeats(30, 8)))
def test_the_search_tries_all_sets_of_few_literals(seed):
    X, model = categories(seed, columns=4), lookup(seed, columns=4)
    row = X.iloc[seed % len(X)].to_numpy()
    near = literals_of(X).draws(row, "background")
    target = float(model(row[None, :])[0])
    sample = TableFactSample(
        near,
        lambda rows: np.abs(model(rows) - target),
        np.arange(4),
        rows=64,
        rng=np.random.default_rng(seed),
    )
    rng = np.random.default_rng(seed)
    rows = near.draw(rng, 64)[1]
    for k in range(1, 5):
        errors = {}
        for facts in (its for size in range(k + 1) for its in combinations(range(4), size)):
            z = rows.copy()
            z[:, list(facts)] = row[list(facts)]
            errors[facts] = float(np.abs(model(z) - target).mean())
        error, facts = sample.best(k).best[0]
        assert error == pytest.approx(min(errors.values()), rel=oracle.EXACT)
        assert error == pytest.approx(errors[facts], rel=oracle.EXACT)


def test_the_search_finds_a_pair_of_many():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 20)), columns=[f"x{j}" for j in range(20)])

    def model(rows):
        rows = np.asarray(rows)
        return ((rows[:, 4] > 0.8) & (rows[:, 15] > 0.8)).astype(float)

    row = X.iloc[[0]].assign(x4=2.0, x15=2.0)
    explainer = limes.SparseExplainer(
        model,
        literals=limes.Literals.fit(X, bins=[[-np.inf, -0.8, 0.0, 0.8, np.inf]] * 20),
        law="background",
        objective="class",
        threshold=0.5,
        k="smallest",
        error=0.05,
        rng=0,
    )
    explanation = explainer(row)
    assert explanation.certificate.facts == ("x4 > 0.8", "x15 > 0.8")
    assert explanation.certificate.other_class == 0.0
    assert explanation.certificate.certified == "class"


def test_a_fact_is_a_side_of_a_cut_where_literals_are():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(400, 6)), columns=[f"x{j}" for j in range(6)])

    def model(rows):
        return (np.asarray(rows)[:, 2] > 0.0).astype(float)

    row = X.iloc[[0]].assign(x2=0.5)
    rules = {}
    for encoding in ("bins", "thresholds"):
        explainer = limes.SparseExplainer(
            model,
            literals=limes.Literals.fit(X, bins=[[-np.inf, -1.0, 0.0, 1.0, np.inf]] * 6, encoding=encoding),
            law="background",
            objective="class",
            threshold=0.5,
            k="smallest",
            error=0.05,
            rng=0,
        )
        rules[encoding] = explainer(row)
    assert rules["bins"].certificate.facts == ("0 < x2 <= 1",)
    # alike in their errors: more rows have the side
    assert rules["thresholds"].certificate.facts == ("x2 > 0",)
    for explanation in rules.values():
        assert explanation.certificate.facts[0] in explanation.rule()
        assert explanation.conditions[0][2] == explanation.certificate.facts[0]


# -- the certificate ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["literal", *LAWS])
def test_agreement_is_the_share_of_the_tables_own_rows(law):
    X, model = forest_case()
    explainer = limes.SparseExplainer(
        model, literals=limes.Literals.fit(X), law=law, objective="class", k=2, rng=0
    )
    for i in (0, 60, 100):
        certificate = explainer(X.iloc[[i]]).certificate
        holds = np.ones(len(X), dtype=bool)
        for j, (low, high) in ends_of(X, X.iloc[[i]], certificate).items():
            holds &= ((X.iloc[:, j] > low) & (X.iloc[:, j] <= high)).to_numpy()
        same = (model.predict_proba(X)[:, 1] >= 0.5) == (certificate.prediction >= 0.5)
        assert certificate.coverage == holds.mean()
        assert certificate.agreement == pytest.approx(same[holds].mean(), rel=oracle.ROUNDING)
        share = f"{np.floor(1000 * certificate.agreement) / 1000:.1%} of these the probability is"
        assert share in " ".join(str(certificate).split())


def test_agreement_of_a_number_is_the_share_within_the_band():
    X = categories(2)
    model = lookup(2)
    certificate = limes.SparseExplainer(
        model, literals=literals_of(X), law="background", objective="precision", k=2, rng=0
    )(X.iloc[[4]]).certificate
    columns = positions(certificate, X)
    holds = (X.iloc[:, columns] == X.iloc[4, columns]).all(axis=1)
    near = np.abs(model(X) - model(X.iloc[[4]])) <= certificate.bounds["band"]
    assert certificate.agreement == near[holds.to_numpy()].mean()


def test_a_certificate_says_what_its_neighbours_are():
    X = categories(2)
    options = {"literals": literals_of(X), "objective": "precision", "k": 2, "samples": 100}

    def clause(**others):
        explanation = limes.SparseExplainer(lookup(2), **options, **others)(X.iloc[[4]])
        sentence = explanation.certificate.neighbourhood
        assert sentence[1:] in " ".join(str(explanation.certificate).split())
        again = limes.Explanation.from_json(explanation.to_json()).certificate
        assert (again.neighbourhood, again.agreement) == (sentence, explanation.certificate.agreement)
        return sentence

    assert clause() == "neighbours keep 73% of the other columns"
    assert clause(spread=0.0) == "neighbours keep 50% of the other columns"
    # given two of five literals that hold, j of the others flip with probability ∝ C(3, j) / C(5, j) e^{-j}
    chances = np.array([1.0, 3 / 5, 3 / 10, 1 / 10]) * np.exp(-np.arange(4.0))
    kept = 1.0 - chances @ np.arange(4) / 3 / chances.sum()
    assert clause(law="count") == f"neighbours keep {kept:.0%} of the other columns"
    assert clause(law="background").startswith("neighbours are rows of the table")
    assert clause(law="marginals") == "neighbours take every other column from the table independently"


def test_rows_with_facts_of_whole_rows_are_no_part_of_the_table():
    X = categories(2)
    options = {"literals": literals_of(X), "objective": "precision", "k": 2, "samples": 100}
    bounds = {
        law: limes.SparseExplainer(lookup(2), law=law, **options)(X.iloc[[4]]).certificate.bounds
        for law in LAWS
    }
    assert "precision_from_fidelity" in bounds["marginals"]
    assert "precision_from_fidelity" not in bounds["background"]


def test_the_laws_of_a_row():
    X = categories(1)
    literals, row = literals_of(X), categories(1).iloc[0].to_numpy()
    table, columns = literals.draws(row, "background"), literals.draws(row, "marginals")
    assert isinstance(table, TableDraws)
    assert isinstance(columns, ColumnDraws)
    flips, rows = columns.draw(np.random.default_rng(0), 500)
    np.testing.assert_array_equal(rows != row, flips)
    np.testing.assert_allclose(1.0 - columns.law.flip, (X.to_numpy() == row).mean(axis=0), rtol=oracle.EXACT)
    flips, rows = table.draw(np.random.default_rng(0), 500)
    np.testing.assert_array_equal(rows != row, flips)


@pytest.mark.parametrize("law", LAWS)
def test_results_depend_on_the_row_and_the_seed_alone(law):
    X, model = forest_case()
    explainer = limes.SparseExplainer(
        model, literals=limes.Literals.fit(X), law=law, objective="class", k=2, rng=3
    )
    together, alone = explainer(X.iloc[[5, 6]]), explainer(X.iloc[[6]])
    assert together[1].certificate == alone.certificate


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "fidelity"}, "rules that are to hold"),
        ({"k": "smallest", "error": 0.1, "objective": "class", "threshold": 0.5, "spread": 2.0}, "spread="),
        ({"objective": "precision", "literals": None}, "literals="),
        ({"objective": "precision", "neighbourhood": "flips"}, "flips"),
        ({"objective": "precision", "law": "table"}, "law"),
    ],
)
@pytest.mark.parametrize("law", LAWS)
def test_options_that_do_not_go_together_are_refused(options, message, law):
    chosen = {"literals": literals_of(categories(0)), "law": law, **options}
    with pytest.raises(InputError, match=message):
        limes.SparseExplainer(lookup(0), **chosen)


def test_sides_of_a_cut_are_for_whole_rows_alone():
    X = categories(0)
    with pytest.raises(InputError, match="law='background'"):
        limes.SparseExplainer(
            lookup(0),
            literals=limes.Literals.fit(X, encoding="thresholds"),
            law="marginals",
            objective="precision",
        )
    with pytest.raises(InputError, match="sampled"):
        limes.SparseExplainer(
            lookup(0), literals=literals_of(X), law="background", objective="precision", method="exact"
        )
