"""``python -m benchmarks.scale.night``: two nights by the command line, the second with one column shifted.

A table of ``--rows`` rows is explained, a file of as many rows comes, in which x3 is larger by a twentieth of
its range, and the second night explains that file alone (``--since``). ``limes compare`` then states what
changed. As a check, a third night has rows of the second's law again. The table is printed; with ``--save``
it goes into results/scale_night.json and pages/scale.md too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from benchmarks import readme
from benchmarks.progress import say
from benchmarks.speed.run import machine

NAMES = [f"x{j}" for j in range(10)]
_SHIFTED, _SHIFT = "x3", 0.05
_LEAST = "0.02"


def measure(rows: int, workers: int) -> dict[str, Any]:
    """The nights, and the comparisons of each with the one before."""
    result: dict[str, Any] = {"machine": machine(), "rows": rows, "workers": workers, "runs": []}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        X, y = make_friedman1(5_000, len(NAMES), noise=1.0, random_state=0)
        background = pd.DataFrame(X, columns=NAMES)
        background.to_parquet(home / "train.parquet")
        forest = RandomForestRegressor(50, max_depth=8, random_state=0, n_jobs=2).fit(background, y)
        joblib.dump(forest.set_params(n_jobs=1), home / "model.joblib")
        (home / "loans").mkdir()
        for night in range(3):
            say(f"night {night + 1}")
            _draw(night, rows).to_parquet(home / "loans" / f"{night}.parquet", row_group_size=100_000)
            result["runs"].append(_night(home, night, workers))
            if night:
                say(f"compare {night} with {night + 1}")
                result["runs"].append(_comparison(home, night))
    say("done\n")
    return result


def _draw(night: int, rows: int) -> pd.DataFrame:
    table = pd.DataFrame(np.random.default_rng(night + 1).random((rows, len(NAMES))), columns=NAMES)
    return table.assign(**{_SHIFTED: table[_SHIFTED] + (_SHIFT if night else 0.0)})


def _night(home: Path, night: int, workers: int) -> dict[str, Any]:
    arguments = ["explain-table", "model.joblib", "loans", str(night), "--background", "train.parquet"]
    arguments += ["--trust-pickle", "--workers", str(workers), "--memory-per-worker", "2GB"]
    arguments += ["--max-errors", "1%", "--summary", "night.json"]
    code, seconds = _timed(home, [*arguments, *(["--since", str(night - 1)] if night else [])])
    summary = json.loads((home / "night.json").read_text())
    states = {name: summary[name] for name in ("rows", "errors", "distinct_explanations", "since")}
    return {"name": f"night {night + 1}", "code": code, "seconds": seconds, **states}


def _comparison(home: Path, night: int) -> dict[str, Any]:
    arguments = ["compare", str(night - 1), str(night), "--fail-on-drift", "--least", _LEAST]
    code, seconds = _timed(home, [*arguments, "--json", "drift.json"])
    changes = json.loads((home / "drift.json").read_text())["changes"]
    return {
        "name": f"compare {night} with {night + 1}",
        "code": code,
        "seconds": seconds,
        "quantities": len(changes),
        "changed": [change for change in changes if change["changed"]],
    }


def _timed(home: Path, arguments: list[str]) -> tuple[int, float]:
    start = time.perf_counter()
    command = [sys.executable, "-m", "limes", *arguments]
    finished = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    if finished.returncode not in (0, 4):
        raise RuntimeError(finished.stderr)
    return finished.returncode, time.perf_counter() - start


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}. Nights of {result['rows']:,} rows, {len(NAMES)} columns, a forest of "
        f"50 trees of depth 8, {result['workers']} workers; one run each, start included.",
        "",
        "| command | seconds | exit code | rows | what changed (size) |",
        "|---|---|---|---|---|",
    ]
    for run in result["runs"]:
        rows = f"{run['rows']:,}" if "rows" in run else ""
        changed = ", ".join(
            f"{change['quantity']} {change['name']}".strip() + f" ({change['size']:.3f})"
            for change in run.get("changed", ())
        )
        changed = changed.replace("|", r"\|")  # of "mean |contribution|", in a table of Markdown
        verdict = f"{len(run['changed'])} of {run['quantities']}: {changed}" if changed else "nothing"
        lines.append(
            f"| {run['name']} | {run['seconds']:.1f} | {run['code']} | {rows} | "
            f"{verdict if 'changed' in run else ''} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.night", description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--save", action="store_true", help="also into results/ and pages/")
    options = parser.parse_args()
    result = measure(options.rows, options.workers)
    print(text(result))
    if options.save:
        readme.save("scale_night", result)
        readme.replace("scale_night", text(result))


if __name__ == "__main__":
    main()
