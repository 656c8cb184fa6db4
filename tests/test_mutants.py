"""The tool that makes random changes of the package: one change each, in code that computes."""

from __future__ import annotations

import ast
import json

import pytest
from tools.mutants import PACKAGE, Mutant, function_at, mutants, near, print_tests, selected

SOURCE = '''
_BLOCK = 3

class A:
    def σ(self, x: int = 3) -> int:
        """At least 1."""
        if x < 1:
            warnings.warn(f"{x}", stacklevel=2)
            raise ValueError(f"{x + 1} is less than 2")
        return -x
'''


def test_each_mutant_has_one_change(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(SOURCE, "utf-8")
    every = mutants(count=100, seed=0, files=[path])
    # the default, the comparison, its number, its negation, the returned value, its sign
    assert len(every) == 6
    # a default is evaluated when the class is made
    assert sorted(mutant.function for mutant in every) == ["A", *["A.σ"] * 5]
    for mutant in every:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(SOURCE))
        changed = [a != b for a, b in zip(mutant.source.split("\n"), SOURCE.split("\n"), strict=True)]
        assert [number for number, differs in enumerate(changed, 1) if differs] == [mutant.line]


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("_sampling/controls/control.py", "tests/sampling/controls/test_control.py"),
        ("models/readers/_lightgbm.py", "tests/models/readers/test_lightgbm.py"),
        ("_fitting.py", "tests/test_fitting.py"),
    ],
)
def test_a_files_tests_are_those_of_its_name_first(file, first):
    assert near(PACKAGE / file)[0] == first


def test_tests_of_a_functions_folder_come_first_then_the_quickest():
    function = frozenset({"_fitting.py::fit_rows"})
    recorded = {
        "tests/test_papers.py::test_b": (3.0, function),
        "tests/test_papers.py::test_a": (2.0, function),
        "tests/test_fitting.py::test_c": (4.0, function),
        "tests/test_fitting.py::test_d": (0.1, frozenset()),
        "tests/test_limit.py::test_e": (90.0, function),
    }
    mutant = Mutant(PACKAGE / "_fitting.py", 1, "fit_rows", "", "", "")
    tests, of, seconds = selected(mutant, recorded, 60.0)
    assert tests == [
        f"tests/{name}"
        for name in ("test_fitting.py::test_c", "test_papers.py::test_a", "test_papers.py::test_b")
    ]
    assert (of, seconds) == (4, 9.0)
    mutant = Mutant(PACKAGE / "_fitting.py", 1, "", "", "", "")
    tests, of, _ = selected(mutant, recorded, 60.0)
    assert tests[:2] == ["tests/test_fitting.py::test_d", "tests/test_fitting.py::test_c"]
    assert of == 0


def test_the_tests_of_a_line_are_those_that_enter_its_function(tmp_path, monkeypatch, capsys):
    source = (PACKAGE / "_fitting.py").read_text("utf-8").split("\n")
    line = 2 + next(i for i, text in enumerate(source) if text.startswith("def fit_rows("))
    assert function_at(PACKAGE / "_fitting.py", line) == "fit_rows"
    assert function_at(PACKAGE / "_fitting.py", 1) == ""
    content = {
        "functions": ["_fitting.py::fit_rows", "_fitting.py::other"],
        "tests": {
            "tests/a.py::slow": [3.0, [0, 1]],
            "tests/a.py::quick": [0.5, [0]],
            "tests/a.py::no": [9.0, [1]],
        },
    }
    (tmp_path / "record-0.json").write_text(json.dumps(content), "utf-8")
    monkeypatch.setattr("tools.mutants.RECORDS", tmp_path)
    assert print_tests(f"{PACKAGE / '_fitting.py'}:{line}") == 0
    assert capsys.readouterr().out.split() == ["0.50", "tests/a.py::quick", "3.00", "tests/a.py::slow"]
    assert print_tests(f"{PACKAGE / '_fitting.py'}:1") == 1
    assert print_tests("nowhere.py") == 2
