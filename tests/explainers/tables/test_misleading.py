"""Warnings in every channel for rows whose surrogate decides otherwise than the model."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import limes
from internals import CODES, RowWarning, WhatIfSession

X, Y = make_classification(600, 8, n_informative=5, class_sep=0.6, random_state=0)
FOREST = RandomForestClassifier(40, max_depth=8, random_state=0).fit(X, Y)
SAYS = "LIME's surrogate says"


def warned(explanation):
    return np.array([any(SAYS in text for text in row) for row in explanation.row_warnings])


@pytest.mark.parametrize("output", [None, "margin"])
def test_every_row_on_the_other_side_is_warned_of_and_no_other(output):
    model = FOREST if output is None else LogisticRegression().fit(X**3, Y)
    explanation = limes.TabularExplainer(model, X, output=output)(X[:300], progress=False)
    threshold = 0.5 if output is None else 0.0
    f, g = (
        numbers if numbers.ndim == 1 else numbers[:, 1]
        for numbers in (explanation.predictions, explanation.coefficients.surrogate_predictions)
    )
    expected = (f > threshold) != (g > threshold)
    if output is None:
        expected |= (g < -1e-9) | (g > 1 + 1e-9)
    assert expected.sum() >= 5
    np.testing.assert_array_equal(warned(explanation), expected)


def test_three_classes_name_the_output():
    rows, classes = load_wine(return_X_y=True)
    rows = rows[:, [0, 6, 9, 12]]
    model = LogisticRegression(max_iter=10_000, C=5.0).fit(rows, classes)
    explanation = limes.TabularExplainer(model, rows)(rows[::6], progress=False)
    texts = [text for row in explanation.row_warnings for text in row if SAYS in text]
    assert texts
    assert all("(output " in text for text in texts)


def test_two_of_several_classes_are_each_warned_of():
    rows, classes = load_wine(return_X_y=True)
    rows = rows[:, [0, 6, 9, 12]]
    model = LogisticRegression(max_iter=10_000, C=5.0).fit(rows, classes)
    both = limes.TabularExplainer(model, rows, output=[0, 2])(rows[::3], progress=False)
    f, g = both.predictions, both.coefficients.surrogate_predictions
    expected = ((f > 0.5) != (g > 0.5)) | (g < 0) | (g > 1)
    assert expected[:, 0].sum() >= 3
    warned = [{name for w in row if SAYS in w for name in w.outputs} for row in both.row_warnings]
    named = np.array([["0" in names, "2" in names] for names in warned])
    np.testing.assert_array_equal(named, expected)


def test_all_channels_show_the_warning():
    """Wherever the surrogate is shown: LIME's view, warnings, JSON, page, report, diagnosis and long tables.

    What shows contributions alone does not say it.
    """
    table = pd.DataFrame(X).rename(columns="x{}".format)
    forest = RandomForestClassifier(40, max_depth=8, random_state=0).fit(table, Y)
    explainer = limes.TabularExplainer(forest, table)
    explanation = explainer(table[:200], progress=False)
    i = int(np.flatnonzero(warned(explanation))[0])
    one = explanation[i]
    (warning,) = (w for w in one.row_warnings[0] if SAYS in w)
    text = warning.sentence
    assert warning in one.warnings
    assert text in " ".join(str(one.coefficients).split())
    assert text not in " ".join(str(one).split())
    assert warning in json.loads(one.to_json())["row_warnings"][0]
    _, of_lime = one.to_html().split('class="lx-made lx-lime"')
    assert text.replace("'", "&#39;") in of_lime
    assert text.replace("'", "&#39;") not in limes.decision_page(explanation, row=i)
    assert text.removeprefix("LIME's ") in explanation.to_report(progress=False)
    desk = WhatIfSession(explainer, table, [*map(str, range(len(table)))], lambda _: None)
    assert text not in desk.explain(desk.row(i)["values"], 1)["warnings"]
    diagnosis = limes.diagnose(one, progress=False)
    assert text in " ".join(str(diagnosis).split())
    assert "All checks stayed below" not in str(diagnosis)
    rows = int(warned(explanation).sum())
    summary = limes.summary(explanation, of="coefficients")
    assert sum(summary.warnings.get(code, 0) for code in ("other side", "no probability")) >= rows
    assert "'other side': the surrogate lies on the other side" in " ".join(str(summary).split())
    lines = limes.scale.explain_frame(explainer, table[:200])
    assert warning.code in lines["warnings"][i].split(", ")
    assert lines["warnings"].str.contains("other side|no probability").sum() == rows


def test_regressions_have_no_threshold():
    explainer = limes.TabularExplainer(lambda rows: rows[:, 0] * rows[:, 1], X, contributions=False)
    explanation = explainer(X[:50], progress=False)
    assert not warned(explanation).any()


def test_answers_that_are_probabilities_at_some_rows_only_have_no_threshold():
    """All rows of a call decide: one row may lie within 0 and 1, and add up to 1, by chance."""

    def model(rows):
        second = np.where(rows[:, 1] > 0, 0.3, 0.6)
        answers = np.column_stack([1.0 - second, second])
        return np.where(rows[:, [0]] > 1.0, [3.0, 4.0], answers)

    explainer = limes.TabularExplainer(model, X, rng=0, contributions=False)
    inside = X[:, 0] <= 1.0
    assert not warned(explainer(X[:30], progress=False)).any()
    assert warned(explainer(X[:30][inside[:30]], progress=False)).any()


def test_another_threshold_decides():
    explainer = limes.TabularExplainer(FOREST, X, threshold=0.3)
    explanation = explainer(X[:300], progress=False)
    f, g = explanation.predictions[:, 1], explanation.coefficients.surrogate_predictions[:, 1]
    is_across = np.array([any(w.code == "other side" for w in row) for row in explanation.row_warnings])
    np.testing.assert_array_equal(is_across, (f > 0.3) != (g > 0.3))
    assert any("the other side of 0.3" in text for text in explanation.warnings)


def test_regressions_have_a_threshold_if_it_is_given():
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, X[:, 0] * X[:, 1])
    explanation = limes.TabularExplainer(model, X, threshold=0.2)(X[:200], progress=False)
    f, g = explanation.predictions, explanation.coefficients.surrogate_predictions
    is_across = np.array([any(w.code == "other side" for w in row) for row in explanation.row_warnings])
    np.testing.assert_array_equal(is_across, (f > 0.2) != (g > 0.2))
    assert 5 < is_across.sum() < 150


@pytest.mark.parametrize("threshold", [float("nan"), "high"])
def test_a_threshold_is_a_number(threshold):
    with pytest.raises(limes.exceptions.InputError, match="threshold must be a finite number"):
        limes.TabularExplainer(FOREST, X, threshold=threshold)


@pytest.mark.parametrize("threshold", [2, -0.1])
def test_a_threshold_of_probabilities_is_between_0_and_1(threshold):
    explainer = limes.TabularExplainer(FOREST, X, threshold=threshold)
    with pytest.raises(limes.exceptions.InputError, match="the answers are probabilities, from 0 to 1"):
        explainer(X[:3])
    assert explainer.contributions(X[:3]).contributions.converged  # which no threshold is about


def test_warnings_of_combinations_are_of_rows_that_effects_and_bars_miss():
    model = RandomForestRegressor(30, max_depth=7, random_state=0).fit(X, X[:, 0] * X[:, 1] * X[:, 2])
    explanation = limes.TabularExplainer(model, X)(X[:200], progress=False)
    missed = np.abs(explanation.coefficients.local_errors) > 0.25 * np.abs(
        explanation.coefficients.values
    ).max(axis=1)
    expected = missed & (explanation.additive_fidelity + 2 * explanation.additive_fidelity_errors < 0.5)
    warned = np.array([any(w.code == "combinations" for w in row) for row in explanation.row_warnings])
    np.testing.assert_array_equal(warned, expected)
    assert 5 < warned.sum() < 195
    for one in explanation[:30]:  # a row has the same record alone
        assert one.row_warnings[0] == explanation.row_warnings[explanation.ids.index(one.ids[0])]


def test_codes_and_outputs_outlive_files_and_selections():
    rows, classes = load_wine(return_X_y=True)
    rows = rows[:, [0, 6, 9, 12]]
    model = LogisticRegression(max_iter=10_000, C=5.0).fit(rows, classes)
    explanation = limes.TabularExplainer(model, rows)(rows[::6], progress=False)
    for again in (
        limes.Explanation.from_json(explanation.to_json()),
        pickle.loads(pickle.dumps(explanation)),
    ):
        assert again.row_warnings == explanation.row_warnings
        kinds = [
            [[(w.code, w.outputs) for w in row] for row in each.row_warnings] for each in (again, explanation)
        ]
        assert kinds[0] == kinds[1]
    first = explanation[..., "0"]
    assert all(not w.outputs or "0" in w.outputs for row in first.row_warnings for w in row)
    assert any(w.outputs == ("1",) for row in explanation.row_warnings for w in row)
    codes = {w.code for row in explanation.row_warnings for w in row}
    assert codes <= {*CODES}


def test_a_selection_of_features_has_the_warnings_of_the_row():
    model = RandomForestRegressor(30, max_depth=7, random_state=0).fit(X, X[:, 0] * X[:, 1] * X[:, 2])
    explanation = limes.TabularExplainer(model, X)(X[:60], progress=False)
    for part in (explanation[:, ["x3", "x4"]], explanation.top(1), explanation[:, ["x3", "x4"]][:, "x4"]):
        assert part.row_warnings == explanation.row_warnings


def test_a_warning_is_about_the_second_of_two_classes():
    explanation = limes.TabularExplainer(FOREST, X)(X[:100], progress=False)
    assert warned(explanation[..., 1]).any()
    assert not warned(explanation[..., 0]).any()


def test_pages_take_codes_of_later_versions_and_keep_names_of_columns():
    explanation = limes.TabularExplainer(FOREST, X)(X[:3], progress=False)
    records = [[RowWarning("a", "new")], [RowWarning("b", "new")], [RowWarning("c", "outside")]]
    page = replace(explanation, row_warnings=records).to_html()
    assert "2 of 3 rows: new" in page
    assert "1 of 3 rows: c" in page
