"""Contrasts of answers behind a monotone link: proved on the margin, told as the model answers.

The oracle asks the model itself about every change of one column and of two; it shares no code with the
search.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import limes
from effort import repeats
from internals import Searched, percentage, percentages
from limes.exceptions import InputError

SEEDS = range(repeats(12, 2))
VALUES = 4.0


def table(rng, rows=150, columns=5):
    return rng.integers(0, int(VALUES), (rows, columns)).astype(float)


def classes_of(x, rng, count=2):
    score = 0.8 * x[:, 0] - x[:, 1] + (x[:, 2] > 1) * (x[:, 3] - 1) + 0.5 * rng.normal(size=len(x))
    return np.searchsorted(np.quantile(score, np.arange(1, count) / count), score)


def xgboost(**options):
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1, **options)


def lightgbm():
    library = pytest.importorskip("lightgbm")
    return library.LGBMClassifier(n_estimators=20, min_child_samples=4, n_jobs=1, verbose=-1)


def catboost():
    library = pytest.importorskip("catboost")
    return library.CatBoostClassifier(
        iterations=20, depth=3, verbose=0, thread_count=1, allow_writing_files=False
    )


BOOSTERS = {
    "gradient": lambda: GradientBoostingClassifier(n_estimators=20, random_state=0),
    "exponential": lambda: GradientBoostingClassifier(n_estimators=20, loss="exponential", random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=4, random_state=0),
    "pipeline": lambda: make_pipeline(
        OneHotEncoder(sparse_output=False), GradientBoostingClassifier(n_estimators=20, random_state=0)
    ),
    "xgboost": xgboost,
    "lightgbm": lightgbm,
    "catboost": catboost,
}
LINEAR = {
    "logistic": lambda: LogisticRegression(),
    "scaled": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "steep": lambda: LogisticRegression(C=1e8),
    "bayes": lambda: GaussianNB(),
    "calibrated": lambda: CalibratedClassifierCV(LogisticRegression(), cv=2, ensemble=False),
}


def changes_of(contrast, row):
    changed = row.copy()
    for change in contrast.changes:
        changed[int(change.feature[1:])] = change.new_value
    return changed


def enough_within_two(answer, row, x, crosses):
    """Count the columns of the fewest changes up to two that cross; 3 where two are not enough."""
    values = [np.unique(np.append(x[:, j], row[j])) for j in range(row.size)]
    for size in (1, 2):
        for columns in combinations(range(row.size), size):
            grid = np.array([*product(*(values[j] for j in columns))])
            rows = np.tile(row, (len(grid), 1))
            rows[:, columns] = grid
            if crosses(answer(rows)).any():
                return size
    return 3


def check(explainer, answer, row, x, side, at):
    """Compare one contrast with the oracle, and with the model's own answer at the changed row."""
    contrast = explainer.contrast(row[None, :], **{side: at})
    crosses = (lambda a: a < at) if side == "below" else (lambda a: a > at)
    assert "bounds that are read" not in contrast.reason
    assert contrast.proved, contrast.reason
    if crosses(answer(row[None, :]))[0]:
        assert contrast.reached
        assert contrast.changes == ()
        return contrast
    fewest = enough_within_two(answer, row, x, crosses)
    if not contrast.reached:
        assert fewest == 3
        assert contrast.changes == ()
        return contrast
    changed = changes_of(contrast, row)
    assert crosses(answer(changed[None, :]))[0]
    assert contrast.new_prediction == answer(np.stack([row, changed]))[1]
    assert (changed != row).sum() == len(contrast.changes)
    assert min(len(contrast.changes), 3) == fewest
    return contrast


@pytest.mark.parametrize("kind", [*BOOSTERS, *LINEAR])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_fewer_columns_take_a_probability_beyond_the_threshold(kind, seed):
    rng = np.random.default_rng(seed)
    x = table(rng)
    model = (BOOSTERS | LINEAR)[kind]().fit(x, classes_of(x, rng))
    row = x[int(rng.integers(len(x)))]
    for label in (0, 1):
        explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), output=label, k=1)

        def answer(rows, label=label):
            return np.asarray(model.predict_proba(rows)[:, label], dtype=float)

        for at in (0.5, float(answer(row[None, :])[0]), 0.9, 0.1):
            for side in ("below", "above"):
                check(explainer, answer, row, x, side, at)


@pytest.mark.parametrize("kind", BOOSTERS)
def test_the_changes_are_those_of_the_margin(kind):
    rng = np.random.default_rng(3)
    x = table(rng)
    y = classes_of(x, rng)
    model = BOOSTERS[kind]().fit(x, y)
    literals = limes.Literals.fit(x)
    probability = limes.SparseExplainer(model, literals=literals, output=1, k=1)
    complement = limes.SparseExplainer(model, literals=literals, output=0, k=1)
    margin = limes.SparseExplainer(model, literals=literals, output="margin", k=1)
    for row in x[model.predict_proba(x)[:, 1] < 0.5][:: repeats(4, 12)]:
        expected = margin.contrast(row[None, :], above=0.0)
        assert expected.proved
        one = probability.contrast(row[None, :], above=0.5)
        assert one.changes == expected.changes
        assert (one.proved, one.quantity) == (True, "probability")
        # P(0) falls below 1/2 where P(1) rises above it: the link of the complement falls
        assert complement.contrast(row[None, :], below=0.5).changes == expected.changes


@pytest.mark.parametrize("kind", ["gradient", "xgboost", "histogram", "logistic"])
def test_a_threshold_that_is_an_answer_is_not_crossed_by_it(kind):
    """The model's own floats decide whether a change is beyond the threshold, not those that were read."""
    rng = np.random.default_rng(5)
    x = table(rng, columns=4)
    model = (BOOSTERS | LINEAR)[kind]().fit(x, classes_of(x, rng))
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), output=1, k=1)

    def answer(rows):
        return np.asarray(model.predict_proba(rows)[:, 1], dtype=float)

    grid = np.array([*product(*(np.unique(x[:, j]) for j in range(4)))])
    answers = np.unique(answer(grid))
    row = grid[int(np.argmin(answer(grid)))]
    chosen = answers[:: max(1, answers.size // repeats(40, 6))]
    for at in (*chosen, answers[-1], *np.nextafter(chosen, 1.0), np.nextafter(answers[-1], 0.0)):
        contrast = explainer.contrast(row[None, :], above=float(at))
        beyond = answer(grid) > at
        changed = (grid != row).sum(axis=1)
        assert contrast.reached == beyond.any()
        assert contrast.reached == (contrast.new_prediction > at)
        if contrast.reached and contrast.proved:
            assert len(contrast.changes) == changed[beyond].min()
        # rounding may leave the proof out, where different rows have nearly one answer; never invents it
        assert contrast.proved or kind == "logistic"


@pytest.mark.parametrize("kind", ["xgboost", "histogram", "logistic"])
def test_thresholds_at_the_ends_of_probabilities_and_beyond(kind):
    rng = np.random.default_rng(0)
    x = table(rng)
    model = (BOOSTERS | LINEAR)[kind]().fit(x, classes_of(x, rng))
    for label in (0, 1):
        explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), output=label, k=1)
        for options in ({"below": 0.0}, {"above": 1.0}):
            contrast = explainer.contrast(x[:1], **options)
            assert (contrast.reached, contrast.proved, contrast.changes) == (False, True, ())
        for options in ({"below": 1.0}, {"above": 0.0}):
            contrast = explainer.contrast(x[:1], **options)
            assert (contrast.reached, contrast.proved, contrast.changes) == (True, True, ())
        for options in ({"below": -0.5}, {"above": 1.5}, {"below": 2.0}, {"above": -1.0}):
            with pytest.raises(InputError, match="the answers are probabilities, from 0 to 1"):
                explainer.contrast(x[:1], **options)


def test_the_margin_tells_the_columns_apart_where_the_link_is_flat():
    """Probabilities of most rows are 1 in float64: their bounds are one number, those of margins are not."""
    x = np.array([*product([0.0, 1.0, 2.0], repeat=4)])
    model = LogisticRegression().fit(x, x[:, 0] > 1)
    model.coef_, model.intercept_ = np.array([[30.0, 60.0, 5.0, 200.0]]), np.array([-150.0])
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)

    def answer(rows):
        return model.predict_proba(rows)[:, 1]

    row = x[-1]
    assert answer(row[None, :])[0] == 1.0
    for at in (0.5, 1.0, 1e-12, 1.0 - 1e-15):
        check(explainer, answer, row, x, "below", at)
    assert [c.feature for c in explainer.contrast(row[None, :], below=0.5).changes] == ["x1", "x3"]


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("kind", ["gradient", "histogram", "xgboost", "lightgbm", "catboost", "logistic"])
def test_a_class_among_several_is_proved_by_its_log_odds(kind, count):
    rng = np.random.default_rng(count)
    x = table(rng, columns=4)
    y = classes_of(x, rng, count)
    model = (BOOSTERS | LINEAR)[kind]().fit(x, y)
    for label in range(0, count, 2):
        explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), output=label, k=1)

        def answer(rows, label=label):
            return np.asarray(model.predict_proba(rows)[:, label], dtype=float)

        for i in range(0, len(x), repeats(20, 60)):
            contrast = explainer.contrast(x[[i]], above=0.5)
            assert contrast.proved
            check(explainer, answer, x[i], x, "above", 0.5)
            check(explainer, answer, x[i], x, "below", 0.2)


def test_boosting_of_stumps_by_weights_is_a_softmax_of_fractions():
    rng = np.random.default_rng(0)
    x = table(rng, columns=4)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=10, random_state=0)
    model.fit(x, classes_of(x, rng, 3))
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), output=2, k=1)
    check(explainer, lambda rows: model.predict_proba(rows)[:, 2], x[0], x, "above", 0.4)


@pytest.mark.parametrize("kind", ["poisson", "boosted"])
def test_means_behind_a_log_link(kind):
    rng = np.random.default_rng(0)
    x = table(rng)
    y = rng.poisson(np.exp(0.5 * x[:, 0] - 0.3 * x[:, 1] * (x[:, 2] > 1))).astype(float)
    models = {
        "poisson": PoissonRegressor(),
        "boosted": HistGradientBoostingRegressor(
            loss="poisson", max_iter=20, min_samples_leaf=4, random_state=0
        ),
    }
    model = models[kind].fit(x, y)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    for i in range(0, len(x), repeats(10, 50)):
        for side, at in (("above", 2.0), ("below", 1.0), ("below", 0.0), ("above", 1e9)):
            contrast = check(explainer, model.predict, x[i], x, side, at)
            assert contrast.quantity == "prediction"


@pytest.mark.parametrize("link", ["Probit", "CLogLog", "Logit"])
def test_links_of_generalised_linear_models(link):
    statsmodels = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    x = table(rng)
    family = statsmodels.families.Binomial(getattr(statsmodels.families.links, link)())
    model = statsmodels.GLM(classes_of(x, rng), x - 1.5, family=family).fit()
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    for i in range(0, len(x), repeats(10, 50)):
        for side, at in (("above", 0.5), ("below", 0.2), ("above", 1.5), ("below", -0.1)):
            check(explainer, lambda rows: np.asarray(model.predict(rows)), x[i], x, side, at)


def test_literals_that_flip_are_contrasted_through_the_link():
    z = np.random.default_rng(0).choice([-1.0, 1.0], (200, 5))
    model = GradientBoostingClassifier(n_estimators=20, random_state=0)
    model.fit(z, z[:, 0] + z[:, 1] + z[:, 2] > 0)
    explainer = limes.SparseExplainer(model, k=1)
    row = -np.ones(5)
    contrast = explainer.contrast(row[None, :], above=0.5)
    assert (len(contrast.changes), contrast.proved, contrast.reached) == (2, True, True)


def test_a_sampled_rule_has_proved_contrasts_too():
    rng = np.random.default_rng(0)
    x = table(rng)
    model = LogisticRegression().fit(x, classes_of(x, rng))
    for options in ({"method": "sampled"}, {"solver": "hard_thresholding"}, {"law": "count"}):
        explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1, **options)
        check(explainer, lambda rows: model.predict_proba(rows)[:, 1], x[0], x, "above", 0.5)


def test_a_refit_is_searched_anew():
    rng = np.random.default_rng(0)
    x = table(rng)
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(x, x[:, 0] > 1)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1)
    row = np.zeros((1, 5))
    assert [c.feature for c in explainer.contrast(row, above=0.5).changes] == ["x0"]
    model.fit(x, x[:, 1] > 1)
    assert [c.feature for c in explainer.contrast(row, above=0.5).changes] == ["x1"]


def test_a_function_is_told_to_have_no_bounds():
    x = table(np.random.default_rng(0))
    model = lambda rows: 1 / (1 + np.exp(1.0 - rows[:, 0]))  # noqa: E731
    contrast = limes.SparseExplainer(model, literals=limes.Literals.fit(x), k=1).contrast(
        np.zeros((1, 5)), above=0.6
    )
    assert "no bounds that are read" in contrast.reason


COMPOSED = {
    "votes": lambda: VotingClassifier(
        [("a", BOOSTERS["gradient"]()), ("b", BOOSTERS["histogram"]())], voting="soft", weights=[1.0, 3.0]
    ),
    "calibrated": lambda: CalibratedClassifierCV(BOOSTERS["gradient"](), cv=2),
    "isotonic": lambda: CalibratedClassifierCV(BOOSTERS["gradient"](), cv=2, method="isotonic"),
    "stacked": lambda: StackingClassifier(
        [("a", BOOSTERS["gradient"]()), ("b", DecisionTreeClassifier(max_depth=3, random_state=0))],
        LogisticRegression(),
        cv=2,
    ),
}


@pytest.mark.parametrize("kind", [*BOOSTERS, *COMPOSED])
@pytest.mark.parametrize("label", [None, 0])
def test_the_worst_case_of_chances_is_that_of_all_rows_with_the_facts(kind, label):
    rng = np.random.default_rng(0)
    x = table(rng)
    model = (BOOSTERS | COMPOSED)[kind]().fit(x, classes_of(x, rng))
    literals = limes.Literals.fit(x, bins=2, categorical=[*range(5)] if kind == "pipeline" else None)
    options = {"literals": literals, "k": 2, "fresh": 50, "output": label}
    rule = limes.SparseExplainer(model, worst_case="exact", **options)(x[[0]])
    used, cells = np.flatnonzero(rule.coefficients.values[0]), literals.cells(literals.table.encode(x))
    values = [np.unique(x[cells[:, j] == cells[0, j], j] if j in used else x[:, j]) for j in range(5)]
    answers = model.predict_proba(np.array([*product(*values)]))[:, 0 if label == 0 else 1]
    certificate = rule.certificate
    assert certificate.worst_case_exact
    assert certificate.worst_case == pytest.approx((answers.min(), answers.max()), abs=1e-6)
    quick = limes.SparseExplainer(model, **options)(x[[0]]).certificate
    assert quick.worst_case[0] <= answers.min() + 1e-6
    assert quick.worst_case[1] >= answers.max() - 1e-6


# -- the threshold on the margin ----------------------------------------------------------------------------


@pytest.mark.parametrize("rises", [True, False])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("at", [0.5, 1e-6, 0.3, 1 - 1e-6])
def test_the_threshold_on_the_margin_leaves_no_row_out(rises, side, at):
    def curve(margins):
        answers = 1.0 / (1.0 + np.exp(-margins))
        return answers if rises else 1.0 - answers

    with np.errstate(over="ignore"):
        crossing = Searched(None, curve, 1e-9, 10.0).crossing(side, at)
        assert crossing.sign == (side if rises else -side)
        margins = np.linspace(-30.0, 30.0, 100_001)
        crosses = side * curve(margins) < side * at
        allowed = crossing.sign * margins < crossing.threshold
        assert (allowed | ~crosses).all()
        # and hardly any row too many, which the model is asked about in vain
        exact = crossing.sign * np.log(at / (1 - at)) * (1 if rises else -1)
        assert crossing.threshold - exact < 2e-2


# -- in words -----------------------------------------------------------------------------------------------


def test_probabilities_are_told_in_percent():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(table(rng), columns=["age", "debt", "years", "loans", "sex"])
    labels = np.where(classes_of(x.to_numpy(), rng) == 1, "good", "bad")
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(x, labels)
    explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(x), output="good", k=1)
    row = x.iloc[[int(np.argmin(model.predict_proba(x)[:, 1]))]]
    contrast = explainer.contrast(row, above=0.5)
    before, after = percentages([contrast.prediction, contrast.new_prediction], 0.5)[:2]
    sentence = f"The chance of good would rise from {before} to {after}, above 50 %, if "
    explanation = limes.TabularExplainer(model, x, output="good")(row)
    page = limes.decision_page(explanation, contrast=contrast)
    for text in (repr(contrast), str(contrast), contrast._repr_html_(), page):
        assert sentence in " ".join(text.split())
    assert f"{percentage(contrast.prediction)} chance of good" in " ".join(page.split())
    beyond = explainer.contrast(row, below=0.5)
    assert f"The chance of good is {before}, below 50 % already." in repr(beyond)
    never = explainer.contrast(row, above=1.0)
    assert f"makes the chance of good rise above 100 %; it is {before}." in repr(never)


@pytest.mark.parametrize(
    ("numbers", "threshold", "written"),
    [
        ([0.35, 0.66], 0.5, ("35 %", "66 %", "50 %")),
        ([0.4996, 0.5004], 0.5, ("49.96 %", "50.04 %", "50 %")),
        ([0.006, 0.55], 0.5, ("0.6 %", "55 %", "50 %")),
        ([0.3499, 0.9996], 0.35, ("34.99 %", "99.96 %", "35 %")),
        ([0.0, 1.0], 0.625, ("0 %", "100 %", "62.5 %")),
        ([1e-9, 0.5], 0.4, ("1e-07 %", "50 %", "40 %")),
    ],
)
def test_percentages_keep_their_side_of_the_threshold(numbers, threshold, written):
    assert percentages(numbers, threshold) == written


def test_written_percentages_keep_their_order():
    rng = np.random.default_rng(0)
    for _ in range(repeats(2000, 200)):
        low, high = np.sort(rng.beta(0.3, 0.3, 2)).tolist()
        threshold = float(rng.choice([0.5, low + (high - low) * rng.random()]))
        *values, at = (float(text.removesuffix(" %")) for text in percentages([low, high], threshold))
        assert values[0] < values[1]
        assert (values[0] < at) == (low < threshold) or abs(low - threshold) < 1e-6
