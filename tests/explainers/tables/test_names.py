"""First steps of users: bound methods, an index, rows of which some cannot be explained, names of outputs."""

from __future__ import annotations

from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import limes
from internals import output_title, view_row
from limes.exceptions import InputError

X, Y = load_wine(return_X_y=True, as_frame=True)
X = X.iloc[:, :4]
LABELS = np.where(Y == 2, "Bad", "Good")
FOREST = RandomForestClassifier(5, random_state=0).fit(X, LABELS)


def test_a_bound_method_is_read_as_its_model():
    plain, bound = (limes.TabularExplainer(m, X)(X.iloc[:3]) for m in (FOREST, FOREST.predict_proba))
    assert bound.method == "exact"
    assert bound.output_names == ("Bad", "Good")
    np.testing.assert_array_equal(bound.coefficients.values, plain.coefficients.values)


@pytest.mark.parametrize(("output", "name"), [(1, "Good"), ("Bad", "Bad"), ([0, 1], "Bad")])
def test_positions_of_columns_become_labels(output, name):
    explanation = limes.TabularExplainer(FOREST.predict_proba, X, output=output)(X.iloc[:1])
    assert explanation.output_names[0] == name


def test_methods_whose_numbers_are_not_the_model_s_are_called():
    assert limes.TabularExplainer(lambda t: FOREST.predict_proba(t), X, max_calls=64).method == "sampled"
    codes = RandomForestClassifier(3, random_state=0).fit(X, Y)
    labels = limes.TabularExplainer(lambda t: codes.predict(t), X, max_calls=64)
    assert labels.method == "sampled"
    regressor = LinearRegression().fit(X, Y)
    assert limes.TabularExplainer(regressor.predict, X).method == "exact"


def test_rows_keep_their_names():
    named = X.set_axis([f"L{i:05d}" for i in range(len(X))])
    explanation = limes.TabularExplainer(FOREST, named)(named.iloc[100:103])
    assert explanation.ids == ("L00100", "L00101", "L00102")
    assert explanation[1:].ids == ("L00101", "L00102")
    assert explanation.to_frame()["id"].unique().tolist() == [*explanation.ids]
    assert limes.Explanation.from_json(explanation.to_json()).ids == explanation.ids
    assert "L00102" in explanation.to_html()
    assert "L00101" in explanation.plot.bar(1).get_title(loc="left")
    assert limes.TabularExplainer(FOREST, X)(named.iloc[7]).ids == ("L00007",)
    assert limes.TabularExplainer(FOREST, X)(X.iloc[[3, 9]]).ids == (3, 9)
    assert limes.TabularExplainer(FOREST, X)(X.iloc[:2], ids=["a", "b"]).ids == ("a", "b")
    with pytest.raises(InputError, match="ids has 1 names for 2 rows"):
        limes.TabularExplainer(FOREST, X)(X.iloc[:2], ids=["a"])


def test_one_bad_row_does_not_cost_the_others():
    rows = X.iloc[:5].copy()
    rows.iloc[1, 2] = np.inf
    rows.iloc[3, 0] = np.nan
    explanation = limes.TabularExplainer(FOREST, X, errors="row")(rows)
    assert explanation.ids == (0, 2, 4)
    assert [row for row, _ in explanation.errors] == [1, 3]
    assert "'ash'" in explanation.errors[0][1]
    assert "2 of 5 rows have no explanation" in " ".join(str(explanation).split())
    assert "2 of 5 rows have no explanation" in explanation.to_html()
    whole = limes.TabularExplainer(FOREST, X)(X.iloc[:5])
    np.testing.assert_array_equal(explanation.coefficients.values, whole.coefficients.values[[0, 2, 4]])
    with pytest.raises(InputError, match="no row can be explained"):
        limes.TabularExplainer(FOREST, X, errors="row")(rows.iloc[[1, 3]])
    with pytest.raises(InputError, match="row 3"):
        limes.TabularExplainer(FOREST, X)(rows)


def test_an_unseen_category_costs_its_row_alone():
    table = pd.DataFrame({"race": ["a", "b"] * 20, "age": np.arange(40.0)})
    explainer = limes.TabularExplainer(
        lambda t: t["age"].to_numpy(), table, errors="row", max_calls=64, control="none"
    )
    explanation = explainer(pd.DataFrame({"race": ["a", "Martian"], "age": [1.0, 2.0]}), progress=False)
    assert explanation.ids == (0,)
    assert "'Martian' does not occur in the background" in explanation.errors[0][1]


@pytest.mark.parametrize(
    ("model", "output", "title"),
    [
        (FOREST, None, "P(Good)"),
        (RandomForestClassifier(3).fit(X, Y > 0), None, "P(target = True)"),
        (RandomForestClassifier(3).fit(X, (Y > 0).astype(int)), 1, "P(target = 1)"),
        (LogisticRegression(max_iter=9999).fit(X, LABELS), "margin", "log-odds of Good"),
        (LinearSVC().fit(X, LABELS), "margin", "margin of Good"),
        (LinearRegression().fit(X, Y), None, "prediction"),
    ],
)
def test_outputs_have_titles(model, output, title):
    explanation = limes.TabularExplainer(model, X, output=output)(X.iloc[:1])
    (view,) = view_row(explanation, 0, 3).outputs  # of two classes the positive one alone
    assert view.title == output_title(explanation, view.position) == title
    assert title[1:] in explanation.to_html()


def test_explainers_have_a_face():
    explainer = limes.TabularExplainer(FOREST, X)
    assert repr(explainer) == "<TabularExplainer: RandomForestClassifier, 178 rows, 4 columns, exact>"
    assert "exact: the model was read" in str(explainer)
    assert "quartile" in explainer._repr_html_()
    assert "…" not in explainer._repr_html_()
    long = X.add_suffix(" and so on" * 9)
    names = [*long.columns]
    held = limes.TabularExplainer(LinearRegression().fit(long, Y), long, hold=names[:2])._repr_html_()
    assert ", ".join(names[:2])[:110] in unescape(held)
    assert "…<" in held
    rows = X.iloc[:2]
    for other in (
        limes.summary(explainer(X.iloc[:9])),
        limes.suggest_design(explainer, rows),
    ):
        assert "<table>" in other._repr_html_()
        assert "\n" not in repr(other)[:60]


@pytest.mark.parametrize(
    ("model", "output", "quantity"),
    [
        (LogisticRegression(), "margin", "log-odds"),
        (LogisticRegression(), None, None),  # probabilities
        (LinearSVC(), "margin", None),
        (HistGradientBoostingClassifier(max_iter=3), "margin", "log-odds"),
    ],
)
def test_a_margin_whose_logistic_is_the_probability_is_called_log_odds(model, output, quantity):
    x = np.random.default_rng(0).normal(size=(80, 2))
    explainer = limes.TabularExplainer(model.fit(x, x[:, 0] > 0), x, output=output)
    assert explainer(x[:1]).provenance.get("quantity") == quantity
