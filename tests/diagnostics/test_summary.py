"""Summaries: greedy picks against every pick, means against their definition."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import limes
from effort import repeats
from flaws import linear, uniform_table
from internals import GUARANTEE, greedy_pick, largest_features
from limes.exceptions import InputError
from oracle import ROUNDING


def best_coverage(shows, importance, rows):
    """The best pick there is, by trying them all."""
    total = importance.sum()
    picks = combinations(range(len(shows)), min(rows, len(shows)))
    return max(importance[shows[list(pick)].any(axis=0)].sum() for pick in picks) / total


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_greedy_keeps_its_promise(seed, rows):
    rng = np.random.default_rng(seed)
    shows = rng.random((8, 9)) < 0.3
    importance = rng.random(9) + 1e-3
    pick = greedy_pick(shows, importance, rows)
    best = best_coverage(shows, importance, rows)
    covered = importance[shows[list(pick.rows)].any(axis=0)].sum() / importance.sum() if pick.rows else 0.0
    assert pick.coverage == pytest.approx(covered, abs=ROUNDING)
    assert GUARANTEE * best - ROUNDING <= pick.coverage <= best + ROUNDING
    assert best <= pick.bound + ROUNDING
    assert pick.ratio >= GUARANTEE - ROUNDING


def test_a_greedy_pick_may_be_beaten():
    """The bound is no empty word: here two other rows cover all."""
    shows = np.array([[1, 1, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=bool)
    pick = greedy_pick(shows, np.ones(6), 2)
    assert pick.rows[0] == 0
    assert pick.coverage == pytest.approx(5 / 6)
    assert best_coverage(shows, np.ones(6), 2) == 1.0 == pick.bound


def test_rows_show_their_largest_coefficients_and_no_zeros():
    result = largest_features(np.array([[3.0, -4.0, 0.5], [0.0, 0.0, 1.0]]), 2)
    np.testing.assert_array_equal(result, [[True, True, False], [False, False, True]])


def test_nothing_to_show():
    assert greedy_pick(np.zeros((3, 2), bool), np.zeros(2), 2).rows == ()


@pytest.fixture(scope="module")
def explanation():
    X = uniform_table(4, 400)
    return limes.TabularExplainer(linear([3.0, 1.0, -2.0, 0.0]), X)(X[:100])


def test_means_are_means(explanation):
    result = limes.summary(explanation, rows=2, features=2, of="coefficients")
    size = np.abs(explanation.coefficients.values)
    np.testing.assert_array_equal(result.mean_abs, size.mean(axis=0))
    np.testing.assert_array_equal(result.spread, size.std(axis=0))
    assert [result.names[j] for j in result.order()] == ["x0", "x2", "x1", "x3"]
    assert result.to_dict()["feature"] == ["x0", "x2", "x1", "x3"]
    assert len(result.pick.rows) <= 2
    assert "rows to look at" in str(result)
    assert repr(result).startswith("<Summary: 100 rows")


def test_contributions_to_a_probability_are_summarised_in_points():
    X = uniform_table(3, 60)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2] > 0)
    explanation = limes.TabularExplainer(model, X)(X[:40])
    result = limes.summary(explanation)
    sizes = np.abs(explanation.contributions.values[..., 1]).mean(axis=0)
    np.testing.assert_allclose(result.mean_abs, sizes, rtol=1e-12)  # numbers stay those of the output
    text = str(result)
    assert "contributions of 40 rows, in percentage points" in text
    for j, name in enumerate(result.names):
        (line,) = (line.split() for line in text.splitlines() if line.strip().startswith(f"{name} "))
        assert float(line[1]) == pytest.approx(100 * sizes[j], abs=0.06)
    assert "points" not in str(limes.summary(explanation, of="coefficients"))


@pytest.mark.parametrize("weights", ["bins", "euclidean"])
def test_contributions_are_summarised(weights):
    X = uniform_table(3, 60)
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    explanation = limes.TabularExplainer(model, X, weights=weights)(X[:40])
    result, account = limes.summary(explanation, by="x0"), explanation.contributions
    assert result.of == "contributions"
    np.testing.assert_allclose(result.mean_abs, np.abs(account.values).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.mean, account.values.mean(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(result.errors, np.zeros(3))
    assert "contributions of 40 rows" in str(result)
    assert "mean |contribution|" in str(result)
    assert "|contribution|: x" in repr(result)
    of_coefficients = limes.summary(explanation, of="coefficients")
    np.testing.assert_array_equal(of_coefficients.mean, explanation.coefficients.values.mean(axis=0))
    assert "mean |β|" in str(of_coefficients)


def test_errors_of_means_are_those_of_the_rows():
    X, rows = uniform_table(2, 200), repeats(30, 10)
    explanation = limes.TabularExplainer(lambda x: np.sin(9 * x[:, 0]) * x[:, 1], X, max_calls=512)(X[:rows])
    result = limes.summary(explanation, of="contributions")
    account = explanation.contributions
    np.testing.assert_allclose(result.errors, account.standard_errors.mean(axis=0), rtol=1e-12)
    assert (result.errors > 0).all()


def test_cohorts_have_bases_and_a_mask_names_two(explanation):
    mask = np.arange(100) < 30
    result = limes.summary(explanation, by=mask)
    assert [(c.name, c.rows) for c in result.cohorts] == [("not selected", 70), ("selected", 30)]
    account = explanation.contributions
    for cohort, its in zip(result.cohorts, (~mask, mask), strict=True):
        assert cohort.base == pytest.approx(account.base_values[its].mean())
        assert cohort.prediction == pytest.approx(explanation.predictions[its].mean())
        assert cohort.base + cohort.mean.sum() == pytest.approx(cohort.prediction)
    axes = explanation.plot.bar(by=mask)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [label.split(":")[0] for label in labels] == ["not selected", "selected"]
    with pytest.warns(FutureWarning, match="cohorts= is by="):
        limes.summary(explanation, cohorts=mask)


def test_cohorts_are_a_features_cells_or_given(explanation):
    result = limes.summary(explanation, by="x0", of="coefficients")
    assert sum(c.rows for c in result.cohorts) == 100
    assert {c.name for c in result.cohorts} == {row[0] for row in explanation.conditions}
    labels = np.array(["a", "b"] * 50)
    given_labels = limes.summary(explanation, by=labels, of="coefficients")
    for cohort in given_labels.cohorts:
        sizes = np.abs(explanation.coefficients.values[labels == cohort.name])
        np.testing.assert_allclose(cohort.mean_abs, sizes.mean(axis=0))


def test_pictures(explanation):
    result = limes.summary(explanation, by="x0")
    figure, axes = plt.subplots(1, 2)
    assert result.plot.importance(ax=axes[0]) is axes[0]
    assert result.plot.cohorts(ax=axes[1]) is axes[1]
    plt.close(figure)
    with pytest.raises(InputError, match="no cohorts"):
        limes.summary(explanation).plot.cohorts()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "rows=0"),
        ({"of": "effects"}, "of='effects' is not one of"),
        ({"features": True}, "features=True"),
        ({"by": ["a"]}, "one label for each of the 100 rows"),
        ({"by": list(range(100))}, "at most 20"),
    ],
)
def test_explanations_that_cannot_be_summarised_are_refused(explanation, options, message):
    with pytest.raises(InputError, match=message):
        limes.summary(explanation, **options)


def test_texts_have_no_summary():
    with pytest.raises(InputError, match="several rows"):
        limes.summary(["no", "explanation"])


def test_a_summary_of_all_features_omits_none():
    X = np.random.default_rng(0).normal(size=(100, 3))
    explanation = limes.TabularExplainer(lambda x: x @ [1.0, 2.0, 3.0], X)(X[:10])
    assert "smaller features" not in str(limes.summary(explanation))
