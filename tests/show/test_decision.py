"""A page about one decision."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import limes
from internals import percentage
from limes.exceptions import InputError
from samples import explanation as sample

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.iloc[:, :10]
MODEL = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y)
EXPLANATION = limes.TabularExplainer(MODEL, X)(X.iloc[:5])


def test_it_has_all_parts(tmp_path):
    rules = limes.SparseExplainer(MODEL, literals=limes.Literals.fit(X), k=2)
    contrast = rules.contrast(X.iloc[[1]], above=0.5)
    catalogue = {name: f"{name} is {{value}} ({{effect}})." for name in X}
    page = limes.decision_page(
        EXPLANATION,
        tmp_path / "page.html",
        row=1,
        decision="Referred.",
        contrast=contrast,
        catalogue=catalogue,
    )
    assert (tmp_path / "page.html").read_text() == page
    assert "<h1>Decision on row 1</h1>" in page
    assert "Referred." in page
    account = EXPLANATION[1].contributions.values[0, :, 1]
    first = X.columns[np.abs(account).argmax()]
    bar = re.search(rf"{first} = .*?([+-]\d+\.\d+)", re.sub(r"<[^>]*>", " ", page), re.DOTALL)
    assert bar is not None
    size = f"{abs(float(bar[1])):.1f}"
    assert abs(float(size) - 100 * np.abs(account).max()) <= 0.1
    assert f"<li>{first} is {X.iloc[1][first]:.6g} ({size} percentage points).</li>" in page
    assert page.count("<li>") == 4 + len(EXPLANATION.contributions.row_warnings[1])
    values = [reason.value for reason in EXPLANATION.reasons(4, row=1, of="contributions")]
    assert ("What raises P(target = 1) most" in page) == any(value > 0 for value in values)
    assert ("What lowers P(target = 1) most" in page) == any(value < 0 for value in values)
    assert ">coefficient" not in page
    assert "2 others" in page  # of ten columns
    assert contrast._card().remarks[0] in page
    assert "does not promise" in page


def test_log_odds_are_stated_as_a_probability():
    model = LogisticRegression(max_iter=10_000).fit(X, Y)
    explanation = limes.TabularExplainer(model, X, output="margin")(X.iloc[:1])
    probability = model.predict_proba(X.iloc[:1])[0, 1]
    page = limes.decision_page(explanation)
    assert f"a probability of {percentage(probability)}" in page


def test_without_a_decision_the_prediction_is_stated():
    prediction = EXPLANATION.predictions[0, 1]
    assert f"P(target = 1): {percentage(prediction)}" in limes.decision_page(EXPLANATION)
    assert "The prediction: " in limes.decision_page(
        limes.TabularExplainer(lambda x: x["mean radius"], X)(X.iloc[:1])
    )


def test_explanations_from_files_have_coefficients():
    again = limes.Explanation.from_json(sample(3, d=4).to_json())
    page = limes.decision_page(again, row=2)
    assert "a coefficient is" in page


def test_names_are_escaped():
    table = pd.DataFrame({"<b>a": [0.0, 1.0, 2.0, 3.0] * 5, "c": np.arange(20.0)})
    explanation = limes.TabularExplainer(lambda x: x["<b>a"] * 2 + x["c"], table)(
        table.iloc[:1], ids=["<i>L1"]
    )
    page = limes.decision_page(explanation, row="<i>L1", decision="<script>alert(1)</script>")
    assert "<b>a" not in page
    assert "<i>L1" not in page
    assert "<script>" not in page


@pytest.mark.parametrize("options", [{"reasons": 0}, {"row": "L2"}, {"catalogue": {"x": "y"}}])
def test_wrong_options(options):
    with pytest.raises(InputError):
        limes.decision_page(EXPLANATION, **options)
