"""Short runs of the reproduced papers: two instances and their tables; figures against their numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
DATA = (ROOT / os.environ.get("LIMES_DATA", "../shared/data")).resolve()


needs_data = pytest.mark.skipif(not DATA.exists(), reason="real data is not here: set LIMES_DATA")


@needs_data
def test_sparse_explanations_run_and_resume(tmp_path):
    pytest.importorskip("cvxpy", reason="pip install 'limes[sparse]'")
    here, results = ROOT / "papers" / "koriche-2025", tmp_path / "results"
    run = [sys.executable, here / "run.py", "--sets", "machine_cpu", "--results", results, "--instances"]
    surroundings = {**os.environ, "LIMES_DATA": str(DATA)}
    subprocess.run([*run, "2"], check=True, env=surroundings, capture_output=True)
    made = {path: path.stat().st_mtime_ns for path in results.glob("*.json")}
    assert len(made) == 2
    subprocess.run([*run, "2"], check=True, env=surroundings, capture_output=True)
    assert all(path.stat().st_mtime_ns == at for path, at in made.items())
    first = json.loads((results / "machine_cpu-0-7-1.json").read_text())
    methods = first["methods"]
    assert first["proved"]
    slack = 1 + 1e-9
    assert methods["cvx"]["rmse"] <= methods["optimum"]["rmse"] * (1 + 1e-5)  # the solver's own accuracy
    assert methods["optimum"]["rmse"] <= methods["iht"]["rmse"] * slack
    assert methods["optimum"]["rmse"] <= methods["projection"]["rmse"] * slack
    subprocess.run([sys.executable, here / "report.py", tmp_path], check=True, env=surroundings)
    assert "machine_cpu" in (tmp_path / "RESULTS.md").read_text()


@needs_data
@pytest.mark.parametrize(("paper", "figures"), [("mardaoui-2021", ["6", "14", "15"])])
def test_figures_have_their_numbers(paper, figures):
    run = [sys.executable, "-m", "papers", paper, "--runs", "12", "--figures", *figures]
    surroundings = {**os.environ, "LIMES_DATA": str(DATA)}
    done = subprocess.run(run, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
    assert "as expected" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_other_numbers_are_told(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from papers.common.expected import Sampled, differences, plain

    rng = np.random.default_rng(0)
    exact, runs = rng.normal(size=4), rng.normal(size=(100, 4))
    kept = json.loads(json.dumps(plain({"exact": exact, "runs": Sampled.of(runs)})))
    other = rng.normal(size=(12, 4))
    assert not list(differences({"exact": exact * (1 + 1e-8), "runs": Sampled.of(other)}, kept))
    for found, told in (
        ({"exact": exact + 1e-4, "runs": Sampled.of(runs)}, "exact: differs by 0.0001"),
        ({"exact": exact, "runs": Sampled.of(runs + np.eye(4)[2])}, "runs: means of runs differ"),
        ({"exact": exact[:2], "runs": Sampled.of(runs)}, "exact: shape"),
        ({"runs": Sampled.of(runs)}, "exact: missing"),
        ({"exact": exact, "runs": Sampled.of(runs), "more": 1.0}, "more: not expected"),
        ({"exact": exact * np.nan, "runs": Sampled.of(runs)}, "exact: differs by nan"),
    ):
        (line,) = differences(found, kept)
        assert line.startswith(told)
