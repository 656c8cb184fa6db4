"""Which tests run in ``make test-deep`` alone? ``python -m tools.thin`` writes tests/thinned.json.

From the record of ``tools/mutants.py --record``: of a test function whose cases take long on average some are
kept, with as many values of its parameters as these can have (``spread`` in tests/effort.py), and a case that
takes very long runs in ``make test-deep`` alone; the quickest of a function stays unless it takes longer
still. Every other test, and every test of a file or folder that is named, always runs. Seconds of the record
are those under a profiler, about twice those of ``make test``.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

from tools.mutants import ROOT, records

# Seconds of a function's cases on average, of one case, and of a function's quickest case, under the profiler
AVERAGE, LONGEST, QUICKEST = 0.02, 2.0, 5.0
PLACE = ROOT / "tests" / "thinned.json"
# Whole: without some of their cases a mutant of the seeds 3111, 777 or 20261125 survived
WHOLE = (
    "tests/models/test_answers.py::test_one_number_a_row",
    "tests/scale/test_tables.py::test_other_processes_give_the_same_lines",
    "tests/sampling/controls/test_controls.py::test_controls_take_variance_away_from_rows_they_have_not_seen",
)
# Run by other targets of the Makefile
ENGINES = ("test_dask.py", "test_spark.py", "test_ray.py")


def thinned(seconds: dict[str, float]) -> dict[str, dict[str, int] | list[str]]:
    """Return the number of cases that are kept of a function, and the cases that are not."""
    cases: dict[str, list[str]] = defaultdict(list)
    seconds = {test: its for test, its in seconds.items() if not test.startswith(WHOLE)}
    for test in seconds:
        cases[test.split("[")[0]].append(test)
    deep, shares = [], {}
    for function, all_cases in sorted(cases.items()):
        quickest = min(all_cases, key=lambda test: (seconds[test], test))
        each = [test for test in all_cases if seconds[test] <= (QUICKEST if test == quickest else LONGEST)]
        deep += sorted({*all_cases} - {*each})
        if not each:
            continue
        mean = sum(seconds[test] for test in each) / len(each)
        kept = max(1, math.ceil(len(each) * min(1.0, AVERAGE / max(mean, AVERAGE))))
        if kept < len(each):
            shares[function] = kept
    return {"kept": shares, "deep": sorted(deep)}


def main(folder: Path = PLACE) -> None:
    """Write the file from the record."""
    seconds = {test: its for test, (its, _) in records().items() if not any(e in test for e in ENGINES)}
    folder.write_text(json.dumps(thinned(seconds), indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
