"""The tool that changes the package at random: one change each, of what computes."""

from __future__ import annotations

import ast

import pytest
from tools.mutants import PACKAGE, mutants, near

SOURCE = '''
def σ(x: int = 3) -> int:
    """At least 1."""
    if x < 1:
        raise ValueError(f"{x + 1} is less than 2")
    return -x
'''


def test_each_mutant_has_one_change(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(SOURCE, "utf-8")
    every = mutants(count=100, seed=0, files=[path])
    # the default, the comparison, its number, its negation, the returned value, its sign
    assert len(every) == 6
    for mutant in every:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(SOURCE))
        changed = [a != b for a, b in zip(mutant.source.split("\n"), SOURCE.split("\n"), strict=True)]
        assert [number for number, differs in enumerate(changed, 1) if differs] == [mutant.line]


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("_expectations/controls/kernel.py", "tests/expectations/controls/test_kernel.py"),
        ("models/readers/_lightgbm.py", "tests/models/readers/test_lightgbm.py"),
        ("_pipeline.py", "tests/test_pipeline.py"),
    ],
)
def test_a_files_tests_are_those_of_its_name_first(file, first):
    assert near(PACKAGE / file)[0].endswith(first)
