"""Measure: the direct call and engines in turn, round after round; what is done is saved at once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import readme
from benchmarks.progress import say
from benchmarks.scale import engines
from benchmarks.scale.cases import BOOSTED, FOREST, SMALL, write_case, write_table
from benchmarks.speed.memory import fresh
from benchmarks.speed.run import machine

ROUNDS = 3
MANY = 1_000_000
# Rows by which an engine's start is measured
FEW = 1_000
GROWTH = {FOREST: (10_000, 100_000), SMALL: (10_000, 100_000, 1_000_000, 10_000_000)}
PACKAGES = ("limes", "scikit-learn", "xgboost-cpu", "pyarrow", "joblib", "dask", "distributed", "pyspark")

# Name of a case: model, engine, rows
Name = tuple[str, str, int]


def measure(rounds: int = ROUNDS, cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name, such as "10,000 rows" or "dask"."""
    result: dict[str, Any] = {"machine": machine(), "versions": _versions(), "rounds": rounds, "runs": []}
    missing = {engine: why for engine in engines.ENGINES if (why := engines.absent(engine))}
    result["absent"] = missing
    whole = not cases and rounds == ROUNDS
    wanted = [name for name in _names(rounds) if name[1] not in missing and cases.lower() in _words(name)]
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(wanted):
            say(f"{number + 1} of {len(wanted)}: {_words(name)}")
            result["runs"].append(_run(name, Path(folder)))
            if whole:
                readme.save("scale", result)
    say("done\n")
    return result


def _names(rounds: int) -> Iterator[Name]:
    """Return what is compared, beside each other in every round; then what grows."""
    everyone = (engines.DIRECT, *engines.ENGINES)
    yield from ((FOREST, engine, FEW) for engine in everyone)
    for _ in range(rounds):
        yield from ((model, engine, MANY) for model in (FOREST, BOOSTED) for engine in everyone)
    yield from ((FOREST, engine, rows) for rows in GROWTH[FOREST] for engine in everyone)
    yield from ((SMALL, "local", rows) for rows in GROWTH[SMALL])


def _words(name: Name) -> str:
    model, engine, rows = name
    return f"{model}, {engine}, {rows:,} rows".lower()


def _run(name: Name, folder: Path) -> dict[str, Any]:
    model, engine, rows = name
    case, table = write_case(model, folder), write_table(rows, folder)
    result = fresh(engines.run, engine, case, table, folder / "out")
    return {"model": model, "engine": engine, **result}


def _versions() -> dict[str, str]:
    result = {}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            continue
    return result
