"""Measure: competitors in turn, round after round, in one process; medians, and ratios within a round."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np

from benchmarks.progress import say
from benchmarks.speed import competitors, limes_exact, limes_one, memory, scaling
from benchmarks.speed.cases import CASES, GROWTH, AbsentError, Case, build
from benchmarks.speed.competitors import OTHERS, REQUIRED

ROUNDS = 5
# Seconds after which a competitor sits out the rounds of a case that are left.
BUDGET = 20.0
MODELS = ("xgboost-cpu", "lightgbm", "numpy", "numba")

Runners = dict[ModuleType, Callable[[Any], Any]]


def measure(rounds: int = ROUNDS, cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name, and how cost grows."""
    if sys.platform != "linux":
        raise SystemExit("memory is measured with /proc and glibc: run the speed benchmark on Linux")
    names = [name for name in CASES if cases.lower() in name.lower()]
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, f"{number}.joblib") for number, name in enumerate(names)}
        result = {
            "machine": machine(),
            "versions": _versions(),
            "rounds": rounds,
            "cases": [_case(name, file, rounds) for name, file in files.items()],
        }
        if GROWTH in files:
            result["growth"] = scaling.measure(files[GROWTH])
    say("done\n")
    return result


def machine() -> str:
    """Return what it runs on."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    name = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return (
        f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, "
        f"{platform.python_implementation()} {platform.python_version()}, "
        f"a million additions {_pace():.0f} ms"
    )


def _pace() -> float:
    """CPU time in ms of a plain loop: cores that are shared differ by a factor of two from hour to hour."""
    seconds = []
    for _ in range(5):
        start, total = time.process_time(), 0
        for i in range(1_000_000):
            total += i
        seconds.append(time.process_time() - start)
    return 1e3 * statistics.median(seconds)


def _versions() -> dict[str, str]:
    result = {}
    for package in (*(competitor.PACKAGE for competitor in REQUIRED + OTHERS), *MODELS):
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            continue
    return result


def _case(name: str, file: Path, rounds: int) -> dict:
    say(f"{name}: fitting")
    case = build(name)
    joblib.dump(case, file)
    runners, prepared, absent = _prepare(case)
    seconds, differences = _race(case, runners, absent, rounds)
    return {
        "case": name,
        "absent": absent,
        "competitors": {
            who.NAME: {
                "answers": who.ANSWERS,
                "rows": who.ROWS,
                "prepare_s": prepared[who],
                **_summary(seconds, who),
                "difference": differences[who],
                "memory": _memory(who, name, file, absent),
            }
            for who in runners
        },
    }


def _prepare(case: Case) -> tuple[Runners, dict[ModuleType, float], dict[str, str]]:
    runners, prepared, absent = {}, {}, {}
    for who in REQUIRED + OTHERS:
        say(f"{case.name}: {who.NAME} prepares")
        try:
            competitors.load(who)
            start = time.perf_counter()
            runners[who] = competitors.prepare(who, case)
            prepared[who] = time.perf_counter() - start
        except AbsentError as reason:
            absent[who.NAME] = str(reason)
    return runners, prepared, absent


def _race(
    case: Case, runners: Runners, absent: dict[str, str], rounds: int
) -> tuple[dict[ModuleType, np.ndarray], dict[ModuleType, float | None]]:
    """Seconds a row in each round, NaN where one sat out; the first round warms up, and shows who cannot."""
    rng = np.random.default_rng(0)
    seconds = {who: np.full(rounds + 1, np.nan) for who in runners}
    answers: dict[ModuleType, Any] = {}
    for turn in range(rounds + 1):
        X = case.X[rng.permutation(len(case.X))]
        for who in list(runners):
            if np.nansum(seconds[who]) * who.ROWS > BUDGET:
                continue
            say(f"{case.name}: round {turn} of {rounds}, {who.NAME}")
            try:
                seconds[who][turn], values = _time(who, runners[who], X[: who.ROWS])
            except AbsentError as reason:
                absent[who.NAME] = str(reason)
                del runners[who], seconds[who]
                continue
            if turn == 0:
                answers[who] = values
    return seconds, {who: _difference(who, answers) for who in runners}


def _time(who: ModuleType, explain: Callable[[Any], Any], rows: np.ndarray) -> tuple[float, Any]:
    with competitors.reasons(who):
        start = time.perf_counter()
        values = explain(rows)
        return (time.perf_counter() - start) / len(rows), values


def _summary(seconds: dict[ModuleType, np.ndarray], who: ModuleType) -> dict[str, Any]:
    """The warm-up counts only for one that was too slow for a second turn."""
    turns = np.flatnonzero(np.isfinite(seconds[who]))
    turns = turns[1:] if turns.size > 1 else turns
    seconds_of_who = seconds[who][turns]
    return {
        "rounds": turns.size,
        "seconds_a_row": float(np.median(seconds_of_who)),
        "times_limes": float(np.median(seconds_of_who / seconds[limes_exact][turns])),
        "times_limes_one": float(np.median(seconds_of_who / seconds[limes_one][turns])),
    }


def _difference(who: ModuleType, answers: dict[ModuleType, Any]) -> float | None:
    """From the first that answers the same, on the rows that both explained, over its largest value."""
    first = next(other for other in answers if other.ANSWERS == who.ANSWERS)
    if first is who or answers[who] is None:
        return None
    shared = min(first.ROWS, who.ROWS)
    theirs, seconds_of_who = (np.asarray(answers[one])[:shared] for one in (first, who))
    return float(np.abs(seconds_of_who - theirs).max() / np.abs(theirs).max())


def _memory(who: ModuleType, name: str, file: Path, absent: dict[str, str]) -> dict[str, float] | None:
    """For limes and the libraries beside it; one row a call prepares the same as many."""
    if who in REQUIRED and who is not limes_exact:
        return None
    say(f"{name}: memory of {who.NAME}")
    try:
        with competitors.reasons(who):
            return memory.fresh(memory.preparation, who.__name__, file)
    except AbsentError as reason:
        absent[f"memory of {who.NAME}"] = str(reason)
        return None
