"""Worst cases and contrasts of sparse rules against the enumeration of all rows of the cells."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import limes
from effort import repeats
from limes.exceptions import InputError, UnknownOptionError

SEEDS = range(repeats(40, 3))
KINDS = ["linear", "forest", "boosting", "categories", "products", "kernel behind categories"]


def table(rng, kind):
    """Five columns of four values, so that all combinations can be listed."""
    x = rng.integers(0, 4, (80, 5)).astype(float)
    if kind == "categories":
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


def fitted(kind, x, rng):
    y = np.nan_to_num(x[:, 0] * x[:, 1] - 2.0 * (x[:, 2] > 1)) + rng.normal(size=len(x))
    models = {
        "linear": LinearRegression(),
        "forest": RandomForestRegressor(7, max_depth=5, random_state=0),
        "boosting": GradientBoostingRegressor(n_estimators=15, random_state=0),
        "categories": HistGradientBoostingRegressor(
            max_iter=10, min_samples_leaf=3, categorical_features=[0, 3], random_state=0
        ),
        "products": make_pipeline(PolynomialFeatures(interaction_only=True), LinearRegression()),
        "kernel behind categories": make_pipeline(
            make_column_transformer((OneHotEncoder(sparse_output=False), [0, 3]), remainder=StandardScaler()),
            SVR(),
        ),
    }
    return models[kind].fit(x, y)


def literals_of(kind, x):
    return limes.Literals.fit(x, categorical=[0, 3] if kind == "categories" else None)


# -- worst cases --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_worst_case_is_the_range_of_all_rows_with_the_facts(kind, seed):
    rng = np.random.default_rng(seed)
    x = table(rng, kind)
    model, literals = fitted(kind, x, rng), literals_of(kind, x)
    row = int(rng.integers(len(x)))
    options = {"literals": literals, "k": int(rng.integers(1, 4)), "fresh": 50}
    rule = limes.SparseExplainer(model, worst_case="exact", **options)(x[[row]])
    assert rule.method == "exact"
    used, cells = np.flatnonzero(rule.coefficients.values[0]), literals.cells(literals.table.encode(x))
    values = [np.unique(x[cells[:, j] == cells[row, j], j] if j in used else x[:, j]) for j in range(5)]
    answers = model.predict(np.array([*product(*values)]))
    certificate = rule.certificate
    assert certificate.worst_case_exact
    assert certificate.worst_case == pytest.approx((answers.min(), answers.max()), rel=1e-9, abs=1e-9)
    quick = limes.SparseExplainer(model, **options)(x[[row]]).certificate
    assert quick.worst_case[0] <= answers.min() + 1e-9
    assert quick.worst_case[1] >= answers.max() - 1e-9
    assert quick.worst_case_exact or kind != "linear"


def test_the_worst_case_of_literals_that_flip():
    model = lambda z: 0.5 * z[:, 0] - 0.25 * z[:, 3]  # noqa: E731
    black_box = limes.SparseExplainer(model, k=1)(np.ones((1, 4)))
    assert black_box.certificate.worst_case is None
    z = np.random.default_rng(0).choice([-1.0, 1.0], (50, 4))
    read = limes.SparseExplainer(LinearRegression().fit(z, model(z)), k=1)(np.ones((1, 4)))
    assert read.certificate.worst_case == pytest.approx((0.25, 0.75))
    assert read.certificate.worst_case_exact
    again = type(read).from_json(read.to_json())
    assert again.certificate.worst_case == read.certificate.worst_case


def test_a_large_forest_has_bounds_that_rows_keep():
    x, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(50, max_depth=8, random_state=0).fit(x, y)
    literals = limes.Literals.fit(x)
    rule = limes.SparseExplainer(model, literals=literals, k=2)(x[[3]])
    assert not rule.certificate.worst_case_exact
    cells, rng = literals.cells(literals.table.encode(x)), np.random.default_rng(0)
    rows = np.stack([rng.choice(x[:, j], 2000) for j in range(10)], axis=1)
    for j in np.flatnonzero(rule.coefficients.values[0]):
        rows[:, j] = rng.choice(x[cells[:, j] == cells[3, j], j], 2000)
    low, high = rule.certificate.worst_case
    answers = model.predict(rows)
    assert low <= answers.min()
    assert answers.max() <= high


# -- contrasts ----------------------------------------------------------------------------------------------


def fewest(rows, answers, row, crosses):
    """Count the changes of every row that crosses."""
    changes = ((rows != row) & ~(np.isnan(rows) & np.isnan(row))).sum(axis=1)
    return changes[crosses(answers)].min(initial=9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_fewer_columns_take_the_prediction_beyond_the_threshold(kind, seed):
    rng = np.random.default_rng(seed)
    x = table(rng, kind)
    model, row = fitted(kind, x, rng), x[int(rng.integers(80))]
    values = [np.unique(x[:, j]) for j in range(5)]
    rows = np.array([*product(*values)])
    answers = model.predict(rows)
    explainer = limes.SparseExplainer(model, literals=literals_of(kind, x), k=1)
    for share in (0.0, 0.02, 0.2):
        threshold = float(np.quantile(answers, share)) + 1e-6 * (1 if share else -1)
        for side in ("below", "above"):
            at = threshold if side == "below" else float(answers.max() + answers.min() - threshold)
            crosses = (lambda a: a < at) if side == "below" else (lambda a: a > at)  # noqa: B023
            contrast = explainer.contrast(row[None, :], **{side: at})
            size = fewest(rows, answers, row, crosses)
            assert contrast.proved
            assert contrast.reached == (size < 9)
            if size == 9:
                assert contrast.changes == ()
                continue
            assert len(contrast.changes) == size
            changed = row.copy()
            for change in contrast.changes:
                changed[int(change.feature[1:])] = np.nan if change.new_value is None else change.new_value
            assert contrast.new_prediction == pytest.approx(model.predict(changed[None, :])[0], rel=1e-12)
            assert crosses(contrast.new_prediction)
            assert (changed != row).sum() - (np.isnan(changed) & np.isnan(row)).sum() == size


def test_a_set_of_columns_that_reaches_the_threshold_and_not_beyond_is_searched_to_its_end():
    """Bounds of two trees meet in no row: alone the first column goes down to 1, with the second to 0."""
    x = np.array([*product([0.0, 1.0, 2.0], [0.0, 1.0])])
    answers = [x[:, 0] > 0.5, x[:, 0] < 1.5, -1.0 * ((x[:, 0] < 0.5) & (x[:, 1] > 0.5)), np.zeros(6)]
    trees = [DecisionTreeRegressor(random_state=0).fit(x, 4.0 * answer) for answer in answers]
    model = VotingRegressor([(str(i), tree) for i, tree in enumerate(trees)]).fit(x, x[:, 0])
    model.estimators_ = trees
    assert model.predict(x).tolist() == [1.0, 0.0, 2.0, 2.0, 1.0, 1.0]
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    contrast = explainer.contrast([[1.0, 0.0]], below=1.0)
    assert (len(contrast.changes), contrast.new_prediction, contrast.proved) == (2, 0.0, True)


def test_probabilities_of_a_sum_are_contrasted_exactly():
    x, y = load_diabetes(return_X_y=True)
    model = LogisticRegression(C=100.0).fit(x, y > 200)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=2)
    row = x[[int(np.argmax(model.predict_proba(x)[:, 1]))]]
    contrast = explainer.contrast(row, below=0.5)
    assert contrast.proved
    assert contrast.new_prediction < 0.5 < contrast.prediction
    # each column moves the margin by itself: the fewest are those that lower it most
    falls = np.sort(
        [(c * (v - x[:, j])).max() for j, (c, v) in enumerate(zip(model.coef_[0], row[0], strict=True))]
    )
    margin = float(model.decision_function(row)[0])
    assert len(contrast.changes) == int(np.argmax(np.cumsum(falls[::-1]) > margin)) + 1


def test_columns_that_may_not_change_stay():
    x, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(20, max_depth=4, random_state=0).fit(x, y)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=2, exclude=["sex"])
    free = explainer.contrast(x.iloc[[3]], below=150)
    assert free.reached
    held = explainer.contrast(x.iloc[[3]], below=150, exclude=[c.feature for c in free.changes])
    assert not {c.feature for c in held.changes} & {"sex", *(c.feature for c in free.changes)}
    assert "instead of" in repr(free)
    for text in (str(free), free._repr_html_()):
        assert free.changes[0].feature in text
        assert "Proved" in text
    nothing = explainer.contrast(x.iloc[[3]], below=0.0)
    assert not nothing.reached
    assert nothing.proved
    assert "No row of background values" in " ".join(str(nothing).split())
    already = explainer.contrast(x.iloc[[3]], above=0.0)
    assert already.reached
    assert already.changes == ()
    assert "already" in str(already)


def test_a_model_that_is_not_read_is_contrasted_among_rows_drawn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    model = lambda v: np.tanh(v[:, 0]) + 0.1 * np.sin(v[:, 1] * v[:, 2])  # noqa: E731
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    row = x[[int(np.argmax(x[:, 0]))]]
    contrast = explainer.contrast(row, below=0.0)
    assert [change.feature for change in contrast.changes] == ["x0"]
    assert not contrast.proved
    assert "1,000 rows drawn" in contrast.reason
    assert "Not proved" in str(contrast)
    missed = explainer.contrast(row, below=-50.0)
    assert not missed.reached
    assert not missed.proved
    assert "tried" in str(missed)
    assert explainer.contrast(row, below=0.0) == contrast


def test_kernels_have_bounds():
    x, y = load_diabetes(return_X_y=True)
    model = SVR(C=10.0).fit(x, y)
    contrast = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1).contrast(x[[3]], above=165.0)
    assert contrast.proved
    assert contrast.new_prediction > 165.0
    single = []
    for j in range(10):
        rows = np.tile(x[3], (len(x), 1))
        rows[:, j] = x[:, j]
        single.append(model.predict(rows).max())
    assert (len(contrast.changes) == 1) == (max(single) > 165.0)


def test_wrong_questions_are_refused():
    x = np.arange(12.0).reshape(6, 2)
    explainer = limes.SparseExplainer(LinearRegression().fit(x, x[:, 0]), literals=limes.Literals.fit(x), k=1)
    with pytest.raises(InputError, match="below= or above="):
        explainer.contrast(x[:1])
    with pytest.raises(InputError, match="below= or above="):
        explainer.contrast(x[:1], below=1.0, above=2.0)
    with pytest.raises(InputError, match="one row, got 6"):
        explainer.contrast(x, below=1.0)
    with pytest.raises(InputError, match="finite number"):
        explainer.contrast(x[:1], below=np.nan)
    with pytest.raises(InputError, match="worst_case='all'"):
        limes.SparseExplainer(lambda z: z[:, 0], k=1, worst_case="all")
    with pytest.raises(UnknownOptionError, match="did you mean 'exclude'"):
        limes.SparseExplainer(lambda z: z[:, 0], k=1, exclud=["a"])


def test_an_output_without_a_name_is_the_output():
    rows = np.array([[1.0, 1.0]])
    contrast = limes.SparseExplainer(lambda X: X[:, 0], k=1).contrast(rows, below=0.0)
    assert "The prediction would fall below 0 if x0 were" in str(contrast)
    assert "“" not in str(contrast)


# -- what may change ----------------------------------------------------------------------------------------


def possible(x, row, fixed=(), up=(), down=(), obeys=lambda rows: np.ones(len(rows), dtype=bool)):
    """All rows of background values that differ from a row where and as they may."""
    values = []
    for j in range(x.shape[1]):
        its = np.union1d(np.unique(x[:, j]), row[j])
        its = row[j : j + 1] if j in fixed else its[its >= row[j]] if j in up else its
        values.append(its[its <= row[j]] if j in down else its)
    rows = np.array([*product(*values)])
    return rows[obeys(rows)]


@pytest.mark.parametrize("kind", ["linear", "forest", "boosting"])
@pytest.mark.parametrize("seed", range(repeats(20, 3)))
def test_contrasts_keep_directions_fixed_columns_and_relations(kind, seed):
    rng = np.random.default_rng(seed)
    x = table(rng, kind)
    x[:, 4] = x[:, 3] + rng.integers(0, 3, len(x))
    model, row = fitted(kind, x, rng), x[int(rng.integers(80))]
    domain = limes.Domain.fit(x, fixed=["x2"], one_hot=[])
    assert domain.orders == ((3, 4),)
    rows = possible(x, row, fixed=[2], up=[0], down=[1], obeys=lambda rows: rows[:, 3] <= rows[:, 4])
    answers = model.predict(rows)
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", error=1.0)
    threshold = float(np.quantile(answers, 0.1)) + 1e-6
    contrast = explainer.contrast(row[None, :], below=threshold, directions={"x0": "up", "x1": "down"})
    size = fewest(rows, answers, row, lambda a: a < threshold)
    assert contrast.reached
    assert len(contrast.changes) == size or not contrast.proved
    assert contrast.proved or kind == "linear"
    changed = row.copy()
    for change in contrast.changes:
        changed[int(change.feature[1:])] = change.new_value
    assert (rows == changed).all(axis=1).any()
    assert contrast.new_prediction == pytest.approx(model.predict(changed[None, :])[0], rel=1e-12)
    assert contrast.new_prediction < threshold


def test_the_nearest_row_of_the_background():
    rng = np.random.default_rng(0)
    x = table(rng, "forest")
    model, row = fitted("forest", x, rng), x[7]
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x))
    answers = model.predict(x)
    threshold = float(np.quantile(answers, 0.2))
    for costs in (None, {"x0": 5.0, "x3": 0.0}):
        weights = np.array([5.0, 1.0, 1.0, 0.0, 1.0]) if costs else np.ones(5)
        contrast = explainer.contrast(x[[7]], below=threshold, among="rows", costs=costs)
        total = (np.abs(x - row) / x.std(axis=0)) @ weights
        changed = row.copy()
        for change in contrast.changes:
            changed[int(change.feature[1:])] = change.new_value
        assert contrast.reached
        assert contrast.proved
        assert (x == changed).all(axis=1).any()
        assert "need not be a plausible one" not in str(contrast)
        assert "is a row of the background" in str(contrast)
        best = total[answers < threshold].min()
        assert contrast.objective == pytest.approx(best)
        assert (np.abs(changed - row) / x.std(axis=0)) @ weights == pytest.approx(best)
    with pytest.raises(InputError, match="costs= goes with"):
        explainer.contrast(x[[7]], below=threshold, costs={"x0": 2.0})
    with pytest.raises(InputError, match="up"):
        explainer.contrast(x[[7]], below=threshold, directions={"x0": "sideways"})


def test_categories_without_an_order_have_no_direction():
    rng = np.random.default_rng(0)
    levels = ["low", "mid", "high"]
    X = pd.DataFrame({"a": rng.choice(levels, 60), "b": rng.normal(size=60)})
    X["c"] = pd.Categorical(rng.choice(levels, 60), categories=levels, ordered=True)
    model = lambda rows: rows["b"] + (rows["c"] == "high")  # noqa: E731
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(X))
    row = X[X["c"] == "low"].iloc[[0]]
    with pytest.raises(InputError, match="directions names 'a', whose categories have no order"):
        explainer.contrast(row, above=99.0, directions={"a": "up"})
    assert explainer.contrast(row, above=99.0, directions={"c": "up"}).constraints == ("c only rises",)


@pytest.mark.parametrize("option", ["exclude", "fixed", "directions", "costs"])
def test_errors_name_the_option_that_names_no_column(option):
    x = pd.DataFrame(np.arange(12.0).reshape(6, 2), columns=["age", "debt"])
    model, literals = LinearRegression().fit(x, x["age"]), limes.Literals.fit(x)
    value = {"exclude": ["agee"], "fixed": ["agee"], "directions": {"agee": "up"}, "costs": {"agee": 2.0}}[
        option
    ]
    message = f"{option}= names 'agee', which is no column.*did you mean 'age'"
    kind = {"minimize": "cost"} if option == "costs" else {}
    with pytest.raises(InputError, match=message):
        limes.SparseExplainer(model, literals=literals).contrast(
            x.iloc[:1], above=9.0, **kind, **{option: value}
        )
    if option != "costs":
        with pytest.raises(InputError, match=message):
            limes.SparseExplainer(model, literals=literals, **{option: value})


def test_thresholds_that_no_probability_crosses_are_refused():
    x = np.arange(12.0).reshape(6, 2)
    y = x[:, 0] > 5.0
    model, literals = LogisticRegression().fit(x, y), limes.Literals.fit(x)
    explainer = limes.SparseExplainer(model, literals=literals)
    for option, threshold in (("above", 1.2), ("below", -0.1), ("below", 1.0001)):
        with pytest.raises(InputError, match=f"{option}={threshold}: the answers are probabilities"):
            explainer.contrast(x[:1], **{option: threshold})
    assert not explainer.contrast(x[:1], above=1.0).reached
    for objective in ("class", "certain"):
        with pytest.raises(InputError, match=r"threshold=1\.2: the answers are probabilities"):
            limes.SparseExplainer(model, literals=literals, objective=objective, threshold=1.2)(x[:1])
    for objective in ("precision", "certain"):
        with pytest.raises(InputError, match=r"threshold=-2\.0: the answers are probabilities"):
            limes.rules.cover(model, x, objective=objective, threshold=-2)
    # margins, amounts and scores have no such ends
    margin = limes.SparseExplainer(model, output="margin", literals=literals)
    assert margin.contrast(x[:1], above=1.2).threshold == 1.2
    amount = limes.SparseExplainer(LinearRegression().fit(x, y), literals=literals)
    assert not amount.contrast(x[:1], above=1.2).reached


@pytest.mark.parametrize("options", [{}, {"objective": "precision"}, {"law": "background", "k": 2}])
def test_contrasts_obey_the_domain_whatever_the_objective(options):
    """The same contrast as with certain facts, against the enumeration of rows that obey."""
    rng = np.random.default_rng(3)
    x = table(rng, "forest")
    x[:, 4] = x[:, 3] + rng.integers(0, 3, len(x))
    model, row = fitted("forest", x, rng), x[11]
    options = {"objective": "precision", **options} if "law" in options else options
    domain = limes.Domain.fit(x, fixed=["x2"], one_hot=[])
    rows = possible(x, row, fixed=[2], obeys=lambda rows: rows[:, 3] <= rows[:, 4])
    answers = model.predict(rows)
    threshold = float(np.quantile(answers, 0.1)) + 1e-6
    contrast = limes.SparseExplainer(model, domain=domain, **options).contrast(row[None, :], below=threshold)
    assert contrast.constraints == ("x2 stays as it is", "x3 <= x4")
    assert contrast.reached
    assert contrast.proved
    assert len(contrast.changes) == fewest(rows, answers, row, lambda a: a < threshold)
    # the objective has no part in it
    certain = limes.SparseExplainer(model, domain=domain, objective="certain", error=1.0)
    assert certain.contrast(row[None, :], below=threshold).changes == contrast.changes


def near_border(change):
    """Return a classifier whose probability moves by little across the border of its classes."""

    class Model:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, rows):
            p = 0.5 + change * np.where(np.asarray(rows)[:, 0] > 2.0, 1.0, -100.0)
            return np.column_stack([1.0 - p, p])

        def predict(self, rows):
            return self.classes_[(self.predict_proba(rows)[:, 1] > 0.5).astype(int)]

    return Model()


@pytest.mark.parametrize("output", ["yes", "no"])
@pytest.mark.parametrize("change", [3e-3, 2e-4, 1e-6])
def test_a_chance_near_the_border_of_two_classes_shows_its_side(change, output):
    x = np.arange(12.0).reshape(6, 2)
    explainer = limes.SparseExplainer(near_border(change), literals=limes.Literals.fit(x), output=output)
    contrast = explainer.contrast(x[:1])
    text = " ".join(str(contrast).split())
    (texts,) = re.findall(r"would be ([\d.]+) %, it is ([\d.]+) %", text)
    after, before = map(float, texts)
    assert contrast.border == 0.5
    assert (after > 50.0) == (contrast.new_prediction > 0.5)
    assert (before > 50.0) == (contrast.prediction > 0.5)
    assert 50.0 not in (before, after)


@pytest.mark.parametrize("to", [None, "b", "c"])
def test_a_contrast_to_another_class_of_three_needs_no_output(to):
    """It asked for an output, of which a contrast to a class makes no use."""
    rng = np.random.default_rng(0)
    x = table(rng, "linear")
    model = LogisticRegression().fit(
        x, np.array(["a", "b", "c"])[np.digitize(x[:, 0] - x[:, 1], [-0.5, 0.5])]
    )
    row = x[model.predict(x) == "a"][:1]
    contrast = limes.SparseExplainer(model, literals=limes.Literals.fit(x)).contrast(row, to=to)
    grid = np.array([*product(range(4), repeat=5)], dtype=float)
    answers = model.predict(grid)
    reached = answers != "a" if to is None else answers == to
    assert contrast.proved
    assert len(contrast.changes) == (grid[reached] != row).sum(axis=1).min()
    assert (contrast.label, contrast.output) == ("a", "a")
    assert contrast.new_label in "bc" if to is None else contrast.new_label == to
    with pytest.raises(InputError, match="choose it by output="):
        limes.SparseExplainer(model, literals=limes.Literals.fit(x)).contrast(row, above=0.5)


def test_a_contrast_has_no_border_where_the_classes_have_none():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    three = LogisticRegression().fit(x, np.digitize(x[:, 0], [-0.5, 0.5]))
    explainer = limes.SparseExplainer(three, literals=limes.Literals.fit(x), output=0)
    assert explainer.contrast(x[:1]).border is None
    two = LogisticRegression().fit(x, x[:, 0] > 0)
    margin = limes.SparseExplainer(two, literals=limes.Literals.fit(x), output="margin")
    assert margin.contrast(x[:1]).border == 0.0
    assert margin.contrast(x[:1], above=0.3).border is None

    class Strict(LogisticRegression):
        def predict(self, rows):
            return self.classes_[(self.predict_proba(rows)[:, 1] > 0.9).astype(int)]

    strict = limes.SparseExplainer(Strict().fit(x, x[:, 0] > 0), literals=limes.Literals.fit(x))
    below = x[(two.predict_proba(x)[:, 1] > 0.6) & (two.predict_proba(x)[:, 1] < 0.85)][:1]
    contrast = strict.contrast(below)
    assert contrast.label == "False"
    assert contrast.border is None


def test_amounts_near_a_threshold_show_their_side():
    x = np.arange(12.0).reshape(6, 2)

    def step(low, high):
        return limes.SparseExplainer(
            lambda rows: np.where(rows[:, 0] > 2.0, high, low), literals=limes.Literals.fit(x)
        )

    contrast = step(99.0, 100.000001).contrast(x[:1], above=100.0)
    assert "from 99.0 to 100.000001" in " ".join(str(contrast).split())
    contrast = step(0.1234, 1.0).contrast(x[:1], above=0.12345)
    assert "above 0.12345 if" in " ".join(str(contrast).split())
