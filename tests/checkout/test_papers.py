"""Short runs of the reproduced papers: two instances and their tables; figures against their numbers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from effort import repeats
from papers.__main__ import main

ROOT = Path(__file__).parents[2]
DATA = (ROOT / os.environ.get("LIMES_DATA", "../shared/data")).resolve()


needs_data = pytest.mark.skipif(not DATA.exists(), reason="real data is not here: set LIMES_DATA")


# In one process, as each takes seconds to start: what is there is not run again, and the report
TWICE_AND_REPORT = """
import json, runpy, sys
from pathlib import Path

here, folder, *options = sys.argv[1:]
times = []
for _ in range(2):
    sys.argv = ["run.py", "--results", f"{folder}/results", *options]
    runpy.run_path(f"{here}/run.py", run_name="__main__")
    times.append({path.name: path.stat().st_mtime_ns for path in Path(folder, "results").glob("*.json")})
sys.argv = ["report.py", folder]
runpy.run_path(f"{here}/report.py", run_name="__main__")
Path(folder, "times.json").write_text(json.dumps(times))
"""


@needs_data
def test_sparse_explanations_run_and_resume(tmp_path):
    pytest.importorskip("cvxpy", reason="pip install 'limes[sparse]'")
    folder, results = ROOT / "papers" / "koriche-2025", tmp_path / "results"
    sets = repeats(["medical_charges", "machine_cpu"], ["machine_cpu"])
    options = ["--sets", *sets, "--parts", "tables", "--instances", "1"]
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, "-c", TWICE_AND_REPORT, folder, tmp_path, *options],
        check=True, env={**os.environ, "LIMES_DATA": str(DATA), "PYTHONPATH": paths}, capture_output=True,
    )  # fmt: skip
    first, second = json.loads((tmp_path / "times.json").read_text())
    assert len(first) == len(sets)
    assert first == second
    slack = 1 + 1e-9
    for law in json.loads((results / "machine_cpu-0-tables.json").read_text())["laws"].values():
        methods = law["methods"]
        assert methods["optimum"]["proved"]
        rules = [one for one in methods.values() if "off_plane" in one]
        assert len(rules) >= 5
        for one in rules:  # the paper's hyperplane, without a constant
            assert one["constant"] == 0.0
            assert one["off_plane"] <= 1e-12
        assert methods["cvx"]["rmse"] <= methods["optimum"]["rmse"] * (1 + 1e-5)  # the solver's own accuracy
        for other in {"iht", "projection"} & set(methods):
            assert methods["optimum"]["rmse"] <= methods[other]["rmse"] * slack
    assert "Machine CPU" in (tmp_path / "RESULTS.md").read_text()


def test_the_paper_on_rules_is_made_by_public_calls():
    for path in (ROOT / "papers" / "koriche-2025").glob("*.py"):
        private = re.findall(r"limes(?:\.\w+)*\._\w+", path.read_text())
        assert not private, (path.name, private)


def test_both_laws_of_flips_are_their_definitions(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "papers" / "koriche-2025")
    from laws import LAWS, precision

    size, spread, x = 5, 0.7, np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    rows = np.array(list(product([-1.0, 1.0], repeat=size)))
    flips = (rows != x).sum(axis=1)
    for name, weights in (
        ("literal", np.exp(-spread * flips)),
        ("count", np.exp(-spread * flips) / np.array([1, 5, 10, 10, 5, 1])[flips]),
    ):
        law, weights = LAWS[name](size, spread), weights / weights.sum()
        np.testing.assert_allclose(law.probabilities()[flips], weights, rtol=1e-12)
        draws = law.flips(np.random.default_rng(0), 20_000).sum(axis=1)
        expected = np.bincount(flips, weights)
        errors = np.sqrt(expected * (1 - expected) / draws.size)
        assert (np.abs(np.bincount(draws, minlength=6) / draws.size - expected) < 4.5 * errors).all()
        u = np.array([0.5, -0.5, 0.0, 0.25, 0.0])  # the first two cancel
        answers = np.sin(rows @ np.arange(1.0, 6.0))
        aligned = np.isclose(rows @ (u * x), u.sum())
        target = float(answers[flips == 0][0])
        exact = np.average(np.abs(answers - target)[aligned], weights=weights[aligned])
        value = precision(law, lambda z: np.sin(z @ np.arange(1.0, 6.0)), x, u, target)
        assert value == pytest.approx(exact, rel=1e-12)


def test_the_page_of_propositions_names_tests_that_exist():
    page = (ROOT / "papers" / "README.md").read_text()
    references = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(references) > 30
    for file, name in references:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
    for target in re.findall(r"\]\(([\w/.-]+)\)", page):
        assert (ROOT / "papers" / target).exists(), target


@needs_data
@pytest.mark.parametrize(("paper", "figures"), [("mardaoui-2021", ["6", "14", "15"])])
@pytest.mark.filterwarnings("default")
def test_figures_have_their_numbers(paper, figures, monkeypatch, capsys):
    monkeypatch.setenv("LIMES_DATA", str(DATA))
    monkeypatch.setattr(sys, "argv", ["papers", paper, "--runs", "12", "--figures", *figures])
    with pytest.raises(SystemExit) as exit_info:
        main()
    printed = capsys.readouterr().out
    assert "as expected" in printed, printed
    assert exit_info.value.code == 0


def test_other_numbers_are_reported(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from papers.common.expected import Sampled, differences, plain

    rng = np.random.default_rng(0)
    exact, runs = rng.normal(size=4), rng.normal(size=(100, 4))
    kept = json.loads(json.dumps(plain({"exact": exact, "runs": Sampled.of(runs)})))
    other = rng.normal(size=(12, 4))
    assert not list(differences({"exact": exact * (1 + 1e-8), "runs": Sampled.of(other)}, kept))
    for result, message in (
        ({"exact": exact + 1e-4, "runs": Sampled.of(runs)}, "exact: differs by 0.0001"),
        ({"exact": exact, "runs": Sampled.of(runs + np.eye(4)[2])}, "runs: means of runs differ"),
        ({"exact": exact[:2], "runs": Sampled.of(runs)}, "exact: shape"),
        ({"runs": Sampled.of(runs)}, "exact: missing"),
        ({"exact": exact, "runs": Sampled.of(runs), "more": 1.0}, "more: not expected"),
        ({"exact": exact * np.nan, "runs": Sampled.of(runs)}, "exact: differs by nan"),
    ):
        (line,) = differences(result, kept)
        assert line.startswith(message)
