"""Many seeds in several processes, bounded by goals, seeds and time."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.attempt import attempt
from fuzz.journal import Entry, Journal

# Triples of each family that a full run compares
GOALS = {
    "trees": 60_000,
    "tables": 25_000,
    "links": 10_000,
    "texts": 10_000,
    "images": 5_000,
    "accounts": 10_000,
    "beside": 10_000,
    "pairs": 10_000,
    "differences": 10_000,
    "groups": 10_000,
    "model changes": 10_000,
}
_SHOWN = 60.0  # seconds between two lines of progress


@dataclass
class Run:
    """Cases to do, and those that are done."""

    families: tuple[str, ...]
    first: int
    last: int | None
    minutes: float
    workers: int
    shrink: float
    journal: Path
    triples: Counter[str] = field(default_factory=Counter)
    explainers: Counter[str] = field(default_factory=Counter)

    def go(self) -> int:
        """Run; the number of faults, those of an earlier run of the journal among them."""
        journal = Journal(self.journal)
        finished = set()
        for entry in journal.entries():
            finished.add((entry.family, entry.seed))
            if self._selected(entry):
                self._count(entry)
        self._start = self._shown = time.monotonic()
        seeds = self._seeds(finished)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
            waiting: set[Future[Entry]] = set()
            more = True
            while more or waiting:
                while more and len(waiting) < 2 * self.workers:
                    more = self._give(pool, seeds, waiting)
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED) if waiting else (set(), waiting)
                for future in ready:
                    entry = future.result()
                    journal.add(entry)
                    self._count(entry)
                    self._tell(entry)
        self._say("done")
        return sum(self.explainers[kind] for kind in ("mismatch", "not finite", "crash"))

    def _selected(self, entry: Entry) -> bool:
        return (
            entry.family in self.families
            and entry.seed >= self.first
            and (self.last is None or entry.seed < self.last)
        )

    def _give(self, pool: ProcessPoolExecutor, seeds: object, waiting: set[Future[Entry]]) -> bool:
        """Submit one more seed; return False where no seed remains or time is up."""
        if time.monotonic() - self._start > 60 * self.minutes:
            return False
        family, seed = next(seeds, ("", -1))  # type: ignore[call-overload]
        if not family:
            return False
        waiting.add(pool.submit(attempt, family, seed, shrinking=self.shrink))
        return True

    def _seeds(self, finished: set[tuple[str, int]]) -> object:
        """Families in turn, each until its goal or its last seed."""
        nexts = dict.fromkeys(self.families, self.first)
        while nexts:
            for family in list(nexts):
                while (family, nexts[family]) in finished:
                    nexts[family] += 1
                if self._finished(family, nexts[family]):
                    del nexts[family]
                    continue
                yield family, nexts[family]
                nexts[family] += 1

    def _finished(self, family: str, seed: int) -> bool:
        if self.last is not None:
            return seed >= self.last
        return self.triples[family] >= GOALS[family]

    def _count(self, entry: Entry) -> None:
        self.triples[entry.family] += entry.triples
        self.explainers.update(entry.explainers)

    def _tell(self, entry: Entry) -> None:
        for fault in entry.faults[:1]:
            print(f"\n# {entry.family}, seed {entry.seed}, {entry.reader}\n{fault['script']}", flush=True)
        if time.monotonic() - self._shown > _SHOWN:
            self._shown = time.monotonic()
            self._say(f"seed {entry.seed}")

    def _say(self, where: str) -> None:
        seconds = time.monotonic() - self._start
        counts = ", ".join(f"{family} {count}" for family, count in self.triples.items())
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.explainers.items()))
        print(
            f"[{seconds / 60:.1f} min] {where}: triples: {counts}; explainers: {kinds}",
            file=sys.stderr,
            flush=True,
        )
