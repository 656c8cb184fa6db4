"""``python -m benchmarks.scale.wide --rows N``: 23 columns, nearly every row a pattern, six kinds of models.

Each figure is a new process: seconds and CPU seconds from the call to the last row, start of workers
included, and the kernel's peak of memory of a worker. ``--few`` rows are measured too: what the start costs,
and so what a further row does. A family that is not installed is left out, and said. The table is printed;
with ``--save`` every run goes into results/scale_wide.json, in the place of an earlier one of this family,
engine and number of rows, and in the end all of them into pages/scale.md: a long measurement may be done
in parts.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks import readme
from benchmarks.progress import say
from benchmarks.scale import engines
from benchmarks.scale.cases import Case
from benchmarks.speed.memory import fresh
from benchmarks.speed.run import machine

COLUMNS = 23
NAMES = [f"x{j}" for j in range(COLUMNS)]
_GROUP = 100_000


def _xgboost(X: pd.DataFrame, y: np.ndarray) -> Any:
    from xgboost import XGBRegressor

    model = XGBRegressor(n_estimators=300, max_depth=6, random_state=0, n_jobs=2)
    return model.fit(X, y).set_params(n_jobs=1)


def _ebm(X: pd.DataFrame, y: np.ndarray) -> Any:
    from interpret.glassbox import ExplainableBoostingRegressor

    return ExplainableBoostingRegressor(interactions=0, random_state=0, n_jobs=1).fit(X[:5000], y[:5000])


def _forest(X: pd.DataFrame, y: np.ndarray) -> Any:
    return RandomForestRegressor(100, max_depth=10, random_state=0, n_jobs=2).fit(X, y).set_params(n_jobs=1)


def _support_vectors(X: pd.DataFrame, y: np.ndarray) -> Any:
    return make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X[:300], y[:300])


def _network(X: pd.DataFrame, y: np.ndarray) -> Any:
    """Two hidden layers: not read, so explained from the pool of answers."""
    return make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=30, random_state=0)
    ).fit(X, y)


# Model, and the library it needs
FAMILIES: dict[str, tuple[Callable[[pd.DataFrame, np.ndarray], Any], str]] = {
    "forest 100 x 10": (_forest, "sklearn"),
    "XGBoost 300 x 6": (_xgboost, "xgboost"),
    "linear pipeline": (
        lambda X, y: make_pipeline(StandardScaler(), LinearRegression()).fit(X, y),
        "sklearn",
    ),
    "EBM": (_ebm, "interpret"),
    "SVR, 300 vectors": (_support_vectors, "sklearn"),
    "network, pool": (_network, "sklearn"),
}


def measure(rows: int, few: int, families: list[str], of: list[str], save: bool) -> dict[str, Any]:
    """Every family on every engine."""
    result: dict[str, Any] = readme.load("scale_wide") if save else {"runs": []}
    result["machine"] = machine()
    result["absent"] = {engine: why for engine in of if (why := engines.absent(engine))}
    with tempfile.TemporaryDirectory() as folder:
        for family in families:
            fit, library = FAMILIES[family]
            if find_spec(library) is None:
                result["absent"][family] = f"{library} is not installed"
                continue
            case = _write_case(family, fit, Path(folder))
            for engine in of:
                for count in (few, rows):
                    if engine in result["absent"]:
                        continue
                    say(f"{family}, {engine}, {count:,} rows, load {os.getloadavg()[0]:.0f}")
                    table = _write_table(count, Path(folder))
                    run = fresh(_timed, engine, case, table, Path(folder) / "out")
                    run = {"family": family, "engine": engine, **run}
                    result["runs"] = [*(r for r in result["runs"] if _what(r) != _what(run)), run]
                    if save:
                        readme.save("scale_wide", result)
    say("done\n")
    return result


def _what(run: dict[str, Any]) -> tuple[str, str, int]:
    return run["family"], run["engine"], run["rows"]


def _write_case(family: str, fit: Callable[..., Any], folder: Path) -> Path:
    X, y = make_friedman1(20_000, COLUMNS, noise=1.0, random_state=0)
    table = pd.DataFrame(X, columns=NAMES)
    path = folder / f"{family}.joblib"
    joblib.dump(Case(fit(table, y), table), path)
    return path


def _write_table(count: int, folder: Path) -> Path:
    path = folder / f"{count}.parquet"
    if not path.exists():
        schema = pa.schema([(name, pa.float64()) for name in NAMES])
        with pq.ParquetWriter(path, schema) as file:
            for first in range(0, count, _GROUP):
                rows = np.random.default_rng([1, first]).random((_GROUP, COLUMNS))[: count - first]
                file.write_table(pa.table([*rows.T], schema=schema))
    return path


def _timed(engine: str, case: Path, table: Path, out: Path) -> dict[str, Any]:
    before = _cpu()
    result = engines.run(engine, case, table, out, method="auto")
    return {**result, "cpu": _cpu() - before, "load": os.getloadavg()[0]}


def _cpu() -> float:
    """Seconds of CPU of this process and of its children that have ended."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}. {COLUMNS} columns; one run each.",
        "",
        "| model | engine | rows | seconds | of them start | CPU s | CPU µs a further row | against local | "
        "MB a worker | distinct, about | load |",
        "|---" * 11 + "|",
    ]
    runs = {_what(run): run for run in result["runs"]}
    families, of = [*FAMILIES], [*engines.ENGINES]
    for family, engine, rows in sorted(runs, key=lambda it: (families.index(it[0]), it[2], of.index(it[1]))):
        few = runs[family, engine, min(r for f, e, r in runs if (f, e) == (family, engine))]
        many, local = runs[family, engine, rows], runs.get((family, "local", rows))
        if many is few:
            continue
        further = 1e6 * (many["cpu"] - few["cpu"]) / (rows - few["rows"])
        against = "" if local in (None, many) else f"{many['seconds'] / local['seconds'] - 1:+.0%}"
        worker = many["megabytes"]["worker"] or many["megabytes"]["driver"]
        lines.append(
            f"| {family} | {engine} | {rows:,} | {many['seconds']:.1f} | {few['seconds']:.1f} "
            f"| {many['cpu']:.1f} | {further:,.1f} | {against} "
            f"| {worker:.0f} | {many.get('distinct', 0):,} | {many['load']:.0f} |"
        )
    if result["absent"]:
        lines += ["", f"Absent: {'; '.join(f'{who} ({why})' for who, why in result['absent'].items())}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.wide", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=1_000, help="rows by which the start is measured")
    parser.add_argument("--families", nargs="*", default=[*FAMILIES], choices=[*FAMILIES])
    parser.add_argument("--engines", nargs="*", default=[*engines.ENGINES], choices=[*engines.ENGINES])
    parser.add_argument("--save", action="store_true", help="also into results/ and pages/")
    arguments = parser.parse_args()
    result = measure(arguments.rows, arguments.few, arguments.families, arguments.engines, arguments.save)
    print(text(result))
    if arguments.save:
        readme.replace("scale_wide", text(result))


# Processes that measure are spawned, and import this file again.
if __name__ == "__main__":
    main()
