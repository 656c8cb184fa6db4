"""``python -m fuzz``: draw cases and compare them with the oracles, until the goals are met or time is up."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fuzz.run import GOALS, Run

HOME = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--families", nargs="+", default=list(GOALS), choices=list(GOALS), metavar="FAMILY")
    parser.add_argument("--seeds", default="0:", help="FROM:TO; without TO until the goals are met")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this many minutes")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--shrink", type=float, default=40.0, help="seconds to shrink a fault; 0 for none")
    parser.add_argument(
        "--journal",
        type=Path,
        default=HOME / "results" / "journal.jsonl",
        help="file of finished seeds, which a run resumes from",
    )
    parser.add_argument(
        "--report", action="store_true", help="write results/ and benchmarks/pages/fuzz.md, at the end"
    )
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition(":")
    run = Run(
        families=tuple(arguments.families),
        first=int(first or 0),
        last=int(last) if last else None,
        minutes=arguments.minutes,
        workers=arguments.workers,
        shrink=arguments.shrink,
        journal=arguments.journal,
    )
    faults = run.go()
    if arguments.report:
        from fuzz.results import write

        write(arguments.journal)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
