from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from rich.console import Console

from samples import CLASSES, NAMES, explanation


def printed(e, width=80, encoding="utf-8"):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width, force_terminal=False).print(e)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def test_repr_is_one_short_line():
    text = repr(explanation(d=3, values=[[1.0, -20.0, 0.5]]))
    start = "<Explanation: 1 row x 3 features, exact; progression: "
    assert text == f"{start}sex <= 0.5 -20.0, age <= 0.5 +1.0, bmi <= 0.5 +0.5>"
    assert "row 0, " in repr(explanation(3))
    assert "x 3 outputs, sampled; setosa:" in repr(explanation(1, 3, sampled=True))
    assert repr(explanation(0)) == "<Explanation: 0 rows x 10 features, exact>"
    assert "\n" not in repr(explanation(conditions=[["a\nb"] * 10]))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("k", [None, 3, 6])
@pytest.mark.parametrize("sampled", [False, True])
def test_numbers_are_never_cut(width, k, sampled):
    names = [f"{name}, a long name with its unit in brackets (mg/dl)" for name in NAMES]
    conditions = [[f"{name} <= 0.01" for name in names]]
    words = {"conditions": conditions, "data": [["male"] * 10]}
    text = printed(explanation(1, k, sampled=sampled, feature_names=names, **words), width)
    assert max(map(len, text.splitlines())) <= width
    lines = [line for line in text.splitlines() if "…" in line]
    assert len(lines) == 10
    errors = r" +± [\d.]+" if sampled else ""
    whole = re.compile(rf"(?<!\S)([+-]\d+\.\d+|0|0\.0+){errors}(?!\S)")
    (shown,) = {len(whole.findall(line)) for line in lines}
    assert shown == (k or 1) or f"{shown} of {k} outputs" in text


def test_rows_are_sorted_and_bars_are_as_long_as_coefficients():
    text = printed(explanation(d=4, values=[[4.0, -8.0, 0.0, 1.0]]))
    lines = [line for line in text.splitlines() if "<=" in line]
    assert [line.split()[0] for line in lines] == ["sex", "age", "bp", "bmi"]
    assert ["+" in line or "-8" in line for line in lines] == [True, True, True, False]
    bars = [line.split("│") for line in lines]
    assert [left.count("█") for left, _ in bars] == [8, 0, 0, 0]
    assert [right.count("█") for _, right in bars] == [0, 4, 1, 0]


def test_a_row_with_a_name_is_named_whatever_the_output():
    facts = {"provenance": {"answer": "predict_proba"}}
    assert printed(explanation(1, ids=["L00003"], **facts)).startswith("L00003, P(progression): ")
    assert printed(explanation(1, **facts)).startswith("P(progression): ")
    three = explanation(1, 3, ids=["L00003"], predictions=[[0.1, 0.2, 0.7]], **facts)
    assert printed(three).splitlines()[0] == "L00003:"


def test_calls_of_a_row_stand_beside_those_of_all():
    text = " ".join(printed(explanation(3, sampled=True), 120).split())
    assert "sampled with 64 model calls (192 for all 3 rows), because" in text
    assert "for all" not in printed(explanation(1, sampled=True), 120)


def test_header_and_remarks():
    e = explanation(3, sampled=True, d=12, row_converged=[False, True, True], row_warnings=[["odd"], [], []])
    text = " ".join(printed(e, 120).split())
    assert "progression: prediction" in text
    assert ", R² 0.88" in text
    assert "sampled with 64 model calls (192 for all 3 rows), because the model is a function" in text
    assert "! odd" in text
    assert "standard errors did not reach 1.5% of the largest coefficient with 64 model calls" in text
    silent = " ".join(printed(explanation(sampled=True, row_converged=[False]), 120).split())
    assert "! standard errors did not reach 1.5% of the largest coefficient with 64 model calls" in silent
    assert "2 further features in .to_frame(of='coefficients')" in text
    assert "row 0, the first of 3; any other: explanation[i]" in text
    assert "± std. error" in text
    assert "±" not in printed(explanation())
    assert "further feature" not in printed(explanation())


def test_at_most_four_outputs_those_with_the_largest_predictions():
    e = explanation(1, 6, predictions=[[6.0, 1.0, 5.0, 2.0, 4.0, 3.0]])
    text = printed(e, 120)
    header = next(line for line in text.splitlines() if "condition" in line)
    assert header.split()[2:] == [CLASSES[k] for k in (0, 2, 4, 5)]
    assert "4 of 6 outputs, with the largest predictions" in text


def test_provenance_can_say_what_a_coefficient_is():
    assert "coefficient: change per unit" in printed(explanation(provenance={"meaning": "change per unit"}))


def test_names_are_no_markup():
    e = explanation(d=1, conditions=[["[red]a[/red] :smile: \x1b[31m"]], output_names=["[bold]x"])
    text = printed(e)
    assert "[red]a[/red] :smile: [31m" in text
    assert "[bold]x" in text
    assert "\x1b" not in text


def test_print_gives_the_same_table_without_colours(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    e = explanation(2)
    sys.stdout.write(str(e))
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert text.count("<=") == 10
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_print_survives_narrow_encodings(encoding, monkeypatch):
    e = explanation(sampled=True, conditions=[["größe ☃ <= 1"] * 10])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    sys.stdout.write(str(e))
    text = str(e)
    monkeypatch.undo()
    assert "+- " in text
    assert "#" in text
    assert "+- " in printed(e, encoding="ascii")


def test_columns_of_outputs_have_different_titles():
    names = ("leaves in spring, to sea", "leaves in winter, to sea", "leaves in autumn, to sea")
    e = explanation(1, 3, d=2, output_names=names)
    head = next(line for line in printed(e, 120).splitlines() if line.lstrip().startswith("condition"))
    titles = [title for title in re.split(r" {2,}", head.strip()) if "leaves" in title]
    assert len({*titles}) == 3
    assert all(title[: title.index("…")] in name for title, name in zip(titles, names, strict=True))


def test_infinite_numbers_and_empty_explanations_are_drawn():
    text = printed(explanation(d=4, values=[[np.nan, np.inf, -np.inf, 1.0]], predictions=[np.nan]))
    assert all(word in text for word in ("nan", "+inf", "-inf", "+1.000"))
    assert "0 rows" in printed(explanation(0))
    assert "prediction" in printed(explanation(d=0))
    assert "setosa" in printed(explanation(1, 2, d=0))
    assert "0 " in printed(explanation(d=2, values=[[0.0, 0.0]]))
