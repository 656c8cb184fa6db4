"""Rules at the borders: the fewest facts, answers of 0, weights at a box, tables without neighbours."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
import oracle
from effort import repeats
from internals import SOLVERS
from limes.exceptions import InputError

LAWS = ("literal", "count")


def network(seed, d=8):
    rng = np.random.default_rng(seed)
    inner, outer = rng.normal(size=(d, 6)) * 0.5, rng.normal(size=6)
    return lambda z: np.tanh(z @ inner) @ outer


class Neighbours:
    """All neighbours of a row with their probabilities, and the answers to them."""

    def __init__(self, model, x, spread, law="literal"):
        self.x, self.rows = x, oracle.all_rows(x.size)
        self.weights = oracle.row_law(self.rows, x, spread, law)
        self.distances = np.abs(model(self.rows) - model(x[None, :]))

    def error(self, facts):
        holds = (self.rows[:, facts] == self.x[list(facts)]).all(axis=1)
        return float(self.weights[holds] @ self.distances[holds] / self.weights[holds].sum())

    def least(self, k):
        return min(self.error(list(facts)) for facts in combinations(range(self.x.size), k))

    def fewest(self, error):
        return next(k for k in range(self.x.size + 1) if self.least(k) <= error)


# -- the fewest ----------------------------------------------------------------------------------------------


def product_of_two(z):
    return 0.6 * z[:, 0] * z[:, 1] + 0.1 * z[:, 2] + 0.05 * z[:, 3]


def exclusive_or(z):
    return 0.4 * z[:, 0] * z[:, 1] * z[:, 2] + 0.2 * z[:, 5]


def corner(z):
    return (z[:, :3] > 0).all(axis=1) * 0.9 + 0.02 * z[:, 4]


def steps(z):
    return np.where(z[:, 0] > 0, np.where(z[:, 1] > 0, 0.8, -0.5), 0.1 * z[:, 2])


FUNCTIONS = [product_of_two, exclusive_or, corner, steps]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("case", [*FUNCTIONS, *range(repeats(30, 8))])
def test_by_default_the_smallest_rule_has_the_fewest_facts(case, spread, law):
    """With the default options the certified error is that of precision, and no fewer facts reach it."""
    model, rng = (network(case) if isinstance(case, int) else case), np.random.default_rng(1)
    x = rng.choice([-1.0, 1.0], 8) if isinstance(case, int) else np.ones(8)
    truth = Neighbours(model, x, spread, law)
    for k in (1, 3):
        error = 1.02 * truth.least(k) + 1e-9
        options = {"k": "smallest", "error": error, "spread": spread, "law": law, "rng": 0}
        rule = limes.SparseExplainer(model, **options)(x[None, :])
        facts = [int(fact.split()[0][1:]) for fact in rule.certificate.facts]
        assert len(facts) == truth.fewest(error) == rule.certificate.fewest
        assert truth.error(facts) <= error
        assert rule.certificate.certified == rule.certificate.minimises == "precision"
        assert rule.converged


def test_the_fewest_facts_of_a_table_are_the_fewest():
    """Bins of columns, of which two are excluded; a forest that is read."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = RandomForestRegressor(10, max_depth=3, random_state=0).fit(X, y)
    options = {"literals": limes.Literals.fit(X, bins=2), "k": "smallest", "error": 40.0, "exclude": ["age"]}
    rule = limes.SparseExplainer(model, **options)(X.iloc[[3]])
    explicit = limes.SparseExplainer(model, **options, objective="precision")(X.iloc[[3]])
    assert rule.certificate == explicit.certificate
    assert rule.certificate.bounds["precision"] <= 40.0


@pytest.mark.parametrize("certify", ["fidelity", None])
def test_the_fewest_literals_for_the_fidelity_error_are_the_fewest(certify):
    """Mean squares of all rules of a size, by enumeration of supports and rows."""
    model, x = network(4), np.ones(8)
    rows, y = oracle.all_rows(8), network(4)(np.ones((1, 8)))[0]
    root = np.sqrt(oracle.row_law(rows, x, 1.0, "literal"))[:, None]

    def least(k):
        columns, answers = root * (rows - 1.0), root[:, 0] * (model(rows) - y)
        fits = [columns[:, list(s)] for s in combinations(range(8), k)]
        return min(((c @ np.linalg.lstsq(c, answers)[0] - answers) ** 2).sum() for c in fits)

    # half way between two sizes: the bound of many fresh rows is between them, too
    error = 0.5 * (least(3) + least(4))
    options = {"k": "smallest", "error": error, "fresh": 200_000, "samples": 20_000}
    rule = limes.SparseExplainer(model, objective="fidelity", certify=certify, **options)(x[None, :])
    assert np.count_nonzero(rule.coefficients.values) == 4
    assert rule.certificate.certified == "fidelity"
    assert "rules of fewer facts that were tried do not reach" in " ".join(str(rule.certificate).split())


@pytest.mark.parametrize(
    "options", [{"intercept": False}, {"solver": "hard_thresholding"}, {"solver": "branch_and_bound"}]
)
def test_rules_of_least_fidelity_error_say_that_fewer_facts_may_do(options):
    rule = limes.SparseExplainer(product_of_two, k="smallest", error=0.2, spread=0.0, **options)(
        np.ones((1, 8))
    )
    assert np.count_nonzero(rule.coefficients.values) > 2
    assert (rule.certificate.certified, rule.certificate.minimises) == ("precision", "fidelity")
    text = " ".join(str(rule.certificate).split())
    assert "among those of least fidelity error with 1, 2, ... facts: fewer other facts may do" in text
    again = limes.Explanation.from_json(rule.to_json())
    assert str(again.certificate) == str(rule.certificate)


def test_a_rule_that_misses_its_error_states_no_fewest():
    options = {"k": "smallest", "error": 1e-6, "fresh": 50, "samples": 100, "intercept": False}
    rule = limes.SparseExplainer(network(0, 24), **options)(np.ones((1, 24)))
    assert not rule.converged
    assert rule.certificate.certified == ""
    assert "fewer other facts" not in str(rule.certificate)


def test_all_columns_as_facts_leave_no_error():
    """A table's columns have several other values: drawn rows had a bound above 0, where there is one row."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    options = {"literals": limes.Literals.fit(X), "k": "smallest", "error": 1e-9}
    rule = limes.SparseExplainer(lambda x: x.sum(axis=1), **options)(X[:1])
    assert rule.certificate.bounds["precision"] == rule.certificate.precision == 0.0
    assert len(rule.certificate.facts) == 3
    assert rule.converged


# -- answers of 0 --------------------------------------------------------------------------------------------


def rare(z):
    return (z[:, :6] < 0).all(axis=1) * 1.0


ANSWERS = {
    "zero": lambda z: np.zeros(len(z)),
    "negative zero": lambda z: -np.zeros(len(z)),
    "constant": lambda z: np.full(len(z), 0.3),
    "negative": lambda z: np.full(len(z), -0.7),
    "rare": rare,
    "rare and level": lambda z: 0.5 + 0.5 * rare(z),
    "zero at the row": lambda z: z[:, 0] - z[:, 1],
    "denormal": lambda z: 1e-320 * z[:, 0],
    "level": lambda z: np.full(len(z), 1e6),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_solver_answers_where_the_model_answers_zero(name, solver):
    """Without an answer that differs a rule has no literal; it still adds up to the prediction."""
    if solver == "convex":
        pytest.importorskip("cvxpy")
    model, x = ANSWERS[name], np.ones((1, 8))
    expected = float(model(x)[0])
    boxes = [None] if abs(expected) > 2 else [None, 1.0]
    forms = [(True, None), *((False, box) for box in boxes)]
    for (intercept, box), (law, k) in product(forms, zip(LAWS, (2, 8), strict=True)):
        options = {"intercept": intercept, "box": box, "law": law, "k": k, "samples": 100}
        rule = limes.SparseExplainer(model, solver=solver, **options)(x)
        size = 1e-300 + np.abs(rule.coefficients.values).sum()
        assert rule.coefficients.intercepts[0] + rule.coefficients.values.sum() == pytest.approx(
            expected, rel=1e-9, abs=1e-9 * size
        )
        assert np.isfinite(rule.coefficients.values).all()
        if name in ("zero", "negative zero"):
            assert not rule.coefficients.values.any()
        assert " ".join(rule.rule().split()) in " ".join(str(rule).split())


@pytest.mark.parametrize("law", LAWS)
def test_a_zero_row_among_others_is_explained_beside_them(law):
    rows = np.array([[1.0] * 8, [-1.0] * 8])
    rules = limes.SparseExplainer(rare, k=3, law=law, intercept=False, samples=200)(rows, progress=False)
    assert rules.coefficients.surrogate_predictions == pytest.approx([0.0, 1.0])


# -- the box -------------------------------------------------------------------------------------------------


def best_in_box(signs, values, target, k, box):
    """Least mean square of all supports: each weight is free or at an end of the box, and all sum to y."""
    least = np.inf
    for support in combinations(range(signs.shape[1]), k):
        columns = signs[:, support]
        for ends in product((-box, None, box), repeat=k):
            free = [j for j, end in enumerate(ends) if end is None]
            u = np.array([0.0 if end is None else end for end in ends])
            rest = target - u.sum()
            if free:
                gram = columns[:, free].T @ columns[:, free]
                side = columns[:, free].T @ (values - columns @ u)
                system = np.block([[gram, np.ones((len(free), 1))], [np.ones((1, len(free))), 0.0]])
                u[free] = np.linalg.lstsq(system, np.append(side, rest))[0][:-1]
            if abs(u.sum() - target) <= 1e-9 and np.abs(u).max() <= box + 1e-12:
                least = min(least, float(((columns @ u - values) ** 2).mean()))
    return least


class Recorded:
    """A model that keeps what it was asked."""

    def __init__(self, model):
        self.model, self.batches = model, []

    def __call__(self, z):
        self.batches.append(z)
        return self.model(z)

    def sample(self, rows):
        """The last batch of this size: the sample, which is drawn after the fresh rows."""
        return [batch for batch in self.batches if len(batch) == rows][-1]


BOXES = [
    # literals, k, rows, box
    (8, 2, 20, 0.4),
    (8, 2, 20, 0.15),
    (8, 3, 20, 0.2),
    (8, 1, 30, 2.0),
    (6, 6, 40, 0.1),
    (7, 3, 5, 0.3),  # fewer rows than literals
    (9, 3, 300, 0.25),
    (8, 4, 25, 0.12),
    (6, 2, 21, 1.0),
]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("d", "k", "m", "box"), BOXES)
def test_branch_and_bound_reaches_the_optimum_within_the_box(d, k, m, box, law):
    """The paper's (MIP) of the rows that the model was asked."""
    binding = 0
    for seed in range(repeats(8, 2)):
        inner = np.random.default_rng(seed).normal(size=(d, 3)) / np.sqrt(d)
        model = Recorded(lambda z, inner=inner: 1.4 * np.tanh(2.0 * z @ inner).mean(axis=1))
        target = float(model(np.ones((1, d)))[0])
        reach = max(box, 1.01 * abs(target) / k)
        options = {
            "solver": "branch_and_bound",
            "intercept": False,
            "samples": m,
            "fresh": m + 1,
            "rng": seed,
        }
        rule = limes.SparseExplainer(model, k=k, box=reach, law=law, **options)(np.ones((1, d)))
        rows = model.sample(m)
        least = best_in_box(rows, model.model(rows), target, k, reach)
        assert rule.certificate.objective == pytest.approx(least, rel=1e-7, abs=1e-12)
        assert np.abs(rule.coefficients.values).max() <= reach * (1.0 + 1e-9)
        assert rule.coefficients.values.sum() == pytest.approx(target, abs=1e-9)
        assert rule.certificate.proved
        assert not any("not proved" in text for text in rule.warnings)
        binding += bool(np.abs(rule.coefficients.values).max() >= reach * (1.0 - 1e-9))
    assert binding or box >= 1.0


def test_equal_literals_share_a_weight_that_one_alone_may_not_have():
    """Without a box the second of two equal literals is of no use; in a box it has half of the weight."""

    def model(z):
        return 0.7 * z[:, 0] + 0.01 * z[:, 3]

    rows = np.random.default_rng(0).choice([-1.0, 1.0], (50, 5))
    signs = np.column_stack([rows[:, 0], rows])
    from internals import SampleProblem

    problem = SampleProblem(np.ones(6), 0.7, signs, model(rows), box=0.4)
    best = SOLVERS["branch_and_bound"].solve(problem, 2)
    assert best.support.tolist() == [0, 1]
    assert best.proved
    assert best.objective == pytest.approx(best_in_box(signs, problem.values, 0.7, 2, 0.4), rel=1e-9)


def test_a_search_in_the_box_that_is_cut_short_says_so():
    model = network(3, 40)
    options = {"solver": "branch_and_bound", "intercept": False, "samples": 60, "time_limit": 1e-9}
    target = abs(float(model(np.ones((1, 40)))[0]))
    rule = limes.SparseExplainer(model, k=8, box=1.1 * target / 8, **options)(np.ones((1, 40)))
    assert not rule.certificate.proved
    assert rule.certificate.lower_bound <= rule.certificate.objective
    assert any("not proved optimal within the time limit" in text for text in rule.warnings)


@pytest.mark.parametrize("solver", ["projection", "hard_thresholding"])
def test_solvers_that_do_not_search_the_box_name_the_one_that_does(solver):
    options = {"k": 2, "intercept": False, "box": 2.6, "solver": solver}
    rule = limes.SparseExplainer(lambda z: 3.0 * z[:, 0] - 2.5 * z[:, 1], **options)(np.ones((1, 6)))
    assert any("pass solver='branch_and_bound'" in text for text in rule.warnings)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_prediction_beyond_the_box_is_refused_alike(solver):
    if solver == "convex":
        pytest.importorskip("cvxpy")
    with pytest.raises(
        InputError, match=r"2 weights in \[-0.3, 0.3\] cannot add up to .*larger k, or a larger box"
    ):
        limes.SparseExplainer(lambda z: 0.9 * z[:, 0], k=2, intercept=False, box=0.3, solver=solver)(
            np.ones((1, 6))
        )


# -- tables without neighbours -------------------------------------------------------------------------------


TABLES = {
    "one row": pd.DataFrame({"age": [40.0], "city": ["Rome"]}),
    "one row of an array": np.array([[40.0, 1.0]]),
    "equal rows": pd.DataFrame({"age": [40.0] * 3, "city": ["Rome"] * 3}),
    "a constant column": pd.DataFrame({"age": [40.0] * 5}),
    "one category": pd.DataFrame({"city": pd.Categorical(["Rome"] * 4)}),
    "a constant date": pd.DataFrame({"day": pd.to_datetime(["2024-01-01"] * 4)}),
    "a constant truth": pd.DataFrame({"late": [True] * 4}),
    "numbers without a cut": np.zeros((6, 3)),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_another_value_is_named_with_its_cure(name):
    table = TABLES[name]
    explainer = limes.SparseExplainer(lambda X: np.zeros(len(X)), k=1, literals=limes.Literals.fit(table))
    n = "1 row" if len(table) == 1 else f"{len(table)} rows"
    with pytest.raises(
        InputError, match=f"row 0 has no neighbours: the table of the literals has {n}.*rows differ"
    ):
        explainer(table[:1])


def test_a_table_without_a_cut_has_no_thresholds():
    with pytest.raises(InputError, match=r"table has no literals: it has 1 row.*rows differ"):
        limes.SparseExplainer(
            lambda z: np.zeros(len(z)),
            literals=limes.Literals.fit(np.array([[40.0]]), encoding="thresholds"),
            neighbourhood="flips",
        )
