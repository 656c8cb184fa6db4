"""Contrasts of least cost, several of them, and those of classes, against the enumeration of all rows.

The oracle asks the model itself about every row of a small grid; it shares no code with the search.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint, milp
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier

import limes
from effort import repeats
from internals import cheapest_choice, hitting_sets
from limes.exceptions import InputError, UnknownOptionError

SEEDS = range(repeats(20, 3))
REGRESSORS = {
    "linear": lambda: LinearRegression(),
    "poisson": lambda: PoissonRegressor(),
    "forest": lambda: RandomForestRegressor(8, max_depth=5, random_state=0),
    "histogram": lambda: HistGradientBoostingRegressor(
        max_iter=10, min_samples_leaf=3, categorical_features=[0], random_state=0
    ),
    "kernel": lambda: SVR(C=3.0),
    "network": lambda: MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", max_iter=20000, random_state=0),
}


def xgboost():
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1)


def lightgbm():
    library = pytest.importorskip("lightgbm")
    return library.LGBMClassifier(n_estimators=15, min_child_samples=4, n_jobs=1, verbose=-1)


CLASSIFIERS = {
    "logistic": lambda: LogisticRegression(),
    "scaled": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "bayes": lambda: GaussianNB(),
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(8, max_depth=5, random_state=0),
    "extra": lambda: ExtraTreesClassifier(6, max_depth=4, random_state=0),
    "gradient": lambda: GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=4, random_state=0),
    "xgboost": xgboost,
    "lightgbm": lightgbm,
}


def table(rng, columns=5, missing=False):
    """Columns of four values, one of which is about as rare as it is far."""
    x = rng.choice([0.0, 1.0, 2.0, 5.0], (120, columns), p=[0.3, 0.3, 0.25, 0.15])
    if missing:
        x[rng.random(x.shape) < 0.08] = np.nan
    return x


def score_of(x, rng):
    x = np.nan_to_num(x, nan=1.5)
    return 0.8 * x[:, 0] - x[:, 1] + (x[:, 2] > 1) * (x[:, 3] - 1) + 0.6 * rng.normal(size=len(x))


class Grid:
    """All rows that constraints leave, what they cost and how many columns they change."""

    def __init__(self, x, row, weights=None, fixed=(), directions=None, categorical=(), obeys=None):
        values = []
        for j in range(x.shape[1]):
            its = np.unique(np.append(x[:, j], row[j]))
            if j in fixed:
                its = row[j : j + 1]
            move = (directions or {}).get(j)
            if move is not None:
                its = its[its >= row[j]] if move == "up" else its[its <= row[j]]
                its = its if its.size else row[j : j + 1]
            values.append(its)
        self.rows = np.array([*product(*values)])
        if obeys is not None:
            self.rows = self.rows[obeys(self.rows)]
        same = (self.rows == row) | (np.isnan(self.rows) & np.isnan(row))
        spread = np.nanstd(x, axis=0)
        apart = np.abs(self.rows - row) / spread
        plain = ~np.isnan(apart) & ~np.isin(np.arange(row.size), categorical)
        self.changed = ~same
        self.costs = np.where(plain, apart, ~same) @ (np.ones(row.size) if weights is None else weights)
        self.counts = self.changed.sum(axis=1).astype(float)

    def best(self, enough, sizes, earlier=()):
        """The least size of the rows that are enough and leave a column of each earlier answer."""
        allowed = enough.copy()
        for columns in earlier:
            allowed &= ~self.changed[:, [*columns]].all(axis=1)
        return sizes[allowed].min(initial=np.inf)


def changed_row(contrast, row):
    new = row.copy()
    for change in contrast.changes:
        new[int(change.feature[1:])] = np.nan if change.new_value is None else change.new_value
    return new


def columns_of(contrast):
    return [int(change.feature[1:]) for change in contrast.changes]


def constraints(rng, columns):
    """Random columns that are fixed or only move one way, and random costs."""
    order = rng.permutation(columns)
    fixed = [int(j) for j in order[: rng.integers(0, 2)]]
    directions = {int(j): str(rng.choice(["up", "down"])) for j in order[2 : 2 + rng.integers(0, 3)]}
    weights = np.ones(columns)
    for j in order[: rng.integers(0, 4)]:
        weights[j] = float(rng.choice([0.0, 0.25, 3.0, 10.0]))
    return fixed, directions, weights


def named(fixed, directions, weights):
    return {
        "fixed": [f"x{j}" for j in fixed],
        "directions": {f"x{j}": move for j, move in directions.items()},
    }, {f"x{j}": w for j, w in enumerate(weights.tolist())}


def check(contrast, grid, enough, row, sizes, earlier=()):
    """Compare one answer with the enumeration."""
    best = grid.best(enough, sizes, earlier)
    assert contrast.reached == (not np.isinf(contrast.objective))
    if not contrast.reached:
        assert contrast.changes == ()
        assert contrast.lower_bound <= best + 1e-9
        assert np.isinf(best) or not contrast.proved
        return
    new = changed_row(contrast, row)
    same = (grid.rows == new) | (np.isnan(grid.rows) & np.isnan(new))
    (place,) = np.flatnonzero(same.all(axis=1))
    assert enough[place]
    assert contrast.objective == pytest.approx(sizes[place], rel=1e-9, abs=1e-12)
    assert not any(grid.changed[place, [*columns]].all() for columns in earlier)
    assert contrast.lower_bound <= best + 1e-9
    assert contrast.objective >= best - 1e-9
    if contrast.proved:
        assert contrast.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert contrast.gap == 0.0
    else:
        assert contrast.reason
        assert 0.0 < contrast.gap <= 1.0


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_fewest_and_the_cheapest_changes_are_those_of_the_enumeration(kind, seed):
    rng = np.random.default_rng([seed, 1])
    x = table(rng, missing=kind == "histogram")
    y = score_of(x, rng)
    model = REGRESSORS[kind]().fit(x, y - y.min() + 0.1 if kind == "poisson" else y)
    row = x[int(rng.integers(len(x)))]
    categorical = [0] if kind == "histogram" else []
    fixed, directions, weights = constraints(rng, 5)
    directions = {j: move for j, move in directions.items() if j not in categorical}
    grid = Grid(x, row, weights, fixed, directions, categorical)
    answers = model.predict(grid.rows)
    options, costs = named(fixed, directions, weights)
    literals = limes.Literals.fit(x, categorical=categorical or None)
    explainer = limes.SparseExplainer(model, literals=literals, k=1)
    for share in (0.01, 0.2, 0.5):
        at = float(np.quantile(answers, share)) + 1e-7
        for side, enough in (("below", answers < at), ("above", answers > at)):
            goal = {side: at}
            if enough[~grid.changed.any(axis=1)].any():
                continue
            fewest = explainer.contrast(row[None, :], **goal, **options)
            check(fewest, grid, enough, row, grid.counts)
            cheapest = explainer.contrast(row[None, :], **goal, **options, minimize="cost", costs=costs)
            check(cheapest, grid, enough, row, grid.costs)
            if kind != "network":
                assert fewest.proved
                assert cheapest.proved
            short = explainer.contrast(row[None, :], **goal, minimize="cost", nodes=3)
            check(
                short,
                whole := Grid(x, row, None, (), {}, categorical),
                beyond(model, whole, side, at),
                row,
                whole.costs,
            )


def beyond(model, grid, side, at):
    answers = model.predict(grid.rows)
    return answers < at if side == "below" else answers > at


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [2, 3])
def test_another_class_is_reached_by_the_fewest_and_the_cheapest_changes(kind, seed, count):
    rng = np.random.default_rng([seed, count])
    x = table(rng)
    score = score_of(x, rng)
    labels = np.array(["a", "b", "c"])[
        np.searchsorted(np.quantile(score, np.arange(1, count) / count), score)
    ]
    if kind in ("xgboost",):
        labels = np.unique(labels, return_inverse=True)[1]
    model = CLASSIFIERS[kind]().fit(x, labels)
    row = x[int(rng.integers(len(x)))]
    now = model.predict(row[None, :])[0]
    fixed, directions, weights = constraints(rng, 5)
    grid = Grid(x, row, weights, fixed, directions)
    classes = model.predict(grid.rows)
    options, costs = named(fixed, directions, weights)
    explainer = limes.SparseExplainer(
        model, literals=limes.Literals.fit(x), k=1, output=model.classes_[0], **options
    )
    for to in [None, *(label for label in model.classes_ if label != now)]:
        enough = classes != now if to is None else classes == to
        fewest = explainer.contrast(row[None, :], to=to)
        check(fewest, grid, enough, row, grid.counts)
        cheapest = explainer.contrast(row[None, :], to=to, minimize="cost", costs=costs)
        check(cheapest, grid, enough, row, grid.costs)
        assert fewest.proved
        assert cheapest.proved
        for contrast in (fewest, cheapest):
            assert contrast.label == str(now)
            if contrast.reached:
                new = model.predict(changed_row(contrast, row)[None, :])[0]
                assert contrast.new_label == str(new)
                assert str(new) in repr(contrast)


@pytest.mark.parametrize("kind", ["linear", "forest"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("minimize", ["columns", "cost"])
def test_several_answers_are_the_next_best_ones(kind, seed, minimize):
    rng = np.random.default_rng([seed, 2])
    x = table(rng)
    model = REGRESSORS[kind]().fit(x, score_of(x, rng))
    row = x[int(rng.integers(len(x)))]
    grid = Grid(x, row)
    answers = model.predict(grid.rows)
    at = float(np.quantile(answers, 0.2)) + 1e-7
    if answers[~grid.changed.any(axis=1)][0] < at:
        at = float(answers.min()) + 1e-7
    enough, sizes = answers < at, grid.counts if minimize == "columns" else grid.costs
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    contrasts = explainer.contrasts(row[None, :], 4, below=at, minimize=minimize)
    earlier = []
    for contrast in contrasts:
        check(contrast, grid, enough, row, sizes, earlier)
        assert contrast.proved
        assert contrast.earlier == len(earlier)
        earlier.append(columns_of(contrast))
    assert contrasts[0] == explainer.contrast(row[None, :], below=at, minimize=minimize)
    if len(contrasts) < 4 and contrasts[-1].changes:
        assert np.isinf(grid.best(enough, sizes, earlier))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("minimize", ["columns", "cost"])
def test_disjoint_answers_share_no_column(seed, minimize):
    rng = np.random.default_rng([seed, 4])
    x = table(rng)
    model = REGRESSORS["forest"]().fit(x, score_of(x, rng))
    row, grid = x[0], Grid(x, x[0])
    answers = model.predict(grid.rows)
    at = float(model.predict(row[None, :])[0]) - 0.3
    enough, sizes = answers < at, grid.counts if minimize == "columns" else grid.costs
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    used = []
    for contrast in explainer.contrasts(row[None, :], 4, disjoint=True, below=at, minimize=minimize):
        check(contrast, grid, enough, row, sizes, [[j] for j in used])
        used += columns_of(contrast)
    assert len(used) == len({*used})


@pytest.mark.parametrize("seed", SEEDS)
def test_choices_of_a_sum_are_those_of_the_enumeration(seed):
    """Also where effects are ties, costs are 0, and values lie on a line."""
    rng = np.random.default_rng([seed, 5])
    for _ in range(40):
        sizes = rng.integers(1, 6, int(rng.integers(1, 6)))
        costs = [np.append(0.0, rng.integers(0, 4, n - 1)) * 0.3 for n in sizes]
        effects = [np.round(rng.normal(size=n), int(rng.integers(0, 3))) for n in sizes]
        if rng.random() < 0.5:
            effects = [-1.7 * c for c in costs]
        room = float(rng.normal() * 2.0)
        total = np.array([sum(its) for its in product(*costs)])
        effect = np.array([sum(its) for its in product(*effects)])
        if (np.abs(effect - room) < 1e-9).any():
            continue
        best = total[effect < room].min(initial=np.inf)
        choice = cheapest_choice(effects, costs, room)
        if choice is None:
            assert np.isinf(best)
            continue
        assert choice.costs[0] == pytest.approx(best, abs=1e-12)
        assert choice.low <= best + 1e-12
        (places,) = choice.places[:1]
        assert sum(e[i] for e, i in zip(effects, places, strict=True)) < room


def test_the_cheapest_change_of_a_linear_model_is_that_of_an_integer_program():
    x, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(x, y)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    for i in (3, 7, 200):
        row, at = x[i], float(model.predict(x[[i]])[0]) - 60.0
        contrast = explainer.contrast(x[[i]], below=at, minimize="cost")
        values = [np.unique(x[:, j]) for j in range(10)]
        cost = np.concatenate([np.abs(v - row[j]) / x[:, j].std() for j, v in enumerate(values)])
        effect = np.concatenate([model.coef_[j] * v for j, v in enumerate(values)])
        one = np.repeat(np.eye(10), [v.size for v in values], axis=1)
        limits = [LinearConstraint(one, 1.0, 1.0), LinearConstraint(effect, -np.inf, at - model.intercept_)]
        solved = milp(cost, integrality=np.ones(cost.size), constraints=limits, bounds=(0, 1))
        assert contrast.objective == pytest.approx(solved.fun, rel=1e-4)
        assert contrast.lower_bound <= contrast.objective
        assert contrast.gap < 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_smallest_sets_that_hit_all(seed):
    rng = np.random.default_rng(seed)
    sets = [rng.choice(5, int(rng.integers(1, 4)), replace=False).tolist() for _ in range(3)]
    hitting = [
        frozenset(np.flatnonzero(chosen).tolist())
        for chosen in product([False, True], repeat=5)
        if all(any(chosen[j] for j in its) for its in sets)
    ]
    smallest = {its for its in hitting if not any(other < its for other in hitting)}
    assert {*hitting_sets(sets)} == smallest


def test_a_model_without_bounds_has_no_proof():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    model = lambda v: np.tanh(v[:, 0]) + 0.1 * np.sin(v[:, 1] * v[:, 2])  # noqa: E731
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    row = x[[int(np.argmax(x[:, 0]))]]
    contrast = explainer.contrast(row, below=0.0, minimize="cost")
    assert contrast.reached
    assert contrast.new_prediction < 0.0
    assert (contrast.proved, contrast.gap) == (False, 1.0)
    assert "Not proved to be the cheapest change" in " ".join(str(contrast).split())
    assert contrast == explainer.contrast(row, below=0.0, minimize="cost")


def test_the_nearest_rows_of_a_table_are_rows_of_it():
    rng = np.random.default_rng(1)
    x = table(rng)
    model = RandomForestClassifier(8, max_depth=5, random_state=0).fit(x, score_of(x, rng) > 0)
    row = x[3]
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1, fixed=["x4"])
    contrasts = explainer.contrasts(row[None, :], 3, among="rows")
    others = x[(model.predict(x) != model.predict(row[None, :])[0]) & (x[:, 4] == row[4])]
    costs = np.abs(np.unique(others, axis=0) - row) @ (1.0 / x.std(axis=0))
    assert [one.objective for one in contrasts] == pytest.approx(np.sort(costs)[:3])
    for one in contrasts:
        assert one.proved
        assert (x == changed_row(one, row)).all(axis=1).any()
        assert "need not be a plausible one" not in str(one)


def test_texts_and_missing_values_are_changed_as_the_table_has_them():
    rng = np.random.default_rng(2)
    x = pd.DataFrame(
        {
            "city": rng.choice(["Ulm", "Bonn", "Köln"], 200),
            "income": np.where(rng.random(200) < 0.1, np.nan, rng.integers(1, 9, 200)),
        }
    )
    y = (x["income"].fillna(0) + 3 * (x["city"] == "Bonn") + rng.normal(size=200)) > 5
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["city"]), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=15)).fit(x, y)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    for i in range(6):
        contrast = explainer.contrast(x.iloc[[i]], minimize="cost", costs={"city": 0.5})
        new = x.iloc[[i]].assign(**{change.feature: change.new_value for change in contrast.changes})
        assert str(model.predict(new)[0]) == contrast.new_label != contrast.label
        assert contrast.proved


def test_wrong_questions_about_costs_and_classes_are_refused():
    x = np.arange(12.0).reshape(6, 2)
    literals = limes.Literals.fit(x)
    model = LogisticRegression().fit(x, ["a", "a", "a", "b", "b", "b"])
    explainer = limes.SparseExplainer(model, literals=literals, k=1)
    for match, options in (
        ("one goal", {"to": "b", "below": 0.5}),
        ("is no class of the model", {"to": "c"}),
        ("minimize='price'", {"minimize": "price"}),
        ("costs= goes with", {"costs": {"x0": 2.0}}),
        ("costs\\['x0'\\]", {"costs": {"x0": -2.0}, "minimize": "cost"}),
        ("which is no column", {"costs": {"x9": 2.0}, "minimize": "cost"}),
        ("nodes", {"nodes": 0}),
        ("directions must be", {"directions": "up"}),
        ("fixed must be a list", {"fixed": "x0"}),
    ):
        with pytest.raises(InputError, match=match):
            explainer.contrast(x[:1], **options)
    with pytest.raises(UnknownOptionError, match="did you mean 'minimize'"):
        explainer.contrasts(x[:1], minimise="cost")
    with pytest.raises(InputError, match="which is no column"):
        limes.SparseExplainer(model, literals=literals, k=1, fixed=["age"])
    with pytest.raises(InputError, match="sideways"):
        limes.SparseExplainer(model, literals=literals, k=1, directions={"x0": "sideways"})


@pytest.mark.parametrize("kind", ["linear", "forest"])
@pytest.mark.parametrize("seed", SEEDS)
def test_relations_of_a_domain_hold_in_the_cheapest_change(kind, seed):
    rng = np.random.default_rng([seed, 3])
    x = table(rng, 6)
    x[:, 4] = x[:, 3] + rng.integers(0, 2, len(x))
    hot = rng.integers(0, 3, len(x))
    x = np.column_stack([x[:, :5], *(hot == i for i in range(3))])[:, [0, 3, 4, 5, 6, 7]]
    model = REGRESSORS[kind]().fit(
        x, x[:, 0] - x[:, 1] + 0.3 * x[:, 2] + 2.0 * x[:, 4] + rng.normal(size=120)
    )
    domain = limes.Domain.fit(x, one_hot=[["x3", "x4", "x5"]], orders=[("x1", "x2")])
    row = x[int(rng.integers(len(x)))]

    def obeys(rows):
        return (rows[:, 3:].sum(axis=1) == 1.0) & (rows[:, 1] <= rows[:, 2])

    grid = Grid(x, row, obeys=obeys)
    answers = model.predict(grid.rows)
    at = float(np.quantile(answers, 0.1)) + 1e-7
    if answers[~grid.changed.any(axis=1)][0] < at:
        return
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", error=1.0)
    for minimize, sizes in (("columns", grid.counts), ("cost", grid.costs)):
        contrast = explainer.contrast(row[None, :], below=at, minimize=minimize)
        check(contrast, grid, answers < at, row, sizes)
        assert contrast.reached
        assert contrast.proved
        assert "exactly one of x3, x4, x5 is 1" in str(contrast).replace("\n", " ")


@pytest.mark.parametrize("row", [0, 10, 40])
def test_a_search_that_is_cut_short_is_no_dearer_than_the_fewest_columns(row):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(20, random_state=0).fit(X, y)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(X), output=1)
    fewest = explainer.contrast(X.iloc[[row]])
    cheapest = explainer.contrast(X.iloc[[row]], minimize="cost", nodes=1)
    assert cheapest.reached
    spread = X.std(ddof=0)
    costs = [
        sum(abs(change.new_value - change.value) / spread[change.feature] for change in its.changes)
        for its in (fewest, cheapest)
    ]
    assert costs[1] <= costs[0] * (1 + 1e-9)
    assert cheapest.objective == pytest.approx(costs[1])
