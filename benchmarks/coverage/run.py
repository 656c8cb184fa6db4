"""Explain one row of each case with many seeds, and see where the truth lies."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.coverage.functions import CALLS, CASES
from benchmarks.coverage.samples import runs, summary
from benchmarks.coverage.store import PART, Store
from benchmarks.pool import processes
from benchmarks.progress import say
from benchmarks.speed.run import machine

SEEDS = 200
# Where a control is chosen a row takes a hundred times as long
SEEDS_OF_AUTO = 40
_AUTO_CALLS = (256, 1024)
AUTO = (
    "XOR of thresholds",
    "event of 1e-2",
    "event of 1e-3",
    "plateau of 6 columns",
    "noise",
    "parity of 3 at medians, 20 columns",
    "exp(1.2 sum of 5)",
    "line and event of 1e-3",
    "images: parity of 3",
    "texts: all of 3",
)

Job = tuple[str, str, int, int]


def measure(seeds: int | None = None, cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name. A full run that was stopped resumes."""
    jobs = list(_jobs(seeds, cases))
    store = Store(None if seeds or cases else jobs)
    with processes() as pool:
        remaining = [job for job in jobs if job not in store]
        for job, line in zip(remaining, pool.map(_measured, remaining), strict=True):
            store.add(job, line)
            say(f"{line['case']}, {line['control']}, {line['calls']}")
    say("done\n")
    return {"machine": machine(), "lines": [store[job] for job in jobs]}


def finish() -> None:
    """Delete the lines of a run, which is complete and written."""
    PART.unlink(missing_ok=True)


def _jobs(seeds: int | None, cases: str) -> Iterator[Job]:
    named = [case for case in CASES.values() if cases.lower() in case.name.lower()]
    # the cheap ones first: a run that is stopped has all cases at few calls
    for calls in (64, *CALLS):
        for case in named:
            if calls in case.calls:
                yield case.name, "none", calls, seeds or SEEDS
    for calls in _AUTO_CALLS:
        for case in named:
            if case.name in AUTO and calls in case.calls:
                yield case.name, "auto", calls, min(seeds or SEEDS_OF_AUTO, SEEDS_OF_AUTO)


def _measured(job: Job) -> dict:
    name, control, calls, seeds = job
    return {"case": name, "control": control, "calls": calls, "seeds": seeds} | summary(
        runs(CASES[name], control=control, calls=calls, seeds=seeds)
    )
