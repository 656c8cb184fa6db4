"""A letter about one decision, as a page and as text."""

from __future__ import annotations

import re
from decimal import Decimal
from html import escape, unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import limes
from internals import changed, letter_of
from limes.exceptions import InputError
from samples import explanation as sample

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.iloc[:, :10]
MODEL = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y)
EXPLANATION = limes.TabularExplainer(MODEL, X)(X.iloc[:5])


def read(page):
    """Return what a reader of a page sees, without its style."""
    body = page.partition("<main")[2].partition(">")[2]
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", body).split())).replace("\u00a0", " ")


def points(sentence):
    (number,) = re.findall(r"by (\d[\d.]*) percentage point", sentence)
    return Decimal(number)


def test_it_has_all_parts_with_reasons_for_the_outcome_first(tmp_path):
    rules = limes.SparseExplainer(MODEL, literals=limes.Literals.fit(X), k=2)
    contrast = rules.contrast(X.iloc[[1]], above=0.5)
    page = limes.decision_page(
        EXPLANATION, tmp_path / "page.html", row=1, decision="Referred.", contrast=contrast, reasons=3
    )
    assert (tmp_path / "page.html").read_text() == page
    text = read(page)
    parts = ["Decision on row 1 Referred.", "Main reasons for this outcome", *contrast._card().remarks]
    parts += ["How the prediction came about", "does not promise", "limes: "]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert page.index("Main reasons") < page.index("How the prediction")
    letter, _ = letter_of(EXPLANATION, row=1, contrast=contrast, reasons=3)
    (group,) = letter.reasons
    values = EXPLANATION[1].contributions.values[0, :, 1]
    order = [j for j in np.argsort(values) if values[j] < 0][:3]
    assert [sentence.partition(" = ")[0] for sentence in group.sentences] == [X.columns[j] for j in order]
    assert [float(points(s)) for s in group.sentences] == pytest.approx(-100 * values[order], abs=0.051)


def test_several_contrasts_are_set_alike_and_state_the_border_of_the_classes():
    rules = limes.SparseExplainer(MODEL, literals=limes.Literals.fit(X), k=2)
    ways = rules.contrasts(X.iloc[[1]], 3)
    assert len(ways) == 3
    page = limes.decision_page(EXPLANATION, row=1, contrast=ways)
    for way in ways:
        assert f"<p>{escape(way._card().subtitle)}</p>" in page
    side = "below" if ways[0].prediction < 0.5 else "above"
    assert f"{side} the threshold of 50 %" in read(page)
    assert "Main reasons for this outcome" in read(page)
    # the remarks are what is set small
    assert f'<p class="soft">{ways[0]._card().remarks[0]}</p>' in page


def test_columns_that_the_explainer_fixes_stay_on_the_page():
    literals = limes.Literals.fit(X)
    free = limes.SparseExplainer(MODEL, literals=literals, k=2).contrast(X.iloc[[1]], above=0.5)
    names = [change.feature for change in free.changes]
    rules = limes.SparseExplainer(MODEL, literals=literals, k=2, fixed=names)
    for several in (False, True):
        ask = rules.contrasts if several else rules.contrast
        page = read(limes.decision_page(EXPLANATION, row=1, contrast=ask(X.iloc[[1]], above=0.5)))
        text = page.partition("What would have changed the outcome")[2].partition("How the prediction")[0]
        assert f"Constraints: {names[0]} stays as it is" in text
        assert not any(f"{name} were" in text for name in names)
        assert text.count("would rise") == (3 if several else 1)


def test_the_contrast_of_a_class_has_the_threshold_of_the_class():
    rules = limes.SparseExplainer(MODEL, literals=limes.Literals.fit(X), k=2)
    page = read(limes.decision_page(EXPLANATION, row=1, contrast=rules.contrast(X.iloc[[1]])))
    assert "The class would be" in page
    assert "threshold" in page.partition("How this was made")[0]


@pytest.mark.parametrize("row", range(5))
def test_the_written_account_adds_up(row):
    letter, one = letter_of(EXPLANATION, row=row, threshold=0.5)
    first, *lines, last = [Decimal(line.number.removesuffix(" %")) for line in letter.account]
    assert first + sum(lines) == last
    assert float(last) == pytest.approx(100 * one.predictions.item(), abs=0.051)
    assert len(lines) == 9  # 8, and all others
    written = {line.text: abs(Decimal(line.number)) for line in letter.account[1:-1]}
    for sentence in letter.reasons[0].sentences:
        cause = re.split(" (?:raises|lowers) ", sentence)[0]
        assert points(sentence) == written[cause]


def test_no_error_stands_in_a_letter():
    noisy = limes.TabularExplainer(lambda x: MODEL.predict_proba(x)[:, 1] ** 1.5, X, max_calls=300, rng=1)
    explanation = noisy(X.iloc[:1])
    assert explanation.contributions.standard_errors.any()
    page = limes.decision_page(explanation, threshold=0.5)
    assert "±" not in page
    assert "standard error" not in page
    assert "method: estimated with " in read(page)
    assert "order not certain" not in page


@pytest.mark.parametrize(
    ("errors", "order"),
    [
        ([0.0, 0.0, 0.0, 0.0], ""),
        ([0.01, 0.01, 0.0, 0.0], "The order of reasons 1 and 2 is not certain."),
        ([0.05, 0.05, 0.003, 0.0], "The order of reasons 1 to 3 is not certain."),
        ([0.0, 0.0, 0.003, 0.02], "A further reason may be as strong as the last one."),
    ],
)
def test_an_order_that_is_not_certain_is_stated_in_words(errors, order):
    values = [-0.2, -0.19, -0.15, -0.14, 0.01]
    (group,) = letter_of(account(values, [*errors, 0.0]), threshold=0.5, reasons=3)[0].reasons
    assert (len(group.sentences), group.order) == (3, order)


def test_a_value_whose_sign_is_not_certain_is_no_reason():
    (group,) = letter_of(account([-0.3, -0.2], [0.01, 0.15]), threshold=0.5)[0].reasons
    assert [s.partition(" ")[0] for s in group.sentences] == ["x0"]
    assert group.heading == "Main reason for this outcome"
    (group,) = letter_of(account([0.3, -0.2], [0.01, 0.15]), threshold=0.9)[0].reasons
    assert group.sentences == ("No value surely lowers the chance of good.",)


def account(values, errors):
    """An explanation of a probability with these contributions."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(50, len(values)))).add_prefix("x")
    model = LogisticRegression().fit(table, np.where(table["x0"] > 0, "good", "bad"))
    one = limes.TabularExplainer(model, table)(table.iloc[[int(table["x0"].argmin())]])[..., "good"]
    its = one.contributions.changed(
        values=np.reshape(values, (1, -1)),
        standard_errors=np.reshape(errors, (1, -1)),
        base_values=one.predictions - sum(values),
    )
    return changed(one, contributions=its)


@pytest.mark.parametrize(
    ("prediction", "threshold", "stated"),
    [
        (0.3064, 0.5, "31 % chance of good, below the threshold of 50 %; 73 % is usual."),
        (0.4999, 0.5, "49.99 % chance of good, below the threshold of 50 %; 73 % is usual."),
        (0.12, 0.1234, "12.0 % chance of good, below the threshold of 12.34 %; 73 % is usual."),
        (0.5, 0.5, "50 % chance of good, at the threshold of 50 %; 73 % is usual."),
        (0.9972, 0.5, "99.7 % chance of good, above the threshold of 50 %; 73 % is usual."),
        (0.0003, None, "0.03 % chance of good; 73 % is usual."),
        (1.0, None, "100 % chance of good; 73 % is usual."),
    ],
)
def test_a_probability_is_one_sentence_in_percent(prediction, threshold, stated):
    one = account([-0.1, 0.0], [0.0, 0.0])
    base = np.full(one.predictions.shape, 0.73)
    its = one.contributions.changed(base_values=base, values=np.array([[prediction - 0.73, 0.0]]))
    one = changed(one, contributions=its, predictions=np.full(one.predictions.shape, prediction))
    assert letter_of(one, threshold=threshold)[0].stated == stated


def test_reasons_are_those_that_the_side_of_the_threshold_asks_for():
    one = account([-0.3, 0.2], [0.0, 0.0])
    prediction = float(one.predictions.item())
    below, _ = letter_of(one, threshold=prediction + 0.01)
    above, _ = letter_of(one, threshold=prediction - 0.01, outcome="approval")
    assert "lowers the chance of good" in below.reasons[0].sentences[0]
    assert "raises the chance of good" in above.reasons[0].sentences[0]
    assert above.reasons[0].heading == "Main reason for this approval"
    both, _ = letter_of(one)
    headings = ["What raises the chance of good most", "What lowers the chance of good most"]
    assert [group.heading for group in both.reasons] == headings
    assert len(letter_of(one, threshold=0.5, sign="both")[0].reasons) == 2
    with pytest.raises(InputError, match="sign"):
        letter_of(one, sign="up")


def test_a_threshold_of_another_quantity_is_not_that_of_the_page():
    margin = limes.SparseExplainer(
        LogisticRegression(max_iter=10_000).fit(X, Y), literals=limes.Literals.fit(X), output="margin"
    ).contrast(X.iloc[[1]], above=0.0)
    assert "threshold" not in letter_of(EXPLANATION, row=1, contrast=margin)[0].stated


def test_log_odds_are_stated_as_a_chance():
    model = LogisticRegression(max_iter=10_000).fit(X, Y)
    explanation = limes.TabularExplainer(model, X, output="margin")(X.iloc[:1])
    probability = model.predict_proba(X.iloc[:1])[0, 1]
    letter, _ = letter_of(explanation, threshold=0.0)
    assert letter.stated.startswith("Log-odds of target = 1: -")
    (chance,) = re.findall(r"\(a chance of ([\d.]+) %\), below the threshold of 0; ", letter.stated)
    assert float(chance) == pytest.approx(100 * probability, rel=0.06)
    assert "lowers the log-odds of target = 1 by " in letter.reasons[0].sentences[0]


def test_a_regression_is_stated_in_its_units():
    explanation = limes.TabularExplainer(lambda x: x["mean radius"] * 10, X)(X.iloc[:1])
    letter, _ = letter_of(explanation, threshold=170.0)
    assert letter.stated.startswith("Prediction: 180, above the threshold of 170; ")
    assert "percent" not in letter.text()


def test_catalogues_have_the_numbers_of_the_account():
    catalogue = {name: f"{name} is {{value}} ({{effect}})." for name in X}
    letter, _ = letter_of(EXPLANATION, row=1, threshold=0.5, catalogue=catalogue, reasons=1)
    account = EXPLANATION[1].contributions.values[0, :, 1]
    first = X.columns[account.argmin()]
    line = next(line for line in letter.account if line.text.startswith(f"{first} ="))
    size = line.number.lstrip("-")
    expected = f"{first} is {X.iloc[1][first]:.6g} ({size} percentage points)."
    assert letter.reasons[0].sentences == (expected,)


def test_a_named_number_is_no_class():
    explanation = limes.TabularExplainer(lambda x: {"price": x["mean radius"]}, X)(X.iloc[:1])
    letter, _ = letter_of(explanation, threshold=1.0)
    assert letter.stated.startswith("Prediction of price: 18, above the threshold of 1; ")
    assert " raises the prediction of price by " in letter.reasons[0].sentences[0]


def test_explanations_from_files_have_coefficients():
    again = limes.Explanation.from_json(sample(3, d=4).to_json())
    page = limes.decision_page(again, row=2)
    assert "a coefficient is" in page
    assert "A number is a coefficient of the surrogate" in page


def test_contributions_of_a_whole_table_are_computed_for_the_one_row():
    explainer = limes.TabularExplainer(lambda x: MODEL.predict_proba(x)[:, 1], X, max_calls=300)
    letter, one = letter_of(explainer(X.iloc[:25]), row=3)
    assert len(one.contributions.values) == 1
    assert letter.account[0].text == "Usual"


def test_a_text_is_shown_with_its_words():
    words = limes.TextExplainer(lambda texts: [0.2 + 0.5 * ("good" in text) for text in texts])
    page = limes.decision_page(words("a <good> place"), threshold=0.5)
    assert "Main reason for this outcome" in page
    assert '"good" raises the prediction by 0.500.' in read(page)
    assert 'class="lx-text"' in page
    assert "&lt;" in page
    assert "<good>" not in page
    assert "±" not in page


def test_the_text_fits_a_terminal_and_says_what_the_page_says():
    letter, _ = letter_of(EXPLANATION, row=1, threshold=0.5, decision="Referred.")
    text = letter.text(60)
    assert max(map(len, text.splitlines())) <= 60
    page = read(limes.decision_page(EXPLANATION, row=1, threshold=0.5, decision="Referred."))
    for sentence in (letter.stated, *letter.reasons[0].sentences, letter.about_account, *letter.limits):
        assert sentence in page
        assert sentence in " ".join(text.split())


def test_how_it_was_made_is_printed_too():
    page = limes.decision_page(EXPLANATION[0])
    assert "background: 569 rows" in read(page)
    assert f"limes: {limes.__version__}" in read(page)
    assert "display: none" not in page
    assert "<details" not in page


def test_names_are_escaped():
    table = pd.DataFrame({"<b>a": [0.0, 1.0, 2.0, 3.0] * 5, "c": np.arange(20.0)})
    explanation = limes.TabularExplainer(lambda x: x["<b>a"] * 2 + x["c"], table)(
        table.iloc[:1], ids=["<i>L1"]
    )
    page = limes.decision_page(
        explanation,
        row="<i>L1",
        decision="<script>alert(1)</script>",
        outcome="<u>refusal",
        title="<s>",
        threshold=20.0,
    )
    for tag in ("<b>a", "<i>L1", "<script>", "<u>", "<s>"):
        assert tag not in page
    assert "Main reasons for this &lt;u&gt;refusal" in page


@pytest.mark.parametrize(
    "options",
    [{"reasons": 0}, {"row": "L2"}, {"catalogue": {"x": "y"}}, {"sign": "down"}, {"threshold": "half"}],
)
def test_wrong_options(options):
    with pytest.raises(InputError):
        limes.decision_page(EXPLANATION, **{"row": 0} | options)


def test_a_rule_has_its_changes_in_percentage_points():
    rule = limes.SparseExplainer(MODEL, literals=limes.Literals.fit(X), k=2, output=1)(X.iloc[[1]])
    letter, _ = letter_of(rule, threshold=0.5)
    (group,) = letter.reasons
    stated = {reason.condition: 100 * abs(reason.value) for reason in rule.reasons(2)}
    assert stated
    for sentence in group.sentences:
        condition = re.split(" raises | lowers ", sentence)[0]
        assert float(points(sentence)) == pytest.approx(stated[condition], rel=0.01)
    bars = {line.text: abs(float(line.number)) for line in letter.account}
    assert bars == pytest.approx(stated, rel=0.01)


def test_the_contrast_of_another_row_is_refused():
    rules = limes.SparseExplainer(MODEL, literals=limes.Literals.fit(X), k=2, output=1)
    row = next(
        i for i in range(1, 5) if abs(MODEL.predict_proba(X)[i, 1] - MODEL.predict_proba(X)[0, 1]) > 1e-3
    )
    contrast = rules.contrast(X.iloc[[row]], above=0.5)
    with pytest.raises(InputError, match="pass the contrast of the same row and model"):
        limes.decision_page(EXPLANATION, row=0, output=1, contrast=contrast)
