"""Facts that hold for certain as people see them: in terminals, on pages, in reports and letters."""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

import limes
from internals import certain_at, letter_of
from limes.exceptions import InputError
from limes.scale import explain_frame


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    columns = {name: rng.integers(0, 6, 300) for name in ("age", "debt", "years", "rooms")}
    x = pd.DataFrame(columns, index=[f"A{i:03d}" for i in range(300)])
    x["income"] = rng.lognormal(3.0, 0.4, 300).round(1)
    return x


@pytest.fixture(scope="module")
def model(table):
    y = np.where(table["age"] + table["years"] > table["debt"] + 2, "granted", "refused")
    return RandomForestClassifier(30, max_depth=5, random_state=0).fit(table, y)


@pytest.fixture(scope="module")
def facts(model, table):
    domain = limes.Domain.fit(table)
    return limes.SparseExplainer(model, domain=domain, objective="certain")(table.iloc[:4], progress=False)


def read(page):
    """Return the text of a page without its style and scripts."""
    body = re.sub(r"(?s)<(style|script).*?</\1>", " ", page)
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", body).split()))


def outputs(explanation, row):
    """Return the texts of a row in terminals, pages and reports, each in one line."""
    one = explanation[row]
    content = json.loads(
        re.search(r'(?s)id="content">(.*?)</script>', explanation.to_report(progress=False))[1]
    )
    certain = content["explanations"][0]["certain"][row]
    return [
        " ".join(str(one).split()),
        read(one.to_html()),
        read(one._repr_html_()),
        " ".join([certain["answer"], *chain(*certain["lines"]), *certain["sentences"]]),
    ]


def test_every_output_has_the_facts_a_row_without_each_and_the_proof(facts, model, table):
    for row in range(4):
        certificate = facts.certificates[row]
        assert certificate.proved
        assert certificate.label == model.predict(table.iloc[[row]])[0]
        for text in outputs(facts, row):
            assert "surrogate" not in text
            assert "oefficient" not in text
            assert f"class {certificate.label}" in text
            for column, fact in zip(certificate.columns, certificate.facts, strict=True):
                assert fact == f"{column} = {table[column].iloc[row]:g}"
                assert fact in text
            assert "No set of fewer facts is sufficient: proved." in text
            has_others = len(certificate.columns) < table.shape[1]
            assert ("In possible rows the other columns are:" in text) == has_others
            assert f"cut {certificate.nodes:,} box" in text
            same = (table[list(certificate.columns)] == table[list(certificate.columns)].iloc[row]).all(
                axis=1
            )
            assert f"The facts hold in {same.sum()} of the background's 300 rows." in text


def test_rows_without_a_fact_are_answered_as_the_model_answers_them(facts, model, table):
    for row in range(4):
        certificate, view = facts.certificates[row], certain_at(facts, row)
        examples = pd.DataFrame(certificate.counterexamples, columns=table.columns)
        assert certificate.counterexample_facts == tuple((name,) for name in certificate.columns)
        assert certificate.counterexample_answers == pytest.approx(model.predict_proba(examples)[:, 1])
        assert certificate.counterexample_labels == tuple(model.predict(examples))
        assert set(certificate.counterexample_labels) == {*model.classes_} - {certificate.label}
        for i, line in enumerate(view.lines):
            changes, answer, label = line.without
            assert label == certificate.counterexample_labels[i]
            assert float(answer) == pytest.approx(certificate.counterexample_answers[i], rel=1e-3)
            assert (float(answer) > 0.5) == (label == model.classes_[1])
            # the changes alone, put into the row, make the counterexample
            changed = table.iloc[row].to_dict() | {
                name: float(value) for name, value in (its.split(" = ") for its in changes.split(", "))
            }
            if "more column" not in changes:
                assert model.predict(pd.DataFrame([changed]))[0] == label
            assert changes.startswith(certificate.columns[i])


def test_a_number_that_is_kept_within_an_error_is_shown_with_its_contradictions(table):
    y = table["age"] * table["years"] - table["debt"].astype(float)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(table, y)
    explainer = limes.SparseExplainer(model, domain=limes.Domain.fit(table), objective="certain", error=3.0)
    explanation = explainer(table.iloc[[0]])
    certificate = explanation.certificate
    assert (certificate.label, certificate.counterexample_labels) == ("", ())
    assert certificate.threshold is None
    assert all(abs(a - certificate.prediction) > 3.0 for a in certificate.counterexample_answers)
    for text in outputs(explanation, 0):
        assert "surrogate" not in text
        assert "class" not in text


def test_facts_that_are_not_sufficient_have_the_counterexample(model, table):
    literals = limes.Literals.fit(table, bins=2)
    explainer = limes.SparseExplainer(model, literals=literals, objective="certain", fresh=20)
    explanation = explainer(table.iloc[:20], progress=False)
    places = [i for i, certificate in enumerate(explanation.certificates) if not certificate.proved]
    assert places
    for place in places[:2]:
        certificate = explanation.certificates[place]
        assert certificate.counterexample_facts == ((),)
        assert certificate.counterexample_labels != (certificate.label,)
        for text in outputs(explanation, place):
            assert "without it" not in text
            assert "The counterexample: " in text
            assert f"class {certificate.counterexample_labels[0]}." in text


def test_columns_that_are_kept_together_are_one_line(model, table):
    domain = limes.Domain.fit(table, groups={"case": ["age", "years"]})
    explanation = limes.SparseExplainer(model, domain=domain, objective="certain")(table.iloc[:3])
    for row in range(3):
        certificate, view = explanation.certificates[row], certain_at(explanation, row)
        assert len(view.lines) == int(certificate.objective)
        if "age" in certificate.columns:
            (line,) = (line for line in view.lines if line.fact.startswith("age"))
            assert line.fact == f"age = {table['age'].iloc[row]} and years = {table['years'].iloc[row]}"


def test_one_hot_columns_are_counted_as_the_one_fact_that_they_make():
    """As three facts they would be more than others that are sufficient: that one of them is 1."""
    rng = np.random.default_rng(2)
    hot = np.eye(3, dtype=int)[rng.integers(0, 3, 300)]
    x = pd.DataFrame(hot, columns=["rents", "owns", "family"]).assign(debt=rng.integers(0, 6, 300))
    y = np.where(2 * x["owns"] + x["debt"] > 3, "refused", "granted")
    model = RandomForestClassifier(20, random_state=0).fit(x, y)
    explainer = limes.SparseExplainer(model, domain=limes.Domain.fit(x), objective="certain")
    row = x[(x["owns"] == 1) & (x["debt"] == 3)].iloc[[0]]
    explanation = explainer(row)
    assert explanation.certificate.columns == ("rents", "owns", "family", "debt")
    assert explanation.certificate.objective == 2
    fact = "rents = 0 and owns = 1 and family = 0"
    assert explanation.rule() == f"[{fact}] and [debt = 3]  ->  class refused for certain"
    for text in outputs(explanation, 0):
        assert "with these 2 facts, whatever" in text
        assert fact in text


def test_stored_facts_are_shown_as_before(facts):
    again = limes.Explanation.from_json(facts.to_json())
    assert str(again) == str(facts)
    for name in ("counterexample_facts", "counterexample_answers", "counterexample_labels", "label"):
        assert getattr(again.certificates[1], name) == getattr(facts.certificates[1], name)
    stored = json.loads(facts.to_json())
    for certificate in stored["certificates"]:  # as earlier versions wrote them
        for name in ("counterexample_facts", "counterexample_answers", "counterexample_labels", "label"):
            del certificate[name]
    old = limes.Explanation.from_json(json.dumps(stored))
    assert "without it" not in str(old)
    assert all(fact in str(old) for fact in old.certificates[0].facts)


def test_facts_have_no_weights(facts):
    """Nobody asked for a surrogate: nothing of one is read, stored or listed."""
    for read_weights in (
        lambda: facts.coefficients,
        lambda: facts.contributions,
        lambda: facts.fidelity,
        lambda: facts[0].reasons(),
        lambda: facts.to_shap(),
        lambda: facts.top(2),
        lambda: facts[:, "age"],
    ):
        with pytest.raises(InputError, match="facts that hold for certain have no weights"):
            read_weights()
    stored = json.loads(facts.to_json())
    for name in ("values", "standard_errors", "intercepts", "surrogate_predictions", "fidelity", "account"):
        assert stored[name] is None
    assert not {"meaning", "difference", "spread", "law", "solver", "intercept"} & {*facts.provenance}
    assert facts.converged
    assert facts.row_converged.tolist() == [True] * len(facts)
    assert facts[1:3].row_converged.tolist() == [True, True]


def test_weights_that_an_earlier_version_stored_are_dropped(facts):
    stored = json.loads(facts.to_json())
    shape = (len(facts), len(facts.feature_names))
    numbers = {"values": np.ones(shape), "standard_errors": np.zeros(shape)}
    numbers |= dict.fromkeys(("intercepts", "surrogate_predictions", "fidelity"), np.ones(len(facts)))
    stored |= {name: its.tolist() for name, its in numbers.items()} | {"row_converged": [True] * len(facts)}
    old = limes.Explanation.from_json(json.dumps(stored))
    assert str(old) == str(facts)
    with pytest.raises(InputError, match="have no weights"):
        _ = old.coefficients


def test_facts_of_a_model_whose_averages_are_sampled_are_said_to_be_proved(table, model):
    calibrated = CalibratedClassifierCV(model, cv=3).fit(table, model.predict(table))
    explainer = limes.SparseExplainer(calibrated, domain=limes.Domain.fit(table), objective="certain")
    explanation = explainer(table.iloc[:1], progress=False)
    assert explanation.method == "sampled"
    assert explanation.certificate.proved
    for text in outputs(explanation, 0)[:3]:
        assert "exact: facts by bounds of the model; averages over neighbours are sampled" in text
        assert "made: sampled" not in text


def test_facts_are_not_proved_where_the_certificate_says_so(model, table):
    literals = limes.Literals.fit(table, bins=2)
    explainer = limes.SparseExplainer(model, literals=literals, objective="certain", fresh=20)
    explanation = explainer(table.iloc[:20], progress=False)
    proved = [certificate.proved for certificate in explanation.certificates]
    assert explanation.row_converged.tolist() == proved
    assert not explanation.converged


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_line_for_each_fact(facts, table, backend):
    if backend != "pandas":
        pytest.importorskip(backend)
    frame = facts.to_frame(backend)
    lines = (frame if backend == "pandas" else frame.to_pandas()).to_dict("records")
    wanted = [
        (row, facts.ids[row], name, fact, answer)
        for row, its in enumerate(facts.certificates)
        for name, fact, answer in zip(its.columns, its.facts, its.counterexample_answers, strict=True)
    ]
    assert [
        (its["row"], its["id"], its["feature"], its["condition"], its["without"]) for its in lines
    ] == wanted
    for its in lines:
        assert float(its["data"]) == table[its["feature"]].iloc[its["row"]]
        assert its["prediction"] == facts.predictions[its["row"]]
        assert its["output"] == facts.output_names[0]
        assert its["proved"]


def test_a_long_table_has_rules_and_no_weights(model, table):
    domain = limes.Domain.fit(table)
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", fresh=20)
    frame = explain_frame(explainer, table.iloc[:2], layout="wide")
    assert frame["rule"].str.endswith("for certain").all()
    weights = [name for name in frame if name.startswith(("value_", "se_"))]
    assert len(weights) == 2 * table.shape[1]
    assert frame[[*weights, "surrogate", "fidelity", "intercept"]].isna().all(axis=None)


def test_plots_of_weights_refuse_facts_that_have_none(facts):
    for draw in (
        lambda: facts[0].plot,
        lambda: facts.plot.bar(),
        lambda: limes.summary(facts),
        lambda: limes.decision_page(facts[0]),
    ):
        with pytest.raises(InputError, match="have no weights; print the explanation"):
            draw()
    assert "explanation.rules()" in str(facts)
    assert " ".join(facts.certificates[0].rule.split()) in repr(facts)


def test_a_letter_states_the_facts_beside_the_account(facts, model, table):
    account = limes.TabularExplainer(model, table).contributions(table.iloc[:4])
    page = read(limes.decision_page(account, row="A002", facts=facts))
    text = " ".join(letter_of(account, row="A002", facts=facts)[0].text().split())
    for its in (page, text):
        assert "Facts that decide it for certain" in its
        assert all(fact in its for fact in facts.certificates[2].facts)
        assert "No set of fewer facts is sufficient: proved." in its
    with pytest.raises(InputError, match="facts= takes an explanation"):
        limes.decision_page(account, row=0, facts=account)
    with pytest.raises(InputError, match="facts= has no row 'A003'"):
        limes.decision_page(account, row="A003", facts=facts[:2])
