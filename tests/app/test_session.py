"""Answers of the desk: the explainers' numbers, and texts that the page shows unchanged."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import limes
from desks import desk_of, flowers, hostile, patchy, patients
from limes.exceptions import InputError, ModelError

# Numbers pass through the same calls; a row's values may be added up in another order
SAME = 1e-12


@pytest.fixture(scope="module", params=[patients, flowers, hostile])
def case(request):
    return request.param()


@pytest.fixture(scope="module")
def patients_case():
    return patients()


def test_the_numbers_are_the_explainers(case):
    for position in (0, 7):
        row = case.desk.row(position)
        explanation = case.explainer(case.X.iloc[[position]])
        k = len(explanation.output_names)
        for output in range(k):
            numbers = case.desk.explain(row["values"], output)["numbers"]
            of_output = explanation[..., output]
            account = of_output.contributions
            for name in ("values", "standard_errors"):
                np.testing.assert_allclose(numbers[name], getattr(account, name)[0], rtol=SAME, atol=1e-12)
            np.testing.assert_allclose(numbers["base"], account.base_values[0], rtol=SAME)
            np.testing.assert_allclose(numbers["prediction"], of_output.predictions[0], rtol=SAME)


def test_a_moved_value_is_a_row_with_that_value(patients_case):
    values = patients_case.desk.row(3)["values"]
    values[2] = 38.5
    moved = patients_case.X.iloc[[3]].assign(bmi=38.5)
    numbers = patients_case.desk.explain(values, 0)["numbers"]
    np.testing.assert_allclose(
        numbers["values"], patients_case.explainer(moved).contributions.values[0], rtol=SAME, atol=1e-12
    )
    np.testing.assert_allclose(numbers["prediction"], patients_case.model.predict(moved)[0], rtol=SAME)


def test_rule_and_diagnosis_are_those_of_the_row(case):
    row, X = case.desk.row(7), case.X.iloc[[7]]
    explanation = case.explainer(X)
    output = row["output"]
    name = explanation.output_names[output] if len(explanation.output_names) > 1 else None
    assert case.desk.rule(row["values"], output)["rule"].endswith(case.rules(name)(X).rule(0))
    diagnosis = limes.diagnose(explanation, output=output).rows[0]
    answer = case.desk.diagnosis(row["values"], output)
    assert answer["verdict"] == limes._explanation.wording.one_line(diagnosis.verdict)
    assert [f["title"] for f in answer["findings"]] == [f.title for f in diagnosis.findings]


def test_every_answer_is_json(case):
    row = case.desk.row(0)
    answers = [case.desk.table(), case.desk.search(""), row, case.desk.explain(row["values"], 0)]
    answers += [case.desk.rule(row["values"], 0), case.desk.diagnosis(row["values"], 0)]
    for answer in answers:
        json.dumps(answer, allow_nan=False)


def test_controls_span_the_background_and_mark_its_bins(patients_case):
    bmi = patients_case.desk.table()["columns"][2]
    column = patients_case.X["bmi"]
    assert (bmi["low"], bmi["high"]) == (column.min(), column.max())
    np.testing.assert_allclose(bmi["edges"], np.quantile(column, [0.25, 0.5, 0.75]))
    assert 100 <= (bmi["high"] - bmi["low"]) / bmi["step"] <= 200
    assert patients_case.desk.table()["columns"][1]["step"] == 1  # sex is 1 or 2


def test_categories_and_missing_values_travel(case):
    columns = case.desk.table()["columns"]
    for position in range(20):
        for column, value, cell in zip(
            columns, case.desk.row(position)["values"], case.X.iloc[position], strict=True
        ):
            if column["kind"] == "category":
                assert column["levels"][value] == cell
            else:
                assert (value is None) == pd.isna(cell)
                assert value is None or value == cell


def test_rows_are_found_by_their_names(patients_case):
    result = [entry["row"] for entry in patients_case.desk.search(" 44 ")]
    assert result[:3] == [44, 440, 441]
    assert result[3] == 144
    assert patients_case.desk.search("no such") == []
    named = desk_of(
        patients_case.model,
        patients_case.X.iloc[:3],
        background=patients_case.X,
        ids=["Ann", "ann b", "Joan"],
    )
    assert [entry["row"] for entry in named.desk.search("ANN")] == [0, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "values must be a list of 10 numbers"),
        ([1.0], "values must be a list of 10 numbers"),
        ([*[1.0] * 9, "high"], "column 's6': send a number"),
        ([True, *[1.0] * 9], "column 'age': send a number"),
        ([None, *[1.0] * 9], r"row 0, column 'age': None is missing.*impute it"),
        ([float("inf"), *[1.0] * 9], r"row 0, column 'age': inf is not finite"),
    ],
)
def test_values_that_cannot_be_explained(patients_case, values, message):
    for question in (patients_case.desk.explain, patients_case.desk.rule, patients_case.desk.diagnosis):
        with pytest.raises(InputError, match=message):
            question(values, 0)


@pytest.mark.parametrize("level", [3, -1, 0.0, "b", True, None])
def test_levels_that_do_not_exist(level):
    desk = hostile().desk
    with pytest.raises(InputError, match=r"send the position of a level, 0 to 2$"):
        desk.explain([0.0, level], 0)


@pytest.mark.parametrize("output", [1, -1, None, "0", True])
def test_outputs_that_do_not_exist(patients_case, output):
    values = patients_case.desk.row(0)["values"]
    for question in (patients_case.desk.explain, patients_case.desk.rule, patients_case.desk.diagnosis):
        with pytest.raises(InputError, match=r"send the position of an output, 0 to 0"):
            question(values, output)


def test_a_row_that_does_not_exist(patients_case):
    with pytest.raises(InputError, match="row 442: the table has 442 rows, counted from 0"):
        patients_case.desk.row(442)


def test_a_row_that_the_background_does_not_cover():
    case = patchy()
    case.desk.row(0)
    with pytest.raises(InputError, match=r"column 'bmi'.*is missing"):
        case.desk.row(1)


def test_a_model_of_several_numbers_has_rules_by_position(patients_case):
    def both(X):
        a = patients_case.model.predict(X)
        return np.column_stack([a, -2 * a])

    case = desk_of(both, patients_case.X, max_calls=1024, rng=0)
    row = case.desk.row(3)
    assert len(case.desk.table()["outputs"]) == 2
    assert case.desk.explain(row["values"], 1)["lines"][0]["error"].startswith("±")
    assert "->  “1” = " in case.desk.rule(row["values"], 1)["rule"]


def test_a_model_that_fails_is_named(patients_case):
    def broken(X):
        if (X["bmi"] == 40.125).any():
            raise ZeroDivisionError("of the user's")
        return patients_case.model.predict(X)

    case = desk_of(broken, patients_case.X, max_calls=1024, rng=0)
    values = case.desk.row(3)["values"]
    values[2] = 40.125
    with pytest.raises(ModelError, match="of the user's"):
        case.desk.explain(values, 0)
