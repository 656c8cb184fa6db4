"""One seed: draw a case, run it, explain it under several options, and shrink what fails."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from fuzz.families import draw
from fuzz.journal import Entry
from fuzz.sampled import look
from fuzz.shrink import script_of, shrink
from fuzz.verdict import REFUSED, REJECTED, SAMPLED, SKIPPED, Verdict

# Sets of options a case, and rows an explainer
_OPTIONS = {
    "trees": 6,
    "tables": 6,
    "links": 6,
    "texts": 5,
    "images": 6,
    "accounts": 6,
    "beside": 6,
    "pairs": 6,
    "differences": 6,
    "groups": 6,
    "model changes": 6,
}
_ROWS = {
    "trees": 18,
    "tables": 18,
    "links": 18,
    "texts": 10,
    "images": 8,
    "accounts": 4,
    "beside": 4,
    "pairs": 4,
    "differences": 4,
    "groups": 4,
    "model changes": 4,
}


def attempt(family: str, seed: int, *, shrinking: float = 40.0) -> Entry:
    """Do one seed; a model that its own library refuses is an entry without explainers."""
    start = time.process_time()
    entry = Entry(family, seed)
    rng = np.random.default_rng([list(_OPTIONS).index(family), seed])
    case = draw(family, rng, seed)
    entry.reader = case.reader
    try:
        trial = case.run()
    except Exception as error:  # noqa: BLE001 - data or parameters that the model's library does not take
        entry.notes = {f"not fitted: {type(error).__name__}: {str(error)[:120]}": 1}
        return entry
    kinds: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for _ in range(_OPTIONS[family]):
        options = case.options(rng, trial)
        rows = case.rows(rng, trial, _ROWS[family])
        verdict = trial.check(options, rows)
        if verdict.kind == SAMPLED and family in ("trees", "tables") and seed % 4 == 0 and not kinds:
            verdict = look(trial, options, rows)
            notes[f"sampled: {verdict.detail or 'not looked at'}"] += 1
        kinds[verdict.kind] += 1
        entry.triples += verdict.triples
        if verdict.kind in (REFUSED, REJECTED, SKIPPED):
            notes[f"{verdict.kind}: {verdict.detail[:160]}"] += 1
        if verdict.fault:
            seconds = 0.0 if entry.faults or kinds[SAMPLED] else shrinking
            entry.faults.append(_fault(case, options, rows, verdict, seconds))
    entry.explainers, entry.notes = dict(kinds), dict(notes)
    entry.seconds = round(time.process_time() - start, 3)
    return entry


def _fault(case: object, options: object, rows: object, verdict: Verdict, seconds: float) -> dict[str, str]:
    """The fault, shrunk; later ones of the same case are mostly the same and are left as they are."""
    small = shrink(case, options, rows, verdict, seconds=seconds)
    return {"kind": verdict.kind, "detail": verdict.detail, "script": script_of(small)}
