"""lime's tutorials run, call by call."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

HOME = Path(__file__).parents[2] / "examples" / "from_lime"
SCRIPTS = sorted(path.name for path in HOME.glob("*.py") if "limes.compat.lime" in path.read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_tutorial_runs(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(HOME)
    monkeypatch.chdir(HOME)
    try:
        runpy.run_path(str(HOME / name), run_name="__main__")
    finally:
        plt.close("all")
    assert capsys.readouterr().out


def test_they_are_there():
    assert {"image.py", "submodular_pick.py"} <= set(SCRIPTS)
