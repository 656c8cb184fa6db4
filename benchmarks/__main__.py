"""``python -m benchmarks [PART ...]``: run the parts named, or all; write results/ and README.md.

``--rounds``, ``--seeds`` and ``--cases`` make a short run, which is printed and changes no file.
"""

from __future__ import annotations

import argparse


def _speed(asked: argparse.Namespace) -> None:
    from benchmarks.speed import report, run

    result = run.measure(asked.rounds or run.ROUNDS, asked.cases)
    if asked.rounds or asked.cases:
        print(report.text(result))
    else:
        report.write(result)


def _tables(_: argparse.Namespace) -> None:
    from benchmarks.tables import run

    run.write(run.measure())


def _accuracy(asked: argparse.Namespace) -> None:
    from benchmarks.accuracy import report, run

    result = run.measure(asked.seeds or run.LIMES_SEEDS, asked.cases)
    if asked.seeds or asked.cases:
        print(report.text(result))
    else:
        report.write(result)


def _stability(asked: argparse.Namespace) -> None:
    from benchmarks.stability import report, run

    result = run.measure(asked.seeds or run.SEEDS, asked.cases)
    if asked.seeds or asked.cases:
        print(report.text(result))
    else:
        report.write(result)


def _quality(asked: argparse.Namespace) -> None:
    from benchmarks.quality import report, run

    result = run.measure(asked.seeds or run.RUNS, asked.cases)
    if asked.seeds or asked.cases:
        print(report.text(result))
    else:
        report.write(result)


def _sparse(_: argparse.Namespace) -> None:
    from benchmarks.sparse import run

    run.write(run.measure())


def _diagnostics(_: argparse.Namespace) -> None:
    from benchmarks.diagnostics import run

    run.write(run.measure())


def _text(asked: argparse.Namespace) -> None:
    from benchmarks.text import report, run

    result = run.measure(asked.rounds or run.ROUNDS, asked.seeds or run.RUNS)
    if asked.rounds or asked.seeds:
        print(report.text(result))
    else:
        report.write(result)


def _images(asked: argparse.Namespace) -> None:
    from benchmarks.images import accuracy, report, run

    result = run.measure(asked.seeds or accuracy.SEEDS, asked.cases)
    if asked.seeds or asked.cases:
        print(report.text(result))
    else:
        report.write(result)


PARTS = {
    "tables": _tables,
    "speed": _speed,
    "accuracy": _accuracy,
    "stability": _stability,
    "quality": _quality,
    "sparse": _sparse,
    "diagnostics": _diagnostics,
    "text": _text,
    "images": _images,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--rounds", type=int, help="rounds of speed and text, for a short run")
    parser.add_argument("--seeds", type=int, help="seeds of all other parts, for a short run")
    parser.add_argument("--cases", default="", help="only cases with this in their name, for a short run")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for part in asked.parts or PARTS:
        PARTS[part](asked)


# Processes that measure memory are spawned, and import this file again.
if __name__ == "__main__":
    main()
