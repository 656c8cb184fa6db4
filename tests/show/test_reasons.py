from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge

import limes
from limes.exceptions import InputError
from samples import explanation


def of(values, errors=None, **options):
    return explanation(
        d=len(values), values=[values], standard_errors=[errors or [0.0] * len(values)], **options
    )


def test_reasons_are_sentences_by_falling_size():
    first, second = of([1.0, -3.0, 0.5]).reasons(2)
    assert first == "sex <= 0.5 lowers progression by 3"
    assert second == "age <= 0.5 raises progression by 1"
    assert (first.feature, first.value, first.certain) == ("sex", -3.0, True)


def test_the_catalogue_has_sentences_of_the_house():
    e = of([1.0, -3.0], data=[[52, "male"]])
    catalogue = {"age": "You are {value}.", "sex": ("{condition} helps", "{condition} hurts")}
    assert e.reasons(catalogue=catalogue) == ("sex <= 0.5 hurts", "You are 52.")
    assert e.reasons(catalogue=catalogue, sign="+") == ("You are 52.",)


def test_numbers_have_the_digits_that_their_errors_allow():
    e = of([0.123456, -0.3], [0.02, 0.0], method="sampled", provenance={"answer": "predict_proba"})
    texts = e.reasons(catalogue={"age": "{effect} for {value}"}, scale="percentage points")
    assert texts[0] == "sex <= 0.5 lowers P(progression) by 30 percentage points"
    assert texts[1].startswith("12 percentage points for ")
    assert e.reasons()[1].startswith("age <= 0.5 raises P(progression) by 0.12")


def test_contributions_to_a_probability_are_said_as_on_a_letter():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestClassifier(10, random_state=0).fit(X, np.where(y > 140, "ill", "well"))
    explanation = limes.TabularExplainer(model, X, output="ill")(X.iloc[[3]])
    letter = unescape(limes.decision_page(explanation, threshold=0.0, reasons=2))
    for reason in explanation.reasons(2, sign="+"):
        assert f"<li>{reason}.</li>" in letter
        assert re.search(r"raises the chance of ill by \d+\.\d percentage points$", reason)
    in_units = explanation.reasons(1, scale="units")[0]
    assert re.search(r"P\(ill\) by 0\.\d+$", in_units)


def test_a_value_that_looks_like_a_field_is_only_a_value():
    e = of([1.0], data=[["{effect}"]])
    assert e.reasons(catalogue={"age": "{value}: {effect}"}) == ("{effect}: 1",)


def test_reasons_of_contributions_are_the_account():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    explanation = limes.TabularExplainer(RandomForestRegressor(10, random_state=0).fit(X, y), X)(X.iloc[:2])
    first, *_ = explanation.reasons(1, row=1, of="contributions")
    values = explanation.contributions.values[1]
    j = int(np.argmax(np.abs(values)))
    assert first.value == values[j]
    assert first.startswith(f"{X.columns[j]} = ")


def test_reasons_have_the_printed_contributions():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    explainer = limes.TabularExplainer(RandomForestRegressor(10, random_state=0).fit(X, y), X)
    rounded = 0
    for one in explainer(X.iloc[:40], progress=False):
        printed = {line.split("   ")[0].strip(): line for line in str(one).splitlines() if " = " in line}
        for reason in one.reasons(4, of="contributions"):
            size = reason.rsplit(" by ", 1)[1]
            assert f"{'+' if reason.value > 0 else '-'}{size} " in printed[reason.condition]
            decimals = len(size.partition(".")[2])
            rounded += f"{abs(reason.value):.{decimals}f}" != size
    # numbers that add up are not always the nearest ones: else this test would not see a difference
    assert rounded > 0


def test_an_order_that_noise_could_turn_is_marked():
    reasons = of([3.0, 2.9, 1.0, 0.1], [0.1, 0.1, 0.1, 0.1], method="sampled").reasons()
    assert [reason.certain for reason in reasons] == [False, False, True, False]  # the last may be 0
    assert reasons[0].endswith("(order not certain)")
    assert "certain" not in reasons[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is the number"),
        ({"sign": "x"}, "sign='x'"),
        ({"catalogue": {"agee": "x"}}, "did you mean 'age'"),
        ({"catalogue": {"age": 3}}, "pass a text, or a pair"),
        ({"catalogue": {"age": "{val}"}}, r"has the field \{val\} \(did you mean 'value'\?\)"),
        ({"catalogue": {"age": ("{condition}", "{}")}}, r"has the field \{\}"),
        ({"of": "shap"}, "of='shap'"),
        ({"scale": "percent"}, "scale='percent'"),
        ({"scale": "percentage points"}, "is for probabilities"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError, match=message):
        of([1.0, 2.0]).reasons(**options)


def test_a_missing_value_has_no_sentence_about_values():
    """A letter said "No late payments." of a missing number."""
    X = pd.DataFrame({"late": [0.0, 1.0, 2.0, np.nan] * 30, "debt": np.arange(120.0)})
    model = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(
        X, X["late"].isna() * 30.0 + X["debt"] / 10.0
    )
    e = limes.TabularExplainer(model, X)(X.iloc[[3]], progress=False)
    pair, named = ("Late.", "No late payments."), ("Late: {value}.", "Not late: {value}.")

    def late(entry):
        (text,) = [text for text in e.reasons(2, {"late": entry}) if text.feature == "late"]
        return str(text)

    assert late(pair) not in pair
    assert "missing" in late(pair)
    assert late(named).endswith("missing.")
    assert late((*pair, "We do not know your payments.")) == "We do not know your payments."


def test_several_rows_have_no_silent_default():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    explanation = limes.TabularExplainer(Ridge().fit(X, y), X)(X.iloc[:3])
    for reading in (explanation, explanation.contributions):
        with pytest.warns(FutureWarning, match="about the first row alone, and the explanation has 3 rows"):
            assert reading.reasons(1) == reading.reasons(1, row=0)
    with pytest.warns(FutureWarning, match=r"decision_page\(\) is about the first row"):
        page = limes.decision_page(explanation)
    assert page == limes.decision_page(explanation, row=0)
    # a chosen row, and the only one, need no warning
    assert explanation[1].reasons(2) == explanation.reasons(2, row=1) != explanation.reasons(2, row=0)


def test_a_catalogue_formats_values():
    data = [[52_000.4, "male"]]
    catalogue = {"age": "An income of {value:,.0f} euros.", "sex": "{value:>6}: {condition}"}
    assert of([1.0, -3.0], data=data).reasons(catalogue=catalogue) == (
        "  male: sex <= 0.5",
        "An income of 52,000 euros.",
    )
    missing = of([1.0], data=[[np.nan]])
    assert missing.reasons(catalogue={"age": "An income of {value:,.0f} euros."}) == (
        "An income of missing euros.",
    )


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{value:,.0q}", r"formats the value '52' by \{value:,.0q\}: "),
        ("{effect:.2f}", r"\{value\} alone takes a format"),
        ("{amount:.2f}", r"the field \{amount\}"),
    ],
)
def test_a_format_that_does_not_fit_is_refused(entry, words):
    with pytest.raises(InputError, match=words):
        of([1.0], data=[[52]]).reasons(catalogue={"age": entry})
