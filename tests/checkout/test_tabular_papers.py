"""Some figures of the tabular papers, computed again, have the committed numbers."""

from __future__ import annotations

import sys

import pytest

from papers.__main__ import main


@pytest.mark.parametrize(
    ("paper", "figures", "runs"),
    [("garreau-2020", ("3", "4"), 20), ("garreau-2022", ("2", "9", "10", "13"), 5)],
)
@pytest.mark.filterwarnings("default")
def test_figures_have_the_numbers_that_are_kept(paper, figures, runs, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["papers", paper, "--figures", *figures, "--runs", str(runs)])
    with pytest.raises(SystemExit) as exit_info:
        main()
    printed = capsys.readouterr().out
    assert exit_info.value.code == 0, printed
    assert "as expected" in printed
