"""The table of warnings: each sentence is written once, and the documentation has the codes."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import numpy as np
import pytest

import limes
from internals import CODES, WARNINGS, Contributions, RowContributions, RowWarning, Tolerance, changed
from pages import page

ROOT = Path(__file__).parents[2]


def test_the_documentation_has_the_table():
    text = page("findings.md")
    lines = [f"| {code} | {kind.when} | {kind.reading or 'both'} |" for code, kind in WARNINGS.items()]
    assert "\n".join(["|---|---|---|", *lines, ""]) in text
    assert {code: kind.when for code, kind in WARNINGS.items()} == CODES
    assert {kind.reading for kind in WARNINGS.values()} == {"", "coefficients", "contributions"}


def literals(node):
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}


def test_every_sentence_is_written_and_no_other_is():
    """Texts of the table's codes come from the table: no other place words a warning."""
    sources = [path for path in (ROOT / "src" / "limes").rglob("*.py") if path.name != "_warnings.py"]
    wrong, used = [], set()
    for tree in (ast.parse(path.read_text(encoding="utf-8")) for path in sources):
        texts = literals(tree)
        for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            function = ast.unparse(call.func)
            if function == "RowWarning" and isinstance(call.args[0], ast.JoinedStr | ast.Constant):
                wrong.append(ast.unparse(call))
            if function in ("sentence", "RowWarning.of", "warn"):
                used |= texts
    assert not wrong
    missing = [
        (code, name)
        for code, kind in WARNINGS.items()
        for name in kind.sentences
        if code not in used or (name and name not in used)
    ]
    assert missing == []


@pytest.mark.parametrize("code", WARNINGS)
def test_facts_of_a_sentence_are_named(code):
    for text in WARNINGS[code].sentences.values():
        fields = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
        assert all(name.isidentifier() for name in fields)
        assert not text.endswith(".")
        assert text == text.strip()


def test_a_sentence_does_not_take_facts_for_fields():
    """Names of columns may hold braces: they are facts, and no templates."""
    warning = RowWarning.of("does not vary", name="{spread} of {0}")
    assert (
        warning == "{spread} of {0} does not vary in the background (it has one cell): its coefficient is 0"
    )
    assert (warning.code, warning.outputs, warning.reading) == ("does not vary", (), "coefficients")
    with pytest.raises(KeyError):
        RowWarning.of("does not vary")
    X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    explanation = limes.TabularExplainer(lambda X: X[:, 0], X)([[1.0, 1.0]])
    assert any(warning.code == "does not vary" for warning in explanation.row_warnings[0])


@pytest.mark.parametrize(
    ("of_bars", "of_base", "sentence"),
    [
        (0.01, 0.04, ""),
        (0.08, 0.04, "contributions are known to 2 % of the largest one"),
        (0.04, 0.08, "the base of the contributions is known to 2 % of the largest one"),
        (0.0, 0.8, "the base of the contributions is known to 20 % of the largest one"),
    ],
)
def test_the_errors_of_bars_and_of_their_base_count(of_bars, of_base, sentence):
    """The largest bar is 4: errors of up to 0.06 are 1.5 % of it. No call was made for them."""
    explanation = limes.TabularExplainer(lambda X: X @ [4.0, 1.0], np.eye(2)[[0, 1, 0, 1]])([[1.0, 1.0]])
    phi, errors = np.array([[[4.0], [1.0]]]), np.array([[[of_bars], [of_bars / 2]]])
    calls, base = np.array([0]), explanation.predictions.reshape(1, 1) - 5.0
    computed = RowContributions(base, phi, errors, phi, phi, calls, np.array([[of_base]]))
    account = Contributions.of_rows(computed, accuracy=Tolerance(0.015, relative=True))
    its = changed(explanation, contributions=account).contributions
    assert its.converged == (sentence == "")
    assert [str(w) for w in its.row_warnings[0] if w.code == "contribution errors"] == [sentence][
        : bool(sentence)
    ]
