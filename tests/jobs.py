"""A long run in a separate process, which tests stop half-way, and helpers that read its folder."""

from __future__ import annotations

import runpy
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

# About a quarter of a second a part
PROGRAM = """
import sys, time
from pathlib import Path
import pandas as pd
import limes
sys.path.insert(0, "TESTS")
from internals import Cluster, Source, explain_files

FOLDER = Path(__file__).parent
TABLE = pd.DataFrame({"a": [i / 7 for i in range(40)], "b": [(3 * i) % 11 for i in range(40)]})

def work(engine, workers, pause):
    def model(X):
        time.sleep(pause)
        return X["a"] * X["b"]

    explainer = limes.TabularExplainer(model, TABLE, law="joint")
    options = {"run": {}, "rows_per_part": 2, "engine": engine, "cluster": Cluster(workers)}
    return explain_files(Source.of(FOLDER / "in.parquet"), explainer, FOLDER / "out", **options)

if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), 0.2)
""".replace("TESTS", str(Path(__file__).parent))
ROWS = 40


def read(out):
    """All rows of a folder, in the order of its parts."""
    return pd.concat([pd.read_parquet(path) for path in sorted(out.glob("*.parquet"))], ignore_index=True)


def same(result, expected):
    """Hold two frames of explanations against each other, to the last bit."""
    result = result.astype({"error": expected["error"].dtype})
    pd.testing.assert_frame_equal(result, expected, check_exact=True, check_dtype=False)


def started(folder, engine, workers):
    """Start the program in a separate process group and return it when a few parts are finished."""
    (folder / "job.py").write_text(PROGRAM)
    table = {"a": [i / 7 for i in range(ROWS)], "b": [(3 * i) % 11 for i in range(ROWS)]}
    pd.DataFrame(table).to_parquet(folder / "in.parquet")
    command = [sys.executable, folder / "job.py", engine, str(workers)]
    driver = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    journal = folder / "out" / "_parts.jsonl"  # a part may be in place before another's line is
    wait_until(lambda: journal.exists() and journal.read_text().count("sha256") > 2, driver)
    return driver


def resumed(folder):
    """Run the same command again, in this process and without the model's pauses."""
    return runpy.run_path(str(folder / "job.py"))["work"]("local", 1, 0)


def wait_until(condition, driver=None, seconds=60):
    patience = time.monotonic() + seconds
    while not condition():
        assert driver is None or driver.poll() is None, driver.stderr.read()
        assert time.monotonic() < patience
        time.sleep(0.02)


def members(group):
    """Processes of a group that still run."""
    listed = subprocess.run(
        ["/bin/ps", "-eo", "pid,pgid,stat"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split() for line in listed.splitlines()[1:]]
    return [int(pid) for pid, pgid, state in lines if int(pgid) == group and not state.startswith("Z")]
