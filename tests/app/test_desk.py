"""What the page is answered: the explainers' own numbers, in words that need no more work."""

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
def asked(request):
    return request.param()


@pytest.fixture(scope="module")
def of_patients():
    return patients()


def test_the_numbers_are_the_explainers(asked):
    for position in (0, 7):
        row = asked.desk.row(position)
        explanation = asked.explainer(asked.X.iloc[[position]])
        k = len(explanation.output_names)
        for output in range(k):
            numbers = asked.desk.explain(row["values"], output)["numbers"]
            of_output = explanation[..., output]
            for name in ("values", "standard_errors"):
                np.testing.assert_allclose(numbers[name], getattr(of_output, name)[0], rtol=SAME, atol=0)
            account = of_output.contributions
            np.testing.assert_allclose(numbers["contributions"], account.values[0], rtol=SAME, atol=1e-12)
            np.testing.assert_allclose(numbers["base"], account.base_values[0], rtol=SAME)
            np.testing.assert_allclose(numbers["prediction"], of_output.predictions[0], rtol=SAME)
            np.testing.assert_allclose(numbers["surrogate"], of_output.surrogate_predictions[0], rtol=SAME)
            np.testing.assert_allclose(numbers["intercept"], of_output.intercepts[0], rtol=SAME)
            np.testing.assert_allclose(numbers["fidelity"], of_output.fidelity[0], rtol=SAME)


def test_a_moved_value_is_a_row_with_that_value(of_patients):
    values = of_patients.desk.row(3)["values"]
    values[2] = 38.5
    moved = of_patients.X.iloc[[3]].assign(bmi=38.5)
    numbers = of_patients.desk.explain(values, 0)["numbers"]
    np.testing.assert_allclose(numbers["values"], of_patients.explainer(moved).values[0], rtol=SAME)
    np.testing.assert_allclose(numbers["prediction"], of_patients.model.predict(moved)[0], rtol=SAME)


def test_rule_and_diagnosis_are_those_of_the_row(asked):
    row, X = asked.desk.row(7), asked.X.iloc[[7]]
    explanation = asked.explainer(X)
    output = row["output"]
    name = explanation.output_names[output] if len(explanation.output_names) > 1 else None
    assert asked.desk.rule(row["values"], output)["rule"].endswith(asked.rules(name)(X).rule(0))
    diagnosis = limes.diagnose(explanation, output=output).rows[0]
    answer = asked.desk.diagnosis(row["values"], output)
    assert answer["verdict"] == limes._explanation.wording.one_line(diagnosis.verdict)
    assert [f["kind"] for f in answer["findings"]] == [f.kind for f in diagnosis.findings]


def test_every_answer_is_json(asked):
    row = asked.desk.row(0)
    answers = [asked.desk.table(), asked.desk.search(""), row, asked.desk.explain(row["values"], 0)]
    answers += [asked.desk.rule(row["values"], 0), asked.desk.diagnosis(row["values"], 0)]
    for answer in answers:
        json.dumps(answer, allow_nan=False)


def test_controls_span_the_background_and_mark_its_bins(of_patients):
    bmi = of_patients.desk.table()["columns"][2]
    column = of_patients.X["bmi"]
    assert (bmi["low"], bmi["high"]) == (column.min(), column.max())
    np.testing.assert_allclose(bmi["edges"], np.quantile(column, [0.25, 0.5, 0.75]))
    assert 100 <= (bmi["high"] - bmi["low"]) / bmi["step"] <= 200
    assert of_patients.desk.table()["columns"][1]["step"] == 1  # sex is 1 or 2


def test_categories_and_missing_values_travel(asked):
    columns = asked.desk.table()["columns"]
    for position in range(20):
        for column, value, cell in zip(
            columns, asked.desk.row(position)["values"], asked.X.iloc[position], strict=True
        ):
            if column["kind"] == "category":
                assert column["levels"][value] == cell
            else:
                assert (value is None) == pd.isna(cell)
                assert value is None or value == cell


def test_rows_are_found_by_their_names(of_patients):
    result = [entry["row"] for entry in of_patients.desk.search(" 44 ")]
    assert result[:3] == [44, 440, 441]
    assert result[3] == 144
    assert of_patients.desk.search("no such") == []
    named = desk_of(
        of_patients.model, of_patients.X.iloc[:3], background=of_patients.X, ids=["Ann", "ann b", "Joan"]
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
def test_values_that_cannot_be_explained(of_patients, values, message):
    for question in (of_patients.desk.explain, of_patients.desk.rule, of_patients.desk.diagnosis):
        with pytest.raises(InputError, match=message):
            question(values, 0)


@pytest.mark.parametrize("level", [3, -1, 0.0, "b", True, None])
def test_levels_that_do_not_exist(level):
    desk = hostile().desk
    with pytest.raises(InputError, match=r"send the position of a level, 0 to 2$"):
        desk.explain([0.0, level], 0)


@pytest.mark.parametrize("output", [1, -1, None, "0", True])
def test_outputs_that_do_not_exist(of_patients, output):
    values = of_patients.desk.row(0)["values"]
    for question in (of_patients.desk.explain, of_patients.desk.rule, of_patients.desk.diagnosis):
        with pytest.raises(InputError, match=r"send the position of an output, 0 to 0"):
            question(values, output)


def test_a_row_that_does_not_exist(of_patients):
    with pytest.raises(InputError, match="row 442: the table has 442 rows, counted from 0"):
        of_patients.desk.row(442)


def test_a_row_that_the_background_does_not_cover():
    asked = patchy()
    asked.desk.row(0)
    with pytest.raises(InputError, match=r"column 'bmi'.*is missing"):
        asked.desk.row(1)


def test_a_model_of_several_numbers_has_rules_by_position(of_patients):
    def both(X):
        a = of_patients.model.predict(X)
        return np.column_stack([a, -2 * a])

    asked = desk_of(both, of_patients.X, max_calls=1024, rng=0)
    row = asked.desk.row(3)
    assert len(asked.desk.table()["outputs"]) == 2
    assert asked.desk.explain(row["values"], 1)["lines"][0]["error"].startswith("±")
    assert (
        "output" in asked.desk.rule(row["values"], 1)["rule"]
        or "1 =" in asked.desk.rule(row["values"], 1)["rule"]
    )


def test_a_model_that_fails_is_named(of_patients):
    def broken(X):
        if (X["bmi"] == 40.125).any():
            raise ZeroDivisionError("of the user's")
        return of_patients.model.predict(X)

    asked = desk_of(broken, of_patients.X, max_calls=1024, rng=0)
    values = asked.desk.row(3)["values"]
    values[2] = 40.125
    with pytest.raises(ModelError, match="of the user's"):
        asked.desk.explain(values, 0)
