"""Facts that hold for certain, against the enumeration of every row of the domain.

The oracle asks the model's own ``predict`` about each combination of cells, and tries all sets of columns: it
shares no code with the search.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import limes
from effort import repeats
from limes.exceptions import InputError, NotReadableError, UnknownOptionError

COLUMNS = 5


def xgboost():
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1)


def lightgbm():
    library = pytest.importorskip("lightgbm")
    return library.LGBMClassifier(n_estimators=15, min_child_samples=4, n_jobs=1, verbose=-1)


def boosted():
    return GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0)


MODELS = {
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(9, max_depth=5, random_state=0),
    # votes of pure leaves of an even number of trees are equal in many rows
    "ties": lambda: RandomForestClassifier(4, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=15, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=4, random_state=0),
    "categories": lambda: HistGradientBoostingClassifier(
        max_iter=15, min_samples_leaf=4, categorical_features=[0, 3], random_state=0
    ),
    "xgboost": xgboost,
    "lightgbm": lightgbm,
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "votes": lambda: VotingClassifier(
        [("a", RandomForestClassifier(5, max_depth=4, random_state=0)), ("b", LogisticRegression())],
        voting="soft",
    ),
    "votes of boosting": lambda: VotingClassifier(
        [("a", boosted()), ("b", RandomForestClassifier(5, max_depth=4, random_state=0))],
        voting="soft",
        weights=[2.0, 1.0],
    ),
    "kernel": lambda: make_pipeline(StandardScaler(), SVC()),
    "network": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((6,), activation="tanh", solver="lbfgs", max_iter=60, random_state=0)
    ),
    "kernel behind categories": lambda: make_pipeline(
        make_column_transformer((OneHotEncoder(sparse_output=False), [0, 1]), remainder=StandardScaler()),
        SVC(),
    ),
    "network behind categories": lambda: make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False), [0]),
            (TargetEncoder(cv=KFold(3)), [1]),
            remainder="passthrough",
        ),
        MLPClassifier((6,), solver="lbfgs", max_iter=9000, random_state=0),
    ),
    "kernel behind missing values": lambda: make_pipeline(
        SimpleImputer(add_indicator=True), StandardScaler(), SVC()
    ),
    "network behind missing values": lambda: make_pipeline(
        SimpleImputer(), StandardScaler(), MLPClassifier((6,), solver="lbfgs", max_iter=9000, random_state=0)
    ),
    "products": lambda: make_pipeline(PolynomialFeatures(interaction_only=True), LogisticRegression(C=0.3)),
    "squares": lambda: make_pipeline(StandardScaler(), PolynomialFeatures(), LogisticRegression(C=0.3)),
    "calibrated": lambda: CalibratedClassifierCV(boosted(), cv=2),
    "isotonic": lambda: CalibratedClassifierCV(boosted(), cv=2, ensemble=False, method="isotonic"),
    "stacked": lambda: StackingClassifier(
        [("a", boosted()), ("b", DecisionTreeClassifier(max_depth=3, random_state=0))],
        LogisticRegression(),
        cv=3,
    ),
    "one-hot": lambda: make_pipeline(
        OneHotEncoder(sparse_output=False), GradientBoostingClassifier(n_estimators=15, random_state=0)
    ),
}
SEEDS = range(repeats(12, 2))


def table(rng, kind, rows=120):
    x = rng.integers(0, 4, (rows, COLUMNS)).astype(float)
    if kind in ("histogram", "categories") or "missing" in kind:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


def classes_of(x, rng):
    score = np.nan_to_num(0.8 * x[:, 0] - x[:, 1] + (x[:, 2] > 1) * (x[:, 3] - 1))
    return (score + 0.5 * rng.normal(size=len(x)) > 0).astype(int)


def same(a, b):
    return (a == b) | (np.isnan(a) & np.isnan(b))


class Enumeration:
    """All rows of the domain and the model's own classes of them."""

    def __init__(self, predict, values, obeys=lambda rows: np.ones(len(rows), dtype=bool)):
        self.rows = np.array([*product(*values)])
        self.rows = self.rows[obeys(self.rows)]
        self.classes = predict(self.rows)

    def is_sufficient(self, row, columns, label, shares=same):
        """Whether all rows that share the facts of some columns with a row have its class."""
        columns = list(columns)
        rows = shares(self.rows[:, columns], row[columns]).all(axis=1)
        return bool((self.classes[rows] == label).all())

    def fewest(self, row, label, units, shares=same):
        for size in range(len(units) + 1):
            for chosen in combinations(units, size):
                if self.is_sufficient(row, sum(chosen, ()), label, shares):
                    return size
        return None


def positions(certificate):
    return [int(name[1:]) for name in certificate.columns]


def check(certificate, truth, row, label, model, units, shares=same):
    """Sufficient, minimal, smallest, and each counterexample, by enumeration and by the model's predict."""
    columns = positions(certificate)
    assert certificate.proved
    assert truth.is_sufficient(row, columns, label, shares)
    kept = [unit for unit in units if unit[0] in columns]
    assert certificate.minimal
    for dropped in kept:
        rest = sum((unit for unit in kept if unit != dropped), ())
        assert not truth.is_sufficient(row, rest, label, shares)
    assert certificate.smallest
    assert len(kept) == truth.fewest(row, label, units, shares)
    assert len(certificate.counterexamples) == len(kept)
    for dropped, example in zip(kept, certificate.counterexamples, strict=True):
        new = np.array([np.nan if value is None else value for value in example], dtype=float)
        rest = sum((unit for unit in kept if unit != dropped), ())
        assert shares(new[list(rest)], row[list(rest)]).all()
        assert model.predict(new[None, :])[0] != label


SINGLE = [(j,) for j in range(COLUMNS)]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", SEEDS)
def test_facts_are_sufficient_and_the_fewest(kind, seed):
    rng = np.random.default_rng(seed)
    x = table(rng, kind)
    model = MODELS[kind]().fit(x, classes_of(x, rng))
    by_level = [0, 3] if kind == "categories" else [*range(COLUMNS)] if kind == "one-hot" else None
    domain = limes.Domain.fit(x, categorical=by_level)
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)
    truth = Enumeration(model.predict, [np.unique(x[:, j]) for j in range(COLUMNS)])
    chosen = rng.choice(len(x), 4, replace=False)
    explanation = explainer(x[chosen], progress=False)
    for i, row in enumerate(x[chosen]):
        check(explanation[i].certificate, truth, row, model.predict(row[None, :])[0], model, SINGLE)


@pytest.mark.parametrize("kind", ["tree", "forest", "ties", "boosting"])
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_take_any_value_of_their_range(kind, seed):
    """Against one row of each cell: between two thresholds of scikit-learn's own trees no answer changes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(120, COLUMNS))
    small = {"forest": {"n_estimators": 3, "max_depth": 3}, "boosting": {"n_estimators": 4, "max_depth": 2}}
    small |= {"tree": {"max_depth": 4}, "ties": {"n_estimators": 2, "max_depth": 3}}
    model = MODELS[kind]().set_params(**small[kind]).fit(x, classes_of(x, rng))
    trees = np.ravel(getattr(model, "estimators_", [model]))
    values = []
    for j in range(COLUMNS):
        cuts = np.concatenate([t.tree_.threshold[t.tree_.feature == j] for t in trees])
        ends = np.unique(np.concatenate([[x[:, j].min(), x[:, j].max()], cuts]))
        values.append(np.concatenate([ends[:1], 0.5 * (ends[1:] + ends[:-1]), ends[-1:]]))
    explainer = limes.SparseExplainer(model, domain=limes.Domain.fit(x), objective="certain", fresh=20)
    for row in x[rng.choice(len(x), 3, replace=False)]:
        cells = [np.append(v, value) for v, value in zip(values, row, strict=True)]
        truth = Enumeration(model.predict, cells)
        certificate = explainer(row[None, :], progress=False).certificate
        check(certificate, truth, row, model.predict(row[None, :])[0], model, SINGLE)


ENCODERS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-5),
    "by target": TargetEncoder(cv=KFold(3)),
}


@pytest.mark.parametrize("kind", ENCODERS)
def test_proofs_hold_for_numbers_that_an_encoder_has_not_seen(kind):
    """A column of rates is a range: 0.75 is possible, and no category of 0.5, 1.25 and 2.25."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.choice([0.5, 1.25, 2.25], 300), rng.normal(size=300).round(2)])
    y = (0.5 * x[:, 0] + x[:, 1] + 0.1 * rng.normal(size=300) > 0.6).astype(int)
    encoder = make_column_transformer((ENCODERS[kind], [0]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(C=50.0)).fit(x, y)
    domain = limes.Domain.fit(x)
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)
    numbers = [np.append(np.linspace(0.5, 2.25, 15), 1.25), np.linspace(x[:, 1].min(), x[:, 1].max(), 60)]
    for row in x[:20]:
        truth = Enumeration(model.predict, [np.append(v, r) for v, r in zip(numbers, row, strict=True)])
        certificate = explainer(row[None, :], progress=False).certificate
        assert certificate.proved
        assert truth.is_sufficient(row, positions(certificate), model.predict(row[None, :])[0])
    audit = limes.rules.cover(model, x[:60], domain=domain)
    rows = Enumeration(model.predict, numbers)
    for rule, meets in zip(audit.rules, audit.holds(rows.rows).T, strict=True):
        assert {*map(str, rows.classes[meets])} <= {rule.claim}
    assert len(audit.uncovered) < 20
    texts = [condition.text for rule in audit.rules for condition in rule.conditions]
    assert all(len(text) < len("-1.25 < x1 <= -1.05 ") for text in texts), texts


@pytest.mark.parametrize("kind", ["kernel", "network", "squares", "products"])
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_of_terms_never_prove_too_much(kind, seed):
    """Ranges of real numbers have no enumeration: a fine grid of the free columns, with the row's facts."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 4))
    model = MODELS[kind]().fit(x, classes_of(np.column_stack([x, x[:, 0]]), rng))
    explainer = limes.SparseExplainer(
        model, domain=limes.Domain.fit(x), objective="certain", fresh=20, time_limit=1.0
    )
    grid = np.array([*product(*[np.linspace(x[:, j].min(), x[:, j].max(), 12) for j in range(4)])])
    for row in x[rng.choice(len(x), 3, replace=False)]:
        certificate, label = (
            explainer(row[None, :], progress=False).certificate,
            model.predict(row[None, :])[0],
        )
        rows = grid.copy()
        rows[:, positions(certificate)] = row[positions(certificate)]
        assert certificate.proved
        assert (model.predict(rows) == label).all()
        for example in certificate.counterexamples:
            assert model.predict(np.array([example]))[0] != label
            assert (np.array(example) >= x.min(axis=0)).all()
            assert (np.array(example) <= x.max(axis=0)).all()


@pytest.mark.parametrize("kind", ["forest", "xgboost", "logistic", "votes"])
@pytest.mark.parametrize("seed", SEEDS)
def test_literals_are_facts_for_every_row_with_these_literals(kind, seed):
    rng = np.random.default_rng(seed)
    x = table(rng, kind)
    model = MODELS[kind]().fit(x, classes_of(x, rng))
    literals = limes.Literals.fit(x, bins=2)
    edges = [column.law.cells.points[0] for column in literals.columns]
    explainer = limes.SparseExplainer(
        model, literals=literals, objective="certain", law="background", fresh=20
    )
    truth = Enumeration(model.predict, [np.unique(x[:, j]) for j in range(COLUMNS)])

    class Shares:
        """Rows that are on the row's side of each edge; ``columns`` has the edges in the same order."""

        def __init__(self, columns):
            self.edges = np.array([edges[j] for j in columns])

        def __call__(self, rows, values):
            return (rows <= self.edges) == (values <= self.edges)

    def fewest(row, label):
        for size in range(COLUMNS + 1):
            for columns in combinations(range(COLUMNS), size):
                if truth.is_sufficient(row, columns, label, Shares(columns)):
                    return size
        return None

    for row in x[rng.choice(len(x), 4, replace=False)]:
        label = model.predict(row[None, :])[0]
        explanation = explainer(row[None, :], progress=False)
        certificate, size = explanation.certificate, fewest(row, label)
        columns = positions(certificate)
        if size is None:
            assert not certificate.proved
            (example,) = certificate.counterexamples
            assert Shares(range(COLUMNS))(np.array(example), row).all()
            assert model.predict(np.array([example]))[0] != label
            assert any(warning.code == "rule" for warning in explanation.row_warnings[0])
            assert not explanation.converged
            continue
        assert truth.is_sufficient(row, columns, label, Shares(columns))
        assert certificate.smallest
        assert len(columns) == size
        for dropped, example in zip(columns, certificate.counterexamples, strict=True):
            rest = [j for j in columns if j != dropped]
            assert Shares(rest)(np.array(example)[rest], row[rest]).all()
            assert model.predict(np.array([example]))[0] != label


# -- answers that move by at most an error ------------------------------------------------------------------

REGRESSORS = {
    "linear": LinearRegression,
    "forest": lambda: RandomForestRegressor(7, max_depth=4, random_state=0),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=15, random_state=0),
}


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("seed", SEEDS)
def test_facts_within_which_the_prediction_moves_by_no_more_than_an_error(kind, seed):
    rng = np.random.default_rng(seed)
    x = table(rng, kind)
    y = x[:, 0] * x[:, 1] - 2.0 * (x[:, 2] > 1) + rng.normal(size=len(x))
    model = REGRESSORS[kind]().fit(x, y)
    truth = Enumeration(model.predict, [np.arange(4.0)] * COLUMNS)
    for row in x[rng.choice(len(x), 3, replace=False)]:
        answer = model.predict(row[None, :])[0]
        # no answer is at the end of what is allowed
        distances = np.sort(np.abs(truth.classes - answer))
        place = int(rng.integers(len(distances) // 4, len(distances) - 1))
        error = float(distances[place : place + 2].mean())
        explainer = limes.SparseExplainer(
            model, domain=limes.Domain.fit(x), objective="certain", error=error, fresh=20
        )
        certificate = explainer(row[None, :], progress=False).certificate
        near = Enumeration(
            lambda rows, a=answer, e=error: np.abs(model.predict(rows) - a) <= e,
            [np.arange(4.0)] * COLUMNS,
        )
        columns = positions(certificate)
        assert certificate.proved
        assert near.is_sufficient(row, columns, True)
        assert certificate.smallest
        assert len(columns) == near.fewest(row, True, SINGLE)
        for example in certificate.counterexamples:
            assert abs(model.predict(np.array([example]))[0] - answer) > error


def test_regression_needs_an_error_or_a_threshold():
    x = np.random.default_rng(0).random((50, 3))
    model, domain = LinearRegression().fit(x, x[:, 0]), limes.Domain.fit(x)
    with pytest.raises(InputError, match="needs error="):
        limes.SparseExplainer(model, domain=domain, objective="certain")
    with pytest.raises(InputError, match="not both"):
        limes.SparseExplainer(model, domain=domain, objective="certain", error=0.1, threshold=0.5)
    certain = limes.SparseExplainer(model, domain=domain, objective="certain", threshold=0.5, fresh=20)(x[:1])
    assert certain.certificate.columns == ("x0",)
    assert ">= 0.5" in certain.rule() or "< 0.5" in certain.rule()


# -- domains ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["forest", "boosting", "logistic"])
@pytest.mark.parametrize("seed", SEEDS)
def test_relations_of_a_domain_leave_out_rows(kind, seed):
    """Columns 0 <= 1 <= 2, and 3, 4, 5 one-hot: against the rows that obey."""
    rng = np.random.default_rng(seed)
    low, more = rng.integers(0, 3, (2, 150)).astype(float)
    hot = np.eye(3)[rng.integers(0, 3, 150)]
    x = np.column_stack([low, low + more, low + more + rng.integers(0, 3, 150), hot])
    y = (
        x[:, 1] + 2.0 * x[:, 3] - 0.5 * x[:, 2] + x[:, 4] * x[:, 0] + 0.5 * rng.normal(size=150) > 1.5
    ).astype(int)
    model = MODELS[kind]().fit(x, y)
    domain = limes.Domain.fit(x)
    assert domain.orders == ((0, 1), (1, 2))
    assert domain.one_hot == ((3, 4, 5),)
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)

    def obeys(rows):
        return (rows[:, 0] <= rows[:, 1]) & (rows[:, 1] <= rows[:, 2]) & (rows[:, 3:].sum(axis=1) == 1)

    values = [np.arange(x[:, j].min(), x[:, j].max() + 1) for j in range(6)]
    truth = Enumeration(model.predict, values, obeys)
    units = [(0,), (1,), (2,), (3, 4, 5)]
    for row in x[rng.choice(len(x), 3, replace=False)]:
        label, certificate = (
            model.predict(row[None, :])[0],
            explainer(row[None, :], progress=False).certificate,
        )
        examples = np.array(certificate.counterexamples).reshape(-1, 6)
        assert obeys(examples).all()
        if kind == "logistic" and not certificate.smallest:
            # of sums with an order of columns the bounds ignore the order
            assert truth.is_sufficient(row, positions(certificate), label) or not certificate.proved
            continue
        check(certificate, truth, row, label, model, units)


@pytest.mark.parametrize("seed", range(repeats(30, 3)))
def test_relations_of_ranges_hold_in_every_counterexample(seed):
    """Real numbers with an order, missing values and one-hot columns, against rows drawn of the domain."""
    rng = np.random.default_rng(seed)
    low, hot = rng.normal(size=300), np.eye(3)[rng.integers(0, 3, 300)]
    more, other = low + rng.exponential(size=300), rng.normal(size=300)
    other[rng.random(300) < 0.1] = np.nan
    x = np.column_stack([low, more, other, hot])
    y = ((more - low > 1.0) ^ (hot[:, 0] > 0)) | (np.nan_to_num(other) > 1.0)
    model = RandomForestClassifier(8, max_depth=5, random_state=0).fit(x, y)
    domain = limes.Domain.fit(x)
    assert (domain.orders, domain.one_hot) == (((0, 1),), ((3, 4, 5),))
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)
    size = 20_000
    numbers = rng.uniform(np.nanmin(x[:, :3], axis=0), np.nanmax(x[:, :3], axis=0), (size, 3))
    numbers[rng.random(size) < 0.1, 2] = np.nan
    drawn = np.column_stack([numbers, np.eye(3)[rng.integers(0, 3, size)]])
    for row in x[:3]:
        certificate, label = explainer(row[None, :], progress=False).certificate, model.predict(row[None, :])
        rows, columns = drawn.copy(), positions(certificate)
        rows[:, columns] = row[columns]
        rows = rows[rows[:, 0] <= rows[:, 1]]
        assert certificate.smallest
        assert (model.predict(rows) == label).all()
        for example in certificate.counterexamples:
            new = np.array([np.nan if value is None else value for value in example], dtype=float)
            assert not new[0] > new[1]
            assert sorted(new[3:]) == [0.0, 0.0, 1.0]
            assert model.predict(new[None, :]) != label


def test_facts_claim_one_of_three_classes():
    x, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(20, random_state=0).fit(x, y)
    explainer = limes.SparseExplainer(
        model, domain=limes.Domain.fit(x), objective="certain", output=1, fresh=20
    )
    certificate = explainer(x[[60]]).certificate
    assert certificate.claim == ">= 0.5"
    assert certificate.smallest
    rng = np.random.default_rng(0)
    rows = rng.uniform(x.min(axis=0), x.max(axis=0), (20_000, 4))
    rows[:, positions(certificate)] = x[60, positions(certificate)]
    assert (model.predict_proba(rows)[:, 1] >= 0.5).all()
    assert (model.predict_proba(np.array(certificate.counterexamples))[:, 1] < 0.5).all()


@pytest.mark.parametrize("kind", ["tree", "forest", "boosting", "logistic"])
@pytest.mark.parametrize("seed", SEEDS)
def test_facts_guarantee_the_class_that_predict_gives_of_three(kind, seed):
    rng = np.random.default_rng([seed, 3])
    x = table(rng, kind)
    score = 0.8 * x[:, 0] - x[:, 1] + (x[:, 2] > 1) * (x[:, 3] - 1) + 0.5 * rng.normal(size=len(x))
    model = MODELS[kind]().fit(x, np.searchsorted(np.quantile(score, [0.33, 0.67]), score))
    explainer = limes.SparseExplainer(
        model,
        domain=limes.Domain.fit(x),
        objective="certain",
        threshold="class",
        output=int(seed % 3),
        fresh=20,
    )
    truth = Enumeration(model.predict, [np.unique(x[:, j]) for j in range(COLUMNS)])
    chosen = rng.choice(len(x), 3, replace=False)
    explanation = explainer(x[chosen], progress=False)
    for i, row in enumerate(x[chosen]):
        (label,) = model.predict(row[None, :])
        check(explanation[i].certificate, truth, row, label, model, SINGLE)
        assert f"predicted class of {label}: proved" in " ".join(str(explanation[i].certificate).split())


def test_the_class_that_predict_gives_needs_no_output():
    """``threshold="class"`` of three classes is what is claimed without it."""
    x, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(10, random_state=0).fit(x, y)
    options = {"domain": limes.Domain.fit(x), "objective": "certain", "fresh": 20}
    by_name = limes.SparseExplainer(model, threshold="class", **options)
    by_default = limes.SparseExplainer(model, **options)
    assert by_name(x[[60]]).rule() == by_default(x[[60]]).rule()
    assert by_name.contrast(x[[60]]).label == by_default.contrast(x[[60]]).label == "1"
    with pytest.raises(InputError, match="a finite number"):
        limes.SparseExplainer(model, threshold="klass", **options)


def test_a_class_is_claimed_of_classifiers_alone():
    x = np.arange(12.0).reshape(6, 2)
    model = LinearRegression().fit(x, x[:, 0])
    with pytest.raises(InputError, match="needs a classifier"):
        limes.SparseExplainer(
            model, domain=limes.Domain.fit(x), objective="certain", threshold="class", output=None
        )


def test_fixed_columns_are_no_facts_and_groups_are_one():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (200, 4)).astype(float)
    y = (x[:, 0] + x[:, 1] + x[:, 2] > 4).astype(int)
    model = DecisionTreeClassifier(random_state=0).fit(x, y)
    domain = limes.Domain.fit(x, fixed=["x0"], groups={"both": ["x1", "x2"]})
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)
    row = np.array([1.0, 2.0, 2.0, 0.0])
    certificate = explainer(row[None, :]).certificate
    assert certificate.columns == ("x1", "x2")
    (example,) = certificate.counterexamples
    assert example[0] == 1.0
    assert model.predict(np.array([example]))[0] != model.predict(row[None, :])[0]


def test_excluded_columns_are_no_facts():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 4, (200, 3)).astype(float)
    model = DecisionTreeClassifier(random_state=0).fit(x, x[:, 0] + x[:, 1] > 3)
    explainer = limes.SparseExplainer(model, domain=limes.Domain.fit(x), objective="certain", fresh=20)
    row = np.array([[3.0, 3.0, 0.0]])
    assert len(explainer(row).certificate.columns) == 2
    without = explainer(row, exclude=["x0"])
    assert not without.certificate.proved
    assert without.certificate.columns == ("x1", "x2")


def test_a_domain_says_what_a_background_obeys():
    rng = np.random.default_rng(0)
    low = rng.normal(size=300)
    kinds = rng.integers(0, 3, 300)
    background = pd.DataFrame(
        {
            "least": low,
            "mean": low + rng.random(300),
            "age": rng.integers(18, 80, 300),
            "kind_a": (kinds == 0) * 1,
            "kind_b": (kinds == 1) * 1,
            "kind_c": (kinds == 2) * 1,
            "colour": np.array(["red", "green"])[kinds % 2],
        }
    )
    background.loc[3, "mean"] = np.nan
    domain = limes.Domain.fit(background, fixed=["age"])
    text = str(domain)
    assert "least <= mean" in text
    assert "exactly one of kind_a, kind_b, kind_c is 1" in text
    assert "age: as in the row" in text
    assert "colour: green, red" in text
    assert "or missing" in text
    assert domain.columns[3].whole
    assert not domain.columns[0].whole
    assert repr(domain) == "<Domain: 7 columns, 2 relations>"
    assert "least &lt;= mean" in domain._repr_html_()
    assert limes.Domain.fit(background, orders=[], one_hot=[]).orders == ()
    assert limes.Domain.fit(background, ranges={"least": (-9, 9)}).columns[0].high == 9.0


def test_an_order_that_chance_explains_is_not_proposed():
    x = np.random.default_rng(0).random((4, 6))
    assert limes.Domain.fit(x).orders == ()
    apart = np.random.default_rng(0).random((200, 2)) + np.array([0.0, 5.0])
    assert limes.Domain.fit(apart).orders == ()  # the ranges say it already


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fixed": ["x9"]}, "fixed= names 'x9'"),
        ({"fixed": "x0"}, "list of names"),
        ({"groups": {"a": ["x0", "x1"], "b": ["x1"]}}, "two groups"),
        ({"ranges": {"x0": (2.0, 1.0)}}, "low <= high"),
        ({"ranges": {"x0": 1.0}}, "must be"),
        ({"orders": [("x0", "x1")]}, "breaks 'x0 <= x1'"),
        ({"one_hot": [["x0", "x1"]]}, "breaks"),
    ],
)
def test_a_domain_refuses_what_it_cannot_use(options, message):
    x = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(InputError, match=message):
        limes.Domain.fit(x, **options)
    with pytest.raises(UnknownOptionError):
        limes.Domain.fit(x, colour="red")


# -- options, and what shows the facts ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(5)
    x = pd.DataFrame(rng.integers(0, 6, (300, 4)), columns=["age", "debt", "years", "rooms"])
    y = np.where(x["age"] + x["years"] > x["debt"] + 2, "granted", "refused")
    return RandomForestClassifier(30, max_depth=5, random_state=0).fit(x, y), x


def test_a_rule_prints_what_is_certain(forest):
    model, x = forest
    explainer = limes.SparseExplainer(model, domain=limes.Domain.fit(x), objective="certain")
    explanation = explainer(x.iloc[[0]])
    certificate = explanation.certificate
    assert certificate.smallest
    assert explanation.rule().endswith("for certain")
    for column, fact in zip(certificate.columns, certificate.facts, strict=True):
        assert fact == f"{column} = {x[column].iloc[0]}"
        assert f"[{fact}]" in explanation.rule()
    assert "No set of fewer facts is sufficient: proved." in " ".join(str(explanation).split())
    assert "No set of fewer facts is sufficient: proved." in explanation.to_html()
    again = limes.Explanation.from_json(explanation.to_json()).certificate
    for name in ("columns", "facts", "claim", "minimal", "smallest", "counterexamples", "domain", "proved"):
        assert getattr(again, name) == getattr(certificate, name)
    rows = pd.DataFrame(certificate.counterexamples, columns=x.columns)
    assert (model.predict(rows) != model.predict(x.iloc[[0]])[0]).all()
    low, high = certificate.worst_case
    assert (low >= 0.5) or (high <= 0.5)


def test_both_kinds_of_facts(forest):
    model, x = forest
    literals = limes.Literals.fit(x)
    by_value = limes.SparseExplainer(model, literals=literals, objective="certain", facts="values")
    assert " = " in by_value(x.iloc[[0]]).certificate.facts[0]
    by_literal = limes.SparseExplainer(model, literals=literals, objective="certain")
    both = limes.SparseExplainer(
        model, literals=literals, domain=limes.Domain.fit(x), facts="literals", objective="certain"
    )
    for row in range(3):
        assert both(x.iloc[[row]]).rule() == by_literal(x.iloc[[row]]).rule()


def test_the_other_class_and_rows_of_signs():
    rng = np.random.default_rng(0)
    z = rng.choice([-1.0, 1.0], (200, 5))
    model = DecisionTreeClassifier(random_state=0).fit(z, z[:, 0] + z[:, 1] + z[:, 2] > 0)
    for output in (None, True, False):
        explanation = limes.SparseExplainer(model, objective="certain", output=output, fresh=20)(z[:4])
        for i in range(4):
            certificate = explanation[i].certificate
            assert certificate.smallest
            assert len(certificate.columns) == 2  # two of three signs decide
            assert (model.predict(np.array(certificate.counterexamples)) != model.predict(z[[i]])).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 3}, "leave out k="),
        ({"certify": "class"}, "certify="),
        ({"solver": "convex"}, "solver="),
        ({"intercept": False}, "intercept="),
        ({"facts": "bins"}, "facts must be"),
        ({"facts": "literals"}, "needs literals="),
        ({"domain": [[1.0]]}, "made by limes.Domain.fit"),
        ({"threshold": np.inf}, "finite"),
        ({"time_limit": -1.0}, "time_limit"),
    ],
)
def test_options_that_are_refused(forest, options, message):
    model, x = forest
    facts = {"domain": limes.Domain.fit(x)} | options
    with pytest.raises(InputError, match=message):
        limes.SparseExplainer(model, objective="certain", **facts)


def test_a_domain_is_one_of_the_same_table(forest):
    model, x = forest
    domain = limes.Domain.fit(x)
    with pytest.raises(InputError, match="facts= goes with objective='certain'"):
        limes.SparseExplainer(model, domain=domain, facts="values")
    with pytest.raises(InputError, match="leave out neighbourhood='flips'"):
        limes.SparseExplainer(
            model, domain=domain, literals=limes.Literals.fit(x), neighbourhood="flips", objective="certain"
        )
    for objective in ("certain", None):
        with pytest.raises(InputError, match="two tables"):
            limes.SparseExplainer(
                model,
                domain=domain,
                literals=limes.Literals.fit(x.rename(columns={"age": "Age"})),
                objective=objective,
            )


def test_a_model_without_bounds_is_refused():
    x = np.random.default_rng(0).random((50, 3))
    explainer = limes.SparseExplainer(
        lambda rows: np.sin(rows[:, 0]), domain=limes.Domain.fit(x), objective="certain", threshold=0.5
    )
    with pytest.raises(NotReadableError, match="bounds over boxes"):
        explainer(x[:1])


def test_a_row_that_breaks_a_relation_is_refused(forest):
    model, x = forest
    x = x.assign(debt=x["age"] + x["debt"])
    domain = limes.Domain.fit(x)
    assert domain.orders == ((0, 1),)
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain")
    with pytest.raises(InputError, match="age <= debt"):
        explainer(x.iloc[[0]].assign(debt=-1))


def test_the_time_limit_leaves_what_is_proved():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 12))
    model = RandomForestClassifier(40, max_depth=7, random_state=0).fit(x, x[:, :6].sum(axis=1) > 0)
    domain = limes.Domain.fit(x)
    short = limes.SparseExplainer(model, domain=domain, objective="certain", time_limit=1e-3, fresh=20)(x[:4])
    long = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)(x[:4])
    for i in range(4):
        first, second = short[i].certificate, long[i].certificate
        assert second.smallest
        assert first.lower_bound <= len(second.columns)
        assert len(second.columns) <= len(first.columns)
        assert first.smallest == (first.proved and first.lower_bound == len(first.columns))
        assert short[i].row_warnings[0]
        assert not long[i].row_warnings[0]
    assert not any(short[i].certificate.smallest for i in range(4))


def test_the_same_row_has_the_same_facts(forest):
    model, x = forest
    explainer = limes.SparseExplainer(model, domain=limes.Domain.fit(x), objective="certain")
    together = explainer(x.iloc[:5])
    alone = limes.SparseExplainer(model, domain=limes.Domain.fit(x), objective="certain")(x.iloc[[3]])
    first, second = ({**vars(e.certificate), "seconds": 0.0} for e in (together[3], alone))
    assert first == second


def test_a_code_between_other_numbers_is_no_part_of_them():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 4, 300).astype(float), rng.random(300)])
    model = HistGradientBoostingClassifier(max_iter=10, categorical_features=[0])
    model.fit(x, np.isin(x[:, 0], (1, 2)).astype(int))
    # the trees have sets of codes, and the domain a range of numbers
    domain = limes.Domain.fit(x, whole=[])
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain")
    certificate = explainer([[1.0, 0.5]], progress=False).certificate
    assert certificate.proved
    assert certificate.columns == ("x0",)
    assert model.predict(np.array(certificate.counterexamples, dtype=float)) != model.predict([[1.0, 0.5]])
    grid = np.array([*product(np.arange(0.0, 3.25, 0.25), [0.1, 0.9])])
    audit = limes.rules.cover(model, x, domain=domain)
    assert audit.uncovered == ()
    for rule in audit.rules:
        (condition,) = rule.conditions
        low = -np.inf if condition.above is None else condition.above
        high = np.inf if condition.at_most is None else condition.at_most
        meets = (grid[:, 0] > low) & (grid[:, 0] <= high)
        assert {*map(str, model.predict(grid[meets]))} == {rule.claim}


def test_facts_that_are_ranges_may_keep_an_order_at_other_values():
    rng = np.random.default_rng(0)
    a = rng.uniform(0.0, 4.0, 400)
    x = np.column_stack([a, np.minimum(a + rng.uniform(0.0, 1.0, 400), 4.0), rng.uniform(0.0, 1.0, 400)])
    model = LinearRegression().fit(x, x[:, 0] - 2.0 * x[:, 1])
    domain = limes.Domain.fit(x, orders=[(0, 1)], whole=[])
    literals = limes.Literals.fit(x, bins=[[0.0, 2.0, 4.0], [0.0, 1.0, 3.0, 4.0], [0.0, 0.5, 1.0]])
    explainer = limes.SparseExplainer(
        model, domain=domain, literals=literals, objective="certain", threshold=-1.5
    )
    certificate = explainer([[0.5, 2.5, 0.3]], progress=False).certificate
    # (1.01, 1.02) keeps the order and shares both facts, and no corner of the two ranges says so
    assert model.predict([[1.01, 1.02, 0.3]]) > -1.5 > model.predict([[0.5, 2.5, 0.3]])
    assert not certificate.proved


def test_an_order_of_whole_numbers_leaves_nothing_open():
    """A row that broke an order stopped the search, though no other row had its listed values."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"all": rng.integers(0, 6, 120), "others": rng.integers(0, 4, 120)})
    table["some"] = np.minimum(table["all"], rng.integers(0, 6, 120))
    score = table["all"] - 2.0 * table["others"] + 0.6 * table["some"] + rng.normal(0, 0.5, 120)
    model = LogisticRegression().fit(table, np.digitize(score, np.quantile(score, [0.4, 0.75])))
    domain = limes.Domain.fit(table)
    assert "some <= all" in str(domain)
    grid = pd.DataFrame([*product(range(6), range(4), range(6))], columns=[*table])
    grid = grid[grid["some"] <= grid["all"]]
    answers = model.predict(grid)
    explainer = limes.SparseExplainer(
        model, domain=domain, objective="certain", threshold="class", time_limit=60.0, fresh=20
    )
    for i in range(12):
        row = table.iloc[[i]]
        result = explainer(row, progress=False)
        same = {name: grid[name] == row[name].iloc[0] for name in table}
        others = answers != model.predict(row)[0]

        def is_sufficient(names, same=same, others=others):
            return not (others & np.logical_and.reduce([same[name] for name in names] or [True])).any()

        sizes = (s for s in range(4) if any(map(is_sufficient, combinations(table, s))))
        assert is_sufficient(result.certificate.columns)
        assert result.certificate.smallest
        assert len(result.certificate.columns) == next(sizes)


def test_a_search_that_ended_before_its_time_advises_no_more_of_it():
    """Whatever it could not decide, the warning said that ten seconds were too few."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"all": rng.random(200).round(3)})
    table["some"] = (table["all"] * rng.random(200)).round(3)
    table["other"] = rng.random(200).round(3)
    score = table["all"] * 2 - table["some"] + 0.5 * table["other"]
    model = LogisticRegression(C=100).fit(table, np.digitize(score, [0.6, 1.2]))
    explainer = limes.SparseExplainer(
        model,
        domain=limes.Domain.fit(table, orders=[("some", "all")]),
        objective="certain",
        threshold="class",
        time_limit=600.0,
        fresh=20,
    )
    results = [explainer(table.iloc[[i]], progress=False) for i in range(12)]
    texts = [text for result in results for text in result.warnings]
    undecided = [text for text in texts if "was not" in text]
    assert undecided
    assert all("more time would not help" in text and "raise" not in text for text in undecided)


def test_no_margin_is_advised_that_has_no_bounds_either():
    x = np.random.default_rng(0).normal(size=(80, 3))
    model = make_pipeline(PowerTransformer(), PolynomialFeatures(2), LogisticRegression()).fit(
        x, x[:, 0] * x[:, 1] > 0
    )
    options = {"domain": limes.Domain.fit(x), "objective": "certain"}
    for output in (None, "margin"):
        with pytest.raises(NotReadableError, match="'class' or 'precision' takes any model") as refused:
            limes.SparseExplainer(model, output=output, **options)(x[:1])
        assert "output='margin'" not in str(refused.value)


def test_the_certificate_names_the_columns_that_the_domain_fixes():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    model = RandomForestClassifier(5, random_state=0).fit(X, X["a"] + X["b"] > 0)
    domain = limes.Domain.fit(X, fixed=["b"])
    explanation = limes.SparseExplainer(model, domain=domain, objective="certain", output=1)(X.iloc[[0]])
    printed = " ".join(str(explanation).split())
    assert "Every possible row with" in printed
    assert "In possible rows the other columns are: b: as in the row" in printed
    assert "c: from " in printed


@pytest.mark.parametrize("kind", ["tree", "forest", "boosting", "histogram", "logistic", "kernel"])
@pytest.mark.parametrize("seed", SEEDS)
def test_facts_hold_for_the_rows_that_a_row_can_become(kind, seed):
    """Column 0 is fixed, column 1 only rises and column 3 only falls, with an order of 2 and 4."""
    rng = np.random.default_rng([seed, 8])
    x = table(rng, kind)
    x[:, 2] = np.nan_to_num(x[:, 2])
    x[:, 4] = x[:, 2] + rng.integers(0, 2, len(x))
    model = MODELS[kind]().fit(x, classes_of(x, rng))
    domain = limes.Domain.fit(x, orders=[("x2", "x4")], one_hot=[])
    explainer = limes.SparseExplainer(
        model,
        domain=domain,
        objective="certain",
        fixed=["x0"],
        directions={"x1": "up", "x3": "down"},
        fresh=20,
    )
    values = [np.unique(x[:, j]) for j in range(COLUMNS)]
    for row in x[rng.choice(len(x), 4, replace=False)]:
        its = [*values]
        its[0] = row[:1]
        for j, ahead in ((1, np.greater_equal), (3, np.less_equal)):
            its[j] = row[j : j + 1] if np.isnan(row[j]) else values[j][ahead(values[j], row[j])]
        truth = Enumeration(model.predict, its, lambda rows: ~(rows[:, 2] > rows[:, 4]))
        (label,) = model.predict(row[None, :])
        explanation = explainer(row[None, :], progress=False)
        certificate, columns = explanation.certificate, positions(explanation.certificate)
        assert "x0" not in certificate.columns
        assert "x0: as in the row" in certificate.domain
        assert certificate.proved
        assert truth.is_sufficient(row, columns, label)
        for example in certificate.counterexamples:
            new = np.array([np.nan if value is None else value for value in example], dtype=float)
            assert same(truth.rows, new).all(axis=1).any()
            assert model.predict(new[None, :])[0] != label
        rows = truth.rows[same(truth.rows[:, columns], row[columns]).all(axis=1)]
        low, high = certificate.worst_case
        answers = model.predict_proba(rows)[:, 1] if kind != "kernel" else model.decision_function(rows)
        assert low - 1e-6 <= answers.min()
        assert answers.max() <= high + 1e-6
        if kind in ("tree", "forest", "boosting"):
            assert certificate.smallest
            assert len(columns) == truth.fewest(row, label, [(1,), (2,), (3,), (4,)])


def test_a_direction_needs_an_order_and_is_written(forest):
    _, x = forest
    x = x.assign(rooms=x["rooms"].astype(str))
    encoder = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(
        x, x["age"] + x["years"] > x["debt"] + 2
    )
    domain = limes.Domain.fit(x)
    explainer = limes.SparseExplainer(
        encoder, domain=domain, objective="certain", directions={"rooms": "up"}, facts="values"
    )
    with pytest.raises(InputError, match="directions names 'rooms', whose categories have no order"):
        explainer(x.iloc[[0]])
    rises = limes.SparseExplainer(encoder, domain=domain, objective="certain", directions={"debt": "up"})
    row = x.iloc[[0]]
    (line,) = (its for its in rises(row).certificate.domain if its.startswith("debt"))
    low = row["debt"].iloc[0]
    assert line == (f"debt: whole numbers from {low} to 5, only rises" if low < 5 else "debt: 5, only rises")


def test_the_predicted_class_of_several_is_the_default():
    x, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(10, random_state=0).fit(x, y)
    domain = limes.Domain.fit(x)
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)
    for i in (0, 60, 120):
        (label,) = model.predict(x[[i]])
        explanation = explainer(x[[i]])
        named = limes.SparseExplainer(
            model, domain=domain, objective="certain", output=int(label), threshold="class", fresh=20
        )(x[[i]])
        assert explanation.certificate.label == str(label)
        assert explanation.output_names == (str(label),)
        assert explanation.certificate.columns == named.certificate.columns
        assert explanation.rule() == named.rule()
        contrast = explainer.contrast(x[[i]])
        assert (contrast.label, contrast.output) == (str(label), str(label))
        assert contrast.reached
    with pytest.raises(InputError, match="predicts 2 classes at these rows"):
        explainer(x[[0, 60]])
