"""lime's tutorials run, call by call, and print numbers."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

HOME = Path(__file__).parents[2] / "examples" / "from_lime"
SCRIPTS = sorted(path.name for path in HOME.glob("*.py") if "limes.compat.lime" in path.read_text())
TUTORIALS = {
    "image.py",
    "multiclass_text.py",
    "recurrent.py",
    "regression.py",
    "submodular_pick.py",
    "tabular_categorical.py",
    "tabular_continuous.py",
    "text.py",
}


@pytest.mark.examples
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_tutorial_runs(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(HOME)
    monkeypatch.chdir(HOME)
    try:
        runpy.run_path(str(HOME / name), run_name="__main__")
    finally:
        plt.close("all")
    output = capsys.readouterr().out
    # coefficients or shares, several of them, and all of them numbers
    assert len(re.findall(r"\d\.\d", output)) >= 3
    assert not re.search(r"\b(nan|inf|None)\b", output)


def test_the_tutorials_exist():
    assert set(SCRIPTS) == TUTORIALS
