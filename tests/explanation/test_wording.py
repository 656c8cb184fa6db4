from __future__ import annotations

import math

import pytest

from internals import (
    beside,
    cell,
    count,
    difference,
    error,
    estimate,
    estimates,
    fit_remark,
    number,
    one_line,
    rule_text,
    shorten,
    shorten_condition,
)
from internals import signed_column as column
from samples import explanation


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (0.9999999, "1"),
        (123456.7, "123457"),
        (1234567.0, "1.235e+06"),
        (0.00123456, "0.001235"),
        (-0.000123456, "-1.235e-04"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_columns_share_their_decimals_and_tell_zero_from_rounded():
    assert column([123.456, -1.0, 0.0, -0.001]) == ["+123.5", "-1.0", "0", "0.0"]
    assert column([math.nan, math.inf, -math.inf, 1.0]) == ["unknown", "+inf", "-inf", "+1.000"]
    assert column([1e-7, -2e-9]) == ["+1.00e-07", "-2.00e-09"]
    assert column([]) == []


def test_error_and_difference():
    assert [error(x) for x in (0.0123, 0.02, 0.0, 12.0)] == ["± 0.012", "± 0.020", "± 0", "± 12"]
    assert [difference(x) for x in (1.5, -1.5, 0.0)] == ["+1.5", "-1.5", "0"]


@pytest.mark.parametrize(
    ("standard_error", "texts"),
    [
        (0.19, ("3.14", "± 0.19")),
        (0.2, ("3.1", "± 0.2")),
        (0.3, ("3.1", "± 0.3")),
        (2.0, ("3", "± 2")),
        (10.0, ("3", "± 10")),
    ],
)
def test_an_error_decides_the_decimals_one_digit_of_it_from_2_on(standard_error, texts):
    assert estimate(3.14159, standard_error) == texts


def test_the_median_error_decides_the_decimals_of_a_column():
    texts = estimates([23.4142, -0.0712, 1.0], [0.05, 0.05, 0.002])
    assert texts == [("+23.41", "± 0.05"), ("-0.07", "± 0.05"), ("+1.00", "± 0.0020")]
    assert estimates([math.nan, 1.0], [math.inf, 0.0]) == [("unknown", ""), ("+1.000", "± 0")]


def test_rules_have_their_largest_weights_first():
    facts = [("income > 70", 0.5), ("debt > 35", -0.75)]
    assert rule_text(facts, "score", -0.25) == "-0.75 [debt > 35] + 0.5 [income > 70]  ->  score = -0.25"


def test_the_numbers_of_a_rule_add_up():
    facts = [("s5 > 5", 40.712), ("sex <= 1", 8.627), ("bmi > 23", -6.803), ("age > 40", 0.0123)]
    assert rule_text(facts, "output", 182.1, 139.6) == (
        "139.6 + 40.7 [s5 > 5] + 8.6 [sex <= 1] - 6.8 [bmi > 23] + 0.012 [age > 40]  ->  output = 182.1"
    )


def test_cell():
    cells = [None, math.nan, 3, 2**70, 3.0, -122.24, 0.12345678, True, "a\nb", 1e300]
    words = ["missing", "missing", "3", str(2**70), "3", "-122.24", "0.123457", "True", "a b", "1.00000e+300"]
    assert [cell(value) for value in cells] == words


@pytest.mark.parametrize("width", [8, 20, 41])
def test_shorten_keeps_both_ends(width):
    short = shorten("mean concave points <= 0.0203 and more, much more", width)
    assert len(short) <= width
    assert short.startswith("mea")
    assert short.endswith("re")
    assert "…" in short
    assert shorten("short", width) == "short"


def test_names_cannot_command_a_terminal():
    assert one_line("a\x1b[31mb\r\nc\u202ed\t") == "a [31mb c d"


def test_count():
    assert [count(n, "row") for n in (0, 1, 1024)] == ["0 rows", "1 row", "1,024 rows"]


@pytest.mark.parametrize(
    ("fidelity", "error", "words"),
    [
        (0.5, 0.0, ""),
        (0.45, 0.1, ""),  # not surely below
        (0.4, 0.0, "captures 40% of how the model varies around this row"),
        (0.07, 0.0, "captures 7% of how the model varies around this row"),
        (-2.7, 0.0, "captures nothing of"),
        (float("nan"), 0.0, ""),
    ],
)
def test_a_low_fit_is_a_sentence_and_no_warning(fidelity, error, words):
    text = fit_remark(fidelity, error)
    assert words in text
    assert bool(text) == bool(words)
    shown = explanation(fidelity=[fidelity], fidelity_errors=[error])
    printed = " ".join(str(shown).split())
    assert text in printed
    assert "!" not in printed
    assert text in shown.to_html()


@pytest.mark.parametrize(
    ("condition", "width", "expected"),
    [
        ("-7 < months_since_inquiry <= 0", 40, "-7 < months_since_inquiry <= 0"),
        ("-7 < months_since_inquiry <= 0", 24, "months_s…uiry in (-7, 0]"),
        ("months_since_inquiry > 12.25", 20, "months_…uiry > 12.25"),
        ("months_since_inquiry is missing", 24, "months_s…uiry is missing"),
        ("another text that is long", 12, "another…long"),
    ],
)
def test_conditions_keep_their_edges(condition, width, expected):
    assert shorten_condition(condition, "months_since_inquiry", width) == expected
    assert len(expected) <= width


@pytest.mark.parametrize(
    ("value", "others", "text"),
    [
        (0.5, (0.5,), "0.5"),
        (0.50001, (0.5,), "0.50001"),
        (0.49999, (0.5,), "0.49999"),
        (0.28159, (0.5,), "0.2816"),
        (99.99999, (100.0,), "99.99999"),
        (-1e-9, (0.0,), "-1.000e-09"),
        (math.nextafter(0.5, 1.0), (0.5,), "0.5000000000000001"),
        (0.123449, (0.12345,), "0.1234"),
        (0.123451, (0.12345,), "0.1235"),
        (1.0, (), "1"),
    ],
)
def test_numbers_near_a_threshold_show_on_which_side_they_are(value, others, text):
    assert beside(value, others) == text
    for other in others:
        assert (float(text) < other) == (value < other)
        assert (float(text) == other) == (value == other)
