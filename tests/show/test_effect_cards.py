"""Effects and interactions as tables: in terminals and notebooks."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
import rich.console
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from internals import Effect, Effects, Names

X, Y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
EXPLANATION = limes.TabularExplainer(RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y), X)(
    X.iloc[[3, 4]]
)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


def effect(values, errors, current=0):
    count = len(values)
    return Effect(
        feature="bmi",
        output="risk",
        row=0,
        cells=tuple(f"bmi = {b}" for b in range(count)),
        values=np.array(values),
        standard_errors=np.array(errors),
        masses=np.full(count, 1 / count),
        current=current,
        share=0.25,
    )


def line_of(text, cell):
    (line,) = [line for line in text.splitlines() if line.strip().startswith(cell)]
    return line


def test_an_effect_is_a_line_for_each_cell():
    one = EXPLANATION[0].effects["bmi"]
    text = str(one)
    assert text.startswith(f"effect of bmi: {one.share:.0%} of the variance")
    for b, (cell, value) in enumerate(zip(one.cells, one.values, strict=True)):
        line = line_of(text, cell)
        assert float(re.search(r"[+-][\d.]+", line.removeprefix(cell).split("%")[1])[0]) == pytest.approx(
            value, abs=0.006
        )
        assert line.endswith("the row") == (b == one.current)
        assert line.index("│") > line.find("█") if value < 0 else line.rindex("█") > line.index("│")


def test_a_cell_without_rows_has_no_number():
    text = str(effect([1.5, np.nan, -3.0], [0.1, np.inf, 0.2], current=2))
    assert text.startswith("effect of bmi on risk: 25% of the variance")
    assert "± 0.1" in line_of(text, "bmi = 0")
    assert "?" in line_of(text, "bmi = 1")
    assert "inf" not in text
    assert "█" not in line_of(text, "bmi = 1")


def test_effects_come_with_the_most_important_first():
    effects = EXPLANATION[0].effects
    text = str(effects)
    largest = max(effects, key=lambda one: one.share)
    lines = text.splitlines()
    assert lines[4].strip().startswith(largest.cells[largest.current])
    assert f"{largest.share:.1%}" in lines[4]
    assert lines[2].split()[0] == "column"
    # of several rows, not of the classes: of two the second is shown
    assert str(EXPLANATION.effects).splitlines()[2].split()[:2] == ["row", "column"]


def test_an_interaction_is_a_table_of_cells():
    (pair,) = EXPLANATION[0].interactions(top=1)
    text = str(pair)
    first, second = pair.cells
    for b, cell in enumerate(first):
        line = line_of(text, cell)
        numbers = [float(number) for number in re.findall(r"[+-][\d.]+", line.removeprefix(cell))]
        assert numbers == pytest.approx(pair.values[b].tolist(), abs=0.006)
        assert line.endswith("the row") == (b == pair.current[0])
    assert second[pair.current[1]] in text.splitlines()[-1]


@pytest.mark.parametrize("shown", [EXPLANATION.effects, EXPLANATION[0].effects["s5"]])
def test_notebooks_and_narrow_terminals_show_them_too(shown):
    html = shown._repr_html_()
    assert 'class="lc-bars"' in html
    stream = io.StringIO()
    rich.console.Console(file=stream, width=40).print(shown)
    assert max(map(len, stream.getvalue().splitlines())) <= 40


def test_names_are_escaped():
    one = replace(effect([1.0, 2.0], [0.0, 0.0]), cells=("<script>alert(1)</script>", "b"))
    hostile = Effects(lambda first: lambda row, output, feature: one, 1, ("risk",), Names(["bmi"]), [0])
    assert "<script>" not in hostile._repr_html_() + hostile[0]._repr_html_()


def test_many_rows_say_how_many_effects_are_not_shown():
    X = np.random.default_rng(0).normal(size=(100, 4))
    effects = limes.TabularExplainer(lambda x: x @ [1.0, 2.0, 3.0, 4.0], X)(X[:20]).effects
    text = " ".join(str(effects).split())
    assert "whole effects of 4 columns around 20 rows" in text
    assert "50 smaller ones are not shown: .effects[i]" in text
    assert repr(effects) == "<Effects: 80 of 20 rows, 1 outputs, 4 columns>"
