"""A short run of the reproduced papers: two instances, and the tables made from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = (ROOT / os.environ.get("LIMES_DATA", "../shared/data")).resolve()


@pytest.mark.skipif(not DATA.exists(), reason="real data is not here: set LIMES_DATA")
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
