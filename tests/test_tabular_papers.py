"""A few figures of the tabular papers, made again, have the numbers that are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("paper", "figures", "runs"),
    [("garreau-2020", ("3", "4"), 20), ("garreau-2022", ("2", "9", "10", "13"), 5)],
)
def test_figures_have_the_numbers_that_are_kept(paper, figures, runs):
    command = [sys.executable, "-m", "papers", paper, "--figures", *figures, "--runs", str(runs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as expected" in done.stdout
